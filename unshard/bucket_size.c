/* The size of buckets, from the arguments. */
#include "unshard/bucket_size.h"

#include "base/catalogue.h"
#include "base/checked.h"

enum { ELEMS_A_RANK = 1000000, LEAST_ELEMS = 40000000 };

uint64_t gcmp_bucket_elems(const struct gradcmp_catalogue *catalogue) {
    const struct gradcmp_setting *overlaps =
        gcmp_catalogue_setting(catalogue, "overlap_grad_reduce");
    const struct gradcmp_setting *stated = gcmp_catalogue_setting(catalogue, "ddp_bucket_size");
    if (overlaps == NULL || overlaps->kind != GRADCMP_SETTING_BOOL || overlaps->integer == 0) {
        return 0;
    }
    if (stated != NULL && stated->kind == GRADCMP_SETTING_INT && stated->integer > 0) {
        return (uint64_t)stated->integer;
    }
    uint64_t ranks = catalogue->parallel.cp == 0 ? 1 : catalogue->parallel.cp, elems;
    if (!gcmp_mul_u64(ranks, catalogue->parallel.dp, &ranks) ||
        !gcmp_mul_u64(ranks, ELEMS_A_RANK, &elems)) {
        return 0;
    }
    return elems > LEAST_ELEMS ? elems : LEAST_ELEMS;
}
