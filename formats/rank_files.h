/* Files or folders of model-parallel ranks, as Megatron names them: mp_rank_TT[_PPP][_EEE]. TT is
 * the tensor-parallel rank; PPP is there where the pipeline has several stages, EEE where experts
 * are spread over ranks. Ranks whose expert data-parallel rank is 0 write
 * (megatron/training/checkpointing.py), so with TP ranks, ETP expert-tensor-parallel and EP
 * expert-parallel ranks a stage has the files of (r mod TP, r / ETP mod EP) for r < ETP * EP. */
#ifndef GCMP_FORMATS_RANK_FILES_H
#define GCMP_FORMATS_RANK_FILES_H

#include <stdbool.h>

#include "base/dir.h"
#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

struct gcmp_rank_file {
    const char *name; /* of the file or folder */
    size_t listed;    /* its index before gcmp_rank_files_place sorted the list anew */
    uint32_t numbers[3];
    uint32_t tp, pp, ep, etp; /* ranks; set by gcmp_rank_files_place */
};

struct gcmp_rank_files {
    struct gcmp_rank_file *list; /* sorted by numbers; by pp, tp, ep once placed */
    size_t count;
    unsigned number_count;    /* numbers in each name, 1 to 3 */
    uint32_t tp, pp, ep, etp; /* sizes; set by gcmp_rank_files_place */
    char **names;             /* of the folder */
    size_t name_count;
};

/* What the middle number of two numbers counts; with one or three it is not asked. */
enum gcmp_rank_second { GCMP_SECOND_IS_STAGE, GCMP_SECOND_IS_EXPERTS };

/* Tell whether a name is one of a rank, with `suffix` (".pth", or "") behind the numbers. */
bool gcmp_rank_name_read(const char *name, const char *suffix, uint32_t numbers[3],
                         unsigned *number_count);

/* List the ranks in the folder. Names with different counts of numbers are CORRUPT: they belong to
 * two saves. None is not an error. After use, also after failure: gcmp_rank_files_free. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_files_list(struct gcmp_dir *dir, const char *suffix,
                                                          struct gcmp_rank_files *files,
                                                          struct gradcmp_error *error);
void gcmp_rank_files_free(struct gcmp_rank_files *files);

/* Give each file its ranks, and check that the set is whole: a rank's file that is missing, or one
 * too many, is CORRUPT and named. `stated` are the sizes that the run states, 0 where it does not;
 * those follow from the names. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_files_place(struct gcmp_rank_files *files,
                                                           enum gcmp_rank_second second,
                                                           const struct gradcmp_parallel *stated,
                                                           const struct gcmp_dir *dir,
                                                           struct gradcmp_error *error);

/* Read the rank that a name ends with in front of its suffix, at `end`: "optimizer_rank1",
 * "rank-1", "rank_1". *stem_bytes: of the name in front of "rank". */
bool gcmp_rank_name_ends(const char *name, const char *end, uint32_t *rank, size_t *stem_bytes);

/* Files whose names say another rank than what is in them. */
struct gcmp_rank_swaps {
    size_t count;
    const char *first; /* one of them, and the rank that is in it */
    uint64_t first_rank;
};

/* Tell them as a contradiction, where there are any. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_tell_swaps(struct gradcmp_catalogue *catalogue,
                                                          const struct gcmp_rank_swaps *swaps,
                                                          struct gradcmp_error *error);

/* The iteration that a folder's name states, as "iter_0000005"; -1 where it states none. */
int64_t gcmp_rank_files_iteration(const char *path);

#endif
