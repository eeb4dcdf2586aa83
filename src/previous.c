/* Gradients recovered from an average over steps. */
#include "previous.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "betas.h"
#include "bounds/bounds.h"
#include "numbering.h"

/* One side while it is linked. */
struct link {
    struct gcmp_comparison *comparison;
    struct gcmp_participant *now;
    struct gradcmp_checkpoint *before;
    const char *option; /* "--previous-a" */
    const char *path;
    double beta;
    struct gradcmp_error *error;
};

#define FAIL(link, code, ...)                                                                      \
    GCMP_FAIL_AT((link)->error, (code), (link)->path, GRADCMP_NO_OFFSET, __VA_ARGS__)

static enum gradcmp_status open_before(struct link *link) {
    const struct gcmp_comparison *comparison = link->comparison;
    struct gradcmp_options options = *comparison->options;
    options.iteration = -1; /* that of the later one */
    GCMP_TRY(gcmp_checkpoint_open_alone(link->path, &options, &link->before, link->error));
    gcmp_compare_keep(comparison->report, link->before);
    link->path = link->before->path;
    gcmp_checkpoint_set_mapping(link->before, link->now->checkpoint->mapping,
                                link->now->checkpoint->side);
    return GRADCMP_OK;
}

/* The step after the earlier checkpoint's is the later one's. */
static enum gradcmp_status check_steps(const struct link *link) {
    double now = gcmp_step_of(&link->now->checkpoint->catalogue);
    double before = gcmp_step_of(&link->before->catalogue);
    if (isnan(now) || isnan(before)) {
        FAIL(link, GRADCMP_ERROR_UNSUPPORTED,
             "%s: the step of %s is not known, so that nothing tells whether one follows the other",
             link->option, isnan(now) ? link->now->checkpoint->path : "this checkpoint");
    }
    if (now - before < 1.0 || now - before > 1.0) {
        FAIL(link, GRADCMP_ERROR_USAGE, "%s: step %.15g, expected %.15g, the one before %s",
             link->option, before, now - 1.0, link->now->checkpoint->path);
    }
    return GRADCMP_OK;
}

/* The beta of the later step; the earlier checkpoint may state none, but no other. */
static enum gradcmp_status find_beta(struct link *link) {
    const char *state = link->comparison->report->state;
    double before = gcmp_beta_of(&link->before->catalogue, state);
    link->beta = gcmp_beta_of(&link->now->checkpoint->catalogue, state);
    if (strcmp(state, "exp_avg") != 0 && strcmp(state, "exp_avg_sq") != 0) {
        FAIL(link, GRADCMP_ERROR_USAGE,
             "%s: %s is no average over steps; exp_avg and exp_avg_sq are", link->option, state);
    }
    if (!(link->beta >= 0.0 && link->beta < 1.0)) {
        FAIL(link, GRADCMP_ERROR_UNSUPPORTED, "%s: the beta that %s was averaged with is not known",
             link->option, link->now->checkpoint->path);
    }
    if (before < link->beta || before > link->beta) {
        FAIL(link, GRADCMP_ERROR_UNSUPPORTED,
             "%s: beta %.15g here, %.15g in %s: the average changed its rule", link->option, before,
             link->beta, link->now->checkpoint->path);
    }
    return GRADCMP_OK;
}

static bool is_alike(const struct gradcmp_parameter *a, const struct gradcmp_parameter *b) {
    return a->ndim == b->ndim &&
           (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

static enum gradcmp_status link_parameter(const struct link *link,
                                          const struct gradcmp_model *before,
                                          struct gradcmp_parameter *parameter) {
    const struct gradcmp_parameter *former = gcmp_model_find(before, parameter->name);
    if (former == NULL || !is_alike(former, parameter)) {
        FAIL(link, GRADCMP_ERROR_UNSUPPORTED, "%s: %.250s %s", link->option, parameter->name,
             former == NULL ? "is not there" : "has another shape");
    }
    if (!gcmp_dtype_is_float((enum gradcmp_dtype)parameter->dtype) ||
        !gcmp_dtype_is_float((enum gradcmp_dtype)former->dtype)) {
        FAIL(link, GRADCMP_ERROR_UNSUPPORTED, "%s: %.250s holds no floating-point numbers",
             link->option, parameter->name);
    }
    struct gradcmp_former *made =
        gcmp_arena_alloc(link->comparison->report->arena, 1, sizeof *made);
    if (made == NULL) {
        GCMP_FAIL_MEMORY(link->error);
    }
    *made = (struct gradcmp_former){former, &link->before->catalogue, link->beta};
    parameter->former = made;
    return GRADCMP_OK;
}

static enum gradcmp_status link_model(const struct link *link) {
    const struct gradcmp_model *before, *now = link->now->model;
    const char *state = link->comparison->report->state;
    GCMP_TRY(gcmp_name_by(&link->now->checkpoint->catalogue, &link->before->catalogue, state,
                          link->error));
    GCMP_TRY(gcmp_checkpoint_model(link->before, state, &before, link->error));
    for (size_t i = 0; i < now->count; i++) {
        GCMP_TRY(link_parameter(link, before, &now->parameters[i]));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status link_side(struct link *link) {
    GCMP_TRY(open_before(link));
    GCMP_TRY(find_beta(link));
    GCMP_TRY(check_steps(link));
    if (link->beta == 0.0) {
        return GRADCMP_OK; /* it is the gradient already */
    }
    GCMP_TRY(link_model(link));
    link->now->is_recovered = true;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_previous_link(struct gcmp_comparison *comparison,
                                       struct gradcmp_error *error) {
    const struct gradcmp_options *options = comparison->options;
    struct gradcmp_pair_report *pair = &comparison->report->pairs[0];
    if (options->previous_b != NULL && comparison->report->pair_count > 1) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "--previous-b: of which of the %zu candidates? "
                  "Compare one at a time",
                  comparison->report->pair_count);
    }
    if (options->previous_a != NULL) {
        struct link link = {.comparison = comparison,
                            .now = &comparison->baseline,
                            .option = "--previous-a",
                            .path = options->previous_a,
                            .error = error};
        GCMP_TRY(link_side(&link));
    }
    if (options->previous_b != NULL && gcmp_pair_is_open(pair)) {
        struct gradcmp_error own = {0};
        struct link link = {.comparison = comparison,
                            .now = &comparison->candidates[0],
                            .option = "--previous-b",
                            .path = options->previous_b,
                            .error = &own};
        if (link_side(&link) != GRADCMP_OK) {
            gcmp_error_add_path(&own, link.path);
            gcmp_pair_fail(pair, &own);
        }
    }
    return GRADCMP_OK;
}

/* What rounding to the stored type leaves of a recovered gradient, relative to averages of its
 * size: (u |m_t| + u beta |m_(t-1)|) / (1 - beta), u = eps / 2. */
static double lost(const struct gcmp_participant *side) {
    double worst = 0.0;
    for (size_t i = 0; side->is_recovered && i < side->model->count; i++) {
        const struct gradcmp_parameter *parameter = &side->model->parameters[i];
        const struct gradcmp_former *former = parameter->former;
        double now = gcmp_dtype_eps((enum gradcmp_dtype)parameter->dtype) / 2.0;
        double before = gcmp_dtype_eps((enum gradcmp_dtype)former->parameter->dtype) / 2.0;
        worst = fmax(worst, (now + before * former->beta) / (1.0 - former->beta));
    }
    return worst;
}

enum gradcmp_status gcmp_previous_check(const struct gcmp_comparison *comparison,
                                        const struct gcmp_participant *candidate,
                                        const struct gradcmp_bound *bound,
                                        struct gradcmp_error *error) {
    double noise = fmax(lost(&comparison->baseline), lost(candidate));
    double least = gcmp_bound_at(bound, (int64_t)bound->layers + 1);
    if (noise > least) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "the stored averages are too coarse to recover gradients from: rounding leaves "
                  "%.2g of them, the bound is %.2g at the loss (save after one step, or with "
                  "betas (0, 0))",
                  noise, least);
    }
    return GRADCMP_OK;
}
