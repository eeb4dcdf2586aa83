/* Why parameters fail: each cause once, with what it covers and what it leaves. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "report/text.h"

/* True where two parameters are told in one line: one kind, in the same words. */
static bool is_same(const struct gradcmp_parameter_report *a,
                    const struct gradcmp_parameter_report *b) {
    return a->cause_count > 0 && b->cause_count > 0 &&
           strcmp(a->causes[0].kind, b->causes[0].kind) == 0 &&
           strcmp(a->causes[0].text, b->causes[0].text) == 0;
}

/* The parameters from view->by_layer[first] on that share its cause. */
struct cause_group {
    size_t count;
    double residual; /* the largest; NaN: none */
    int64_t high, low;
};

static struct cause_group collect(const struct gcmp_pair_view *view, size_t first) {
    const struct gradcmp_parameter_report *leader = view->by_layer[first];
    struct cause_group group = {0, NAN, leader->layer, leader->layer};
    for (size_t i = first; i < view->count; i++) {
        if (is_same(leader, view->by_layer[i])) {
            group.count++;
            group.residual = fmax(group.residual, view->by_layer[i]->causes[0].residual);
            group.low = view->by_layer[i]->layer;
        }
    }
    return group;
}

static bool was_told(const struct gcmp_pair_view *view, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (is_same(view->by_layer[i], view->by_layer[index])) {
            return true;
        }
    }
    return false;
}

/* "- scale: 6 parameters of layer 2: ...; a difference of 0.0141 is left". */
static void add_line(struct gcmp_page *page, const char *kind, double residual, const char *what) {
    enum { INDENT = 2 };
    struct gcmp_text text = GCMP_TEXT_INIT;
    char figure[GCMP_FIGURE_BYTES];
    gcmp_text_add(&text, what);
    if (residual > 0.0) {
        gcmp_text_addf(&text, "; a difference of %s is left", gcmp_figure(figure, residual));
    } else if (residual == 0.0) {
        gcmp_text_add(&text, "; no difference is left");
    }
    gcmp_page_add(page, "- ");
    gcmp_page_ink(page, GCMP_INK_BOLD, kind);
    gcmp_page_add(page, ": ");
    gcmp_page_wrap(page, INDENT + strlen(kind) + 2, INDENT, text.bytes == NULL ? "" : text.bytes);
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

static void add_group(struct gcmp_page *page, const struct gcmp_pair_view *view, size_t first) {
    const struct gradcmp_parameter_report *leader = view->by_layer[first];
    struct cause_group group = collect(view, first);
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (group.count == 1) {
        gcmp_text_add(&text, leader->name);
    } else if (group.low == group.high) {
        gcmp_text_addf(&text, "%zu parameters of layer %" PRId64, group.count, group.low);
    } else {
        gcmp_text_addf(&text, "%zu parameters of layers %" PRId64 " to %" PRId64, group.count,
                       group.low, group.high);
    }
    gcmp_text_add(&text, ": ");
    gcmp_text_add(&text, leader->causes[0].text);
    add_line(page, leader->causes[0].kind, group.residual, text.bytes == NULL ? "" : text.bytes);
    page->out.text.failed = page->out.text.failed || text.failed;
    gcmp_text_free(&text);
}

/* True where the pair's own line tells a parameter's cause too: of a factor it tells what the
 * parameters have in common. */
static bool is_pairs(const struct gradcmp_pair_report *pair,
                     const struct gradcmp_parameter_report *parameter) {
    const struct gradcmp_cause *cause = &parameter->causes[0];
    return strcmp(cause->kind, pair->cause.kind) == 0 &&
           (!isnan(cause->factor) || strstr(pair->cause.text, cause->text) != NULL);
}

void gcmp_text_causes(struct gcmp_page *page, const struct gcmp_pair_view *view) {
    const struct gradcmp_cause *cause = &view->pair->cause;
    if (cause->kind == NULL) {
        return;
    }
    gcmp_page_heading(page, "Causes");
    add_line(page, cause->kind, cause->residual, cause->text);
    size_t shown = 0, limit = page->verbose ? view->count : page->top;
    for (size_t i = 0; i < view->count && shown < limit; i++) {
        const struct gradcmp_parameter_report *parameter = view->by_layer[i];
        if (parameter->cause_count > 0 && !was_told(view, i) && !is_pairs(view->pair, parameter)) {
            add_group(page, view, i);
            shown++;
        }
    }
}

/* The first parameter of the onset layer that has the pair's cause. */
static const struct gradcmp_parameter_report *leading(const struct gradcmp_pair_report *pair) {
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->cause_count > 0 &&
            strcmp(parameter->causes[0].kind, pair->cause.kind) == 0 &&
            (pair->onset_layer < 0 || parameter->layer == pair->onset_layer)) {
            return parameter;
        }
    }
    return NULL;
}

void gcmp_text_cause(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    const struct gradcmp_cause *cause = &pair->cause;
    if (cause->kind == NULL) {
        return;
    }
    const struct gradcmp_parameter_report *parameter = leading(pair);
    if (!isnan(cause->factor) && cause->factor != 0.0) {
        gcmp_page_addf(page, "; cause: %s %.*g", cause->kind, gcmp_factor_digits(cause->factor),
                       cause->factor);
    } else {
        gcmp_page_addf(page, "; cause: %s", cause->kind);
    }
    if (parameter != NULL && strcmp(cause->kind, "unexplained") != 0) {
        gcmp_page_add(page, " (");
        gcmp_page_name(page, parameter->causes[0].text);
        gcmp_page_add(page, ")");
    }
}
