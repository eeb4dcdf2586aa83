/* The files of a DeepSpeed checkpoint, by their names. */
#ifndef GCMP_FORMATS_DEEPSPEED_FILES_H
#define GCMP_FORMATS_DEEPSPEED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dir.h"

enum gcmp_ds_kind {
    GCMP_DS_MODEL,     /* mp_rank_<mp>_model_states.pt, and one a rank of ZeRO stage 3 */
    GCMP_DS_OPTIMIZER, /* a rank's part of the optimizer, ZeRO stages 1 to 3 */
    GCMP_DS_EXPP,      /* expp_rank_<e>_...: the optimizer beside experts, without ZeRO */
    GCMP_DS_LAYER, /* layer_<layer>-[model_<mp>-]model_states.pt: weights of a pipeline's layer */
    GCMP_DS_EXPERT /* layer_<l>_expert_<e>_...: weights of one expert */
};

struct gcmp_ds_file {
    const char *name;
    enum gcmp_ds_kind kind;
    uint32_t mp, dp;        /* model-parallel and data-parallel rank */
    uint32_t layer, expert; /* LAYER, EXPERT, EXPP */
    bool is_partitioned;    /* MODEL: of ZeRO stage 3, without weights */
};

struct gcmp_ds_files {
    char **names; /* owned */
    size_t name_count;
    struct gcmp_ds_file *items; /* sorted by kind, mp, layer, expert, dp */
    size_t count;
};

/* List the files that DeepSpeed names; others are left out. Errors: CORRUPT where two files are the
 * same rank's (with and without "bf16_"); IO; LIMIT; MEMORY. Free in any case. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_ds_list_files(struct gcmp_dir *dir, struct gcmp_ds_files *out, struct gradcmp_error *error);
void gcmp_ds_free_files(struct gcmp_ds_files *files);

/* The files of one kind and model-parallel rank: *first is an index into items, and the count of
 * those that follow is returned. */
size_t gcmp_ds_find(const struct gcmp_ds_files *files, enum gcmp_ds_kind kind, uint32_t mp,
                    size_t *first);

/* True where a folder has files of DeepSpeed's; never fails. */
bool gcmp_ds_probe_files(struct gcmp_dir *dir);

#endif
