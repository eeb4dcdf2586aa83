/* The report of a comparison as JUnit XML: a suite for each candidate. */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "report/facts.h"
#include "report/junit.h"
#include "report/repeat.h"
#include "report/sweep_facts.h"
#include "report/text.h"

/* The cases of one pair, in its arena; the last is the verdict. */
struct pair_cases {
    struct gradcmp_case *cases;
    const char **kinds;
    size_t count;
    struct gcmp_junit_counts counts;
    const char *label; /* of the candidate */
    bool is_planned;   /* a plan expects that it is not consistent, and so it is */
};

/* What fails as planned fails nothing. */
static void add_case(struct pair_cases *to, const struct gradcmp_case *own, const char *kind) {
    struct gradcmp_case *added = &to->cases[to->count];
    *added = *own;
    if (to->is_planned && own->outcome == GRADCMP_CASE_FAIL) {
        added->outcome = GRADCMP_CASE_SKIPPED;
    }
    to->kinds[to->count++] = kind;
    gcmp_junit_count(&to->counts, added->outcome);
}

/* --strict fails what is unjudged, but for a parameter without elements. */
static enum gradcmp_case_outcome outcome_of(const struct gradcmp_report *report,
                                            const struct gradcmp_parameter_report *parameter) {
    if (parameter->verdict == GRADCMP_VERDICT_UNJUDGED) {
        return report->options.strict != 0 && parameter->compared_elems > 0 ? GRADCMP_CASE_FAIL
                                                                            : GRADCMP_CASE_SKIPPED;
    }
    return gcmp_verdict_is_bad(parameter->verdict) ? GRADCMP_CASE_FAIL : GRADCMP_CASE_PASS;
}

/* What is wrong with a parameter, its first cause included; NULL without memory. */
static const char *explain(struct gcmp_arena *arena, const struct gradcmp_pair_report *pair,
                           const struct gradcmp_parameter_report *parameter, const char *before) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, before);
    gcmp_text_explain(&text, pair, parameter);
    if (parameter->cause_count > 0) {
        gcmp_text_addf(&text, "; cause: %s", parameter->causes[0].kind);
        gcmp_text_add(&text, ": ");
        gcmp_text_add(&text, parameter->causes[0].text);
    }
    const char *kept = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes);
    gcmp_text_free(&text);
    return kept;
}

static bool add_parameters(struct pair_cases *to, struct gcmp_arena *arena,
                           const struct gcmp_pair_view *view) {
    for (size_t i = 0; i < view->count; i++) {
        const struct gradcmp_parameter_report *parameter = &view->pair->parameters[i];
        struct gradcmp_case own = {.group = to->label,
                                   .name = parameter->name,
                                   .outcome = outcome_of(view->report, parameter)};
        own.text =
            own.outcome == GRADCMP_CASE_PASS ? "" : explain(arena, view->pair, parameter, "");
        if (own.text == NULL) {
            return false;
        }
        add_case(to, &own, gradcmp_verdict_name(parameter->verdict));
    }
    return true;
}

/* The case of the layer at by_layer[first], of `count` parameters, the worst first. */
static bool add_layer(struct pair_cases *to, struct gcmp_arena *arena,
                      const struct gcmp_pair_view *view, size_t first, size_t count) {
    const struct gradcmp_parameter_report *worst = view->by_layer[first];
    size_t bad = 0, unjudged = 0;
    bool is_strict = false;
    for (size_t i = first; i < first + count; i++) {
        bool is_unjudged = view->by_layer[i]->verdict == GRADCMP_VERDICT_UNJUDGED;
        bad += gcmp_verdict_is_bad(view->by_layer[i]->verdict);
        unjudged += is_unjudged;
        is_strict = is_strict || (is_unjudged &&
                                  outcome_of(view->report, view->by_layer[i]) == GRADCMP_CASE_FAIL);
    }
    struct gradcmp_case own = {.group = to->label,
                               .name = gcmp_arena_format(arena, "layer %" PRId64, worst->layer),
                               .text = ""};
    const char *kind = gradcmp_verdict_name(worst->verdict);
    if (bad > 0) {
        own.outcome = GRADCMP_CASE_FAIL;
        const char *before = gcmp_arena_format(arena, "%zu of %zu parameters, the worst %s: ", bad,
                                               count, worst->name);
        own.text = before == NULL ? NULL : explain(arena, view->pair, worst, before);
    } else if (unjudged == count || is_strict) {
        kind = gradcmp_verdict_name(GRADCMP_VERDICT_UNJUDGED);
        own.outcome = is_strict ? GRADCMP_CASE_FAIL : GRADCMP_CASE_SKIPPED;
        own.text = gcmp_arena_format(arena, "%zu of %zu parameters unjudged", unjudged, count);
    }
    if (own.name == NULL || own.text == NULL) {
        return false;
    }
    add_case(to, &own, kind);
    return true;
}

static bool add_layers(struct pair_cases *to, struct gcmp_arena *arena,
                       const struct gcmp_pair_view *view) {
    bool is_fine = true;
    for (size_t first = 0; is_fine && first < view->count;) {
        size_t count = 1;
        while (first + count < view->count &&
               view->by_layer[first + count]->layer == view->by_layer[first]->layer) {
            count++;
        }
        is_fine = add_layer(to, arena, view, first, count);
        first += count;
    }
    return is_fine;
}

static bool add_verdict(struct pair_cases *to, struct gcmp_arena *arena,
                        const struct gcmp_pair_view *view) {
    const struct gradcmp_pair_report *pair = view->pair;
    const struct gradcmp_sweep *sweep = view->report->sweep;
    size_t index = (size_t)(pair - view->report->pairs);
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add_findings(&text, pair);
    if (pair->taken_over) {
        gcmp_text_add(&text, "; taken over: judged by an earlier sweep, unchanged since");
    }
    if (sweep != NULL && sweep->rows[index].has_expected) {
        gcmp_text_add(&text, "; ");
        gcmp_text_add_expected(&text, sweep, index);
    }
    int status =
        sweep == NULL ? gcmp_outcome_status(pair->outcome) : gcmp_sweep_row_status(sweep, index);
    struct gradcmp_case own = {.group = to->label,
                               .name = "verdict",
                               .outcome = gcmp_junit_outcome(status),
                               .text = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes)};
    gcmp_text_free(&text);
    add_case(to, &own, gradcmp_outcome_name(pair->outcome));
    return own.text != NULL;
}

static bool fill(struct pair_cases *to, struct gcmp_arena *arena, const struct gcmp_pair_view *view,
                 enum gradcmp_junit_level level) {
    to->cases = gcmp_arena_alloc(arena, view->count + 1, sizeof *to->cases);
    to->kinds = gcmp_arena_alloc(arena, view->count + 1, sizeof *to->kinds);
    bool is_fine = to->cases != NULL && to->kinds != NULL;
    size_t index = (size_t)(view->pair - view->report->pairs);
    to->label = gcmp_candidate_label(view->report, index);
    to->is_planned =
        view->report->sweep != NULL && gcmp_sweep_row_status(view->report->sweep, index) == 0;
    if (is_fine && level == GRADCMP_JUNIT_PARAMETER) {
        is_fine = add_parameters(to, arena, view);
    } else if (is_fine && level == GRADCMP_JUNIT_LAYER) {
        is_fine = add_layers(to, arena, view);
    }
    return is_fine && add_verdict(to, arena, view);
}

/* --- a sweep: one suite more, of what is found beside the comparisons --- */

static bool add_configurations(struct pair_cases *to, struct gcmp_arena *arena,
                               const struct gradcmp_sweep *sweep) {
    for (size_t i = 0; i < gcmp_sweep_finding_count(sweep); i++) {
        struct gcmp_sweep_finding finding = gcmp_sweep_finding(sweep, i);
        struct gradcmp_case own = {.group = finding.label,
                                   .name = gcmp_arena_format(arena, "configuration %zu", i + 1),
                                   .outcome = gcmp_junit_outcome(finding.exit_status),
                                   .text = finding.text};
        if (own.name == NULL) {
            return false;
        }
        add_case(to, &own, "configuration");
    }
    return true;
}

static bool add_left(struct pair_cases *to, struct gcmp_arena *arena,
                     const struct gradcmp_sweep *sweep) {
    for (size_t i = 0; i < sweep->left_count; i++) {
        struct gradcmp_case own = {.group = to->label,
                                   .name = gcmp_arena_format(arena, "left out %zu", i + 1),
                                   .outcome = GRADCMP_CASE_SKIPPED,
                                   .text = sweep->left[i].text};
        if (own.name == NULL) {
            return false;
        }
        add_case(to, &own, "left out");
    }
    return true;
}

static bool add_repeats(struct pair_cases *to, struct gcmp_arena *arena,
                        const struct gradcmp_sweep *sweep) {
    for (size_t i = 0; i < sweep->repeat_count; i++) {
        const struct gradcmp_sweep_repeat *repeat = &sweep->repeats[i];
        struct gcmp_text text = GCMP_TEXT_INIT;
        gcmp_text_add_repeat(&text, repeat);
        struct gradcmp_case own = {
            .group = repeat->label_b,
            .name = gcmp_arena_format(arena, "bit for bit as %s", repeat->label_a),
            .outcome = gcmp_junit_outcome(gcmp_sweep_repeat_status(repeat)),
            .text = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes)};
        gcmp_text_free(&text);
        if (own.name == NULL || own.text == NULL) {
            return false;
        }
        add_case(to, &own, "repeat");
    }
    return true;
}

/* The suite's cases, the last of them how the sweep ended. */
static bool fill_sweep(struct pair_cases *to, struct gcmp_arena *arena,
                       const struct gradcmp_sweep *sweep) {
    size_t most = gcmp_sweep_finding_count(sweep) + sweep->left_count + sweep->repeat_count + 1;
    struct gcmp_text text = GCMP_TEXT_INIT;
    to->label = "gradcmp sweep";
    to->cases = gcmp_arena_alloc(arena, most, sizeof *to->cases);
    to->kinds = gcmp_arena_alloc(arena, most, sizeof *to->kinds);
    if (to->cases == NULL || to->kinds == NULL || !add_configurations(to, arena, sweep) ||
        !add_left(to, arena, sweep) || !add_repeats(to, arena, sweep)) {
        return false;
    }
    gcmp_text_add_sweep_summary(&text, sweep);
    struct gradcmp_case own = {.group = to->label,
                               .name = "verdict",
                               .outcome = gcmp_junit_outcome(gradcmp_sweep_exit_status(sweep)),
                               .text = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes)};
    gcmp_text_free(&text);
    add_case(to, &own, gcmp_sweep_word(sweep));
    return own.text != NULL;
}

/* A comparison that was interrupted: one case, which fails. */
static bool fill_unfinished(struct pair_cases *to, struct gcmp_arena *arena,
                            const struct gradcmp_report *report) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    to->label = "gradcmp compare";
    to->cases = gcmp_arena_alloc(arena, 1, sizeof *to->cases);
    to->kinds = gcmp_arena_alloc(arena, 1, sizeof *to->kinds);
    gcmp_text_add_unfinished(&text, report);
    struct gradcmp_case own = {.group = to->label,
                               .name = "interrupted",
                               .outcome = GRADCMP_CASE_ERROR,
                               .text = text.failed ? NULL : gcmp_arena_dup(arena, text.bytes)};
    gcmp_text_free(&text);
    if (to->cases == NULL || to->kinds == NULL || own.text == NULL) {
        return false;
    }
    add_case(to, &own, "interrupted");
    return true;
}

/* --- the document --- */

static void add_suite(struct gcmp_markup *xml, const struct pair_cases *own, const char *options) {
    gcmp_junit_suite(xml, own->label, options, &own->counts);
    for (size_t i = 0; i < own->count; i++) {
        gcmp_junit_case(xml, &own->cases[i], own->kinds[i]);
    }
    gcmp_text_add(&xml->out->text, "\n");
    gcmp_markup_close(xml);
}

/* Suites: one a pair, and that of the sweep or of an interrupt. */
static size_t suite_count(const struct gradcmp_report *report) {
    return report->pair_count + (report->sweep != NULL || report->unfinished > 0);
}

/* False without memory. */
static bool prepare(const struct gradcmp_report *report, struct gcmp_arena *arena,
                    enum gradcmp_junit_level level, struct pair_cases *pairs) {
    bool is_fine = pairs != NULL;
    for (size_t i = 0; is_fine && i < report->pair_count; i++) {
        struct gcmp_pair_view view;
        is_fine = gcmp_pair_view_init(&view, report, &report->pairs[i], NULL) == GRADCMP_OK &&
                  fill(&pairs[i], arena, &view, level);
        gcmp_pair_view_free(&view);
    }
    if (is_fine && report->sweep != NULL) {
        return fill_sweep(&pairs[report->pair_count], arena, report->sweep);
    }
    return is_fine &&
           (report->unfinished == 0 || fill_unfinished(&pairs[report->pair_count], arena, report));
}

static void add_suites(struct gcmp_out *out, const struct gradcmp_report *report,
                       const struct pair_cases *suites) {
    struct gcmp_markup xml;
    struct gcmp_junit_counts all = {0};
    struct gcmp_text listed = GCMP_TEXT_INIT;
    gcmp_repeat_options(&listed, &report->options);
    for (size_t i = 0; i < suite_count(report); i++) {
        all.tests += suites[i].counts.tests;
        all.failures += suites[i].counts.failures;
        all.errors += suites[i].counts.errors;
        all.skipped += suites[i].counts.skipped;
    }
    gcmp_junit_open(&xml, out, report->sweep != NULL ? "gradcmp sweep" : "gradcmp compare", &all);
    for (size_t i = 0; i < suite_count(report); i++) {
        add_suite(&xml, &suites[i], listed.bytes);
    }
    gcmp_junit_close(&xml);
    out->text.failed = out->text.failed || listed.failed;
    gcmp_text_free(&listed);
}

enum gradcmp_status gradcmp_report_write_junit(const struct gradcmp_report *report,
                                               const struct gradcmp_document_options *options,
                                               gradcmp_write_fn write, void *user,
                                               struct gradcmp_error *error) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_document_options own = gcmp_document_options(options, 0);
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user); /* first: the texts hold numbers */
    struct pair_cases *pairs = gcmp_arena_alloc(&arena, suite_count(report), sizeof *pairs);
    if (prepare(report, &arena, own.junit_level, pairs)) {
        add_suites(&out, report, pairs);
    } else {
        out.text.failed = true;
    }
    enum gradcmp_status status = gcmp_out_end(&out, error);
    gcmp_arena_free(&arena);
    return status;
}
