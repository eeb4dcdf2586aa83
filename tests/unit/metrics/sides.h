/* Metric sources made by tests: event records, and both sides through the public call. */
#ifndef TEST_METRICS_SIDES_H
#define TEST_METRICS_SIDES_H

#include "../temp_tools.h"

#include <jansson.h>

#include "gradcmp/sys/evidence.h"
#include "metrics/crc32c.h"
#include "metrics/source.h"

/* A file of records under construction. */
struct records {
    unsigned char bytes[8192];
    size_t length_bytes;
};

static inline void put_le(struct records *file, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        file->bytes[file->length_bytes++] = (unsigned char)(value >> (8 * i));
    }
}

static inline void put_record(struct records *file, const void *data, size_t length_bytes) {
    size_t start = file->length_bytes;
    put_le(file, length_bytes, 8);
    put_le(file, gcmp_crc32c_masked(file->bytes + start, 8), 4);
    memcpy(file->bytes + file->length_bytes, data, length_bytes);
    file->length_bytes += length_bytes;
    put_le(file, gcmp_crc32c_masked(data, length_bytes), 4);
}

static inline void put_version(struct records *file) {
    static const char event[] = "\x1a\x0d"
                                "brain.Event:2";
    put_record(file, event, sizeof event - 1);
}

/* An event of one value: `value` is a Summary.Value behind its tag; everything stays short. */
static inline void put_event(struct records *file, unsigned char step, const char *tag,
                             const void *value, size_t value_bytes) {
    unsigned char event[300];
    size_t tag_bytes = strlen(tag), inner = 2 + tag_bytes + value_bytes, at = 0;
    assert_true(inner + 2 < 128);
    event[at++] = 0x10;
    event[at++] = step;
    event[at++] = 0x2a;
    event[at++] = (unsigned char)(inner + 2);
    event[at++] = 0x0a;
    event[at++] = (unsigned char)inner;
    event[at++] = 0x0a;
    event[at++] = (unsigned char)tag_bytes;
    memcpy(event + at, tag, tag_bytes);
    memcpy(event + at + tag_bytes, value, value_bytes);
    put_record(file, event, at + tag_bytes + value_bytes);
}

static inline void put_simple(struct records *file, unsigned char step, const char *tag,
                              float value) {
    unsigned char bytes[5] = {0x15};
    memcpy(bytes + 1, &value, 4);
    put_event(file, step, tag, bytes, sizeof bytes);
}

/* Call gradcmp_metrics on two names below `temp`, which may be one. */
static inline struct gradcmp_evidence *compare_with(const char *temp, const char *a, const char *b,
                                                    const struct gradcmp_metrics_options *options) {
    struct gradcmp_evidence *evidence = NULL;
    struct gradcmp_metrics_options own = GRADCMP_METRICS_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    char *path_a = temp_path(temp, a), *path_b = temp_path(temp, b);
    own = options == NULL ? own : *options;
    if (gradcmp_metrics(path_a, path_b, &own, &evidence, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
    free(path_a);
    free(path_b);
    return evidence;
}

struct json_text {
    char *bytes;
    size_t length_bytes;
};

static inline int gather_json(void *user, const char *bytes, size_t length_bytes) {
    struct json_text *text = user;
    text->bytes = realloc(text->bytes, text->length_bytes + length_bytes);
    memcpy(text->bytes + text->length_bytes, bytes, length_bytes);
    text->length_bytes += length_bytes;
    return 0;
}

/* The JSON report as a document; frees the evidence. */
static inline json_t *document_of(struct gradcmp_evidence *evidence) {
    struct json_text text = {0};
    assert_int_equal(gradcmp_evidence_write_json(evidence, gather_json, &text, NULL), GRADCMP_OK);
    json_t *document = json_loadb(text.bytes, text.length_bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(document);
    free(text.bytes);
    gradcmp_evidence_free(evidence);
    return document;
}

static inline json_t *compare(const char *temp, const char *a, const char *b) {
    return document_of(compare_with(temp, a, b, NULL));
}

static inline const char *text_of(const json_t *document, const char *key) {
    const char *text = json_string_value(json_object_get(document, key));
    return text == NULL ? "(null)" : text;
}

/* A metric of the report by name. */
static inline json_t *metric_of(const json_t *document, const char *name) {
    json_t *metrics = json_object_get(document, "metrics"), *metric;
    size_t i;
    json_array_foreach(metrics, i, metric) {
        if (strcmp(text_of(metric, "name"), name) == 0) {
            return metric;
        }
    }
    fail_msg("no metric %s", name);
    return NULL;
}

static inline int64_t count_of(const json_t *metric, const char *key) {
    const json_t *value = json_object_get(metric, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static inline void text_file(const char *temp, const char *name, const char *text) {
    temp_file(temp, name, text, strlen(text));
}

#endif
