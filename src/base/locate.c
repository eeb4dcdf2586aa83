/* Finds the checkpoint below a path by the files that mark one. */
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
#include "base/search.h"
#include "base/text.h"

/* Limits: levels below the given folder, bytes of a tracker file, names in a message. */
enum { MAX_LEVEL = 3, MAX_TRACKER_BYTES = 256, MAX_LISTED = 8 };

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
static enum gradcmp_status fail_tracker(const struct gcmp_search *search, const char *folder,
                                        const char *tracker, const char *name,
                                        struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    char **names = NULL;
    size_t count = 0, listed = 0;
    GCMP_TRY(gcmp_dir_list(search->dir, folder, GCMP_SEARCH_MAX_NAMES, &names, &count, error));
    gcmp_text_addf(&text, "names \"%.200s\", which is not a folder here", name);
    for (size_t i = 0; i < count && listed < MAX_LISTED; i++) {
        char *child = gcmp_join_names(folder, names[i]);
        if (child != NULL && names[i][0] != '.' && gcmp_dir_has_dir(search->dir, child)) {
            gcmp_text_addf(&text, "%s%s", listed++ == 0 ? "; choose with --iteration among " : ", ",
                           names[i]);
        }
        free(child);
    }
    gcmp_dir_free_names(names, count);
    enum gradcmp_status status =
        text.failed ? GRADCMP_ERROR_MEMORY
                    : gcmp_search_fail(search, tracker, GRADCMP_ERROR_CORRUPT, text.bytes, error);
    gcmp_text_free(&text);
    return status;
}

/* Check that what a tracker names is a folder below the given path. */
static enum gradcmp_status check_target(const struct gcmp_search *search, const char *folder,
                                        const char *tracker, const char *name,
                                        struct gradcmp_error *error) {
    char *target = gcmp_join_names(folder, name);
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
        return gcmp_search_fail(search, tracker, gcmp_dir_status(code), gcmp_dir_reason(code),
                                error);
    }
    if (kind == GCMP_DIR_OTHER) {
        return gcmp_search_fail(search, tracker, GRADCMP_ERROR_CORRUPT,
                                "names a link that leads elsewhere: give that path itself", error);
    }
    return fail_tracker(search, folder, tracker, name, error);
}

/* Turn the bytes of a tracker into the name of a folder; malloced, NULL where it names none. */
static char *folder_of_tracker(char *bytes, size_t count, bool megatron) {
    return is_token(bytes, count) ? folder_of_token(bytes, megatron) : NULL;
}

/* Read the target of the link at `path`, without slashes at its end; "" where it is none. */
static void read_target(const struct gcmp_search *search, const char *path, char *target,
                        size_t capacity) {
    char *link = gcmp_join_names(gcmp_dir_path(search->dir), path);
    ssize_t length = link == NULL ? -1 : readlink(link, target, capacity - 1);
    free(link);
    while (length > 0 && target[length - 1] == '/') {
        length--;
    }
    target[length < 0 ? 0 : length] = '\0';
}

/* Add the folder that the tracker at `path`, a link, leads to: where that is beside it under its
 * own name, else under the link's. */
static enum gradcmp_status add_target(struct gcmp_search *search, const char *folder,
                                      const char *path, char *target, struct gradcmp_error *error) {
    char *beside = is_token(target, strlen(target)) ? gcmp_join_names(folder, target) : NULL;
    if (beside != NULL && gcmp_dir_has_dir(search->dir, beside)) {
        return gcmp_name_list_add(&search->hits, beside, error);
    }
    free(beside);
    return gcmp_name_list_add(&search->hits, strdup(path), error);
}

/* Add what a tracker leads to that is a link and no file; *is_link is false for a file. */
static enum gradcmp_status follow_link(struct gcmp_search *search, const char *folder,
                                       const char *path, bool *is_link,
                                       struct gradcmp_error *error) {
    char target[PATH_MAX];
    enum gcmp_dir_kind kind = gcmp_dir_kind(search->dir, path);
    bool leads_out = kind == GCMP_DIR_OTHER && errno == EXDEV;
    read_target(search, path, target, sizeof target);
    *is_link = kind == GCMP_DIR_FOLDER;
    if (leads_out) {
        return gcmp_search_fail(
            search, path, GRADCMP_ERROR_CORRUPT,
            "an absolute link, or one that leads elsewhere: give its folder itself", error);
    }
    if (kind == GCMP_DIR_ABSENT && target[0] != '\0') {
        return fail_tracker(search, folder, path, target, error);
    }
    return *is_link ? add_target(search, folder, path, target, error) : GRADCMP_OK;
}

/* Read the tracker `tracker` in `folder` and add the folder it names to the hits; people also make
 * it a link to the folder. */
static enum gradcmp_status follow_tracker(struct gcmp_search *search, const char *folder,
                                          const char *tracker, struct gradcmp_error *error) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    char *path = gcmp_join_names(folder, tracker), *name = NULL;
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
        status = gcmp_search_fail(search, path, GRADCMP_ERROR_CORRUPT,
                                  "too long for a tracker file", error);
    }
    GCMP_TRY_OUT(status);
    errno = 0;
    name = folder_of_tracker((char *)bytes, count, tracker == gcmp_megatron_tracker);
    if (name == NULL && errno == ENOMEM) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    if (name == NULL) {
        status = gcmp_search_fail(search, path, GRADCMP_ERROR_CORRUPT,
                                  "does not name one folder beside it", error);
        goto out;
    }
    GCMP_TRY_OUT(check_target(search, folder, path, name, error));
    status = gcmp_name_list_add(&search->hits, gcmp_join_names(folder, name), error);
out:
    free(name);
    free(bytes);
    free(path);
    return status;
}

/* Weights that were exported beside a tracker of DeepSpeed (transformers does so) are less than the
 * checkpoint that the tracker names, where it is still there. */
static enum gradcmp_status add_marked(struct gcmp_search *search, const char *name,
                                      const struct gcmp_search_folder *folder,
                                      struct gradcmp_error *error) {
    struct gradcmp_error ignored = {0};
    size_t before = search->hits.count;
    if (!folder->fixed && folder->deepspeed_tracker) {
        enum gradcmp_status status = follow_tracker(search, name, gcmp_deepspeed_tracker, &ignored);
        if (status == GRADCMP_ERROR_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        if (search->hits.count > before) {
            return GRADCMP_OK;
        }
    }
    return gcmp_name_list_add(&search->hits, strdup(name), error);
}

/* Look at one folder: it is a checkpoint, or a tracker in it names one, or one may be below it. */
static enum gradcmp_status examine(struct gcmp_search *search, const char *name,
                                   struct gradcmp_error *error) {
    struct gcmp_search_folder folder;
    if (gcmp_search_is_inside(search, name)) {
        return GRADCMP_OK;
    }
    if (++search->visited > GCMP_SEARCH_MAX_FOLDERS) {
        return gcmp_search_fail(search, "", GRADCMP_ERROR_LIMIT,
                                "too many folders to search: name the checkpoint itself", error);
    }
    GCMP_TRY(gcmp_search_look(search, name, &folder, error));
    enum gradcmp_status status;
    bool ask_tracker = search->iteration < 0;
    if (folder.array && name[0] != '\0') {
        status = gcmp_search_add_array(search, name, error);
    } else if (folder.marked) {
        status = add_marked(search, name, &folder, error);
    } else if (ask_tracker && folder.megatron_tracker) {
        status = follow_tracker(search, name, gcmp_megatron_tracker, error);
    } else if (ask_tracker && folder.deepspeed_tracker) {
        status = follow_tracker(search, name, gcmp_deepspeed_tracker, error);
    } else {
        search->weak = search->weak || (name[0] == '\0' && folder.weak);
        status = gcmp_search_queue(search, name, &folder, error);
    }
    gcmp_dir_free_names(folder.names, folder.count);
    return status;
}

/* Search level by level; the first one with a hit decides. */
static enum gradcmp_status search_levels(struct gcmp_search *search, struct gradcmp_error *error) {
    enum gradcmp_status status = gcmp_name_list_add(&search->next, strdup(""), error);
    for (int level = 0; status == GRADCMP_OK && level <= MAX_LEVEL && search->hits.count == 0;
         level++) {
        struct gcmp_name_list now = search->next;
        search->next = (struct gcmp_name_list){0};
        for (size_t i = 0; status == GRADCMP_OK && i < now.count; i++) {
            status = examine(search, now.names[i], error);
        }
        gcmp_name_list_free(&now);
    }
    return status;
}

/* Say which checkpoints there are. */
static enum gradcmp_status fail_with_list(const struct gcmp_search *search, const char *before,
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
    enum gradcmp_status status =
        text.failed ? GRADCMP_ERROR_MEMORY
                    : gcmp_search_fail(search, "", GRADCMP_ERROR_USAGE, text.bytes, error);
    gcmp_text_free(&text);
    return status;
}

/* Choose among the hits: the only one, or the one of the wanted iteration. */
static enum gradcmp_status choose(const struct gcmp_search *search, const char **chosen,
                                  struct gradcmp_error *error) {
    const struct gcmp_name_list *hits = &search->hits;
    size_t fitting = 0;
    for (size_t i = 0; i < hits->count; i++) {
        bool self = hits->names[i][0] == '\0';
        const char *name = self ? gcmp_dir_path(search->dir) : hits->names[i];
        bool is_sure;
        int64_t iteration = gcmp_iteration_of(name, &is_sure);
        if (search->iteration < 0 || iteration == search->iteration || (self && !is_sure)) {
            *chosen = hits->names[i];
            fitting++;
        }
    }
    if (fitting == 1) {
        return GRADCMP_OK;
    }
    if (hits->count == 1 && hits->names[0][0] == '\0') {
        return gcmp_search_fail(search, "", GRADCMP_ERROR_USAGE,
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
static enum gradcmp_status check_finished(const struct gcmp_search *search, const char *name,
                                          struct gradcmp_error *error) {
    struct gcmp_search_folder folder;
    GCMP_TRY(gcmp_search_look(search, name, &folder, error));
    bool unfinished = folder.shards && !folder.metadata;
    gcmp_dir_free_names(folder.names, folder.count);
    return unfinished ? gcmp_search_fail(search, name, GRADCMP_ERROR_CORRUPT,
                                         "save unfinished: .metadata is missing", error)
                      : GRADCMP_OK;
}

/* A link that was not followed, with a name that checkpoints have; NULL: none. */
static const char *find_likely_link(const struct gcmp_search *search) {
    static const char *const likely[] = {"iter*", "*step*", "checkpoint*", "latest*", "epoch*"};
    for (size_t i = 0; i < search->links.count; i++) {
        const char *name = search->links.names[i], *slash = strrchr(name, '/');
        if (gcmp_name_matches(slash == NULL ? name : slash + 1, likely,
                              sizeof likely / sizeof *likely)) {
            return name;
        }
    }
    return NULL;
}

static enum gradcmp_status fail_without_hit(const struct gcmp_search *search,
                                            struct gradcmp_error *error) {
    const char *link = find_likely_link(search);
    if (link != NULL) {
        GCMP_FAIL_AT(
            error, GRADCMP_ERROR_UNSUPPORTED, link, GRADCMP_NO_OFFSET,
            "a link that leads elsewhere, or is absolute, is not followed: give its folder");
    }
    return gcmp_search_fail(
        search, "", GRADCMP_ERROR_UNSUPPORTED,
        "not a checkpoint: no .metadata, metadata.json, mp_rank_*, *.safetensors or "
        "zarr here or up to three folders down, no file of torch.save (*.pt, *.pth, "
        "*.bin, *.ckpt) in the folder itself, and no tracker "
        "(latest_checkpointed_iteration.txt, latest)",
        error);
}

static enum gradcmp_status locate_in(struct gcmp_search *search, char **found,
                                     struct gradcmp_error *error) {
    const char *chosen = "";
    GCMP_TRY(search_levels(search, error));
    if (search->hits.count > 0) {
        GCMP_TRY(choose(search, &chosen, error));
        GCMP_TRY(check_finished(search, chosen, error));
    } else if (!search->weak) {
        return fail_without_hit(search, error);
    }
    *found = gcmp_join_names(gcmp_dir_path(search->dir), chosen);
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
static enum gradcmp_status refuse_part(const struct gcmp_search *search,
                                       struct gradcmp_error *error) {
    const char *path = gcmp_dir_path(search->dir), *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    bool is_part = gcmp_name_matches(name, parts, sizeof parts / sizeof *parts) ||
                   (strcmp(name, "common.pt") == 0 && is_beside_metadata(path, name));
    return is_part
               ? gcmp_search_fail(search, "", GRADCMP_ERROR_UNSUPPORTED,
                                  "one file of a checkpoint: name the folder that holds them all",
                                  error)
               : GRADCMP_OK;
}

enum gradcmp_status gcmp_locate(const char *path, int64_t iteration, char **found,
                                struct gradcmp_error *error) {
    *found = NULL;
    if (path[0] == '\0') {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "an empty path where a checkpoint is to be named");
    }
    struct gcmp_search search = {.iteration = iteration};
    GCMP_TRY(gcmp_dir_open(path, &search.dir, error));
    enum gradcmp_status status = GRADCMP_OK;
    if (gcmp_dir_is_file(search.dir, NULL)) {
        status = refuse_part(&search, error);
        if (status != GRADCMP_OK) {
            gcmp_search_end(&search);
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
    gcmp_search_end(&search);
    return status;
}
