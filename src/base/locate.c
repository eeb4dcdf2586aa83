/* Finds the checkpoint below a path by the files that mark one. */
#include "base/grow.h"
#include "base/locate.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/dir_private.h"
#include "base/text.h"

/* Limits: levels below the given folder, folders looked into, names in one folder, bytes of a
 * tracker file, names in a message. */
enum {
    MAX_LEVEL = 3,
    MAX_RUN_LEVEL = 8, /* when all runs are looked for */
    MAX_FOLDERS = 4096,
    MAX_NAMES = 1 << 20,
    MAX_TRACKER_BYTES = 256,
    MAX_LISTED = 8
};

/* Names that mark a folder as a checkpoint, whatever its format. */
static const char *const marks[] = {
    ".metadata", "metadata.json",   "__*.metadata",  "*.distcp",
    "mp_rank_*", "*zero_pp_rank_*", "*.safetensors", "*.safetensors.index.json",
    ".zgroup",   ".zarray",         "zarr.json",
};

/* Names of files that may be one checkpoint each: a mark only where nothing better is found. */
static const char *const weak_marks[] = {"*.pt", "*.pth", "*.bin", "*.ckpt", "*.h5", "*.hdf5"};

/* Names of which one is enough for all such files of a folder to be one checkpoint: the optimizer
 * beside weights, the first of parts, the file of rank 0. */
static const char *const together[] = {
    "optimizer.*",   "optim.*",      "*-00001-of-*.bin", "*rank0.*",     "*rank_0.*",
    "*rank-0.*",     "*rank00.*",    "*rank_00.*",       "*rank-00.*",   "*rank000.*",
    "*rank_000.*",   "*rank-000.*",  "*rank0000.*",      "*rank_0000.*", "*rank-0000.*",
    "*rank_00000.*", "*rank00000.*",
};

/* Files that say nothing, or only a part, without the folder that they are in. */
static const char *const parts[] = {
    ".metadata",
    "__*.metadata",
    "*.distcp",
    "metadata.json",
    ".zgroup",
    ".zattrs",
    ".zarray",
    "zarr.json",
    "distrib_optim.pt",
    "*zero_pp_rank_*_optim_states.pt",
    "latest",
    "latest_universal",
    "latest_checkpointed_iteration.txt",
    "shard-[0-9]*.safetensors",
    "*.safetensors.index.json",
};

static const char MEGATRON_TRACKER[] = "latest_checkpointed_iteration.txt";
static const char DEEPSPEED_TRACKER[] = "latest";

/* Relative names of folders; "" is the given one. */
struct folder_list {
    char **names;
    size_t count, capacity;
};

struct search {
    struct gcmp_dir *dir;
    int64_t iteration;
    struct folder_list hits;
    struct folder_list next;  /* folders of the next level */
    struct folder_list links; /* to folders that lie elsewhere */
    size_t visited;
    bool weak;  /* the given folder holds files that may be checkpoints */
    bool array; /* the last hit was found by an array of zarr in it */
};

/* What the names in a folder say. */
struct folder {
    char **names;
    size_t count;
    bool marked, weak;
    bool fixed;            /* marked by more than safetensors, which may lie anywhere */
    bool array;            /* of zarr */
    bool shards, metadata; /* *.distcp; .metadata or __<rank>.metadata */
    bool megatron_tracker, deepspeed_tracker;
    bool wgrads; /* gradient dumps */
};

static void free_list(struct folder_list *list) {
    gcmp_dir_free_names(list->names, list->count);
    *list = (struct folder_list){0};
}

/* Append a name, which the list then owns (also on failure). */
static enum gradcmp_status add_folder(struct folder_list *list, char *name,
                                      struct gradcmp_error *error) {
    if (name == NULL ||
        !gcmp_grow(&list->names, list->count, &list->capacity, sizeof *list->names)) {
        free(name);
        GCMP_FAIL_MEMORY(error);
    }
    list->names[list->count++] = name;
    return GRADCMP_OK;
}

/* Join two names; malloced, NULL without memory. Either may be "". */
static char *join(const char *folder, const char *name) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *joined = malloc(bytes);
    if (joined != NULL) {
        bool slash = folder[0] != '\0' && name[0] != '\0' && folder[strlen(folder) - 1] != '/';
        snprintf(joined, bytes, "%s%s%s", folder, slash ? "/" : "", name);
    }
    return joined;
}

/* Fail at a folder of the search. */
static enum gradcmp_status fail_at(const struct search *search, const char *folder,
                                   enum gradcmp_status code, const char *message,
                                   struct gradcmp_error *error) {
    char *path = join(gcmp_dir_path(search->dir), folder);
    (void)gcmp_error_set(error, code, path, GRADCMP_NO_OFFSET, "%s", message);
    free(path);
    return code;
}

static bool matches(const char *name, const char *const *patterns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(patterns[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* Tell whether an entry is a folder by itself, not through a link: no tracker, whatever its name.
 */
static bool is_real_folder(const struct search *search, const char *folder, const char *entry) {
    struct stat status;
    char *child = join(folder, entry), *path = NULL;
    if (child != NULL) {
        path = join(gcmp_dir_path(search->dir), child);
    }
    bool is_real = path != NULL && lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
    free(path);
    free(child);
    return is_real;
}

static enum gradcmp_status look_into(const struct search *search, const char *name,
                                     struct folder *folder, struct gradcmp_error *error) {
    *folder = (struct folder){0};
    GCMP_TRY(gcmp_dir_list(search->dir, name, MAX_NAMES, &folder->names, &folder->count, error));
    for (size_t i = 0; i < folder->count; i++) {
        const char *entry = folder->names[i];
        bool is_mark = matches(entry, marks, sizeof marks / sizeof *marks);
        folder->marked = folder->marked || is_mark;
        folder->fixed = folder->fixed || (is_mark && fnmatch("*.safetensors*", entry, 0) != 0);
        folder->weak =
            folder->weak || matches(entry, weak_marks, sizeof weak_marks / sizeof *weak_marks);
        folder->array = folder->array || strcmp(entry, ".zarray") == 0;
        folder->shards = folder->shards || fnmatch("*.distcp", entry, 0) == 0;
        folder->metadata = folder->metadata || strcmp(entry, ".metadata") == 0 ||
                           fnmatch("__*.metadata", entry, 0) == 0;
        folder->wgrads = folder->wgrads || strcmp(entry, "wgrads") == 0;
        folder->megatron_tracker = folder->megatron_tracker || strcmp(entry, MEGATRON_TRACKER) == 0;
        folder->deepspeed_tracker =
            folder->deepspeed_tracker || strcmp(entry, DEEPSPEED_TRACKER) == 0;
    }
    folder->deepspeed_tracker =
        folder->deepspeed_tracker && !is_real_folder(search, name, DEEPSPEED_TRACKER);
    return GRADCMP_OK;
}

static bool is_digits(const char *text) {
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* A tracker holds one token of plain characters and at most one line end. */
static bool is_token(char *text, size_t count) {
    if (count > 0 && text[count - 1] == '\n') {
        text[--count] = '\0';
    }
    if (count > 0 && text[count - 1] == '\r') {
        text[--count] = '\0';
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c == 0x7f || c == '/') {
            return false;
        }
    }
    return count > 0 && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* Turn a tracker's token into the folder that it means; malloced, NULL where it means none. */
static char *folder_of_token(const char *token, bool megatron) {
    char name[MAX_TRACKER_BYTES + 16];
    if (!megatron || strcmp(token, "release") == 0) {
        snprintf(name, sizeof name, "%s", token);
    } else if (is_digits(token) && strlen(token) <= 18) {
        snprintf(name, sizeof name, "iter_%07lld", strtoll(token, NULL, 10));
    } else {
        return NULL;
    }
    return strdup(name);
}

/* Say that a tracker names no folder beside it, and which folders there are. */
static enum gradcmp_status fail_tracker(const struct search *search, const char *folder,
                                        const char *tracker, const char *name,
                                        struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    char **names = NULL;
    size_t count = 0, listed = 0;
    GCMP_TRY(gcmp_dir_list(search->dir, folder, MAX_NAMES, &names, &count, error));
    gcmp_text_addf(&text, "names \"%.200s\", which is not a folder here", name);
    for (size_t i = 0; i < count && listed < MAX_LISTED; i++) {
        char *child = join(folder, names[i]);
        if (child != NULL && names[i][0] != '.' && gcmp_dir_has_dir(search->dir, child)) {
            gcmp_text_addf(&text, "%s%s", listed++ == 0 ? "; choose with --iteration among " : ", ",
                           names[i]);
        }
        free(child);
    }
    gcmp_dir_free_names(names, count);
    enum gradcmp_status status =
        text.failed ? GRADCMP_ERROR_MEMORY
                    : fail_at(search, tracker, GRADCMP_ERROR_CORRUPT, text.bytes, error);
    gcmp_text_free(&text);
    return status;
}

/* Check that what a tracker names is a folder below the given path. */
static enum gradcmp_status check_target(const struct search *search, const char *folder,
                                        const char *tracker, const char *name,
                                        struct gradcmp_error *error) {
    char *target = join(folder, name);
    if (target == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gcmp_dir_kind kind = gcmp_dir_kind(search->dir, target);
    int code = errno; /* of OTHER: why it was not opened, or 0 */
    free(target);
    if (kind == GCMP_DIR_FOLDER) {
        return GRADCMP_OK;
    }
    if (kind == GCMP_DIR_OTHER && code != 0 && code != EXDEV) {
        return fail_at(search, tracker, gcmp_dir_status(code), gcmp_dir_reason(code), error);
    }
    if (kind == GCMP_DIR_OTHER) {
        return fail_at(search, tracker, GRADCMP_ERROR_CORRUPT,
                       "names a link that leads elsewhere: give that path itself", error);
    }
    return fail_tracker(search, folder, tracker, name, error);
}

/* Turn the bytes of a tracker into the name of a folder; malloced, NULL where it names none. */
static char *folder_of_tracker(char *bytes, size_t count, bool megatron) {
    return is_token(bytes, count) ? folder_of_token(bytes, megatron) : NULL;
}

/* Read the target of the link at `path`, without slashes at its end; "" where it is none. */
static void read_target(const struct search *search, const char *path, char *target,
                        size_t capacity) {
    char *link = join(gcmp_dir_path(search->dir), path);
    ssize_t length = link == NULL ? -1 : readlink(link, target, capacity - 1);
    free(link);
    while (length > 0 && target[length - 1] == '/') {
        length--;
    }
    target[length < 0 ? 0 : length] = '\0';
}

/* Add the folder that the tracker at `path`, a link, leads to: where that is beside it under its
 * own name, else under the link's. */
static enum gradcmp_status add_target(struct search *search, const char *folder, const char *path,
                                      char *target, struct gradcmp_error *error) {
    char *beside = is_token(target, strlen(target)) ? join(folder, target) : NULL;
    if (beside != NULL && gcmp_dir_has_dir(search->dir, beside)) {
        return add_folder(&search->hits, beside, error);
    }
    free(beside);
    return add_folder(&search->hits, strdup(path), error);
}

/* Add what a tracker leads to that is a link and no file; *is_link is false for a file. */
static enum gradcmp_status follow_link(struct search *search, const char *folder, const char *path,
                                       bool *is_link, struct gradcmp_error *error) {
    char target[PATH_MAX];
    enum gcmp_dir_kind kind = gcmp_dir_kind(search->dir, path);
    bool leads_out = kind == GCMP_DIR_OTHER && errno == EXDEV;
    read_target(search, path, target, sizeof target);
    *is_link = kind == GCMP_DIR_FOLDER;
    if (leads_out) {
        return fail_at(search, path, GRADCMP_ERROR_CORRUPT,
                       "an absolute link, or one that leads elsewhere: give its folder itself",
                       error);
    }
    if (kind == GCMP_DIR_ABSENT && target[0] != '\0') {
        return fail_tracker(search, folder, path, target, error);
    }
    return *is_link ? add_target(search, folder, path, target, error) : GRADCMP_OK;
}

/* Read the tracker `tracker` in `folder` and add the folder it names to the hits; people also make
 * it a link to the folder. */
static enum gradcmp_status follow_tracker(struct search *search, const char *folder,
                                          const char *tracker, struct gradcmp_error *error) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    char *path = join(folder, tracker), *name = NULL;
    enum gradcmp_status status;
    bool is_link = false;
    if (path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    status = follow_link(search, folder, path, &is_link, error);
    if (status != GRADCMP_OK || is_link) {
        goto out;
    }
    status = gcmp_dir_slurp(search->dir, path, MAX_TRACKER_BYTES, &bytes, &count, error);
    if (status == GRADCMP_ERROR_LIMIT) {
        status = fail_at(search, path, GRADCMP_ERROR_CORRUPT, "too long for a tracker file", error);
    }
    GCMP_TRY_OUT(status);
    errno = 0;
    name = folder_of_tracker((char *)bytes, count, tracker == MEGATRON_TRACKER);
    if (name == NULL && errno == ENOMEM) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    if (name == NULL) {
        status = fail_at(search, path, GRADCMP_ERROR_CORRUPT, "does not name one folder beside it",
                         error);
        goto out;
    }
    GCMP_TRY_OUT(check_target(search, folder, path, name, error));
    status = add_folder(&search->hits, join(folder, name), error);
out:
    free(name);
    free(bytes);
    free(path);
    return status;
}

/* Folders in which Megatron dumps gradients of activations, or weights beside their gradients,
 * under the names of a checkpoint: what is meant by the folder above are the gradients of weights.
 */
static bool is_other_dump(const struct folder *folder, const char *entry) {
    return strcmp(entry, "dgrads") == 0 || (folder->wgrads && strcmp(entry, "params") == 0);
}

/* Note a folder that only a link leads to; files elsewhere are nobody's runs. */
static enum gradcmp_status note_link(struct search *search, const char *child,
                                     struct gradcmp_error *error) {
    struct stat status;
    char *path = join(gcmp_dir_path(search->dir), child);
    if (path != NULL && (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))) {
        free(path);
        return GRADCMP_OK;
    }
    return add_folder(&search->links, path, error);
}

/* Queue the folders in `name` for the next level. */
static enum gradcmp_status queue_children(struct search *search, const char *name,
                                          const struct folder *folder,
                                          struct gradcmp_error *error) {
    for (size_t i = 0; i < folder->count; i++) {
        if (folder->names[i][0] == '.' || is_other_dump(folder, folder->names[i])) {
            continue;
        }
        char *child = join(name, folder->names[i]);
        enum gcmp_dir_kind kind =
            child == NULL ? GCMP_DIR_FOLDER : gcmp_dir_kind(search->dir, child);
        if (kind == GCMP_DIR_FOLDER) {
            GCMP_TRY(add_folder(&search->next, child, error));
            continue;
        }
        bool leads_out = kind == GCMP_DIR_OTHER && errno == EXDEV;
        enum gradcmp_status status = leads_out ? note_link(search, child, error) : GRADCMP_OK;
        free(child);
        GCMP_TRY(status);
    }
    return GRADCMP_OK;
}

/* Zarr's arrays are folders; those that lie side by side are one checkpoint, of which the folder
 * around them need not say so. */
static enum gradcmp_status add_array_parent(struct search *search, const char *array,
                                            struct gradcmp_error *error) {
    char *parent = strdup(array);
    if (parent != NULL) {
        char *slash = strrchr(parent, '/');
        *(slash == NULL ? parent : slash) = '\0';
    }
    search->array = true;
    return add_folder(&search->hits, parent, error);
}

/* True for the other folders of such a checkpoint. */
static bool is_inside_last_hit(const struct search *search, const char *name) {
    if (search->hits.count == 0 || !search->array) {
        return false;
    }
    const char *hit = search->hits.names[search->hits.count - 1];
    size_t length = strlen(hit);
    return length == 0 || (strncmp(name, hit, length) == 0 && name[length] == '/');
}

/* Weights that were exported beside a tracker of DeepSpeed (transformers does so) are less than the
 * checkpoint that the tracker names, where it is still there. */
static enum gradcmp_status add_marked(struct search *search, const char *name,
                                      const struct folder *folder, struct gradcmp_error *error) {
    struct gradcmp_error ignored = {0};
    size_t before = search->hits.count;
    if (!folder->fixed && folder->deepspeed_tracker) {
        enum gradcmp_status status = follow_tracker(search, name, DEEPSPEED_TRACKER, &ignored);
        if (status == GRADCMP_ERROR_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        if (search->hits.count > before) {
            return GRADCMP_OK;
        }
    }
    return add_folder(&search->hits, strdup(name), error);
}

/* Look at one folder: it is a checkpoint, or a tracker in it names one, or one may be below it. */
static enum gradcmp_status examine(struct search *search, const char *name,
                                   struct gradcmp_error *error) {
    struct folder folder;
    if (is_inside_last_hit(search, name)) {
        return GRADCMP_OK;
    }
    if (++search->visited > MAX_FOLDERS) {
        return fail_at(search, "", GRADCMP_ERROR_LIMIT,
                       "too many folders to search: name the checkpoint itself", error);
    }
    GCMP_TRY(look_into(search, name, &folder, error));
    enum gradcmp_status status;
    bool ask_tracker = search->iteration < 0;
    if (folder.array && name[0] != '\0') {
        status = add_array_parent(search, name, error);
    } else if (folder.marked) {
        status = add_marked(search, name, &folder, error);
    } else if (ask_tracker && folder.megatron_tracker) {
        status = follow_tracker(search, name, MEGATRON_TRACKER, error);
    } else if (ask_tracker && folder.deepspeed_tracker) {
        status = follow_tracker(search, name, DEEPSPEED_TRACKER, error);
    } else {
        search->weak = search->weak || (name[0] == '\0' && folder.weak);
        status = queue_children(search, name, &folder, error);
    }
    gcmp_dir_free_names(folder.names, folder.count);
    return status;
}

typedef enum gradcmp_status (*examine_fn)(struct search *search, const char *name,
                                          struct gradcmp_error *error);

/* Search level by level, down to `last_level`; with `stops` the first level with a hit decides. */
static enum gradcmp_status search_levels(struct search *search, examine_fn look, int last_level,
                                         bool stops, struct gradcmp_error *error) {
    enum gradcmp_status status = add_folder(&search->next, strdup(""), error);
    for (int level = 0; status == GRADCMP_OK && level <= last_level; level++) {
        struct folder_list now = search->next;
        search->next = (struct folder_list){0};
        for (size_t i = 0; status == GRADCMP_OK && i < now.count; i++) {
            status = look(search, now.names[i], error);
        }
        free_list(&now);
        if (stops && search->hits.count > 0) {
            break;
        }
    }
    return status;
}

/* The iteration that a folder's name ends with ("iter_0000005", "step-5", "global_step5"); -1:
 * none.
 */
static int64_t iteration_of(const char *name) {
    const char *slash = strrchr(name, '/');
    const char *last = slash == NULL ? name : slash + 1;
    size_t length = strlen(last), digits = 0;
    while (digits < length && last[length - digits - 1] >= '0' &&
           last[length - digits - 1] <= '9') {
        digits++;
    }
    return digits == 0 || digits > 18 ? -1 : strtoll(last + length - digits, NULL, 10);
}

/* Say which checkpoints there are. */
static enum gradcmp_status fail_with_list(const struct search *search, const char *before,
                                          struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, before);
    size_t count = search->hits.count;
    size_t shown = count > MAX_LISTED ? MAX_LISTED : count;
    for (size_t i = 0; i < shown; i++) {
        gcmp_text_addf(&text, "%s%s", i == 0 ? "" : ", ", search->hits.names[i]);
    }
    if (shown < count) {
        gcmp_text_addf(&text, ", ... (%zu in all)", count);
    }
    enum gradcmp_status status = text.failed
                                     ? GRADCMP_ERROR_MEMORY
                                     : fail_at(search, "", GRADCMP_ERROR_USAGE, text.bytes, error);
    gcmp_text_free(&text);
    return status;
}

/* Choose among the hits: the only one, or the one of the wanted iteration. */
static enum gradcmp_status choose(const struct search *search, const char **chosen,
                                  struct gradcmp_error *error) {
    const struct folder_list *hits = &search->hits;
    size_t fitting = 0;
    for (size_t i = 0; i < hits->count; i++) {
        bool self = hits->names[i][0] == '\0';
        const char *name = self ? gcmp_dir_path(search->dir) : hits->names[i];
        int64_t iteration = iteration_of(name);
        if (search->iteration < 0 || iteration == search->iteration || (self && iteration < 0)) {
            *chosen = hits->names[i];
            fitting++;
        }
    }
    if (fitting == 1) {
        return GRADCMP_OK;
    }
    if (hits->count == 1 && hits->names[0][0] == '\0') {
        return fail_at(search, "", GRADCMP_ERROR_USAGE,
                       "is the folder of another iteration than --iteration says", error);
    }
    if (fitting == 0) {
        return fail_with_list(search, "no checkpoint of that iteration; there are: ", error);
    }
    return fail_with_list(search,
                          search->iteration < 0
                              ? "several checkpoints (name one, or choose with --iteration): "
                              : "several checkpoints of that iteration (name one): ",
                          error);
}

/* Shards are written first and .metadata last: without it the save was cut off. */
static enum gradcmp_status check_finished(const struct search *search, const char *name,
                                          struct gradcmp_error *error) {
    struct folder folder;
    GCMP_TRY(look_into(search, name, &folder, error));
    bool unfinished = folder.shards && !folder.metadata;
    gcmp_dir_free_names(folder.names, folder.count);
    return unfinished ? fail_at(search, name, GRADCMP_ERROR_CORRUPT,
                                "save unfinished: .metadata is missing", error)
                      : GRADCMP_OK;
}

/* A link that was not followed, with a name that checkpoints have; NULL: none. */
static const char *find_likely_link(const struct search *search) {
    static const char *const likely[] = {"iter*", "*step*", "checkpoint*", "latest*", "epoch*"};
    for (size_t i = 0; i < search->links.count; i++) {
        const char *name = search->links.names[i], *slash = strrchr(name, '/');
        if (matches(slash == NULL ? name : slash + 1, likely, sizeof likely / sizeof *likely)) {
            return name;
        }
    }
    return NULL;
}

static enum gradcmp_status fail_without_hit(const struct search *search,
                                            struct gradcmp_error *error) {
    const char *link = find_likely_link(search);
    if (link != NULL) {
        GCMP_FAIL_AT(
            error, GRADCMP_ERROR_UNSUPPORTED, link, GRADCMP_NO_OFFSET,
            "a link that leads elsewhere, or is absolute, is not followed: give its folder");
    }
    return fail_at(search, "", GRADCMP_ERROR_UNSUPPORTED,
                   "not a checkpoint: no .metadata, metadata.json, mp_rank_*, *.safetensors or "
                   "zarr here or up to three folders down, no file of torch.save (*.pt, *.pth, "
                   "*.bin, *.ckpt) in the folder itself, and no tracker "
                   "(latest_checkpointed_iteration.txt, latest)",
                   error);
}

static enum gradcmp_status locate_in(struct search *search, char **found,
                                     struct gradcmp_error *error) {
    const char *chosen = "";
    GCMP_TRY(search_levels(search, examine, MAX_LEVEL, true, error));
    if (search->hits.count > 0) {
        GCMP_TRY(choose(search, &chosen, error));
        GCMP_TRY(check_finished(search, chosen, error));
    } else if (!search->weak) {
        return fail_without_hit(search, error);
    }
    *found = join(gcmp_dir_path(search->dir), chosen);
    if (*found == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Beside .metadata, common.pt is Megatron's. */
static bool is_beside_metadata(const char *path, const char *name) {
    char *beside = malloc(strlen(path) + sizeof ".metadata");
    if (beside == NULL) {
        return false;
    }
    size_t folder = strlen(path) - strlen(name);
    memcpy(beside, path, folder);
    memcpy(beside + folder, ".metadata", sizeof ".metadata");
    bool is_there = access(beside, F_OK) == 0;
    free(beside);
    return is_there;
}

/* A file that was named in place of its folder, of which it is one part. */
static enum gradcmp_status refuse_part(const struct search *search, struct gradcmp_error *error) {
    const char *path = gcmp_dir_path(search->dir), *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    bool is_part = matches(name, parts, sizeof parts / sizeof *parts) ||
                   (strcmp(name, "common.pt") == 0 && is_beside_metadata(path, name));
    return is_part ? fail_at(search, "", GRADCMP_ERROR_UNSUPPORTED,
                             "one file of a checkpoint: name the folder that holds them all", error)
                   : GRADCMP_OK;
}

enum gradcmp_status gcmp_locate(const char *path, int64_t iteration, char **found,
                                struct gradcmp_error *error) {
    *found = NULL;
    if (path[0] == '\0') {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "an empty path where a checkpoint is to be named");
    }
    struct search search = {.iteration = iteration};
    GCMP_TRY(gcmp_dir_open(path, &search.dir, error));
    enum gradcmp_status status = GRADCMP_OK;
    if (gcmp_dir_is_file(search.dir, NULL)) {
        status = refuse_part(&search, error);
        if (status != GRADCMP_OK) {
            gcmp_dir_close(search.dir);
            return status;
        }
    }
    /* A folder with .metadata may hold a million shards: no need to list them. */
    if (gcmp_dir_is_file(search.dir, NULL) ||
        (iteration < 0 && gcmp_dir_has_file(search.dir, ".metadata"))) {
        *found = strdup(gcmp_dir_path(search.dir));
        if (*found == NULL) {
            status = gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        }
    } else {
        status = locate_in(&search, found, error);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_dir_check(search.dir, error);
    }
    if (status != GRADCMP_OK) {
        free(*found);
        *found = NULL;
    }
    free_list(&search.hits);
    free_list(&search.links);
    free_list(&search.next);
    gcmp_dir_close(search.dir);
    return status;
}

/* --- all runs --- */

static bool is_weak(const char *name) {
    return matches(name, weak_marks, sizeof weak_marks / sizeof *weak_marks);
}

/* Whether the files of a folder are parts of one checkpoint, by their names. */
static bool is_together(const struct folder *folder) {
    for (size_t i = 0; i < folder->count; i++) {
        if (is_weak(folder->names[i]) &&
            matches(folder->names[i], together, sizeof together / sizeof *together)) {
            return true;
        }
    }
    return false;
}

/* Add the files of a folder that may be one checkpoint each, or the folder where they are one. */
static enum gradcmp_status add_files(struct search *search, const char *name,
                                     const struct folder *folder, struct gradcmp_error *error) {
    if (is_together(folder)) {
        return add_folder(&search->hits, strdup(name), error);
    }
    for (size_t i = 0; i < folder->count; i++) {
        const char *entry = folder->names[i];
        if (!is_weak(entry)) {
            continue;
        }
        char *file = join(name, entry);
        if (file != NULL && !gcmp_dir_has_file(search->dir, file)) {
            free(file);
            continue;
        }
        GCMP_TRY(add_folder(&search->hits, file, error));
    }
    return GRADCMP_OK;
}

/* A folder is a run, or holds files that are; below it there may be others, unless what marks it as
 * a run owns what is below. */
static enum gradcmp_status examine_run(struct search *search, const char *name,
                                       struct gradcmp_error *error) {
    struct folder folder;
    if (is_inside_last_hit(search, name)) {
        return GRADCMP_OK;
    }
    if (++search->visited > MAX_FOLDERS) {
        return fail_at(search, "", GRADCMP_ERROR_LIMIT, "more than 4096 folders to search", error);
    }
    GCMP_TRY(look_into(search, name, &folder, error));
    enum gradcmp_status status;
    bool tracked = search->iteration < 0 && (folder.megatron_tracker || folder.deepspeed_tracker);
    if (folder.array && name[0] != '\0') {
        status = add_array_parent(search, name, error);
    } else if (folder.marked || tracked) {
        search->array = false;
        status = add_folder(&search->hits, strdup(name), error);
    } else {
        status = add_files(search, name, &folder, error);
    }
    bool more = !folder.fixed && !tracked;
    if (status == GRADCMP_OK && more) {
        status = queue_children(search, name, &folder, error);
    }
    gcmp_dir_free_names(folder.names, folder.count);
    return status;
}

static int order_names(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Turn the hits into paths, leaving out those of other iterations. */
static enum gradcmp_status take_runs(const struct search *search, struct folder_list *runs,
                                     struct gradcmp_error *error) {
    for (size_t i = 0; i < search->hits.count; i++) {
        const char *name = search->hits.names[i];
        if (search->iteration >= 0 && iteration_of(name) != search->iteration) {
            continue;
        }
        GCMP_TRY(add_folder(runs, join(gcmp_dir_path(search->dir), name), error));
    }
    if (runs->count > 0) {
        qsort(runs->names, runs->count, sizeof *runs->names, order_names);
    }
    return GRADCMP_OK;
}

void gcmp_runs_free(struct gcmp_runs *runs) {
    gcmp_dir_free_names(runs->paths, runs->count);
    gcmp_dir_free_names(runs->links, runs->link_count);
}

enum gradcmp_status gcmp_locate_runs(const char *folder, int64_t iteration, struct gcmp_runs *runs,
                                     struct gradcmp_error *error) {
    *runs = (struct gcmp_runs){0};
    struct search search = {.iteration = iteration};
    struct folder_list found = {0};
    GCMP_TRY(gcmp_dir_open(folder, &search.dir, error));
    enum gradcmp_status status =
        gcmp_dir_is_file(search.dir, NULL)
            ? add_folder(&search.hits, strdup(""), error)
            : search_levels(&search, examine_run, MAX_RUN_LEVEL, false, error);
    if (status == GRADCMP_OK) {
        status = gcmp_dir_check(search.dir, error);
    }
    if (status == GRADCMP_OK) {
        status = take_runs(&search, &found, error);
    }
    if (status == GRADCMP_OK) {
        *runs =
            (struct gcmp_runs){found.names, found.count, search.links.names, search.links.count};
    } else {
        free_list(&found);
        free_list(&search.links);
    }
    free_list(&search.hits);
    free_list(&search.next);
    gcmp_dir_close(search.dir);
    return status;
}
