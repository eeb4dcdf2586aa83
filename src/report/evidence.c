/* What callers of the library read from evidence, and its reports. */
#include "gradcmp/sys/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "report/json.h"
#include "report/page.h"

enum { DEFAULT_CASES = 20 };

void gradcmp_evidence_free(struct gradcmp_evidence *evidence) {
    if (evidence == NULL) {
        return;
    }
    if (evidence->release != NULL) {
        evidence->release(evidence);
    }
    struct gcmp_arena *arena = evidence->arena; /* the evidence may lie in it */
    gcmp_arena_free(arena);
    free(arena);
}

const char *gradcmp_evidence_verdict(const struct gradcmp_evidence *evidence) {
    return evidence->verdict;
}

const char *gradcmp_evidence_summary(const struct gradcmp_evidence *evidence) {
    return evidence->summary;
}

int gradcmp_evidence_exit_status(const struct gradcmp_evidence *evidence) {
    return evidence->exit_status;
}

size_t gradcmp_evidence_case_count(const struct gradcmp_evidence *evidence) {
    return evidence->case_count;
}

void gradcmp_evidence_case(const struct gradcmp_evidence *evidence, size_t index,
                           struct gradcmp_case *out) {
    if (index < evidence->case_count) {
        *out = evidence->cases[index];
    } else {
        memset(out, 0, sizeof *out);
    }
}

enum gradcmp_status gradcmp_evidence_write_text(const struct gradcmp_evidence *evidence,
                                                const struct gradcmp_text_options *text,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    struct gcmp_page page;
    gcmp_page_open(&page, text, DEFAULT_CASES);
    gcmp_out_begin(&page.out, write, user);
    if (evidence->options != NULL) {
        gcmp_page_add(&page, "options  ");
        gcmp_page_wrap(&page, strlen("options  "), strlen("options  "), evidence->options);
    }
    evidence->writers->text(evidence, &page);
    return gcmp_out_end(&page.out, error);
}

enum gradcmp_status gradcmp_evidence_write_json(const struct gradcmp_evidence *evidence,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, true);
    gcmp_emit_integer(&json, "schema", 1);
    gcmp_emit_text(&json, "tool", "gradcmp");
    gcmp_emit_text(&json, "version", gradcmp_version());
    gcmp_emit_text(&json, "subcommand", evidence->subcommand);
    gcmp_emit_text(&json, "verdict", evidence->verdict);
    evidence->writers->json(evidence, &json);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}
