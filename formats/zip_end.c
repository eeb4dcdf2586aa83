/* The end of a zip archive: its end records, classic and zip64, and where they say the directory
 * is. */
#include "formats/zip_private.h"

#include "base/checked.h"

/* Limits. A directory of 1 GiB names over ten million records. */
enum { MAX_DIRECTORY_BYTES = 1 << 30, MAX_COMMENT_BYTES = 65535 };

enum {
    END_SIGNATURE = 0x06054b50,
    END_BYTES_FIXED = 22,
    LOCATOR_SIGNATURE = 0x07064b50,
    LOCATOR_BYTES = 20,
    END64_SIGNATURE = 0x06064b50,
    END64_BYTES_MIN = 56
};

/* Without an end record, the first bytes tell an archive that was cut short from other content. */
static enum gradcmp_status fail_without_end(const struct gcmp_zip_archive *archive) {
    struct gcmp_cursor cursor;
    uint32_t signature = 0;
    GCMP_TRY(gcmp_zip_fetch(archive, 0, sizeof signature, &cursor));
    (void)gcmp_read_u32le(&cursor, &signature);
    if (signature != GCMP_ZIP_LOCAL_SIGNATURE) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, 0,
                      "not a torch.save archive: expected it to begin with %08x, found %08x",
                      __builtin_bswap32(GCMP_ZIP_LOCAL_SIGNATURE), __builtin_bswap32(signature));
    }
    GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, archive->length_bytes,
                  "an archive cut short: no end record");
}

/* Find the end record when a comment follows it: the one signature in the last 64 KiB whose comment
 * fits. A second signature behind it could be read as another archive by another reader. */
static enum gradcmp_status find_end_with_comment(const struct gcmp_zip_archive *archive,
                                                 uint64_t *at) {
    uint64_t span = END_BYTES_FIXED + MAX_COMMENT_BYTES;
    if (span > archive->length_bytes) {
        span = archive->length_bytes;
    }
    uint64_t start = archive->length_bytes - span;
    struct gcmp_cursor cursor;
    GCMP_TRY(gcmp_zip_fetch(archive, start, span, &cursor));
    unsigned found = 0;
    bool fits = false;
    for (uint64_t skip = 0; skip + END_BYTES_FIXED <= span; skip++) {
        uint32_t signature = 0;
        uint16_t comment = 0;
        (void)(gcmp_cursor_seek(&cursor, skip) && gcmp_read_u32le(&cursor, &signature));
        if (signature != END_SIGNATURE) {
            continue;
        }
        (void)(gcmp_skip(&cursor, 16) && gcmp_read_u16le(&cursor, &comment));
        bool this_fits = skip + END_BYTES_FIXED + comment == span;
        found += fits || this_fits; /* once one fits, any signature after it counts */
        if (this_fits && !fits) {
            *at = start + skip;
        }
        fits = fits || this_fits;
    }
    if (found == 1) {
        return GRADCMP_OK;
    }
    if (found > 1) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, *at, "more than one end record");
    }
    return fail_without_end(archive);
}

static enum gradcmp_status find_end(const struct gcmp_zip_archive *archive, uint64_t *at) {
    if (archive->length_bytes < END_BYTES_FIXED) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, archive->length_bytes,
                      "%llu bytes cannot hold an archive",
                      (unsigned long long)archive->length_bytes);
    }
    *at = archive->length_bytes - END_BYTES_FIXED;
    struct gcmp_cursor cursor;
    GCMP_TRY(gcmp_zip_fetch(archive, *at, END_BYTES_FIXED, &cursor));
    uint32_t signature = 0;
    uint16_t comment = 0;
    bool ok = gcmp_read_u32le(&cursor, &signature) && gcmp_skip(&cursor, 16) &&
              gcmp_read_u16le(&cursor, &comment);
    if (ok && signature == END_SIGNATURE && comment == 0) {
        return GRADCMP_OK;
    }
    return find_end_with_comment(archive, at);
}

/* The numbers of an end record, classic or zip64. */
struct end_record {
    uint64_t disk, directory_disk, entries_here, entries, directory_bytes, directory_at;
    uint64_t at; /* first byte of the end records: where the directory must end */
};

static enum gradcmp_status read_end(const struct gcmp_zip_archive *archive, uint64_t at,
                                    struct end_record *end) {
    struct gcmp_cursor cursor;
    GCMP_TRY(gcmp_zip_fetch(archive, at, END_BYTES_FIXED, &cursor));
    bool ok = gcmp_skip(&cursor, 4) && gcmp_read_le(&cursor, 2, &end->disk) &&
              gcmp_read_le(&cursor, 2, &end->directory_disk) &&
              gcmp_read_le(&cursor, 2, &end->entries_here) &&
              gcmp_read_le(&cursor, 2, &end->entries) &&
              gcmp_read_le(&cursor, 4, &end->directory_bytes) &&
              gcmp_read_le(&cursor, 4, &end->directory_at);
    end->at = at;
    if (!ok) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, at, "end record cut short");
    }
    return GRADCMP_OK;
}

/* A classic number must be what the zip64 record says, or say that it does not fit. */
static bool agree(uint64_t classic, uint64_t wide, uint64_t saturated) {
    return classic == wide || classic == saturated;
}

/* Look for a zip64 locator in front of the end record; *found tells whether there is one, and *at
 * where it says the zip64 end record is, in front of it. */
static enum gradcmp_status read_locator(const struct gcmp_zip_archive *archive, uint64_t end_at,
                                        bool *found, uint64_t *at) {
    struct gcmp_cursor cursor;
    uint64_t signature = 0, disk = 0, disks = 0;
    *found = false;
    if (end_at < LOCATOR_BYTES) {
        return GRADCMP_OK;
    }
    uint64_t locator_at = end_at - LOCATOR_BYTES;
    GCMP_TRY(gcmp_zip_fetch(archive, locator_at, LOCATOR_BYTES, &cursor));
    bool ok = gcmp_read_le(&cursor, 4, &signature) && gcmp_read_le(&cursor, 4, &disk) &&
              gcmp_read_u64le(&cursor, at) && gcmp_read_le(&cursor, 4, &disks);
    if (!ok || signature != LOCATOR_SIGNATURE) {
        return GRADCMP_OK;
    }
    *found = true;
    if (disk != 0 || disks > 1 || *at > locator_at || locator_at - *at < END64_BYTES_MIN) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, locator_at,
                      "zip64 locator points to byte %llu, outside the archive",
                      (unsigned long long)*at);
    }
    return GRADCMP_OK;
}

/* Read the zip64 end record, which must reach up to its locator. */
static enum gradcmp_status read_wide(const struct gcmp_zip_archive *archive, uint64_t locator_at,
                                     struct end_record *wide) {
    struct gcmp_cursor cursor;
    uint64_t signature = 0, bytes = 0;
    GCMP_TRY(gcmp_zip_fetch(archive, wide->at, END64_BYTES_MIN, &cursor));
    bool ok = gcmp_read_le(&cursor, 4, &signature) && gcmp_read_u64le(&cursor, &bytes) &&
              gcmp_skip(&cursor, 4) && gcmp_read_le(&cursor, 4, &wide->disk) &&
              gcmp_read_le(&cursor, 4, &wide->directory_disk) &&
              gcmp_read_u64le(&cursor, &wide->entries_here) &&
              gcmp_read_u64le(&cursor, &wide->entries) &&
              gcmp_read_u64le(&cursor, &wide->directory_bytes) &&
              gcmp_read_u64le(&cursor, &wide->directory_at);
    if (!ok || signature != END64_SIGNATURE || bytes != locator_at - wide->at - 12) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, wide->at,
                      "no zip64 end record where the locator says");
    }
    return GRADCMP_OK;
}

/* Replace the classic numbers by those of the zip64 record, where a locator announces one. */
static enum gradcmp_status read_end64(const struct gcmp_zip_archive *archive,
                                      struct end_record *end) {
    struct end_record wide = {0};
    bool found;
    GCMP_TRY(read_locator(archive, end->at, &found, &wide.at));
    if (!found) {
        return GRADCMP_OK;
    }
    GCMP_TRY(read_wide(archive, end->at - LOCATOR_BYTES, &wide));
    if (!agree(end->disk, wide.disk, GCMP_ZIP_SATURATED_16) ||
        !agree(end->entries, wide.entries, GCMP_ZIP_SATURATED_16) ||
        !agree(end->directory_bytes, wide.directory_bytes, GCMP_ZIP_SATURATED_32) ||
        !agree(end->directory_at, wide.directory_at, GCMP_ZIP_SATURATED_32)) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, wide.at, "the two end records disagree");
    }
    *end = wide;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_zip_locate(struct gcmp_zip_archive *archive) {
    uint64_t at = 0;
    struct end_record end = {0};
    GCMP_TRY(find_end(archive, &at));
    GCMP_TRY(read_end(archive, at, &end));
    GCMP_TRY(read_end64(archive, &end));
    if (end.disk != 0 || end.directory_disk != 0 || end.entries_here != end.entries) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_UNSUPPORTED, end.at, "an archive of several volumes");
    }
    uint64_t directory_end;
    if (!gcmp_add_u64(end.directory_at, end.directory_bytes, &directory_end) ||
        directory_end != end.at) {
        GCMP_ZIP_FAIL(
            archive, GRADCMP_ERROR_CORRUPT, end.at,
            "directory at byte %llu of %llu bytes does not end at its end record (byte %llu)",
            (unsigned long long)end.directory_at, (unsigned long long)end.directory_bytes,
            (unsigned long long)end.at);
    }
    if (end.entries == 0 || end.entries > end.directory_bytes / GCMP_ZIP_ENTRY_BYTES) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, end.at,
                      "%llu records announced by a directory of %llu bytes",
                      (unsigned long long)end.entries, (unsigned long long)end.directory_bytes);
    }
    if (end.directory_bytes > MAX_DIRECTORY_BYTES) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_LIMIT, end.directory_at,
                      "directory of %llu bytes, at most %d are read",
                      (unsigned long long)end.directory_bytes, MAX_DIRECTORY_BYTES);
    }
    archive->directory_at = end.directory_at;
    archive->directory_bytes = end.directory_bytes;
    archive->entry_count = end.entries;
    return GRADCMP_OK;
}
