/* What `gradcmp metrics` found, as its reports need it. */
#ifndef GCMP_METRICS_CONTENT_H
#define GCMP_METRICS_CONTENT_H

#include "gradcmp/sys/evidence.h"
#include "metrics/judge.h"

struct gcmp_metric_content {
    struct gcmp_metric_source a, b;
    struct gcmp_metric_rules rules;
    struct gcmp_metric_judgement judgement;
    const char **left_out; /* metrics that the filters named here leave out */
    size_t left_out_count;
    const char *filters;
    const char **notes; /* the evidence's, malloced; their texts are in the arena */
    size_t note_capacity;
    bool is_judged;             /* both sides could be read, at least in part */
    struct gradcmp_error error; /* of what could not; code GRADCMP_OK: nothing */
};

void gcmp_metric_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page);
void gcmp_metric_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json);
/* Both curves of each metric and their difference, as inline SVG. */
void gcmp_metric_write_html(const struct gradcmp_evidence *evidence, struct gcmp_text *html);

/* "3.3476028 against 3.3476031, 1 ulp of float32": the first mismatch in words, into `out`. */
void gcmp_metric_describe(const struct gcmp_metric_result *result, char *out, size_t out_bytes);

/* "match", "differ", "unjudged". */
const char *gcmp_metric_verdict_name(enum gcmp_metric_verdict verdict);

#endif
