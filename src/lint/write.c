/* The reports of `gradcmp lint`. */
#include <stdio.h>
#include <string.h>

#include "lint/lint.h"
#include "report/json.h"
#include "report/page.h"

static const char *form_name(enum gcmp_lint_form form) {
    static const char *const names[] = {"unread",
                                        [GCMP_LINT_ENV_DUMP] = "environment",
                                        [GCMP_LINT_SCRIPT] = "launch script",
                                        [GCMP_LINT_JSON] = "JSON",
                                        [GCMP_LINT_YAML] = "YAML",
                                        [GCMP_LINT_LOG] = "training log",
                                        [GCMP_LINT_PIP] = "list of packages",
                                        [GCMP_LINT_CHECKPOINT] = "checkpoint"};
    return names[form];
}

static void add_sets(char *out, size_t out_bytes, unsigned sets) {
    snprintf(out, out_bytes, "%s%s%s", (sets & GCMP_LINT_MEGATRON) != 0 ? "megatron " : "",
             (sets & GCMP_LINT_ASCEND) != 0 ? "ascend " : "",
             (sets & GCMP_LINT_GRADIENTS) != 0 ? "gradients " : "");
    size_t length = strlen(out);
    if (length > 0) {
        out[length - 1] = '\0';
    }
}

static void write_row(struct gcmp_page *page, const char *label, const char *text) {
    gcmp_page_addf(page, "      %-9s", label);
    gcmp_page_wrap(page, 15, 15, text);
}

static void write_finding(struct gcmp_page *page, const struct gcmp_lint_finding *finding) {
    enum gcmp_ink ink = finding->severity == GCMP_LINT_ERROR     ? GCMP_INK_BAD
                        : finding->severity == GCMP_LINT_WARNING ? GCMP_INK_DOUBT
                                                                 : GCMP_INK_DIM;
    gcmp_page_add(page, "\n  ");
    gcmp_page_ink(page, ink, gcmp_lint_severity_name(finding->severity));
    gcmp_page_addf(page, " %s ", finding->rule->id);
    gcmp_page_name(page, finding->subject);
    if (finding->value == NULL) {
        gcmp_page_add(page, " is not set");
    } else {
        gcmp_page_add(page, finding->is_bool ? " = " : " = \"");
        gcmp_page_name(page, finding->value);
        gcmp_page_add(page, finding->is_bool ? "" : "\"");
    }
    gcmp_page_end_line(page);
    if (finding->file != NULL) {
        gcmp_page_add(page, "      ");
        gcmp_page_name(page, finding->file);
        if (finding->line > 0) {
            gcmp_page_addf(page, ":%llu", (unsigned long long)finding->line);
        }
        gcmp_page_end_line(page);
    }
    write_row(page, "accepted", finding->accepted);
    write_row(page, "why", finding->text != NULL ? finding->text : finding->rule->why);
    write_row(page, "instead", finding->fix);
}

void gcmp_lint_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page) {
    const struct gcmp_lint_content *content = evidence->content;
    char sets[64];
    gcmp_page_end_line(page);
    for (size_t i = 0; i < content->run.source_count; i++) {
        gcmp_page_addf(page, "%-14s", i == 0 ? "read" : "");
        gcmp_page_name(page, content->run.sources[i].path);
        gcmp_page_addf(page, " (%s)\n", form_name(content->run.sources[i].form));
    }
    add_sets(sets, sizeof sets, content->sets);
    gcmp_page_addf(page, "%-14s%s\n", "rules",
                   content->is_pair ? "what differs between both" : sets);
    for (int severity = GCMP_LINT_ERROR; severity >= GCMP_LINT_INFO; severity--) {
        for (size_t i = 0; i < content->count; i++) {
            if ((int)content->findings[i].severity == severity) {
                write_finding(page, &content->findings[i]);
            }
        }
    }
    if (evidence->note_count > 0) {
        gcmp_page_heading(page, "Notes");
    }
    for (size_t i = 0; i < evidence->note_count; i++) {
        gcmp_page_add(page, "- ");
        gcmp_page_wrap(page, 2, 2, evidence->notes[i]);
    }
    gcmp_page_end_line(page);
    gcmp_page_ink(page, evidence->exit_status == 0 ? GCMP_INK_GOOD : GCMP_INK_BAD,
                  evidence->summary);
    gcmp_page_end_line(page);
}

static void emit_finding(struct gcmp_emitter *json, const struct gcmp_lint_finding *finding) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "rule", finding->rule->id);
    gcmp_emit_text(json, "severity", gcmp_lint_severity_name(finding->severity));
    gcmp_emit_text(json, "subject", finding->subject);
    if (finding->is_bool && finding->value != NULL) {
        gcmp_emit_bool(json, "value", strcmp(finding->value, "true") == 0);
    } else {
        gcmp_emit_text(json, "value", finding->value);
    }
    gcmp_emit_text(json, "file", finding->file);
    gcmp_emit_known(json, "line", finding->line);
    gcmp_emit_text(json, "fix", finding->fix);
    gcmp_emit_text(json, "accepted", finding->accepted);
    gcmp_emit_text(json, "why", finding->text != NULL ? finding->text : finding->rule->why);
    gcmp_emit_close(json);
}

void gcmp_lint_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json) {
    const struct gcmp_lint_content *content = evidence->content;
    char sets[64];
    add_sets(sets, sizeof sets, content->sets);
    gcmp_emit_text(json, "rules", sets);
    gcmp_emit_bool(json, "pair", content->is_pair);
    gcmp_emit_bool(json, "strict", content->is_strict);
    gcmp_emit_open_array(json, "inputs", true);
    for (size_t i = 0; i < content->run.source_count; i++) {
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "path", content->run.sources[i].path);
        gcmp_emit_text(json, "form", form_name(content->run.sources[i].form));
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
    if (content->error.code != GRADCMP_OK) {
        gcmp_emit_open_object(json, "error", false);
        gcmp_emit_text(json, "file", content->error.path);
        gcmp_emit_text(json, "message", content->error.message);
        gcmp_emit_close(json);
    } else {
        gcmp_emit_null(json, "error");
    }
    gcmp_emit_open_array(json, "findings", true);
    for (size_t i = 0; i < content->count; i++) {
        emit_finding(json, &content->findings[i]);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "notes", true);
    for (size_t i = 0; i < evidence->note_count; i++) {
        gcmp_emit_text(json, NULL, evidence->notes[i]);
    }
    gcmp_emit_close(json);
    gcmp_emit_text(json, "summary", evidence->summary);
}
