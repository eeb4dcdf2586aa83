/* The frame of the vector kernels. An instruction set gives a table of operations on short runs of
 * finite elements; the frame cuts a block into such runs and leaves the rest to the scalar code:
 * runs with a NaN or an infinity, and the last block's tail of under 64 elements. */
#ifndef GCMP_KERNELS_VECTOR_H
#define GCMP_KERNELS_VECTOR_H

#include <stddef.h>

#include "kernels/scalar.h"

/* Elements of a run: both sides, widened, rounded and as they came, stay in a 32 KiB first-level
 * cache. Counters of 8 bits in a vector do not overflow in a run: 1024 / 32 rounds. */
enum {
    GCMP_RUN_ELEMS = 1024,
    GCMP_RUN_STEP = 64 /* every run is a multiple of it: a vector of 8-bit elements */
};

/* The four sums of all lanes. */
struct gcmp_lane_sums {
    double d2[GRADCMP_LANES], ad[GRADCMP_LANES], a2[GRADCMP_LANES], b2[GRADCMP_LANES];
};

/* What a scan learns of a run from its bits. Magnitudes are bits without the sign. */
struct gcmp_scan {
    uint64_t max_a, max_b; /* largest magnitudes */
    uint64_t min_a, min_b; /* smallest: 0 where there are zeros */
    uint64_t equal;        /* elements with equal bits */
    uint64_t max_ulp;      /* largest distance; of use only when all elements are finite */
};

/* The largest and the smallest magnitude of one side. */
struct gcmp_extent {
    uint64_t max, min;
};

/* A run of n elements, n a multiple of GCMP_RUN_STEP, at any alignment. */
typedef void (*gcmp_scan_fn)(const void *a, const void *b, size_t n, struct gcmp_scan *out);
/* The same of one side alone. */
typedef void (*gcmp_extent_fn)(const void *a, size_t n, struct gcmp_extent *out);
/* Count the zeros, of either sign. */
typedef uint64_t (*gcmp_zeros_fn)(const void *a, size_t n);
/* Convert between types; out is aligned to 64 bytes. */
typedef void (*gcmp_convert_fn)(const void *in, size_t n, void *out);
/* Add a run to the sums. max_d[j] receives the largest |d| of lane j in this run; returns the
 * largest of them. */
typedef double (*gcmp_sums_fn)(const void *a, const void *b, size_t n, struct gcmp_lane_sums *sums,
                               double max_d[GRADCMP_LANES]);

struct gcmp_vector_ops {
    /* Add elements [first, end) of a block, of any value; first is a multiple of GRADCMP_LANES. */
    void (*scalar_add)(struct gradcmp_tally lanes[GRADCMP_LANES], const struct gcmp_block *block,
                       size_t first, size_t end);
    /* By log2 of the bytes of an element. */
    gcmp_scan_fn scan[4];
    gcmp_extent_fn extent[4];
    gcmp_zeros_fn zeros[4];
    /* float16, bfloat16, float8 to float32, exactly; by type. */
    gcmp_convert_fn widen[GRADCMP_DTYPE_FLOAT8_E5M2 + 1];
    /* float64 to float32, to nearest. */
    gcmp_convert_fn float64_to_float32;
    /* float64 to float32, to odd: toward zero, with the last bit set where that is not exact. What
     * is then rounded to a type of at most 22 bits of significand is as if rounded once (Boldo and
     * Melquiond, When double rounding is odd, 2005). */
    gcmp_convert_fn float64_to_odd32;
    /* Finite float32 to float16, bfloat16 or float8, to nearest, ties to even; by type. */
    gcmp_convert_fn narrow[GRADCMP_DTYPE_FLOAT8_E5M2 + 1];
    /* [a is float64][b is float64]; else float32. All elements are finite. */
    gcmp_sums_fn sums[2][2];
};

/* A gcmp_tally_fn made of operations. */
void gcmp_vector_tally(const struct gcmp_vector_ops *ops, const struct gcmp_block *block,
                       struct gradcmp_tally *out);

#endif
