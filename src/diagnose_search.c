/* The first step of the search: samples of a failing parameter, and guesses that need no sample to
 * be thought of. */
#include "diagnose_search.h"

#include <string.h>

#include "base/catalogue.h"
#include "unshard/reslab.h"

enum {
    SAMPLE_ELEMS = 1 << 15, /* of a sample along an axis */
    SPOT_ELEMS = 1 << 11,   /* of a sample that is compared as it is */
    LEAST_SLOT_ELEMS = 64,  /* of another layer; what is not the same layer is not nearly alike */
    MOST_LAYERS = 512,
    MOST_ROWS = 1 << 22 /* an axis longer than this is not sampled */
};

#define UNLIKE_COSINE 0.9 /* above it, no other layer and no transpose is looked for */

/* --- the first step --- */

/* Only the rows of a padded vocabulary that are compared. */
static enum gradcmp_status cut_rows(const struct gcmp_search_scene *scene, uint64_t rows,
                                    const struct gradcmp_parameter **parameter,
                                    struct gradcmp_error *error) {
    if (rows == 0 || rows >= (*parameter)->shape[0]) {
        return GRADCMP_OK;
    }
    struct gradcmp_parameter *cut;
    GCMP_TRY(gcmp_probes_head(*parameter, rows, scene->scratch, &cut, error));
    *parameter = cut;
    return GRADCMP_OK;
}

static enum gradcmp_status read_sample(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene, unsigned axis,
                                       struct gradcmp_error *error) {
    struct gcmp_axis along = gcmp_search_axis(search->b, axis);
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
    int scale = (int)gcmp_search_report(search, scene)->scale_a_log2;
    GCMP_TRY(gcmp_probes_read(scene->probes, gcmp_search_side_a(scene, a), scale, sample->read_a,
                              error));
    return gcmp_probes_read(scene->probes, gcmp_search_side_b(scene, b, 0), scale, sample->read_b,
                            error);
}

/* The first rows of a two-axis parameter, as they lie one after another. */
static enum gradcmp_status read_flat(struct gcmp_search *search,
                                     const struct gcmp_search_scene *scene,
                                     struct gradcmp_error *error) {
    const uint64_t *shape = search->b->shape;
    if (search->b->ndim != 2 || shape[1] == 0 || shape[1] > SAMPLE_ELEMS / 2) {
        return GRADCMP_OK;
    }
    uint64_t rows = SAMPLE_ELEMS / 2 / shape[1];
    const uint64_t start[2] = {0, 0}, extent[2] = {rows < shape[0] ? rows : shape[0], shape[1]};
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(gcmp_reslab_box(search->a, start, extent, scene->scratch, &a, error));
    GCMP_TRY(gcmp_reslab_box(search->b, start, extent, scene->scratch, &b, error));
    search->flat_count = b->elem_count;
    search->flat_a = gcmp_arena_alloc(scene->scratch, b->elem_count, sizeof(double));
    search->flat_b = gcmp_arena_alloc(scene->scratch, b->elem_count, sizeof(double));
    if (search->flat_a == NULL || search->flat_b == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    int scale = (int)gcmp_search_report(search, scene)->scale_a_log2;
    GCMP_TRY(gcmp_probes_read(scene->probes, gcmp_search_side_a(scene, a), scale, search->flat_a,
                              error));
    return gcmp_probes_read(scene->probes, gcmp_search_side_b(scene, b, 0), scale, search->flat_b,
                            error);
}

/* What of one side a guess is tried on. */
static enum gradcmp_status cut_spot(const struct gcmp_guess *guess,
                                    const struct gradcmp_parameter *from,
                                    const struct gcmp_search_scene *scene,
                                    struct gradcmp_parameter **out, struct gradcmp_error *error) {
    if (guess->spot_elems > 0) {
        return gcmp_probes_spot(from, guess->spot_elems, scene->scratch, out, error);
    }
    struct gcmp_axis along = gcmp_search_axis(from, 0);
    struct gradcmp_moves moves;
    if (!gcmp_moves_sample(&along, SPOT_ELEMS, scene->scratch, &moves)) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_reslab_moves(from, &moves, scene->scratch, out, error);
}

enum gradcmp_status gcmp_search_guess(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gcmp_guess guess, bool spot,
                                      struct gradcmp_error *error) {
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
    struct gradcmp_parameter *a, *b;
    GCMP_TRY(cut_spot(&guess, guess.a, scene, &a, error));
    GCMP_TRY(cut_spot(&guess, search->b, scene, &b, error));
    return gcmp_probes_compare(
        scene->probes, gcmp_search_side_a(scene, a), gcmp_search_side_b(scene, b, 0),
        (int)gcmp_search_report(search, scene)->scale_a_log2, &kept->probe, error);
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
    return gcmp_search_guess(search, scene, guess, true, error);
}

static uint64_t setting_of(const struct gcmp_search_scene *scene, const char *name) {
    const struct gradcmp_catalogue *sides[] = {gcmp_search_catalogue_b(scene),
                                               gcmp_search_catalogue_a(scene)};
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
    struct gcmp_axis along = gcmp_search_axis(search->b, 0);
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
    return gcmp_search_guess(search, scene, guess, true, error);
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
    const uint64_t ranks[] = {1, gcmp_search_catalogue_b(scene)->parallel.tp,
                              gcmp_search_catalogue_a(scene)->parallel.tp};
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

/* True where two names are the same but for one part between dots, a number in both: of a layer, or
 * of an expert. */
static bool is_same_kind(const char *left, const char *right) {
    size_t differing = 0;
    while (*left != '\0' && *right != '\0') {
        size_t own = strcspn(left, "."), other = strcspn(right, ".");
        bool is_same = own == other && strncmp(left, right, own) == 0;
        bool are_numbers = own > 0 && other > 0 && strspn(left, "0123456789") == own &&
                           strspn(right, "0123456789") == other;
        if (!is_same && !are_numbers) {
            return false;
        }
        differing += !is_same;
        left += own + (left[own] == '.');
        right += other + (right[other] == '.');
    }
    return differing == 1 && *left == *right;
}

/* True where a parameter of the baseline may be in the slot of the one that is searched. */
static bool may_be_in_slot(const struct gcmp_search *search,
                           const struct gradcmp_parameter *other) {
    return strcmp(other->name, search->a->name) != 0 && other->ndim == search->b->ndim &&
           memcmp(other->shape, search->b->shape, other->ndim * sizeof *other->shape) == 0 &&
           is_same_kind(other->name, search->a->name);
}

/* Elements of another layer that are looked at, so that all layers together cost no more than half
 * of what the parameter has. */
static uint64_t slot_elems(const struct gcmp_search *search, const struct gradcmp_model *model) {
    uint64_t layers = 1;
    for (size_t i = 0; i < model->count; i++) {
        layers += may_be_in_slot(search, &model->parameters[i]);
    }
    uint64_t elems = search->b->elem_count / layers;
    return elems < LEAST_SLOT_ELEMS ? LEAST_SLOT_ELEMS : elems < SPOT_ELEMS ? elems : SPOT_ELEMS;
}

/* Of one layer, or where none is known as of numbers, names tell more. */
static const char *slot_text(struct gcmp_arena *arena, const struct gradcmp_parameter *other,
                             const struct gradcmp_parameter *own) {
    return other->layer == own->layer
               ? gcmp_arena_format(arena, "\"%.160s\" of the baseline in its place", other->name)
               : gcmp_arena_format(arena, "layer %lld of the baseline in the slot of layer %lld",
                                   (long long)other->layer, (long long)own->layer);
}

static enum gradcmp_status guess_slots(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    const struct gradcmp_model *model = scene->comparison->baseline.model;
    const uint64_t elems = slot_elems(search, model);
    size_t tried = 0;
    for (size_t i = 0; i < model->count && tried < MOST_LAYERS; i++) {
        const struct gradcmp_parameter *other = &model->parameters[i];
        if (!may_be_in_slot(search, other)) {
            continue;
        }
        tried++;
        struct gcmp_guess guess = {.kind = GCMP_CAUSE_LAYER_SLOT, .a = other, .spot_elems = elems};
        guess.text = slot_text(scene->comparison->report->arena, other, search->a);
        GCMP_TRY(gcmp_search_guess(search, scene, guess, true, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_begin(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    const struct gcmp_paired *sides =
        &scene->comparison->pairings[scene->pair].sides[search->index];
    search->a = sides->a;
    search->b = sides->b;
    search->last = &search->guesses;
    GCMP_TRY(cut_rows(scene, report->compared_shape0, &search->a, error));
    return cut_rows(scene, report->compared_shape0, &search->b, error);
}

enum gradcmp_status gcmp_search_sample(struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    if (!report->shapes_agree) {
        return guess_transposed(search, scene, error);
    }
    unsigned axes = search->b->ndim < GCMP_SEARCH_AXES ? search->b->ndim : GCMP_SEARCH_AXES;
    for (unsigned axis = 0; axis < axes; axis++) {
        GCMP_TRY(read_sample(search, scene, axis, error));
    }
    if (search->of_noise || report->cosine >= UNLIKE_COSINE || search->b->ndim == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(read_flat(search, scene, error));
    GCMP_TRY(guess_transposed(search, scene, error));
    GCMP_TRY(guess_qkv(search, scene, error));
    return guess_slots(search, scene, error);
}
