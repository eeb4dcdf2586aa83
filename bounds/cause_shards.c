/* One shard of many; copies that add up. */
#include "bounds/cause_shards.h"

#include <math.h>

#define FAR_OUTSIDE 4.0 /* times the bound */

/* What is left of the parameter without one writer's shards; NaN where that writer is not to
 * blame, or is the only one. */
static double without_writer(const struct gcmp_shard_set *set, uint64_t writer) {
    struct gradcmp_tally rest = {0};
    size_t others = 0;
    for (size_t i = 0; i < set->count; i++) {
        double rel = gcmp_cause_residual(&set->tallies[i], set->common);
        if (set->writers[i] == writer) {
            if (!(rel > FAR_OUTSIDE * set->bound)) {
                return NAN;
            }
            continue;
        }
        rest.d2 += set->tallies[i].d2;
        rest.ad += set->tallies[i].ad;
        rest.a2 += set->tallies[i].a2;
        rest.b2 += set->tallies[i].b2;
        rest.max_d = fmax(rest.max_d, set->tallies[i].max_d);
        others++;
    }
    return others == 0 ? NAN : gcmp_cause_residual(&rest, set->common);
}

bool gcmp_cause_one_shard(const struct gcmp_shard_set *set, uint64_t *writer, double *residual) {
    for (size_t i = 0; i < set->count; i++) {
        double rest = without_writer(set, set->writers[i]);
        if (gcmp_cause_holds(rest, set->bound, set->before)) {
            *writer = set->writers[i];
            *residual = rest;
            return true;
        }
    }
    return false;
}

double gcmp_cause_copy_sum(const struct gcmp_copy_sums *sums, double weight) {
    double rest = sums->a2, square = weight * weight;
    for (size_t i = 0; i < sums->count; i++) {
        rest += square * sums->inner[i * sums->count + i] - 2.0 * weight * sums->with_a[i];
        for (size_t j = i + 1; j < sums->count; j++) {
            rest += 2.0 * square * sums->inner[i * sums->count + j];
        }
    }
    return sums->a2 > 0.0 ? sqrt(fmax(rest, 0.0) / sums->a2) : NAN;
}
