/* The scale test: is a parameter off by a factor, although its difference is inside the bound?
 *
 * alpha, the factor that fits best, is far better known than a single element: of noise with
 * relative size r (rho is its estimate) that is independent in n elements, a share r / sqrt(n)
 * falls along a. A factor of 1.02 shows in a tensor of 1,000 elements at r = 0.02 with a deviation
 * of 0.0006, while the bound of bfloat16 lets 1.03 to 1.28 pass. Real noise is not independent: a
 * weight's gradient is a sum over tokens and has few more directions than there are tokens, and all
 * that is upstream of a layer has one error in common. So alpha's tolerance is the largest of
 *
 *     2 units            a step of the compute type and its double rounding; the unit is eps, and
 *                        8 eps for float32 and float64, where the order of accumulation makes the
 *                        noise (gcmp_noise_unit): with eps, models of 24 layers and more of the
 *                        study had false alarms in every fifth draw and worse;
 *     12 rho / sqrt(n)   four standard deviations of noise that moves in groups of nine;
 *     3 sigma            sigma = 1.4826 times the median of |alpha - median of alpha|, a standard
 *                        deviation that up to half of the values cannot spoil: the pair's own
 *                        spread of alpha, over parameters inside their bounds.
 *
 * With n < 16 elements rho is no estimate of the noise (at n = 2 the difference is along a but for
 * one direction, and rho may come out as nothing; at n = 16 rho under a quarter of the noise has a
 * chance of 1e-9), so the pair's median of rho stands in where that is larger.
 *
 * The tolerance is also the smallest factor, as |alpha - 1|, that could have been seen. What it
 * promises: 2 % is 2.56 eps of bfloat16, 0.56 eps beyond the least tolerance, and 12 rho / sqrt(n)
 * is under 2 eps as long as rho is under 5.3 eps at n = 1,000; alpha's own deviation there is a
 * fraction of rho / sqrt(rows). 1e-5 is 84 eps of float32, five times the least tolerance. The
 * study (tests/study) measures it: 2 % on one tensor is seen in every draw at 8 to 96 layers.
 *
 * On 179 good pairs of real checkpoints (float32 and bfloat16; tensor, pipeline, data and expert
 * parallel; 2 to 8 layers) the largest |alpha - 1| is 1.27 eps in bfloat16; in float32 1.9 eps, and
 * 2.5 eps in a bias of 2 elements. The largest |alpha - 1| / tolerance is 0.61, and the spread does
 * not widen a tolerance. The largest rel / bound of these pairs is 0.84. */
#ifndef GCMP_BOUNDS_SCALE_H
#define GCMP_BOUNDS_SCALE_H

#include "bounds/figures.h"
#include "bounds/trial.h"

/* What the parameters inside their bounds show of the pair's noise. */
struct gcmp_spread {
    double factor; /* that was divided out first; 1 where none */
    double sigma;  /* of alpha */
    double rho;    /* median */
};

/* Take the spread of what is left once `factor` was divided out. Uses trial->samples. */
struct gcmp_spread gcmp_spread_of(const struct gcmp_trial *trial, double factor);

/* The tolerance of |alpha - 1| of a parameter of which `rest` is left; NaN where alpha does not
 * exist. */
double gcmp_alpha_tolerance(const struct gcmp_trial *trial, const struct gcmp_spread *spread,
                            const struct gradcmp_parameter_report *parameter,
                            const struct gcmp_rest *rest);

#endif
