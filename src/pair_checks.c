/* What must hold of two sides before they are judged, and what their report has to say first. */
#include "pair_checks.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "base/layer_word.h"
#include "base/part.h"
#include "formats/quantised.h"
#include "left_out.h"
#include "stand_ins.h"

/* Codes of quantised weights are no values, and what is left out of "param" must not look equal. */
enum gradcmp_status gcmp_check_state(const struct gcmp_comparison *comparison,
                                     const struct gradcmp_checkpoint *checkpoint,
                                     struct gradcmp_error *error) {
    const char *key = NULL;
    if (strcmp(comparison->report->state, "exp_avg") == 0) {
        GCMP_TRY(gcmp_find_averaged_update(&checkpoint->catalogue, &key, error));
        if (key != NULL) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
                         "\"%.160s\" shows an optimizer (Adafactor, CAME, LaProp) whose exp_avg is "
                         "not the gradient but the update, in which a factor on a gradient is not "
                         "seen; train the step with Adam or AdamW",
                         key);
        }
    }
    if (strcmp(comparison->report->state, "param") == 0) {
        GCMP_TRY(gcmp_find_quantised(&checkpoint->catalogue, &key, error));
    }
    if (key != NULL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, checkpoint->path, GRADCMP_NO_OFFSET,
                     "\"%.160s\" is a quantised weight, with scales beside it: expected weights "
                     "in float64, float32, float16 or bfloat16; dequantise them, or compare "
                     "another state (--state)",
                     key);
    }
    return GRADCMP_OK;
}

/* The same directory on both sides, or different steps, make a comparison that proves nothing. */
enum gradcmp_status gcmp_check_comparable(const struct gcmp_comparison *comparison,
                                          const struct gcmp_participant *candidate,
                                          struct gradcmp_error *error) {
    const struct gradcmp_checkpoint *a = comparison->baseline.checkpoint;
    const struct gradcmp_checkpoint *b = candidate->checkpoint;
    if (!comparison->options->allow_same && gcmp_dir_is_one(a->catalogue.dir, b->catalogue.dir)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, b->path, GRADCMP_NO_OFFSET,
                     "the baseline itself; comparing it with itself proves nothing (--allow-same)");
    }
    GCMP_TRY(gcmp_check_parts(a->path, b->path, error));
    int64_t step_a = a->catalogue.iteration, step_b = b->catalogue.iteration;
    if (!comparison->options->allow_iterations && step_a >= 0 && step_b >= 0 && step_a != step_b) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, b->path, GRADCMP_NO_OFFSET,
                     "iteration %lld, the baseline is at iteration %lld (--allow-iterations)",
                     (long long)step_b, (long long)step_a);
    }
    return gcmp_check_state(comparison, b, error);
}

uint64_t gcmp_true_vocab(const struct gcmp_comparison *comparison,
                         const struct gcmp_participant *candidate) {
    uint64_t a = comparison->baseline.checkpoint->catalogue.vocab;
    uint64_t b = candidate->checkpoint->catalogue.vocab;
    if (comparison->options->vocab != 0) {
        return comparison->options->vocab;
    }
    return a > b ? a : b;
}

/* A vocabulary that is asked for must not leave out words that the run has, nor be larger than what
 * either side stores. */
static enum gradcmp_status check_vocab(const struct gcmp_comparison *comparison, size_t index,
                                       struct gradcmp_error *error) {
    const struct gcmp_participant *candidate = &comparison->candidates[index];
    uint64_t asked = comparison->options->vocab, rows = 0;
    uint64_t a = comparison->baseline.checkpoint->catalogue.vocab;
    uint64_t b = candidate->checkpoint->catalogue.vocab, known = a > b ? a : b;
    if (asked == 0) {
        return GRADCMP_OK;
    }
    if (asked < known) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "--vocab %llu would leave out words: the arguments in the %s say %llu",
                  (unsigned long long)asked, a >= b ? "baseline" : "candidate",
                  (unsigned long long)known);
    }
    for (size_t i = 0; i < comparison->report->pairs[index].parameter_count; i++) {
        const struct gcmp_paired *sides = &comparison->pairings[index].sides[i];
        const struct gradcmp_parameter *of_each[] = {sides->a, sides->b};
        for (size_t side = 0; side < 2; side++) {
            const struct gradcmp_parameter *own = of_each[side];
            bool is_larger = own != NULL && own->vocab_rows && own->shape[0] > rows;
            rows = is_larger ? own->shape[0] : rows;
        }
    }
    if (rows > 0 && asked > rows) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "--vocab %llu is more than the %llu rows of a vocabulary that are there",
                  (unsigned long long)asked, (unsigned long long)rows);
    }
    return GRADCMP_OK;
}

/* True where a vocabulary is padded to so many rows: to those that the run states, to a multiple of
 * make_vocab_size_divisible_by (Megatron's default is 128) and of the tensor-parallel ranks, or by
 * no more than a quarter. */
static bool is_explained(const struct gradcmp_catalogue *catalogue, uint64_t vocab, uint64_t rows) {
    const struct gradcmp_setting *stated =
        gcmp_catalogue_setting(catalogue, "make_vocab_size_divisible_by");
    bool is_stated = stated != NULL && stated->kind == GRADCMP_SETTING_INT && stated->integer > 0 &&
                     stated->integer <= UINT16_MAX;
    uint64_t step = is_stated ? (uint64_t)stated->integer : 128;
    step *= catalogue->parallel.tp > 1 ? catalogue->parallel.tp : 1;
    return rows <= vocab || rows == catalogue->padded_vocab || rows - vocab <= vocab / 4 ||
           (rows - vocab < step && rows % step == 0);
}

/* Rows beyond a vocabulary that a side states are not compared: there must be no more of them than
 * padding makes. */
static enum gradcmp_status check_padding(const struct gcmp_comparison *comparison, size_t index,
                                         struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    const struct gradcmp_catalogue *catalogues[] = {comparison->report->baseline, pair->catalogue};
    for (size_t i = 0; i < pair->parameter_count && comparison->options->vocab == 0; i++) {
        const struct gcmp_paired *sides = &comparison->pairings[index].sides[i];
        const struct gradcmp_parameter *of_each[] = {sides->a, sides->b};
        for (size_t side = 0; side < 2 && sides->vocab != 0; side++) {
            uint64_t rows = of_each[side]->shape[0];
            if (!is_explained(catalogues[0], sides->vocab, rows) &&
                !is_explained(catalogues[1], sides->vocab, rows)) {
                GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                          "%.160s has %llu rows in the %s, for a vocabulary of %llu words by what "
                          "the checkpoints say: padding does not make so many; say how many words "
                          "there are (--vocab N)",
                          pair->parameters[i].name, (unsigned long long)rows,
                          side == 0 ? "baseline" : "candidate", (unsigned long long)sides->vocab);
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status note_vocab(struct gcmp_comparison *comparison,
                                      const struct gcmp_participant *candidate,
                                      struct gradcmp_pair_report *pair,
                                      struct gradcmp_error *error) {
    const struct gcmp_pairing *pairing = &comparison->pairings[pair - comparison->report->pairs];
    uint64_t a = comparison->baseline.checkpoint->catalogue.vocab;
    uint64_t b = candidate->checkpoint->catalogue.vocab;
    if (comparison->options->vocab == 0 && a != 0 && b != 0 && a != b) {
        GCMP_TRY(gcmp_pair_note(comparison, pair, error,
                                "the vocabularies differ: %llu words in the baseline, %llu in the "
                                "candidate; the rows of the larger are compared",
                                (unsigned long long)a, (unsigned long long)b));
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        if (report->compared_shape0 != 0 && pairing->sides[i].vocab == 0) {
            return gcmp_pair_note(
                comparison, pair, error,
                "%s has %llu rows in the baseline, %llu in the candidate; %s, so the first %llu "
                "are compared (%s)",
                report->name, (unsigned long long)report->shape_a[0],
                (unsigned long long)report->shape_b[0],
                pairing->vocab != 0
                    ? "whether it is a table of the vocabulary is not known, since there are "
                      "tables of other sizes"
                    : "the true size of the vocabulary is not known",
                (unsigned long long)report->compared_shape0,
                pairing->vocab != 0 ? "--exclude leaves some out" : "--vocab N");
        }
    }
    return GRADCMP_OK;
}

/* What is no floating-point number on a side cannot be judged, and must not look as if it had been.
 */
static enum gradcmp_status check_types(const struct gradcmp_pair_report *pair,
                                       struct gradcmp_error *error) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        bool both = report->in_a && report->in_b;
        if (both && (!gcmp_dtype_is_float((enum gradcmp_dtype)report->dtype_a) ||
                     !gcmp_dtype_is_float((enum gradcmp_dtype)report->dtype_b))) {
            GCMP_FAIL(
                error, GRADCMP_ERROR_UNSUPPORTED,
                "%s: %s in the baseline, %s in the candidate; only floating-point tensors are "
                "judged (--exclude leaves a parameter out)",
                report->name, gradcmp_dtype_name((enum gradcmp_dtype)report->dtype_a),
                gradcmp_dtype_name((enum gradcmp_dtype)report->dtype_b));
        }
    }
    return GRADCMP_OK;
}

static bool has_inferred_sizes(const struct gradcmp_catalogue *catalogue) {
    return gcmp_catalogue_setting(catalogue, "safetensors.inferred_sizes") != NULL;
}

/* Refuse where a tensor's size is known from its shards alone, and the other side's is larger: the
 * last rank's file may be missing. */
static enum gradcmp_status check_inferred(const struct gcmp_comparison *comparison,
                                          const struct gradcmp_pair_report *pair,
                                          struct gradcmp_error *error) {
    bool a_inferred = has_inferred_sizes(comparison->report->baseline);
    bool b_inferred = has_inferred_sizes(pair->catalogue);
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        bool a_less = false, b_less = false;
        bool differ = report->in_a && report->in_b && !report->shapes_agree &&
                      report->ndim_a == report->ndim_b;
        for (unsigned d = 0; differ && d < report->ndim_a; d++) {
            a_less = a_less || report->shape_a[d] < report->shape_b[d];
            b_less = b_less || report->shape_b[d] < report->shape_a[d];
        }
        if ((a_less && !b_less && a_inferred) || (b_less && !a_less && b_inferred)) {
            GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                      "%.200s is smaller in the %s, whose files state where shards begin, not how "
                      "large the whole is: expected the files of all ranks",
                      report->name, a_less ? "baseline" : "candidate");
        }
    }
    return GRADCMP_OK;
}

static int compare_layers(const void *a, const void *b) {
    int64_t layer_a = *(const int64_t *)a, layer_b = *(const int64_t *)b;
    return (layer_a > layer_b) - (layer_a < layer_b);
}

/* Count those of layers 1 to `layers` that have a parameter on both sides; *absent is the last of
 * the others, 0 where there is none. Errors: MEMORY. */
static enum gradcmp_status count_layers(const struct gradcmp_pair_report *pair, uint64_t layers,
                                        uint64_t *seen, uint64_t *absent,
                                        struct gradcmp_error *error) {
    int64_t *present = calloc(pair->parameter_count + 1, sizeof *present);
    size_t count = 0;
    if (present == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        bool is_layer = report->layer >= 1 && (uint64_t)report->layer <= layers &&
                        (uint64_t)report->layer <= pair->bound.layers; /* the head is behind them */
        if (report->in_a && report->in_b && is_layer) {
            present[count++] = report->layer;
        }
    }
    qsort(present, count, sizeof *present, compare_layers);
    *seen = 0;
    *absent = layers;
    for (size_t i = count; i-- > 0;) {
        *seen += i == 0 || present[i] != present[i - 1];
        *absent -= (uint64_t)present[i] == *absent;
    }
    free(present);
    return GRADCMP_OK;
}

/* Say where layers that the runs' arguments count are not there to be judged; where stacks of
 * layers feed one another, arguments count one of them, names all. */
static enum gradcmp_status note_layers(struct gcmp_comparison *comparison,
                                       struct gradcmp_pair_report *pair,
                                       struct gradcmp_error *error) {
    uint64_t layers = comparison->report->baseline->layers, seen, absent;
    layers = pair->catalogue->layers > layers ? pair->catalogue->layers : layers;
    bool is_chained = comparison->options->layers == 0 &&
                      (comparison->baseline.model->chained ||
                       comparison->candidates[pair - comparison->report->pairs].model->chained);
    layers = is_chained && pair->bound.layers > layers ? pair->bound.layers : layers;
    GCMP_TRY(count_layers(pair, layers, &seen, &absent, error));
    if (seen == layers || comparison->options->match != NULL ||
        comparison->options->exclude != NULL) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "only %llu of %llu layers have %s on both sides; nothing is known of the "
                          "others, such as layer %llu",
                          (unsigned long long)seen, (unsigned long long)layers,
                          comparison->report->state, (unsigned long long)absent);
}

/* True where the files place parameters, or have numbers for names. */
static bool states_layers(const struct gradcmp_catalogue *catalogue) {
    size_t i = 0;
    while (i < catalogue->stored_count && catalogue->stored[i].stated_layer == 0) {
        i++;
    }
    return i < catalogue->stored_count || catalogue->number_groups != NULL;
}

/* Say where names that show no layer are more than a head has: where an error begins is not known.
 */
static enum gradcmp_status note_unplaced(struct gcmp_comparison *comparison,
                                         struct gradcmp_pair_report *pair,
                                         struct gradcmp_error *error) {
    enum { HEAD_PARAMETERS = 8, HEAD_SHARE = 4 };
    const int64_t head = (int64_t)pair->bound.layers + 1;
    const struct gradcmp_parameter_report *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        struct gcmp_layer_index index; /* of what predicts further words (mtp.layers.0), a head */
        bool is_unplaced = report->layer == head && !gcmp_find_layer_index(report->name, &index);
        first = is_unplaced && count++ == 0 ? report : first;
    }
    if (count <= HEAD_PARAMETERS || count <= pair->parameter_count / HEAD_SHARE ||
        states_layers(comparison->report->baseline) || states_layers(pair->catalogue)) {
        return GRADCMP_OK;
    }
    return gcmp_pair_note(comparison, pair, error,
                          "the names of %zu of %zu parameters, such as %.160s, show no layer: they "
                          "count as the head, next to the loss (--map FILE places them)",
                          count, pair->parameter_count, first->name);
}

enum gradcmp_status gcmp_check_pair(const struct gcmp_comparison *comparison, size_t index,
                                    struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    GCMP_TRY(check_vocab(comparison, index, error));
    GCMP_TRY(check_padding(comparison, index, error));
    GCMP_TRY(check_types(pair, error));
    return check_inferred(comparison, pair, error);
}

enum gradcmp_status gcmp_note_pair(struct gcmp_comparison *comparison, size_t index,
                                   struct gcmp_name_filter *filter, struct gradcmp_error *error) {
    struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    GCMP_TRY(note_layers(comparison, pair, error));
    GCMP_TRY(note_unplaced(comparison, pair, error));
    GCMP_TRY(gcmp_note_left_out(comparison, pair, filter, error));
    return note_vocab(comparison, &comparison->candidates[index], pair, error);
}
