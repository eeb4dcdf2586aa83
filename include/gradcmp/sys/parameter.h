/* Parameters in their logical form: what unshard/ makes of a catalogue and the engine reads. */
#ifndef GRADCMP_SYS_PARAMETER_H
#define GRADCMP_SYS_PARAMETER_H

#include "gradcmp/sys/catalogue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A strided box of a parameter in a source. The element at index i (start[d] <= i[d] < start[d] +
 * extent[d]) is source element offset_elems + sum_d (i[d] - start[d]) * stride[d]. Arrays have the
 * parameter's ndim entries. */
struct gradcmp_slab {
    const uint64_t *start, *extent;
    const int64_t *stride;
    int64_t offset_elems;
    uint32_t source;
    uint32_t copy; /* replica that the slab belongs to; 0 where there is one */
    const struct gradcmp_coords *coords; /* of the writer, or NULL */
};

/* The same parameter one step before, of which an average still holds a part: the values of a
 * parameter x with one are (x - beta * former) / (1 - beta), in binary64. */
struct gradcmp_former {
    const struct gradcmp_parameter *parameter; /* the same shape; no former of its own */
    const struct gradcmp_catalogue *catalogue; /* of its sources */
    double beta;                               /* 0 <= beta < 1 */
};

/* What a parameter is whose rows are those of the vocabulary. */
enum gradcmp_vocab_rows {
    GRADCMP_VOCAB_NONE,   /* its rows are no words */
    GRADCMP_VOCAB_INPUT,  /* an embedding */
    GRADCMP_VOCAB_OUTPUT, /* an output layer, or its bias */
};

/* One logical tensor of one layer, in one state. */
struct gradcmp_parameter {
    const char *name; /* canonical */
    const char *state;
    int64_t layer; /* l */
    const uint64_t *shape;
    uint64_t elem_count;
    struct gradcmp_slab *slabs; /* sorted by copy, then by first element in row-major order */
    size_t slab_count;
    uint32_t copy_count;
    uint8_t ndim;
    uint8_t dtype;      /* enum gradcmp_dtype */
    uint8_t vocab_rows; /* enum gradcmp_vocab_rows: axis 0 counts the (padded) vocabulary */
    uint8_t replicated; /* nonzero: copies exist on ranks by design (norms, router) */
    uint8_t overlap;    /* nonzero: the copies are pieces of one tensor that overlap; they must hold
                           the same bits, or the file is damaged */
    uint8_t of_ranks;   /* nonzero: the copies are of files of ranks, which do not tell whether they
                           are copies or shards that all have one name */
    const struct gradcmp_former *former; /* NULL: the values are those that are stored */
    const struct gradcmp_adam *adam;     /* as of its stored tensors */
};

/* The parameters of one state of one checkpoint, sorted bytewise by name. */
struct gradcmp_model {
    struct gcmp_arena *arena; /* owns everything below */
    struct gradcmp_parameter *parameters;
    size_t count;
    size_t frozen; /* weights behind these, as they are: flat buffers were found to hold no such
                      state of them */
    const char *state;
    uint64_t layers; /* L */
    uint64_t shown;  /* of these, the highest that tensors of the state or of the weights show: what
                        arguments count beyond would only loosen a bound */
    uint8_t chained; /* nonzero: stacks of layers feed one another and are numbered so */
};

#ifdef __cplusplus
}
#endif

#endif
