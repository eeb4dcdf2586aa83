/* The fit: k, C and a floor of every parameter from pairs that are known to be good.
 *
 * A good pair's rel / eps of a parameter at depth d = L+1-l is its noise y; the theory bounds it by
 * k0 C0^d (bounds/bounds.h). The fit looks for the smallest k C^d that holds with a margin:
 *
 *   C       exp of the median of the slopes between the logarithms of two layers' median noise
 *           (Theil and Sen), over layers 1..L, brought into [1, C0]. The median of slopes stands
 *           up to a quarter of the layers being unlike the rest. Under four layers with noise there
 *           is no slope to be had: C0.
 *   m       max of y / C^d over parameters and pairs: an envelope, so no good pair fails its own
 *           fit.
 *   margin  1.25 + 0.75 / N over N pairs with noise of their own (N = 1: 2), because the next pair
 *           is not the last one; and at least the largest pair's m over the second largest's, so
 *           that each pair would pass a fit made from the others.
 *   k       margin * m, but never over k0. Where k0 cuts it off, C is the smallest for which
 *           min(k0 C0^d, margin m C^d) is still reached at every depth.
 *
 * k <= k0 and C <= C0, so the fit is nowhere looser than the theory. Pairs beyond the theory's
 * bound are refused, unless the caller insists: then k = 1.25 m, and the fit says that it is
 * looser.
 *
 * What counts as noise: a pair whose m is under k0 / 8 (half an eps of bfloat16) reordered nothing
 * in the compute type. Another data-parallel size, or a rerun, is of that kind; a bound made from
 * it would fail the first run that splits a matrix product (measured: 0.18 to 0.42 eps against 1.7
 * to 3.4 on the same model). Such pairs are judged and listed, but do not tighten. Two pairs whose
 * noise agrees in all parameters to 1e-6 are one measurement.
 *
 * A floor is for small gradients, which cancellation leaves of large ones: their error does not
 * shrink with them. It is kept as a share of the layer's gradients, so that it does not depend on
 * the scale of the loss: floor = margin * rms(error) / rms(layer's baseline), cut where it would be
 * looser than the theory on the gradients it was measured on; of a parameter that could not be
 * judged there, 1.25 times what was measured. A parameter's bound is then the larger of bound(l)
 * and its floor, under the same cap. */
#ifndef GCMP_BOUNDS_FIT_H
#define GCMP_BOUNDS_FIT_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/fit.h"
#include "gradcmp/sys/result.h"

/* Judged pairs of one baseline, all under the theory's default bound. */
struct gcmp_fit_input {
    const struct gradcmp_pair_report *pairs;
    size_t pair_count;
    bool allow_loose; /* take pairs that are beyond the bound and have no other fault */
};

/* Fill fit->pairs (pair_count entries, made here) and, unless one is BAD or ERROR, everything else
 * of the fit but path, baseline_path, state, parameter_count, names_sha256 and errors. Everything
 * lives in `arena`; names are borrowed from the pairs. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_fit_measure(const struct gcmp_fit_input *input,
                                                      struct gcmp_arena *arena,
                                                      struct gradcmp_fit *fit,
                                                      struct gradcmp_error *error);

/* True where nothing was measured because a pair is BAD or ERROR, or all are IDENTICAL. */
bool gcmp_fit_is_void(const struct gradcmp_fit *fit);

/* bound(l) of the fit and of the theory, without the cap, in multiples of eps. */
double gcmp_fit_bound_eps(const struct gradcmp_fit *fit, int64_t layer);
double gcmp_fit_theory_eps(const struct gradcmp_fit *fit, int64_t layer);

/* Let a bound judge by a fit that applies to it: k, C and the floors. */
void gcmp_fit_apply(const struct gradcmp_fit *fit, struct gradcmp_bound *bound);

/* Fill floors[count] with what each parameter's floor allows as rel, 0 where it has none.
 * layer_rms: see bounds/layer.h. */
void gcmp_fit_floors(const struct gradcmp_fit *fit,
                     const struct gradcmp_parameter_report *parameters, size_t count,
                     const double *layer_rms, double *floors);

#endif
