/* The verdict of one parameter. */
#ifndef GCMP_BOUNDS_VERDICT_H
#define GCMP_BOUNDS_VERDICT_H

#include "bounds/scale.h"

/* Return the verdict of parameter `index`, judged on what is left once spread->factor is divided
 * out. The first that applies:
 *
 *   missing, extra  one side lacks it (and its shape with it)
 *   shape           the logical shapes differ
 *   conflict        copies within a side differ beyond the bound
 *   nonfinite       NaN or Inf anywhere, on both sides alike too: what is left out of the sums
 *                   proves nothing
 *   unjudged        both sides all zero (or without elements); or small noise, see below
 *   fail            over the bound; cos under 0.9; one side all zero: whatever the bound
 *   scale           |alpha - 1| over its tolerance
 *   pass
 *
 * Small noise is what cancellation leaves of a gradient that is truly zero (the bias of a gate
 * before a norm, keys without positions): rounding of the layer's other gradients. All of:
 * rel over the bound but under 0.25 (so neither norm is twice the other); root mean square of the
 * error at most a quarter of the bound times the root mean square of the baseline's gradients in
 * the layer (k/4 eps, and its growth with depth: parameters at least four times smaller than their
 * layer; measured: noise 0.6 eps of float32, against 8); and no cause fits. A factor fits where
 * there are elements enough to tell (16) and what it leaves is inside the bound. (A changed sign or
 * a zero leaves rel at 2 or 1 and never comes so far.) An order, such as rows in other places, is
 * looked for by src/diagnose.c, which sets has_order.
 *
 * Such noise has nothing in common with itself on the other side (rel up to 1.4 and more) where it
 * is all that there is: the bias of keys in a BERT (softmax takes it away). So what is on both
 * sides at most 2 eps of float32 of its layer (root mean squares; measured: 0.2 to 0.5) is small
 * noise, whatever rel, where neither norm is twice the other and no factor is most of the
 * difference (|alpha - 1| at most 2 rho). The eps is float32's in narrower arithmetic too: true
 * gradients are within an eps of bfloat16 of others (queries and keys at the start). */
enum gradcmp_verdict gcmp_verdict_within(const struct gcmp_trial *trial,
                                         const struct gcmp_spread *spread, size_t index);

#endif
