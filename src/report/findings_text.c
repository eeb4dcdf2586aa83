/* The findings of `check` for people. */
#include <inttypes.h>
#include <string.h>

#include "gradcmp/sys/result.h"
#include "report/page.h"

enum { DEFAULT_FINDINGS = 20 };

static void add_finding(struct gcmp_page *page, const struct gradcmp_finding *finding) {
    gcmp_page_add(page, "  ");
    gcmp_page_ink(page, GCMP_INK_BAD, finding->kind);
    gcmp_page_pad(page, strlen(finding->kind), strlen("master_differs  "));
    if (finding->name[0] != '\0') {
        gcmp_page_name(page, finding->name);
        gcmp_page_addf(page, " (%s)", finding->state);
        gcmp_page_end_line(page);
        gcmp_page_add(page, "                  ");
    }
    gcmp_page_wrap(page, 18, 18, finding->text);
}

static void add_checked(struct gcmp_page *page, const struct gradcmp_checked *checked) {
    char tensors[GCMP_FIGURE_BYTES], elems[GCMP_FIGURE_BYTES], bytes[GCMP_FIGURE_BYTES];
    gcmp_page_ink(page, GCMP_INK_BOLD, "checkpoint    ");
    gcmp_page_name(page, checked->path);
    gcmp_page_end_line(page);
    if (checked->error.code != GRADCMP_OK) {
        return;
    }
    gcmp_page_addf(page, "looked at     %s tensor%s, %s elements, %s",
                   gcmp_figure_count(tensors, checked->tensors), checked->tensors == 1 ? "" : "s",
                   gcmp_figure_count(elems, checked->elems),
                   gcmp_figure_bytes(bytes, checked->bytes));
    gcmp_page_end_line(page);
    if (checked->other_tensors > 0) {
        gcmp_page_addf(page, "not looked at %s of no floating-point type: ",
                       gcmp_figure_count(tensors, checked->other_tensors));
        gcmp_page_name(page, checked->other);
        gcmp_page_addf(page, " (%s)%s", checked->other_type,
                       checked->other_tensors > 1 ? ", ..." : "");
        gcmp_page_end_line(page);
    }
    for (size_t i = 0; i < checked->catalogue->note_count; i++) {
        gcmp_page_add(page, "note          ");
        gcmp_page_wrap(page, 14, 14, checked->catalogue->notes[i]);
    }
    size_t shown =
        page->verbose || checked->finding_count < page->top ? checked->finding_count : page->top;
    for (size_t i = 0; i < shown; i++) {
        add_finding(page, &checked->findings[i]);
    }
    if (shown < checked->finding_count) {
        gcmp_page_addf(page, "  and %zu more (--verbose)", checked->finding_count - shown);
        gcmp_page_end_line(page);
    }
}

/* The line that stands alone, one a checkpoint. */
static void add_verdict(struct gcmp_page *page, const struct gradcmp_checked *checked) {
    if (checked->error.code != GRADCMP_OK) {
        gcmp_page_ink(page, GCMP_INK_BAD, "ERROR");
        gcmp_page_add(page, ": ");
        gcmp_page_name(page, checked->error.path[0] == '\0' ? checked->path : checked->error.path);
        gcmp_page_add(page, ": ");
        gcmp_page_name(page, checked->error.message);
        if (checked->error.offset_bytes != GRADCMP_NO_OFFSET) {
            gcmp_page_addf(page, " (byte 0x%" PRIx64 ")", checked->error.offset_bytes);
        }
    } else if (checked->finding_count == 0) {
        gcmp_page_ink(page, GCMP_INK_GOOD, "CLEAN");
        gcmp_page_add(page, ": ");
        gcmp_page_name(page, checked->path);
    } else {
        gcmp_page_ink(page, GCMP_INK_BAD, "FINDINGS");
        gcmp_page_addf(page, ": %zu in ", checked->finding_count);
        gcmp_page_name(page, checked->path);
    }
    gcmp_page_end_line(page);
}

enum gradcmp_status gradcmp_findings_write_text(const struct gradcmp_findings *findings,
                                                const struct gradcmp_text_options *text,
                                                gradcmp_write_fn write, void *user,
                                                struct gradcmp_error *error) {
    struct gcmp_page page;
    gcmp_page_open(&page, text, DEFAULT_FINDINGS);
    gcmp_out_begin(&page.out, write, user);
    for (size_t i = 0; i < findings->checked_count; i++) {
        add_checked(&page, &findings->checked[i]);
    }
    gcmp_page_end_line(&page);
    for (size_t i = 0; i < findings->checked_count; i++) {
        add_verdict(&page, &findings->checked[i]);
    }
    return gcmp_out_end(&page.out, error);
}
