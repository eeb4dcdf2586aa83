/* The findings of `check` as JSON, schema 1. */
#include "gradcmp/sys/result.h"
#include "report/json_parts.h"

static void write_finding(struct gcmp_emitter *json, const struct gradcmp_checked *checked,
                          const struct gradcmp_finding *finding) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "kind", finding->kind);
    gcmp_emit_text(json, "name", finding->name[0] == '\0' ? NULL : finding->name);
    gcmp_emit_text(json, "state", finding->state[0] == '\0' ? NULL : finding->state);
    gcmp_emit_text(json, "text", finding->text);
    gcmp_emit_open_object(json, "figures", false);
    for (size_t i = 0; i < finding->figure_count; i++) {
        gcmp_emit_real(json, finding->figures[i].name, finding->figures[i].value);
    }
    gcmp_emit_close(json);
    gcmp_emit_text(json, "path", checked->path);
    gcmp_emit_close(json);
}

static void write_checked(struct gcmp_emitter *json, const struct gradcmp_checked *checked) {
    static const struct gradcmp_catalogue nothing_known = {0};
    const struct gradcmp_catalogue *catalogue =
        checked->catalogue == NULL ? &nothing_known : checked->catalogue;
    bool failed = checked->error.code != GRADCMP_OK;
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "path", checked->path);
    gcmp_emit_format(json, "format", catalogue);
    gcmp_emit_text(json, "verdict",
                   failed                       ? "error"
                   : checked->finding_count > 0 ? "findings"
                                                : "clean");
    gcmp_emit_count(json, "tensors", checked->tensors);
    gcmp_emit_count(json, "other_tensors", checked->other_tensors);
    gcmp_emit_count(json, "elements", checked->elems);
    gcmp_emit_count(json, "bytes", checked->bytes);
    gcmp_emit_open_array(json, "notes", false);
    for (size_t i = 0; i < catalogue->note_count; i++) {
        gcmp_emit_text(json, NULL, catalogue->notes[i]);
    }
    gcmp_emit_close(json);
    if (failed) {
        gcmp_emit_error(json, "error", &checked->error);
    }
    gcmp_emit_close(json);
}

enum gradcmp_status gradcmp_findings_write_json(const struct gradcmp_findings *findings,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    static const char *const verdicts[] = {"clean", "findings", "error"};
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, true);
    gcmp_emit_integer(&json, "schema", 1);
    gcmp_emit_text(&json, "tool", "gradcmp");
    gcmp_emit_text(&json, "version", gradcmp_version());
    gcmp_emit_text(&json, "verdict", verdicts[gradcmp_findings_exit_status(findings)]);
    gcmp_emit_open_array(&json, "checkpoints", true);
    for (size_t i = 0; i < findings->checked_count; i++) {
        write_checked(&json, &findings->checked[i]);
    }
    gcmp_emit_close(&json);
    gcmp_emit_open_array(&json, "findings", true);
    for (size_t i = 0; i < findings->checked_count; i++) {
        for (size_t j = 0; j < findings->checked[i].finding_count; j++) {
            write_finding(&json, &findings->checked[i], &findings->checked[i].findings[j]);
        }
    }
    gcmp_emit_close(&json);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}
