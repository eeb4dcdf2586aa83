/* Fills caller-owned error objects. */
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { FORMATTED_BYTES = 2048 };

/* Bytes that a text takes as one line of UTF-8, whatever a file put into a name. */
static size_t spelled_bytes(const char *text) {
    char spelled[GCMP_UTF8_SPELLED_BYTES];
    size_t left = strlen(text), total = 0, step;
    while ((step = gcmp_utf8_spell(text, left, true, spelled)) > 0) {
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
    char spelled[GCMP_UTF8_SPELLED_BYTES];
    size_t total = spelled_bytes(text), room = capacity - 1, used = 0, at = 0, step;
    bool is_cut = total > room;
    size_t head = is_cut ? (room - (sizeof gap - 1)) * 2 / 3 : room;
    size_t tail_from = is_cut ? total - (room - (sizeof gap - 1) - head) : total;
    for (size_t left = strlen(text); (step = gcmp_utf8_spell(text, left, true, spelled)) > 0;
         left -= step) {
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
