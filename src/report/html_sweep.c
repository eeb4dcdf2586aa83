/* What the HTML report of a sweep has beside its comparisons. */
#include "report/html_parts.h"
#include "report/page.h"
#include "report/sweep_facts.h"

enum gcmp_tone gcmp_status_tone(int exit_status) {
    return exit_status == 0 ? GCMP_TONE_GOOD : exit_status == 1 ? GCMP_TONE_BAD : GCMP_TONE_DOUBT;
}

static void add_figure(struct gcmp_markup *html, const char *label, const char *text,
                       const char *more) {
    gcmp_markup_element(html, "dt", label, NULL);
    gcmp_markup_open(html, "dd", NULL);
    gcmp_markup_text(html, text == NULL ? "" : text);
    gcmp_markup_text(html, more);
    gcmp_markup_close(html);
}

static void add_read(struct gcmp_markup *html, const struct gradcmp_sweep *sweep) {
    struct gcmp_text read = GCMP_TEXT_INIT;
    gcmp_text_add_sweep_read(&read, sweep);
    if (read.length_bytes > 0) {
        add_figure(html, "read", read.bytes, "");
    }
    html->out->text.failed = html->out->text.failed || read.failed;
    gcmp_text_free(&read);
}

void gcmp_html_sweep_head(struct gcmp_markup *html, const struct gradcmp_sweep *sweep) {
    struct gcmp_text reason = GCMP_TEXT_INIT;
    size_t taken = gcmp_sweep_taken_count(sweep);
    gcmp_text_add(&reason, " (");
    gcmp_text_add(&reason, sweep->baseline_reason);
    gcmp_text_add(&reason, ")");
    gcmp_markup_open_line(html, "dl", "class", "figures", NULL);
    add_figure(html, "swept", sweep->root, "");
    if (sweep->plan != NULL) {
        add_figure(html, "plan", sweep->plan, "");
    }
    add_figure(html, "baseline", sweep->baseline_label, reason.bytes == NULL ? "" : reason.bytes);
    add_read(html, sweep);
    if (sweep->golden_note != NULL) {
        add_figure(html, "golden values", sweep->golden_note, "");
    }
    for (size_t i = 0; i < sweep->left_count; i++) {
        add_figure(html, "left out", sweep->left[i].text, "");
    }
    if (taken > 0) {
        char count[GCMP_FIGURE_BYTES];
        add_figure(html, "taken over", gcmp_figure_count(count, taken),
                   " judged by an earlier sweep, unchanged since");
    }
    gcmp_markup_close(html);
    html->out->text.failed = html->out->text.failed || reason.failed;
    gcmp_text_free(&reason);
}

static void add_configurations(struct gcmp_markup *html, const struct gradcmp_sweep *sweep) {
    size_t count = gcmp_sweep_finding_count(sweep);
    if (count == 0) {
        return;
    }
    gcmp_markup_element(html, "h2", gcmp_sweep_findings_title(sweep), NULL);
    gcmp_markup_open_line(html, "ul", NULL);
    for (size_t i = 0; i < count; i++) {
        struct gcmp_sweep_finding finding = gcmp_sweep_finding(sweep, i);
        gcmp_markup_open_line(html, "li", "class", "path", NULL);
        gcmp_markup_element(html, "code", finding.label, NULL);
        gcmp_markup_text(html, ": ");
        gcmp_markup_text(html, finding.text);
        gcmp_markup_close(html);
    }
    gcmp_markup_close(html);
}

static void add_repeat(struct gcmp_markup *html, const struct gradcmp_sweep_repeat *repeat) {
    static const char *const words[] = {"identical", "differs", "error"};
    struct gcmp_text found = GCMP_TEXT_INIT;
    int status = gcmp_sweep_repeat_status(repeat);
    gcmp_text_add_repeat(&found, repeat);
    gcmp_markup_open_line(html, "li", "class", "path", NULL);
    gcmp_html_word(html, gcmp_status_tone(status), words[status]);
    gcmp_markup_text(html, " ");
    gcmp_markup_element(html, "code", repeat->label_b, NULL);
    gcmp_markup_text(html, " against ");
    gcmp_markup_element(html, "code", repeat->label_a, NULL);
    gcmp_markup_text(html, ": ");
    gcmp_markup_text(html, found.bytes == NULL ? "" : found.bytes);
    gcmp_markup_close(html);
    html->out->text.failed = html->out->text.failed || found.failed;
    gcmp_text_free(&found);
}

void gcmp_html_sweep_findings(struct gcmp_markup *html, const struct gradcmp_sweep *sweep) {
    add_configurations(html, sweep);
    if (sweep->repeat_count > 0) {
        gcmp_markup_element(html, "h2", "Repeats of one configuration, bit for bit", NULL);
        gcmp_markup_open_line(html, "ul", NULL);
        for (size_t i = 0; i < sweep->repeat_count; i++) {
            add_repeat(html, &sweep->repeats[i]);
        }
        gcmp_markup_close(html);
    }
}
