/* What gcmp_locate and gcmp_locate_runs share: a search for checkpoints below a folder, level by
 * level, by the names in each folder. */
#ifndef GCMP_BASE_SEARCH_H
#define GCMP_BASE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dir.h"
#include "base/name_list.h"

/* Limits: folders looked into, names in one folder. */
enum { GCMP_SEARCH_MAX_FOLDERS = 4096, GCMP_SEARCH_MAX_NAMES = 1 << 20 };

/* Files that name one folder beside them. */
extern const char gcmp_megatron_tracker[];  /* latest_checkpointed_iteration.txt */
extern const char gcmp_deepspeed_tracker[]; /* latest */

/* Relative names of folders; "" is the given one. */
struct gcmp_search {
    struct gcmp_dir *dir;
    int64_t iteration; /* wanted; -1: any */
    struct gcmp_name_list hits;
    struct gcmp_name_list next;   /* folders of the next level */
    struct gcmp_name_list links;  /* to folders, or files that may be checkpoints, elsewhere */
    struct gcmp_name_list closed; /* folders that the system does not let us look into */
    size_t visited;
    bool weak;      /* the given folder holds files that may be checkpoints */
    bool array;     /* the last hit was found by an array of zarr in it */
    bool only_real; /* no folders that only links lead to are queued */
};

/* What the names in a folder say. */
struct gcmp_search_folder {
    char **names;
    size_t count;
    bool marked, weak;
    bool fixed;            /* marked by more than safetensors, which may lie anywhere */
    bool array;            /* of zarr */
    bool shards, metadata; /* *.distcp; .metadata or __<rank>.metadata */
    bool megatron_tracker, deepspeed_tracker;
    bool wgrads; /* gradient dumps */
};

/* Join two names; malloced, NULL without memory. Either may be "". */
char *gcmp_join_names(const char *folder, const char *name);

/* True where a name matches one of the patterns. */
bool gcmp_name_matches(const char *name, const char *const *patterns, size_t count);

/* True for the name of a file that may be one checkpoint, where nothing better is found. */
bool gcmp_is_weak_mark(const char *name);

/* The iteration that a name ends with ("iter_0000005", "step-5", "global_step5", "step5.pt",
 * "step=5-v1.ckpt"); -1: none, or the number is of a rank or a part ("model_rank5.pt"). *is_sure:
 * the number can be nothing else, by the word before it or as the whole name. */
int64_t gcmp_iteration_of(const char *name, bool *is_sure);

/* The same where the number counts epochs, by the word before it ("epoch_3"); -1: it does not. */
int64_t gcmp_epoch_of(const char *name);

/* Fail at a folder of the search. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_fail(const struct gcmp_search *search,
                                                      const char *folder, enum gradcmp_status code,
                                                      const char *message,
                                                      struct gradcmp_error *error);

/* List a folder; its names are freed by the caller (gcmp_dir_free_names). Errors: IO, LIMIT,
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_look(const struct gcmp_search *search,
                                                      const char *name,
                                                      struct gcmp_search_folder *folder,
                                                      struct gradcmp_error *error);

/* Queue the folders in `name` for the next level, and note what cannot be followed. Errors: MEMORY.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_queue(struct gcmp_search *search, const char *name,
                                                       const struct gcmp_search_folder *folder,
                                                       struct gradcmp_error *error);

/* Add the folder around an array of zarr to the hits; those side by side are one checkpoint, of
 * which the folder around them need not say so. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_search_add_array(struct gcmp_search *search, const char *array, struct gradcmp_error *error);
/* True for the other folders of such a checkpoint. */
bool gcmp_search_is_inside(const struct gcmp_search *search, const char *name);

/* Free what the search holds, and close its folder. */
void gcmp_search_end(struct gcmp_search *search);

#endif
