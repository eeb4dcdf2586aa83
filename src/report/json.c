/* The streaming JSON writer. */
#include "report/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/printable.h"

static void add_escaped(struct gcmp_text *text, unsigned code) {
    switch (code) {
    case '"':
        gcmp_text_add(text, "\\\"");
        break;
    case '\\':
        gcmp_text_add(text, "\\\\");
        break;
    case '\n':
        gcmp_text_add(text, "\\n");
        break;
    case '\t':
        gcmp_text_add(text, "\\t");
        break;
    default:
        if (code > 0xFFFF) { /* a pair of surrogates: RFC 8259, section 7 */
            gcmp_text_addf(text, "\\u%04x", 0xD800 + ((code - 0x10000) >> 10));
            code = 0xDC00 + (code & 0x3FF);
        }
        gcmp_text_addf(text, "\\u%04x", code);
    }
}

/* Bytes that stand for themselves are added in runs. What a terminal would not only show is
 * escaped, and is the same value. */
static void add_string(struct gcmp_text *text, const char *string) {
    size_t left = strlen(string), run = 0;
    gcmp_text_add(text, "\"");
    while (run < left) {
        unsigned code = 0;
        size_t length = gcmp_utf8_decode(string + run, left - run, &code);
        if (length > 0 && gcmp_utf8_is_harmless(code) && code != '"' && code != '\\') {
            run += length;
            continue;
        }
        gcmp_text_add_bytes(text, string, run);
        if (length == 0) {
            gcmp_text_addf(text, "\\\\x%02x", (unsigned char)string[run]);
            length = 1;
        } else {
            add_escaped(text, code);
        }
        string += run + length;
        left -= run + length;
        run = 0;
    }
    gcmp_text_add_bytes(text, string, run);
    gcmp_text_add(text, "\"");
}

static void start_line(struct gcmp_emitter *json) {
    gcmp_text_add(&json->out->text, "\n");
    for (unsigned i = 0; i < json->depth; i++) {
        gcmp_text_add(&json->out->text, "  ");
    }
}

/* Write what stands before a value: comma, line, key. */
static void start_value(struct gcmp_emitter *json, const char *key) {
    struct gcmp_text *text = &json->out->text;
    gcmp_out_drain(json->out);
    if (json->depth > 0) {
        bool is_block = json->levels[json->depth].is_block;
        if (json->levels[json->depth].has_items) {
            gcmp_text_add(text, is_block ? "," : ", ");
        }
        if (is_block) {
            start_line(json);
        }
        json->levels[json->depth].has_items = true;
    }
    if (key != NULL) {
        add_string(text, key);
        gcmp_text_add(text, ": ");
    }
}

static void open_container(struct gcmp_emitter *json, const char *key, bool is_block,
                           const char brackets[2]) {
    start_value(json, key);
    assert(json->depth + 1 < GCMP_JSON_MAX_DEPTH);
    bool parent_is_block = json->depth == 0 || json->levels[json->depth].is_block;
    json->depth++;
    json->levels[json->depth].is_block = is_block && parent_is_block;
    json->levels[json->depth].has_items = false;
    json->levels[json->depth].closing = brackets[1];
    gcmp_text_add_bytes(&json->out->text, brackets, 1);
}

void gcmp_emit_open_object(struct gcmp_emitter *json, const char *key, bool is_block) {
    open_container(json, key, is_block, "{}");
}

void gcmp_emit_open_array(struct gcmp_emitter *json, const char *key, bool is_block) {
    open_container(json, key, is_block, "[]");
}

void gcmp_emit_close(struct gcmp_emitter *json) {
    assert(json->depth > 0);
    unsigned level = json->depth--;
    if (json->levels[level].is_block && json->levels[level].has_items) {
        start_line(json);
    }
    gcmp_text_add_bytes(&json->out->text, &json->levels[level].closing, 1);
    if (json->depth == 0) {
        gcmp_text_add(&json->out->text, "\n");
    }
}

void gcmp_emit_text(struct gcmp_emitter *json, const char *key, const char *value) {
    if (value == NULL) {
        gcmp_emit_null(json, key);
        return;
    }
    start_value(json, key);
    add_string(&json->out->text, value);
}

void gcmp_emit_real(struct gcmp_emitter *json, const char *key, double value) {
    start_value(json, key);
    if (isnan(value)) {
        gcmp_text_add(&json->out->text, "\"nan\"");
    } else if (isinf(value)) {
        gcmp_text_add(&json->out->text, value > 0.0 ? "\"inf\"" : "\"-inf\"");
    } else {
        gcmp_text_addf(&json->out->text, "%.17g", value);
    }
}

void gcmp_emit_figure(struct gcmp_emitter *json, const char *key, double value) {
    if (isnan(value)) {
        gcmp_emit_null(json, key);
    } else {
        gcmp_emit_real(json, key, value);
    }
}

void gcmp_emit_integer(struct gcmp_emitter *json, const char *key, int64_t value) {
    start_value(json, key);
    gcmp_text_addf(&json->out->text, "%" PRId64, value);
}

void gcmp_emit_count(struct gcmp_emitter *json, const char *key, uint64_t value) {
    start_value(json, key);
    gcmp_text_addf(&json->out->text, "%" PRIu64, value);
}

void gcmp_emit_known(struct gcmp_emitter *json, const char *key, uint64_t value) {
    if (value == 0) {
        gcmp_emit_null(json, key);
    } else {
        gcmp_emit_count(json, key, value);
    }
}

void gcmp_emit_bool(struct gcmp_emitter *json, const char *key, bool value) {
    start_value(json, key);
    gcmp_text_add(&json->out->text, value ? "true" : "false");
}

void gcmp_emit_null(struct gcmp_emitter *json, const char *key) {
    start_value(json, key);
    gcmp_text_add(&json->out->text, "null");
}

void gcmp_emit_sizes(struct gcmp_emitter *json, const char *key, const uint64_t *sizes,
                     size_t count) {
    gcmp_emit_open_array(json, key, false);
    for (size_t i = 0; i < count; i++) {
        gcmp_emit_count(json, NULL, sizes[i]);
    }
    gcmp_emit_close(json);
}
