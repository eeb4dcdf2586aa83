/* The line that stands alone: whether, where and how badly. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/facts.h"
#include "report/text.h"

void gcmp_text_outcome(struct gcmp_page *page, enum gradcmp_outcome outcome) {
    static const struct {
        const char *word;
        enum gcmp_ink ink;
    } outcomes[] = {[GRADCMP_OUTCOME_CONSISTENT] = {"CONSISTENT", GCMP_INK_GOOD},
                    [GRADCMP_OUTCOME_INCONSISTENT] = {"INCONSISTENT", GCMP_INK_BAD},
                    [GRADCMP_OUTCOME_UNDECIDED] = {"UNDECIDED", GCMP_INK_DOUBT},
                    [GRADCMP_OUTCOME_VACUOUS] = {"VACUOUS", GCMP_INK_DOUBT},
                    [GRADCMP_OUTCOME_ERROR] = {"ERROR", GCMP_INK_BAD}};
    gcmp_page_ink(page, outcomes[outcome].ink, outcomes[outcome].word);
}

/* True where what could not be judged is not the same on both sides. */
static bool has_unjudged_noise(const struct gradcmp_pair_report *pair) {
    bool has = false;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        has = has || (parameter->verdict == GRADCMP_VERDICT_UNJUDGED && parameter->rel > 0.0);
    }
    return has;
}

static void add_worst(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    if (pair->worst >= pair->parameter_count) {
        return;
    }
    char eps[GCMP_FIGURE_BYTES], ratio[GCMP_FIGURE_BYTES];
    const struct gradcmp_parameter_report *worst = &pair->parameters[pair->worst];
    if (worst->ratio == 0.0) {
        const char *judged = pair->outcome == GRADCMP_OUTCOME_CONSISTENT
                                 ? "; no difference in what was judged"
                                 : ""; /* with --strict, which says so itself */
        gcmp_page_add(page, !isnan(pair->common_factor) ? "; no difference beside that"
                            : has_unjudged_noise(pair)  ? judged
                            : gcmp_bad_count(pair) > 0  ? "; no difference beside that"
                                                        : "; no difference at all");
        return;
    }
    gcmp_page_add(page, "; worst ");
    gcmp_page_name(page, worst->name);
    if (isinf(worst->ratio)) {
        gcmp_page_add(page, worst->tally.max_a == 0.0 ? ", all zero in the baseline alone"
                                                      : ", too far off for a figure");
        return;
    }
    gcmp_figure(eps, gcmp_judged_rel(worst) / pair->bound.eps);
    gcmp_figure(ratio, worst->ratio);
    if (!isnan(pair->common_factor)) {
        gcmp_page_add(page, " beside that");
    }
    if (worst->ratio > 1.0) {
        gcmp_page_addf(page, " %s eps, %s times the bound", eps, ratio);
    } else {
        gcmp_page_addf(page, " %s eps, %s of the bound", eps, ratio);
    }
}

/* ", 2 parameters missing in the candidate": what no multiple of eps tells. */
static void add_unmeasured(struct gcmp_page *page, const struct gradcmp_pair_report *pair,
                           const char *separator) {
    static const struct {
        enum gradcmp_verdict verdict;
        const char *text;
    } kinds[] = {{GRADCMP_VERDICT_SCALE, "off by a factor"},
                 {GRADCMP_VERDICT_NONFINITE, "with NaN or Inf"},
                 {GRADCMP_VERDICT_CONFLICT, "with copies that disagree"},
                 {GRADCMP_VERDICT_MISSING, "missing in the candidate"},
                 {GRADCMP_VERDICT_EXTRA, "only in the candidate"},
                 {GRADCMP_VERDICT_SHAPE, "of another shape"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t count = pair->verdict_counts[kinds[i].verdict];
        if (count > 0) {
            gcmp_page_addf(page, "%s%zu parameter%s %s", separator, count, count == 1 ? "" : "s",
                           kinds[i].text);
            separator = ", ";
        }
    }
}

/* Under --strict, what could not be judged fails a pair in which nothing else is wrong. */
static bool fails_only_strictly(const struct gradcmp_pair_report *pair) {
    return gcmp_bad_count(pair) == 0 && isnan(pair->common_factor);
}

/* Without any layer in the names, all stand in one. */
static bool has_onset(const struct gradcmp_pair_report *pair) {
    return pair->onset_layer == 0 || (pair->onset_layer > 0 && pair->bound.layers > 0);
}

static void add_inconsistent(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    char figure[GCMP_FIGURE_BYTES];
    const char *separator = "";
    if (fails_only_strictly(pair)) {
        gcmp_page_addf(page,
                       "nothing that was judged differs, but %zu of %zu parameters could not "
                       "be judged (--strict)",
                       pair->verdict_counts[GRADCMP_VERDICT_UNJUDGED], pair->parameter_count);
    }
    if (!isnan(pair->common_factor)) {
        gcmp_page_addf(page, "all gradients are %s times the baseline's",
                       gcmp_figure_common(figure, pair->common_factor));
        separator = ", ";
    }
    if (has_onset(pair)) {
        gcmp_page_addf(page, "%s%s ", separator, pair->onset_layer == 0 ? "in" : "from");
        gcmp_text_layer_name(page, pair, pair->onset_layer);
        gcmp_page_add(page, pair->onset_layer == 0 ? " only" : " on");
        separator = ", ";
    }
    if (separator[0] == '\0' && pair->verdict_counts[GRADCMP_VERDICT_FAIL] > 0) {
        gcmp_page_addf(page, "%zu of %zu parameters fail",
                       pair->verdict_counts[GRADCMP_VERDICT_FAIL], pair->parameter_count);
        separator = ", ";
    }
    add_unmeasured(page, pair, separator);
    add_worst(page, pair);
}

static void add_consistent(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    size_t passed = pair->verdict_counts[GRADCMP_VERDICT_PASS];
    gcmp_page_addf(page, "%zu parameter%s inside the bound", passed, passed == 1 ? "" : "s");
    if (pair->cause.kind != NULL) { /* a pair with a cause passes only where that is allowed */
        gcmp_page_addf(page, ", %zu not, by a flipped choice of experts (%s allowed)",
                       gcmp_bad_count(pair), pair->cause.kind);
    }
    add_worst(page, pair);
}

static void add_error(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    gcmp_page_name(page, pair->error.path[0] == '\0' ? pair->path : pair->error.path);
    gcmp_page_add(page, ": ");
    gcmp_page_name(page, pair->error.message);
    if (pair->error.offset_bytes != GRADCMP_NO_OFFSET) {
        gcmp_page_addf(page, " (byte 0x%" PRIx64 ")", pair->error.offset_bytes);
    }
}

/* What the verdict says nothing of, where it is more than a tenth: of the model, what has not the
 * state; of all weights and the like, what is not read as a weight. */
static void add_not_compared(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    double left = (double)pair->stateless_elems, all = left + (double)pair->compared_elems;
    if (left > all / 10) {
        gcmp_page_addf(page, "; not compared: %zu tensor%s of the model (%.0f%% of its elements)",
                       pair->stateless, pair->stateless == 1 ? "" : "s", floor(100 * left / all));
    }
    left = (double)pair->beside_elems;
    all = left + (double)pair->compared_elems;
    if (left > all / 10) {
        gcmp_page_addf(
            page, "; not compared: %zu tensor%s not read as %sweight%s (%.0f%% of the elements)",
            pair->beside, pair->beside == 1 ? "" : "s", pair->beside == 1 ? "a " : "",
            pair->beside == 1 ? "" : "s", floor(100 * left / all));
    }
}

void gcmp_text_findings(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    switch (pair->outcome) {
    case GRADCMP_OUTCOME_CONSISTENT:
        add_consistent(page, pair);
        break;
    case GRADCMP_OUTCOME_INCONSISTENT:
        add_inconsistent(page, pair);
        gcmp_text_cause(page, pair);
        break;
    case GRADCMP_OUTCOME_UNDECIDED:
    case GRADCMP_OUTCOME_VACUOUS:
        gcmp_page_name(page, pair->undecided_reason == NULL ? "no reason was given"
                                                            : pair->undecided_reason);
        add_worst(page, pair);
        break;
    case GRADCMP_OUTCOME_ERROR:
        add_error(page, pair);
        break;
    }
    size_t unjudged = pair->verdict_counts[GRADCMP_VERDICT_UNJUDGED];
    bool was_told = pair->outcome == GRADCMP_OUTCOME_INCONSISTENT && fails_only_strictly(pair);
    if (pair->outcome != GRADCMP_OUTCOME_ERROR && unjudged > 0 && !was_told) {
        gcmp_page_addf(page, "; %zu unjudged", unjudged);
    }
    if (pair->outcome != GRADCMP_OUTCOME_ERROR) {
        add_not_compared(page, pair);
    }
}

void gcmp_text_add_findings(struct gcmp_text *text, const struct gradcmp_pair_report *pair) {
    struct gcmp_page page = {.utf8 = true, .width = GCMP_PAGE_DEFAULT_WIDTH};
    gcmp_text_findings(&page, pair); /* writes nothing but text into the page */
    gcmp_text_add(text, page.out.text.bytes == NULL ? "" : page.out.text.bytes);
    text->failed = text->failed || page.out.text.failed;
    gcmp_text_free(&page.out.text);
}

void gcmp_text_verdict(struct gcmp_page *page, const struct gradcmp_pair_report *pair) {
    gcmp_text_outcome(page, pair->outcome);
    gcmp_page_add(page, ": ");
    gcmp_text_findings(page, pair);
    gcmp_page_end_line(page);
}
