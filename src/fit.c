/* gradcmp_fit_make: compares known-good pairs and fits the bound to them; and fits in use. */
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/sha2.h>

#include "bounds/bounds.h"
#include "bounds/fit.h"
#include "fit_file.h"

/* More than rounding: a floor that was cut at the bound is not over it. */
#define ABOVE (1.0 + 1e-9)

void gcmp_fit_digest(const struct gradcmp_model *model, char out[65]) {
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&sha);
    for (size_t i = 0; i < model->count; i++) {
        const char *name = model->parameters[i].name;
        sha256_update(&sha, strlen(name), (const uint8_t *)name);
        sha256_update(&sha, 1, (const uint8_t *)"\n");
    }
    sha256_digest(&sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        static const char digits[] = "0123456789abcdef";
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}

/* ------------------------------------------------------------------------------------ making it */

/* What a fit keeps: the report that its names belong to. */
struct kept_fit {
    struct gradcmp_fit fit; /* first: a fit is freed by its address */
    struct gradcmp_report *report;
};

static enum gradcmp_status check_options(const struct gradcmp_options *options,
                                         struct gradcmp_error *error) {
    if (options->k != 0.0 || options->C != 0.0 || options->max_bound != 0.0 ||
        options->compat_megatron || options->fit != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "a fit is made under the default bound: no k, C, cap, --compat or --fit");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status measure(struct gradcmp_report *report, struct gradcmp_fit *fit,
                                   struct gradcmp_error *error) {
    struct gcmp_fit_input input = {report->pairs, report->pair_count,
                                   report->options.allow_loose != 0};
    fit->baseline_path = report->baseline_path;
    fit->state = report->state;
    fit->options = &report->options;
    GCMP_TRY(gcmp_fit_measure(&input, report->arena, fit, error));
    fit->errors = gcmp_arena_alloc(report->arena, report->pair_count, sizeof *fit->errors);
    if (fit->errors == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        fit->errors[i] = report->pairs[i].error;
    }
    fit->parameter_count = report->pairs[0].parameter_count;
    memcpy(fit->names_sha256, report->names_sha256, sizeof fit->names_sha256);
    return GRADCMP_OK;
}

enum gradcmp_status gradcmp_fit_make(const char *baseline, const char *const *goods,
                                     size_t good_count, const struct gradcmp_options *options,
                                     struct gradcmp_fit **out, struct gradcmp_error *error) {
    *out = NULL;
    if (good_count == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "no good checkpoint to compare with the baseline");
    }
    struct kept_fit *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status =
        gradcmp_compare(baseline, goods, good_count, options, &kept->report, error);
    if (status == GRADCMP_OK) {
        status = check_options(&kept->report->options, error);
    }
    if (status == GRADCMP_OK) {
        status = measure(kept->report, &kept->fit, error);
    }
    if (status != GRADCMP_OK) {
        gradcmp_fit_free(&kept->fit);
        return status;
    }
    *out = &kept->fit;
    return GRADCMP_OK;
}

void gradcmp_fit_free(struct gradcmp_fit *fit) {
    struct kept_fit *kept = (struct kept_fit *)(void *)fit;
    if (kept != NULL) {
        gradcmp_report_free(kept->report);
        free(kept);
    }
}

/* ------------------------------------------------------------------------------------- using it */

enum gradcmp_status gcmp_fit_load(struct gradcmp_report *report, struct gradcmp_error *error) {
    if (report->options.fit == NULL) {
        return GRADCMP_OK;
    }
    struct gradcmp_fit *fit = gcmp_arena_alloc(report->arena, 1, sizeof *fit);
    if (fit == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_fit_read(report->arena, report->options.fit, fit, error));
    report->fit = fit;
    return GRADCMP_OK;
}

/* States that hold the same gradient. */
static bool is_gradient(const char *state) {
    return strcmp(state, "exp_avg") == 0 || strcmp(state, "main_grad") == 0;
}

static enum gradcmp_status refuse_foreign(const struct gradcmp_fit *fit, const char *state,
                                          const struct gradcmp_bound *bound,
                                          struct gradcmp_error *error) {
    if (fit->dtype != bound->dtype) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "the fit %.200s is of runs in %s, and this pair is judged in %s", fit->path,
                  gradcmp_dtype_name(fit->dtype), gradcmp_dtype_name(bound->dtype));
    }
    if (fit->layer_count != bound->layers) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "the fit %.200s is of a model of %llu layers, and this one has %llu", fit->path,
                  (unsigned long long)fit->layer_count, (unsigned long long)bound->layers);
    }
    if (strcmp(fit->state, state) != 0 && !(is_gradient(fit->state) && is_gradient(state))) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "the fit %.200s is of the state %.40s, and %.40s is compared", fit->path,
                  fit->state, state);
    }
    return GRADCMP_OK;
}

/* Tell aloud where the fit lets more pass than the theory; between the ends of the model the ratio
 * of the two is monotonic. */
static enum gradcmp_status note_looser(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       const struct gradcmp_bound *theory,
                                       struct gradcmp_error *error) {
    double depth = (double)theory->layers + 1.0;
    double loosest = fmax(pair->bound.k / theory->k,
                          pair->bound.k / theory->k * pow(pair->bound.C / theory->C, depth));
    if (!(loosest > 1.0)) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(
        comparison, pair, error,
        "the fit is looser than the theory: its bound is up to %.3g times as wide", loosest);
}

/* Another model: its k and C may be of use, its floors would be those of other gradients. */
static enum gradcmp_status use_foreign(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       struct gradcmp_error *error) {
    struct gradcmp_fit *bare = gcmp_arena_alloc(comparison->report->arena, 1, sizeof *bare);
    if (bare == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *bare = *comparison->report->fit;
    bare->floor_count = 0;
    pair->bound.fit = bare;
    return gcmp_pair_note(comparison, pair, error,
                          "the fit is of a model with other parameters: its floors are left out, "
                          "and its noise need not be this model's");
}

enum gradcmp_status gcmp_fit_use(struct gcmp_comparison *comparison,
                                 struct gradcmp_pair_report *pair, struct gradcmp_error *error) {
    const struct gradcmp_fit *fit = comparison->report->fit;
    if (fit == NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(refuse_foreign(fit, comparison->report->state, &pair->bound, error));
    struct gradcmp_bound theory = pair->bound;
    gcmp_fit_apply(fit, &pair->bound);
    GCMP_TRY(note_looser(comparison, pair, &theory, error));
    if (strcmp(comparison->report->names_sha256, fit->names_sha256) != 0) {
        return use_foreign(comparison, pair, error);
    }
    if (pair->parameter_count <= fit->parameter_count) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "the fit measured %llu parameters, and %zu are judged by it",
                          (unsigned long long)fit->parameter_count, pair->parameter_count);
}

/* Parameters that a floor of the fit lets pass, and how much further than a bound by layers. */
struct floors {
    const struct gradcmp_bound *bound;
    size_t count;
    double most; /* times the bound, at the most */
    const char *name;
};

static void count_floor(struct floors *floors, const struct gradcmp_parameter_report *parameter) {
    double ratio = parameter->bound / gcmp_bound_at(floors->bound, parameter->layer);
    if (!(ratio > ABOVE)) {
        return;
    }
    floors->count++;
    if (ratio > floors->most) {
        floors->most = ratio;
        floors->name = parameter->name;
    }
}

enum gradcmp_status gcmp_fit_note_floors(struct gcmp_comparison *comparison,
                                         struct gradcmp_pair_report *pair,
                                         struct gradcmp_error *error) {
    struct gradcmp_bound theory = pair->bound;
    gcmp_bound_init(&theory, comparison->options);
    struct floors by_floor = {.bound = &pair->bound}, looser = {.bound = &theory};
    for (size_t i = 0; i < pair->parameter_count && pair->bound.fit != NULL; i++) {
        size_t before = by_floor.count;
        if (pair->parameters[i].verdict >= GRADCMP_VERDICT_FAIL) {
            count_floor(&by_floor, &pair->parameters[i]);
        }
        if (by_floor.count > before) {
            count_floor(&looser, &pair->parameters[i]);
        }
    }
    if (by_floor.count > 0) {
        GCMP_TRY(gcmp_pair_note(
            comparison, pair, error,
            "%zu small %s judged by the floor that the fit measured, such as "
            "%.200s",
            by_floor.count, by_floor.count == 1 ? "gradient is" : "gradients are", by_floor.name));
    }
    if (looser.count == 0) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "the fit is looser than the theory: its floor of %zu %s is up to %.3g "
                          "times as wide as the theory's bound, most of all that of %.200s",
                          looser.count, looser.count == 1 ? "gradient" : "gradients", looser.most,
                          looser.name);
}
