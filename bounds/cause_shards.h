/* Causes that lie in how a parameter is held: one shard of many, copies that are parts of a sum. */
#ifndef GCMP_BOUNDS_CAUSE_SHARDS_H
#define GCMP_BOUNDS_CAUSE_SHARDS_H

#include "bounds/cause.h"

/* The shards of a parameter. */
struct gcmp_shard_set {
    const struct gradcmp_tally *tallies; /* of each alone */
    const uint64_t *writers; /* equal numbers were written by the same rank, or lie in one file */
    size_t count;
    double bound, before, common; /* of the parameter; before: its relative difference */
};

/* Find the one writer whose shards explain the difference: without them what is left is inside the
 * bound and clearly below it, and each of its own shards is far outside. Stores the writer and the
 * residual over the other shards; false where there is none. */
bool gcmp_cause_one_shard(const struct gcmp_shard_set *set, uint64_t *writer, double *residual);

/* Copies of a parameter in the candidate, all of them different. inner[i * count + j] is
 * <c_i, c_j> (j >= i), with_a[i] is <a, c_i>, a2 is <a, a>. */
struct gcmp_copy_sums {
    const double *inner, *with_a;
    size_t count;
    double a2;
};

/* sqrt(sum (w sum_i c_i - a)^2 / A), from inner products: resolved to about 2^-26 of the largest.
 * The weight w is 1 for a sum, 1 / count for a mean. NaN where a is zero. */
double gcmp_cause_copy_sum(const struct gcmp_copy_sums *sums, double weight);

#endif
