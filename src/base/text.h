/* A growable text; failures of memory are remembered, so that only the end need be checked. */
#ifndef GCMP_BASE_TEXT_H
#define GCMP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct gcmp_text {
    char *bytes; /* NUL-terminated once anything was added; free with gcmp_text_free */
    size_t length_bytes, capacity_bytes;
    bool failed; /* an addition found no memory; the text is incomplete */
};

#define GCMP_TEXT_INIT                                                                             \
    { NULL, 0, 0, false }

void gcmp_text_add(struct gcmp_text *text, const char *string);
void gcmp_text_add_bytes(struct gcmp_text *text, const char *bytes, size_t length_bytes);
void gcmp_text_addf(struct gcmp_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gcmp_text_clear(struct gcmp_text *text);
void gcmp_text_free(struct gcmp_text *text);

#endif
