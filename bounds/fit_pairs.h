/* Pairs that are given as good: whether they are, and what each adds. */
#ifndef GCMP_BOUNDS_FIT_PAIRS_H
#define GCMP_BOUNDS_FIT_PAIRS_H

#include "bounds/fit.h"

/* rel / eps of a parameter; NaN where it was not judged. */
double gcmp_fit_noise(const struct gradcmp_pair_report *pair, size_t parameter);

/* Make fit->pairs and give each its standing, and take the type, layers and theory from the first.
 * BAD: not consistent, a common factor, another type or other layers than the first, or other
 * parameters. With allow_loose parameters beyond the bound are taken where nothing but rounding
 * could be seen: verdict fail, rel under the theory's cap, cos of at least 0.9, no cause claimed.
 * Suspect: rel of a parameter is over an eps and over four times that of every other pair with
 * noise of its own. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_sort_pairs(const struct gcmp_fit_input *input,
                                                         struct gcmp_arena *arena,
                                                         struct gradcmp_fit *fit,
                                                         struct gradcmp_error *error);

#endif
