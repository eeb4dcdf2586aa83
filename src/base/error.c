/* Fills caller-owned error objects. */
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum {
    SPELLED_BYTES = 4 * 4 + 1, /* a character of four bytes, each as \xNN */
    FORMATTED_BYTES = 2048,
};

/* Put the next character of a text into `spelled`, and return how many bytes that took of the text;
 * 0 at its end. A message is one line of UTF-8 whatever a file put into a name: what is neither is
 * spelled \xNN a byte. */
static size_t spell_next(const char *text, size_t left, char spelled[SPELLED_BYTES]) {
    unsigned code = 0;
    size_t length = gcmp_utf8_decode(text, left, &code);
    spelled[0] = '\0';
    if (length > 0 && gcmp_utf8_is_harmless(code)) {
        memcpy(spelled, text, length);
        spelled[length] = '\0';
        return length;
    }
    length = length == 0 && left > 0 ? 1 : length;
    for (size_t i = 0; i < length; i++) {
        snprintf(spelled + 4 * i, SPELLED_BYTES - 4 * i, "\\x%02x", (unsigned char)text[i]);
    }
    return length;
}

static size_t spelled_bytes(const char *text) {
    char spelled[SPELLED_BYTES];
    size_t left = strlen(text), total = 0, step;
    while ((step = spell_next(text, left, spelled)) > 0) {
        total += strlen(spelled);
        text += step;
        left -= step;
    }
    return total;
}

/* Store a text where `capacity` bytes are. Of one that is too long the middle is left out, since
 * what is said of a name stands behind it. */
static void store(char *to, size_t capacity, const char *text) {
    static const char gap[] = "...";
    char spelled[SPELLED_BYTES];
    size_t total = spelled_bytes(text), room = capacity - 1, used = 0, at = 0, step;
    bool is_cut = total > room;
    size_t head = is_cut ? (room - (sizeof gap - 1)) * 2 / 3 : room;
    size_t tail_from = is_cut ? total - (room - (sizeof gap - 1) - head) : total;
    for (size_t left = strlen(text); (step = spell_next(text, left, spelled)) > 0; left -= step) {
        size_t count = strlen(spelled);
        bool in_head = at + count <= head;
        if (!in_head && is_cut) {
            memcpy(to + used, gap, sizeof gap - 1);
            used += sizeof gap - 1;
            is_cut = false;
        }
        if (in_head || at >= tail_from) {
            memcpy(to + used, spelled, count);
            used += count;
        }
        at += count;
        text += step;
    }
    to[used] = '\0';
}

static void store_message(struct gradcmp_error *error, const char *format, va_list args) {
    char brief[FORMATTED_BYTES];
    va_list again;
    va_copy(again, args);
    int bytes = vsnprintf(brief, sizeof brief, format, args);
    char *whole = bytes >= (int)sizeof brief ? malloc((size_t)bytes + 1) : NULL;
    if (whole != NULL) {
        vsnprintf(whole, (size_t)bytes + 1, format, again);
    }
    va_end(again);
    store(error->message, sizeof error->message, whole == NULL ? brief : whole);
    free(whole);
}

enum gradcmp_status gcmp_error_fill(struct gradcmp_error *error, enum gradcmp_status code,
                                    const char *path, uint64_t offset_bytes, const char *format,
                                    ...) {
    if (error != NULL) {
        error->code = code;
        error->offset_bytes = offset_bytes;
        store(error->path, sizeof error->path, path == NULL ? "" : path);
        va_list args;
        va_start(args, format);
        store_message(error, format, args);
        va_end(args);
    }
    return code;
}

void gcmp_error_add_path(struct gradcmp_error *error, const char *path) {
    if (error != NULL && error->path[0] == '\0') {
        store(error->path, sizeof error->path, path == NULL ? "" : path);
    }
}
