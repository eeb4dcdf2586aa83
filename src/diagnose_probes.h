/* Probes: the jobs that the search for causes gives to the engine, many in one run. */
#ifndef GCMP_DIAGNOSE_PROBES_H
#define GCMP_DIAGNOSE_PROBES_H

#include "comparison.h"

/* What one probe reads. */
struct gcmp_probe {
    struct gcmp_side a, b;
    bool has_b;
    int scale_log2; /* as a job's */
    double *values; /* where a's elements go, times 2^scale_log2; or NULL */
    uint64_t values_left;
};

struct gcmp_probes {
    struct gcmp_probe *items;
    struct gradcmp_tally *tallies; /* filled by gcmp_probes_run */
    size_t count, capacity;
};

enum { GCMP_NO_PROBE = -1 };

/* Add a probe of `a`'s elements against `b`'s, which has as many; *index is its number. Errors:
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_compare(struct gcmp_probes *probes,
                                                         struct gcmp_side a, struct gcmp_side b,
                                                         int scale_log2, ptrdiff_t *index,
                                                         struct gradcmp_error *error);
/* Add a probe that stores the elements of `a`, as float64, in `values`. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_read(struct gcmp_probes *probes,
                                                      struct gcmp_side a, int scale_log2,
                                                      double *values, struct gradcmp_error *error);

/* Bytes of files that are kept in memory during the search: half of what buffers may take, none
 * where that would leave the engine too little. */
uint64_t gcmp_probes_kept_bytes(const struct gradcmp_options *options);

/* Elements that lie together in the middle of a parameter, about `elems` of them (whole rows along
 * all axes but the first two). Fails as unshard/reslab does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_spot(const struct gradcmp_parameter *from,
                                                      uint64_t elems, struct gcmp_arena *arena,
                                                      struct gradcmp_parameter **out,
                                                      struct gradcmp_error *error);

/* The first `rows` rows of a parameter, at most all. Fails as unshard/reslab does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_head(const struct gradcmp_parameter *from,
                                                      uint64_t rows, struct gcmp_arena *arena,
                                                      struct gradcmp_parameter **out,
                                                      struct gradcmp_error *error);

/* Run jobs of one's own as probes are run. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_engine(struct gcmp_job *jobs, size_t count,
                                                        struct gcmp_comparison *comparison,
                                                        struct gradcmp_error *error);

/* Run all probes. A candidate that cannot be read any more becomes an error of its pair. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_probes_run(struct gcmp_probes *probes,
                                                     struct gcmp_comparison *comparison,
                                                     struct gradcmp_error *error);
void gcmp_probes_free(struct gcmp_probes *probes);

#endif
