/* One rank of two traces side by side. */
#include "trace/align.h"

#include <stdlib.h>
#include <string.h>

#include "trace/keep.h"

/* Where the walk over both streams stands. */
struct aligner {
    struct gcmp_trace_run *run;
    const char *layout;
    struct gcmp_stream a, b;
    bool damaged_a, damaged_b;
    struct gcmp_rank_result *out;
    uint64_t index;
    /* What was seen before the first difference. */
    struct gcmp_counter inputs; /* boundaries whose input was recorded in this iteration */
    int64_t iteration, microbatch;
    bool computed_in_iteration, computed_in_microbatch;
    /* Behind a structural difference: how often each name came on a minus on b, and whether the
     * events that stood there come later on the other side. */
    struct gcmp_counter balance;
    size_t unbalanced;
    struct gcmp_identity wanted_a, wanted_b;
    bool found_a_in_b, found_b_in_a;
};

static bool is_same_identity(struct gcmp_identity a, struct gcmp_identity b) {
    return a.low == b.low && a.high == b.high;
}

/* ---- values */

static bool same_slots(const struct gcmp_jv_text *a, const uint32_t *slots_a,
                       const struct gcmp_jv_text *b, const uint32_t *slots_b) {
    for (int i = 0; i < GCMP_EVENT_SLOTS; i++) {
        if (!gcmp_jv_equal(a, slots_a[i], b, slots_b[i])) {
            return false;
        }
    }
    return true;
}

bool gcmp_same_inputs(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                      const struct gcmp_reader *b, const struct gcmp_event *event_b) {
    return same_slots(&a->text, event_a->in, &b->text, event_b->in);
}

bool gcmp_same_outputs(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                       const struct gcmp_reader *b, const struct gcmp_event *event_b) {
    return same_slots(&a->text, event_a->out, &b->text, event_b->out);
}

static bool is_known(const struct gcmp_trace_layout *layout, const char *key) {
    for (size_t i = 0; layout->known[i] != NULL; i++) {
        if (strcmp(layout->known[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* Compare the members that are arguments, those of `a` with those of `b`. *differing: the first
 * that is not the same. */
static bool covers_arguments(const struct gcmp_reader *a, uint32_t object_a,
                             const struct gcmp_reader *b, uint32_t object_b,
                             const char **differing) {
    const struct gcmp_jv *object = &a->text.values[object_a];
    struct gcmp_map keys = GCMP_MAP_INIT;
    uint32_t at = gcmp_jv_first(object_a), guess = gcmp_jv_first(object_b);
    bool covers = true;
    for (uint32_t i = 0; i < object->count && covers; i++) {
        const struct gcmp_jv *key = &a->text.values[at];
        uint32_t found = gcmp_jv_find(&b->text, object_b, key, guess, &keys);
        if (!is_known(a->layout, key->of.text) &&
            !gcmp_jv_equal(&a->text, at + 1, &b->text, found)) {
            *differing = key->of.text;
            covers = false;
        }
        at = gcmp_jv_next(&a->text, at + 1);
        guess = found == GCMP_JV_ABSENT ? guess : gcmp_jv_next(&b->text, found);
    }
    gcmp_map_free(&keys);
    return covers;
}

static bool same_arguments(const struct aligner *al, const char **differing) {
    const struct gcmp_event *a = &al->a.event;
    const struct gcmp_event *b = &al->b.event;
    return !a->has_arguments ||
           (covers_arguments(&al->a.reader, a->arguments, &al->b.reader, b->arguments, differing) &&
            covers_arguments(&al->b.reader, b->arguments, &al->a.reader, a->arguments, differing));
}

static const char *describe_slots(const struct aligner *al, const uint32_t *slots_a,
                                  const uint32_t *slots_b, const char *const *names) {
    const struct gcmp_jv_text *a = &al->a.reader.text;
    const struct gcmp_jv_text *b = &al->b.reader.text;
    for (int i = 0; i < GCMP_EVENT_SLOTS; i++) {
        if (!gcmp_jv_equal(a, slots_a[i], b, slots_b[i])) {
            struct gcmp_jv_difference difference;
            gcmp_jv_differ(a, slots_a[i], b, slots_b[i], &difference);
            return gcmp_arena_format(al->run->arena, "%s%s: %s != %s", names[i], difference.path,
                                     difference.a, difference.b);
        }
    }
    return NULL;
}

static const char *describe(const struct aligner *al, const struct gcmp_value_difference *value,
                            const char *argument) {
    const struct gcmp_event *a = &al->a.event;
    const struct gcmp_event *b = &al->b.event;
    const struct gcmp_trace_layout *layout = al->a.files->layout;
    const char *text = NULL;
    if (value->inputs_match == GCMP_NO) {
        text = describe_slots(al, a->in, b->in, layout->in_names);
    } else if (value->arguments_match == GCMP_NO) {
        text = gcmp_arena_format(al->run->arena, "argument %.60s", argument);
    } else {
        text = describe_slots(al, a->out, b->out, layout->out_names);
    }
    return text == NULL ? "" : text;
}

/* The key under which the input of a boundary is remembered for its output. */
static uint64_t boundary_key(const struct gcmp_event *event) {
    struct gcmp_identity key = {1, 2};
    gcmp_identity_text(&key, event->module);
    gcmp_identity_text(&key, event->phase);
    gcmp_identity_number(&key, event->microbatch);
    return key.low;
}

/* Whether inputs match, for a record of one direction: all before it was equal, so the input was if
 * it is there. */
static enum gcmp_maybe boundary_inputs(const struct aligner *al) {
    const struct gcmp_event *event = &al->a.event;
    if (event->kind == GCMP_EVENT_OUTPUT &&
        gcmp_counter_find(&al->inputs, boundary_key(event)) != NULL) {
        return GCMP_YES;
    }
    return GCMP_UNKNOWN;
}

static bool is_early_phase(const char *phase) {
    return phase == NULL || (strcmp(phase, "backward") != 0 && strstr(phase, "grad") == NULL &&
                             strstr(phase, "optim") == NULL);
}

/* Keep what is known of the first differing pair. */
static enum gradcmp_status keep_value(struct aligner *al, bool inputs, bool outputs,
                                      const char *argument, struct gradcmp_error *error) {
    const struct gcmp_event *a = &al->a.event;
    struct gcmp_value_difference *value = &al->out->value;
    al->out->has_value = true;
    al->out->equal_prefix = al->index;
    value->index = al->index;
    value->arguments_match = argument == NULL ? GCMP_YES : GCMP_NO;
    value->outputs_match = outputs ? GCMP_YES : GCMP_NO;
    value->inputs = a->inputs;
    if (a->kind == GCMP_EVENT_CALL) {
        value->inputs_match = !inputs                                              ? GCMP_NO
                              : a->inputs == GCMP_INPUTS_UNKNOWN || a->has_skipped ? GCMP_UNKNOWN
                                                                                   : GCMP_YES;
    } else {
        value->inputs_match = boundary_inputs(al);
    }
    bool computed = a->microbatch < 0 ? al->computed_in_iteration : al->computed_in_microbatch;
    value->at_start = !computed && is_early_phase(a->phase);
    value->same_group =
        gcmp_jv_equal(&al->a.reader.text, a->group, &al->b.reader.text, al->b.event.group);
    value->where = describe(al, value, argument);
    return gcmp_keep_pair(&al->a, &al->b, &value->event, error);
}

static enum gradcmp_status compare_values(struct aligner *al, struct gradcmp_error *error) {
    const struct gcmp_event *a = &al->a.event;
    const struct gcmp_event *b = &al->b.event;
    const char *argument = NULL;
    bool inputs = gcmp_same_inputs(&al->a.reader, a, &al->b.reader, b);
    bool outputs = gcmp_same_outputs(&al->a.reader, a, &al->b.reader, b);
    bool arguments = same_arguments(al, &argument);
    bool has_slots = a->in[0] != GCMP_JV_ABSENT || a->out[0] != GCMP_JV_ABSENT;
    if (!arguments && !has_slots) { /* gradients of parameters: what came out is all that is */
        outputs = false;
        argument = NULL;
        arguments = true;
    }
    if (inputs && outputs && arguments) {
        return GRADCMP_OK;
    }
    return keep_value(al, inputs, outputs, arguments ? NULL : argument, error);
}

/* Remember what an equal pair tells about what comes behind it. */
static enum gradcmp_status note_pair(struct aligner *al, struct gradcmp_error *error) {
    const struct gcmp_event *event = &al->a.event;
    if (event->iteration != al->iteration) {
        al->iteration = event->iteration;
        al->microbatch = -1;
        al->computed_in_iteration = al->computed_in_microbatch = false;
        gcmp_counter_clear(&al->inputs);
    }
    if (event->microbatch > al->microbatch) {
        al->microbatch = event->microbatch;
        al->computed_in_microbatch = false;
    }
    if (event->kind == GCMP_EVENT_OUTPUT || event->kind == GCMP_EVENT_CALL) {
        al->computed_in_iteration = al->computed_in_microbatch = true;
    }
    if (event->kind == GCMP_EVENT_INPUT) {
        int64_t *seen = gcmp_counter_at(&al->inputs, boundary_key(event));
        if (seen == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        *seen = 1;
    }
    return GRADCMP_OK;
}

/* A step that begins with the pair at hand has computed nothing yet. */
static void enter_step(struct aligner *al) {
    const struct gcmp_event *event = &al->a.event;
    if (event->iteration != al->iteration) {
        al->computed_in_iteration = al->computed_in_microbatch = false;
    } else if (event->microbatch > al->microbatch) {
        al->computed_in_microbatch = false;
    }
}

/* ---- structure */

static enum gradcmp_status count_name(struct aligner *al, uint64_t key, int64_t by,
                                      struct gradcmp_error *error) {
    int64_t *balance = gcmp_counter_at(&al->balance, key);
    if (balance == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    al->unbalanced -= *balance != 0;
    *balance += by;
    al->unbalanced += *balance != 0;
    if (al->unbalanced == 0 && al->balance.count > (1U << 16)) {
        gcmp_counter_clear(&al->balance);
    }
    return GRADCMP_OK;
}

/* Behind a structural difference only names are counted. */
static enum gradcmp_status note_rest(struct aligner *al, bool has_a, bool has_b,
                                     struct gradcmp_error *error) {
    if (has_a) {
        GCMP_TRY(count_name(al, al->a.event.name_key, 1, error));
        al->found_b_in_a |= is_same_identity(al->a.event.identity, al->wanted_b);
    }
    if (has_b) {
        GCMP_TRY(count_name(al, al->b.event.name_key, -1, error));
        al->found_a_in_b |= is_same_identity(al->b.event.identity, al->wanted_a);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status keep_structural(struct aligner *al, bool has_a, bool has_b,
                                           struct gradcmp_error *error) {
    struct gcmp_structural *structural = &al->out->structural;
    al->out->has_structural = true;
    if (!al->out->has_value) {
        al->out->equal_prefix = al->index;
    }
    structural->index = al->index;
    structural->has_a = has_a;
    structural->has_b = has_b;
    structural->ended = !has_a ? 'a' : !has_b ? 'b' : '\0';
    if (has_a) {
        al->wanted_a = al->a.event.identity;
        GCMP_TRY(gcmp_keep_one(&al->a, &structural->a, error));
    }
    if (has_b) {
        al->wanted_b = al->b.event.identity;
        GCMP_TRY(gcmp_keep_one(&al->b, &structural->b, error));
    }
    return note_rest(al, has_a, has_b, error);
}

/* At the end of both streams: what kind of structural difference it was. */
static void conclude_structure(struct aligner *al) {
    struct gcmp_structural *structural = &al->out->structural;
    if (structural->ended != '\0') {
        structural->kind = "stream_end";
        structural->missing_from = structural->ended;
        return;
    }
    if (!al->a.files->layout->has_memberships) {
        structural->is_order = al->unbalanced == 0;
        structural->kind = structural->is_order ? "order" : "extra_or_missing";
        return;
    }
    structural->is_order = al->found_a_in_b && al->found_b_in_a;
    structural->kind = structural->is_order                   ? "event_order_mismatch"
                       : al->found_a_in_b || al->found_b_in_a ? "missing_event"
                                                              : "event_mismatch";
    if (al->found_a_in_b != al->found_b_in_a) {
        structural->missing_from = al->found_a_in_b ? 'a' : 'b';
    }
}

/* ---- the walk */

/* Keep a trouble of one side, after which that side is not read any further. */
static enum gradcmp_status settle(struct aligner *al, char side, enum gradcmp_status status,
                                  struct gradcmp_error *trouble, struct gradcmp_error *error) {
    if (status == GRADCMP_OK) {
        return GRADCMP_OK;
    }
    if (!gcmp_is_trouble(status)) {
        if (error != NULL) {
            *error = *trouble;
        }
        return status;
    }
    *(side == 'a' ? &al->damaged_a : &al->damaged_b) = true;
    al->out->is_damaged = true;
    return gcmp_trouble_add(al->run, al->layout, side, al->out->rank, trouble, error);
}

static enum gradcmp_status fetch(struct aligner *al, char side, bool *has,
                                 struct gradcmp_error *error) {
    struct gcmp_stream *stream = side == 'a' ? &al->a : &al->b;
    bool *damaged = side == 'a' ? &al->damaged_a : &al->damaged_b;
    struct gradcmp_error trouble = {0};
    *has = false;
    if (*damaged || stream->is_done) {
        return GRADCMP_OK;
    }
    GCMP_TRY(settle(al, side, gcmp_stream_fetch(stream, &trouble), &trouble, error));
    *has = !*damaged && !stream->is_done;
    return GRADCMP_OK;
}

static bool is_same_bytes(const struct aligner *al) {
    const struct gcmp_frame *a = &al->a.frame;
    const struct gcmp_frame *b = &al->b.frame;
    if (al->a.files->layout->is_stateful || a->length_bytes != b->length_bytes ||
        (a->key == NULL) != (b->key == NULL)) {
        return false;
    }
    return memcmp(a->bytes, b->bytes, a->length_bytes) == 0 &&
           (a->key == NULL || strcmp(a->key, b->key) == 0) &&
           al->a.reader.iteration == al->b.reader.iteration &&
           al->a.reader.position == al->b.reader.position;
}

/* Make events of what was fetched; *same: both records have the same bytes. */
static enum gradcmp_status parse(struct aligner *al, bool *has_a, bool *has_b, bool *same,
                                 struct gradcmp_error *error) {
    struct gradcmp_error trouble = {0};
    *same = *has_a && *has_b && is_same_bytes(al);
    if (*has_a) {
        GCMP_TRY(settle(al, 'a', gcmp_stream_parse(&al->a, &trouble), &trouble, error));
        *has_a = !al->damaged_a;
        *same = *same && *has_a;
    }
    if (*has_b) {
        memset(&trouble, 0, sizeof trouble);
        enum gradcmp_status status = *same ? gcmp_stream_adopt(&al->b, &al->a, &trouble)
                                           : gcmp_stream_parse(&al->b, &trouble);
        GCMP_TRY(settle(al, 'b', status, &trouble, error));
        *has_b = !al->damaged_b;
    }
    return GRADCMP_OK;
}

/* Tell why the pair at hand is no ground for a comparison; NULL where it is one. Records of the
 * same bytes may still have been recorded in other ways. */
static const char *find_obstacle(struct aligner *al, bool same) {
    const struct gcmp_reader *a = &al->a.reader;
    const struct gcmp_reader *b = &al->b.reader;
    if (a->mode[0] != '\0' && b->mode[0] != '\0' && strcmp(a->mode, b->mode) != 0) {
        return gcmp_arena_format(al->run->arena,
                                 "fingerprints of two kinds: \"%s\" here, \"%s\" on the other side",
                                 b->mode, a->mode);
    }
    if (a->selection[0] != '\0' && b->selection[0] != '\0' &&
        strcmp(a->selection, b->selection) != 0) {
        return gcmp_arena_format(al->run->arena,
                                 "recorded at other points: %s here, %s on the other side",
                                 b->selection, a->selection);
    }
    return same || a->layout->obstacle == NULL
               ? NULL
               : a->layout->obstacle(a, &al->a.event, b, &al->b.event);
}

static enum gradcmp_status refuse(struct aligner *al, const char *obstacle,
                                  struct gradcmp_error *error) {
    struct gradcmp_error trouble = {0};
    (void)gcmp_record_fill(&trouble, GRADCMP_ERROR_CORRUPT, al->b.frame.line, "%s", obstacle);
    gcmp_error_add_path(&trouble, gcmp_stream_path(&al->b));
    al->damaged_a = true;
    return settle(al, 'b', GRADCMP_ERROR_CORRUPT, &trouble, error);
}

static enum gradcmp_status compare_pair(struct aligner *al, bool same,
                                        struct gradcmp_error *error) {
    if (!is_same_identity(al->a.event.identity, al->b.event.identity)) {
        return keep_structural(al, true, true, error);
    }
    const char *obstacle = find_obstacle(al, same);
    if (obstacle != NULL) {
        return refuse(al, obstacle, error);
    }
    if (!al->out->has_value) {
        enter_step(al);
        GCMP_TRY(same ? GRADCMP_OK : compare_values(al, error));
        GCMP_TRY(note_pair(al, error));
    }
    return gcmp_note_coordinate(&al->a, al->out, error);
}

static enum gradcmp_status step(struct aligner *al, bool *more, struct gradcmp_error *error) {
    bool has_a;
    bool has_b;
    bool same;
    GCMP_TRY(fetch(al, 'a', &has_a, error));
    GCMP_TRY(fetch(al, 'b', &has_b, error));
    *more = has_a || has_b;
    GCMP_TRY(parse(al, &has_a, &has_b, &same, error));
    if (al->out->has_structural) {
        return note_rest(al, has_a, has_b, error);
    }
    if (al->damaged_a || al->damaged_b || !*more) {
        return GRADCMP_OK; /* the rest of the other side is only read to be checked */
    }
    enum gradcmp_status status =
        has_a && has_b ? compare_pair(al, same, error) : keep_structural(al, has_a, has_b, error);
    al->index += !al->damaged_a; /* a pair that was refused is not known to be equal */
    return status;
}

static enum gradcmp_status walk(struct aligner *al, struct gradcmp_error *error) {
    struct gcmp_rank_result *out = al->out;
    bool more = true;
    while (more) {
        GCMP_TRY(step(al, &more, error));
        if (!out->has_value && !out->has_structural) {
            out->equal_prefix = al->index;
        }
    }
    if (out->has_structural) {
        conclude_structure(al);
    }
    const struct gcmp_reader *reader =
        al->a.reader.strength != GCMP_STRENGTH_NONE ? &al->a.reader : &al->b.reader;
    out->records_a = al->a.records;
    out->records_b = al->b.records;
    out->strength = reader->strength;
    memcpy(out->mode, reader->mode, sizeof out->mode);
    out->saw_skipped = al->a.reader.saw_skipped || al->b.reader.saw_skipped;
    out->saw_inputs = al->a.reader.saw_inputs || al->b.reader.saw_inputs;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_align_rank(struct gcmp_trace_run *run, const struct gcmp_trace_files *a,
                                    const struct gcmp_trace_files *b, const char *layout,
                                    int64_t rank, struct gcmp_rank_result *out,
                                    struct gradcmp_error *error) {
    struct aligner *al = calloc(1, sizeof *al);
    if (al == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    al->run = run;
    al->layout = layout;
    al->out = out;
    al->iteration = al->microbatch = -2;
    out->rank = rank;
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_stream_start(&al->a, run, a, rank, error));
    GCMP_TRY_OUT(gcmp_stream_start(&al->b, run, b, rank, error));
    status = walk(al, error);
out:
    gcmp_stream_end(&al->a);
    gcmp_stream_end(&al->b);
    gcmp_counter_free(&al->inputs);
    gcmp_counter_free(&al->balance);
    free(al);
    return status;
}

enum gradcmp_status gcmp_read_rank(struct gcmp_trace_run *run, const struct gcmp_trace_files *files,
                                   char side, const char *layout, struct gcmp_rank_result *out,
                                   struct gradcmp_error *error) {
    struct gradcmp_error trouble = {0};
    struct gcmp_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_stream_start(stream, run, files, out->rank, &trouble);
    while (status == GRADCMP_OK && !stream->is_done) {
        status = gcmp_stream_fetch(stream, &trouble);
        if (status == GRADCMP_OK && !stream->is_done) {
            status = gcmp_stream_parse(stream, &trouble);
        }
    }
    *(side == 'a' ? &out->records_a : &out->records_b) = stream->records;
    gcmp_stream_end(stream);
    free(stream);
    if (gcmp_is_trouble(status)) {
        out->is_damaged = true;
        return gcmp_trouble_add(run, layout, side, out->rank, &trouble, error);
    }
    if (status != GRADCMP_OK && error != NULL) {
        *error = trouble;
    }
    return status;
}
