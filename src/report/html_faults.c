/* What fails, one box a parameter. */
#include <inttypes.h>
#include <math.h>

#include "report/facts.h"
#include "report/heat.h"
#include "report/html_parts.h"

enum { SHARDS_SHOWN = 16 };

enum gcmp_tone gcmp_outcome_tone(enum gradcmp_outcome outcome) {
    return outcome == GRADCMP_OUTCOME_CONSISTENT     ? GCMP_TONE_GOOD
           : outcome == GRADCMP_OUTCOME_INCONSISTENT ? GCMP_TONE_BAD
                                                     : GCMP_TONE_DOUBT;
}

enum gcmp_tone gcmp_verdict_tone(enum gradcmp_verdict verdict) {
    return verdict == GRADCMP_VERDICT_PASS       ? GCMP_TONE_GOOD
           : verdict == GRADCMP_VERDICT_UNJUDGED ? GCMP_TONE_DOUBT
                                                 : GCMP_TONE_BAD;
}

static void add_causes(struct gcmp_markup *html, const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    if (parameter->cause_count == 0) {
        return;
    }
    gcmp_markup_open(html, "ul", NULL);
    for (size_t i = 0; i < parameter->cause_count; i++) {
        const struct gradcmp_cause *cause = &parameter->causes[i];
        gcmp_markup_open(html, "li", NULL);
        gcmp_markup_element(html, "strong", cause->kind, NULL);
        gcmp_markup_text(html, ": ");
        gcmp_markup_text(html, cause->text);
        if (cause->residual > 0.0) {
            gcmp_markup_textf(html, "; a difference of %s is left",
                              gcmp_figure(figure, cause->residual));
        } else if (cause->residual == 0.0) {
            gcmp_markup_text(html, "; no difference is left");
        }
        gcmp_markup_close(html);
    }
    gcmp_markup_close(html);
}

static void add_rank(struct gcmp_markup *html, const struct gradcmp_coords *coords) {
    if (coords == NULL) {
        return;
    }
    const struct {
        const char *name;
        int32_t value;
    } known[] = {{"tp", coords->tp}, {"pp", coords->pp}, {"ep", coords->ep},
                 {"dp", coords->dp}, {"vp", coords->vp}, {"etp", coords->etp}};
    const char *separator = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].value >= 0) {
            gcmp_markup_textf(html, "%s%s %" PRId32, separator, known[i].name, known[i].value);
            separator = ", ";
        }
    }
}

static void add_shape_cell(struct gcmp_markup *html, unsigned ndim, const uint64_t *sizes) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add_shape(&text, ndim, sizes);
    gcmp_markup_element(html, "td", text.bytes == NULL ? "" : text.bytes, "class", "n", NULL);
    html->out->text.failed = html->out->text.failed || text.failed;
    gcmp_text_free(&text);
}

static void add_shards(struct gcmp_markup *html, const struct gradcmp_parameter_report *parameter) {
    char figure[GCMP_FIGURE_BYTES];
    size_t shown = parameter->shard_count < SHARDS_SHOWN ? parameter->shard_count : SHARDS_SHOWN;
    if (shown == 0) {
        return;
    }
    gcmp_markup_open(html, "details", NULL);
    gcmp_markup_open(html, "summary", NULL);
    gcmp_markup_textf(html, "%zu shards", parameter->shard_count);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "div", "class", "wide", NULL);
    gcmp_markup_open(html, "table", NULL);
    gcmp_markup_open(html, "tbody", NULL);
    for (size_t i = 0; i < shown; i++) {
        const struct gradcmp_shard *shard = &parameter->shards[i];
        gcmp_markup_open(html, "tr", NULL);
        gcmp_markup_element(html, "td", shard->in_a ? "baseline" : "candidate", NULL);
        gcmp_markup_element(html, "td", shard->file == NULL ? "" : shard->file, "class", "name",
                            NULL);
        gcmp_markup_open(html, "td", NULL);
        add_rank(html, shard->coords);
        gcmp_markup_close(html);
        add_shape_cell(html, parameter->ndim_b, shard->start);
        add_shape_cell(html, parameter->ndim_b, shard->extent);
        gcmp_markup_element(html, "td", gcmp_figure_error(figure, shard->rel), "class", "n", NULL);
        gcmp_markup_close(html);
    }
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    if (shown < parameter->shard_count) {
        gcmp_markup_textf(html, "and %zu more", parameter->shard_count - shown);
    }
    gcmp_markup_close(html);
}

static void add_fault(struct gcmp_markup *html, const struct gcmp_pair_view *view,
                      const struct gradcmp_parameter_report *parameter) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_explain(&text, view->pair, parameter);
    gcmp_markup_open_line(html, "div", "class", "fault", NULL);
    gcmp_markup_open(html, "div", NULL);
    gcmp_html_word(html, gcmp_verdict_tone(parameter->verdict),
                   gradcmp_verdict_name(parameter->verdict));
    gcmp_markup_text(html, " ");
    gcmp_markup_element(html, "strong", parameter->name, "class", "name", NULL);
    gcmp_markup_textf(html, " layer %" PRId64, parameter->layer);
    gcmp_markup_element(html, "p", text.bytes == NULL ? "" : text.bytes, NULL);
    add_causes(html, parameter);
    add_shards(html, parameter);
    gcmp_markup_close(html);
    gcmp_heat_html(html, parameter);
    gcmp_markup_close(html);
    html->out->text.failed = html->out->text.failed || text.failed;
    gcmp_text_free(&text);
}

void gcmp_html_faults(struct gcmp_markup *html, const struct gcmp_pair_view *view, size_t top) {
    size_t bad = view->count == 0 ? 0 : gcmp_bad_count(view->pair);
    size_t shown = bad < top ? bad : top;
    bool has_map = false;
    if (bad == 0) {
        return;
    }
    gcmp_markup_open_line(html, "h3", NULL);
    gcmp_markup_textf(html, "Failing parameters: %zu of %zu%s", bad, view->count,
                      shown > 1 ? ", the worst first" : "");
    gcmp_markup_close(html);
    for (size_t i = 0; i < shown; i++) {
        has_map = has_map || view->by_badness[i]->heat.cells != NULL;
        add_fault(html, view, view->by_badness[i]);
    }
    if (has_map) {
        gcmp_heat_legend(html);
    }
    if (shown < bad) {
        gcmp_markup_open_line(html, "p", NULL);
        gcmp_markup_textf(html, "%zu more failing parameters are in the table of all.",
                          bad - shown);
        gcmp_markup_close(html);
    }
}
