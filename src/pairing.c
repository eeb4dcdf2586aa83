/* Pairing by canonical name. */
#include "pairing.h"

#include <string.h>

#include "base/checked.h"
#include "base/expression.h"

enum gradcmp_status gcmp_name_filter_init(struct gcmp_name_filter *filter,
                                          const struct gradcmp_options *options,
                                          struct gradcmp_error *error) {
    memset(filter, 0, sizeof *filter);
    if (options->match != NULL) {
        GCMP_TRY(
            gcmp_expression_compile(&filter->match, REG_NOSUB, "--match ", options->match, error));
        filter->has_match = true;
    }
    if (options->exclude != NULL) {
        GCMP_TRY(gcmp_expression_compile(&filter->exclude, REG_NOSUB, "--exclude ",
                                         options->exclude, error));
        filter->has_exclude = true;
    }
    return GRADCMP_OK;
}

void gcmp_name_filter_free(struct gcmp_name_filter *filter) {
    if (filter->has_match) {
        regfree(&filter->match);
    }
    if (filter->has_exclude) {
        regfree(&filter->exclude);
    }
    memset(filter, 0, sizeof *filter);
}

static bool has_match(struct gcmp_name_filter *filter, const regex_t *regex, const char *name) {
    return gcmp_expression_matches(regex, name, 0, NULL, &filter->lacks_memory);
}

bool gcmp_name_filter_takes(struct gcmp_name_filter *filter, const char *name) {
    return (!filter->has_match || has_match(filter, &filter->match, name)) &&
           (!filter->has_exclude || !has_match(filter, &filter->exclude, name));
}

enum gradcmp_status gcmp_name_filter_check(const struct gcmp_name_filter *filter,
                                           struct gradcmp_error *error) {
    if (filter->lacks_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Rows of a side's tables of the run's vocabulary; 0 where that is not told: there are tables of
 * several sizes, as of several vocabularies, and none is what the run says that it padded to. */
static uint64_t find_rows(const struct gcmp_pairing_input *input, const struct gradcmp_model *model,
                          uint64_t padded) {
    uint64_t rows = 0;
    bool is_one = true;
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *table = &model->parameters[i];
        if (!table->vocab_rows || table->ndim == 0 || table->shape[0] < input->vocab ||
            !gcmp_name_filter_takes(input->filter, table->name)) {
            continue;
        }
        if (table->shape[0] == padded) {
            return padded;
        }
        is_one = is_one && (rows == 0 || table->shape[0] == rows);
        rows = table->shape[0];
    }
    return is_one ? rows : 0;
}

/* Decide whether two shapes are one, up to the rows of a padded vocabulary, and what is compared:
 * of tables that may be of another vocabulary than the run's, all rows that both sides have. */
static void compare_shapes(const struct gcmp_pairing_input *input, const struct gcmp_pairing *out,
                           struct gcmp_paired *sides, struct gradcmp_parameter_report *report) {
    const struct gradcmp_parameter *a = sides->a, *b = sides->b;
    if (a->ndim != b->ndim) {
        return;
    }
    bool is_table = a->vocab_rows && b->vocab_rows && a->ndim > 0;
    for (unsigned d = is_table ? 1 : 0; d < a->ndim; d++) {
        if (a->shape[d] != b->shape[d]) {
            return;
        }
    }
    uint64_t rows = is_table ? least(a->shape[0], b->shape[0]) : 0;
    if (is_table && a->shape[0] != b->shape[0] && rows < input->vocab) {
        return; /* words are missing, not padding */
    }
    report->shapes_agree = true;
    report->compared_elems = a->elem_count;
    if (is_table && a->shape[0] == out->rows_a && b->shape[0] == out->rows_b) {
        sides->vocab = input->vocab;
        rows = input->vocab != 0 ? input->vocab : rows;
    }
    if (is_table && (rows != a->shape[0] || rows != b->shape[0])) {
        report->compared_shape0 = rows;
        report->compared_elems = a->shape[0] == 0 ? 0 : a->elem_count / a->shape[0] * rows;
    }
}

/* Where one side is deeper, its head lies further out; both sides' heads are one layer. A side that
 * shows fewer layers may lack a whole stack, such as a frozen encoder, and take for a head what the
 * other knows to be in front of it. */
static int64_t layer_of(const struct gcmp_pairing_input *input, const struct gcmp_paired *sides) {
    const struct gradcmp_parameter *a = sides->a, *b = sides->b;
    if (a == NULL || b == NULL) {
        return a != NULL ? a->layer : b->layer;
    }
    bool a_is_less = input->a->shown < input->b->shown,
         b_is_less = input->b->shown < input->a->shown;
    if (a_is_less && a->layer > (int64_t)input->a->layers) {
        return b->layer;
    }
    if (b_is_less && b->layer > (int64_t)input->b->layers) {
        return a->layer;
    }
    return a->layer > b->layer ? a->layer : b->layer;
}

static void fill_report(const struct gcmp_pairing_input *input, const struct gcmp_pairing *out,
                        struct gcmp_paired *sides, struct gradcmp_parameter_report *report) {
    const struct gradcmp_parameter *a = sides->a, *b = sides->b;
    const struct gradcmp_parameter *either = a != NULL ? a : b;
    /* cppcheck-suppress nullPointerRedundantCheck; a pair has a side */
    report->name = either->name;
    report->layer = layer_of(input, sides);
    report->in_a = a != NULL;
    report->in_b = b != NULL;
    if (a != NULL) {
        report->ndim_a = a->ndim;
        report->dtype_a = a->dtype;
        report->shape_a = a->shape;
    }
    if (b != NULL) {
        report->ndim_b = b->ndim;
        report->dtype_b = b->dtype;
        report->shape_b = b->shape;
    }
    if (a != NULL && b != NULL) {
        compare_shapes(input, out, sides, report);
    }
}

static const struct gradcmp_parameter *find_vocab_rows(const struct gradcmp_model *model,
                                                       enum gradcmp_vocab_rows sort) {
    for (size_t i = 0; i < model->count; i++) {
        const struct gradcmp_parameter *parameter = &model->parameters[i];
        if (parameter->vocab_rows == sort && parameter->ndim == 2) {
            return parameter;
        }
    }
    return NULL;
}

bool gcmp_may_be_tied(const struct gradcmp_parameter *embedding,
                      const struct gradcmp_parameter *output) {
    return embedding->vocab_rows == GRADCMP_VOCAB_INPUT &&
           output->vocab_rows == GRADCMP_VOCAB_OUTPUT && embedding->ndim == 2 &&
           gcmp_dims_equal(embedding->ndim, embedding->shape, output->ndim, output->shape);
}

/* Find a tied output layer: stored by one side only, with the shape of that side's embedding. */
static struct gcmp_tied find_tied(const struct gradcmp_model *a, const struct gradcmp_model *b) {
    struct gcmp_tied none = {NULL, NULL, false};
    const struct gradcmp_parameter *head_a = find_vocab_rows(a, GRADCMP_VOCAB_OUTPUT);
    const struct gradcmp_parameter *head_b = find_vocab_rows(b, GRADCMP_VOCAB_OUTPUT);
    if ((head_a == NULL) == (head_b == NULL)) {
        return none;
    }
    struct gcmp_tied tied = {find_vocab_rows(head_b != NULL ? b : a, GRADCMP_VOCAB_INPUT),
                             head_b != NULL ? head_b : head_a, head_b != NULL};
    return tied.embedding != NULL && gcmp_may_be_tied(tied.embedding, tied.output) ? tied : none;
}

/* Merge the two sorted lists of names; returns the number of names on both sides. */
static size_t merge(const struct gcmp_pairing_input *input, struct gradcmp_pair_report *pair,
                    const struct gcmp_pairing *out) {
    size_t common = 0, i = 0, j = 0;
    while (i < input->a->count || j < input->b->count) {
        const struct gradcmp_parameter *a = i < input->a->count ? &input->a->parameters[i] : NULL;
        const struct gradcmp_parameter *b = j < input->b->count ? &input->b->parameters[j] : NULL;
        int order = a == NULL ? 1 : b == NULL ? -1 : strcmp(a->name, b->name);
        i += order <= 0;
        j += order >= 0;
        struct gcmp_paired both = {order <= 0 ? a : NULL, order >= 0 ? b : NULL, 0};
        const struct gradcmp_parameter *either = order <= 0 ? a : b;
        if (either != out->tied.output && gcmp_name_filter_takes(input->filter, either->name)) {
            common += order == 0;
            fill_report(input, out, &both, &pair->parameters[pair->parameter_count]);
            out->sides[pair->parameter_count++] = both;
        }
    }
    return common;
}

enum gradcmp_status gcmp_pair_parameters(const struct gcmp_pairing_input *input,
                                         struct gcmp_arena *arena, struct gradcmp_pair_report *pair,
                                         struct gcmp_pairing *out, struct gradcmp_error *error) {
    size_t most = input->a->count + input->b->count;
    pair->parameters = gcmp_arena_alloc(arena, most, sizeof *pair->parameters);
    out->sides = gcmp_arena_alloc(arena, most, sizeof *out->sides);
    if (pair->parameters == NULL || out->sides == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    pair->parameter_count = 0;
    out->vocab = input->vocab;
    out->rows_a = find_rows(input, input->a, input->padded_a);
    out->rows_b = find_rows(input, input->b, input->padded_b);
    out->tied =
        input->is_untied ? (struct gcmp_tied){NULL, NULL, false} : find_tied(input->a, input->b);
    if (out->tied.embedding != NULL &&
        !gcmp_name_filter_takes(input->filter, out->tied.embedding->name)) {
        out->tied = (struct gcmp_tied){NULL, NULL, false}; /* nothing would prove that it is tied */
    }
    if (merge(input, pair, out) > 0) {
        return GRADCMP_OK;
    }
    if (input->filter->has_match || input->filter->has_exclude) {
        GCMP_FAIL(
            error, GRADCMP_ERROR_UNSUPPORTED,
            "no parameter that --match and --exclude leave is on both sides (%zu names in the "
            "baseline, %zu in the candidate)",
            input->a->count, input->b->count);
    }
    GCMP_FAIL(
        error, GRADCMP_ERROR_UNSUPPORTED,
        "no parameter in common: the baseline has %zu, such as \"%s\", the candidate %zu, such as "
        "\"%s\" (a map of names joins them: --map FILE)",
        input->a->count, input->a->count > 0 ? input->a->parameters[0].name : "", input->b->count,
        input->b->count > 0 ? input->b->parameters[0].name : "");
}
