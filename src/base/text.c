/* The growable text. */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static bool reserve(struct gcmp_text *text, size_t more_bytes) {
    size_t need;
    if (text->failed || !gcmp_add_size(text->length_bytes, more_bytes, &need) ||
        !gcmp_add_size(need, 1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity_bytes) {
        return true;
    }
    size_t capacity = text->capacity_bytes < 64 ? 64 : text->capacity_bytes;
    while (capacity < need) {
        capacity = capacity > SIZE_MAX / 2 ? need : 2 * capacity;
    }
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity_bytes = capacity;
    return true;
}

void gcmp_text_add_bytes(struct gcmp_text *text, const char *bytes, size_t length_bytes) {
    if (reserve(text, length_bytes)) {
        if (length_bytes > 0) {
            memcpy(text->bytes + text->length_bytes, bytes, length_bytes);
        }
        text->length_bytes += length_bytes;
        text->bytes[text->length_bytes] = '\0';
    }
}

void gcmp_text_add(struct gcmp_text *text, const char *string) {
    gcmp_text_add_bytes(text, string, strlen(string));
}

void gcmp_text_addf(struct gcmp_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        text->failed = true;
        return;
    }
    if (reserve(text, (size_t)length)) {
        va_start(args, format);
        vsnprintf(text->bytes + text->length_bytes, (size_t)length + 1, format, args);
        va_end(args);
        text->length_bytes += (size_t)length;
    }
}

void gcmp_text_clear(struct gcmp_text *text) {
    text->length_bytes = 0;
    if (text->bytes != NULL) {
        text->bytes[0] = '\0';
    }
}

void gcmp_text_free(struct gcmp_text *text) {
    free(text->bytes);
    *text = (struct gcmp_text)GCMP_TEXT_INIT;
}
