/* Operation streams of Megatron-LM's tracer (pull request 7262, schema 1):
 * `rankRRRRR_iterIIIIII.jsonl`, one file a rank and iteration, one operation a line. Digests are
 * XOR over the elements: blind to permutations, and to pairs of equal elements. */
#include <string.h>

#include "trace/layout.h"

enum { SCHEMA = 1, DIGEST_DIGITS = 16 };

static bool is_one(const char *bytes, size_t length) {
    return gcmp_sniff_key(bytes, length, "seq") &&
           (gcmp_sniff_key(bytes, length, "kind") || gcmp_sniff_key(bytes, length, "payload"));
}

static bool place(const char *name, struct gcmp_place *out) {
    return gcmp_take_word(&name, "rank") && gcmp_take_digits(&name, &out->rank) &&
           gcmp_take_word(&name, "_iter") && gcmp_take_digits(&name, &out->iteration) &&
           strcmp(name, ".jsonl") == 0;
}

static const char *container(const char *name) {
    (void)name;
    return NULL;
}

#define FAIL(...) GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame, __VA_ARGS__)

static bool is_digest(const char *digest) {
    return digest != NULL && ((strlen(digest) == DIGEST_DIGITS &&
                               strspn(digest, "0123456789abcdef") == DIGEST_DIGITS) ||
                              strcmp(digest, "skipped_oversize") == 0);
}

/* Check a list of tensors: each has a digest, a shape and a type. */
static enum gradcmp_status check_tensors(const struct gcmp_jv_text *text, uint32_t list,
                                         const struct gcmp_frame *frame,
                                         struct gradcmp_error *error) {
    if (!gcmp_jv_is(text, list, GCMP_JV_ARRAY)) {
        FAIL("an operation without lists \"in\" and \"out\"");
    }
    uint32_t at = gcmp_jv_first(list);
    for (uint32_t i = 0; i < text->values[list].count; i++, at = gcmp_jv_next(text, at)) {
        if (!is_digest(gcmp_jv_string(text, gcmp_jv_get(text, at, "digest")))) {
            FAIL("a tensor without a digest of 16 lower-case hexadecimal digits");
        }
        if (!gcmp_jv_is(text, gcmp_jv_get(text, at, "shape"), GCMP_JV_ARRAY) ||
            gcmp_jv_string(text, gcmp_jv_get(text, at, "dtype")) == NULL) {
            FAIL("a tensor without shape or dtype");
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_envelope(const struct gcmp_reader *reader,
                                         const struct gcmp_frame *frame, struct gcmp_event *event,
                                         struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    int64_t schema;
    int64_t rank;
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "schema_version"), &schema) || schema != SCHEMA) {
        FAIL("no record of schema_version 1, the only one that is known");
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "rank"), &rank) || rank != reader->rank ||
        !gcmp_jv_count(text, gcmp_jv_get(text, 0, "iteration"), &event->iteration) ||
        event->iteration != reader->iteration) {
        FAIL("the record is not of rank %lld and iteration %lld, as the file's name says",
             (long long)reader->rank, (long long)reader->iteration);
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "seq"), &event->sequence) ||
        event->sequence != reader->position) {
        FAIL("expected seq %lld: records are counted from 0 without gaps",
             (long long)reader->position);
    }
    event->type = gcmp_jv_string(text, gcmp_jv_get(text, 0, "kind"));
    event->name = gcmp_jv_string(text, gcmp_jv_get(text, 0, "name"));
    if (event->type == NULL || event->name == NULL) {
        FAIL("a record without kind or name");
    }
    if (text->values[0].count != 7) {
        FAIL("the record lacks a field of schema 1, or has another");
    }
    return GRADCMP_OK;
}

/* Read the number behind the last colon of "aten:aten.mm.default:3"; *stem is what stands before
 * it. */
static bool read_id(const char *id, int64_t *occurrence, size_t *stem) {
    const char *colon = id == NULL ? NULL : strrchr(id, ':');
    if (colon == NULL) {
        return false;
    }
    *stem = (size_t)(colon - id);
    colon++;
    return gcmp_take_digits(&colon, occurrence) && *colon == '\0' && *occurrence > 0 &&
           *stem < GCMP_ID_BYTES;
}

static void identify(struct gcmp_reader *reader, struct gcmp_event *event, size_t stem) {
    struct gcmp_identity identity = {reader->seed, ~reader->seed};
    gcmp_identity_number(&identity, event->iteration);
    gcmp_identity_text(&identity, event->type);
    gcmp_identity_text(&identity, event->name);
    event->name_key = identity.low;
    memcpy(reader->name, event->id, stem);
    reader->name[stem] = '\0';
    gcmp_identity_text(&identity, reader->name);
    event->repeat_key = identity.low;
    gcmp_identity_number(&identity, event->occurrence);
    event->giving = identity;
    gcmp_identity_number(&identity, event->microbatch);
    gcmp_identity_text(&identity, event->module);
    gcmp_identity_text(&identity, event->phase);
    event->identity = identity;
}

/* True where some tensor of a checked list was hashed. */
static bool has_digest(const struct gcmp_jv_text *text, uint32_t list) {
    uint32_t at = gcmp_jv_first(list);
    for (uint32_t i = 0; i < text->values[list].count; i++) {
        if (!gcmp_has_skipped(text, at)) {
            return true;
        }
        at = gcmp_jv_next(text, at);
    }
    return false;
}

static enum gradcmp_status read_record(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gcmp_event *event, bool *skip,
                                       struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    size_t stem;
    *skip = false;
    GCMP_TRY(read_envelope(reader, frame, event, error));
    uint32_t payload = gcmp_jv_get(text, 0, "payload");
    event->kind = GCMP_EVENT_CALL;
    event->arguments = payload;
    event->has_arguments = true;
    event->id = gcmp_jv_string(text, gcmp_jv_get(text, payload, "id"));
    event->module = gcmp_jv_string(text, gcmp_jv_get(text, payload, "scope"));
    event->phase = gcmp_jv_string(text, gcmp_jv_get(text, payload, "phase"));
    event->group = gcmp_jv_get(text, payload, "group");
    event->in[0] = gcmp_jv_get(text, payload, "in");
    event->out[0] = gcmp_jv_get(text, payload, "out");
    if (payload == GCMP_JV_ABSENT || !read_id(event->id, &event->occurrence, &stem)) {
        FAIL("a record without an id such as \"aten:aten.mm.default:1\"");
    }
    if (!gcmp_read_step(text, gcmp_jv_get(text, payload, "microbatch"), &event->microbatch)) {
        FAIL("a microbatch that is no whole number");
    }
    GCMP_TRY(check_tensors(text, event->in[0], frame, error));
    GCMP_TRY(check_tensors(text, event->out[0], frame, error));
    bool has_inputs = text->values[event->in[0]].count > 0;
    event->inputs = has_inputs ? GCMP_INPUTS_SOME : GCMP_INPUTS_NONE;
    event->has_skipped = gcmp_has_skipped(text, event->in[0]);
    reader->saw_skipped |= event->has_skipped || gcmp_has_skipped(text, event->out[0]);
    event->is_collective =
        strcmp(event->type, "collective") == 0 || gcmp_is_collective_name(event->name);
    identify(reader, event, stem);
    return has_digest(text, event->in[0]) || has_digest(text, event->out[0])
               ? gcmp_reader_mode(reader, frame, "hash_tensor", GCMP_STRENGTH_XOR, error)
               : GRADCMP_OK;
}

/* One list has a digest where the other's tensor was too large to be hashed. */
static bool is_skipped_once(const struct gcmp_jv_text *a, uint32_t list_a,
                            const struct gcmp_jv_text *b, uint32_t list_b) {
    uint32_t at_a = gcmp_jv_first(list_a);
    uint32_t at_b = gcmp_jv_first(list_b);
    uint32_t count = a->values[list_a].count;
    if (count != b->values[list_b].count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (gcmp_has_skipped(a, at_a) != gcmp_has_skipped(b, at_b)) {
            return true;
        }
        at_a = gcmp_jv_next(a, at_a);
        at_b = gcmp_jv_next(b, at_b);
    }
    return false;
}

static const char *obstacle(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                            const struct gcmp_reader *b, const struct gcmp_event *event_b) {
    return is_skipped_once(&a->text, event_a->in[0], &b->text, event_b->in[0]) ||
                   is_skipped_once(&a->text, event_a->out[0], &b->text, event_b->out[0])
               ? "one side hashed a tensor that was too large for the other"
               : NULL;
}

static const char *const known[] = {"id",    "scope", "phase", "microbatch",
                                    "group", "in",    "out",   NULL};

const struct gcmp_trace_layout gcmp_layout_ops = {
    .name = "ops",
    .naming = "rank<digits>_iter<digits>.jsonl",
    .grain = GCMP_GRAIN_OPERATION,
    .first_occurrence = 1,
    .known = known,
    .in_names = {"in"},
    .out_names = {"out"},
    .is_one = is_one,
    .place = place,
    .container = container,
    .read = read_record,
    .obstacle = obstacle,
};
