/* What `gradcmp ls` shows of a checkpoint. */
#ifndef GCMP_REPORT_LS_H
#define GCMP_REPORT_LS_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* One unsharded tensor. */
struct gcmp_ls_tensor {
    const char *name;  /* canonical */
    const char *state; /* "exp_avg", ... */
    int64_t layer;     /* l */
    const uint64_t *shape;
    uint8_t ndim;
    uint8_t dtype; /* enum gradcmp_dtype, as stored */
    size_t pieces; /* slabs, copies included */
    size_t copies; /* 1 where there are no replicas */

    bool has_stats;
    double norm;     /* over all elements */
    double max_abs;  /* NaN where no element is finite */
    char sha256[65]; /* 64 hexadecimal digits, or "" */
};

/* Everything is borrowed from the caller. */
struct gcmp_ls {
    const char *path;
    const struct gradcmp_catalogue *catalogue; /* format, writer, parallel, settings, notes */
    uint64_t layers;                           /* L; 0: not known */
    const char *const *states;
    size_t state_count;
    const struct gcmp_ls_tensor *tensors; /* sorted by name, then state */
    size_t tensor_count;
    const char *left_out; /* one more note: what is not listed; NULL: nothing */
};

/* Write the list for people: a head, then one line a tensor with its name last, so that names of
 * any length stay whole. `options` decides colours and detail. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ls_write_text(const struct gcmp_ls *ls,
                                                        const struct gradcmp_ls_options *options,
                                                        gradcmp_write_fn write, void *user,
                                                        struct gradcmp_error *error);

/* Write the list as JSON, schema 1; figures that were not asked for are null. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_ls_write_json(const struct gcmp_ls *ls,
                                                        gradcmp_write_fn write, void *user,
                                                        struct gradcmp_error *error);

#endif
