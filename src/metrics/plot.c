/* Curves of both sides and of their difference as inline SVG, without script or style sheet. */
#include "metrics/content.h"

#include <float.h>
#include <math.h>

#include "base/text.h"

enum {
    WIDTH = 640,
    LEFT = 80,
    RIGHT = 10,
    CURVES_TOP = 10,
    CURVES_HEIGHT = 150,
    GAP = 20,
    DIFFERENCE_HEIGHT = 60,
    HEIGHT = CURVES_TOP + CURVES_HEIGHT + GAP + DIFFERENCE_HEIGHT + 20,
    MAX_DOTS = 600,
    MAX_PLOTS = 40
};

/* Values by step, and the frame that they are drawn in. */
struct frame {
    double step_low, step_high, low, high;
    double top, height;
};

static void escape(struct gcmp_text *html, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        const char *entity = byte == '<'   ? "&lt;"
                             : byte == '>' ? "&gt;"
                             : byte == '&' ? "&amp;"
                             : byte == '"' ? "&quot;"
                                           : NULL;
        if (entity != NULL) {
            gcmp_text_add(html, entity);
        } else if (byte < 0x20 || byte >= 0x7f) {
            gcmp_text_addf(html, "\\x%02X", byte);
        } else {
            gcmp_text_add_bytes(html, text, 1);
        }
    }
}

static void widen(struct frame *frame, double value) {
    if (isfinite(value)) {
        frame->low = fmin(frame->low, value);
        frame->high = fmax(frame->high, value);
    }
}

static double clamp(double value) {
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static double place(double value, double low, double high) {
    return high > low ? clamp((value - low) / (high - low)) : 0.5;
}

static void add_dot(struct gcmp_text *html, const struct frame *frame, double step, double value) {
    double x = LEFT + (WIDTH - LEFT - RIGHT) * place(step, frame->step_low, frame->step_high);
    double y = frame->top + frame->height * (1 - place(value, frame->low, frame->high));
    gcmp_text_addf(html, "%d.%d,%d.%d ", (int)x, (int)(x * 10) % 10, (int)y, (int)(y * 10) % 10);
}

/* The difference of a step of A, or NaN where there is none. */
static double difference(const struct gcmp_metric_result *result, size_t index) {
    const struct gcmp_metric_point *a = &result->a->points[index];
    const struct gcmp_metric_point *b =
        gcmp_metric_find(result->b->points, result->b->count, a->step);
    return b == NULL || a->is_absent || b->is_absent ? NAN : b->value - a->value;
}

static void add_axis(struct gcmp_text *html, const struct frame *frame) {
    gcmp_text_addf(html,
                   "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%.0f\" fill=\"none\" "
                   "stroke=\"#999\"/><text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%.5g</text>"
                   "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%.5g</text>",
                   LEFT, frame->top, WIDTH - LEFT - RIGHT, frame->height, LEFT - 4, frame->top + 10,
                   frame->high, LEFT - 4, frame->top + frame->height, frame->low);
}

static void open_line(struct gcmp_text *html, const char *color, const char *dashes) {
    gcmp_text_addf(html, "<polyline fill=\"none\" stroke=\"%s\"%s points=\"", color, dashes);
}

static void add_curve(struct gcmp_text *html, const struct frame *frame,
                      const struct gcmp_metric_series *series, const char *color,
                      const char *dashes) {
    size_t apart = series->count / MAX_DOTS + 1;
    open_line(html, color, dashes);
    for (size_t i = 0; i < series->count; i += apart) {
        if (!series->points[i].is_absent && isfinite(series->points[i].value)) {
            add_dot(html, frame, (double)series->points[i].step, series->points[i].value);
        }
    }
    gcmp_text_add(html, "\"/>");
}

/* Of each run of steps the largest difference is drawn, so that a single one is not skipped. */
static void add_difference(struct gcmp_text *html, const struct frame *frame,
                           const struct gcmp_metric_result *result) {
    size_t apart = result->a->count / MAX_DOTS + 1;
    open_line(html, "#c22", "");
    for (size_t i = 0; i < result->a->count; i += apart) {
        double largest = NAN;
        for (size_t j = i; j < i + apart && j < result->a->count; j++) {
            double here = difference(result, j);
            if (isfinite(here) && !(fabs(here) <= fabs(largest))) {
                largest = here;
            }
        }
        if (isfinite(largest)) {
            add_dot(html, frame, (double)result->a->points[i].step, largest);
        }
    }
    gcmp_text_add(html, "\"/>");
}

static void measure(const struct gcmp_metric_result *result, struct frame *curves,
                    struct frame *below) {
    const struct gcmp_metric_series *const sides[] = {result->a, result->b};
    *curves = (struct frame){DBL_MAX, -DBL_MAX, DBL_MAX, -DBL_MAX, CURVES_TOP, CURVES_HEIGHT};
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < sides[side]->count; i++) {
            const struct gcmp_metric_point *point = &sides[side]->points[i];
            curves->step_low = fmin(curves->step_low, (double)point->step);
            curves->step_high = fmax(curves->step_high, (double)point->step);
            if (!point->is_absent) {
                widen(curves, point->value);
            }
        }
    }
    *below =
        (struct frame){curves->step_low, curves->step_high, 0, 0, CURVES_TOP + CURVES_HEIGHT + GAP,
                       DIFFERENCE_HEIGHT};
    for (size_t i = 0; i < result->a->count; i++) {
        widen(below, difference(result, i));
    }
}

static void plot(struct gcmp_text *html, const struct gcmp_metric_result *result) {
    struct frame curves, below;
    measure(result, &curves, &below);
    gcmp_text_add(html, "<figure><figcaption>");
    escape(html, result->name);
    gcmp_text_addf(html, ": %s</figcaption>\n", gcmp_metric_verdict_name(result->verdict));
    if (curves.low > curves.high) {
        gcmp_text_add(html, "<p>no finite value</p></figure>\n");
        return;
    }
    gcmp_text_addf(
        html,
        "<svg viewBox=\"0 0 %d %d\" width=\"%d\" fill=\"currentColor\" "
        "style=\"max-width:100%%;height:auto\" font-size=\"10\" font-family=\"sans-serif\" "
        "role=\"img\">",
        WIDTH, HEIGHT, WIDTH);
    add_axis(html, &curves);
    add_curve(html, &curves, result->a, "#28e", "");
    add_curve(html, &curves, result->b, "#e80", " stroke-dasharray=\"5 3\"");
    add_axis(html, &below);
    add_difference(html, &below, result);
    gcmp_text_addf(html,
                   "<text x=\"%d\" y=\"%d\">step %.0f</text><text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">%.0f</text></svg></figure>\n",
                   LEFT, HEIGHT - 6, curves.step_low, WIDTH - RIGHT, HEIGHT - 6, curves.step_high);
}

void gcmp_metric_write_html(const struct gradcmp_evidence *evidence, struct gcmp_text *html) {
    const struct gcmp_metric_content *content = evidence->content;
    const struct gcmp_metric_judgement *judgement = &content->judgement;
    size_t plotted = 0;
    if (!content->is_judged || judgement->count == 0) {
        return;
    }
    gcmp_text_add(html, "<h2>Curves</h2>\n<p>Blue: A; orange, dashed: B; below, red: B - A.</p>\n");
    for (int pass = 0; pass < 2; pass++) { /* what differs comes first */
        for (size_t i = 0; i < judgement->count; i++) {
            bool differs = judgement->results[i].verdict == GCMP_METRIC_DIFFER;
            if (differs == (pass == 0) && plotted < MAX_PLOTS) {
                plot(html, &judgement->results[i]);
                plotted++;
            }
        }
    }
    if (plotted < judgement->count) {
        gcmp_text_addf(html, "<p>and %zu more metrics</p>\n", judgement->count - plotted);
    }
}
