/* Looks for checkpoints level by level, by the names in each folder. */
#include "base/search.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir_private.h"

/* Names that mark a folder as a checkpoint, whatever its format. */
static const char *const marks[] = {
    ".metadata", "metadata.json",   "__*.metadata",  "*.distcp",
    "mp_rank_*", "*zero_pp_rank_*", "*.safetensors", "*.safetensors.index.json",
    ".zgroup",   ".zarray",         "zarr.json",
};

/* Names of files that may be one checkpoint each: a mark only where nothing better is found. */
static const char *const weak_marks[] = {"*.pt", "*.pth", "*.bin", "*.ckpt", "*.h5", "*.hdf5"};

const char gcmp_megatron_tracker[] = "latest_checkpointed_iteration.txt";
const char gcmp_deepspeed_tracker[] = "latest";

char *gcmp_join_names(const char *folder, const char *name) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *joined = malloc(bytes);
    if (joined != NULL) {
        bool slash = folder[0] != '\0' && name[0] != '\0' && folder[strlen(folder) - 1] != '/';
        snprintf(joined, bytes, "%s%s%s", folder, slash ? "/" : "", name);
    }
    return joined;
}

enum gradcmp_status gcmp_search_fail(const struct gcmp_search *search, const char *folder,
                                     enum gradcmp_status code, const char *message,
                                     struct gradcmp_error *error) {
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), folder);
    (void)gcmp_error_set(error, code, path, GRADCMP_NO_OFFSET, "%s", message);
    free(path);
    return code;
}

bool gcmp_name_matches(const char *name, const char *const *patterns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(patterns[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

bool gcmp_is_weak_mark(const char *name) {
    return gcmp_name_matches(name, weak_marks, sizeof weak_marks / sizeof *weak_marks);
}

/* Tell whether a name is a folder by itself, not through a link. */
static bool is_real_folder(const struct gcmp_search *search, const char *name) {
    struct stat status;
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), name);
    bool is_real = path != NULL && lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
    free(path);
    return is_real;
}

/* DeepSpeed's tracker may be a link to a folder, but a folder of its name is none. */
static bool is_tracker(const struct gcmp_search *search, const char *folder) {
    char *tracker = gcmp_join_names(folder, gcmp_deepspeed_tracker);
    bool is_folder = tracker != NULL && is_real_folder(search, tracker);
    free(tracker);
    return !is_folder;
}

enum gradcmp_status gcmp_search_look(const struct gcmp_search *search, const char *name,
                                     struct gcmp_search_folder *folder,
                                     struct gradcmp_error *error) {
    *folder = (struct gcmp_search_folder){0};
    GCMP_TRY(gcmp_dir_list(search->dir, name, GCMP_SEARCH_MAX_NAMES, &folder->names, &folder->count,
                           error));
    for (size_t i = 0; i < folder->count; i++) {
        const char *entry = folder->names[i];
        bool is_mark = gcmp_name_matches(entry, marks, sizeof marks / sizeof *marks);
        folder->marked = folder->marked || is_mark;
        folder->fixed = folder->fixed || (is_mark && fnmatch("*.safetensors*", entry, 0) != 0);
        folder->weak = folder->weak || gcmp_is_weak_mark(entry);
        folder->array = folder->array || strcmp(entry, ".zarray") == 0;
        folder->shards = folder->shards || fnmatch("*.distcp", entry, 0) == 0;
        folder->metadata = folder->metadata || strcmp(entry, ".metadata") == 0 ||
                           fnmatch("__*.metadata", entry, 0) == 0;
        folder->wgrads = folder->wgrads || strcmp(entry, "wgrads") == 0;
        folder->megatron_tracker =
            folder->megatron_tracker || strcmp(entry, gcmp_megatron_tracker) == 0;
        folder->deepspeed_tracker =
            folder->deepspeed_tracker || strcmp(entry, gcmp_deepspeed_tracker) == 0;
    }
    folder->deepspeed_tracker = folder->deepspeed_tracker && is_tracker(search, name);
    return GRADCMP_OK;
}

/* Folders in which Megatron dumps gradients of activations, or weights beside their gradients,
 * under the names of a checkpoint: what is meant by the folder above are the gradients of weights.
 */
static bool is_other_dump(const struct gcmp_search_folder *folder, const char *entry) {
    return strcmp(entry, "dgrads") == 0 || (folder->wgrads && strcmp(entry, "params") == 0);
}

/* Note what cannot be opened where it is a folder, or a file that may be a checkpoint; of other
 * files nothing is wanted. What cannot even be looked at may be a folder where a link may not. */
static enum gradcmp_status note_unopened(struct gcmp_search *search, const char *child,
                                         struct gcmp_name_list *list, bool takes_files,
                                         struct gradcmp_error *error) {
    struct stat status;
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), child);
    bool is_there = path != NULL && stat(path, &status) == 0;
    bool is_wanted = is_there ? S_ISDIR(status.st_mode) || (takes_files && gcmp_is_weak_mark(child))
                              : list == &search->closed;
    if (path != NULL && !is_wanted) {
        free(path);
        return GRADCMP_OK;
    }
    return gcmp_name_list_add(list, path, error);
}

/* Queue one entry where it is a folder. `takes_files`: a file in its place may be a checkpoint. */
static enum gradcmp_status queue_child(struct gcmp_search *search, const char *child,
                                       bool takes_files, struct gradcmp_error *error) {
    enum gcmp_dir_kind kind = gcmp_dir_kind(search->dir, child);
    int code = errno;
    if (kind == GCMP_DIR_FOLDER && (!search->only_real || is_real_folder(search, child))) {
        return gcmp_name_list_add(&search->next, strdup(child), error);
    }
    if (kind == GCMP_DIR_OTHER && code == EXDEV) {
        return note_unopened(search, child, &search->links, takes_files, error);
    }
    return kind == GCMP_DIR_OTHER && (code == EACCES || code == EPERM)
               ? note_unopened(search, child, &search->closed, takes_files, error)
               : GRADCMP_OK;
}

enum gradcmp_status gcmp_search_queue(struct gcmp_search *search, const char *name,
                                      const struct gcmp_search_folder *folder,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < folder->count; i++) {
        if (folder->names[i][0] == '.' || is_other_dump(folder, folder->names[i])) {
            continue;
        }
        char *child = gcmp_join_names(name, folder->names[i]);
        if (child == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        enum gradcmp_status status = queue_child(search, child, !folder->marked, error);
        free(child);
        GCMP_TRY(status);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_add_array(struct gcmp_search *search, const char *array,
                                          struct gradcmp_error *error) {
    char *parent = strdup(array);
    if (parent != NULL) {
        char *slash = strrchr(parent, '/');
        *(slash == NULL ? parent : slash) = '\0';
    }
    search->array = true;
    return gcmp_name_list_add(&search->hits, parent, error);
}

bool gcmp_search_is_inside(const struct gcmp_search *search, const char *name) {
    if (search->hits.count == 0 || !search->array) {
        return false;
    }
    const char *hit = search->hits.names[search->hits.count - 1];
    size_t length = strlen(hit);
    return length == 0 || (strncmp(name, hit, length) == 0 && name[length] == '/');
}

static const char epoch_word[] = "epoch";

/* A word of a list that a name, without separators at its end, ends with; or NULL. */
static const char *word_at_end(const char *name, size_t length, const char *const *words,
                               size_t count) {
    while (length > 0 && strchr("-_=.", name[length - 1]) != NULL) {
        length--;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(words[i]);
        if (length >= bytes && strncmp(name + length - bytes, words[i], bytes) == 0) {
            return words[i];
        }
    }
    return NULL;
}

/* The word for a point in training before a number. */
static const char *point_word(const char *name, size_t length) {
    static const char *const words[] = {"iter",       "iteration", "step",    "steps",
                                        "checkpoint", "ckpt",      epoch_word};
    return word_at_end(name, length, words, sizeof words / sizeof *words);
}

/* True where the number counts parts of one checkpoint. */
static bool is_part_word(const char *name, size_t length) {
    static const char *const words[] = {"rank", "ranks", "shard", "part", "worker", "node", "-of"};
    return word_at_end(name, length, words, sizeof words / sizeof *words) != NULL;
}

/* Bytes of a name that end before the digits at the end of `length` bytes. */
static size_t before_digits(const char *name, size_t length) {
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') {
        length--;
    }
    return length;
}

/* Bytes of a name without the ending of a file, and without the version that Lightning adds to a
 * name that was taken ("step=3-v1.ckpt"). */
static size_t stem_bytes(const char *name) {
    bool is_file = gcmp_is_weak_mark(name) || fnmatch("*.safetensors", name, 0) == 0;
    size_t length = is_file ? (size_t)(strrchr(name, '.') - name) : strlen(name);
    size_t before = before_digits(name, length);
    bool is_version = before < length && before > 2 && strncmp(name + before - 2, "-v", 2) == 0 &&
                      before_digits(name, before - 2) < before - 2;
    return is_version ? before - 2 : length;
}

/* The number that a name ends with; -1: none, or one of a part. *before: how many bytes of the last
 * component, *last, are before it. */
static int64_t last_number(const char *name, const char **last, size_t *before) {
    const char *slash = strrchr(name, '/');
    *last = slash == NULL ? name : slash + 1;
    size_t length = stem_bytes(*last);
    *before = before_digits(*last, length);
    size_t digits = length - *before;
    return digits > 0 && digits <= 18 && !is_part_word(*last, *before)
               ? strtoll(*last + *before, NULL, 10)
               : -1;
}

int64_t gcmp_iteration_of(const char *name, bool *is_sure) {
    const char *last;
    size_t before;
    int64_t number = last_number(name, &last, &before);
    *is_sure = number >= 0 && (before == 0 || point_word(last, before) != NULL);
    return number;
}

int64_t gcmp_epoch_of(const char *name) {
    const char *last;
    size_t before;
    int64_t number = last_number(name, &last, &before);
    return number >= 0 && point_word(last, before) == epoch_word ? number : -1;
}

void gcmp_search_end(struct gcmp_search *search) {
    gcmp_name_list_free(&search->hits);
    gcmp_name_list_free(&search->next);
    gcmp_name_list_free(&search->links);
    gcmp_name_list_free(&search->closed);
    gcmp_dir_close(search->dir);
}
