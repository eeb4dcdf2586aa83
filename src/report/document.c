/* What the documents have in common, and the documents of findings and evidence. */
#include "report/document.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

enum { DEFAULT_ROWS = GCMP_HTML_ROWS };

struct gradcmp_document_options
gcmp_document_options(const struct gradcmp_document_options *options, unsigned default_top) {
    struct gradcmp_document_options own = GRADCMP_DOCUMENT_OPTIONS_INIT;
    if (options != NULL) {
        size_t known = options->struct_size < sizeof own ? options->struct_size : sizeof own;
        memcpy(&own, options, known);
    }
    own.struct_size = sizeof own;
    own.top = own.top == 0 ? default_top : own.top;
    own.rows = own.rows == 0 ? DEFAULT_ROWS : own.rows;
    return own;
}

const char *gcmp_case_outcome_name(enum gradcmp_case_outcome outcome) {
    static const char *const names[] = {[GRADCMP_CASE_PASS] = "pass",
                                        [GRADCMP_CASE_FAIL] = "fail",
                                        [GRADCMP_CASE_SKIPPED] = "skipped",
                                        [GRADCMP_CASE_ERROR] = "error"};
    return (unsigned)outcome <= GRADCMP_CASE_ERROR ? names[(unsigned)outcome] : "error";
}

struct gcmp_case_list gcmp_evidence_list(const struct gradcmp_evidence *evidence,
                                         struct gcmp_text *title) {
    gcmp_text_addf(title, "gradcmp %s", evidence->subcommand);
    return (struct gcmp_case_list){.title = title->bytes == NULL ? "gradcmp" : title->bytes,
                                   .verdict = evidence->verdict,
                                   .summary = evidence->summary,
                                   .exit_status = evidence->exit_status,
                                   .paths = evidence->paths,
                                   .path_count = evidence->path_count,
                                   .cases = evidence->cases,
                                   .case_count = evidence->case_count,
                                   .notes = evidence->notes,
                                   .note_count = evidence->note_count,
                                   .options = evidence->options,
                                   .evidence = evidence};
}

/* --- findings as cases --- */

struct case_builder {
    struct gcmp_arena *arena;
    struct gradcmp_case *cases;
    size_t count;
};

/* "master_differs decoder... (param)"; of two alike the names would be the same too. */
static const char *name_of(struct case_builder *builder, const struct gradcmp_finding *finding) {
    if (finding->name[0] == '\0') {
        return gcmp_arena_dup(builder->arena, finding->kind);
    }
    return gcmp_arena_format(builder->arena, "%s: %s (%s)", finding->kind, finding->name,
                             finding->state);
}

static const char *error_text(struct gcmp_arena *arena, const struct gradcmp_error *error) {
    if (error->offset_bytes == GRADCMP_NO_OFFSET) {
        return gcmp_arena_format(arena, "%s", error->message);
    }
    return gcmp_arena_format(arena, "%s (byte 0x%" PRIx64 ")", error->message, error->offset_bytes);
}

/* False without memory. */
static bool add_checked(struct case_builder *builder, const struct gradcmp_checked *checked) {
    for (size_t i = 0; i < checked->finding_count; i++) {
        const struct gradcmp_finding *finding = &checked->findings[i];
        struct gradcmp_case *own = &builder->cases[builder->count++];
        *own = (struct gradcmp_case){.group = checked->path,
                                     .name = name_of(builder, finding),
                                     .outcome = GRADCMP_CASE_FAIL,
                                     .text = finding->text};
        if (own->name == NULL) {
            return false;
        }
    }
    struct gradcmp_case *whole = &builder->cases[builder->count++];
    *whole = (struct gradcmp_case){.group = checked->path, .name = "read and looked at"};
    if (checked->error.code == GRADCMP_OK) {
        whole->text = gcmp_arena_format(
            builder->arena, "%zu tensors, %" PRIu64 " elements, %" PRIu64 " bytes, %zu findings",
            checked->tensors, checked->elems, checked->bytes, checked->finding_count);
    } else {
        whole->outcome = GRADCMP_CASE_ERROR;
        whole->text = error_text(builder->arena, &checked->error);
        whole->file = checked->error.path[0] == '\0' ? NULL : checked->error.path;
    }
    return whole->text != NULL;
}

/* What the catalogues note, with their paths, into *notes; false without memory. */
static bool gather_notes(const struct gradcmp_findings *findings, struct gcmp_arena *arena,
                         const char ***notes, size_t *count) {
    size_t most = 0;
    *count = 0;
    for (size_t i = 0; i < findings->checked_count; i++) {
        const struct gradcmp_catalogue *catalogue = findings->checked[i].catalogue;
        most += catalogue == NULL ? 0 : catalogue->note_count;
    }
    *notes = gcmp_arena_alloc(arena, most, sizeof **notes);
    for (size_t i = 0; *notes != NULL && i < findings->checked_count; i++) {
        const struct gradcmp_checked *checked = &findings->checked[i];
        for (size_t k = 0; checked->catalogue != NULL && k < checked->catalogue->note_count; k++) {
            const char *note =
                gcmp_arena_format(arena, "%s: %s", checked->path, checked->catalogue->notes[k]);
            (*notes)[(*count)++] = note;
            if (note == NULL) {
                return false;
            }
        }
    }
    return *notes != NULL;
}

/* "3 findings in 2 checkpoints, 1 could not be read". */
static const char *summarize(const struct gradcmp_findings *findings, struct gcmp_arena *arena) {
    size_t unread = 0, count = gradcmp_findings_count(findings);
    for (size_t i = 0; i < findings->checked_count; i++) {
        unread += findings->checked[i].error.code != GRADCMP_OK;
    }
    const char *of = findings->checked_count == 1 ? "" : "s", *s = count == 1 ? "" : "s";
    if (unread > 0) {
        return gcmp_arena_format(arena, "%zu finding%s in %zu checkpoint%s; %zu could not be read",
                                 count, s, findings->checked_count, of, unread);
    }
    return gcmp_arena_format(arena, "%zu finding%s in %zu checkpoint%s", count, s,
                             findings->checked_count, of);
}

enum gradcmp_status gcmp_findings_list(const struct gradcmp_findings *findings,
                                       struct gcmp_arena *arena, struct gcmp_case_list *out,
                                       struct gradcmp_error *error) {
    static const char *const verdicts[] = {"clean", "findings", "error"};
    size_t count = gradcmp_findings_count(findings) + findings->checked_count;
    struct case_builder builder = {arena, NULL, 0};
    builder.cases = gcmp_arena_alloc(arena, count, sizeof *builder.cases);
    const char **paths = gcmp_arena_alloc(arena, findings->checked_count, sizeof *paths);
    const char *summary = summarize(findings, arena), **notes;
    size_t note_count;
    bool is_fine = gather_notes(findings, arena, &notes, &note_count) && builder.cases != NULL &&
                   paths != NULL && summary != NULL;
    for (size_t i = 0; is_fine && i < findings->checked_count; i++) {
        paths[i] = findings->checked[i].path;
        is_fine = add_checked(&builder, &findings->checked[i]);
    }
    if (!is_fine) {
        GCMP_FAIL_MEMORY(error);
    }
    int status = gradcmp_findings_exit_status(findings);
    *out = (struct gcmp_case_list){.title = "gradcmp check",
                                   .verdict = verdicts[status],
                                   .summary = summary,
                                   .exit_status = status,
                                   .paths = paths,
                                   .path_count = findings->checked_count,
                                   .cases = builder.cases,
                                   .case_count = builder.count,
                                   .notes = notes,
                                   .note_count = note_count};
    return GRADCMP_OK;
}

/* --- the documents of both --- */

/* Where a document goes, and how it is made. */
struct destination {
    void (*make)(const struct gcmp_case_list *list, const struct gradcmp_document_options *options,
                 struct gcmp_out *out);
    struct gradcmp_document_options options;
    gradcmp_write_fn write;
    void *user;
};

static enum gradcmp_status write_findings(const struct gradcmp_findings *findings,
                                          const struct destination *to,
                                          struct gradcmp_error *error) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_case_list list;
    struct gcmp_out out;
    enum gradcmp_status status = gcmp_findings_list(findings, &arena, &list, error);
    if (status == GRADCMP_OK) {
        gcmp_out_begin(&out, to->write, to->user);
        to->make(&list, &to->options, &out);
        status = gcmp_out_end(&out, error);
    }
    gcmp_arena_free(&arena);
    return status;
}

static enum gradcmp_status write_evidence(const struct gradcmp_evidence *evidence,
                                          const struct destination *to,
                                          struct gradcmp_error *error) {
    struct gcmp_text title = GCMP_TEXT_INIT;
    struct gcmp_out out;
    struct gcmp_case_list list = gcmp_evidence_list(evidence, &title);
    gcmp_out_begin(&out, to->write, to->user);
    to->make(&list, &to->options, &out);
    out.text.failed = out.text.failed || title.failed;
    enum gradcmp_status status = gcmp_out_end(&out, error);
    gcmp_text_free(&title);
    return status;
}

enum gradcmp_status gradcmp_findings_write_html(const struct gradcmp_findings *findings,
                                                const struct gradcmp_document_options *options,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_html, gcmp_document_options(options, GCMP_HTML_TOP), write,
                             user};
    return write_findings(findings, &to, error);
}

enum gradcmp_status gradcmp_findings_write_junit(const struct gradcmp_findings *findings,
                                                 const struct gradcmp_document_options *options,
                                                 gradcmp_write_fn write, void *user,
                                                 struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_junit, gcmp_document_options(options, 0), write, user};
    return write_findings(findings, &to, error);
}

enum gradcmp_status gradcmp_findings_write_markdown(const struct gradcmp_findings *findings,
                                                    const struct gradcmp_document_options *options,
                                                    gradcmp_write_fn write, void *user,
                                                    struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_markdown, gcmp_document_options(options, GCMP_MARKDOWN_TOP),
                             write, user};
    return write_findings(findings, &to, error);
}

enum gradcmp_status gradcmp_findings_write_annotations(
    const struct gradcmp_findings *findings, const struct gradcmp_document_options *options,
    gradcmp_write_fn write, void *user, struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_annotations,
                             gcmp_document_options(options, GCMP_ANNOTATIONS_TOP), write, user};
    return write_findings(findings, &to, error);
}

enum gradcmp_status gradcmp_evidence_write_html(const struct gradcmp_evidence *evidence,
                                                const struct gradcmp_document_options *options,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_html, gcmp_document_options(options, GCMP_HTML_TOP), write,
                             user};
    return write_evidence(evidence, &to, error);
}

enum gradcmp_status gradcmp_evidence_write_junit(const struct gradcmp_evidence *evidence,
                                                 const struct gradcmp_document_options *options,
                                                 gradcmp_write_fn write, void *user,
                                                 struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_junit, gcmp_document_options(options, 0), write, user};
    return write_evidence(evidence, &to, error);
}

enum gradcmp_status gradcmp_evidence_write_markdown(const struct gradcmp_evidence *evidence,
                                                    const struct gradcmp_document_options *options,
                                                    gradcmp_write_fn write, void *user,
                                                    struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_markdown, gcmp_document_options(options, GCMP_MARKDOWN_TOP),
                             write, user};
    return write_evidence(evidence, &to, error);
}

enum gradcmp_status gradcmp_evidence_write_annotations(
    const struct gradcmp_evidence *evidence, const struct gradcmp_document_options *options,
    gradcmp_write_fn write, void *user, struct gradcmp_error *error) {
    struct destination to = {gcmp_cases_annotations,
                             gcmp_document_options(options, GCMP_ANNOTATIONS_TOP), write, user};
    return write_evidence(evidence, &to, error);
}
