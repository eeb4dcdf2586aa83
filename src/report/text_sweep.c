/* The terminal report of a sweep: the matrix of configurations by layers, and one line each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gradcmp/sys/sweep.h"
#include "report/repeat.h"
#include "report/sweep_facts.h"
#include "report/text.h"

enum {
    MAX_GROUPS = 6,      /* of the layers 1..L */
    CELL_COLUMNS = 8,    /* of a group */
    OUTCOME_COLUMNS = 14 /* the longest outcome and a space */
};

/* The columns: embeddings, groups of layers, head. */
struct columns {
    uint64_t layers;
    size_t groups;
    size_t label_columns;
};

static void choose_columns(struct columns *columns, const struct gradcmp_sweep *sweep,
                           const struct gcmp_page *page) {
    columns->layers = 0;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        uint64_t layers = sweep->report->pairs[i].bound.layers;
        columns->layers = layers > columns->layers ? layers : columns->layers;
    }
    columns->groups = columns->layers < MAX_GROUPS ? (size_t)columns->layers : MAX_GROUPS;
    size_t taken = OUTCOME_COLUMNS + (columns->groups + 2) * CELL_COLUMNS;
    while (columns->groups > 1 && taken + 20 > page->width) {
        columns->groups--;
        taken -= CELL_COLUMNS;
    }
    columns->label_columns = page->width > taken + 12 ? page->width - taken - 1 : 12;
    size_t longest = strlen("configuration");
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        size_t length = strlen(sweep->rows[i].label);
        longest = length > longest ? length : longest;
    }
    columns->label_columns = longest < columns->label_columns ? longest : columns->label_columns;
}

/* First layer of a group, from 0; group `groups` begins behind the last. */
static uint64_t group_start(const struct columns *columns, size_t group) {
    return 1 + columns->layers * group / columns->groups;
}

/* The column of a layer: 0 embeddings, 1.. groups, groups + 1 the head. */
static size_t column_of(const struct columns *columns, int64_t layer) {
    if (layer <= 0) {
        return 0;
    }
    size_t group = 0;
    while (group < columns->groups && (uint64_t)layer >= group_start(columns, group + 1)) {
        group++;
    }
    return group + 1;
}

static void add_header(struct gcmp_page *page, const struct columns *columns) {
    char cell[48];
    gcmp_page_add(page, "configuration");
    gcmp_page_pad(page, strlen("configuration"), columns->label_columns + 1);
    gcmp_page_add(page, "verdict");
    gcmp_page_pad(page, strlen("verdict"), OUTCOME_COLUMNS);
    gcmp_page_addf(page, "%*s", CELL_COLUMNS, "embed");
    for (size_t g = 0; g < columns->groups; g++) {
        unsigned long long first = group_start(columns, g), last = group_start(columns, g + 1) - 1;
        if (first == last) {
            snprintf(cell, sizeof cell, "%llu", first);
        } else {
            snprintf(cell, sizeof cell, "%llu-%llu", first, last);
        }
        gcmp_page_addf(page, "%*s", CELL_COLUMNS, cell);
    }
    gcmp_page_addf(page, "%*s", CELL_COLUMNS, "head");
    gcmp_page_end_line(page);
}

/* The worst verdict and the highest ratio of a cell. */
struct cell {
    bool is_used, is_judged;
    enum gradcmp_verdict worst;
    double ratio;
};

/* What a cell shows where no ratio tells of it; NULL: the ratio does. At most 6 columns. */
static const char *word_of(enum gradcmp_verdict verdict) {
    switch (verdict) {
    case GRADCMP_VERDICT_SHAPE:
        return "shape";
    case GRADCMP_VERDICT_MISSING:
        return "absent";
    case GRADCMP_VERDICT_EXTRA:
        return "extra";
    case GRADCMP_VERDICT_CONFLICT:
        return "copies";
    case GRADCMP_VERDICT_NONFINITE:
        return "NaN";
    case GRADCMP_VERDICT_SCALE:
        return "scale";
    default:
        return NULL;
    }
}

static void fill_cells(struct cell *cells, const struct columns *columns,
                       const struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        struct cell *cell = &cells[column_of(columns, parameter->layer)];
        cell->is_used = true;
        if (parameter->verdict == GRADCMP_VERDICT_UNJUDGED) {
            continue;
        }
        if (!cell->is_judged || parameter->verdict < cell->worst) {
            cell->worst = parameter->verdict;
        }
        cell->is_judged = true;
        if (!isnan(parameter->ratio) && parameter->ratio > cell->ratio) {
            cell->ratio = parameter->ratio;
        }
    }
}

/* Figures end at their column; a mark stands in the space behind. `gap`: columns that are still
 * empty before the cell. */
static void add_cell(struct gcmp_page *page, const struct cell *cell, int *gap) {
    char figure[GCMP_FIGURE_BYTES];
    *gap += CELL_COLUMNS;
    if (!cell->is_used) {
        return;
    }
    gcmp_figure(figure, cell->ratio);
    if (strlen(figure) > CELL_COLUMNS - 2) {
        snprintf(figure, sizeof figure, "%.0e", cell->ratio);
    }
    const char *word = word_of(cell->worst), *judged = word == NULL ? figure : word;
    const char *content = cell->is_judged ? judged : "-";
    bool is_bad = cell->is_judged && cell->worst != GRADCMP_VERDICT_PASS;
    gcmp_page_addf(page, "%*s", *gap - (int)strlen(content), "");
    if (is_bad) {
        gcmp_page_ink(page, GCMP_INK_BAD, content);
        gcmp_page_add(page, "*");
    } else {
        gcmp_page_add(page, content);
    }
    *gap = is_bad ? -1 : 0;
}

static void add_row(struct gcmp_page *page, const struct columns *columns,
                    const struct gradcmp_sweep *sweep, size_t row) {
    const struct gradcmp_pair_report *pair = &sweep->report->pairs[row];
    struct cell cells[MAX_GROUPS + 2];
    memset(cells, 0, sizeof cells);
    gcmp_page_name_in(page, sweep->rows[row].label, columns->label_columns);
    gcmp_page_add(page, " ");
    gcmp_text_outcome(page, pair->outcome);
    size_t used = strlen(gradcmp_outcome_name(pair->outcome));
    if (pair->taken_over) {
        gcmp_page_add(page, " =");
        used += 2;
    }
    if (pair->outcome != GRADCMP_OUTCOME_ERROR) {
        gcmp_page_pad(page, used, OUTCOME_COLUMNS);
        fill_cells(cells, columns, pair);
        int gap = 0;
        for (size_t c = 0; c < columns->groups + 2; c++) {
            add_cell(page, &cells[c], &gap);
        }
    }
    gcmp_page_end_line(page);
}

static void add_findings(struct gcmp_page *page, const struct gradcmp_sweep *sweep) {
    size_t count = gcmp_sweep_finding_count(sweep);
    if (count > 0) {
        gcmp_page_heading(page, gcmp_sweep_findings_title(sweep));
    }
    for (size_t i = 0; i < count; i++) {
        struct gcmp_sweep_finding finding = gcmp_sweep_finding(sweep, i);
        gcmp_page_add(page, "- ");
        gcmp_page_name(page, finding.label);
        gcmp_page_add(page, ": ");
        gcmp_page_wrap(page, strlen(finding.label) + 4, 4, finding.text);
    }
}

static void add_repeats(struct gcmp_page *page, const struct gradcmp_sweep *sweep) {
    if (sweep->repeat_count == 0) {
        return;
    }
    gcmp_page_heading(page, "Repeats of one configuration, bit for bit");
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        const struct gradcmp_sweep_repeat *repeat = &sweep->repeats[i];
        gcmp_page_add(page, "- ");
        gcmp_page_name(page, repeat->label_b);
        gcmp_page_add(page, " against ");
        gcmp_page_name(page, repeat->label_a);
        struct gcmp_text found = GCMP_TEXT_INIT;
        gcmp_text_add_repeat(&found, repeat);
        gcmp_page_add(page, ": ");
        size_t column = strlen(repeat->label_a) + strlen(repeat->label_b) + 13;
        gcmp_page_wrap(page, column, 4, found.bytes == NULL ? "" : found.bytes);
        page->out.text.failed = page->out.text.failed || found.failed;
        gcmp_text_free(&found);
    }
}

/* What was found in a row, and whether the plan expects that. */
static void add_detail(struct gcmp_page *page, const struct gradcmp_sweep *sweep, size_t index) {
    const struct gradcmp_sweep_row *row = &sweep->rows[index];
    const struct gradcmp_pair_report *pair = &sweep->report->pairs[index];
    struct gcmp_text found = GCMP_TEXT_INIT;
    gcmp_text_add_findings(&found, pair);
    if (row->has_expected) {
        gcmp_text_add(&found, " (");
        gcmp_text_add_expected(&found, sweep, index);
        gcmp_text_add(&found, ")");
    }
    gcmp_page_add(page, "- ");
    gcmp_page_name(page, row->label);
    gcmp_page_add(page, ": ");
    gcmp_text_outcome(page, pair->outcome);
    gcmp_page_add(page, ": ");
    size_t column = strlen(row->label) + strlen(gradcmp_outcome_name(pair->outcome)) + 6;
    gcmp_page_wrap(page, column, 2, found.bytes == NULL ? "" : found.bytes);
    page->out.text.failed = page->out.text.failed || found.failed;
    gcmp_text_free(&found);
}

/* Each row that is not consistent, or not as planned. */
static void add_details(struct gcmp_page *page, const struct gradcmp_sweep *sweep) {
    bool is_first = true;
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        const struct gradcmp_pair_report *pair = &sweep->report->pairs[i];
        const struct gradcmp_sweep_row *row = &sweep->rows[i];
        bool as_expected = row->has_expected && pair->outcome == row->expected;
        if (!page->verbose && pair->outcome == GRADCMP_OUTCOME_CONSISTENT &&
            (as_expected || !row->has_expected)) {
            continue;
        }
        if (is_first) {
            gcmp_page_heading(page, "What was found");
        }
        is_first = false;
        add_detail(page, sweep, i);
    }
}

static void add_head(struct gcmp_page *page, const struct gradcmp_sweep *sweep) {
    struct gcmp_text read = GCMP_TEXT_INIT;
    gcmp_page_add(page, "swept      ");
    gcmp_page_name(page, sweep->root);
    gcmp_page_end_line(page);
    gcmp_page_add(page, "baseline   ");
    gcmp_page_name(page, sweep->baseline_label);
    gcmp_page_addf(page, " (%s)", sweep->baseline_reason);
    gcmp_page_end_line(page);
    size_t taken = gcmp_sweep_taken_count(sweep);
    gcmp_text_add_sweep_read(&read, sweep);
    if (read.length_bytes > 0) {
        gcmp_page_addf(page, "read       %s", read.bytes);
        gcmp_page_end_line(page);
    }
    page->out.text.failed = page->out.text.failed || read.failed;
    gcmp_text_free(&read);
    gcmp_repeat_line(page, "options    ", &sweep->report->options);
    if (sweep->golden_note != NULL) {
        gcmp_page_add(page, "golden     ");
        size_t column = strlen("golden     ");
        if (sweep->golden != NULL) {
            gcmp_page_name(page, sweep->golden);
            gcmp_page_add(page, ": ");
            column += strlen(sweep->golden) + 2;
        }
        gcmp_page_wrap(page, column, strlen("golden     "), sweep->golden_note);
    }
    for (size_t i = 0; i < sweep->left_count; i++) {
        gcmp_page_add(page, "left out   ");
        gcmp_page_wrap(page, strlen("left out   "), strlen("left out   "), sweep->left[i].text);
    }
    if (taken > 0) {
        gcmp_page_addf(page, "taken over %zu of %zu candidates, unchanged since they were judged: ",
                       taken, sweep->report->pair_count);
        gcmp_page_name(page, sweep->resume);
        gcmp_page_end_line(page);
    }
}

/* The line that stands alone. */
static void add_summary(struct gcmp_page *page, const struct gradcmp_sweep *sweep) {
    struct gcmp_text summary = GCMP_TEXT_INIT;
    int status = gradcmp_sweep_exit_status(sweep);
    gcmp_text_add_sweep_summary(&summary, sweep);
    gcmp_page_end_line(page);
    gcmp_page_ink(page,
                  status == 0   ? GCMP_INK_GOOD
                  : status == 1 ? GCMP_INK_BAD
                                : GCMP_INK_DOUBT,
                  sweep->unfinished > 0 ? "SWEEP INTERRUPTED"
                  : status == 0         ? "SWEEP PASSES"
                  : status == 1         ? "SWEEP FAILS"
                                        : "SWEEP INCOMPLETE");
    gcmp_page_addf(page, ": %s", summary.bytes == NULL ? "" : summary.bytes);
    gcmp_page_end_line(page);
    page->out.text.failed = page->out.text.failed || summary.failed;
    gcmp_text_free(&summary);
}

enum gradcmp_status gradcmp_sweep_write_text(const struct gradcmp_sweep *sweep,
                                             const struct gradcmp_text_options *text,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    struct gcmp_page page;
    struct columns columns;
    gcmp_page_open(&page, text, 0);
    choose_columns(&columns, sweep, &page);
    gcmp_out_begin(&page.out, write, user);
    add_head(&page, sweep);
    gcmp_page_heading(&page, gcmp_sweep_taken_count(sweep) == 0
                                 ? "Worst error / bound by layers; * marks a finding"
                                 : "Worst error / bound by layers; * marks a finding, = a row "
                                   "taken over");
    add_header(&page, &columns);
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        add_row(&page, &columns, sweep, i);
    }
    add_details(&page, sweep);
    add_findings(&page, sweep);
    add_repeats(&page, sweep);
    add_summary(&page, sweep);
    return gcmp_out_end(&page.out, error);
}
