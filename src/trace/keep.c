/* Copies of what is told of an event. */
#include "trace/keep.h"

#include <string.h>

enum { MAX_GROUP = 1 << 20 };

static bool dup_text(struct gcmp_arena *arena, const char *text, const char **out) {
    *out = text == NULL ? NULL : gcmp_arena_dup(arena, text);
    return text == NULL || *out != NULL;
}

/* Keep the ranks of a group, where it is a list of ranks. */
static bool keep_group(struct gcmp_arena *arena, const struct gcmp_jv_text *text, uint32_t group,
                       struct gcmp_kept *out) {
    if (!gcmp_jv_is(text, group, GCMP_JV_ARRAY) || text->values[group].count > MAX_GROUP) {
        return true;
    }
    uint32_t count = text->values[group].count;
    out->group = gcmp_arena_alloc(arena, count, sizeof *out->group);
    if (out->group == NULL) {
        return false;
    }
    uint32_t at = gcmp_jv_first(group);
    for (uint32_t i = 0; i < count; i++, at = gcmp_jv_next(text, at)) {
        if (gcmp_jv_count(text, at, &out->group[out->group_count])) {
            out->group_count++;
        }
    }
    return true;
}

enum gradcmp_status gcmp_keep_one(const struct gcmp_stream *stream, struct gcmp_kept *out,
                                  struct gradcmp_error *error) {
    const struct gcmp_event *event = &stream->event;
    struct gcmp_arena *arena = stream->run->arena;
    *out = (struct gcmp_kept){.iteration = event->iteration,
                              .microbatch = event->microbatch,
                              .occurrence = event->occurrence,
                              .kind = event->kind,
                              .sequence_a = event->sequence,
                              .sequence_b = -1,
                              .path_a = gcmp_stream_path(stream),
                              .line_a = stream->frame.line,
                              .is_collective = event->is_collective,
                              .giving = event->giving};
    /* The dir owns the path, and is closed before the evidence is read. */
    if (!dup_text(arena, out->path_a, &out->path_a) ||
        !dup_text(arena, event->phase, &out->phase) || !dup_text(arena, event->type, &out->type) ||
        !dup_text(arena, event->name, &out->name) || !dup_text(arena, event->id, &out->id) ||
        !dup_text(arena, event->module, &out->module) ||
        !keep_group(arena, &stream->reader.text, event->group, out)) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_keep_pair(const struct gcmp_stream *a, const struct gcmp_stream *b,
                                   struct gcmp_kept *out, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_keep_one(a, out, error));
    out->sequence_b = b->event.sequence;
    out->line_b = b->frame.line;
    if (!dup_text(a->run->arena, gcmp_stream_path(b), &out->path_b)) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* The name of a collective without what it does: up to the last dot. */
static size_t family_length(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot == NULL ? strlen(name) : (size_t)(dot - name);
}

enum gradcmp_status gcmp_note_coordinate(const struct gcmp_stream *stream,
                                         struct gcmp_rank_result *out,
                                         struct gradcmp_error *error) {
    const struct gcmp_event *event = &stream->event;
    const struct gcmp_jv_text *text = &stream->reader.text;
    if (!event->is_collective || !gcmp_jv_is(text, event->group, GCMP_JV_ARRAY) ||
        out->coordinate_count == GCMP_MAX_COORDINATES) {
        return GRADCMP_OK;
    }
    size_t length = family_length(event->name);
    for (size_t i = 0; i < out->coordinate_count; i++) {
        if (strlen(out->coordinates[i].family) == length &&
            strncmp(out->coordinates[i].family, event->name, length) == 0) {
            return GRADCMP_OK;
        }
    }
    uint32_t at = gcmp_jv_first(event->group);
    for (uint32_t i = 0; i < text->values[event->group].count; i++, at = gcmp_jv_next(text, at)) {
        int64_t rank;
        if (gcmp_jv_count(text, at, &rank) && rank == out->rank) {
            const char *family = gcmp_arena_text(stream->run->arena, event->name, length);
            if (family == NULL) {
                GCMP_FAIL_MEMORY(error);
            }
            out->coordinates[out->coordinate_count++] =
                (struct gcmp_coordinate){family, i, text->values[event->group].count};
            return GRADCMP_OK;
        }
    }
    return GRADCMP_OK;
}
