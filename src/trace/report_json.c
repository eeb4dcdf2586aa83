/* The fields of trace's JSON. */
#include "report/json.h"
#include "trace/combine.h"
#include "trace/report.h"

static void emit_step(struct gcmp_emitter *json, const char *key, int64_t step) {
    if (step < 0) {
        gcmp_emit_null(json, key);
    } else {
        gcmp_emit_integer(json, key, step);
    }
}

static void emit_maybe(struct gcmp_emitter *json, const char *key, enum gcmp_maybe maybe) {
    if (maybe == GCMP_UNKNOWN) {
        gcmp_emit_null(json, key);
    } else {
        gcmp_emit_bool(json, key, maybe == GCMP_YES);
    }
}

static void emit_ranks(struct gcmp_emitter *json, const char *key, const int64_t *ranks,
                       size_t count) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_integer(json, NULL, ranks[i]);
    }
    gcmp_emit_close(json);
}

/* The identity of an event; `op` is what its layout calls it. */
static void emit_identity(struct gcmp_emitter *json, const struct gcmp_kept *event) {
    emit_step(json, "iteration", event->iteration);
    emit_step(json, "microbatch", event->microbatch);
    gcmp_emit_text(json, "phase", event->phase);
    gcmp_emit_text(json, "op", event->name);
    gcmp_emit_text(json, "id", event->id);
    gcmp_emit_text(json, "module", event->module);
}

static void emit_names(struct gcmp_emitter *json, const struct gcmp_kept *event) {
    emit_identity(json, event);
    gcmp_emit_text(json, "event", event->type);
    gcmp_emit_text(json, "name", event->name);
    gcmp_emit_integer(json, "occurrence", event->occurrence);
}

static void emit_value(struct gcmp_emitter *json, const struct gcmp_value_difference *value) {
    const struct gcmp_kept *event = &value->event;
    gcmp_emit_open_object(json, "first", false);
    gcmp_emit_text(json, "kind", "content_mismatch");
    gcmp_emit_count(json, "index", value->index);
    emit_names(json, event);
    gcmp_emit_text(json, "direction",
                   event->kind == GCMP_EVENT_INPUT    ? "input"
                   : event->kind == GCMP_EVENT_OUTPUT ? "output"
                                                      : NULL);
    emit_step(json, "a_sequence", event->sequence_a);
    emit_step(json, "b_sequence", event->sequence_b);
    gcmp_emit_count(json, "a_line", event->line_a);
    gcmp_emit_count(json, "b_line", event->line_b);
    emit_maybe(json, "inputs_match", value->inputs_match);
    emit_maybe(json, "outputs_match", value->outputs_match);
    emit_maybe(json, "arguments_match", value->arguments_match);
    gcmp_emit_bool(json, "at_start", value->at_start);
    gcmp_emit_text(json, "difference", value->where);
    if (event->is_collective) {
        gcmp_emit_bool(json, "same_group", value->same_group);
        emit_ranks(json, "peers_with_differing_input", value->peers, value->peer_count);
        emit_ranks(json, "peers_not_traced", value->silent_peers, value->silent_count);
    }
    gcmp_emit_close(json);
}

static void emit_side(struct gcmp_emitter *json, const char *key, bool is_there,
                      const struct gcmp_kept *event) {
    if (!is_there) {
        gcmp_emit_null(json, key);
        return;
    }
    gcmp_emit_open_object(json, key, false);
    emit_names(json, event);
    emit_step(json, "sequence", event->sequence_a);
    gcmp_emit_count(json, "line", event->line_a);
    gcmp_emit_close(json);
}

static void emit_structural(struct gcmp_emitter *json, const char *key,
                            const struct gcmp_structural *found) {
    const char side[2] = {found->ended, '\0'};
    const char missing[2] = {found->missing_from, '\0'};
    gcmp_emit_open_object(json, key, false);
    gcmp_emit_text(json, "kind", found->kind);
    gcmp_emit_count(json, "index", found->index);
    gcmp_emit_text(json, "ended", found->ended == '\0' ? NULL : side);
    gcmp_emit_text(json, "missing_from", found->missing_from == '\0' ? NULL : missing);
    emit_side(json, "a", found->has_a, &found->a);
    emit_side(json, "b", found->has_b, &found->b);
    gcmp_emit_close(json);
}

/* `first` is what comes first of both kinds of difference. */
static void emit_findings(struct gcmp_emitter *json, const struct gcmp_rank_result *rank) {
    if (rank->has_value) {
        emit_value(json, &rank->value);
    } else if (rank->has_structural) {
        emit_structural(json, "first", &rank->structural);
    } else if (rank->state != GCMP_RANK_JUDGED) {
        gcmp_emit_open_object(json, "first", false);
        gcmp_emit_text(json, "kind", "missing_rank");
        gcmp_emit_text(json, "missing_from", rank->state == GCMP_RANK_MISSING_A ? "a" : "b");
        gcmp_emit_close(json);
    } else {
        gcmp_emit_null(json, "first");
    }
    if (rank->has_structural) {
        emit_structural(json, "structural", &rank->structural);
    } else {
        gcmp_emit_null(json, "structural");
    }
}

static void emit_rank(struct gcmp_emitter *json, const struct gcmp_rank_result *rank,
                      enum gcmp_role role, const char *layout) {
    gcmp_emit_open_object(json, NULL, true);
    gcmp_emit_integer(json, "rank", rank->rank);
    gcmp_emit_text(json, "role", gcmp_role_name(role));
    if (layout != NULL) {
        gcmp_emit_text(json, "layout", layout);
    }
    gcmp_emit_bool(json, "match", role == GCMP_ROLE_MATCH);
    gcmp_emit_bool(json, "damaged", rank->is_damaged);
    gcmp_emit_count(json, "equal_prefix", rank->equal_prefix);
    gcmp_emit_count(json, "a_records", rank->records_a);
    gcmp_emit_count(json, "b_records", rank->records_b);
    emit_findings(json, rank);
    gcmp_emit_close(json);
}

static void emit_origin(struct gcmp_emitter *json, int64_t rank, const struct gcmp_kept *event) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_integer(json, "rank", rank);
    emit_identity(json, event);
    gcmp_emit_close(json);
}

static void emit_trace(struct gcmp_emitter *json, const struct gcmp_trace_result *trace) {
    bool is_valid = trace->verdict != GCMP_TRACE_INVALID;
    gcmp_emit_open_object(json, trace->name, true);
    gcmp_emit_text(json, "layout", trace->layout == NULL ? NULL : trace->layout->name);
    gcmp_emit_text(json, "verdict", gcmp_trace_verdict_name(trace->verdict));
    gcmp_emit_text(json, "strength", gcmp_strength_name(trace->strength));
    gcmp_emit_open_array(json, "origin", true);
    for (size_t i = 0; is_valid && i < trace->rank_count; i++) {
        if (trace->ranks[i].role == GCMP_ROLE_ORIGIN) {
            emit_origin(json, trace->ranks[i].rank, &trace->ranks[i].value.event);
        }
    }
    gcmp_emit_close(json);
    gcmp_emit_text(json, "structural", is_valid ? trace->structural : NULL);
    gcmp_emit_bool(json, "comparable", trace->comparable);
    gcmp_emit_open_array(json, "ranks", true);
    for (size_t i = 0; i < trace->rank_count; i++) {
        emit_rank(json, &trace->ranks[i], trace->ranks[i].role, NULL);
    }
    gcmp_emit_close(json);
    gcmp_emit_close(json);
}

static void emit_roles(struct gcmp_emitter *json, const struct gcmp_trace_content *content,
                       const char *key, enum gcmp_role role) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; content->verdict != GCMP_TRACE_INVALID && i < content->rank_count; i++) {
        if (content->ranks[i].role == role) {
            gcmp_emit_integer(json, NULL, content->ranks[i].rank);
        }
    }
    gcmp_emit_close(json);
}

static void emit_troubles(struct gcmp_emitter *json, const struct gcmp_trace_run *run) {
    gcmp_emit_open_array(json, "invalid", true);
    for (const struct gcmp_trouble *trouble = run->first; trouble != NULL;
         trouble = trouble->next) {
        const char side[2] = {trouble->side, '\0'};
        gcmp_emit_open_object(json, NULL, false);
        gcmp_emit_text(json, "layout", trouble->layout);
        gcmp_emit_text(json, "side", side);
        emit_step(json, "rank", trouble->rank);
        gcmp_emit_text(json, "file", trouble->path);
        gcmp_emit_known(json, "line", trouble->line);
        gcmp_emit_text(json, "message", trouble->text);
        gcmp_emit_close(json);
    }
    gcmp_emit_close(json);
}

void gcmp_trace_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json) {
    const struct gcmp_trace_content *content = evidence->content;
    gcmp_emit_text(json, "a", evidence->paths[0]);
    gcmp_emit_text(json, "b", evidence->paths[1]);
    gcmp_emit_bool(json, "lenient", content->run->is_lenient);
    gcmp_emit_open_array(json, "origin", true);
    for (size_t i = 0; content->verdict != GCMP_TRACE_INVALID && i < content->rank_count; i++) {
        if (content->ranks[i].role == GCMP_ROLE_ORIGIN) {
            emit_origin(json, content->ranks[i].rank, &content->ranks[i].told->value.event);
        }
    }
    gcmp_emit_close(json);
    emit_roles(json, content, "receivers", GCMP_ROLE_RECEIVER);
    emit_roles(json, content, "source", GCMP_ROLE_SOURCE);
    emit_roles(json, content, "inputs", GCMP_ROLE_INPUTS);
    emit_ranks(json, "missing_ranks_a", content->missing_a, content->missing_a_count);
    emit_ranks(json, "missing_ranks_b", content->missing_b, content->missing_b_count);
    gcmp_emit_bool(json, "comparable", content->comparable);
    gcmp_emit_text(json, "structural", content->structural);
    gcmp_emit_text(json, "reading", content->reading);
    emit_troubles(json, content->run);
    gcmp_emit_open_array(json, "notes", true);
    for (size_t i = 0; i < evidence->note_count; i++) {
        gcmp_emit_text(json, NULL, evidence->notes[i]);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_array(json, "ranks", true);
    for (size_t i = 0; i < content->rank_count; i++) {
        const struct gcmp_trace_rank *rank = &content->ranks[i];
        emit_rank(json, rank->told, rank->role, rank->by->name);
    }
    gcmp_emit_close(json);
    gcmp_emit_open_object(json, "layouts", true);
    for (size_t i = 0; i < content->trace_count; i++) {
        emit_trace(json, &content->traces[i]);
    }
    gcmp_emit_close(json);
}
