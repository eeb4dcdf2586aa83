/* The figures of a parameter, from its sums: rel, alpha, rho, cos, norms; and what is left of them
 * once a factor common to the pair is divided out. */
#ifndef GCMP_BOUNDS_FIGURES_H
#define GCMP_BOUNDS_FIGURES_H

#include "gradcmp/sys/result.h"

/* True where a and b can be set against each other at all: on both sides, in one shape. */
bool gcmp_is_comparable(const struct gradcmp_parameter_report *parameter);

/* True where alpha exists and means something: comparable, no copies that disagree, every element
 * finite, a baseline that is not zero. */
bool gcmp_has_alpha(const struct gradcmp_parameter_report *parameter);

/* True where both sides are all zero (or have no elements), every element finite. */
bool gcmp_is_all_zero(const struct gradcmp_parameter_report *parameter);

/* Finite elements, those that the sums are over. */
uint64_t gcmp_finite_elems(const struct gradcmp_parameter_report *parameter);

/* Fill rel, alpha, rho, cosine, norm_a and norm_b from the tally. With D = sum d^2, P = sum a d,
 * A = sum a^2, B = sum b^2 and d = b - a:
 *
 *     rel = sqrt(D/A)   alpha = 1 + P/A   rho = sqrt(max(0, D/A - (P/A)^2))   cos = (A+P)/sqrt(AB)
 *
 * A = 0: rel = 0 where D = 0, else inf; the others NaN. B = 0: cos NaN. Nothing but the norms
 * exists where the sides are not comparable, and no norm of a side that is not there. rho under
 * 2^-26 rel is resolution only: it is the root of a difference of rounded numbers. Sums that
 * overflowed, or vanished although values did not, count as A = 0 with the largest |d| in the place
 * of D, so that they pass only when the sides are equal. (Such a parameter is to be read again,
 * scaled, before it comes here.) */
void gcmp_figures_fill(struct gradcmp_parameter_report *parameter);

/* A parameter once b was divided by `factor`; with factor 1 the raw figures. */
struct gcmp_rest {
    double rel, alpha, rho, cosine; /* NaN where they do not exist */
};

/* rel^2 A c^2 = sum (b - c a)^2 = A (rho^2 + (alpha - c)^2), as b - alpha a is orthogonal to a.
 * For a small c, rho^2 is taken from B/A - alpha^2, whose terms are as small as c^2; it is then
 * resolved to about 2^-25 / sqrt(c). Where the rest was measured (parameter->rest), its own sums
 * are taken, over b / rest.factor and what is left of c. factor: finite and not 0. */
struct gcmp_rest gcmp_rest_of(const struct gradcmp_parameter_report *parameter, double factor);

/* alpha, from the sums of the rest where they were measured. */
double gcmp_factor_of(const struct gradcmp_parameter_report *parameter);

/* How small a rest the tally alone can show once this factor is divided out: sums of squares are
 * differences there. */
double gcmp_rest_resolution(double factor);

/* A sum of squares of values that were read times different powers of two. Start from zero. */
struct gcmp_square_sum {
    double sum;
    int scale_log2; /* the true sum is sum * 2^(-2 scale_log2) */
    bool started;
};
void gcmp_square_add(struct gcmp_square_sum *total, double sum, double scale_log2);
double gcmp_square_root(const struct gcmp_square_sum *total);

#endif
