/* Records of a file. */
#include "trace/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { READ_BYTES = 256 << 10 };

void gcmp_framer_start(struct gcmp_framer *framer, struct gcmp_dir *dir, uint32_t file,
                       const char *container) {
    memset(framer, 0, sizeof *framer);
    framer->dir = dir;
    framer->file = file;
    framer->container = container;
    framer->line = 1;
}

void gcmp_framer_end(struct gcmp_framer *framer) {
    free(framer->buffer);
    framer->buffer = NULL;
    framer->capacity = framer->begin = framer->end = 0;
}

#define FAIL_AT_LINE(framer, error, code, ...)                                                     \
    GCMP_FAIL_AT((error), (code), gcmp_dir_file_path((framer)->dir, (framer)->file),               \
                 GRADCMP_NO_OFFSET, "line %llu: " __VA_ARGS__)

/* Make room for one more read behind what is held, which moves to the front. */
static enum gradcmp_status make_room(struct gcmp_framer *framer, struct gradcmp_error *error) {
    size_t held = framer->end - framer->begin;
    if (held > GCMP_FRAME_MAX_BYTES) {
        FAIL_AT_LINE(framer, error, GRADCMP_ERROR_LIMIT, "a record of more than %d MiB",
                     (unsigned long long)framer->line, GCMP_FRAME_MAX_BYTES >> 20);
    }
    if (framer->capacity - held < READ_BYTES + 1) {
        size_t capacity = held > READ_BYTES ? 2 * held + READ_BYTES : 3 * READ_BYTES;
        char *moved = malloc(capacity);
        if (moved == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        if (held > 0 && framer->buffer != NULL) {
            memcpy(moved, framer->buffer + framer->begin, held);
        }
        free(framer->buffer);
        framer->buffer = moved;
        framer->capacity = capacity;
    } else if (held > 0 && framer->begin > 0 && framer->buffer != NULL) {
        memmove(framer->buffer, framer->buffer + framer->begin, held);
    }
    framer->begin = 0;
    framer->end = held;
    return GRADCMP_OK;
}

/* Read on; *more is false at the file's end. */
static enum gradcmp_status fill(struct gcmp_framer *framer, bool *more,
                                struct gradcmp_error *error) {
    uint64_t left = gcmp_dir_file_bytes(framer->dir, framer->file) - framer->read_bytes;
    *more = left > 0;
    if (framer->buffer != NULL && left == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(make_room(framer, error));
    size_t count = left < READ_BYTES ? (size_t)left : READ_BYTES;
    GCMP_TRY(gcmp_dir_read(framer->dir, framer->file, framer->read_bytes,
                           framer->buffer + framer->end, count, error));
    if (framer->read_bytes == 0 && framer->buffer != NULL) {
        framer->begin = gcmp_utf8_mark_bytes(framer->buffer, count);
    }
    framer->read_bytes += count;
    framer->end += count;
    return GRADCMP_OK;
}

static bool is_blank(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') {
            return false;
        }
    }
    return true;
}

/* ---- lines */

static enum gradcmp_status next_line(struct gcmp_framer *framer, struct gcmp_frame *frame,
                                     bool *done, struct gradcmp_error *error) {
    size_t looked = 0;
    for (;;) {
        const char *from = framer->buffer == NULL ? "" : framer->buffer + framer->begin;
        size_t held = framer->end - framer->begin;
        const char *newline = held > looked ? memchr(from + looked, '\n', held - looked) : NULL;
        bool more = true;
        if (newline == NULL) {
            looked = held;
            GCMP_TRY(fill(framer, &more, error));
            if (more) {
                continue;
            }
        }
        size_t length = newline != NULL ? (size_t)(newline - from) : held;
        if (length > GCMP_FRAME_MAX_BYTES) {
            FAIL_AT_LINE(framer, error, GRADCMP_ERROR_LIMIT, "a record of more than %d MiB",
                         (unsigned long long)framer->line, GCMP_FRAME_MAX_BYTES >> 20);
        }
        *frame = (struct gcmp_frame){.bytes = framer->buffer + framer->begin,
                                     .length_bytes = length,
                                     .line = framer->line,
                                     .is_item = true,
                                     .is_line = true,
                                     .is_ended = newline != NULL};
        framer->begin += length + (newline != NULL);
        framer->line += newline != NULL;
        looked = 0;
        *done = newline == NULL && is_blank(frame->bytes, length);
        if (*done || !is_blank(frame->bytes, length)) {
            return GRADCMP_OK;
        }
    }
}

/* ---- documents */

/* The byte `ahead` of the record's start, or -1 at the file's end. */
static enum gradcmp_status peek(struct gcmp_framer *framer, size_t ahead, int *out,
                                struct gradcmp_error *error) {
    while (framer->end - framer->begin <= ahead) {
        bool more;
        GCMP_TRY(fill(framer, &more, error));
        if (!more) {
            *out = -1;
            return GRADCMP_OK;
        }
    }
    *out = (unsigned char)framer->buffer[framer->begin + ahead];
    return GRADCMP_OK;
}

/* Step over white space and give the byte behind it. */
static enum gradcmp_status next_byte(struct gcmp_framer *framer, int *out,
                                     struct gradcmp_error *error) {
    for (;;) {
        GCMP_TRY(peek(framer, 0, out, error));
        if (*out != ' ' && *out != '\t' && *out != '\r' && *out != '\n') {
            return GRADCMP_OK;
        }
        framer->line += *out == '\n';
        framer->begin++;
    }
}

static enum gradcmp_status expect(struct gcmp_framer *framer, char wanted,
                                  struct gradcmp_error *error) {
    int found;
    GCMP_TRY(next_byte(framer, &found, error));
    if (found < 0) {
        FAIL_AT_LINE(framer, error, GRADCMP_ERROR_CORRUPT, "the document ends too early",
                     (unsigned long long)framer->line);
    }
    if (found != wanted) {
        FAIL_AT_LINE(framer, error, GRADCMP_ERROR_CORRUPT, "expected %c in the document",
                     (unsigned long long)framer->line, wanted);
    }
    framer->begin++;
    return GRADCMP_OK;
}

/* Find the length of the value that starts here, without looking into it. */
static enum gradcmp_status measure(struct gcmp_framer *framer, size_t *length, uint64_t *lines,
                                   struct gradcmp_error *error) {
    size_t depth = 0;
    bool in_string = false;
    *lines = 0;
    for (*length = 0;; (*length)++) {
        int c;
        GCMP_TRY(peek(framer, *length, &c, error));
        if (c < 0) {
            FAIL_AT_LINE(framer, error, GRADCMP_ERROR_CORRUPT,
                         "the document ends inside this record", (unsigned long long)framer->line);
        }
        *lines += c == '\n';
        if (in_string) {
            in_string = c != '"';
            *length += c == '\\';
            continue;
        }
        in_string = c == '"';
        if (c == '{' || c == '[') {
            depth++;
        } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return GRADCMP_OK;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
}

static enum gradcmp_status take_key(struct gcmp_framer *framer, struct gradcmp_error *error) {
    GCMP_TRY(expect(framer, '"', error));
    for (size_t i = 0;; i++) {
        int c;
        GCMP_TRY(peek(framer, i, &c, error));
        if (c < 0x20 || c == '\\' || i + 1 == sizeof framer->key) {
            FAIL_AT_LINE(framer, error, GRADCMP_ERROR_CORRUPT,
                         "a key that is cut, too long or holds an escape or a control character",
                         (unsigned long long)framer->line);
        }
        framer->key[i] = (char)c;
        if (c == '"') {
            framer->key[i] = '\0';
            framer->begin += i + 1;
            return expect(framer, ':', error);
        }
    }
}

/* Read what stands before the next item: nothing, or a comma. *closed: the container ends. */
static enum gradcmp_status separate(struct gcmp_framer *framer, char closing, bool *closed,
                                    struct gradcmp_error *error) {
    int c;
    GCMP_TRY(next_byte(framer, &c, error));
    *closed = c == closing;
    if (*closed) {
        framer->begin++;
        return GRADCMP_OK;
    }
    if (framer->needs_comma) {
        GCMP_TRY(expect(framer, ',', error));
    }
    framer->needs_comma = true;
    return GRADCMP_OK;
}

/* Give the value that starts here as a record. */
static enum gradcmp_status give(struct gcmp_framer *framer, struct gcmp_frame *frame, bool has_key,
                                struct gradcmp_error *error) {
    int first;
    size_t length;
    uint64_t lines;
    GCMP_TRY(next_byte(framer, &first, error));
    GCMP_TRY(measure(framer, &length, &lines, error));
    *frame = (struct gcmp_frame){.bytes = framer->buffer + framer->begin,
                                 .length_bytes = length,
                                 .line = framer->line,
                                 .key = has_key ? framer->key : NULL,
                                 .is_item = framer->state == FRAME_ITEMS};
    framer->begin += length;
    framer->line += lines;
    return GRADCMP_OK;
}

/* Behind a key of the document: go into the container, or give the member. */
static enum gradcmp_status take_member(struct gcmp_framer *framer, struct gcmp_frame *frame,
                                       bool *given, struct gradcmp_error *error) {
    int c;
    GCMP_TRY(take_key(framer, error));
    GCMP_TRY(next_byte(framer, &c, error));
    if (strcmp(framer->key, framer->container) == 0 && (c == '{' || c == '[')) {
        framer->begin++;
        framer->state = FRAME_ITEMS;
        framer->closing = c == '{' ? '}' : ']';
        framer->needs_comma = false;
        return GRADCMP_OK;
    }
    *given = true;
    return give(framer, frame, true, error);
}

static enum gradcmp_status finish_document(struct gcmp_framer *framer,
                                           struct gradcmp_error *error) {
    int c;
    framer->state = FRAME_DONE;
    GCMP_TRY(next_byte(framer, &c, error));
    if (c >= 0) {
        FAIL_AT_LINE(framer, error, GRADCMP_ERROR_CORRUPT, "something follows the document",
                     (unsigned long long)framer->line);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status next_item(struct gcmp_framer *framer, struct gcmp_frame *frame,
                                     bool *done, struct gradcmp_error *error) {
    bool given = false;
    *done = false;
    if (framer->state == FRAME_START) {
        GCMP_TRY(expect(framer, '{', error));
        framer->state = FRAME_MEMBERS;
    }
    while (!given && framer->state != FRAME_DONE) {
        bool closed;
        bool in_items = framer->state == FRAME_ITEMS;
        GCMP_TRY(separate(framer, in_items ? framer->closing : '}', &closed, error));
        if (closed && in_items) {
            framer->state = FRAME_MEMBERS;
            framer->needs_comma = true;
        } else if (closed) {
            GCMP_TRY(finish_document(framer, error));
        } else if (in_items) {
            if (framer->closing == '}') {
                GCMP_TRY(take_key(framer, error));
            }
            given = true;
            GCMP_TRY(give(framer, frame, framer->closing == '}', error));
        } else {
            GCMP_TRY(take_member(framer, frame, &given, error));
        }
    }
    *done = !given;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_framer_next(struct gcmp_framer *framer, struct gcmp_frame *frame,
                                     bool *done, struct gradcmp_error *error) {
    memset(frame, 0, sizeof *frame);
    return framer->container == NULL ? next_line(framer, frame, done, error)
                                     : next_item(framer, frame, done, error);
}
