/* The table of layers: from the loss down, as errors travel in the backward pass. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facts.h"
#include "report/text.h"

enum {
    NUMBER_COLUMNS = 4,  /* l */
    LABEL_COLUMNS = 10,  /* "layers.117" */
    VERDICT_COLUMNS = 9, /* "nonfinite" */
    RATIO_COLUMNS = 6,
    LINES_SHOWN = 60,
    BAR_CELLS = 8,  /* up to the bound */
    OVER_CELLS = 4, /* beyond it: each doubles */
    FIXED_COLUMNS = NUMBER_COLUMNS + 1 + LABEL_COLUMNS + 1 + 1 + VERDICT_COLUMNS + 1 +
                    RATIO_COLUMNS + 1 + BAR_CELLS + 1 + OVER_CELLS
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

/* "layers.2." in a name of layer l = 3; NULL where the name counts otherwise. */
static const char *find_layer_part(const char *name, int64_t layer, size_t *length) {
    char part[40];
    *length = (size_t)snprintf(part, sizeof part, "layers.%" PRId64 ".", layer - 1);
    return layer < 1 ? NULL : strstr(name, part);
}

/* Add " (decoder.layers.2)" where the parameter's name tells it. */
static bool add_stored_layer(struct gcmp_page *page,
                             const struct gradcmp_parameter_report *parameter) {
    size_t length;
    const char *part = find_layer_part(parameter->name, parameter->layer, &length);
    if (part == NULL) {
        return false;
    }
    struct gcmp_text stored = GCMP_TEXT_INIT;
    gcmp_text_add_bytes(&stored, parameter->name,
                        (size_t)(part - parameter->name) + length - strlen("."));
    if (!stored.failed) {
        gcmp_page_add(page, " (");
        gcmp_page_name(page, stored.bytes);
        gcmp_page_add(page, ")");
    }
    page->out.text.failed = page->out.text.failed || stored.failed;
    gcmp_text_free(&stored);
    return true;
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
    /* Of several towers, the one that fails. */
    for (int is_bad = 1; is_bad >= 0; is_bad--) {
        for (size_t i = 0; i < pair->parameter_count; i++) {
            const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
            if (parameter->layer == layer && gcmp_verdict_is_bad(parameter->verdict) == is_bad &&
                add_stored_layer(page, parameter)) {
                return;
            }
        }
    }
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

static void add_label(struct gcmp_page *page, const struct gcmp_pair_view *view, int64_t layer) {
    char label[32];
    if (layer == 0) {
        snprintf(label, sizeof label, "embedding");
    } else if ((uint64_t)layer == view->pair->bound.layers + 1) {
        snprintf(label, sizeof label, "head");
    } else {
        snprintf(label, sizeof label, "layers.%" PRId64, layer - 1);
    }
    gcmp_page_addf(page, "%*" PRId64 " %-*s ", (int)NUMBER_COLUMNS, layer, (int)LABEL_COLUMNS,
                   label);
}

/* The name without what the layer's label already says. */
static const char *short_name(const struct gradcmp_parameter_report *parameter) {
    size_t length;
    const char *part = find_layer_part(parameter->name, parameter->layer, &length);
    return part == NULL ? parameter->name : part + length;
}

static void add_layer(struct gcmp_page *page, const struct gcmp_pair_view *view,
                      const struct layer_run *run) {
    const struct gradcmp_parameter_report *worst = view->by_layer[run->first];
    add_label(page, view, run->layer);
    gcmp_page_name_in(page, short_name(worst), page->width - FIXED_COLUMNS);
    add_judgement(page, worst->verdict, worst->ratio);
}

/* Several layers without a fault, `from` the highest, `to` the lowest. */
static void add_folded(struct gcmp_page *page, const struct layer_run *from,
                       const struct layer_run *to, const struct layer_run *sum) {
    char text[160];
    snprintf(text, sizeof text,
             "%*" PRId64 "..%" PRId64 " layers.%" PRId64 "..%" PRId64 ": %zu parameters",
             (int)NUMBER_COLUMNS, from->layer, to->layer, from->layer - 1, to->layer - 1,
             sum->count);
    gcmp_page_add(page, text);
    size_t used = strlen(text);
    if (sum->unjudged > 0) {
        int more = snprintf(text, sizeof text, ", %zu unjudged", sum->unjudged);
        gcmp_page_add(page, text);
        used += (size_t)more;
    }
    gcmp_page_pad(page, used, NUMBER_COLUMNS + 1 + LABEL_COLUMNS + 1 + page->width - FIXED_COLUMNS);
    add_judgement(page,
                  sum->unjudged == sum->count ? GRADCMP_VERDICT_UNJUDGED : GRADCMP_VERDICT_PASS,
                  sum->worst_ratio);
}

static bool is_foldable(const struct gcmp_page *page, const struct gcmp_pair_view *view,
                        const struct layer_run *run) {
    bool is_inner = run->layer > 0 && (uint64_t)run->layer <= view->pair->bound.layers;
    return is_inner && !run->is_bad && !page->verbose;
}

/* Add the run at by_layer[first], with those behind it where they can be folded; return the index
 * behind the last one. */
static size_t add_run(struct gcmp_page *page, const struct gcmp_pair_view *view, size_t first) {
    struct layer_run from = take_run(view, first), to = from, sum = from;
    size_t next = first + from.count;
    while (next < view->count && is_foldable(page, view, &from)) {
        struct layer_run run = take_run(view, next);
        if (!is_foldable(page, view, &run)) {
            break;
        }
        to = run;
        sum.count += run.count;
        sum.unjudged += run.unjudged;
        sum.worst_ratio = fmax(sum.worst_ratio, run.worst_ratio);
        next += run.count;
    }
    if (to.first == from.first) {
        add_layer(page, view, &from);
    } else {
        add_folded(page, &from, &to, &sum);
    }
    return next;
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
    char line[GCMP_PAGE_MAX_WIDTH + 64];
    snprintf(line, sizeof line, "%*s %-*s %-*s %-*s %s", (int)NUMBER_COLUMNS, "l",
             (int)LABEL_COLUMNS, "layer", (int)(page->width - FIXED_COLUMNS), "parameter",
             (int)VERDICT_COLUMNS, "verdict", "error / bound");
    gcmp_page_ink(page, GCMP_INK_DIM, line);
    gcmp_page_end_line(page);
    bool is_over = false;
    size_t next = 0, lines = 0;
    while (next < view->count && (lines < LINES_SHOWN || page->verbose)) {
        is_over = is_over || view->by_layer[next]->ratio > 1.0;
        next = add_run(page, view, next);
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
