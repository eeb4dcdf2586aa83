/* A bounded reader over bytes in memory: the only way that bytes of a file are interpreted. */
#ifndef GCMP_BASE_CURSOR_H
#define GCMP_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gcmp_cursor {
    const unsigned char *bytes;
    size_t length_bytes, at_bytes;
    uint64_t base_bytes; /* offset of bytes[0] in its file, for messages */
};

static inline struct gcmp_cursor gcmp_cursor_make(const void *bytes, size_t length_bytes,
                                                  uint64_t base_bytes) {
    struct gcmp_cursor cursor = {bytes, length_bytes, 0, base_bytes};
    return cursor;
}

static inline size_t gcmp_cursor_left(const struct gcmp_cursor *cursor) {
    return cursor->length_bytes - cursor->at_bytes;
}

/* Offset in the file of the next byte. */
static inline uint64_t gcmp_cursor_offset(const struct gcmp_cursor *cursor) {
    return cursor->base_bytes + cursor->at_bytes;
}

/* Move to an absolute position within the bytes; false when it lies outside. */
static inline bool gcmp_cursor_seek(struct gcmp_cursor *cursor, uint64_t at_bytes) {
    if (at_bytes > cursor->length_bytes) {
        return false;
    }
    cursor->at_bytes = (size_t)at_bytes;
    return true;
}

/* Point *out at `count` bytes and step over them; false, with nothing consumed, when fewer are
 * left. */
static inline bool gcmp_read_bytes(struct gcmp_cursor *cursor, uint64_t count,
                                   const unsigned char **out) {
    if (count > gcmp_cursor_left(cursor)) {
        return false;
    }
    *out = cursor->bytes + cursor->at_bytes;
    cursor->at_bytes += (size_t)count;
    return true;
}

static inline bool gcmp_skip(struct gcmp_cursor *cursor, uint64_t count) {
    const unsigned char *ignored;
    return gcmp_read_bytes(cursor, count, &ignored);
}

/* Read an unsigned integer of 1 to 8 bytes. */
static inline bool gcmp_read_le(struct gcmp_cursor *cursor, unsigned count, uint64_t *out) {
    const unsigned char *bytes;
    if (!gcmp_read_bytes(cursor, count, &bytes)) {
        return false;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    *out = value;
    return true;
}

/* Read unsigned integers that follow each other: `widths` has a digit for each, how many bytes it
 * takes. False where fewer are left; those that were read are in `numbers`. */
static inline bool gcmp_read_numbers(struct gcmp_cursor *cursor, const char *widths,
                                     uint64_t *numbers) {
    bool ok = true;
    for (; ok && *widths != '\0'; widths++) {
        ok = gcmp_read_le(cursor, (unsigned)(*widths - '0'), numbers++);
    }
    return ok;
}

static inline bool gcmp_read_u8(struct gcmp_cursor *cursor, uint8_t *out) {
    uint64_t value;
    bool ok = gcmp_read_le(cursor, 1, &value);
    if (ok) {
        *out = (uint8_t)value;
    }
    return ok;
}
static inline bool gcmp_read_u16le(struct gcmp_cursor *cursor, uint16_t *out) {
    uint64_t value;
    bool ok = gcmp_read_le(cursor, 2, &value);
    if (ok) {
        *out = (uint16_t)value;
    }
    return ok;
}
static inline bool gcmp_read_u32le(struct gcmp_cursor *cursor, uint32_t *out) {
    uint64_t value;
    bool ok = gcmp_read_le(cursor, 4, &value);
    if (ok) {
        *out = (uint32_t)value;
    }
    return ok;
}
static inline bool gcmp_read_u64le(struct gcmp_cursor *cursor, uint64_t *out) {
    return gcmp_read_le(cursor, 8, out);
}

#endif
