/* The cause of a pair. */
#include "bounds/cause_pair.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bounds/figures.h"
#include "bounds/onset.h"

#define USUAL_CLIP     1.0
#define CLIPPED_SLACK  1e-3 /* of a norm that nothing but its value shows to be clipped */
#define CLIP_SLACK     0.01 /* global norms are not summed in the order of the run */
#define MOST_INHERITED 2.0  /* bounds, by what lies behind the experts in the backward pass */
#define MOST_MOVED     0.5  /* of an expert's gradient, by a few tokens */
#define LEAST_TOLD     0.75 /* of a router's difference, by rows of experts that fail */
#define LEAST_MISSING  0.1  /* of a gradient, by a sum over ranks that was left out */

static enum gcmp_cause_kind kind_of(const struct gradcmp_parameter_report *parameter) {
    return parameter->cause_count == 0 ? GCMP_CAUSE_NONE
                                       : gcmp_cause_find(parameter->causes[0].kind);
}

static bool is_failing(const struct gradcmp_parameter_report *parameter) {
    return gcmp_cause_is_wanted(parameter->verdict);
}

static bool has_cause(const struct gradcmp_parameter_report *parameter) {
    enum gcmp_cause_kind kind = kind_of(parameter);
    return kind != GCMP_CAUSE_NONE;
}

/* Parameters of one layer, counted. */
struct layer_count {
    size_t failing, replicated, replicated_failing, sharded_passing;
    double worst; /* relative error of what is replicated */
};

static struct layer_count count_layer(const struct gcmp_cause_scene *scene, int64_t layer) {
    struct layer_count count = {0};
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        const struct gcmp_cause_facts *facts = &scene->facts[i];
        if (parameter->layer != layer) {
            continue;
        }
        bool failing = is_failing(parameter);
        count.failing += failing;
        count.replicated += facts->replicated;
        count.replicated_failing += facts->replicated && failing;
        count.worst = facts->replicated ? fmax(count.worst, parameter->rel) : count.worst;
        count.sharded_passing += facts->sharded && parameter->verdict == GRADCMP_VERDICT_PASS;
    }
    return count;
}

static bool is_missing_reduction(const struct gcmp_cause_scene *scene) {
    size_t failing = 0;
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        if (!is_failing(parameter)) {
            continue;
        }
        if (!scene->facts[i].replicated || scene->facts[i].has_copies || has_cause(parameter) ||
            parameter->verdict == GRADCMP_VERDICT_SHAPE) {
            return false;
        }
        struct layer_count layer = count_layer(scene, parameter->layer);
        if (layer.sharded_passing == 0 || 2 * layer.replicated_failing < layer.replicated ||
            layer.worst < LEAST_MISSING) {
            return false;
        }
        failing++;
    }
    return scene->tp > 1 && (failing > 1 || (failing == 1 && scene->dp == 1));
}

/* Whether a parameter of the expert fails in the layer. */
static bool expert_fails(const struct gcmp_cause_scene *scene, int64_t layer, int64_t expert) {
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        if (parameter->layer == layer && scene->facts[i].expert == expert &&
            is_failing(parameter)) {
            return true;
        }
    }
    return false;
}

/* The router differs, mostly in what it learns of the experts that a token left or came to. */
static bool router_tells(const struct gcmp_cause_scene *scene, size_t index) {
    const struct gcmp_cause_facts *facts = &scene->facts[index];
    double all = 0.0, moved = 0.0;
    for (size_t row = 0; row < facts->expert_count; row++) {
        bool fails = expert_fails(scene, scene->pair->parameters[index].layer, (int64_t)row);
        all += facts->expert_rows[row];
        moved += fails ? facts->expert_rows[row] : 0.0;
    }
    return all > 0.0 && moved >= LEAST_TOLD * all;
}

static bool routing_allows(const struct gcmp_cause_scene *scene, size_t index) {
    const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[index];
    const struct gcmp_cause_facts *facts = &scene->facts[index];
    if (parameter->verdict != GRADCMP_VERDICT_FAIL && parameter->verdict != GRADCMP_VERDICT_SCALE) {
        return false;
    }
    if (has_cause(parameter) || parameter->rel > MOST_MOVED) {
        return false;
    }
    if (facts->expert >= 0) {
        return true;
    }
    if (facts->expert_rows != NULL) {
        return router_tells(scene, index);
    }
    return parameter->ndim_a == 1 || parameter->ratio <= MOST_INHERITED;
}

/* The layer's experts: numbers of those that fail and of those that do not. */
static void count_experts(const struct gcmp_cause_scene *scene, int64_t layer, size_t *failing,
                          size_t *passing) {
    *failing = *passing = 0;
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gcmp_cause_facts *facts = &scene->facts[i];
        bool seen = facts->expert < 0 || scene->pair->parameters[i].layer != layer;
        for (size_t j = 0; j < i && !seen; j++) {
            seen = scene->pair->parameters[j].layer == layer &&
                   scene->facts[j].expert == facts->expert;
        }
        if (!seen) {
            bool fails = expert_fails(scene, layer, facts->expert);
            *failing += fails;
            *passing += !fails;
        }
    }
}

static bool is_routing(const struct gcmp_cause_scene *scene) {
    int64_t onset = scene->pair->onset_layer;
    size_t failing, passing;
    bool is_told = false;
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        if (parameter->layer != onset || !is_failing(parameter)) {
            continue;
        }
        if (!routing_allows(scene, i)) {
            return false;
        }
        is_told = is_told || scene->facts[i].expert_rows != NULL;
    }
    count_experts(scene, onset, &failing, &passing);
    return onset >= 0 && is_told && failing >= 2 && passing >= failing;
}

static enum gradcmp_status add_cause(struct gradcmp_parameter_report *parameter,
                                     enum gcmp_cause_kind kind, const char *text,
                                     struct gcmp_arena *arena, struct gradcmp_error *error) {
    parameter->causes = gcmp_arena_alloc(arena, 1, sizeof *parameter->causes);
    if (parameter->causes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    parameter->causes[0] = (struct gradcmp_cause){gcmp_cause_name(kind), NAN, NAN, text};
    parameter->cause_count = 1;
    return GRADCMP_OK;
}

/* True for a cause that leaves all values of a right gradient in place, or elsewhere: what went on
 * to the layers below was right. */
static bool stays_local(enum gcmp_cause_kind kind) {
    return kind == GCMP_CAUSE_CAST || kind == GCMP_CAUSE_PARTIAL_SUM ||
           kind == GCMP_CAUSE_HALVES_SWAPPED || kind == GCMP_CAUSE_QKV_REGROUPED ||
           kind == GCMP_CAUSE_BLOCKS_PERMUTED || kind == GCMP_CAUSE_TRANSPOSED ||
           kind == GCMP_CAUSE_ROLL || kind == GCMP_CAUSE_LAYER_SLOT || kind == GCMP_CAUSE_PADDING;
}

/* The layer nearest to the loss with an error that others may have inherited; -1: none. */
static int64_t source_layer(const struct gradcmp_pair_report *pair) {
    int64_t layer = -1;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        bool stays = has_cause(parameter) && stays_local(kind_of(parameter));
        layer =
            is_failing(parameter) && !stays && parameter->layer > layer ? parameter->layer : layer;
    }
    return layer;
}

/* True for what an error in a layer nearer to the loss leads to: values that are off, in a
 * parameter that both sides have once. */
static bool may_be_inherited(const struct gradcmp_parameter_report *parameter) {
    return parameter->verdict == GRADCMP_VERDICT_FAIL ||
           parameter->verdict == GRADCMP_VERDICT_SCALE;
}

/* Causes that only the other parameters show. */
static enum gradcmp_status fill_rest(const struct gcmp_cause_scene *scene, struct gcmp_arena *arena,
                                     struct gradcmp_error *error) {
    int64_t onset = scene->pair->onset_layer, source = source_layer(scene->pair);
    bool unreduced = is_missing_reduction(scene), routed = !unreduced && is_routing(scene);
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        if (!is_failing(parameter) || has_cause(parameter)) {
            continue;
        }
        enum gcmp_cause_kind kind = GCMP_CAUSE_UNEXPLAINED;
        const char *text = "nothing tried explains it";
        if (unreduced) {
            kind = GCMP_CAUSE_MISSING_REDUCTION;
            text = "replicated over tensor parallel ranks, and only such parameters fail";
        } else if (routed && parameter->layer == onset) {
            kind = GCMP_CAUSE_ROUTING;
            text = "some experts differ by part of their tokens, the others agree; "
                   "--allow-routing lets that pass";
        } else if (parameter->layer < source && may_be_inherited(parameter)) {
            kind = GCMP_CAUSE_UPSTREAM;
            text = "a layer nearer to the loss fails";
        }
        GCMP_TRY(add_cause(parameter, kind, text, arena, error));
    }
    return GRADCMP_OK;
}

/* A cause of all gradients, told for each that has none; *found is NONE where there is none. */
static enum gradcmp_status fill_global(const struct gcmp_cause_scene *scene,
                                       struct gcmp_arena *arena, enum gcmp_cause_kind *found,
                                       struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = scene->pair;
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    double figure;
    *found = gcmp_cause_global(pair, &scene->global, &scratch, &figure);
    gcmp_arena_free(&scratch);
    if (*found == GCMP_CAUSE_NONE) {
        return GRADCMP_OK;
    }
    const char *text =
        *found == GCMP_CAUSE_DIFFERENT_START ? scene->start_text
        : *found == GCMP_CAUSE_DIFFERENT_DATA
            ? gcmp_arena_format(arena,
                                "the weights that both sides started from agree, "
                                "and no gradient does: median cosine %.3f",
                                figure)
            : gcmp_arena_format(arena,
                                "one microbatch of %llu, in all gradients: %.3f "
                                "times the baseline, and a rest",
                                (unsigned long long)scene->global.microbatches, figure);
    if (text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (is_failing(&pair->parameters[i]) && !has_cause(&pair->parameters[i])) {
            GCMP_TRY(add_cause(&pair->parameters[i], *found, text, arena, error));
        }
    }
    pair->onset_layer = pair->jump_layer = -1;
    const char *origin = gcmp_cause_origin(*found);
    pair->cause = (struct gradcmp_cause){gcmp_cause_name(*found), NAN, NAN,
                                         gcmp_arena_format(arena, "%s (%s)", text, origin)};
    if (pair->cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* The parameter whose cause is the pair's, or NULL. A factor inside the bound is not told while
 * something next to it fails without a cause. */
static const struct gradcmp_parameter_report *choose(const struct gradcmp_pair_report *pair) {
    const struct gradcmp_parameter_report *best = NULL, *unexplained = NULL;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        bool counts = pair->onset_layer >= 0 ? parameter->layer == pair->onset_layer
                                             : parameter->verdict == GRADCMP_VERDICT_SHAPE;
        if (!counts || !is_failing(parameter)) {
            continue;
        }
        if (best == NULL || kind_of(parameter) < kind_of(best)) {
            best = parameter;
        }
        if (kind_of(parameter) == GCMP_CAUSE_UNEXPLAINED) {
            unexplained = parameter;
        }
    }
    bool weak = best != NULL && best->verdict == GRADCMP_VERDICT_SCALE &&
                kind_of(best) == GCMP_CAUSE_SCALE && unexplained != NULL;
    return weak ? unexplained : best;
}

/* Parameters that share a cause. */
struct group {
    size_t count, experts, vectors;
    int64_t low, high;
    double factors, a2; /* sums over the group, for its factor */
    double tolerance, residual;
    bool one_factor;
};

static bool is_of_group(const struct gradcmp_parameter_report *parameter,
                        const struct gradcmp_cause *cause) {
    if (!is_failing(parameter) || parameter->cause_count == 0 ||
        strcmp(parameter->causes[0].kind, cause->kind) != 0) {
        return false;
    }
    double factor = parameter->causes[0].factor;
    if (isnan(cause->factor)) {
        return strcmp(parameter->causes[0].text, cause->text) == 0;
    }
    return fabs(factor - cause->factor) <=
           2.0 * parameter->alpha_tolerance * fmax(1.0, fabs(cause->factor));
}

static struct group find_group(const struct gcmp_cause_scene *scene,
                               const struct gradcmp_cause *cause) {
    struct group group = {.low = INT64_MAX, .high = -1, .one_factor = true, .residual = NAN};
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        if (!is_of_group(parameter, cause)) {
            continue;
        }
        group.count++;
        group.experts += scene->facts[i].expert >= 0;
        group.vectors += parameter->ndim_a == 1;
        group.low = parameter->layer < group.low ? parameter->layer : group.low;
        group.high = parameter->layer > group.high ? parameter->layer : group.high;
        group.one_factor = group.one_factor &&
                           (isnan(cause->factor) || parameter->causes[0].factor == cause->factor);
        group.residual = fmax(group.residual, parameter->causes[0].residual);
        if (gradcmp_difference_log2(parameter) == 0.0) {
            group.factors += parameter->causes[0].factor * parameter->tally.a2;
            group.a2 += parameter->tally.a2;
        }
        group.tolerance = fmax(group.tolerance, parameter->alpha_tolerance);
    }
    return group;
}

static const char *describe_layers(const struct group *group, struct gcmp_arena *arena) {
    return group->low == group->high ? gcmp_arena_format(arena, "layer %" PRId64, group->low)
                                     : gcmp_arena_format(arena, "layers %" PRId64 " to %" PRId64,
                                                         group->low, group->high);
}

static const char *describe(const struct gradcmp_parameter_report *chosen,
                            const struct group *group, const struct gradcmp_cause *cause,
                            struct gcmp_arena *arena) {
    const char *origin = gcmp_cause_origin(gcmp_cause_find(cause->kind));
    const char *open = origin[0] == '\0' ? "" : " (", *close = origin[0] == '\0' ? "" : ")";
    if (group->count <= 1) {
        return gcmp_arena_format(arena, "%s: %s%s%s%s", chosen->name, cause->text, open, origin,
                                 close);
    }
    const char *layers = describe_layers(group, arena);
    const char *what = group->experts == group->count   ? "expert parameters"
                       : group->vectors == group->count ? "norm or bias parameters"
                                                        : "parameters";
    return layers == NULL ? NULL
                          : gcmp_arena_format(arena, "%zu %s of %s: %s%s%s%s", group->count, what,
                                              layers, cause->text, open, origin, close);
}

/* The factor of a group: a simple number where at least half of its parameters have that. */
static double group_factor(const struct gcmp_cause_scene *scene, const struct gradcmp_cause *cause,
                           const struct group *group) {
    double alpha = group->factors / group->a2;
    double simple = gcmp_cause_snap(alpha, group->tolerance);
    size_t count = 0;
    for (size_t i = 0; i < scene->pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &scene->pair->parameters[i];
        count += is_of_group(parameter, cause) && parameter->causes[0].factor == simple;
    }
    return 2 * count >= group->count ? simple : alpha;
}

static enum gradcmp_status tell_group(const struct gcmp_cause_scene *scene,
                                      const struct gradcmp_parameter_report *chosen,
                                      struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gradcmp_cause cause = chosen->causes[0];
    struct group group = find_group(scene, &cause);
    if (!group.one_factor && group.a2 > 0.0) {
        cause.factor = group_factor(scene, &chosen->causes[0], &group);
        cause.text = gcmp_cause_factor_text(cause.factor, arena);
    }
    cause.residual = group.residual;
    cause.text = cause.text == NULL ? NULL : describe(chosen, &group, &cause, arena);
    if (cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    scene->pair->cause = cause;
    return GRADCMP_OK;
}

/* What the parameters keep of the difference once the factor is divided out, all together. */
static double common_residual(const struct gradcmp_pair_report *pair) {
    struct gcmp_square_sum rest = {0}, norm = {0};
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (gcmp_has_alpha(parameter)) {
            double rel = gcmp_rest_of(parameter, pair->common_factor).rel;
            gcmp_square_add(&rest, rel * rel * parameter->tally.a2, parameter->scale_a_log2);
            gcmp_square_add(&norm, parameter->tally.a2, parameter->scale_a_log2);
        }
    }
    return gcmp_square_root(&rest) / gcmp_square_root(&norm);
}

/* True where a side's gradients have the norm that a clipping leaves; *norm is theirs. */
static bool looks_clipped(const struct gcmp_clip *clip, double state_norm, double *to,
                          double *norm) {
    *to = isnan(clip->norm) ? USUAL_CLIP : clip->norm;
    *norm = state_norm / clip->portion;
    return *to > 0.0 && fabs(*norm / *to - 1.0) <= CLIPPED_SLACK;
}

/* Say that one side alone looks clipped; "" where none or both do. NULL without memory. */
static const char *describe_clipping(const struct gcmp_cause_scene *scene,
                                     struct gcmp_arena *arena) {
    double to[2], norm[2];
    bool a = looks_clipped(&scene->clips[0], scene->pair->norm_a, &to[0], &norm[0]);
    bool b = looks_clipped(&scene->clips[1], scene->pair->norm_b, &to[1], &norm[1]);
    if (a == b) {
        return "";
    }
    return gcmp_arena_format(arena,
                             "; the %s's gradients have a global norm of %.4g, as after clipping "
                             "to %g%s",
                             a ? "baseline" : "candidate", norm[b], to[b],
                             isnan(scene->clips[b].norm) ? " (its files state no clipping; 1 is "
                                                           "DeepSpeed's and transformers' default)"
                                                         : "");
}

static enum gradcmp_status tell_common(const struct gcmp_cause_scene *scene,
                                       struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = scene->pair;
    double factor = gcmp_cause_snap(pair->common_factor, pair->bound.eps / 2.0);
    const char *clipping = describe_clipping(scene, arena);
    char *text =
        clipping == NULL
            ? NULL
            : gcmp_arena_format(
                  arena,
                  "all gradients are %.6g times the baseline's, global norms %.6g and %.6g (%s)%s",
                  factor, pair->norm_a, pair->norm_b, gcmp_cause_origin(GCMP_CAUSE_COMMON_SCALE),
                  clipping);
    if (text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    pair->cause = (struct gradcmp_cause){gcmp_cause_name(GCMP_CAUSE_COMMON_SCALE), factor,
                                         common_residual(pair), text};
    return GRADCMP_OK;
}

/* True where a flipped choice of experts explains every finding of the pair. */
static bool is_all_routing(const struct gradcmp_pair_report *pair) {
    bool routed = false;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->verdict == GRADCMP_VERDICT_PASS ||
            parameter->verdict == GRADCMP_VERDICT_UNJUDGED) {
            continue;
        }
        enum gcmp_cause_kind kind = kind_of(parameter);
        bool explained = may_be_inherited(parameter) &&
                         (kind == GCMP_CAUSE_ROUTING ||
                          (kind == GCMP_CAUSE_UPSTREAM && parameter->rel <= MOST_MOVED));
        if (!explained) {
            return false;
        }
        routed = routed || kind == GCMP_CAUSE_ROUTING;
    }
    return routed;
}

/* Both sides are clipped to one global norm, and something fails beside the common factor: the
 * factor is what clipping makes of the other gradients. */
static bool is_clipped(const struct gcmp_cause_scene *scene) {
    const struct gradcmp_pair_report *pair = scene->pair;
    return scene->clip > 0.0 && pair->onset_layer >= 0 &&
           fabs(pair->norm_a / scene->clip - 1.0) <= CLIP_SLACK &&
           fabs(pair->norm_b / scene->clip - 1.0) <= CLIP_SLACK;
}

static enum gradcmp_status tell_clipped(const struct gcmp_cause_scene *scene,
                                        struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gradcmp_cause *cause = &scene->pair->cause;
    if (cause->text != NULL) {
        cause->text = gcmp_arena_format(
            arena,
            "%s; both sides are clipped to a global norm of %g, so all gradients are %.4g "
            "times the baseline's",
            cause->text, scene->clip, scene->pair->common_factor);
        if (cause->text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status describe_spread(const struct gcmp_cause_scene *scene,
                                           struct gradcmp_error *error) {
    size_t count = scene->pair->parameter_count;
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    enum gradcmp_class *classes = gcmp_arena_alloc(&scratch, count + 1, sizeof *classes);
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    if (classes != NULL) {
        for (size_t i = 0; i < count; i++) {
            classes[i] = scene->facts[i].sort;
        }
        status = gcmp_onset_describe(scene->pair, classes, &scratch, error);
    }
    gcmp_arena_free(&scratch);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    return status;
}

enum gradcmp_status gcmp_cause_conclude(const struct gcmp_cause_scene *scene,
                                        struct gcmp_arena *arena, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = scene->pair;
    pair->cause = (struct gradcmp_cause){NULL, NAN, NAN, NULL};
    enum gcmp_cause_kind global;
    GCMP_TRY(fill_global(scene, arena, &global, error));
    if (global != GCMP_CAUSE_NONE) {
        return describe_spread(scene, error);
    }
    GCMP_TRY(fill_rest(scene, arena, error));
    GCMP_TRY(describe_spread(scene, error));
    if (!isnan(pair->common_factor) && !is_clipped(scene)) {
        return tell_common(scene, arena, error);
    }
    const struct gradcmp_parameter_report *chosen = choose(pair);
    if (scene->allow_routing && is_all_routing(pair)) {
        pair->outcome = GRADCMP_OUTCOME_CONSISTENT;
    }
    GCMP_TRY(chosen == NULL ? GRADCMP_OK : tell_group(scene, chosen, arena, error));
    return isnan(pair->common_factor) ? GRADCMP_OK : tell_clipped(scene, arena, error);
}
