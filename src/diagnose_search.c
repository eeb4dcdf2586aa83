/* The search for the cause of one failing parameter. */
#include "diagnose_search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "bounds/bounds.h"
#include "bounds/cause_shards.h"
#include "unshard/reslab.h"

enum {
    SAMPLE_ELEMS = 1 << 15, /* of a sample along an axis */
    SPOT_ELEMS = 1 << 11,   /* of a sample that is compared as it is */
    MOST_SHARDS = 64,
    MOST_COPIES = 16,
    MOST_LAYERS = 512,
    MOST_ROWS = 1 << 22 /* an axis longer than this is not sampled */
};

#define UNLIKE_COSINE 0.9 /* above it, no other layer and no transpose is looked for */
#define SAMPLE_SLACK  2.0 /* a sample is noisier than the whole */

static struct gradcmp_pair_report *pair_of(const struct gcmp_search_scene *scene) {
    return &scene->comparison->report->pairs[scene->pair];
}

static struct gradcmp_parameter_report *report_of(const struct gcmp_search *search,
                                                  const struct gcmp_search_scene *scene) {
    return &pair_of(scene)->parameters[search->index];
}

static const struct gradcmp_catalogue *catalogue_a(const struct gcmp_search_scene *scene) {
    return &scene->comparison->baseline.checkpoint->catalogue;
}

static const struct gradcmp_catalogue *catalogue_b(const struct gcmp_search_scene *scene) {
    return &scene->comparison->candidates[scene->pair].checkpoint->catalogue;
}

static struct gcmp_side side_a(const struct gcmp_search_scene *scene,
                               const struct gradcmp_parameter *parameter) {
    struct gcmp_side side = {.catalogue = catalogue_a(scene), .parameter = parameter};
    return side;
}

static struct gcmp_side side_b(const struct gcmp_search_scene *scene,
                               const struct gradcmp_parameter *parameter, uint32_t copy) {
    struct gcmp_side side = {.catalogue = catalogue_b(scene),
                             .parameter = parameter,
                             .copy = copy,
                             .owner = (uint32_t)scene->pair + 1};
    return side;
}

static struct gcmp_axis axis_of(const struct gradcmp_parameter *parameter, unsigned axis) {
    return (struct gcmp_axis){parameter->shape, parameter->ndim, axis};
}

/* --- the first step --- */

/* Only the rows of a padded vocabulary that are compared. */
static enum gradcmp_status cut_rows(const struct gcmp_search_scene *scene, uint64_t rows,
                                    const struct gradcmp_parameter **parameter,
                                    struct gradcmp_error *error) {
    if (rows == 0 || rows >= (*parameter)->shape[0]) {
        return GRADCMP_OK;
    }
    uint64_t start[GRADCMP_MAX_NDIM] = {0}, extent[GRADCMP_MAX_NDIM] = {0};
    memcpy(extent, (*parameter)->shape, (*parameter)->ndim * sizeof *extent);
    extent[0] = rows;
    struct gradcmp_parameter *cut;
    GCMP_TRY(gcmp_reslab_box(*parameter, start, extent, scene->scratch, &cut, error));
    *parameter = cut;
    return GRADCMP_OK;
}

static enum gradcmp_status read_sample(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene, unsigned axis,
                                       struct gradcmp_error *error) {
    struct gcmp_axis along = axis_of(search->b, axis);
    uint64_t rows = search->b->shape[axis];
    if (rows < 2 || rows > MOST_ROWS) {
        return GRADCMP_OK;
    }
    struct gradcmp_moves moves;
    if (!gcmp_moves_sample(&along, SAMPLE_ELEMS, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_reslab_moves(search->a, &moves, scene->scratch, &a, error));
    GCMP_TRY(gcmp_reslab_moves(search->b, &moves, scene->scratch, &b, error));
    struct gcmp_search_sample *sample = &search->samples[axis];
    sample->read_a = gcmp_arena_alloc(scene->scratch, a->elem_count, sizeof(double));
    sample->read_b = gcmp_arena_alloc(scene->scratch, b->elem_count, sizeof(double));
    if (sample->read_a == NULL || sample->read_b == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    sample->shape = a->shape;
    sample->lines.rows = rows;
    sample->lines.columns = a->elem_count / rows;
    int scale = (int)report_of(search, scene)->scale_a_log2;
    GCMP_TRY(gcmp_probes_read(scene->probes, side_a(scene, a), scale, sample->read_a, error));
    return gcmp_probes_read(scene->probes, side_b(scene, b, 0), scale, sample->read_b, error);
}

/* Add a guess; its sample is compared where `spot` says so, else it is taken as found. */
static enum gradcmp_status add_guess(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene, struct gcmp_guess guess,
                                     bool spot, struct gradcmp_error *error) {
    struct gcmp_guess *kept = gcmp_arena_alloc(scene->scratch, 1, sizeof *kept);
    if (kept == NULL || guess.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *kept = guess;
    kept->probe = GCMP_NO_PROBE;
    *search->last = kept;
    search->last = &kept->next;
    if (!spot) {
        return GRADCMP_OK;
    }
    struct gcmp_axis along = axis_of(search->b, 0);
    struct gradcmp_moves moves;
    if (!gcmp_moves_sample(&along, SPOT_ELEMS, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_reslab_moves(guess.a, &moves, scene->scratch, &a, error));
    GCMP_TRY(gcmp_reslab_moves(search->b, &moves, scene->scratch, &b, error));
    return gcmp_probes_compare(scene->probes, side_a(scene, a), side_b(scene, b, 0),
                               (int)report_of(search, scene)->scale_a_log2, &kept->probe, error);
}

static enum gradcmp_status guess_transposed(struct gcmp_search *search,
                                            const struct gcmp_search_scene *scene,
                                            struct gradcmp_error *error) {
    const struct gradcmp_parameter *a = search->a, *b = search->b;
    if (a->ndim != 2 || b->ndim != 2 || a->shape[0] != b->shape[1] || a->shape[1] != b->shape[0]) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *turned;
    GCMP_TRY(gcmp_reslab_transpose(a, scene->scratch, &turned, error));
    struct gcmp_guess guess = {.kind = GCMP_CAUSE_TRANSPOSED,
                               .a = turned,
                               .text = "the baseline with its two axes exchanged"};
    return add_guess(search, scene, guess, true, error);
}

static uint64_t setting_of(const struct gcmp_search_scene *scene, const char *name) {
    const struct gradcmp_catalogue *sides[] = {catalogue_b(scene), catalogue_a(scene)};
    for (size_t i = 0; i < 2; i++) {
        const struct gradcmp_setting *setting = gcmp_catalogue_setting(sides[i], name);
        if (setting != NULL && setting->kind == GRADCMP_SETTING_INT && setting->integer > 0) {
            return (uint64_t)setting->integer;
        }
    }
    return 0;
}

static enum gradcmp_status guess_qkv_once(struct gcmp_search *search,
                                          const struct gcmp_search_scene *scene,
                                          const struct gcmp_qkv *qkv, struct gradcmp_error *error) {
    struct gcmp_axis along = axis_of(search->b, 0);
    struct gradcmp_moves moves;
    if (!gcmp_qkv_fits(&along, qkv)) {
        return GRADCMP_OK;
    }
    if (!gcmp_moves_qkv(&along, qkv, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_parameter *moved;
    GCMP_TRY(gcmp_reslab_moves(search->a, &moves, scene->scratch, &moved, error));
    struct gcmp_guess guess = {.kind = GCMP_CAUSE_QKV_REGROUPED, .a = moved};
    guess.text = gcmp_arena_format(
        scene->comparison->report->arena,
        "query, key and value rows of %llu heads in %llu groups are in the order of %s%s",
        (unsigned long long)qkv->heads, (unsigned long long)qkv->groups,
        qkv->to_kinds ? "kinds, the baseline's in that of groups"
                      : "groups, the baseline's in that of kinds",
        qkv->ranks > 1 ? ", in each rank's block" : "");
    return add_guess(search, scene, guess, true, error);
}

static enum gradcmp_status guess_qkv(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene,
                                     struct gradcmp_error *error) {
    struct gcmp_qkv qkv = {.heads = setting_of(scene, "num_attention_heads"),
                           .groups = setting_of(scene, "num_query_groups"),
                           .head_dim = setting_of(scene, "kv_channels"),
                           .ranks = 1};
    uint64_t hidden = setting_of(scene, "hidden_size");
    if (qkv.groups == 0) {
        qkv.groups = qkv.heads;
    }
    if (qkv.head_dim == 0 && qkv.heads > 0) {
        qkv.head_dim = hidden / qkv.heads;
    }
    const uint64_t ranks[] = {1, catalogue_b(scene)->parallel.tp, catalogue_a(scene)->parallel.tp};
    for (size_t r = 0; r < 3; r++) {
        bool seen = (r > 0 && ranks[r] <= 1) || (r == 2 && ranks[2] == ranks[1]);
        for (int direction = 0; direction < 2 && !seen; direction++) {
            qkv.ranks = ranks[r];
            qkv.to_kinds = direction == 0;
            GCMP_TRY(guess_qkv_once(search, scene, &qkv, error));
        }
    }
    return GRADCMP_OK;
}

bool gcmp_name_number(const char *name, size_t *start, size_t *length) {
    for (size_t at = 0; name[at] != '\0';) {
        size_t part = strcspn(name + at, "."), digits = strspn(name + at, "0123456789");
        if (part > 0 && digits == part) {
            *start = at;
            *length = part;
            return true;
        }
        at += part + (name[at + part] == '.');
    }
    return false;
}

/* True where two names are the same but for their first number. */
static bool is_same_kind(const char *left, const char *right) {
    size_t left_at, left_length, right_at, right_length;
    return gcmp_name_number(left, &left_at, &left_length) &&
           gcmp_name_number(right, &right_at, &right_length) && left_at == right_at &&
           strncmp(left, right, left_at) == 0 &&
           strcmp(left + left_at + left_length, right + right_at + right_length) == 0;
}

static enum gradcmp_status guess_slots(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    const struct gradcmp_model *model = scene->comparison->baseline.model;
    size_t tried = 0;
    for (size_t i = 0; i < model->count && tried < MOST_LAYERS; i++) {
        const struct gradcmp_parameter *other = &model->parameters[i];
        if (strcmp(other->name, search->a->name) == 0 || other->ndim != search->b->ndim ||
            memcmp(other->shape, search->b->shape, other->ndim * sizeof *other->shape) != 0 ||
            !is_same_kind(other->name, search->a->name)) {
            continue;
        }
        tried++;
        struct gcmp_guess guess = {.kind = GCMP_CAUSE_LAYER_SLOT, .a = other};
        guess.text = gcmp_arena_format(scene->comparison->report->arena,
                                       "layer %lld of the baseline in the slot of layer %lld",
                                       (long long)other->layer, (long long)search->a->layer);
        GCMP_TRY(add_guess(search, scene, guess, true, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_sample(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = report_of(search, scene);
    const struct gcmp_paired *sides =
        &scene->comparison->pairings[scene->pair].sides[search->index];
    search->a = sides->a;
    search->b = sides->b;
    search->last = &search->guesses;
    search->first_shard = search->first_copy = GCMP_NO_PROBE;
    GCMP_TRY(cut_rows(scene, report->compared_shape0, &search->a, error));
    GCMP_TRY(cut_rows(scene, report->compared_shape0, &search->b, error));
    if (!report->shapes_agree) {
        return guess_transposed(search, scene, error);
    }
    unsigned axes = search->b->ndim < GCMP_SEARCH_AXES ? search->b->ndim : GCMP_SEARCH_AXES;
    for (unsigned axis = 0; axis < axes; axis++) {
        GCMP_TRY(read_sample(search, scene, axis, error));
    }
    if (report->cosine >= UNLIKE_COSINE || search->b->ndim == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(guess_transposed(search, scene, error));
    GCMP_TRY(guess_qkv(search, scene, error));
    return guess_slots(search, scene, error);
}

/* --- the second step --- */

/* Turn what was read so that row i of the lines is index i of the axis, and set the limit. */
static enum gradcmp_status turn_sample(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene, unsigned axis,
                                       struct gradcmp_error *error) {
    struct gcmp_search_sample *sample = &search->samples[axis];
    uint64_t rows = sample->lines.rows, columns = sample->lines.columns, inner = 1;
    double *a = gcmp_arena_alloc(scene->scratch, rows * columns, sizeof *a);
    double *b = gcmp_arena_alloc(scene->scratch, rows * columns, sizeof *b);
    if (a == NULL || b == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned d = axis + 1; d < search->b->ndim; d++) {
        inner *= sample->shape[d];
    }
    for (uint64_t i = 0; i < rows * columns; i++) {
        uint64_t row = i / inner % rows, column = i / inner / rows * inner + i % inner;
        a[row * columns + column] = search->common * sample->read_a[i];
        b[row * columns + column] = sample->read_b[i];
    }
    sample->lines.a = a;
    sample->lines.b = b;
    sample->lines.limit = SAMPLE_SLACK * report_of(search, scene)->bound;
    return GRADCMP_OK;
}

/* True where a parameter of the same layer (and expert) takes half of this one's rows: this one
 * holds gate and up. */
static bool is_gated(const struct gcmp_search *search, const struct gcmp_search_scene *scene) {
    const struct gradcmp_pair_report *pair = pair_of(scene);
    const struct gradcmp_parameter_report *report = report_of(search, scene);
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *other = &pair->parameters[i];
        if (other->layer == report->layer && other->in_a && other->ndim_a == 2 &&
            2 * other->shape_a[1] == report->shape_a[0] &&
            (report->ndim_a == 1 || other->shape_a[0] == report->shape_a[1])) {
            return true;
        }
    }
    return false;
}

static const char *axis_word(const struct gcmp_search *search, unsigned axis) {
    return search->b->ndim == 1 ? "elements"
           : axis == 0          ? "rows"
           : axis == 1          ? "columns"
                                : "planes";
}

static const char *describe_map(const struct gcmp_search *search,
                                const struct gcmp_search_scene *scene, unsigned axis, size_t count,
                                const size_t *map) {
    struct gcmp_arena *arena = scene->comparison->report->arena;
    char list[160] = "";
    size_t used = 0;
    for (size_t j = 0; j < count && used < sizeof list - 24; j++) {
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%zu", j == 0 ? "" : ", ", map[j]);
        if (used >= sizeof list - 24 && j + 1 < count) {
            snprintf(list + used, sizeof list - used, ", ...");
        }
    }
    return gcmp_arena_format(arena, "%zu blocks of %s are the baseline's blocks %s", count,
                             axis_word(search, axis), list);
}

static enum gradcmp_status guess_map(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene, unsigned axis,
                                     size_t count, const size_t *map, enum gcmp_map_kind found,
                                     struct gradcmp_error *error) {
    struct gcmp_axis along = axis_of(search->b, axis);
    struct gradcmp_moves moves;
    if (!gcmp_moves_blocks(&along, count, map, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_parameter *moved;
    GCMP_TRY(gcmp_reslab_moves(search->a, &moves, scene->scratch, &moved, error));
    struct gcmp_guess guess = {.kind = found == GCMP_MAP_REPEATED ? GCMP_CAUSE_BLOCK_REPEATED
                                                                  : GCMP_CAUSE_BLOCKS_PERMUTED,
                               .a = moved,
                               .text = describe_map(search, scene, axis, count, map)};
    if (found == GCMP_MAP_PERMUTED && count == 2 && axis == 0 && is_gated(search, scene)) {
        guess.kind = GCMP_CAUSE_HALVES_SWAPPED;
        guess.text = "gate and up halves are exchanged";
    }
    return add_guess(search, scene, guess, false, error);
}

/* True where the axis is cut into so many parts by tensor parallelism, or twice as many. */
static bool is_grid(const struct gcmp_search_scene *scene, size_t count) {
    uint32_t tp_a = catalogue_a(scene)->parallel.tp, tp_b = catalogue_b(scene)->parallel.tp;
    return count == 2 || count == tp_a || count == tp_b || count == 2 * (size_t)tp_a ||
           count == 2 * (size_t)tp_b;
}

/* Blocks in other places: the fewest that explain the sample. A small axis rolled by some rows is
 * no permutation of blocks of one row. */
static enum gradcmp_status look_for_blocks(struct gcmp_search *search,
                                           const struct gcmp_search_scene *scene, unsigned axis,
                                           struct gradcmp_error *error) {
    const struct gcmp_lines *lines = &search->samples[axis].lines;
    size_t map[GCMP_MAX_BLOCKS];
    for (size_t count = 2; count <= GCMP_MAX_BLOCKS && count <= lines->rows; count++) {
        if (lines->rows % count != 0 || (count > 16 && !is_grid(scene, count))) {
            continue;
        }
        enum gcmp_map_kind found = gcmp_sample_map(lines, count, map);
        bool moved = found == GCMP_MAP_PERMUTED || found == GCMP_MAP_REPEATED;
        if (moved && (is_grid(scene, count) || !gcmp_map_is_cyclic(map, count))) {
            return guess_map(search, scene, axis, count, map, found, error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status guess_roll(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene, unsigned axis,
                                      size_t count, uint64_t shift, struct gradcmp_error *error) {
    struct gcmp_axis along = axis_of(search->b, axis);
    struct gradcmp_moves moves;
    if (!gcmp_moves_roll(&along, count, shift, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_guess guess = {.kind = GCMP_CAUSE_ROLL};
    struct gradcmp_parameter *moved;
    GCMP_TRY(gcmp_reslab_moves(search->a, &moves, scene->scratch, &moved, error));
    guess.a = moved;
    char blocks[64] = "";
    if (count > 1) {
        snprintf(blocks, sizeof blocks, " in each of %zu blocks", count);
    }
    uint64_t rows = search->b->shape[axis] / count;
    bool back = shift > rows / 2;
    guess.text =
        gcmp_arena_format(scene->comparison->report->arena, "the baseline's %s rolled by %s%llu%s",
                          axis_word(search, axis), back ? "-" : "",
                          (unsigned long long)(back ? rows - shift : shift), blocks);
    return add_guess(search, scene, guess, false, error);
}

static enum gradcmp_status look_for_roll(struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene, unsigned axis,
                                         struct gradcmp_error *error) {
    const struct gcmp_lines *lines = &search->samples[axis].lines;
    for (size_t count = 1; count <= GCMP_MAX_BLOCKS && count <= lines->rows / 2; count++) {
        if (lines->rows % count == 0 && (count <= 16 || is_grid(scene, count))) {
            uint64_t shift = gcmp_sample_roll(lines, count);
            if (shift > 0) {
                return guess_roll(search, scene, axis, count, shift, error);
            }
        }
    }
    return GRADCMP_OK;
}

/* Guesses whose sample fits get a probe of the whole; the others are dropped. */
static enum gradcmp_status plan_whole(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      const struct gcmp_probes *sampled,
                                      struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = report_of(search, scene);
    for (struct gcmp_guess *guess = search->guesses; guess != NULL; guess = guess->next) {
        if (guess->probe != GCMP_NO_PROBE) {
            double off = gcmp_cause_residual(&sampled->tallies[guess->probe], search->common);
            bool fits = off <= SAMPLE_SLACK * gcmp_bound_at(&pair_of(scene)->bound, report->layer);
            if (!fits) {
                continue;
            }
        }
        GCMP_TRY(gcmp_probes_compare(scene->probes, side_a(scene, guess->a),
                                     side_b(scene, search->b, 0), (int)report->scale_a_log2,
                                     &guess->probe, error));
        guess->confirmed = true;
    }
    return GRADCMP_OK;
}

/* A box of `parameter` that is the slab's, and the slab alone. */
static enum gradcmp_status plan_shard(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      const struct gradcmp_slab *slab, ptrdiff_t *probe,
                                      struct gradcmp_error *error) {
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_reslab_box(search->a, slab->start, slab->extent, scene->scratch, &a, error));
    GCMP_TRY(gcmp_reslab_box(search->b, slab->start, slab->extent, scene->scratch, &b, error));
    return gcmp_probes_compare(scene->probes, side_a(scene, a), side_b(scene, b, slab->copy),
                               (int)report_of(search, scene)->scale_a_log2, probe, error);
}

static enum gradcmp_status plan_shards(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter *b = search->b;
    if (b->slab_count < 2 || b->slab_count > MOST_SHARDS || b->ndim == 0) {
        return GRADCMP_OK;
    }
    search->shard_count = b->slab_count;
    for (size_t i = 0; i < b->slab_count; i++) {
        ptrdiff_t probe;
        GCMP_TRY(plan_shard(search, scene, &b->slabs[i], &probe, error));
        search->first_shard = i == 0 ? probe : search->first_shard;
    }
    return GRADCMP_OK;
}

/* The baseline with each copy of the candidate, and each copy with those after it. */
static enum gradcmp_status plan_copies(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    uint32_t count = search->b->copy_count;
    if (count < 2 || count > MOST_COPIES) {
        return GRADCMP_OK;
    }
    search->copy_count = count;
    ptrdiff_t probe;
    for (uint32_t i = 0; i < count; i++) {
        GCMP_TRY(gcmp_probes_compare(scene->probes, side_a(scene, search->a),
                                     side_b(scene, search->b, i), 0, &probe, error));
        search->first_copy = i == 0 ? probe : search->first_copy;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = i + 1; j < count; j++) {
            GCMP_TRY(gcmp_probes_compare(scene->probes, side_b(scene, search->b, i),
                                         side_b(scene, search->b, j), 0, &probe, error));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_confirm(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        const struct gcmp_probes *sampled,
                                        struct gradcmp_error *error) {
    for (unsigned axis = 0; axis < GCMP_SEARCH_AXES; axis++) {
        if (search->samples[axis].read_a != NULL) {
            GCMP_TRY(turn_sample(search, scene, axis, error));
            GCMP_TRY(look_for_blocks(search, scene, axis, error));
            GCMP_TRY(look_for_roll(search, scene, axis, error));
        }
    }
    GCMP_TRY(plan_whole(search, scene, sampled, error));
    if (!report_of(search, scene)->shapes_agree) {
        return GRADCMP_OK;
    }
    GCMP_TRY(plan_shards(search, scene, error));
    return plan_copies(search, scene, error);
}

/* --- the claim --- */

static enum gradcmp_status add_cause(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene,
                                     struct gradcmp_cause cause, struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = report_of(search, scene);
    struct gradcmp_cause *grown =
        gcmp_arena_alloc(scene->comparison->report->arena, report->cause_count + 1, sizeof *grown);
    if (grown == NULL || cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t at = 0;
    while (at < report->cause_count &&
           gcmp_cause_find(report->causes[at].kind) <= gcmp_cause_find(cause.kind)) {
        at++;
    }
    if (at > 0) {
        memcpy(grown, report->causes, at * sizeof *grown);
    }
    grown[at] = cause;
    if (at < report->cause_count) {
        memcpy(grown + at + 1, report->causes + at, (report->cause_count - at) * sizeof *grown);
    }
    report->causes = grown;
    report->cause_count++;
    return GRADCMP_OK;
}

/* What there was to explain: without a factor common to all, and not less than a whole gradient
 * where the shapes differ. */
static double difference_before(const struct gradcmp_parameter_report *report) {
    double rel = isnan(report->rel_common) ? report->rel : report->rel_common;
    return report->shapes_agree ? rel : 1.0;
}

static enum gradcmp_status claim_guesses(struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene,
                                         struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = report_of(search, scene);
    double bound = gcmp_bound_at(&pair_of(scene)->bound, report->layer);
    for (struct gcmp_guess *guess = search->guesses; guess != NULL; guess = guess->next) {
        if (!guess->confirmed) {
            continue;
        }
        const struct gradcmp_tally *tally = &scene->probes->tallies[guess->probe];
        double residual = gcmp_cause_residual(tally, search->common);
        if (tally->nonfinite_any == 0 &&
            gcmp_cause_holds(residual, bound, difference_before(report))) {
            struct gradcmp_cause cause = {gcmp_cause_name(guess->kind), NAN, residual, guess->text};
            GCMP_TRY(add_cause(search, scene, cause, error));
        }
    }
    return GRADCMP_OK;
}

static uint64_t writer_of(const struct gcmp_search_scene *scene, const struct gradcmp_slab *slab) {
    const struct gradcmp_coords *at = slab->coords;
    if (at != NULL && at->tp >= 0) {
        return (uint64_t)1 << 63 | (uint64_t)(uint32_t)at->tp << 31 |
               (uint64_t)(uint32_t)(at->dp < 0 ? 0 : at->dp);
    }
    return catalogue_b(scene)->sources[slab->source].file;
}

static const char *describe_shard(const struct gcmp_search_scene *scene,
                                  const struct gcmp_search *search, const uint64_t *writers,
                                  uint64_t writer) {
    size_t parts = 0, first = 0;
    for (size_t i = search->shard_count; i-- > 0;) {
        if (writers[i] == writer) {
            parts++;
            first = i;
        }
    }
    const struct gradcmp_slab *slab = &search->b->slabs[first];
    const struct gradcmp_catalogue *catalogue = catalogue_b(scene);
    const char *file = gcmp_dir_file_name(catalogue->dir, catalogue->sources[slab->source].file);
    struct gcmp_arena *arena = scene->comparison->report->arena;
    char rank[48] = "";
    if (slab->coords != NULL && slab->coords->tp >= 0) {
        snprintf(rank, sizeof rank, "tensor parallel rank %d, ", slab->coords->tp);
    }
    return gcmp_arena_format(arena, "%zu of %zu parts differ%s and the others agree: %sfile %s",
                             parts, search->shard_count, parts == 1 ? "s" : "", rank, file);
}

/* The shards of the report, and the claim of one of them. */
static enum gradcmp_status claim_shards(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = report_of(search, scene);
    struct gcmp_arena *arena = scene->comparison->report->arena;
    const struct gradcmp_catalogue *catalogue = catalogue_b(scene);
    size_t count = search->shard_count, ndim = search->b->ndim;
    struct gradcmp_shard *shards = gcmp_arena_alloc(arena, count, sizeof *shards);
    uint64_t *dims = gcmp_arena_alloc(arena, 2 * ndim * count, sizeof *dims);
    uint64_t *writers = gcmp_arena_alloc(scene->scratch, count, sizeof *writers);
    if (shards == NULL || dims == NULL || writers == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    const struct gradcmp_tally *tallies = scene->probes->tallies + search->first_shard;
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_slab *slab = &search->b->slabs[i];
        uint64_t *start = dims + 2 * ndim * i, *extent = start + ndim;
        memcpy(start, slab->start, ndim * sizeof *start);
        memcpy(extent, slab->extent, ndim * sizeof *extent);
        shards[i] = (struct gradcmp_shard){
            gcmp_dir_file_name(catalogue->dir, catalogue->sources[slab->source].file), slab->coords,
            start, extent, gcmp_cause_residual(&tallies[i], search->common)};
        writers[i] = writer_of(scene, slab);
    }
    report->shards = shards;
    report->shard_count = count;
    struct gcmp_shard_set set = {
        tallies, writers, count, report->bound, difference_before(report), search->common};
    uint64_t writer;
    double residual;
    if (!gcmp_cause_one_shard(&set, &writer, &residual)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_ONE_SHARD), NAN, residual,
                                  describe_shard(scene, search, writers, writer)};
    return add_cause(search, scene, cause, error);
}

/* Copies that are alike count once: what data-parallel ranks hold is no part of the sum. Fills the
 * sums with the products of those kept; returns how many they are. */
static size_t distinct_copies(const struct gcmp_search *search, const struct gradcmp_tally *tallies,
                              double *inner, double *with_a) {
    size_t count = search->copy_count, kept = 0, chosen[MOST_COPIES];
    size_t at[MOST_COPIES][MOST_COPIES], next = count;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            at[i][j] = next++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < kept && !seen; k++) {
            seen = tallies[at[chosen[k]][i]].d2 == 0.0;
        }
        if (!seen) {
            chosen[kept++] = i;
        }
    }
    for (size_t i = 0; i < kept; i++) {
        const struct gradcmp_tally *tally = &tallies[chosen[i]];
        with_a[i] = tally->a2 + tally->ad;
        inner[i * kept + i] = tally->b2;
        for (size_t j = i + 1; j < kept; j++) {
            const struct gradcmp_tally *both = &tallies[at[chosen[i]][chosen[j]]];
            inner[i * kept + j] = both->a2 + both->ad;
        }
    }
    return kept;
}

static enum gradcmp_status claim_copies(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = report_of(search, scene);
    const struct gradcmp_tally *tallies = scene->probes->tallies + search->first_copy;
    double inner[MOST_COPIES * MOST_COPIES], with_a[MOST_COPIES];
    size_t kept = distinct_copies(search, tallies, inner, with_a);
    double common = search->common;
    struct gcmp_copy_sums sums = {inner, with_a, kept, tallies[0].a2};
    double residual = gcmp_cause_copy_sum(&sums);
    if (kept < 2 || common != 1.0 || tallies[0].nonfinite_any > 0 ||
        !gcmp_cause_holds(residual, report->bound, 1.0)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_PARTIAL_SUM), NAN, residual, NULL};
    cause.text =
        gcmp_arena_format(scene->comparison->report->arena,
                          "the candidate's %zu copies differ and add up to the baseline", kept);
    return add_cause(search, scene, cause, error);
}

enum gradcmp_status gcmp_search_claim(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gradcmp_error *error) {
    GCMP_TRY(claim_guesses(search, scene, error));
    if (search->first_shard != GCMP_NO_PROBE) {
        GCMP_TRY(claim_shards(search, scene, error));
    }
    if (search->first_copy != GCMP_NO_PROBE) {
        GCMP_TRY(claim_copies(search, scene, error));
    }
    return GRADCMP_OK;
}
