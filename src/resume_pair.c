/* A judged pair as bytes and back. One description of the fields serves both directions, so that
 * they cannot drift apart. Numbers are little-endian; real ones keep all their bits. */
#include <string.h>

#include "base/checked.h"
#include "resume.h"

#define GREATEST_LAYER ((int64_t)1 << 40) /* those that names give end far below */

/* Bytes under way: out of the report, or into it. */
struct codec {
    struct gcmp_text *out;  /* writing; else NULL */
    struct gcmp_cursor *in; /* reading */
    struct gcmp_arena *arena;
    bool failed, no_memory;
};

static void take_word(struct codec *codec, uint64_t *value) {
    if (codec->out != NULL) {
        char bytes[8];
        for (unsigned i = 0; i < 8; i++) {
            bytes[i] = (char)(unsigned char)(*value >> (8 * i));
        }
        gcmp_text_add_bytes(codec->out, bytes, sizeof bytes);
    } else if (codec->failed || !gcmp_read_u64le(codec->in, value)) {
        codec->failed = true;
        *value = 0;
    }
}

static void take_size(struct codec *codec, size_t *value) {
    uint64_t word = *value;
    take_word(codec, &word);
    *value = (size_t)word;
}

static void take_signed(struct codec *codec, int64_t *value) {
    uint64_t word = (uint64_t)*value;
    take_word(codec, &word);
    *value = (int64_t)word;
}

static void take_real(struct codec *codec, double *value) {
    uint64_t word;
    memcpy(&word, value, sizeof word);
    take_word(codec, &word);
    memcpy(value, &word, sizeof word);
}

/* A number of a small range; a larger one is no pair of ours. */
static unsigned take_small(struct codec *codec, unsigned value, unsigned least, unsigned most) {
    uint64_t word = value;
    take_word(codec, &word);
    if (word < least || word > most) {
        codec->failed = true;
        return least;
    }
    return (unsigned)word;
}

static void take_flag(struct codec *codec, bool *value) {
    *value = take_small(codec, *value, 0, 1) != 0;
}

static void take_byte(struct codec *codec, uint8_t *value, unsigned most) {
    *value = (uint8_t)take_small(codec, *value, 0, most);
}

/* Memory for what is read; the count was checked against what is left. */
static void *make(struct codec *codec, size_t count, size_t size) {
    void *memory = codec->failed ? NULL : gcmp_arena_alloc(codec->arena, count, size);
    codec->no_memory = codec->no_memory || (memory == NULL && !codec->failed);
    codec->failed = codec->failed || memory == NULL;
    return memory;
}

/* How many items follow: each takes at least `least_bytes`, so that a false count asks for no
 * memory. */
static void take_count(struct codec *codec, size_t *count, size_t least_bytes) {
    take_size(codec, count);
    if (codec->out == NULL &&
        (codec->failed || *count > gcmp_cursor_left(codec->in) / least_bytes)) {
        codec->failed = true;
        *count = 0;
    }
}

/* A text, or NULL. */
static void take_text(struct codec *codec, const char **text) {
    bool is_there = *text != NULL;
    size_t length = is_there ? strlen(*text) : 0;
    take_flag(codec, &is_there);
    take_count(codec, &length, 1);
    if (codec->out != NULL) {
        gcmp_text_add_bytes(codec->out, is_there ? *text : "", length);
        return;
    }
    const unsigned char *bytes = NULL;
    char *copy = is_there ? make(codec, length + 1, 1) : NULL;
    if (copy != NULL && gcmp_read_bytes(codec->in, length, &bytes)) {
        memcpy(copy, bytes, length);
    }
    *text = copy;
}

/* Sizes of `ndim` axes, or NULL. */
static void take_sizes(struct codec *codec, const uint64_t **sizes, unsigned ndim) {
    const uint64_t *from = *sizes;
    bool is_there = from != NULL;
    take_flag(codec, &is_there);
    uint64_t *own = codec->out == NULL && is_there ? make(codec, ndim, sizeof *own) : NULL;
    for (unsigned d = 0; d < ndim && is_there && (codec->out != NULL || own != NULL); d++) {
        uint64_t size = codec->out != NULL && from != NULL ? from[d] : 0;
        take_word(codec, &size);
        if (own != NULL) {
            own[d] = size;
        }
    }
    if (codec->out == NULL) {
        *sizes = own;
    }
}

/* A shape whose elements can be counted. */
static void take_shape(struct codec *codec, const uint64_t **shape, uint8_t *ndim) {
    uint64_t elems;
    take_byte(codec, ndim, GRADCMP_MAX_NDIM);
    take_sizes(codec, shape, *ndim);
    codec->failed = codec->failed || (*shape != NULL && !gcmp_product(*shape, *ndim, &elems));
}

/* A kind and what it says stand together; a pair may have neither. */
static void take_cause(struct codec *codec, struct gradcmp_cause *cause, bool may_be_none) {
    take_text(codec, &cause->kind);
    take_real(codec, &cause->factor);
    take_real(codec, &cause->residual);
    take_text(codec, &cause->text);
    bool has_kind = cause->kind != NULL, has_text = cause->text != NULL;
    codec->failed = codec->failed || has_kind != has_text || !(has_kind || may_be_none);
}

static void take_rank_number(struct codec *codec, int32_t *rank) {
    int64_t wide = *rank;
    take_signed(codec, &wide);
    codec->failed = codec->failed || wide < -1 || wide > INT32_MAX;
    *rank = (int32_t)wide;
}

/* A layer, or -1. */
static void take_layer(struct codec *codec, int64_t *layer) {
    take_signed(codec, layer);
    codec->failed = codec->failed || *layer < -1 || *layer > GREATEST_LAYER;
}

static void take_coords(struct codec *codec, const struct gradcmp_coords **coords) {
    bool is_there = *coords != NULL;
    struct gradcmp_coords own = is_there ? **coords : (struct gradcmp_coords){0};
    take_flag(codec, &is_there);
    if (!is_there) {
        *coords = NULL;
        return;
    }
    int32_t *const numbers[] = {&own.tp, &own.pp, &own.ep, &own.dp, &own.vp, &own.etp};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        take_rank_number(codec, numbers[i]);
    }
    if (codec->out == NULL) {
        struct gradcmp_coords *copy = make(codec, 1, sizeof *copy);
        if (copy != NULL) {
            *copy = own;
        }
        *coords = copy;
    }
}

static void take_shard(struct codec *codec, struct gradcmp_shard *shard, unsigned ndim_a,
                       unsigned ndim_b) {
    take_text(codec, &shard->file);
    take_coords(codec, &shard->coords);
    take_flag(codec, &shard->in_a);
    take_sizes(codec, &shard->start, shard->in_a ? ndim_a : ndim_b);
    take_sizes(codec, &shard->extent, shard->in_a ? ndim_a : ndim_b);
    take_real(codec, &shard->rel);
    codec->failed = codec->failed || shard->start == NULL || shard->extent == NULL;
}

static void take_rank(struct codec *codec, struct gradcmp_rank_error *rank) {
    take_text(codec, &rank->axis);
    take_rank_number(codec, &rank->rank);
    take_flag(codec, &rank->in_a);
    take_size(codec, &rank->slabs);
    take_real(codec, &rank->rel);
    codec->failed = codec->failed || rank->axis == NULL;
}

static void take_heat(struct codec *codec, struct gradcmp_heat *heat) {
    heat->rows = take_small(codec, heat->rows, 0, GRADCMP_HEAT_CELLS);
    heat->columns = take_small(codec, heat->columns, 0, GRADCMP_HEAT_CELLS);
    size_t count = (size_t)heat->rows * heat->columns;
    double *cells = codec->out == NULL && count > 0 ? make(codec, count, sizeof *cells) : NULL;
    for (size_t i = 0; i < count && (codec->out != NULL || cells != NULL); i++) {
        double cell = codec->out != NULL ? heat->cells[i] : 0.0;
        take_real(codec, &cell);
        if (cells != NULL) {
            cells[i] = cell;
        }
    }
    if (codec->out == NULL) {
        heat->cells = cells;
    }
}

static void take_tally(struct codec *codec, struct gradcmp_tally *tally) {
    double *const reals[] = {&tally->d2,    &tally->ad,    &tally->a2,   &tally->b2,
                             &tally->max_d, &tally->max_a, &tally->max_b};
    uint64_t *const counts[] = {&tally->max_d_index,   &tally->elems,       &tally->zeros_a,
                                &tally->zeros_b,       &tally->nonfinite_a, &tally->nonfinite_b,
                                &tally->nonfinite_any, &tally->equal_bits,  &tally->max_ulp};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        take_real(codec, reals[i]);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        take_word(codec, counts[i]);
    }
}

static void take_identity(struct codec *codec, struct gradcmp_parameter_report *parameter) {
    take_text(codec, &parameter->name);
    take_layer(codec, &parameter->layer);
    take_flag(codec, &parameter->in_a);
    take_flag(codec, &parameter->in_b);
    take_shape(codec, &parameter->shape_a, &parameter->ndim_a);
    take_shape(codec, &parameter->shape_b, &parameter->ndim_b);
    take_byte(codec, &parameter->dtype_a, GRADCMP_DTYPE_COUNT - 1);
    take_byte(codec, &parameter->dtype_b, GRADCMP_DTYPE_COUNT - 1);
    take_flag(codec, &parameter->shapes_agree);
    take_word(codec, &parameter->compared_elems);
    take_word(codec, &parameter->compared_shape0);
    codec->failed = codec->failed || parameter->name == NULL ||
                    (parameter->in_a && parameter->shape_a == NULL) ||
                    (parameter->in_b && parameter->shape_b == NULL);
}

static void take_figures(struct codec *codec, struct gradcmp_parameter_report *parameter) {
    double *const reals[] = {
        &parameter->scale_a_log2, &parameter->scale_b_log2,    &parameter->rel,
        &parameter->rel_common,   &parameter->bound,           &parameter->ratio,
        &parameter->alpha,        &parameter->alpha_tolerance, &parameter->rho,
        &parameter->cosine,       &parameter->norm_a,          &parameter->norm_b};
    take_tally(codec, &parameter->tally);
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        take_real(codec, reals[i]);
    }
    take_flag(codec, &parameter->copies_conflict);
    take_word(codec, &parameter->copies_unequal_a);
    take_word(codec, &parameter->copies_unequal_b);
    take_text(codec, &parameter->copies_note);
    parameter->verdict = (enum gradcmp_verdict)take_small(
        codec, parameter->verdict, GRADCMP_VERDICT_SHAPE, GRADCMP_VERDICT_PASS);
}

/* The lists of a parameter: least sizes are those of their items without texts. */
static void take_parameter(struct codec *codec, struct gradcmp_parameter_report *parameter) {
    bool is_read = codec->out == NULL;
    take_identity(codec, parameter);
    take_figures(codec, parameter);
    take_count(codec, &parameter->cause_count, 48);
    parameter->causes = !is_read ? parameter->causes
                                 : make(codec, parameter->cause_count, sizeof *parameter->causes);
    for (size_t i = 0; i < parameter->cause_count && !codec->failed; i++) {
        take_cause(codec, &parameter->causes[i], false);
    }
    take_count(codec, &parameter->shard_count, 56);
    parameter->shards = !is_read ? parameter->shards
                                 : make(codec, parameter->shard_count, sizeof *parameter->shards);
    for (size_t i = 0; i < parameter->shard_count && !codec->failed; i++) {
        take_shard(codec, &parameter->shards[i], parameter->ndim_a, parameter->ndim_b);
    }
    take_count(codec, &parameter->rank_count, 48);
    parameter->ranks =
        !is_read ? parameter->ranks : make(codec, parameter->rank_count, sizeof *parameter->ranks);
    for (size_t i = 0; i < parameter->rank_count && !codec->failed; i++) {
        take_rank(codec, &parameter->ranks[i]);
    }
    take_heat(codec, &parameter->heat);
}

static void take_bound(struct codec *codec, struct gradcmp_bound *bound) {
    take_real(codec, &bound->k);
    take_real(codec, &bound->C);
    take_real(codec, &bound->eps);
    take_real(codec, &bound->cap);
    take_word(codec, &bound->layers);
    codec->failed = codec->failed || bound->layers > (uint64_t)GREATEST_LAYER;
    take_flag(codec, &bound->constant);
    bound->dtype = (enum gradcmp_dtype)take_small(codec, bound->dtype, 0, GRADCMP_DTYPE_COUNT - 1);
    bound->dtype_source = (enum gradcmp_dtype_source)take_small(codec, bound->dtype_source, 0,
                                                                GRADCMP_DTYPE_ASSUMED_STATE);
}

static void take_spread(struct codec *codec, struct gradcmp_spread_facts *spread) {
    take_size(codec, &spread->onset_failing);
    take_size(codec, &spread->onset_passing);
    take_size(codec, &spread->layers_failing);
    take_size(codec, &spread->layers);
    spread->only_class =
        (enum gradcmp_class)take_small(codec, spread->only_class, 0, GRADCMP_CLASS_COLUMN);
    take_size(codec, &spread->class_failing);
    take_size(codec, &spread->class_all);
    take_real(codec, &spread->growth);
    take_size(codec, &spread->growth_layers);
}

static void take_summary(struct codec *codec, struct gradcmp_pair_report *pair) {
    /* A pair that could not be read is never kept: the next time it may be. */
    pair->outcome =
        (enum gradcmp_outcome)take_small(codec, pair->outcome, 0, GRADCMP_OUTCOME_VACUOUS);
    take_bound(codec, &pair->bound);
    for (size_t i = 0; i <= GRADCMP_VERDICT_PASS; i++) {
        take_size(codec, &pair->verdict_counts[i]);
    }
    take_word(codec, &pair->compared_elems);
    take_word(codec, &pair->unjudged_elems);
    take_word(codec, &pair->bytes);
    take_real(codec, &pair->common_factor);
    take_real(codec, &pair->norm_a);
    take_real(codec, &pair->norm_b);
    take_real(codec, &pair->state_factor);
    take_size(codec, &pair->worst);
    take_layer(codec, &pair->onset_layer);
    take_layer(codec, &pair->jump_layer);
    take_cause(codec, &pair->cause, true);
    take_spread(codec, &pair->spread);
    take_text(codec, &pair->undecided_reason);
}

static void take_notes(struct codec *codec, struct gradcmp_pair_report *pair) {
    take_count(codec, &pair->note_count, 16);
    const char **own = codec->out == NULL ? make(codec, pair->note_count, sizeof *own) : NULL;
    for (size_t i = 0; i < pair->note_count && !codec->failed; i++) {
        const char *note = codec->out != NULL ? pair->notes[i] : NULL;
        take_text(codec, &note);
        codec->failed = codec->failed || note == NULL;
        if (own != NULL) {
            own[i] = note;
        }
    }
    if (codec->out == NULL) {
        pair->notes = own;
    }
}

/* Names are sorted, and the worst is one of them. */
static void check_order(struct codec *codec, const struct gradcmp_pair_report *pair) {
    for (size_t i = 1; i < pair->parameter_count && !codec->failed; i++) {
        codec->failed = strcmp(pair->parameters[i - 1].name, pair->parameters[i].name) >= 0;
    }
    codec->failed =
        codec->failed || (pair->worst != SIZE_MAX && pair->worst >= pair->parameter_count);
}

static void take_pair(struct codec *codec, struct gradcmp_pair_report *pair) {
    take_summary(codec, pair);
    take_notes(codec, pair);
    take_count(codec, &pair->parameter_count, 64);
    if (codec->out == NULL) {
        pair->parameters = make(codec, pair->parameter_count, sizeof *pair->parameters);
    }
    for (size_t i = 0; i < pair->parameter_count && !codec->failed; i++) {
        take_parameter(codec, &pair->parameters[i]);
    }
    check_order(codec, pair);
    take_size(codec, &pair->stateless);
    take_word(codec, &pair->stateless_elems);
    take_size(codec, &pair->beside);
    take_word(codec, &pair->beside_elems);
}

void gcmp_resume_write_pair(struct gcmp_text *out, const struct gradcmp_pair_report *pair) {
    struct codec codec = {.out = out};
    struct gradcmp_pair_report shown = *pair; /* its lists are only read */
    take_pair(&codec, &shown);
    out->failed = out->failed || codec.failed;
}

bool gcmp_resume_read_pair(struct gcmp_cursor *in, struct gcmp_arena *arena,
                           struct gradcmp_pair_report *pair, bool *no_memory) {
    struct codec codec = {.in = in, .arena = arena};
    *pair = (struct gradcmp_pair_report){0};
    take_pair(&codec, pair);
    *no_memory = codec.no_memory;
    return !codec.failed;
}
