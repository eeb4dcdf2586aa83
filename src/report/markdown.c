/* Markdown, and the cases of findings and evidence in it. */
#include "report/markdown.h"

#include <inttypes.h>
#include <string.h>

#include "report/printable.h"

void gcmp_markdown_escape(struct gcmp_text *text, const char *string) {
    struct gcmp_text safe = GCMP_TEXT_INIT;
    gcmp_printable_add(&safe, string, true);
    for (const char *at = safe.bytes == NULL ? "" : safe.bytes; *at != '\0'; at++) {
        /* Digits and dots would start lists only at the start of a line, where no name stands. */
        if (strchr("&<>\"'`*_[](){}#+!|\\~@:$^=", *at) != NULL) {
            gcmp_text_addf(text, "&#%d;", *at);
        } else {
            gcmp_text_add_bytes(text, at, 1);
        }
    }
    text->failed = text->failed || safe.failed;
    gcmp_text_free(&safe);
}

void gcmp_markdown_code(struct gcmp_text *text, const char *string) {
    gcmp_text_add(text, "<code>");
    gcmp_markdown_escape(text, string);
    gcmp_text_add(text, "</code>");
}

static void add_row(struct gcmp_text *text, const struct gradcmp_case *own) {
    gcmp_text_addf(text, "| %s | ", gcmp_case_outcome_name(own->outcome));
    gcmp_markdown_code(text, own->group);
    gcmp_text_add(text, " | ");
    gcmp_markdown_code(text, own->name);
    gcmp_text_add(text, " | ");
    gcmp_markdown_escape(text, own->text == NULL ? "" : own->text);
    if (own->file != NULL) {
        gcmp_text_add(text, own->text == NULL ? "" : " ");
        gcmp_markdown_code(text, own->file);
        if (own->line != 0) {
            gcmp_text_addf(text, " line %" PRIu64, own->line);
        }
    }
    gcmp_text_add(text, " |\n");
}

void gcmp_cases_markdown(const struct gcmp_case_list *list,
                         const struct gradcmp_document_options *options, struct gcmp_out *out) {
    static const char *const marks[] = {"\u2705", "\u274c", "\u26a0\ufe0f"};
    struct gcmp_text *text = &out->text;
    size_t shown = 0, told = 0;
    gcmp_text_addf(text, "<!-- gradcmp -->\n### %s %s: **%s**\n\n",
                   marks[list->exit_status > 2 || list->exit_status < 0 ? 2 : list->exit_status],
                   list->title, list->verdict);
    gcmp_markdown_escape(text, list->summary);
    gcmp_text_add(text, "\n\n");
    for (size_t i = 0; i < list->path_count; i++) {
        gcmp_text_add(text, "- ");
        gcmp_markdown_code(text, list->paths[i]);
        gcmp_text_add(text, "\n");
    }
    if (list->options != NULL) {
        gcmp_text_add(text, "- options ");
        gcmp_markdown_code(text, list->options);
        gcmp_text_add(text, "\n");
    }
    for (size_t i = 0; i < list->case_count; i++) {
        bool is_told = list->cases[i].outcome != GRADCMP_CASE_PASS;
        told += is_told;
        if (is_told && shown < options->top) {
            gcmp_text_add(text,
                          shown++ == 0 ? "\n| | of | what | |\n| --- | --- | --- | --- |\n" : "");
            add_row(text, &list->cases[i]);
            gcmp_out_drain(out);
        }
    }
    if (shown < told) {
        gcmp_text_addf(text, "\nand %zu more\n", told - shown);
    }
    gcmp_text_addf(text, "\n%zu looked at, %zu as they should be; gradcmp %s\n", list->case_count,
                   list->case_count - told, gradcmp_version());
}
