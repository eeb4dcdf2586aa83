/* The sums and counts over the elements of a pair, of a block or of any subtree of blocks. */
#ifndef GRADCMP_SYS_TALLY_H
#define GRADCMP_SYS_TALLY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order of every sum is fixed; see src/kernels/README.md and kernels.h. */
enum {
    GRADCMP_BLOCK_ELEMS = 16384, /* elements of a block */
    GRADCMP_LANES = 32           /* lanes of a block */
};

/* For baseline a, candidate b, d = b - a in binary64. Elements where either side is not finite are
 * counted and left out of sums, maxima and ulp. Zeroed memory is the tally of no elements. */
struct gradcmp_tally {
    double d2, ad, a2, b2; /* sums of d*d, a*d, a*a, b*b */
    double max_d;          /* largest |d| */
    double max_a, max_b;   /* largest |a|, |b| */
    uint64_t max_d_index;  /* of the first largest |d|, from the job's first element */
    uint64_t elems;        /* elements seen */
    uint64_t zeros_a,
        zeros_b; /* elements equal to 0 (either sign), finite or not on the other side */
    uint64_t nonfinite_a, nonfinite_b, nonfinite_any; /* NaN or Inf on a, on b, on either */
    uint64_t equal_bits; /* elements with equal bits in the coarser stored type */
    uint64_t max_ulp; /* largest distance in units in the last place of the coarser stored type */
};

#ifdef __cplusplus
}
#endif

#endif
