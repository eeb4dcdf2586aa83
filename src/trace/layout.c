/* What the layouts of traces have in common. */
#include "trace/layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

const struct gcmp_trace_layout *const gcmp_trace_layouts[] = {
    &gcmp_layout_boundary, &gcmp_layout_ops, &gcmp_layout_debugmode, &gcmp_layout_msprobe, NULL};

const char *gcmp_strength_name(enum gcmp_strength strength) {
    static const char *const names[] = {[GCMP_STRENGTH_NONE] = "none",
                                        [GCMP_STRENGTH_METADATA] = "metadata",
                                        [GCMP_STRENGTH_STATISTICS] = "statistics",
                                        [GCMP_STRENGTH_SAMPLED] = "sampled",
                                        [GCMP_STRENGTH_XOR] = "xor",
                                        [GCMP_STRENGTH_CHECKSUM] = "checksum",
                                        [GCMP_STRENGTH_FULL] = "full"};
    return names[strength];
}

enum gradcmp_status gcmp_record_fill(struct gradcmp_error *error, enum gradcmp_status code,
                                     uint64_t line, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gcmp_error_fill(error, code, NULL, GRADCMP_NO_OFFSET, "line %llu: %s",
                           (unsigned long long)line, text);
}

void gcmp_identity_text(struct gcmp_identity *identity, const char *text) {
    size_t length = text == NULL ? 0 : strlen(text) + 1; /* with its NUL: "" is not NULL */
    identity->low = XXH3_64bits_withSeed(text == NULL ? "" : text, length, identity->low);
    identity->high = XXH3_64bits_withSeed(text == NULL ? "" : text, length, ~identity->high);
}

void gcmp_identity_number(struct gcmp_identity *identity, int64_t number) {
    identity->low = XXH3_64bits_withSeed(&number, sizeof number, identity->low);
    identity->high = XXH3_64bits_withSeed(&number, sizeof number, ~identity->high);
}

bool gcmp_read_step(const struct gcmp_jv_text *text, uint32_t at, int64_t *out) {
    *out = -1;
    return at == GCMP_JV_ABSENT || gcmp_jv_is(text, at, GCMP_JV_NULL) ||
           gcmp_jv_count(text, at, out);
}

enum gradcmp_status gcmp_reader_mode(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                     const char *mode, enum gcmp_strength strength,
                                     struct gradcmp_error *error) {
    if (reader->mode[0] == '\0') {
        snprintf(reader->mode, sizeof reader->mode, "%s", mode);
        reader->strength = strength;
    } else if (strcmp(reader->mode, mode) != 0) {
        GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame,
                         "a tensor fingerprinted as \"%s\" in a trace of \"%s\"", mode,
                         reader->mode);
    }
    return GRADCMP_OK;
}

/* Step over a string whose opening quote is at bytes[at]; returns the index behind it. */
static size_t skip_string(const char *bytes, size_t length, size_t at) {
    for (at++; at < length && bytes[at] != '"'; at++) {
        at += bytes[at] == '\\';
    }
    return at + 1;
}

bool gcmp_sniff_key(const char *bytes, size_t length, const char *key) {
    size_t depth = 0;
    size_t size = strlen(key);
    for (size_t at = 0; at < length; at++) {
        char c = bytes[at];
        depth += c == '{' || c == '[';
        depth -= depth > 0 && (c == '}' || c == ']');
        if (c == '\n' && depth == 0 && at > 0) {
            return false; /* the first record ends */
        }
        if (c != '"') {
            continue;
        }
        size_t behind = skip_string(bytes, length, at);
        bool is_it = depth == 1 && behind - at == size + 2 && behind <= length &&
                     memcmp(bytes + at + 1, key, size) == 0;
        at = behind - 1;
        while (is_it && behind < length && strchr(" \t\r\n", bytes[behind]) != NULL) {
            behind++;
        }
        if (is_it && behind < length && bytes[behind] == ':') {
            return true;
        }
    }
    return false;
}

bool gcmp_take_digits(const char **text, int64_t *out) {
    const char *start = *text;
    *out = 0;
    for (; **text >= '0' && **text <= '9' && *text - start < 18; (*text)++) {
        *out = *out * 10 + (**text - '0');
    }
    return *text > start && !(**text >= '0' && **text <= '9');
}

bool gcmp_take_word(const char **text, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) {
        return false;
    }
    *text += length;
    return true;
}

bool gcmp_is_collective_name(const char *name) {
    static const char *const words[] = {
        "c10d",      "all_reduce", "allreduce", "reduce_scatter", "all_gather",
        "allgather", "all_to_all", "alltoall",  "wait_tensor",    "broadcast_coalesced"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

bool gcmp_has_skipped(const struct gcmp_jv_text *text, uint32_t at) {
    for (uint32_t i = at; at != GCMP_JV_ABSENT && i < text->values[at].next; i++) {
        const char *word = gcmp_jv_string(text, i);
        if (word != NULL && strcmp(word, "skipped_oversize") == 0) {
            return true;
        }
    }
    return false;
}
