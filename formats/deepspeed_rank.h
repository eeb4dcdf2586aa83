/* One rank's optimizer file of ZeRO: flat tensors of groups, and what the file says of the
 * parameters in them. */
#ifndef GCMP_FORMATS_DEEPSPEED_RANK_H
#define GCMP_FORMATS_DEEPSPEED_RANK_H

#include "formats/torch_file.h"
#include "gradcmp/sys/catalogue.h"

/* A rank's part of one state of one group (stage 3: of a sub-group): contiguous elements. */
struct gcmp_ds_flat {
    const char *word; /* "exp_avg", ..., "fp32_param" */
    uint32_t group, file;
    uint64_t elem_count;
    struct gradcmp_extent view;
};

/* Which part of a parameter a rank says that it holds (stages 1 and 2). */
struct gcmp_ds_slice {
    const char *name;
    uint32_t group;
    uint64_t start, elem_count; /* in the rank's part of the group */
};

struct gcmp_ds_rank {
    uint32_t file, dp;
    bool is_stage3;
    struct gcmp_ds_flat *flats; /* sorted by word, then group */
    size_t flat_count, flat_capacity;
    bool has_slices;
    struct gcmp_ds_slice *slices; /* as stored: by group, in the order of its parameters */
    size_t slice_count, slice_capacity;
    uint64_t *partition_counts; /* ranks that share each group; of stage 3, one for all */
    size_t partition_count;
    uint64_t *paddings;   /* behind each parameter, over all groups one after another */
    size_t padding_count; /* 0: none are stated, and there are none */
    uint64_t most_ranks;  /* largest of partition_counts; 0: not stated */
    double step;          /* the latest of a group; NaN: not stated */
};

/* Read a rank's file; names live in the catalogue's arena, arrays are malloced: free in any case.
 * Settings of the optimizer go into the catalogue. Errors: CORRUPT for what is not of its form;
 * UNSUPPORTED for states that were swapped out and for expert partitions of stage 3; LIMIT; those
 * of gcmp_torch_open. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ds_read_rank(struct gradcmp_catalogue *catalogue,
                                                       const char *name, uint32_t dp,
                                                       struct gcmp_ds_rank *out,
                                                       struct gradcmp_error *error);
void gcmp_ds_free_rank(struct gcmp_ds_rank *rank);

/* The flats of a word: *first is an index into flats, the count of those that follow is returned.
 */
size_t gcmp_ds_find_word(const struct gcmp_ds_rank *rank, const char *word, size_t *first);

#endif
