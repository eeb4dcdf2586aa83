/* Writes what torch writes, with nothing of the program that is tested: bytes, pickles, zip
 * archives of stored records. */
#ifndef GCMP_FUZZ_TORCH_BYTES_H
#define GCMP_FUZZ_TORCH_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "demand.h"

/* --- bytes --- */

struct out {
    uint8_t bytes[1 << 20];
    size_t count;
};

static inline void put(struct out *out, const void *bytes, size_t count) {
    demand(count <= sizeof out->bytes - out->count, "room for what is written");
    memcpy(out->bytes + out->count, bytes, count);
    out->count += count;
}
static inline void put_raw(struct out *out, const char *text) {
    put(out, text, strlen(text));
}
static inline void put_le(struct out *out, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        uint8_t byte = i < sizeof value ? (uint8_t)(value >> (8 * i)) : 0;
        put(out, &byte, 1);
    }
}
static inline void put_text(struct out *out, const char *text) {
    put_raw(out, "X");
    put_le(out, strlen(text), 4);
    put_raw(out, text);
}
static inline void put_number(struct out *out, uint64_t value) {
    put_raw(out, "J");
    put_le(out, value, 4);
}
static inline void put_numbers(struct out *out, unsigned ndim, const unsigned *numbers) {
    put_raw(out, "(");
    for (unsigned d = 0; d < ndim; d++) {
        put_number(out, numbers[d]);
    }
    put_raw(out, "t");
}

/* --- a zip archive of stored records, as torch.save makes it --- */

struct record {
    char name[32];
    size_t at, bytes;
    uint32_t crc;
};

/* Returns where the record's bytes lie. */
static inline size_t put_record(struct out *out, struct record *record, const char *name,
                                const void *bytes, size_t count) {
    snprintf(record->name, sizeof record->name, "%s", name);
    record->at = out->count;
    record->bytes = count;
    record->crc = (uint32_t)crc32(0, bytes, (uInt)count);
    put_raw(out, "PK\3\4");
    put_le(out, 0, 10); /* version, flags, method, time, date */
    put_le(out, record->crc, 4);
    put_le(out, count, 4);
    put_le(out, count, 4);
    put_le(out, strlen(name), 2);
    put_le(out, 0, 2);
    put_raw(out, name);
    put(out, bytes, count);
    return out->count - count;
}

static inline void put_directory(struct out *out, const struct record *records, unsigned count,
                                 size_t base) {
    size_t start = out->count;
    for (unsigned i = 0; i < count; i++) {
        put_raw(out, "PK\1\2");
        put_le(out, 0, 12); /* versions, flags, method, time, date */
        put_le(out, records[i].crc, 4);
        put_le(out, records[i].bytes, 4);
        put_le(out, records[i].bytes, 4);
        put_le(out, strlen(records[i].name), 2);
        put_le(out, 0, 12); /* extra, comment, disk, attributes */
        put_le(out, records[i].at - base, 4);
        put_raw(out, records[i].name);
    }
    size_t bytes = out->count - start;
    put_raw(out, "PK\5\6");
    put_le(out, 0, 4);
    put_le(out, count, 2);
    put_le(out, count, 2);
    put_le(out, bytes, 4);
    put_le(out, start - base, 4);
    put_le(out, 0, 2);
}

/* --- objects of the metadata --- */

#define METADATA_MODULE "torch.distributed.checkpoint.metadata"

static inline void put_object(struct out *out, const char *module, const char *name) {
    put_raw(out, "c");
    put_raw(out, module);
    put_raw(out, "\n");
    put_raw(out, name);
    put_raw(out, "\n)\x81}(");
}
static inline void put_size(struct out *out, unsigned ndim, const unsigned *numbers) {
    put_raw(out, "ctorch\nSize\n");
    put_numbers(out, ndim, numbers);
    put_raw(out, "\x85R");
}

#endif
