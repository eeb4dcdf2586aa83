/* Boundary records of Megatron-LM's tracer (pull request 6610, schema 1): `rank_RRRRRR.jsonl`, one
 * file a rank, one record a line. What goes into a module and what comes out are two records. */
#include <string.h>

#include "base/checked.h"
#include "trace/layout.h"

enum { SCHEMA = 1, MAX_NAME_BYTES = 512, SHA256_DIGITS = 64 };

static bool is_one(const char *bytes, size_t length) {
    return gcmp_sniff_key(bytes, length, "event") || gcmp_sniff_key(bytes, length, "occurrence") ||
           gcmp_sniff_key(bytes, length, "sequence");
}

static bool place(const char *name, struct gcmp_place *out) {
    out->iteration = -1;
    return gcmp_take_word(&name, "rank_") && gcmp_take_digits(&name, &out->rank) &&
           strcmp(name, ".jsonl") == 0;
}

static const char *container(const char *name) {
    (void)name;
    return NULL;
}

#define FAIL(...) GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame, __VA_ARGS__)

/* ---- the tensor */

static const struct mode {
    const char *name;
    enum gcmp_strength strength;
    bool has_digest;
} modes[] = {{"metadata", GCMP_STRENGTH_METADATA, false},
             {"summary", GCMP_STRENGTH_STATISTICS, false},
             {"sampled", GCMP_STRENGTH_SAMPLED, true},
             {"full", GCMP_STRENGTH_FULL, true}};

static const struct mode *find_mode(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            return &modes[i];
        }
    }
    return NULL;
}

static bool has_flag(const struct gcmp_jv_text *text, uint32_t tensor, const char *key,
                     bool wanted) {
    return gcmp_jv_is(text, gcmp_jv_get(text, tensor, key), wanted ? GCMP_JV_TRUE : GCMP_JV_FALSE);
}

static enum gradcmp_status check_shape(const struct gcmp_jv_text *text, uint32_t tensor,
                                       const struct gcmp_frame *frame, int64_t *numel,
                                       struct gradcmp_error *error) {
    uint32_t shape = gcmp_jv_get(text, tensor, "shape");
    uint32_t stride = gcmp_jv_get(text, tensor, "stride");
    if (!gcmp_jv_is(text, shape, GCMP_JV_ARRAY) ||
        !gcmp_jv_count(text, gcmp_jv_get(text, tensor, "numel"), numel)) {
        FAIL("a tensor without shape or numel");
    }
    uint64_t product = 1;
    bool zero = false;
    uint32_t at = gcmp_jv_first(shape);
    for (uint32_t i = 0; i < text->values[shape].count; i++, at = gcmp_jv_next(text, at)) {
        int64_t extent;
        if (!gcmp_jv_count(text, at, &extent)) {
            FAIL("a shape that holds something else than whole numbers");
        }
        zero |= extent == 0;
        if (extent != 0 && !gcmp_mul_u64(product, (uint64_t)extent, &product)) {
            FAIL("a shape of more than 2^64 elements");
        }
    }
    if ((zero ? 0 : product) != (uint64_t)*numel) {
        FAIL("numel %lld, but the shape has %llu elements", (long long)*numel,
             (unsigned long long)(zero ? 0 : product));
    }
    const char *layout = gcmp_jv_string(text, gcmp_jv_get(text, tensor, "layout"));
    if (layout != NULL && strcmp(layout, "strided") == 0 &&
        (!gcmp_jv_is(text, stride, GCMP_JV_ARRAY) ||
         text->values[stride].count != text->values[shape].count)) {
        FAIL("a stride that does not belong to the shape");
    }
    return GRADCMP_OK;
}

static bool is_sha256(const char *digest) {
    return digest != NULL && strlen(digest) == SHA256_DIGITS &&
           strspn(digest, "0123456789abcdef") == SHA256_DIGITS;
}

static enum gradcmp_status check_digest(const struct gcmp_jv_text *text, uint32_t tensor,
                                        const struct gcmp_frame *frame, int64_t numel,
                                        struct gradcmp_error *error) {
    uint32_t indices = gcmp_jv_get(text, tensor, "sample_indices");
    int64_t captured;
    if (!is_sha256(gcmp_jv_string(text, gcmp_jv_get(text, tensor, "sha256")))) {
        FAIL("a sha256 that is not 64 lower-case hexadecimal digits");
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, tensor, "captured_numel"), &captured)) {
        FAIL("a digest without captured_numel");
    }
    if (has_flag(text, tensor, "exact_value_certificate", true)) {
        if (captured != numel) {
            FAIL("mode full, but %lld of %lld elements were captured", (long long)captured,
                 (long long)numel);
        }
    } else if (!gcmp_jv_is(text, indices, GCMP_JV_ARRAY) ||
               text->values[indices].count != (uint64_t)captured) {
        FAIL("sample_indices that do not belong to captured_numel");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_tensor(struct gcmp_reader *reader, uint32_t tensor,
                                        const struct gcmp_frame *frame,
                                        struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    const char *word = gcmp_jv_string(text, gcmp_jv_get(text, tensor, "mode"));
    const struct mode *mode = find_mode(word);
    int64_t numel;
    if (mode == NULL) {
        FAIL("a tensor of mode \"%.40s\", known are metadata, summary, sampled and full",
             word == NULL ? "" : word);
    }
    if (gcmp_jv_string(text, gcmp_jv_get(text, tensor, "dtype")) == NULL) {
        FAIL("a tensor without dtype");
    }
    if (!has_flag(text, tensor, "value_observed", mode->strength != GCMP_STRENGTH_METADATA) ||
        !has_flag(text, tensor, "exact_value_certificate", mode->strength == GCMP_STRENGTH_FULL)) {
        FAIL("flags of a tensor that contradict its mode %s", mode->name);
    }
    GCMP_TRY(check_shape(text, tensor, frame, &numel, error));
    if (mode->has_digest) {
        GCMP_TRY(check_digest(text, tensor, frame, numel, error));
    } else if (mode->strength == GCMP_STRENGTH_STATISTICS &&
               !gcmp_jv_is(text, gcmp_jv_get(text, tensor, "summary"), GCMP_JV_OBJECT)) {
        FAIL("mode summary without a summary");
    }
    return gcmp_reader_mode(reader, frame, mode->name, mode->strength, error);
}

/* ---- the record */

/* Read the envelope: what every record has. */
static enum gradcmp_status read_envelope(const struct gcmp_reader *reader,
                                         const struct gcmp_frame *frame, struct gcmp_event *event,
                                         struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    int64_t schema;
    int64_t rank;
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "schema_version"), &schema) || schema != SCHEMA) {
        FAIL("no record of schema_version 1, the only one that is known");
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "rank"), &rank) || rank != reader->rank) {
        FAIL("the record is not of rank %lld, as the file's name says", (long long)reader->rank);
    }
    event->type = gcmp_jv_string(text, gcmp_jv_get(text, 0, "event"));
    event->name = gcmp_jv_string(text, gcmp_jv_get(text, 0, "name"));
    event->phase = gcmp_jv_string(text, gcmp_jv_get(text, 0, "phase"));
    if (event->type == NULL ||
        (strcmp(event->type, "event") != 0 && strcmp(event->type, "tensor") != 0)) {
        FAIL("\"event\" is neither \"event\" nor \"tensor\"");
    }
    if (event->name == NULL || event->name[0] == '\0' || strlen(event->name) > MAX_NAME_BYTES ||
        event->phase == NULL) {
        FAIL("a record without a name of 1 to 512 bytes, or without a phase");
    }
    for (const char *c = event->name; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            FAIL("a name with a control character");
        }
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "sequence"), &event->sequence) ||
        !gcmp_jv_count(text, gcmp_jv_get(text, 0, "occurrence"), &event->occurrence) ||
        !gcmp_read_step(text, gcmp_jv_get(text, 0, "iteration"), &event->iteration) ||
        !gcmp_read_step(text, gcmp_jv_get(text, 0, "microbatch"), &event->microbatch)) {
        FAIL("sequence, occurrence, iteration or microbatch is no whole number");
    }
    return GRADCMP_OK;
}

/* The length of a name without ".input" or ".output"; 0 where it has neither. */
static size_t stem_length(const char *name, const char *suffix) {
    size_t length = strlen(name);
    size_t tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0 ? length - tail : 0;
}

/* Find out which way a tensor goes, and across which boundary. */
static void read_direction(struct gcmp_reader *reader, struct gcmp_event *event,
                           uint32_t metadata) {
    const struct gcmp_jv_text *text = &reader->text;
    const char *role = gcmp_jv_string(text, gcmp_jv_get(text, metadata, "role"));
    size_t input = stem_length(event->name, ".input");
    size_t output = stem_length(event->name, ".output");
    size_t stem = input + output;
    bool is_input = role != NULL ? strcmp(role, "input") == 0 : input > 0;
    bool is_output = role != NULL ? strcmp(role, "output") == 0 : output > 0;
    event->kind = is_input ? GCMP_EVENT_INPUT : is_output ? GCMP_EVENT_OUTPUT : GCMP_EVENT_MARK;
    event->module = gcmp_jv_string(text, gcmp_jv_get(text, metadata, "module"));
    if (event->module == NULL && stem > 0 && stem < sizeof reader->module) {
        memcpy(reader->module, event->name, stem);
        reader->module[stem] = '\0';
        event->module = reader->module;
    }
    event->group = gcmp_jv_get(text, metadata, "group");
    event->is_collective =
        event->kind == GCMP_EVENT_OUTPUT &&
        (event->group != GCMP_JV_ABSENT || strstr(event->phase, "reduce") != NULL ||
         gcmp_is_collective_name(event->name));
}

/* The identity of a record called `name`. */
static struct gcmp_identity identify(const struct gcmp_reader *reader,
                                     const struct gcmp_event *event, const char *name) {
    struct gcmp_identity identity = {reader->seed, ~reader->seed};
    gcmp_identity_text(&identity, event->type);
    gcmp_identity_text(&identity, name);
    gcmp_identity_text(&identity, event->phase);
    gcmp_identity_number(&identity, event->iteration);
    gcmp_identity_number(&identity, event->microbatch);
    return identity;
}

static void identify_all(struct gcmp_reader *reader, struct gcmp_event *event) {
    size_t stem = stem_length(event->name, ".output");
    event->identity = identify(reader, event, event->name);
    event->repeat_key = event->identity.low;
    event->name_key = event->identity.low;
    gcmp_identity_number(&event->identity, event->occurrence);
    event->giving = event->identity;
    if (event->is_collective && stem > 0) {
        memcpy(reader->name, event->name, stem);
        memcpy(reader->name + stem, ".input", sizeof ".input");
        event->giving = identify(reader, event, reader->name);
        gcmp_identity_number(&event->giving, event->occurrence);
    }
}

static enum gradcmp_status read_record(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gcmp_event *event, bool *skip,
                                       struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    *skip = false;
    GCMP_TRY(read_envelope(reader, frame, event, error));
    uint32_t fields = gcmp_jv_get(text, 0, "fields");
    uint32_t tensor = gcmp_jv_get(text, 0, "tensor");
    uint32_t metadata = gcmp_jv_get(text, 0, "metadata");
    bool is_tensor = strcmp(event->type, "tensor") == 0;
    event->kind = GCMP_EVENT_MARK;
    if (is_tensor ? fields != GCMP_JV_ABSENT || !gcmp_jv_is(text, tensor, GCMP_JV_OBJECT) ||
                        !gcmp_jv_is(text, metadata, GCMP_JV_OBJECT)
                  : !gcmp_jv_is(text, fields, GCMP_JV_OBJECT) || tensor != GCMP_JV_ABSENT ||
                        metadata != GCMP_JV_ABSENT) {
        FAIL("an event has fields alone, a tensor has tensor and metadata alone");
    }
    if (text->values[0].count != (is_tensor ? 11U : 10U)) {
        FAIL("the record lacks a field of schema 1, or has another");
    }
    if (is_tensor) {
        GCMP_TRY(check_tensor(reader, tensor, frame, error));
        read_direction(reader, event, metadata);
    }
    event->out[0] = tensor;
    event->out[1] = metadata;
    event->out[2] = fields;
    identify_all(reader, event);
    return GRADCMP_OK;
}

static const char *obstacle(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                            const struct gcmp_reader *b, const struct gcmp_event *event_b) {
    uint32_t indices_a = gcmp_jv_get(&a->text, event_a->out[0], "sample_indices");
    uint32_t indices_b = gcmp_jv_get(&b->text, event_b->out[0], "sample_indices");
    if (event_a->out[0] == GCMP_JV_ABSENT || event_b->out[0] == GCMP_JV_ABSENT ||
        gcmp_jv_equal(&a->text, indices_a, &b->text, indices_b)) {
        return NULL;
    }
    /* Another size takes other samples by itself; that is a difference of the tensors. */
    bool same_shape = gcmp_jv_equal(&a->text, gcmp_jv_get(&a->text, event_a->out[0], "shape"),
                                    &b->text, gcmp_jv_get(&b->text, event_b->out[0], "shape"));
    return same_shape ? "the two sides sampled other elements" : NULL;
}

const struct gcmp_trace_layout gcmp_layout_boundary = {
    .name = "boundary",
    .naming = "rank_<digits>.jsonl",
    .grain = GCMP_GRAIN_MODULE,
    .has_memberships = true,
    .out_names = {"tensor", "metadata", "fields"},
    .is_one = is_one,
    .place = place,
    .container = container,
    .read = read_record,
    .obstacle = obstacle,
};
