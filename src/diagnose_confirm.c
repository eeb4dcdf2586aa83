/* The second step of the search: what samples suggest, to be read whole. */
#include <stdio.h>
#include <string.h>

#include "bounds/bounds.h"
#include "diagnose_search.h"
#include "kernels/convert.h"
#include "unshard/reslab.h"

#define SAMPLE_SLACK 2.0 /* a sample is noisier than the whole */

/* Megatron's default of make_vocab_size_divisible_by: for each rank, fewer rows than this. */
enum { MOST_PADDING = 128 };

enum { LEAST_ROUNDED = 16 }; /* values that show a rounding */

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
    sample->lines.limit = SAMPLE_SLACK * gcmp_search_report(search, scene)->bound;
    return GRADCMP_OK;
}

/* Queries, keys and values too may have twice as many rows as the projection behind them columns.
 */
static bool is_of_attention(const char *name) {
    return strstr(name, "attention") != NULL || strstr(name, "attn") != NULL ||
           strstr(name, "qkv") != NULL;
}

/* True where a parameter of the same layer (and expert) takes half of this one's rows: this one
 * holds gate and up. */
static bool is_gated(const struct gcmp_search *search, const struct gcmp_search_scene *scene) {
    const struct gradcmp_pair_report *pair = gcmp_search_pair(scene);
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    for (size_t i = 0; i < pair->parameter_count && !is_of_attention(report->name); i++) {
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
    struct gcmp_axis along = gcmp_search_axis(search->b, axis);
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
    return gcmp_search_guess(search, scene, guess, false, error);
}

/* True where the axis is cut into so many parts by tensor parallelism, or twice as many. */
static bool is_grid(const struct gcmp_search_scene *scene, size_t count) {
    uint32_t tp_a = gcmp_search_catalogue_a(scene)->parallel.tp,
             tp_b = gcmp_search_catalogue_b(scene)->parallel.tp;
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
    struct gcmp_axis along = gcmp_search_axis(search->b, axis);
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
    return gcmp_search_guess(search, scene, guess, false, error);
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

/* One part of a flat shift; *out is NULL where it is empty. */
static enum gradcmp_status make_part(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene,
                                     const struct gcmp_flat_shift *shift, struct gcmp_guess **out,
                                     struct gradcmp_error *error) {
    struct gradcmp_moves moves_a, moves_b;
    *out = NULL;
    if (!gcmp_moves_flat(search->b->shape, shift, scene->scratch, &moves_a, &moves_b)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (moves_a.count == 0) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_reslab_moves(search->a, &moves_a, scene->scratch, &a, error));
    GCMP_TRY(gcmp_reslab_moves(search->b, &moves_b, scene->scratch, &b, error));
    struct gcmp_guess *part = gcmp_arena_alloc(scene->scratch, 1, sizeof *part);
    if (part == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *part = (struct gcmp_guess){.kind = GCMP_CAUSE_ROLL, .a = a, .b = b, .probe = GCMP_NO_PROBE};
    *out = part;
    return GRADCMP_OK;
}

/* A shift of the flattened values in blocks of so many rows, if it covers most of them. */
static enum gradcmp_status guess_shift(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene, uint64_t block_rows,
                                       int64_t offset, struct gradcmp_error *error) {
    uint64_t distance = (uint64_t)(offset < 0 ? -offset : offset);
    if (block_rows == 0 || distance >= block_rows * search->b->shape[1] / 4) {
        return GRADCMP_OK;
    }
    struct gcmp_flat_shift shift = {block_rows, offset, 0};
    struct gcmp_guess *part, *rest;
    GCMP_TRY(make_part(search, scene, &shift, &part, error));
    shift.part = 1;
    GCMP_TRY(make_part(search, scene, &shift, &rest, error));
    if (part == NULL) {
        return GRADCMP_OK;
    }
    part->rest = rest;
    part->text = gcmp_arena_format(
        scene->comparison->report->arena,
        "flattened, the baseline's elements shifted by %lld in blocks of %llu rows",
        (long long)-offset, (unsigned long long)block_rows);
    return gcmp_search_guess(search, scene, *part, false, error);
}

/* State that was cut from a flat buffer at a wrong place: in each rank's rows, as they are stored
 * with their padding. */
static enum gradcmp_status look_for_shift(struct gcmp_search *search,
                                          const struct gcmp_search_scene *scene,
                                          struct gradcmp_error *error) {
    if (search->flat_a == NULL) {
        return GRADCMP_OK;
    }
    double limit = SAMPLE_SLACK * gcmp_search_report(search, scene)->bound;
    int64_t offset = gcmp_sample_shift(search->flat_a, search->flat_b, search->flat_count, limit);
    if (offset == 0) {
        return GRADCMP_OK;
    }
    const struct gcmp_paired *sides =
        &scene->comparison->pairings[scene->pair].sides[search->index];
    uint32_t tp_a = gcmp_search_catalogue_a(scene)->parallel.tp;
    uint32_t tp_b = gcmp_search_catalogue_b(scene)->parallel.tp;
    GCMP_TRY(guess_shift(search, scene, search->b->shape[0], offset, error));
    if (tp_b > 1) {
        GCMP_TRY(guess_shift(search, scene, sides->b->shape[0] / tp_b, offset, error));
    }
    return tp_a > 1 && tp_a != tp_b
               ? guess_shift(search, scene, sides->a->shape[0] / tp_a, offset, error)
               : GRADCMP_OK;
}

/* True where a rank's part of the rows begins at `row`; of fewer rows than ranks, anywhere. */
static bool begins_part(uint64_t row, uint64_t rows, uint32_t ranks) {
    return ranks > 1 && (rows < ranks || row % (rows / ranks) == 0);
}

/* True where a stored piece begins at `row`. */
static bool begins_slab(const struct gradcmp_parameter *parameter, uint64_t row) {
    size_t i = 0;
    while (i < parameter->slab_count && parameter->slabs[i].start[0] != row) {
        i++;
    }
    return i < parameter->slab_count;
}

/* True where rows from `row` on may be padding: fewer than a vocabulary is padded by, and not a
 * rank's whole part, which would be words that it lost. */
static bool may_be_padding(const struct gcmp_search_scene *scene, const struct gcmp_paired *sides,
                           uint64_t row, uint64_t rows) {
    uint32_t tp_a = gcmp_search_catalogue_a(scene)->parallel.tp,
             tp_b = gcmp_search_catalogue_b(scene)->parallel.tp;
    uint64_t unit = MOST_PADDING * (uint64_t)(tp_a > tp_b ? tp_a : tp_b);
    return row > 0 && row < rows && rows - row < (unit == 0 ? MOST_PADDING : unit) &&
           !begins_part(row, rows, tp_a) && !begins_part(row, rows, tp_b) &&
           !begins_slab(sides->a, row) && !begins_slab(sides->b, row);
}

/* Where the size of the vocabulary is not known, its padding was compared too: the last rows alone
 * differ. */
static enum gradcmp_status look_for_padding(struct gcmp_search *search,
                                            const struct gcmp_search_scene *scene,
                                            struct gradcmp_error *error) {
    const struct gcmp_paired *sides =
        &scene->comparison->pairings[scene->pair].sides[search->index];
    const struct gcmp_lines *lines = &search->samples[0].lines;
    bool is_known = scene->comparison->options->vocab != 0 ||
                    gcmp_search_catalogue_a(scene)->vocab != 0 ||
                    gcmp_search_catalogue_b(scene)->vocab != 0;
    if (is_known || lines->a == NULL || !(sides->a->vocab_rows || sides->b->vocab_rows)) {
        return GRADCMP_OK;
    }
    uint64_t row = gcmp_sample_tail(lines);
    if (!may_be_padding(scene, sides, row, lines->rows)) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_probes_head(search->a, row, scene->scratch, &a, error));
    GCMP_TRY(gcmp_probes_head(search->b, row, scene->scratch, &b, error));
    struct gcmp_guess guess = {.kind = GCMP_CAUSE_PADDING, .a = a, .b = b};
    guess.text = gcmp_arena_format(
        scene->comparison->report->arena,
        "the last %llu of %llu rows alone differ, and the size of the vocabulary is not known: if "
        "they are padding, say --vocab %llu",
        (unsigned long long)(lines->rows - row), (unsigned long long)lines->rows,
        (unsigned long long)row);
    return gcmp_search_guess(search, scene, guess, false, error);
}

/* Every value of `to` is that of `from` rounded to the type. */
static bool is_rounded(const double *from, const double *to, uint64_t count,
                       enum gradcmp_dtype dtype) {
    for (uint64_t i = 0; i < count; i++) {
        double value = from[i];
        gcmp_round_float64(&value, 1, dtype);
        if (!(value == to[i])) {
            return false;
        }
    }
    return true;
}

/* Values that were rounded to a narrow type on the way, and are stored in a wide one again. */
static enum gradcmp_status look_for_cast(struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene,
                                         struct gradcmp_error *error) {
    static const enum gradcmp_dtype types[] = {GRADCMP_DTYPE_FLOAT32, GRADCMP_DTYPE_FLOAT16,
                                               GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FLOAT8_E4M3FN,
                                               GRADCMP_DTYPE_FLOAT8_E5M2};
    const struct gcmp_lines *lines = &search->samples[0].lines;
    uint64_t count = lines->a == NULL ? 0 : lines->rows * lines->columns;
    bool is_scaled = gcmp_search_report(search, scene)->scale_a_log2 != 0.0;
    if (count < LEAST_ROUNDED || search->common != 1.0 || is_scaled) {
        return GRADCMP_OK;
    }
    for (size_t t = 0; t < 2 * (sizeof types / sizeof types[0]); t++) {
        enum gradcmp_dtype dtype = types[t / 2];
        bool in_b = t % 2 == 0;
        if (!is_rounded(in_b ? lines->a : lines->b, in_b ? lines->b : lines->a, count, dtype)) {
            continue;
        }
        struct gcmp_guess guess = {.kind = GCMP_CAUSE_CAST, .a = search->a};
        *(in_b ? &guess.round_a : &guess.round_b) = dtype;
        guess.text = gcmp_cause_cast_text(in_b, dtype, scene->comparison->report->arena);
        return gcmp_search_guess(search, scene, guess, false, error);
    }
    return GRADCMP_OK;
}

/* Guesses whose sample fits get a probe of the whole; the others are dropped. */
static enum gradcmp_status plan_whole(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      const struct gcmp_probes *sampled,
                                      struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    for (struct gcmp_guess *guess = search->guesses; guess != NULL; guess = guess->next) {
        if (guess->probe != GCMP_NO_PROBE) {
            double off = gcmp_cause_residual(&sampled->tallies[guess->probe], search->common);
            bool fits =
                off <= SAMPLE_SLACK * gcmp_bound_at(&gcmp_search_pair(scene)->bound, report->layer);
            if (!fits) {
                continue;
            }
        }
        for (struct gcmp_guess *part = guess; part != NULL; part = part->rest) {
            const struct gradcmp_parameter *b = part->b == NULL ? search->b : part->b;
            struct gcmp_side side_a = gcmp_search_side_a(scene, part->a);
            struct gcmp_side side_b = gcmp_search_side_b(scene, b, 0);
            side_a.rounding = part->round_a;
            side_b.rounding = part->round_b;
            GCMP_TRY(gcmp_probes_compare(scene->probes, side_a, side_b, (int)report->scale_a_log2,
                                         &part->probe, error));
        }
        guess->confirmed = true;
    }
    return GRADCMP_OK;
}

/* Whether the axis is worth a search; what was taken for noise must be the same values. */
static enum gradcmp_status is_searchable(const struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene, unsigned axis,
                                         bool *is, struct gradcmp_error *error) {
    const struct gcmp_lines *lines = &search->samples[axis].lines;
    *is = true;
    if (!search->of_noise) {
        return GRADCMP_OK;
    }
    /* No larger than what was read of the two sides. */
    double *room = gcmp_arena_alloc(scene->scratch, 2 * lines->rows * lines->columns, sizeof *room);
    if (room == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *is = gcmp_sample_is_reordered(lines, room);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_confirm(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        const struct gcmp_probes *sampled,
                                        struct gradcmp_error *error) {
    for (unsigned axis = 0; axis < GCMP_SEARCH_AXES; axis++) {
        bool is_wanted = search->samples[axis].read_a != NULL;
        if (is_wanted) {
            GCMP_TRY(turn_sample(search, scene, axis, error));
            GCMP_TRY(is_searchable(search, scene, axis, &is_wanted, error));
        }
        if (is_wanted) {
            GCMP_TRY(look_for_blocks(search, scene, axis, error));
            GCMP_TRY(look_for_roll(search, scene, axis, error));
        }
    }
    if (search->of_noise) {
        return plan_whole(search, scene, sampled, error);
    }
    GCMP_TRY(look_for_cast(search, scene, error));
    GCMP_TRY(look_for_padding(search, scene, error));
    GCMP_TRY(look_for_shift(search, scene, error));
    return plan_whole(search, scene, sampled, error);
}
