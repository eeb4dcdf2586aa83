/* Makes zip archives for fuzz targets: stored records, as zip programs write them, without
 * checksums, so that a change to a record is no damage. One archive at a time. */
#ifndef GCMP_FUZZ_ARCHIVE_H
#define GCMP_FUZZ_ARCHIVE_H

#include <stdint.h>
#include <string.h>

enum { ARCHIVE_BYTES = 8 << 20, ARCHIVE_RECORDS = 80 };

static unsigned char archive[ARCHIVE_BYTES], directory[ARCHIVE_RECORDS * 128 + 256];
static size_t archive_bytes, directory_bytes, entry_count;

static inline void put_le(unsigned char *to, size_t *at, uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        to[(*at)++] = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
    }
}

static inline void put_name(unsigned char *to, size_t *at, const char *name) {
    while (*name != '\0') {
        to[(*at)++] = (unsigned char)*name++;
    }
}

/* What a local header and an entry of the directory have in common. */
static inline void put_fields(unsigned char *to, size_t *at, const char *name, size_t bytes) {
    put_le(to, at, 20, 2);
    put_le(to, at, 0, 12); /* flags, method, time, date, no checksum */
    put_le(to, at, bytes, 4);
    put_le(to, at, bytes, 4);
    put_le(to, at, strlen(name), 2);
    put_le(to, at, 0, 2);
}

static inline void begin_archive(void) {
    archive_bytes = directory_bytes = entry_count = 0;
}

/* Add a record under a name of at most 60 bytes; zeros where `bytes` is NULL; nothing where there
 * is no room. */
static inline void add_record(const char *name, const void *bytes, size_t count) {
    size_t header_at = archive_bytes;
    if (archive_bytes + count + 256 > ARCHIVE_BYTES - sizeof directory ||
        entry_count == ARCHIVE_RECORDS) {
        return;
    }
    put_le(archive, &archive_bytes, 0x04034b50, 4);
    put_fields(archive, &archive_bytes, name, count);
    put_name(archive, &archive_bytes, name);
    if (bytes != NULL) {
        memcpy(archive + archive_bytes, bytes, count);
    } else {
        memset(archive + archive_bytes, 0, count);
    }
    archive_bytes += count;
    put_le(directory, &directory_bytes, 0x02014b50, 4);
    put_le(directory, &directory_bytes, 20, 2);
    put_fields(directory, &directory_bytes, name, count);
    put_le(directory, &directory_bytes, 0, 10); /* comment, disk, attributes */
    put_le(directory, &directory_bytes, header_at, 4);
    put_name(directory, &directory_bytes, name);
    entry_count++;
}

/* Write directory and end record; the archive is archive[0 .. archive_bytes). */
static inline void end_archive(void) {
    size_t directory_at = archive_bytes;
    memcpy(archive + archive_bytes, directory, directory_bytes);
    archive_bytes += directory_bytes;
    put_le(archive, &archive_bytes, 0x06054b50, 4);
    put_le(archive, &archive_bytes, 0, 4);
    put_le(archive, &archive_bytes, entry_count, 2);
    put_le(archive, &archive_bytes, entry_count, 2);
    put_le(archive, &archive_bytes, directory_bytes, 4);
    put_le(archive, &archive_bytes, directory_at, 4);
    put_le(archive, &archive_bytes, 0, 2);
}

#endif
