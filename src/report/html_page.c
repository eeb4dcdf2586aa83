/* The page around every HTML report. It loads nothing: its policy allows the one script that is in
 * it, by hash, so that even a fault in escaping would not make a name from a file run. */
#include "report/html_page.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

const char *gcmp_tone_class(enum gcmp_tone tone) {
    static const char *const names[] = {
        [GCMP_TONE_GOOD] = "good", [GCMP_TONE_BAD] = "bad", [GCMP_TONE_DOUBT] = "doubt"};
    return names[tone];
}

void gcmp_base64_add(struct gcmp_text *text, const unsigned char *bytes, size_t length_bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length_bytes; i += 3) {
        size_t left = length_bytes - i;
        unsigned group = (unsigned)bytes[i] << 16;
        group |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? bytes[i + 2] : 0;
        char four[4] = {digits[group >> 18], digits[group >> 12 & 63],
                        left > 1 ? digits[group >> 6 & 63] : '=',
                        left > 2 ? digits[group & 63] : '='};
        gcmp_text_add_bytes(text, four, sizeof four);
    }
}

static void add_policy(struct gcmp_markup *html) {
    struct sha256_ctx context;
    unsigned char hash[SHA256_DIGEST_SIZE];
    struct gcmp_text policy = GCMP_TEXT_INIT;
    sha256_init(&context);
    sha256_update(&context, strlen(gcmp_page_script), (const uint8_t *)gcmp_page_script);
    sha256_digest(&context, sizeof hash, hash);
    gcmp_text_add(&policy, "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                           "base-uri 'none'; form-action 'none'; script-src 'sha256-");
    gcmp_base64_add(&policy, hash, sizeof hash);
    gcmp_text_add(&policy, "'");
    gcmp_markup_empty(html, "meta", "http-equiv", "Content-Security-Policy", "content",
                      policy.bytes == NULL ? "default-src 'none'" : policy.bytes, NULL);
    html->out->text.failed = html->out->text.failed || policy.failed;
    gcmp_text_free(&policy);
}

static void add_head(struct gcmp_markup *html, const struct gcmp_html_head *head) {
    gcmp_markup_open_line(html, "head", NULL);
    gcmp_markup_empty(html, "meta", "charset", "utf-8", NULL);
    gcmp_markup_empty(html, "meta", "name", "generator", "content", "gradcmp", NULL);
    add_policy(html);
    gcmp_markup_empty(html, "meta", "name", "viewport", "content",
                      "width=device-width, initial-scale=1", NULL);
    gcmp_markup_empty(html, "meta", "name", "color-scheme", "content", "light dark", NULL);
    gcmp_markup_empty(html, "link", "rel", "icon", "href", "data:,", NULL);
    gcmp_markup_open(html, "title", NULL);
    gcmp_markup_textf(html, "%s: ", head->title);
    gcmp_markup_text(html, head->verdict);
    gcmp_markup_close(html);
    gcmp_markup_open_line(html, "style", NULL);
    gcmp_text_add(&html->out->text, gcmp_page_style);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
}

void gcmp_html_open(struct gcmp_markup *html, struct gcmp_out *out,
                    const struct gcmp_html_head *head) {
    *html = (struct gcmp_markup){.out = out};
    gcmp_text_add(&out->text, "<!DOCTYPE html>");
    gcmp_markup_open_line(html, "html", "lang", "en", NULL);
    add_head(html, head);
    gcmp_markup_open_line(html, "body", NULL);
    gcmp_markup_open_line(html, "header", "class", "top", NULL);
    gcmp_markup_element(html, "h1", head->title, NULL);
    gcmp_html_word(html, head->tone, head->verdict);
    gcmp_markup_element(html, "span", "", "class", "gap", NULL);
    gcmp_markup_open(html, "div", "class", "scripted", NULL);
    gcmp_markup_element(html, "button", "theme", "id", "theme", "type", "button", NULL);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    if (head->summary != NULL) {
        gcmp_markup_open_line(html, "p", "class", "summary", NULL);
        gcmp_markup_text(html, head->summary);
        gcmp_markup_close(html);
    }
}

void gcmp_html_close(struct gcmp_markup *html) {
    gcmp_markup_open_line(html, "p", "class", "dim", NULL);
    gcmp_markup_textf(html, "Made by gradcmp %s. Nothing is loaded from elsewhere.",
                      gradcmp_version());
    gcmp_markup_close(html);
    gcmp_markup_open_line(html, "div", "id", "tip", "hidden", "hidden", NULL);
    gcmp_markup_close(html);
    gcmp_markup_open_line(html, "script", NULL);
    gcmp_text_add(&html->out->text, gcmp_page_script);
    gcmp_markup_close(html);
    while (html->depth > 0) {
        gcmp_text_add(&html->out->text, "\n");
        gcmp_markup_close(html);
    }
    gcmp_text_add(&html->out->text, "\n");
}

void gcmp_html_word(struct gcmp_markup *html, enum gcmp_tone tone, const char *word) {
    char names[16];
    snprintf(names, sizeof names, "word %s", gcmp_tone_class(tone));
    gcmp_markup_element(html, "span", word, "class", names, NULL);
}

void gcmp_html_tools(struct gcmp_markup *html, const char *id, const char *hint,
                     const char *const *verdicts) {
    gcmp_markup_open_line(html, "div", "class", "scripted tools", "data-table", id, NULL);
    gcmp_markup_empty(html, "input", "type", "search", "placeholder", hint, "aria-label", hint,
                      NULL);
    gcmp_markup_open(html, "select", "aria-label", "verdict", NULL);
    gcmp_markup_element(html, "option", "all", "value", "", NULL);
    for (; *verdicts != NULL; verdicts++) {
        gcmp_markup_element(html, "option", *verdicts, "value", *verdicts, NULL);
    }
    gcmp_markup_close(html);
    gcmp_markup_element(html, "span", "", "class", "count dim", NULL);
    gcmp_markup_close(html);
}

void gcmp_html_table_open(struct gcmp_markup *html, const char *id,
                          const struct gcmp_html_column *columns) {
    gcmp_markup_open_line(html, "div", "class", "wide late", NULL);
    gcmp_markup_open(html, "table", "class", "sorts", "id", id, NULL);
    gcmp_markup_open(html, "thead", NULL);
    gcmp_markup_open(html, "tr", NULL);
    for (; columns->text != NULL; columns++) {
        gcmp_markup_element(html, "th", columns->text, "class", columns->is_number ? "n" : NULL,
                            "scope", "col", "title", columns->hint, NULL);
    }
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_open(html, "tbody", NULL);
}

void gcmp_html_table_close(struct gcmp_markup *html) {
    gcmp_markup_close(html);
    gcmp_markup_close(html);
    gcmp_markup_close(html);
}

void gcmp_html_notes(struct gcmp_markup *html, const char *const *notes, size_t count) {
    if (count == 0) {
        return;
    }
    gcmp_markup_element(html, "h3", "Notes", NULL);
    gcmp_markup_open_line(html, "ul", NULL);
    for (size_t i = 0; i < count; i++) {
        gcmp_markup_element(html, "li", notes[i], NULL);
    }
    gcmp_markup_close(html);
}

/* --- the page of evidence and findings --- */

static enum gcmp_tone tone_of(enum gradcmp_case_outcome outcome) {
    return outcome == GRADCMP_CASE_PASS      ? GCMP_TONE_GOOD
           : outcome == GRADCMP_CASE_SKIPPED ? GCMP_TONE_DOUBT
                                             : GCMP_TONE_BAD;
}

static void add_case(struct gcmp_markup *html, const struct gradcmp_case *own) {
    const char *outcome = gcmp_case_outcome_name(own->outcome);
    gcmp_markup_open_line(html, "tr", "data-v", outcome, NULL);
    gcmp_markup_open(html, "td", NULL);
    gcmp_html_word(html, tone_of(own->outcome), outcome);
    gcmp_markup_close(html);
    gcmp_markup_element(html, "td", own->group, "class", "path", NULL);
    gcmp_markup_element(html, "td", own->name, "class", "name", NULL);
    gcmp_markup_element(html, "td", own->text == NULL ? "" : own->text, "class", "text", NULL);
    gcmp_markup_open(html, "td", "class", "path", NULL);
    if (own->file != NULL) {
        gcmp_markup_text(html, own->file);
        if (own->line != 0) {
            gcmp_markup_textf(html, ":%llu", (unsigned long long)own->line);
        }
    }
    gcmp_markup_close(html);
    gcmp_markup_close(html);
}

/* Write the cases, those that are not as they should be first; return how many there was no room
 * for. */
static size_t add_cases(struct gcmp_markup *html, const struct gcmp_case_list *list, size_t rows) {
    size_t written = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < list->case_count && written < rows; i++) {
            if ((list->cases[i].outcome == GRADCMP_CASE_PASS) == (pass == 1)) {
                add_case(html, &list->cases[i]);
                written++;
            }
        }
    }
    return list->case_count - written;
}

static void add_table(struct gcmp_markup *html, const struct gcmp_case_list *list, size_t rows) {
    static const struct gcmp_html_column columns[] = {
        {"outcome", NULL, false}, {"of", NULL, false},    {"what", NULL, false},
        {"found", NULL, false},   {"where", NULL, false}, {NULL, NULL, false}};
    static const char *const outcomes[] = {"fail", "error", "skipped", "pass", NULL};
    gcmp_markup_element(html, "h2", "All that was looked at", NULL);
    gcmp_html_tools(html, "cases", "words that have to be in a row", outcomes);
    gcmp_html_table_open(html, "cases", columns);
    size_t left = add_cases(html, list, rows);
    gcmp_html_table_close(html);
    if (left > 0) {
        gcmp_markup_open_line(html, "p", NULL);
        gcmp_markup_textf(html, "%zu more are left out here; the JSON has all.", left);
        gcmp_markup_close(html);
    }
}

void gcmp_cases_html(const struct gcmp_case_list *list,
                     const struct gradcmp_document_options *options, struct gcmp_out *out) {
    struct gcmp_markup html;
    struct gcmp_html_head head = {.title = list->title,
                                  .verdict = list->verdict,
                                  .tone = list->exit_status == 0   ? GCMP_TONE_GOOD
                                          : list->exit_status == 1 ? GCMP_TONE_BAD
                                                                   : GCMP_TONE_DOUBT,
                                  .summary = list->summary};
    gcmp_html_open(&html, out, &head);
    gcmp_markup_open_line(&html, "ul", NULL);
    for (size_t i = 0; i < list->path_count; i++) {
        gcmp_markup_open(&html, "li", "class", "path", NULL);
        gcmp_markup_element(&html, "code", list->paths[i], NULL);
        gcmp_markup_close(&html);
    }
    if (list->options != NULL) {
        gcmp_markup_open(&html, "li", NULL);
        gcmp_markup_text(&html, "options ");
        gcmp_markup_element(&html, "code", list->options, NULL);
        gcmp_markup_close(&html);
    }
    gcmp_markup_close(&html);
    if (list->evidence != NULL && list->evidence->writers->html != NULL) {
        list->evidence->writers->html(list->evidence, &out->text);
    }
    gcmp_html_notes(&html, list->notes, list->note_count);
    add_table(&html, list, options->rows);
    gcmp_html_close(&html);
}
