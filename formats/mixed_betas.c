/* Records that no one pair of betas, or no one step, holds for all parameters. */
#include "formats/mixed_betas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"

void gcmp_see(struct gcmp_seen *seen, double first, double second) {
    if (isnan(first) || isnan(second)) {
        return;
    }
    for (size_t i = 0; i < seen->count; i++) {
        const double *value = seen->values[i];
        if (value[0] >= first && value[0] <= first && value[1] >= second && value[1] <= second) {
            return;
        }
    }
    if (seen->count == GCMP_SEEN_MOST) {
        seen->is_cut = true;
        return;
    }
    seen->values[seen->count][0] = first;
    seen->values[seen->count][1] = second;
    seen->count++;
}

void gcmp_see_stated(struct gcmp_seen *seen, double first, double second) {
    if ((isnan(first) || isnan(second)) && !seen->has_nan) {
        seen->has_nan = true;
        seen->nan[0] = first;
        seen->nan[1] = second;
    }
    gcmp_see(seen, first, second);
}

const double *gcmp_seen_first(const struct gcmp_seen *seen) {
    return seen->has_nan ? seen->nan : seen->count > 0 ? seen->values[0] : NULL;
}

static int compare_values(const void *left, const void *right) {
    const double *a = left, *b = right;
    size_t at = a[0] < b[0] || a[0] > b[0] ? 0 : 1;
    return (a[at] > b[at]) - (a[at] < b[at]);
}

/* "0.8 0.95, 0.9 0.95", in order; " ..." at the end of a list that is not whole. */
static enum gradcmp_status set_list(struct gradcmp_catalogue *catalogue, const char *name,
                                    const struct gcmp_seen *seen, bool are_pairs,
                                    struct gradcmp_error *error) {
    struct gcmp_seen sorted = *seen;
    char text[GCMP_SEEN_MOST * 48 + 8];
    int end = 0;
    qsort(sorted.values, sorted.count, sizeof *sorted.values, compare_values);
    for (size_t i = 0; i < sorted.count; i++) {
        const char *comma = i == 0 ? "" : ", ";
        end += are_pairs ? snprintf(text + end, sizeof text - (size_t)end, "%s%.15g %.15g", comma,
                                    sorted.values[i][0], sorted.values[i][1])
                         : snprintf(text + end, sizeof text - (size_t)end, "%s%.15g", comma,
                                    sorted.values[i][0]);
    }
    snprintf(text + end, sizeof text - (size_t)end, "%s", seen->is_cut ? " ..." : "");
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_TEXT, .text = text};
    return gcmp_catalogue_set(catalogue, &setting, error);
}

enum gradcmp_status gcmp_set_mixed_betas(struct gradcmp_catalogue *catalogue,
                                         const struct gcmp_seen *seen,
                                         struct gradcmp_error *error) {
    static const char name[] = "optimizer.mixed_betas";
    if (seen->count < 2 || gcmp_catalogue_setting(catalogue, name) != NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(set_list(catalogue, name, seen, true, error));
    return gcmp_catalogue_note(catalogue, error,
                               "the optimizer's groups of parameters differ in their betas");
}

enum gradcmp_status gcmp_set_mixed_steps(struct gradcmp_catalogue *catalogue,
                                         const struct gcmp_seen *seen,
                                         struct gradcmp_error *error) {
    static const char name[] = "optimizer.mixed_steps";
    if (seen->count < 2 || gcmp_catalogue_setting(catalogue, name) != NULL) {
        return GRADCMP_OK;
    }
    return set_list(catalogue, name, seen, false, error);
}

/* --- of each parameter --- */

static bool is_moment(const struct gradcmp_stored *stored) {
    return stored->state != NULL && strncmp(stored->state, "exp_avg", 7) == 0;
}

/* Tell the step that most moments are at, and one that is at another. */
static enum gradcmp_status note_steps(struct gradcmp_catalogue *catalogue,
                                      const struct gcmp_seen *seen, struct gradcmp_error *error) {
    size_t counts[GCMP_SEEN_MOST] = {0}, total = 0, most = 0;
    const struct gradcmp_stored *odd = NULL;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        for (size_t k = 0; k < seen->count && is_moment(stored) && stored->adam != NULL; k++) {
            bool is_it = gcmp_same_adam(&(struct gradcmp_adam){0, 0, stored->adam->step},
                                        &(struct gradcmp_adam){0, 0, seen->values[k][0]});
            counts[k] += is_it;
            total += is_it;
            most = counts[k] > counts[most] ? k : most;
        }
    }
    double most_step = seen->values[most][0], odd_step = (double)NAN;
    for (size_t i = 0; i < catalogue->stored_count && odd == NULL; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        double step = is_moment(stored) && stored->adam != NULL ? stored->adam->step : (double)NAN;
        if (step < most_step || step > most_step) {
            odd = stored;
            odd_step = step;
        }
    }
    if (odd == NULL) {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_note(catalogue, error,
                               "the optimizer's parameters are not at one step: %zu of %zu moments "
                               "are at step %.15g, but %.200s of %.250s at step %.15g",
                               counts[most], total, most_step, odd->state, odd->name, odd_step);
}

enum gradcmp_status gcmp_settle_adam(struct gradcmp_catalogue *catalogue,
                                     struct gradcmp_error *error) {
    struct gcmp_seen betas = {.count = 0}, steps = {.count = 0};
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_moment(stored) && stored->adam != NULL) {
            gcmp_see(&betas, stored->adam->beta1, stored->adam->beta2);
            gcmp_see(&steps, stored->adam->step, 0.0);
        }
    }
    for (size_t i = 0; betas.count < 2 && steps.count < 2 && i < catalogue->stored_count; i++) {
        catalogue->stored[i].adam = NULL;
    }
    GCMP_TRY(gcmp_set_mixed_betas(catalogue, &betas, error));
    GCMP_TRY(gcmp_set_mixed_steps(catalogue, &steps, error));
    return steps.count < 2 ? GRADCMP_OK : note_steps(catalogue, &steps, error);
}
