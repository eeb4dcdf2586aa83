/* Writes records to standard output. */
#include "h5helper/helper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 64 << 10, MAX_MESSAGE_BYTES = 400 };

static unsigned char buffer[BUFFER_BYTES];
static size_t buffered;
static bool broken; /* nobody reads any more */
static bool failed; /* an error was told */

bool put_flush(void) {
    for (size_t put = 0; put < buffered && !broken;) {
        ssize_t done = write(STDOUT_FILENO, buffer + put, buffered - put);
        if (done > 0) {
            put += (size_t)done;
        } else if (errno != EINTR) {
            broken = true;
        }
    }
    buffered = 0;
    return !broken;
}

void put_bytes(const void *bytes, size_t count) {
    const unsigned char *from = bytes;
    while (count > 0) {
        if (buffered == BUFFER_BYTES) {
            (void)put_flush();
        }
        size_t room = BUFFER_BYTES - buffered, part = count < room ? count : room;
        memcpy(buffer + buffered, from, part);
        buffered += part;
        from += part;
        count -= part;
    }
}

static void put_le(uint64_t value, unsigned count) {
    unsigned char bytes[8];
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    put_bytes(bytes, count);
}

void put_u8(unsigned value) {
    put_le(value, 1);
}

void put_u32(uint32_t value) {
    put_le(value, 4);
}

void put_u64(uint64_t value) {
    put_le(value, 8);
}

void put_text(const char *bytes, size_t count) {
    put_u32((uint32_t)count);
    put_bytes(bytes, count);
}

static void put_error(enum gradcmp_status status, uint64_t offset_bytes, const char *message) {
    if (!failed) {
        failed = true;
        put_u8(GCMP_H5_ERROR);
        put_u8((unsigned)status);
        put_u64(offset_bytes);
        put_text(message, strlen(message));
    }
}

void helper_fail(enum gradcmp_status status, const char *format, ...) {
    char message[MAX_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    put_error(status, GRADCMP_NO_OFFSET, message);
}

void helper_fail_at(enum gradcmp_status status, uint64_t offset_bytes, const char *format, ...) {
    char message[MAX_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    put_error(status, offset_bytes, message);
}

/* Keep the description of the innermost error. */
static herr_t keep_first(unsigned depth, const H5E_error2_t *error, void *user) {
    (void)depth;
    const char **text = user;
    if (*text == NULL && error->desc != NULL && error->desc[0] != '\0') {
        *text = error->desc;
    }
    return 0;
}

void helper_fail_hdf5(const char *what) {
    char message[MAX_MESSAGE_BYTES];
    const char *text = NULL;
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
    snprintf(message, sizeof message, "%s: %s", what, text == NULL ? "failed" : text);
    put_error(GRADCMP_ERROR_CORRUPT, driver_last_offset(), message);
}

bool helper_has_failed(void) {
    return failed;
}
