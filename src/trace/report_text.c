/* The terminal report of trace. */
#include <string.h>

#include "report/page.h"
#include "trace/combine.h"
#include "trace/report.h"

enum { INDENT = 14 };

static void add_path(struct gcmp_page *page, const char *title, const char *path) {
    gcmp_page_ink(page, GCMP_INK_BOLD, title);
    gcmp_page_pad(page, strlen(title), INDENT);
    gcmp_page_name(page, path);
    gcmp_page_end_line(page);
}

static enum gcmp_ink ink_of(enum gcmp_trace_verdict verdict) {
    return verdict == GCMP_TRACE_MATCH      ? GCMP_INK_GOOD
           : verdict == GCMP_TRACE_DIVERGED ? GCMP_INK_BAD
                                            : GCMP_INK_DOUBT;
}

static void add_traces(struct gcmp_page *page, const struct gcmp_trace_content *content) {
    if (content->trace_count > 0) {
        gcmp_page_heading(page, "traces");
    }
    for (size_t i = 0; i < content->trace_count; i++) {
        const struct gcmp_trace_result *trace = &content->traces[i];
        const char *verdict = gcmp_trace_verdict_name(trace->verdict);
        char equal[GCMP_FIGURE_BYTES];
        gcmp_page_add(page, "  ");
        gcmp_page_name_in(page, trace->name, 18);
        gcmp_page_add(page, "  ");
        gcmp_page_ink(page, ink_of(trace->verdict), verdict);
        gcmp_page_pad(page, strlen(verdict), 10);
        gcmp_page_addf(page, "%s records equal on %zu rank%s, evidence: %s",
                       gcmp_figure_count(equal, trace->records), trace->rank_count,
                       trace->rank_count == 1 ? "" : "s", gcmp_strength_name(trace->strength));
        gcmp_page_end_line(page);
    }
}

static const char *name_of(const struct gcmp_kept *event) {
    return event->id != NULL ? event->id : event->name;
}

/* What a rank's line says behind its role. */
static void add_finding(struct gcmp_page *page, const struct gcmp_trace_rank *rank) {
    const struct gcmp_rank_result *told = rank->told;
    char equal[GCMP_FIGURE_BYTES];
    if (told->has_value) {
        const struct gcmp_kept *event = &told->value.event;
        gcmp_page_name(page, name_of(event));
        if (event->module != NULL && event->module[0] != '\0' && event->id != NULL) {
            gcmp_page_add(page, "  ");
            gcmp_page_name(page, event->module);
        }
        gcmp_page_end_line(page);
        gcmp_page_add(page, "                        ");
        gcmp_page_wrap(page, 24, 24, told->value.where);
        return;
    }
    if (told->has_structural) {
        const struct gcmp_structural *found = &told->structural;
        gcmp_page_addf(page, "%s: ", found->kind);
        gcmp_page_name(page, found->has_a ? name_of(&found->a) : "end");
        gcmp_page_add(page, " | ");
        gcmp_page_name(page, found->has_b ? name_of(&found->b) : "end");
    } else if (told->state != GCMP_RANK_JUDGED) {
        gcmp_page_addf(page, "only in %s", told->state == GCMP_RANK_MISSING_A ? "B" : "A");
    } else {
        gcmp_page_addf(page, "%s records equal", gcmp_figure_count(equal, told->equal_prefix));
    }
    gcmp_page_end_line(page);
}

static void add_ranks(struct gcmp_page *page, const struct gcmp_trace_content *content) {
    if (content->rank_count > 0) {
        gcmp_page_heading(page, "ranks");
    }
    size_t shown = 0;
    size_t left_out = 0;
    for (size_t i = 0; i < content->rank_count; i++) {
        const struct gcmp_trace_rank *rank = &content->ranks[i];
        const char *role = gcmp_role_name(rank->role);
        if ((rank->role == GCMP_ROLE_MATCH || shown >= page->top) && !page->verbose) {
            left_out++;
            continue;
        }
        shown++;
        gcmp_page_addf(page, "  %8lld  ", (long long)rank->rank);
        gcmp_page_ink(page, rank->role == GCMP_ROLE_MATCH ? GCMP_INK_GOOD : GCMP_INK_BAD, role);
        gcmp_page_pad(page, strlen(role), 12);
        add_finding(page, rank);
    }
    if (left_out > 0) {
        gcmp_page_addf(page, "  %s%zu more, equal or not listed (--verbose)",
                       shown > 0 ? "and " : "", left_out);
        gcmp_page_end_line(page);
    }
}

static void add_troubles(struct gcmp_page *page, const struct gcmp_trace_run *run) {
    if (run->first != NULL) {
        gcmp_page_heading(page, run->is_lenient ? "left out (--lenient)" : "invalid");
    }
    size_t shown = 0;
    for (const struct gcmp_trouble *trouble = run->first; trouble != NULL;
         trouble = trouble->next) {
        if (shown++ >= page->top && !page->verbose) {
            gcmp_page_addf(page, "  and %zu more (--verbose)", run->trouble_count - page->top);
            gcmp_page_end_line(page);
            return;
        }
        gcmp_page_add(page, "  ");
        gcmp_page_name(page, trouble->path);
        if (trouble->line > 0) {
            gcmp_page_addf(page, ": line %llu", (unsigned long long)trouble->line);
        }
        gcmp_page_end_line(page);
        gcmp_page_add(page, "    ");
        gcmp_page_wrap(page, 4, 4, trouble->text);
    }
}

static void add_notes(struct gcmp_page *page, const struct gradcmp_evidence *evidence) {
    if (evidence->note_count > 0) {
        gcmp_page_heading(page, "notes");
    }
    for (size_t i = 0; i < evidence->note_count; i++) {
        gcmp_page_add(page, "  ");
        gcmp_page_wrap(page, 2, 2, evidence->notes[i]);
    }
}

void gcmp_trace_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page) {
    static const char *const words[] = {"MATCH", "DIVERGED", "INVALID"};
    const struct gcmp_trace_content *content = evidence->content;
    add_path(page, "A", evidence->paths[0]);
    add_path(page, "B", evidence->paths[1]);
    add_traces(page, content);
    add_ranks(page, content);
    add_troubles(page, content->run);
    add_notes(page, evidence);
    gcmp_page_end_line(page);
    gcmp_page_ink(page, ink_of(content->verdict), words[content->verdict]);
    gcmp_page_add(page, ": ");
    gcmp_page_name(page, evidence->summary);
    gcmp_page_end_line(page);
}
