/* Which parameter lies where in which bucket, if the buckets were laid out in one given way: proved
 * by their sizes and edges. */
#ifndef GCMP_UNSHARD_BUCKET_FIT_H
#define GCMP_UNSHARD_BUCKET_FIT_H

#include "unshard/bucket_set.h"
#include "unshard/registration.h"

/* How a parameter's weight is cut over the ranks of a tensor-parallel group. */
struct gcmp_cut_weight {
    uint32_t ranks; /* 1: whole on each */
    uint32_t parts; /* boxes that each rank holds, one behind the other (2: a gated weight) */
};

/* A parameter, or a rank's shard of it, in a bucket. */
struct gcmp_placed {
    uint64_t start;     /* element of the bucket */
    uint32_t parameter; /* index in the model */
    uint32_t bucket;    /* index in the set */
    uint32_t rank;      /* of the tensor-parallel group */
    uint32_t stage;     /* of the pipeline */
    uint32_t repeat;    /* not 0: the embedding once more, as a tied output layer (1) or for
                           multi-token prediction (2) */
};

/* One way in which a writer may have laid a model out. */
struct gcmp_bucket_layout {
    struct gcmp_modules modules;
    uint64_t
        align; /* elements; each parameter begins at a multiple of it, counted from its bucket */
    /* Of gathered buffers, whose buckets are not told apart: */
    bool cuts_buckets;  /* at the size that the arguments state; else there is one bucket */
    bool splits_shared; /* a shared embedding has a bucket of its own */
    /* Of others: */
    bool leaves_out; /* weights that are frozen */
};

struct gcmp_streams;

struct gcmp_fit {
    const struct gradcmp_catalogue *catalogue;
    const struct gradcmp_model *weights; /* state "param" */
    const struct gcmp_bucket_set *set;
    struct gcmp_cut_weight *cuts; /* one a parameter */
    struct gcmp_streams *streams;
    struct gcmp_bucket_layout layout; /* under way */
    struct gcmp_registered *order;    /* room for all parameters and a tied output layer */
    size_t order_count;
    size_t tied;    /* index in the model of an embedding that is tied to an output layer */
    bool *left_out; /* for each weight, with leaves_out: some buffer was found to leave it out */
    bool *skips;    /* for each entry of `order`: the buffer under way does */
    bool is_open;   /* several choices of weights fill a buffer, which then did not fit */
    const char *unknown;        /* parameter whose place in the order is not known; NULL: none */
    struct gcmp_placed *placed; /* as they were laid out */
    size_t placed_count, placed_capacity;
    bool lacks_memory; /* for more of them: then a layout that did not fit tells nothing */
    const char *where; /* key of the first bucket that did not fit, for a message; may be NULL */
};

/* Look at the buckets and at how ranks hold the weights. UNSUPPORTED where they do not tell. On
 * failure and after use: gcmp_fit_free. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_start(const struct gradcmp_catalogue *catalogue,
                                                    const struct gradcmp_model *weights,
                                                    const struct gcmp_bucket_set *set,
                                                    struct gcmp_fit *fit,
                                                    struct gradcmp_error *error);

/* True where layouts that leave weights out can be tried: of several stages of a pipeline it would
 * not be known which holds what. */
bool gcmp_fit_may_leave_out(const struct gcmp_fit *fit);

/* Place all parameters in one way; false where that does not fill all buckets. */
bool gcmp_fit_lay_out(struct gcmp_fit *fit, struct gcmp_bucket_layout layout);

/* UNSUPPORTED, naming the flag that saves a readable checkpoint. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_refuse(const struct gcmp_fit *fit, const char *why,
                                                     struct gradcmp_error *error);
void gcmp_fit_free(struct gcmp_fit *fit);

#endif
