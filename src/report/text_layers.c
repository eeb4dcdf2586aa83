/* The table of layers: from the loss down, as errors travel in the backward pass. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/layer_word.h"
#include "report/facts.h"
#include "report/text.h"

enum {
    NUMBER_COLUMNS = 4,  /* l */
    LABEL_COLUMNS = 10,  /* "layers.117", at least */
    NAME_COLUMNS = 21,   /* of a parameter, at least */
    VERDICT_COLUMNS = 9, /* "nonfinite" */
    RATIO_COLUMNS = 6,
    LINES_SHOWN = 60,
    BAR_CELLS = 8,  /* up to the bound */
    OVER_CELLS = 4, /* beyond it: each doubles */
    FIXED_COLUMNS = NUMBER_COLUMNS + 1 + 1 + 1 + VERDICT_COLUMNS + 1 + RATIO_COLUMNS + 1 +
                    BAR_CELLS + 1 + OVER_CELLS
};

/* How the table is laid out. */
struct layer_table {
    struct gcmp_page *page;
    const struct gcmp_pair_view *view;
    bool by_number; /* the index in a name is l - 1; else layers bear the names of their stacks */
    size_t label_columns, name_columns;
};

/* The parameters of one layer: by_layer[first .. first + count). */
struct layer_run {
    size_t first, count, unjudged;
    int64_t layer;
    bool is_bad;
    double worst_ratio; /* NaN where no parameter has one */
};

static struct layer_run take_run(const struct gcmp_pair_view *view, size_t first) {
    struct layer_run run = {first, 0, 0, view->by_layer[first]->layer, false, NAN};
    while (first + run.count < view->count &&
           view->by_layer[first + run.count]->layer == run.layer) {
        const struct gradcmp_parameter_report *parameter = view->by_layer[first + run.count++];
        run.unjudged += parameter->verdict == GRADCMP_VERDICT_UNJUDGED;
        run.is_bad = run.is_bad || gcmp_verdict_is_bad(parameter->verdict);
        if (parameter->verdict != GRADCMP_VERDICT_UNJUDGED) {
            run.worst_ratio = fmax(run.worst_ratio, parameter->ratio);
        }
    }
    return run;
}

/* Add " (decoder.layers.2)". */
static void add_stored_layer(struct gcmp_page *page, const char *name, size_t bytes) {
    struct gcmp_text stored = GCMP_TEXT_INIT;
    gcmp_text_add_bytes(&stored, name, bytes);
    if (!stored.failed) {
        gcmp_page_add(page, " (");
        gcmp_page_name(page, stored.bytes);
        gcmp_page_add(page, ")");
    }
    page->out.text.failed = page->out.text.failed || stored.failed;
    gcmp_text_free(&stored);
}

/* Add the layer as names tell it: of several stacks the one that fails, and where nothing of a
 * layer fails what does, such as a norm behind the last layer. */
static void add_stored_name(struct gcmp_page *page, const struct gradcmp_pair_report *pair,
                            int64_t layer) {
    struct gcmp_layer_index found, named_at = {0, 0, 0};
    const char *named = NULL, *failing = NULL;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->layer != layer) {
            continue;
        }
        bool is_bad = gcmp_verdict_is_bad(parameter->verdict);
        if (!gcmp_find_layer_index(parameter->name, &found)) {
            failing = is_bad && failing == NULL ? parameter->name : failing;
        } else if (is_bad) {
            add_stored_layer(page, parameter->name, found.bytes);
            return;
        } else if (named == NULL) {
            named = parameter->name;
            named_at = found;
        }
    }
    if (failing != NULL && (named != NULL || !gcmp_names_count_layers(pair))) {
        add_stored_layer(page, failing, strlen(failing));
    } else if (named != NULL) {
        add_stored_layer(page, named, named_at.bytes);
    }
}

void gcmp_text_layer_name(struct gcmp_page *page, const struct gradcmp_pair_report *pair,
                          int64_t layer) {
    if (layer == 0) {
        gcmp_page_add(page, "the embeddings (layer 0)");
        return;
    }
    if ((uint64_t)layer == pair->bound.layers + 1) {
        gcmp_page_addf(page, "the head (layer %" PRId64 ")", layer);
        return;
    }
    gcmp_page_addf(page, "layer %" PRId64, layer);
    add_stored_name(page, pair, layer);
}

enum gcmp_ink gcmp_verdict_ink(enum gradcmp_verdict verdict) {
    if (verdict == GRADCMP_VERDICT_PASS) {
        return GCMP_INK_GOOD;
    }
    return verdict == GRADCMP_VERDICT_UNJUDGED ? GCMP_INK_DOUBT : GCMP_INK_BAD;
}

static void add_ratio(struct gcmp_page *page, double ratio) {
    char figure[GCMP_FIGURE_BYTES];
    gcmp_figure(figure, ratio);
    if (strlen(figure) > RATIO_COLUMNS) {
        snprintf(figure, sizeof figure, "%.0e", ratio);
    }
    gcmp_page_addf(page, " %*s ", (int)RATIO_COLUMNS, figure);
}

static void add_cells(struct gcmp_page *page, enum gcmp_ink ink, const char *cell, size_t count) {
    char cells[(BAR_CELLS + OVER_CELLS) * 4 + 1] = "";
    size_t at = 0;
    for (size_t i = 0; i < count && at < sizeof cells; i++) {
        at += (size_t)snprintf(cells + at, sizeof cells - at, "%s", cell);
    }
    gcmp_page_ink(page, ink, cells);
}

/* Linear up to the bound, then one cell for each doubling begun. */
static void add_bar(struct gcmp_page *page, double ratio) {
    bool is_over = ratio > 1.0;
    size_t full = is_over ? BAR_CELLS : (size_t)ceil(fmax(ratio, 0.0) * BAR_CELLS);
    size_t over = is_over ? (size_t)fmin(ceil(log2(ratio)), OVER_CELLS) : 0;
    const char *full_cell = page->utf8 ? "\u2588" : "#";
    add_cells(page, is_over ? GCMP_INK_BAD : GCMP_INK_GOOD, full_cell, full);
    add_cells(page, GCMP_INK_DIM, page->utf8 ? "\u00b7" : ".", BAR_CELLS - full);
    gcmp_page_add(page, page->utf8 ? "\u2502" : "|");
    add_cells(page, GCMP_INK_BAD, full_cell, over);
}

/* Add the verdict and, where the verdict rests on the ratio, the ratio with its bar. */
static void add_judgement(struct gcmp_page *page, enum gradcmp_verdict verdict, double ratio) {
    const char *name = gradcmp_verdict_name(verdict);
    bool rests_on_ratio = verdict == GRADCMP_VERDICT_PASS || verdict == GRADCMP_VERDICT_FAIL ||
                          verdict == GRADCMP_VERDICT_SCALE;
    gcmp_page_add(page, " ");
    gcmp_page_ink(page, gcmp_verdict_ink(verdict), name);
    if (rests_on_ratio && !isnan(ratio)) {
        gcmp_page_pad(page, strlen(name), VERDICT_COLUMNS);
        add_ratio(page, ratio);
        add_bar(page, ratio);
    }
    gcmp_page_end_line(page);
}

/* The first of a layer's parameters whose name tells the layer; NULL: none. */
static const char *stored_name(const struct layer_table *table, const struct layer_run *run,
                               struct gcmp_layer_index *found) {
    for (size_t i = run->first; i < run->first + run->count; i++) {
        const char *name = table->view->by_layer[i]->name;
        if (gcmp_find_layer_index(name, found)) {
            return name;
        }
    }
    return NULL;
}

static bool is_inner(const struct layer_table *table, const struct layer_run *run) {
    return run->layer > 0 && (uint64_t)run->layer <= table->view->pair->bound.layers;
}

/* Columns that a label may take. */
static size_t most_label(const struct gcmp_page *page) {
    return page->width - FIXED_COLUMNS - NAME_COLUMNS;
}

/* Add the name up to the layer's index. Where there is no room, the middle gives way: stacks differ
 * in front. */
static void add_stack(struct gcmp_text *label, const char *name,
                      const struct gcmp_layer_index *found, size_t room) {
    size_t tail = found->bytes - found->word_at + strlen("...");
    if (found->bytes <= room || tail >= room) {
        gcmp_text_add_bytes(label, name, found->bytes);
    } else {
        gcmp_text_add_bytes(label, name, room - tail);
        gcmp_text_add(label, "...");
        gcmp_text_add_bytes(label, name + found->word_at, found->bytes - found->word_at);
    }
}

/* What a layer is called, to be freed. */
static struct gcmp_text label_of(const struct layer_table *table, const struct layer_run *run) {
    struct gcmp_text label = GCMP_TEXT_INIT;
    struct gcmp_layer_index found;
    const char *name;
    if (!is_inner(table, run)) {
        gcmp_text_add(&label, run->layer == 0 ? "embedding" : "head");
    } else if (table->by_number) {
        gcmp_text_addf(&label, "layers.%" PRId64, run->layer - 1);
    } else if ((name = stored_name(table, run, &found)) != NULL) {
        add_stack(&label, name, &found, most_label(table->page));
    } else {
        gcmp_text_add(&label, "-");
    }
    return label;
}

static void add_label(const struct layer_table *table, const struct layer_run *run) {
    struct gcmp_page *page = table->page;
    struct gcmp_text label = label_of(table, run);
    gcmp_page_addf(page, "%*" PRId64 " ", (int)NUMBER_COLUMNS, run->layer);
    gcmp_page_name_in(page, label.failed ? "" : label.bytes, table->label_columns);
    gcmp_page_add(page, " ");
    page->out.text.failed = page->out.text.failed || label.failed;
    gcmp_text_free(&label);
}

/* The name without what the layer's label already says. */
static const char *short_name(const struct layer_table *table, const struct layer_run *run) {
    const char *name = table->view->by_layer[run->first]->name;
    struct gcmp_layer_index found;
    bool is_said = is_inner(table, run) && gcmp_find_layer_index(name, &found) &&
                   (!table->by_number || memcmp(name + found.word_at, "layers.", 7) == 0);
    return is_said && name[found.bytes] == '.' ? name + found.bytes + 1 : name;
}

static void add_layer(const struct layer_table *table, const struct layer_run *run) {
    const struct gradcmp_parameter_report *worst = table->view->by_layer[run->first];
    add_label(table, run);
    gcmp_page_name_in(table->page, short_name(table, run), table->name_columns);
    add_judgement(table->page, worst->verdict, worst->ratio);
}

/* Several layers without a fault, `from` the highest, `to` the lowest. */
static void add_folded(const struct layer_table *table, const struct layer_run *from,
                       const struct layer_run *to, const struct layer_run *sum) {
    struct gcmp_page *page = table->page;
    char text[160];
    int bytes = snprintf(text, sizeof text, "%*" PRId64 "..%" PRId64, (int)NUMBER_COLUMNS,
                         from->layer, to->layer);
    if (table->by_number) {
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes,
                          " layers.%" PRId64 "..%" PRId64, from->layer - 1, to->layer - 1);
    }
    snprintf(text + bytes, sizeof text - (size_t)bytes, ": %zu parameters", sum->count);
    gcmp_page_add(page, text);
    size_t used = strlen(text);
    if (sum->unjudged > 0) {
        int more = snprintf(text, sizeof text, ", %zu unjudged", sum->unjudged);
        gcmp_page_add(page, text);
        used += (size_t)more;
    }
    gcmp_page_pad(page, used, NUMBER_COLUMNS + 1 + table->label_columns + 1 + table->name_columns);
    add_judgement(page,
                  sum->unjudged == sum->count ? GRADCMP_VERDICT_UNJUDGED : GRADCMP_VERDICT_PASS,
                  sum->worst_ratio);
}

static bool is_foldable(const struct layer_table *table, const struct layer_run *run) {
    return is_inner(table, run) && !run->is_bad && !table->page->verbose;
}

/* Add the run at by_layer[first], with those behind it where they can be folded; return the index
 * behind the last one. */
static size_t add_run(const struct layer_table *table, size_t first) {
    const struct gcmp_pair_view *view = table->view;
    struct layer_run from = take_run(view, first), to = from, sum = from;
    size_t next = first + from.count;
    while (next < view->count && is_foldable(table, &from)) {
        struct layer_run run = take_run(view, next);
        if (!is_foldable(table, &run)) {
            break;
        }
        to = run;
        sum.count += run.count;
        sum.unjudged += run.unjudged;
        sum.worst_ratio = fmax(sum.worst_ratio, run.worst_ratio);
        next += run.count;
    }
    if (to.first == from.first) {
        add_layer(table, &from);
    } else {
        add_folded(table, &from, &to, &sum);
    }
    return next;
}

/* Give the labels as much room as they need, while the parameters keep some. */
static struct layer_table make_table(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    struct layer_table table = {page, view, gcmp_names_count_layers(view->pair), LABEL_COLUMNS, 0};
    size_t room = page->width - FIXED_COLUMNS, most = most_label(page);
    for (size_t first = 0; first < view->count;) {
        struct layer_run run = take_run(view, first);
        struct gcmp_text label = label_of(&table, &run);
        size_t needed = label.length_bytes < most ? label.length_bytes : most;
        table.label_columns = needed > table.label_columns ? needed : table.label_columns;
        gcmp_text_free(&label);
        first += run.count;
    }
    table.name_columns = room - table.label_columns;
    return table;
}

/* Words for classes of parameters. */
static const char *class_words(enum gradcmp_class sort) {
    static const char *const words[] = {[GRADCMP_CLASS_OTHER] = "parameters",
                                        [GRADCMP_CLASS_VECTOR] = "norm and bias parameters",
                                        [GRADCMP_CLASS_EXPERT] = "expert parameters",
                                        [GRADCMP_CLASS_ROUTER] = "routers",
                                        [GRADCMP_CLASS_EMBEDDING] = "embedding parameters",
                                        [GRADCMP_CLASS_ROW] = "row-parallel parameters",
                                        [GRADCMP_CLASS_COLUMN] = "column-parallel parameters"};
    return words[sort];
}

static void add_class(struct gcmp_text *text, const struct gradcmp_spread_facts *spread) {
    if (spread->only_class != GRADCMP_CLASS_OTHER) {
        gcmp_text_addf(text, "Only %s fail: %zu of the %zu in the layers concerned. ",
                       class_words(spread->only_class), spread->class_failing, spread->class_all);
    }
}

/* What lies around the onset. */
static void add_neighbours(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    const struct gradcmp_spread_facts *spread = &pair->spread;
    if (spread->layers > 2 && spread->layers_failing == spread->layers) {
        gcmp_text_add(text, "All layers are concerned. ");
    } else if (pair->onset_layer >= 0 && spread->onset_passing > 0) {
        gcmp_text_addf(text, "In the first layer hit, %zu of its %zu judged parameters pass. ",
                       spread->onset_passing, spread->onset_passing + spread->onset_failing);
    }
}

static void add_growth(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    char figure[GCMP_FIGURE_BYTES];
    if (pair->spread.growth_layers > 0) {
        gcmp_text_addf(text,
                       "Over the %zu failing layers from there down, the error is multiplied by %s "
                       "from one layer to the next. ",
                       pair->spread.growth_layers, gcmp_figure_factor(figure, pair->spread.growth));
    }
}

/* How the failures lie: neighbours, classes, growth, the strongest jump. */
static void add_spread(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    add_neighbours(&text, pair);
    add_class(&text, &pair->spread);
    add_growth(&text, pair);
    if (text.length_bytes > 0 && !text.failed) {
        text.bytes[text.length_bytes - 1] = '\0'; /* the last blank */
        gcmp_page_wrap(page, 0, 0, text.bytes);
    }
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
    if (pair->jump_layer < 0 || pair->onset_layer < 0 || pair->jump_layer == pair->onset_layer) {
        return;
    }
    gcmp_page_add(page, "The error grows most at ");
    gcmp_text_layer_name(page, pair, pair->jump_layer);
    gcmp_page_add(page, ".");
    gcmp_page_end_line(page);
}

/* Tell of the layers that there was no room for. */
static void add_rest(struct gcmp_page *page, const struct gcmp_pair_view *view, size_t next) {
    size_t layers = 0, bad = 0;
    while (next < view->count) {
        struct layer_run run = take_run(view, next);
        layers++;
        bad += run.is_bad;
        next += run.count;
    }
    if (layers > 0) {
        gcmp_page_addf(page, "     ... and %zu more layers, %zu of them with failures (--verbose)",
                       layers, bad);
        gcmp_page_end_line(page);
    }
}

void gcmp_text_layers(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    if (view->count == 0) {
        return;
    }
    gcmp_page_heading(page, "Layers from the loss down, each with its worst parameter");
    struct layer_table table = make_table(page, view);
    char line[GCMP_PAGE_MAX_WIDTH + 64];
    snprintf(line, sizeof line, "%*s %-*s %-*s %-*s %s", (int)NUMBER_COLUMNS, "l",
             (int)table.label_columns, "layer", (int)table.name_columns, "parameter",
             (int)VERDICT_COLUMNS, "verdict", "error / bound");
    gcmp_page_ink(page, GCMP_INK_DIM, line);
    gcmp_page_end_line(page);
    bool is_over = false;
    size_t next = 0, lines = 0;
    while (next < view->count && (lines < LINES_SHOWN || page->verbose)) {
        is_over = is_over || view->by_layer[next]->ratio > 1.0;
        next = add_run(&table, next);
        lines++;
    }
    add_rest(page, view, next);
    if (is_over) {
        gcmp_page_ink(page, GCMP_INK_DIM,
                      page->utf8 ? "A bar ends at the bound, \u2502; each cell beyond it doubles."
                                 : "A bar ends at the bound, |; each # beyond it doubles.");
        gcmp_page_end_line(page);
    }
    if (view->pair->outcome == GRADCMP_OUTCOME_INCONSISTENT) {
        add_spread(page, view->pair);
    }
}
