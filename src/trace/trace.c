/* gradcmp_trace: two traces, or two folders of traces. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "trace/combine.h"
#include "trace/report.h"

static const struct gradcmp_evidence_writers writers = {gcmp_trace_write_text,
                                                        gcmp_trace_write_json, NULL};

/* Both sides while they are compared. */
struct session {
    struct gcmp_trace_run *run; /* in the arena: the evidence shows its troubles */
    struct gradcmp_evidence *evidence;
    struct gcmp_trace_content *content;
    struct gcmp_dir *dir_a, *dir_b;
    struct gcmp_traces a, b;
    struct gradcmp_error *error;
};

static enum gradcmp_status complain(struct session *s, char side, const char *layout,
                                    const char *text) {
    struct gradcmp_error trouble = {0};
    const char *path = gcmp_dir_path(side == 'a' ? s->dir_a : s->dir_b);
    (void)gcmp_error_fill(&trouble, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET, "%s", text);
    return gcmp_trouble_add(s->run, layout, side, -1, &trouble, s->error);
}

static const struct gcmp_trace_files *find_folder(const struct gcmp_traces *traces,
                                                  const char *folder) {
    for (size_t i = 0; i < traces->count; i++) {
        if (strcmp(traces->traces[i].folder, folder) == 0) {
            return &traces->traces[i];
        }
    }
    return NULL;
}

static const char *folder_name(const struct gcmp_trace_files *trace) {
    return trace->folder[0] != '\0' ? trace->folder : ".";
}

/* Compare one pair, or tell why it is none. */
static enum gradcmp_status judge_pair(struct session *s, const struct gcmp_trace_files *a,
                                      const struct gcmp_trace_files *b) {
    struct gcmp_trace_result *out = &s->content->traces[s->content->trace_count];
    if (a == NULL || b == NULL) {
        const char *folder = folder_name(a != NULL ? a : b);
        const char *text = gcmp_arena_format(
            s->run->arena, "no trace in \"%s\", which the other side has", folder);
        return complain(s, a == NULL ? 'a' : 'b', folder, text == NULL ? "" : text);
    }
    out->name = s->content->is_folder || a->folder[0] != '\0' ? folder_name(a) : a->layout->name;
    if (a->layout != b->layout) {
        const char *text = gcmp_arena_format(
            s->run->arena, "%s: traces of two layouts, %s in A and %s in B cannot be compared",
            out->name, a->layout->name, b->layout->name);
        return complain(s, 'b', out->name, text == NULL ? "" : text);
    }
    s->content->trace_count++;
    return gcmp_judge_trace(s->run, a, b, out, s->error);
}

/* Pair the traces of both sides by folder; two that are alone on their sides are a pair. */
static enum gradcmp_status judge_pairs(struct session *s) {
    s->content->traces =
        gcmp_arena_alloc(s->run->arena, s->a.count + s->b.count, sizeof *s->content->traces);
    if (s->content->traces == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    if (s->a.count == 0 || s->b.count == 0) {
        return GRADCMP_OK; /* told already */
    }
    if (s->a.count == 1 && s->b.count == 1) {
        return judge_pair(s, &s->a.traces[0], &s->b.traces[0]);
    }
    s->content->is_folder = true;
    for (size_t i = 0; i < s->a.count; i++) {
        GCMP_TRY(judge_pair(s, &s->a.traces[i], find_folder(&s->b, s->a.traces[i].folder)));
    }
    for (size_t i = 0; i < s->b.count; i++) {
        if (find_folder(&s->a, s->b.traces[i].folder) == NULL) {
            GCMP_TRY(judge_pair(s, NULL, &s->b.traces[i]));
        }
    }
    return GRADCMP_OK;
}

/* ---- evidence */

static const char *case_text(struct gcmp_trace_run *run, const struct gcmp_rank_result *rank) {
    const char *role = gcmp_role_name(rank->role);
    if (rank->has_value) {
        const struct gcmp_kept *event = &rank->value.event;
        return gcmp_arena_format(run->arena, "%s: %s: %s", role,
                                 event->id != NULL ? event->id : event->name, rank->value.where);
    }
    if (rank->has_structural) {
        return gcmp_arena_format(run->arena, "%s at record %llu", rank->structural.kind,
                                 (unsigned long long)rank->structural.index);
    }
    return gcmp_arena_format(run->arena, "%s: %llu records equal", role,
                             (unsigned long long)rank->equal_prefix);
}

static enum gradcmp_status add_rank_case(struct session *s, const struct gcmp_trace_result *trace,
                                         const struct gcmp_rank_result *rank) {
    struct gradcmp_case *out = &s->evidence->cases[s->evidence->case_count++];
    out->group = trace->name;
    out->name = gcmp_arena_format(s->run->arena, "rank %lld", (long long)rank->rank);
    out->text = case_text(s->run, rank);
    out->outcome = rank->role == GCMP_ROLE_MATCH     ? GRADCMP_CASE_PASS
                   : rank->role == GCMP_ROLE_DAMAGED ? GRADCMP_CASE_ERROR
                                                     : GRADCMP_CASE_FAIL;
    if (rank->has_value) {
        out->file = rank->value.event.path_b;
        out->line = rank->value.event.line_b;
    }
    if (out->name == NULL || out->text == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_trouble_case(struct session *s, const struct gcmp_trouble *trouble) {
    size_t number = s->evidence->case_count;
    struct gradcmp_case *out = &s->evidence->cases[s->evidence->case_count++];
    out->group = "invalid";
    out->name = gcmp_arena_format(s->run->arena, "trouble %zu", number);
    out->outcome = s->run->is_lenient ? GRADCMP_CASE_SKIPPED : GRADCMP_CASE_ERROR;
    out->text = trouble->text;
    out->file = trouble->path;
    out->line = trouble->line;
    if (out->name == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_cases(struct session *s) {
    size_t count = s->run->trouble_count;
    for (size_t i = 0; i < s->content->trace_count; i++) {
        count += s->content->traces[i].rank_count;
    }
    s->evidence->cases = gcmp_arena_alloc(s->run->arena, count, sizeof *s->evidence->cases);
    if (s->evidence->cases == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    for (const struct gcmp_trouble *trouble = s->run->first; trouble != NULL;
         trouble = trouble->next) {
        GCMP_TRY(add_trouble_case(s, trouble));
    }
    for (size_t i = 0; i < s->content->trace_count; i++) {
        const struct gcmp_trace_result *trace = &s->content->traces[i];
        for (size_t r = 0; r < trace->rank_count; r++) {
            GCMP_TRY(add_rank_case(s, trace, &trace->ranks[r]));
        }
    }
    return GRADCMP_OK;
}

/* Tell what of a side could not be looked into, where a trace may lie. */
static enum gradcmp_status add_closed_note(struct session *s, const struct gcmp_traces *side) {
    if (side->closed_count == 0) {
        return GRADCMP_OK;
    }
    const char *note = gcmp_arena_format(
        s->run->arena,
        "%zu %s below %.200s no file or folder that may be read (a link that leads out, ...), the "
        "first %.200s: what it may hold of a trace is not compared; name it by itself",
        side->closed_count, side->closed_count == 1 ? "entry is" : "entries are",
        gcmp_dir_path(side->dir), side->closed);
    if (note == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    s->evidence->notes[s->evidence->note_count++] = note;
    return GRADCMP_OK;
}

static enum gradcmp_status add_notes(struct session *s) {
    const char *note = gcmp_dir_one_note(s->dir_a, s->dir_b);
    s->evidence->notes = gcmp_arena_alloc(s->run->arena, 3, sizeof *s->evidence->notes);
    if (s->evidence->notes == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    if (note != NULL && s->content->verdict == GCMP_TRACE_MATCH) {
        /* Two names of the same files agree, and that proves nothing. */
        s->evidence->notes[s->evidence->note_count++] = note;
    }
    GCMP_TRY(add_closed_note(s, &s->a));
    return add_closed_note(s, &s->b);
}

static enum gradcmp_status fill_evidence(struct session *s, const char *a, const char *b) {
    struct gradcmp_evidence *evidence = s->evidence;
    GCMP_TRY(gcmp_traces_combine(s->run, s->content, s->error));
    GCMP_TRY(add_cases(s));
    s->content->reading = gcmp_trace_reading(s->run, s->content);
    evidence->subcommand = "trace";
    evidence->verdict = gcmp_trace_verdict_name(s->content->verdict);
    evidence->exit_status = (int)s->content->verdict;
    evidence->summary = s->content->reading;
    evidence->paths = gcmp_arena_alloc(s->run->arena, 2, sizeof *evidence->paths);
    if (evidence->paths == NULL || evidence->summary == NULL ||
        (evidence->paths[0] = gcmp_arena_dup(s->run->arena, a)) == NULL ||
        (evidence->paths[1] = gcmp_arena_dup(s->run->arena, b)) == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    evidence->path_count = 2;
    GCMP_TRY(add_notes(s));
    evidence->content = s->content;
    evidence->writers = &writers;
    return GRADCMP_OK;
}

/* ---- the call */

/* Everything that the evidence is made of lies in one arena, itself too. */
static struct gradcmp_evidence *make_evidence(void) {
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    struct gradcmp_evidence *evidence =
        arena == NULL ? NULL : gcmp_arena_alloc(arena, 1, sizeof *evidence);
    if (evidence == NULL) {
        free(arena);
        return NULL;
    }
    evidence->arena = arena;
    return evidence;
}

static enum gradcmp_status set_up(struct session *s, const struct gradcmp_trace_options *options) {
    s->evidence = make_evidence();
    if (s->evidence == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    s->run = gcmp_arena_alloc(s->evidence->arena, 1, sizeof *s->run);
    s->content = gcmp_arena_alloc(s->evidence->arena, 1, sizeof *s->content);
    if (s->run == NULL || s->content == NULL) {
        GCMP_FAIL_MEMORY(s->error);
    }
    s->run->arena = s->evidence->arena;
    s->run->last = &s->run->first;
    s->run->is_lenient = options->lenient != 0;
    s->run->progress = options->progress;
    s->run->progress_user = options->progress_user;
    s->content->run = s->run;
    if (getrandom(&s->run->seed, sizeof s->run->seed, 0) != (ssize_t)sizeof s->run->seed) {
        s->run->seed = (uint64_t)(uintptr_t)s->run; /* address randomisation is better than none */
    }
    return GRADCMP_OK;
}

static enum gradcmp_status compare(struct session *s, const char *a, const char *b) {
    GCMP_TRY(gcmp_dir_open(a, &s->dir_a, s->error));
    GCMP_TRY(gcmp_dir_open(b, &s->dir_b, s->error));
    GCMP_TRY(gcmp_traces_find(s->run, s->dir_a, 'a', &s->a, s->error));
    GCMP_TRY(gcmp_traces_find(s->run, s->dir_b, 'b', &s->b, s->error));
    GCMP_TRY(judge_pairs(s));
    return fill_evidence(s, a, b);
}

enum gradcmp_status gradcmp_trace(const char *a, const char *b,
                                  const struct gradcmp_trace_options *options,
                                  struct gradcmp_evidence **out, struct gradcmp_error *error) {
    static const struct gradcmp_trace_options defaults = GRADCMP_TRACE_OPTIONS_INIT;
    struct session s = {.error = error};
    *out = NULL;
    if (a == NULL || b == NULL || (options != NULL && options->struct_size < sizeof *options)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "two paths and options of this version are needed");
    }
    enum gradcmp_status status = set_up(&s, options == NULL ? &defaults : options);
    if (status == GRADCMP_OK) {
        status = compare(&s, a, b);
    }
    gcmp_dir_close(s.dir_a);
    gcmp_dir_close(s.dir_b);
    if (status != GRADCMP_OK) {
        if (s.evidence != NULL) {
            gradcmp_evidence_free(s.evidence);
        }
        return status;
    }
    *out = s.evidence;
    return GRADCMP_OK;
}
