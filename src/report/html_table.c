/* The table of all parameters, and the matrix of candidates by depth. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/facts.h"
#include "report/groups.h"
#include "report/html_parts.h"
#include "report/sweep_facts.h"

enum { MAX_CELLS = 100000 };

/* One name over all candidates. */
struct row {
    const struct gradcmp_parameter_report **cells; /* one a candidate; NULL: it has none */
    const struct gradcmp_parameter_report *worst;
};

struct table {
    const struct gradcmp_report *report;
    struct row *rows;
    const struct gradcmp_parameter_report **cells; /* of all rows */
    size_t *next;                                  /* of each candidate, while names are merged */
    size_t row_count, capacity;
};

static size_t parameters_of(const struct gradcmp_pair_report *pair) {
    return pair->outcome == GRADCMP_OUTCOME_ERROR ? 0 : pair->parameter_count;
}

/* The parameter that comes next in a candidate, or NULL. */
static const struct gradcmp_parameter_report *peek(const struct table *table, size_t pair) {
    const struct gradcmp_pair_report *own = &table->report->pairs[pair];
    return table->next[pair] < parameters_of(own) ? &own->parameters[table->next[pair]] : NULL;
}

/* Take the least name that comes next in any candidate. False at the end. */
static bool merge_row(struct table *table) {
    const char *least = NULL;
    size_t pairs = table->report->pair_count;
    for (size_t i = 0; i < pairs; i++) {
        const struct gradcmp_parameter_report *next = peek(table, i);
        if (next != NULL && (least == NULL || strcmp(next->name, least) < 0)) {
            least = next->name;
        }
    }
    if (least == NULL || table->row_count == table->capacity) {
        return false;
    }
    struct row *row = &table->rows[table->row_count];
    *row = (struct row){table->cells + table->row_count * pairs, NULL};
    table->row_count++;
    for (size_t i = 0; i < pairs; i++) {
        const struct gradcmp_parameter_report *next = peek(table, i);
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a parameter has a name */
        row->cells[i] = next != NULL && strcmp(next->name, least) == 0 ? next : NULL;
        table->next[i] += row->cells[i] != NULL;
        if (row->cells[i] != NULL &&
            (row->worst == NULL || gcmp_compare_badness(row->cells[i], row->worst) < 0)) {
            row->worst = row->cells[i];
        }
    }
    return true;
}

static int compare_rows(const void *left, const void *right) {
    return gcmp_compare_badness(((const struct row *)left)->worst,
                                ((const struct row *)right)->worst);
}

/* False without memory. */
static bool build(struct table *table, const struct gradcmp_report *report) {
    size_t all = 0, cells;
    for (size_t i = 0; i < report->pair_count; i++) {
        all += parameters_of(&report->pairs[i]);
    }
    *table = (struct table){.report = report, .capacity = all};
    if (__builtin_mul_overflow(all, report->pair_count, &cells)) {
        return false;
    }
    table->rows = calloc(all + 1, sizeof *table->rows);
    table->cells = calloc(cells + 1, sizeof *table->cells);
    table->next = calloc(report->pair_count + 1, sizeof *table->next);
    if (table->rows == NULL || table->cells == NULL || table->next == NULL) {
        return false;
    }
    while (merge_row(table)) {
    }
    qsort(table->rows, table->row_count, sizeof *table->rows, compare_rows);
    return true;
}

static void discard(struct table *table) {
    free(table->rows);
    free(table->cells);
    free(table->next);
}

/* --- cells --- */

static void add_number(struct gcmp_markup *html, const char *figure) {
    gcmp_markup_element(html, "td", figure, "class", "n", NULL);
}

static const char *cell_class(const struct gradcmp_parameter_report *parameter) {
    return gcmp_verdict_is_bad(parameter->verdict)          ? "n b"
           : parameter->verdict == GRADCMP_VERDICT_UNJUDGED ? "n d"
                                                            : "n";
}

static bool rests_on_ratio(enum gradcmp_verdict verdict) {
    return verdict == GRADCMP_VERDICT_PASS || verdict == GRADCMP_VERDICT_FAIL;
}

/* The ratio, or the verdict where that says more. */
static void add_ratio_cell(struct gcmp_markup *html,
                           const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    if (parameter == NULL) {
        add_number(html, "-");
    } else if (rests_on_ratio(parameter->verdict)) {
        gcmp_markup_element(html, "td", gcmp_figure(figure, parameter->ratio), "class",
                            cell_class(parameter), NULL);
    } else {
        gcmp_markup_element(html, "td", gradcmp_verdict_name(parameter->verdict), "class",
                            cell_class(parameter), NULL);
    }
}

static void add_layer(struct gcmp_markup *html, int64_t layer) {
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, layer);
    add_number(html, number);
}

static void add_shape(struct gcmp_markup *html, const struct gradcmp_parameter_report *parameter) {
    uint64_t shape[GRADCMP_MAX_NDIM];
    unsigned ndim = gcmp_compared_shape(parameter, shape);
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add_shape(&text, ndim, shape);
    gcmp_markup_element(html, "td", text.bytes == NULL ? "" : text.bytes, "class", "shape", NULL);
    html->out->text.failed = html->out->text.failed || text.failed;
    gcmp_text_free(&text);
}

/* --- one candidate --- */

static void add_figures(struct gcmp_markup *html, const struct gradcmp_pair_report *pair,
                        const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    double judged = gcmp_judged_rel(parameter);
    add_number(html, gcmp_figure_error(figure, judged));
    gcmp_markup_element(html, "td", gcmp_figure(figure, parameter->ratio), "class",
                        parameter->ratio > 1.0 ? "n b" : "n", NULL);
    add_number(html, gcmp_figure(figure, judged / pair->bound.eps));
    add_number(html, gcmp_figure_factor(figure, parameter->alpha));
    add_number(html, gcmp_figure_error(figure, parameter->cosine));
    add_number(html, gcmp_figure(figure, gcmp_max_abs(parameter)));
    add_number(html, gcmp_figure_error(figure, parameter->norm_a));
    add_number(html, gcmp_figure_error(figure, parameter->norm_b));
}

static void add_single_row(struct gcmp_markup *html, const struct gradcmp_pair_report *pair,
                           const struct gradcmp_parameter_report *parameter) {
    const char *verdict = gradcmp_verdict_name(parameter->verdict);
    const char *tone = gcmp_tone_class(gcmp_verdict_tone(parameter->verdict));
    gcmp_markup_open_line(html, "tr", "data-v", verdict, NULL);
    gcmp_markup_element(html, "td", verdict, "class", tone, NULL);
    add_layer(html, parameter->layer);
    gcmp_markup_element(html, "td", parameter->name, "class", "name", NULL);
    add_figures(html, pair, parameter);
    add_shape(html, parameter);
    gcmp_markup_element(html, "td", parameter->cause_count > 0 ? parameter->causes[0].kind : "",
                        NULL);
    gcmp_markup_close(html);
}

static const struct gcmp_html_column single_columns[] = {
    {"verdict", NULL, false},
    {"layer", "0 embeddings, then from 1 at the input", true},
    {"parameter", NULL, false},
    {"error", "|candidate - baseline| / |baseline|, by norms; a common factor divided out", true},
    {"/ bound", "the error over the bound of the layer", true},
    {"eps", "the error in multiples of the machine epsilon", true},
    {"alpha", "the factor that brings the baseline closest to the candidate", true},
    {"cosine", NULL, true},
    {"max |d|", "largest difference of an element", true},
    {"norm a", "of the baseline", true},
    {"norm b", "of the candidate", true},
    {"shape", NULL, false},
    {"cause", NULL, false},
    {NULL, NULL, false}};

/* --- several candidates --- */

/* All verdicts of a row: nine words of at most nine letters. */
enum { VERDICTS_BYTES = 160 };

/* The verdicts in a row, each once, for the filter. */
static void add_verdicts(const struct table *table, const struct row *row,
                         char out[VERDICTS_BYTES]) {
    size_t at = 0;
    out[0] = '\0';
    for (int verdict = GRADCMP_VERDICT_SHAPE; verdict <= GRADCMP_VERDICT_PASS; verdict++) {
        for (size_t i = 0; i < table->report->pair_count; i++) {
            if (row->cells[i] != NULL && (int)row->cells[i]->verdict == verdict) {
                const char *name = gradcmp_verdict_name((enum gradcmp_verdict)verdict);
                at += (size_t)snprintf(out + at, VERDICTS_BYTES - at, "%s%s", at == 0 ? "" : " ",
                                       name);
                break;
            }
        }
    }
}

static void add_several_row(struct gcmp_markup *html, const struct table *table,
                            const struct row *row) {
    char verdicts[VERDICTS_BYTES];
    add_verdicts(table, row, verdicts);
    gcmp_markup_open_line(html, "tr", "data-v", verdicts, NULL);
    add_layer(html, row->worst->layer);
    gcmp_markup_element(html, "td", row->worst->name, "class", "name", NULL);
    for (size_t i = 0; i < table->report->pair_count; i++) {
        add_ratio_cell(html, row->cells[i]);
    }
    add_shape(html, row->worst);
    gcmp_markup_close(html);
}

/* The heads of several candidates are their numbers. */
static void open_several(struct gcmp_markup *html, const struct gradcmp_report *report) {
    char number[32];
    gcmp_markup_open_line(html, "div", "class", "wide late", NULL);
    gcmp_markup_open(html, "table", "class", "sorts", "id", "parameters", NULL);
    gcmp_markup_open(html, "thead", NULL);
    gcmp_markup_open(html, "tr", NULL);
    gcmp_markup_element(html, "th", "layer", "class", "n", "scope", "col", NULL);
    gcmp_markup_element(html, "th", "parameter", "scope", "col", NULL);
    for (size_t i = 0; i < report->pair_count; i++) {
        snprintf(number, sizeof number, "%zu", i + 1);
        gcmp_markup_element(html, "th", number, "class", "n", "scope", "col", "title",
                            report->pairs[i].path, NULL);
    }
    gcmp_markup_element(html, "th", "shape", "scope", "col", NULL);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "tbody", NULL);
}

/* --- the whole table --- */

static void add_rows(struct gcmp_markup *html, const struct table *table, size_t rows) {
    static const char *const verdicts[] = {"fail",    "scale", "nonfinite", "conflict", "shape",
                                           "missing", "extra", "unjudged",  "pass",     NULL};
    bool is_single = table->report->pair_count == 1;
    gcmp_html_tools(html, "parameters", "words that have to be in a row", verdicts);
    if (is_single) {
        gcmp_html_table_open(html, "parameters", single_columns);
    } else {
        open_several(html, table->report);
    }
    for (size_t i = 0; i < rows; i++) {
        if (is_single) {
            add_single_row(html, table->report->pairs, table->rows[i].worst);
        } else {
            add_several_row(html, table, &table->rows[i]);
        }
    }
    gcmp_html_table_close(html);
    if (rows < table->row_count) {
        gcmp_markup_open_line(html, "p", NULL);
        gcmp_markup_textf(html, "The worst %zu of %zu parameters; the JSON has all.", rows,
                          table->row_count);
        gcmp_markup_close(html);
    }
}

void gcmp_html_table(struct gcmp_markup *html, const struct gradcmp_report *report, size_t rows) {
    struct table table;
    if (!build(&table, report)) {
        html->out->text.failed = true;
    } else if (table.row_count > 0) {
        size_t most = MAX_CELLS / report->pair_count;
        rows = rows < most ? rows : most;
        gcmp_markup_element(html, "h2", "All parameters", NULL);
        if (report->pair_count > 1) {
            gcmp_markup_element(html, "p",
                                "Error over the bound in each candidate; where a verdict does not "
                                "rest on it, the verdict.",
                                NULL);
        }
        add_rows(html, &table, rows < table.row_count ? rows : table.row_count);
    }
    discard(&table);
}

/* --- the matrix --- */

static void add_group(struct gcmp_markup *html, const struct gradcmp_pair_report *pair,
                      const struct gcmp_layer_group *group) {
    struct gcmp_group_cell cell = gcmp_group_cell(pair, group);
    char title[96], figure[GCMP_FIGURE_BYTES];
    snprintf(title, sizeof title, "%zu of %zu fail", cell.bad, cell.count);
    const char *text = "-", *name = "n";
    if (cell.worst != NULL) {
        text = rests_on_ratio(cell.worst->verdict) ? gcmp_figure(figure, cell.worst->ratio)
                                                   : gradcmp_verdict_name(cell.worst->verdict);
        name = cell_class(cell.worst);
        name = strcmp(name, "n") == 0 ? "n g" : name;
    }
    gcmp_markup_element(html, "td", text, "class", name, "title", cell.worst == NULL ? NULL : title,
                        NULL);
}

/* Behind the verdict: what a plan expects, and that configuration and run disagree. */
static void add_expected(struct gcmp_markup *html, const struct gradcmp_sweep *sweep,
                         size_t index) {
    if (sweep == NULL) {
        return;
    }
    if (sweep->rows[index].has_expected) {
        bool as_planned = gcmp_sweep_row_status(sweep, index) == 0;
        gcmp_markup_element(html, "span", as_planned ? " as planned" : " not as planned", "class",
                            as_planned ? "dim" : "bad", NULL);
    }
    if (sweep->rows[index].finding_count > 0) {
        gcmp_markup_element(html, "span", " configuration", "class", "bad", "title",
                            "the run did not do what its configuration says", NULL);
    }
}

static void add_candidate(struct gcmp_markup *html, const struct gradcmp_report *report,
                          size_t index, const struct gcmp_layer_group *groups, size_t count) {
    const struct gradcmp_pair_report *pair = &report->pairs[index];
    char number[32], link[40];
    snprintf(number, sizeof number, "%zu", index + 1);
    snprintf(link, sizeof link, "#candidate%zu", index + 1);
    gcmp_markup_open_line(html, "tr", NULL);
    add_number(html, number);
    gcmp_markup_open(html, "td", "class", "name", NULL);
    gcmp_markup_element(html, "a", gcmp_candidate_label(report, index), "href", link, NULL);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "td", NULL);
    gcmp_html_word(html, gcmp_outcome_tone(pair->outcome), gradcmp_outcome_name(pair->outcome));
    add_expected(html, report->sweep, index);
    gcmp_markup_close(html);
    for (size_t i = 0; i < count; i++) {
        add_group(html, pair, &groups[i]);
    }
    gcmp_markup_close(html);
}

void gcmp_html_matrix(struct gcmp_markup *html, const struct gradcmp_report *report) {
    struct gcmp_layer_group groups[GCMP_MAX_LAYER_GROUPS];
    size_t count = gcmp_layer_groups(report, groups);
    gcmp_markup_element(html, "h2", "Candidates by depth", NULL);
    gcmp_markup_element(html, "p",
                        "The worst error over the bound in each group of layers, from the loss to "
                        "the input.",
                        NULL);
    gcmp_markup_open_line(html, "div", "class", "wide", NULL);
    gcmp_markup_open(html, "table", "class", "sorts", "id", "matrix", NULL);
    gcmp_markup_open(html, "thead", NULL);
    gcmp_markup_open(html, "tr", NULL);
    gcmp_markup_element(html, "th", "#", "class", "n", "scope", "col", NULL);
    gcmp_markup_element(html, "th", "candidate", "scope", "col", NULL);
    gcmp_markup_element(html, "th", "verdict", "scope", "col", NULL);
    for (size_t i = 0; i < count; i++) {
        gcmp_markup_element(html, "th", groups[i].label, "class", "n", "scope", "col", NULL);
    }
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "tbody", NULL);
    for (size_t i = 0; i < report->pair_count; i++) {
        add_candidate(html, report, i, groups, count);
    }
    gcmp_html_table_close(html);
}
