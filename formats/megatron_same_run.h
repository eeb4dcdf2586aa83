/* Whether the files of Megatron's ranks are of one run. */
#ifndef GCMP_FORMATS_MEGATRON_SAME_RUN_H
#define GCMP_FORMATS_MEGATRON_SAME_RUN_H

#include "base/map.h"
#include "formats/rank_files.h"
#include "formats/rank_tensors.h"

enum { GCMP_RUN_SIZES = 16 };

/* What a rank's file says of the whole run: what all ranks share. */
struct gcmp_run_facts {
    int64_t sizes[GCMP_RUN_SIZES]; /* in the order of their names; -1: not stated */
    int64_t seed, rank;            /* likewise */
    double step, betas[2];         /* of the optimizer; NaN: not stated */
    bool are_mixed;                /* groups differ in their betas */
    bool has_optimizer;            /* converters, which write all files as rank 0, save none */
};

/* The first rank's file, and the ranks that wrote all of them. */
struct gcmp_same_run {
    bool has_first;
    struct gcmp_run_facts first;
    const char *first_name;
    struct gcmp_map writers; /* rank -> the file's index; gcmp_map_free after use */
    const struct gcmp_rank_files *files;
};

/* Look at one more rank's file. Other parallel sizes, sizes of the model or steps than the first
 * rank's are CORRUPT: they are of another run. Another seed, other betas, a rank that wrote two
 * files, or that is none of the folder's, contradict. Other errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_same_run_check(struct gcmp_same_run *run,
                                                         const struct gcmp_rank_reader *reader,
                                                         const struct gcmp_rank_file *file,
                                                         struct gradcmp_error *error);

#endif
