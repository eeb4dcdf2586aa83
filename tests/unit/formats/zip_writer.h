/* Writes zip archives as torch.save does, and remembers where everything lies so that a test can
 * damage one thing. */
#ifndef GCMP_ZIP_WRITER_H
#define GCMP_ZIP_WRITER_H

#include "temp_tools.h"

#include <zlib.h>

enum { WRITER_BYTES = 512 * 1024, WRITER_RECORDS = 4096 };

struct zip_writer {
    unsigned char *bytes;
    size_t count, capacity;
    unsigned padding;     /* bytes of "Z" in the extra field of each local header */
    bool no_crc;          /* write 0 for every checksum */
    bool sizes_in_header; /* no descriptors, sizes in the local header, as zip programs do */
    bool wide;            /* sizes and offsets in zip64 extra fields */
    size_t records;
    struct {
        char name[64];
        size_t header_at, data_at, data_bytes, entry_at;
        uint32_t crc;
    } record[WRITER_RECORDS];
    size_t directory_at, directory_bytes, end64_at, locator_at, end_at;
};

static inline struct zip_writer *writer_make(void) {
    struct zip_writer *writer = calloc(1, sizeof *writer);
    writer->bytes = malloc(WRITER_BYTES);
    writer->capacity = WRITER_BYTES;
    writer->padding = 11;
    return writer;
}

static inline void writer_free(struct zip_writer *writer) {
    free(writer->bytes);
    free(writer);
}

static inline void put_bytes(struct zip_writer *writer, const void *bytes, size_t count) {
    if (count > writer->capacity - writer->count) {
        writer->capacity = 2 * (writer->count + count);
        writer->bytes = realloc(writer->bytes, writer->capacity);
        assert_non_null(writer->bytes);
    }
    memcpy(writer->bytes + writer->count, bytes, count);
    writer->count += count;
}

static inline void put_le(struct zip_writer *writer, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
        put_bytes(writer, &byte, 1);
    }
}

/* Overwrite a number in what was written. */
static inline void patch_le(struct zip_writer *writer, size_t at, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        writer->bytes[at + i] = (unsigned char)(value >> (8 * i));
    }
}

static inline void put_record(struct zip_writer *writer, const char *name, const void *data,
                              size_t data_bytes) {
    size_t index = writer->records++;
    assert_true(index < WRITER_RECORDS);
    snprintf(writer->record[index].name, sizeof writer->record[index].name, "%s", name);
    uint32_t crc = writer->no_crc ? 0 : (uint32_t)crc32_z(0, data, data_bytes);
    writer->record[index].crc = crc;
    writer->record[index].header_at = writer->count;
    bool sizes = writer->sizes_in_header;
    put_le(writer, 0x04034b50, 4);
    put_le(writer, 20, 2);
    put_le(writer, sizes ? 0x800 : 0x808, 2);
    put_le(writer, 0, 6); /* method, time, date */
    put_le(writer, sizes ? crc : 0, 4);
    put_le(writer, !sizes ? 0 : writer->wide ? 0xffffffff : data_bytes, 4);
    put_le(writer, !sizes ? 0 : writer->wide ? 0xffffffff : data_bytes, 4);
    put_le(writer, strlen(name), 2);
    bool wide = sizes && writer->wide;
    put_le(writer, 4 + writer->padding + (wide ? 20 : 0), 2);
    put_bytes(writer, name, strlen(name));
    if (wide) {
        put_le(writer, 1, 2);
        put_le(writer, 16, 2);
        put_le(writer, data_bytes, 8);
        put_le(writer, data_bytes, 8);
    }
    put_bytes(writer, "FB", 2);
    put_le(writer, writer->padding, 2);
    for (unsigned i = 0; i < writer->padding; i++) {
        put_bytes(writer, "Z", 1);
    }
    writer->record[index].data_at = writer->count;
    writer->record[index].data_bytes = data_bytes;
    put_bytes(writer, data, data_bytes);
    if (!sizes) {
        put_le(writer, 0x08074b50, 4);
        put_le(writer, crc, 4);
        put_le(writer, data_bytes, 4);
        put_le(writer, data_bytes, 4);
    }
}

static inline void put_entry(struct zip_writer *writer, size_t index) {
    size_t bytes = writer->record[index].data_bytes;
    const char *name = writer->record[index].name;
    writer->record[index].entry_at = writer->count;
    put_le(writer, 0x02014b50, 4);
    put_le(writer, 20, 2);
    put_le(writer, 20, 2);
    put_le(writer, writer->sizes_in_header ? 0x800 : 0x808, 2);
    put_le(writer, 0, 6); /* method, time, date */
    put_le(writer, writer->record[index].crc, 4);
    put_le(writer, writer->wide ? 0xffffffff : bytes, 4);
    put_le(writer, writer->wide ? 0xffffffff : bytes, 4);
    put_le(writer, strlen(name), 2);
    put_le(writer, writer->wide ? 28 : 0, 2);
    put_le(writer, 0, 10); /* comment, disk, attributes */
    put_le(writer, writer->wide ? 0xffffffff : writer->record[index].header_at, 4);
    put_bytes(writer, name, strlen(name));
    if (writer->wide) {
        put_le(writer, 1, 2);
        put_le(writer, 24, 2);
        put_le(writer, bytes, 8);
        put_le(writer, bytes, 8);
        put_le(writer, writer->record[index].header_at, 8);
    }
}

/* Write the directory and the three end records. */
static inline void put_end(struct zip_writer *writer) {
    writer->directory_at = writer->count;
    for (size_t i = 0; i < writer->records; i++) {
        put_entry(writer, i);
    }
    writer->directory_bytes = writer->count - writer->directory_at;
    writer->end64_at = writer->count;
    put_le(writer, 0x06064b50, 4);
    put_le(writer, 44, 8);
    put_le(writer, 30, 2);
    put_le(writer, 45, 2);
    put_le(writer, 0, 8); /* disks */
    put_le(writer, writer->records, 8);
    put_le(writer, writer->records, 8);
    put_le(writer, writer->directory_bytes, 8);
    put_le(writer, writer->directory_at, 8);
    writer->locator_at = writer->count;
    put_le(writer, 0x07064b50, 4);
    put_le(writer, 0, 4);
    put_le(writer, writer->end64_at, 8);
    put_le(writer, 1, 4);
    writer->end_at = writer->count;
    put_le(writer, 0x06054b50, 4);
    put_le(writer, 0, 4); /* disks */
    put_le(writer, writer->records, 2);
    put_le(writer, writer->records, 2);
    put_le(writer, writer->directory_bytes, 4);
    put_le(writer, writer->directory_at, 4);
    put_le(writer, 0, 2); /* comment */
}

#endif
