/* Kinds of causes, the rule of a claim, and what a parameter's own sums show. */
#include "bounds/cause.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/dtype.h"
#include "bounds/bounds.h"
#include "bounds/figures.h"

#define CLEARLY_BELOW 0.25
#define MOST_NOISE    3.0 /* times the median of what passes */
#define MOST_ROUGH    1.4 /* times what the best factor leaves */

enum { FEW_ELEMS = 16 };

static const struct {
    const char *name, *origin;
} kinds[] = {
    [GCMP_CAUSE_NONE] = {"none", ""},
    [GCMP_CAUSE_COMMON_SCALE] = {"common_scale",
                                 "usually the mean over ranks or tokens, a loss scale, or clipping "
                                 "by a wrong gradient norm"},
    [GCMP_CAUSE_DIFFERENT_START] = {"different_start",
                                    "usually another seed, another way to initialise, or another "
                                    "checkpoint to start from; compare runs from one start"},
    [GCMP_CAUSE_DIFFERENT_DATA] = {"different_data",
                                   "usually other samples, another order of them, or another "
                                   "global batch; compare runs on the same data"},
    [GCMP_CAUSE_LAST_MICROBATCH] = {"last_microbatch",
                                    "usually gradients overwritten where they were to be added up "
                                    "over microbatches"},
    [GCMP_CAUSE_NONFINITE] = {"nonfinite",
                              "usually an overflow, a division by zero, or memory that was never "
                              "written"},
    [GCMP_CAUSE_ZERO] = {"zero",
                         "usually a gradient that was never accumulated, or a buffer zeroed after "
                         "it"},
    [GCMP_CAUSE_CAST] = {"cast", "the values were rounded to a narrower type on the way"},
    [GCMP_CAUSE_PARTIAL_SUM] = {"partial_sum",
                                "usually a sum over tensor or sequence parallel ranks, or over "
                                "stages that tie a weight, that was left out, or a mean over data "
                                "parallel ones"},
    [GCMP_CAUSE_SIGN] = {"sign", "usually a sign lost in a hand-written backward pass"},
    [GCMP_CAUSE_SCALE] = {"scale",
                          "usually a reduction done twice or left out, or a mean in place of a sum "
                          "for this group of parameters"},
    [GCMP_CAUSE_HALVES_SWAPPED] = {"halves_swapped",
                                   "usually gate and up projection stored in the other order"},
    [GCMP_CAUSE_BLOCKS_PERMUTED] = {"blocks_permuted",
                                    "usually shards put together in the wrong order of ranks"},
    [GCMP_CAUSE_BLOCK_REPEATED] = {"block_repeated",
                                   "usually one rank's shard written in the place of another's"},
    [GCMP_CAUSE_QKV_REGROUPED] = {"qkv_regrouped",
                                  "usually query, key and value rows kept by kind on one side and "
                                  "by group on the other"},
    [GCMP_CAUSE_TRANSPOSED] = {"transposed", "usually a weight kept as [in, out]"},
    [GCMP_CAUSE_ROLL] = {"roll", "usually an offset into a flat buffer or a shard that is off"},
    [GCMP_CAUSE_LAYER_SLOT] =
        {"layer_slot", "usually layers counted within a pipeline stage, or experts within a "
                       "rank"},
    [GCMP_CAUSE_PADDING] = {"padding", "rows of padding were compared"},
    [GCMP_CAUSE_ONE_SHARD] = {"one_shard",
                              "usually a shard of another step, of another run, or never reduced"},
    [GCMP_CAUSE_MISSING_REDUCTION] = {"missing_reduction",
                                      "usually the sum over tensor parallel ranks of gradients of "
                                      "replicated parameters left out"},
    [GCMP_CAUSE_ROUTING] = {"routing",
                            "a choice of experts that flips under rounding moves whole tokens; "
                            "compare runs with the same choices to be sure"},
    [GCMP_CAUSE_UPSTREAM] = {"upstream", "inherited from a layer nearer to the loss"},
    [GCMP_CAUSE_UNEXPLAINED] = {"unexplained", ""},
};

const char *gcmp_cause_name(enum gcmp_cause_kind kind) {
    return kinds[kind].name;
}

enum gcmp_cause_kind gcmp_cause_find(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return (enum gcmp_cause_kind)i;
        }
    }
    return GCMP_CAUSE_NONE;
}

const char *gcmp_cause_origin(enum gcmp_cause_kind kind) {
    return kinds[kind].origin;
}

/* With e = b - a: sum (b - c a)^2 = D - 2 (c - 1) P + (c - 1)^2 A, whose terms are as large as the
 * result where b is near to c a only if c is far from 1. The other form, A (rho^2 + (alpha -
 * c)^2), has rho^2 from a difference; figures.c takes it where the candidate is the smaller side.
 */
double gcmp_cause_residual(const struct gradcmp_tally *tally, double factor) {
    struct gradcmp_parameter_report parameter = {
        .in_a = true, .in_b = true, .shapes_agree = true, .tally = *tally};
    parameter.tally.nonfinite_any = 0;
    gcmp_figures_fill(&parameter);
    return gcmp_rest_of(&parameter, factor).rel;
}

bool gcmp_cause_holds(double residual, double bound, double before) {
    return residual <= bound && residual < CLEARLY_BELOW * before;
}

/* p / q as far as one meets them: world sizes, top-k, averages over microbatches. */
static const struct {
    double p, q;
} simple[] = {{1, 1},  {2, 1},  {3, 1},  {4, 1},  {5, 1},   {6, 1},   {7, 1}, {8, 1},
              {12, 1}, {16, 1}, {32, 1}, {64, 1}, {128, 1}, {256, 1}, {3, 2}, {4, 3}};

double gcmp_cause_snap(double factor, double tolerance) {
    double best = factor, least = tolerance;
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
        const double values[] = {simple[i].p / simple[i].q, simple[i].q / simple[i].p};
        for (size_t v = 0; v < 2; v++) {
            double value = copysign(values[v], factor);
            double off = fabs(factor / value - 1.0);
            if (value != 1.0 && off <= least) {
                best = value;
                least = off;
            }
        }
    }
    return best;
}

bool gcmp_cause_is_wanted(enum gradcmp_verdict verdict) {
    return verdict == GRADCMP_VERDICT_FAIL || verdict == GRADCMP_VERDICT_SCALE ||
           verdict == GRADCMP_VERDICT_NONFINITE || verdict == GRADCMP_VERDICT_CONFLICT ||
           verdict == GRADCMP_VERDICT_SHAPE;
}

const char *gcmp_cause_factor_text(double factor, struct gcmp_arena *arena) {
    if (factor == 2.0) {
        return gcmp_arena_dup(arena, "twice the baseline");
    }
    if (factor == 0.5) {
        return gcmp_arena_dup(arena, "half the baseline");
    }
    return gcmp_arena_format(arena, "%.*g times the baseline", gcmp_factor_digits(factor), factor);
}

const char *gcmp_cause_cast_text(bool in_b, enum gradcmp_dtype dtype, struct gcmp_arena *arena) {
    return gcmp_arena_format(arena, "the %s is the other side rounded to %s",
                             in_b ? "candidate" : "baseline", gradcmp_dtype_name(dtype));
}

static enum gradcmp_status claim(struct gradcmp_cause *out, struct gradcmp_cause cause,
                                 struct gradcmp_error *error) {
    if (cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *out = cause;
    return GRADCMP_OK;
}

/* b is a, rounded to a narrower type: equal bits in it, and not of one type. */
static bool is_cast(const struct gradcmp_parameter_report *parameter) {
    return parameter->dtype_a != parameter->dtype_b && parameter->tally.elems > 0 &&
           parameter->tally.equal_bits == parameter->tally.elems;
}

/* A factor fits: it is off beyond its tolerance, and what it leaves is noise. Under verdict `scale`
 * the difference is inside the bound; that what is left is noise shows in that parameters that pass
 * have as much of it: something added to a gradient changes alpha too. */
static bool is_scaled(const struct gradcmp_parameter_report *parameter, double factor,
                      const struct gcmp_cause_noise *noise, double residual) {
    double before = gcmp_rest_of(parameter, noise->common).rel;
    bool off = fabs(factor - 1.0) > parameter->alpha_tolerance;
    bool proved = gcmp_cause_holds(residual, parameter->bound, before);
    if (parameter->verdict == GRADCMP_VERDICT_SCALE && !proved) {
        proved = residual <= parameter->bound &&
                 (isnan(noise->rho) || residual <= fmax(MOST_NOISE * noise->rho, noise->eps / 2.0));
    }
    return gcmp_finite_elems(parameter) >= FEW_ELEMS && off && proved;
}

/* A simple number near to alpha is meant, unless it leaves clearly more than alpha does. */
static double choose_factor(const struct gradcmp_parameter_report *parameter,
                            const struct gcmp_cause_noise *noise) {
    double alpha = gcmp_factor_of(parameter) / noise->common;
    double simple_one = gcmp_cause_snap(alpha, parameter->alpha_tolerance);
    double rest = gcmp_rest_of(parameter, simple_one * noise->common).rel;
    double least = gcmp_rest_of(parameter, alpha * noise->common).rel;
    bool is_step = fabs(alpha / simple_one - 1.0) <= noise->unit / 2.0;
    return is_step || rest <= MOST_ROUGH * least ? simple_one : alpha;
}

/* The factor is told beside what all parameters have in common. */
static enum gradcmp_status derive_factor(const struct gradcmp_parameter_report *parameter,
                                         const struct gcmp_cause_noise *noise,
                                         struct gcmp_arena *arena, struct gradcmp_cause *out,
                                         struct gradcmp_error *error) {
    double factor = choose_factor(parameter, noise);
    double residual = gcmp_rest_of(parameter, factor * noise->common).rel;
    if (!is_scaled(parameter, factor, noise, residual)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_SCALE), factor, residual, NULL};
    if (factor == -1.0) {
        cause.kind = gcmp_cause_name(GCMP_CAUSE_SIGN);
        cause.text = gcmp_arena_dup(arena, "the baseline with the other sign");
    } else {
        cause.text = gcmp_cause_factor_text(factor, arena);
    }
    if (noise->common != 1.0 && cause.text != NULL) {
        cause.text = gcmp_arena_format(arena, "%s, beside the common factor", cause.text);
    }
    return claim(out, cause, error);
}

static enum gradcmp_status derive_nonfinite(const struct gradcmp_parameter_report *parameter,
                                            struct gcmp_arena *arena, struct gradcmp_cause *out,
                                            struct gradcmp_error *error) {
    const struct gradcmp_tally *tally = &parameter->tally;
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_NONFINITE), NAN, NAN, NULL};
    if (parameter->copies_conflict) {
        cause.text = gcmp_arena_dup(arena, parameter->copies_note);
        return claim(out, cause, error);
    }
    cause.text = gcmp_arena_format(
        arena, "NaN or Inf in %llu of %llu elements of the candidate, %llu of the baseline",
        (unsigned long long)tally->nonfinite_b, (unsigned long long)tally->elems,
        (unsigned long long)tally->nonfinite_a);
    return claim(out, cause, error);
}

static enum gradcmp_status derive_zero(const struct gradcmp_parameter_report *parameter,
                                       struct gcmp_arena *arena, struct gradcmp_cause *out,
                                       struct gradcmp_error *error) {
    bool zero_b = parameter->tally.max_b == 0.0;
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_ZERO), zero_b ? 0.0 : NAN,
                                  zero_b ? 0.0 : NAN, NULL};
    cause.text =
        gcmp_arena_format(arena, "all zero in the %s alone", zero_b ? "candidate" : "baseline");
    return claim(out, cause, error);
}

static enum gradcmp_status derive_cast(const struct gradcmp_parameter_report *parameter,
                                       struct gcmp_arena *arena, struct gradcmp_cause *out,
                                       struct gradcmp_error *error) {
    enum gradcmp_dtype a = (enum gradcmp_dtype)parameter->dtype_a;
    enum gradcmp_dtype b = (enum gradcmp_dtype)parameter->dtype_b;
    bool narrower_b = gcmp_dtype_precision(b) < gcmp_dtype_precision(a);
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_CAST), NAN, 0.0, NULL};
    cause.text = gcmp_cause_cast_text(narrower_b, narrower_b ? b : a, arena);
    return claim(out, cause, error);
}

struct gcmp_cause_noise gcmp_cause_noise_of(const struct gradcmp_pair_report *pair,
                                            struct gcmp_sample *samples) {
    struct gcmp_cause_noise noise = {isnan(pair->common_factor) ? 1.0 : pair->common_factor, NAN,
                                     pair->bound.eps, gcmp_noise_unit(&pair->bound)};
    size_t count = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->verdict == GRADCMP_VERDICT_PASS && gcmp_has_alpha(parameter)) {
            double rho = gcmp_rest_of(parameter, noise.common).rho;
            samples[count++] = (struct gcmp_sample){rho, 1.0};
        }
    }
    if (count > 0) {
        noise.rho = gcmp_median(samples, count, 0.0);
    }
    return noise;
}

enum gradcmp_status gcmp_cause_derive(const struct gradcmp_parameter_report *parameter,
                                      const struct gcmp_cause_noise *noise,
                                      struct gcmp_arena *arena, struct gradcmp_cause *out,
                                      struct gradcmp_error *error) {
    const struct gradcmp_tally *tally = &parameter->tally;
    *out = (struct gradcmp_cause){NULL, NAN, NAN, NULL};
    if (!gcmp_is_comparable(parameter) || !gcmp_cause_is_wanted(parameter->verdict) ||
        (parameter->copies_conflict && !parameter->copies_nonfinite)) {
        return GRADCMP_OK;
    }
    if (parameter->verdict == GRADCMP_VERDICT_NONFINITE || parameter->copies_nonfinite) {
        return derive_nonfinite(parameter, arena, out, error);
    }
    if ((tally->max_a == 0.0) != (tally->max_b == 0.0)) {
        return derive_zero(parameter, arena, out, error);
    }
    if (is_cast(parameter)) {
        return derive_cast(parameter, arena, out, error);
    }
    return isfinite(parameter->alpha) && parameter->alpha != 0.0
               ? derive_factor(parameter, noise, arena, out, error)
               : GRADCMP_OK;
}
