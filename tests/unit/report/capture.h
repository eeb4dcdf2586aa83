/* Collects what a writer writes, and compares it with a golden file. */
#ifndef TEST_CAPTURE_H
#define TEST_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

struct capture {
    struct gcmp_text text;
    size_t calls, largest_bytes, total_bytes;
    size_t fail_from_call; /* 0: never; n: call n and later fail */
    bool only_counts;      /* the text is not kept */
};

static inline int capture_write(void *user, const char *bytes, size_t length_bytes) {
    struct capture *capture = user;
    capture->calls++;
    if (capture->fail_from_call != 0 && capture->calls >= capture->fail_from_call) {
        return 1;
    }
    if (length_bytes > capture->largest_bytes) {
        capture->largest_bytes = length_bytes;
    }
    capture->total_bytes += length_bytes;
    if (!capture->only_counts) {
        gcmp_text_add_bytes(&capture->text, bytes, length_bytes);
    }
    return 0;
}

static inline const char *captured(const struct capture *capture) {
    assert_false(capture->text.failed);
    return capture->text.bytes == NULL ? "" : capture->text.bytes;
}

static inline char *read_whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s: no such golden file (GRADCMP_BLESS=1 writes it)", path);
    }
    struct gcmp_text text = GCMP_TEXT_INIT;
    char chunk[4096];
    size_t count;
    gcmp_text_add(&text, "");
    while ((count = fread(chunk, 1, sizeof chunk, file)) > 0) {
        gcmp_text_add_bytes(&text, chunk, count);
    }
    fclose(file);
    return text.bytes;
}

/* Compare with golden/NAME, or rewrite it where GRADCMP_BLESS is set. */
static inline void expect_golden(const char *name, const char *actual) {
    char path[1024];
    snprintf(path, sizeof path, "%s/../unit/report/golden/%s", GCMP_TEST_DATA, name);
    if (getenv("GRADCMP_BLESS") != NULL) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(actual, 1, strlen(actual), file), strlen(actual));
        assert_int_equal(fclose(file), 0);
        return;
    }
    char *expected = read_whole(path);
    assert_string_equal(actual, expected);
    free(expected);
}

#endif
