/* The plot: an SVG picture, logarithmic upwards, the loss on the left and the embeddings on the
 * right, as errors travel in the backward pass. */
#include "report/html_plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/facts.h"

enum {
    WIDTH = 960,
    HEIGHT = 320,
    LEFT = 52,
    RIGHT = 10,
    TOP = 30,    /* above it: what is not finite */
    BOTTOM = 50, /* below it: no difference at all, and the layers */
    MARGIN = 15, /* between the scale and those two lines */
    MAX_DECADES = 17,
    MAX_LABELS = 24
};

struct plot {
    struct gcmp_markup *svg;
    const struct gcmp_pair_view *view;
    int64_t first, slots; /* the layer on the left, and how many there are */
    int low, high;        /* decades */
    size_t layer_dots, left_out, without;
};

static double x_of(const struct plot *plot, int64_t layer, double part) {
    double slot = (double)(plot->first - layer) + part;
    return LEFT + slot / (double)plot->slots * (WIDTH - LEFT - RIGHT);
}

/* Higher errors have smaller y; what the scale does not reach lies on a line of its own. */
static double y_of(const struct plot *plot, double error) {
    double bottom = HEIGHT - BOTTOM, top = TOP;
    if (!(error > 0.0)) {
        return bottom + MARGIN;
    }
    if (!isfinite(error)) {
        return top - MARGIN;
    }
    double part = (log10(error) - plot->low) / (double)(plot->high - plot->low);
    part = part < 0.0 ? 0.0 : part > 1.0 ? 1.0 : part;
    return bottom - part * (bottom - top);
}

static bool has_figure(const struct gradcmp_parameter_report *parameter) {
    return parameter->verdict == GRADCMP_VERDICT_NONFINITE || !isnan(gcmp_judged_rel(parameter));
}

static void widen(double value, double *low, double *high) {
    if (value > 0.0 && isfinite(value)) {
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

/* False where nothing can be drawn. */
static bool measure(struct plot *plot) {
    double low = INFINITY, high = 0.0;
    int64_t last = INT64_MAX;
    plot->first = INT64_MIN;
    for (size_t i = 0; i < plot->view->count; i++) {
        const struct gradcmp_parameter_report *parameter = plot->view->by_layer[i];
        if (!has_figure(parameter)) {
            continue;
        }
        plot->first = parameter->layer > plot->first ? parameter->layer : plot->first;
        last = parameter->layer < last ? parameter->layer : last;
        widen(gcmp_judged_rel(parameter), &low, &high);
        widen(parameter->bound, &low, &high);
    }
    if (high == 0.0 || plot->first < last) {
        return false;
    }
    plot->slots = plot->first - last + 1;
    plot->high = (int)ceil(log10(high) + 1e-9);
    plot->low = (int)floor(log10(low));
    plot->low = plot->high - plot->low > MAX_DECADES ? plot->high - MAX_DECADES : plot->low;
    plot->low -= plot->low == plot->high;
    return true;
}

enum { COORDINATE_BYTES = 32 };

static const char *coordinate(char out[COORDINATE_BYTES], double value) {
    snprintf(out, COORDINATE_BYTES, "%.1f", value);
    return out;
}

/* Text at a place; `anchor` is "end", "middle" or "start". */
static void add_label(const struct plot *plot, const double at[2], const char *anchor,
                      const char *text) {
    char x[COORDINATE_BYTES], y[COORDINATE_BYTES];
    gcmp_markup_element(plot->svg, "text", text, "x", coordinate(x, at[0]), "y",
                        coordinate(y, at[1]), "text-anchor", anchor, NULL);
}

static void add_grid(const struct plot *plot) {
    char path[96], label[32];
    int step = plot->high - plot->low > 8 ? 2 : 1;
    for (int decade = plot->high; decade >= plot->low; decade -= step) {
        double y = HEIGHT - BOTTOM -
                   (double)(decade - plot->low) / (double)(plot->high - plot->low) *
                       (HEIGHT - BOTTOM - TOP);
        snprintf(path, sizeof path, "M%d %.1fH%d", LEFT, y, WIDTH - RIGHT);
        snprintf(label, sizeof label, decade == 0 ? "1" : "1e%d", decade);
        gcmp_markup_empty(plot->svg, "path", "class", "grid", "d", path, NULL);
        add_label(plot, (const double[2]){LEFT - 6, y + 4}, "end", label);
    }
    add_label(plot, (const double[2]){LEFT - 6, TOP - MARGIN + 4}, "end", "inf");
    add_label(plot, (const double[2]){LEFT - 6, HEIGHT - BOTTOM + MARGIN + 4}, "end", "0");
}

static void add_layers(const struct plot *plot) {
    char label[32];
    int64_t step = (plot->slots + MAX_LABELS - 1) / MAX_LABELS;
    int64_t head = (int64_t)plot->view->pair->bound.layers + 1;
    for (int64_t layer = plot->first; layer > plot->first - plot->slots; layer -= step) {
        snprintf(label, sizeof label, "%" PRId64, layer);
        add_label(plot, (const double[2]){x_of(plot, layer, 0.5), HEIGHT - BOTTOM + 31}, "middle",
                  layer == head ? "head"
                  : layer == 0  ? "emb"
                                : label);
    }
    add_label(plot, (const double[2]){LEFT, HEIGHT - 4}, "start", "layer l, from the loss ...");
    add_label(plot, (const double[2]){WIDTH - RIGHT, HEIGHT - 4}, "end", "... to the input");
}

/* A step for each layer of which a bound is known. */
static void add_bound(const struct plot *plot) {
    struct gcmp_text path = GCMP_TEXT_INIT;
    const struct gcmp_pair_view *view = plot->view;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < view->count; i++) {
        const struct gradcmp_parameter_report *parameter = view->by_layer[i];
        if (has_figure(parameter) && parameter->layer != last && parameter->bound > 0.0) {
            bool goes_on = last != INT64_MIN && parameter->layer == last - 1;
            gcmp_text_addf(&path, "%c%.1f %.1fH%.1f", goes_on ? 'L' : 'M',
                           x_of(plot, parameter->layer, 0.0), y_of(plot, parameter->bound),
                           x_of(plot, parameter->layer, 1.0));
            last = parameter->layer;
        }
    }
    if (path.length_bytes > 0) {
        gcmp_markup_empty(plot->svg, "path", "class", "bound", "d", path.bytes, NULL);
    }
    plot->svg->out->text.failed = plot->svg->out->text.failed || path.failed;
    gcmp_text_free(&path);
}

/* Name, error and bound, for the label. */
static void add_title(const struct plot *plot, const struct gradcmp_parameter_report *parameter) {
    char error[GCMP_FIGURE_BYTES], ratio[GCMP_FIGURE_BYTES];
    gcmp_markup_open(plot->svg, "title", NULL);
    gcmp_markup_text(plot->svg, parameter->name);
    gcmp_text_add(&plot->svg->out->text, "\n");
    gcmp_markup_textf(plot->svg, "%s, layer %" PRId64 ": error %s, %s of the bound",
                      gradcmp_verdict_name(parameter->verdict), parameter->layer,
                      gcmp_figure_error(error, gcmp_judged_rel(parameter)),
                      gcmp_figure(ratio, parameter->ratio));
    gcmp_markup_close(plot->svg);
}

/* Passing ones are discs, failing ones diamonds: not told apart by colour alone. */
static void add_dot(const struct plot *plot, const struct gradcmp_parameter_report *parameter,
                    double part) {
    char x[COORDINATE_BYTES], y[COORDINATE_BYTES], path[96];
    double error =
        parameter->verdict == GRADCMP_VERDICT_NONFINITE ? INFINITY : gcmp_judged_rel(parameter);
    double at_x = x_of(plot, parameter->layer, part), at_y = y_of(plot, error);
    if (gcmp_verdict_is_bad(parameter->verdict)) {
        snprintf(path, sizeof path, "M%.1f %.1fl5 5-5 5-5-5z", at_x, at_y - 5);
        gcmp_markup_open(plot->svg, "path", "class", "f", "d", path, NULL);
    } else {
        const char *name = parameter->verdict == GRADCMP_VERDICT_UNJUDGED ? "u" : "p";
        gcmp_markup_open(plot->svg, "circle", "class", name, "r", "3", "cx", coordinate(x, at_x),
                         "cy", coordinate(y, at_y), NULL);
    }
    add_title(plot, parameter);
    gcmp_markup_close(plot->svg);
}

/* Draw those that pass first, so that what fails lies on top. */
static void add_layer(struct plot *plot, size_t first, size_t count) {
    size_t drawn = count < plot->layer_dots ? count : plot->layer_dots;
    plot->left_out += count - drawn;
    for (size_t i = drawn; i-- > 0;) {
        const struct gradcmp_parameter_report *parameter = plot->view->by_layer[first + i];
        if (has_figure(parameter)) {
            add_dot(plot, parameter, ((double)i + 0.5) / (double)drawn);
        } else {
            plot->without++;
        }
    }
}

static void add_dots(struct plot *plot) {
    const struct gcmp_pair_view *view = plot->view;
    for (size_t first = 0; first < view->count;) {
        size_t count = 1;
        while (first + count < view->count &&
               view->by_layer[first + count]->layer == view->by_layer[first]->layer) {
            count++;
        }
        add_layer(plot, first, count);
        first += count;
    }
}

static void add_caption(const struct plot *plot) {
    struct gcmp_markup *html = plot->svg;
    gcmp_markup_open_line(html, "figcaption", NULL);
    gcmp_markup_text(html, "Relative error of each parameter by depth; dashed: the bound. ");
    gcmp_markup_element(html, "span", "\u25cf inside", "class", "key p", NULL);
    gcmp_markup_text(html, " ");
    gcmp_markup_element(html, "span", "\u25c6 failing", "class", "key f", NULL);
    gcmp_markup_text(html, " \u25cb unjudged.");
    if (plot->left_out > 0) {
        gcmp_markup_textf(html, " Of each layer the %zu worst are drawn; %zu others are not.",
                          plot->layer_dots, plot->left_out);
    }
    if (plot->without > 0) {
        gcmp_markup_textf(html,
                          " %zu without an error of their own (shape, missing, extra) are not "
                          "drawn.",
                          plot->without);
    }
    gcmp_markup_close(html);
}

void gcmp_html_plot(struct gcmp_markup *html, const struct gcmp_pair_view *view,
                    size_t layer_dots) {
    struct plot plot = {.svg = html, .view = view, .layer_dots = layer_dots};
    char box[64];
    if (!measure(&plot)) {
        return;
    }
    snprintf(box, sizeof box, "0 0 %d %d", WIDTH, HEIGHT);
    gcmp_markup_open_line(html, "figure", NULL);
    gcmp_markup_open(html, "div", "class", "wide", NULL);
    gcmp_markup_open(html, "svg", "class", "plot", "viewBox", box, "role", "img", "aria-label",
                     "relative error by depth", NULL);
    add_grid(&plot);
    add_layers(&plot);
    add_bound(&plot);
    add_dots(&plot);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    add_caption(&plot);
    gcmp_markup_close(html);
}
