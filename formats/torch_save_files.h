/* Which files of a folder are parts of one torch.save checkpoint. */
#ifndef GCMP_FORMATS_TORCH_SAVE_FILES_H
#define GCMP_FORMATS_TORCH_SAVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dir.h"

/* A file by its name. */
struct gcmp_pt_file {
    const char *name;
    size_t stem_bytes; /* of the name in front of "rank_<r>.<suffix>"; without a rank all of it */
    int32_t rank;      /* -1: none */
    bool is_weights;   /* a safetensors file beside an optimizer */
};

struct gcmp_pt_files {
    char **names; /* owned, with `count` of the folder */
    size_t name_count;
    struct gcmp_pt_file *items; /* sorted by rank, then as names are read by people */
    size_t count;
    size_t skipped; /* files with a suffix of torch that are of another kind */
    const char *first_skipped;
};

/* List the parts: files whose names end as torch.save's do (.pt, .pth, .bin, .ckpt) and that are of
 * its form, and safetensors files with weights; or the single file that `dir` is. Errors: CORRUPT
 * for a rank or a part "k of n" that is missing and for a file of that name (but .bin) with other
 * content; IO; LIMIT; MEMORY. Free in any case. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_pt_list_files(struct gcmp_dir *dir, struct gcmp_pt_files *out, struct gradcmp_error *error);
void gcmp_pt_free_files(struct gcmp_pt_files *files);

/* How strongly the files speak for a torch.save checkpoint: 0 not at all, 1, 2 (an optimizer is
 * among them). Never fails; reads little. */
int gcmp_pt_probe_files(struct gcmp_dir *dir);

#endif
