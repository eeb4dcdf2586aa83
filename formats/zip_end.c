/* The end of a zip archive: its end records, classic and zip64, and where they say the directory
 * is. */
#include "formats/zip_private.h"

#include <string.h>

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

/* The numbers of an end record, classic or zip64, as they follow each other. */
struct end_record {
    uint64_t disk, directory_disk, entries_here, entries, directory_bytes, directory_at;
    uint64_t comment_bytes; /* classic alone */
    uint64_t at;            /* first byte of the end records: where the directory must end */
};
enum { CLASSIC_NUMBERS = 7, WIDE_NUMBERS = 6 };
static const char CLASSIC_WIDTHS[] = "42222442", WIDE_WIDTHS[] = "484448888";
static const char LOCATOR_WIDTHS[] = "4484";

/* Read the numbers at position `at`, of `bytes` bytes, which the archive holds. */
static enum gradcmp_status read_numbers(const struct gcmp_zip_archive *archive, uint64_t at,
                                        unsigned bytes, const char *widths, uint64_t *numbers) {
    struct gcmp_cursor cursor;
    GCMP_TRY(gcmp_zip_fetch(archive, at, bytes, &cursor));
    (void)gcmp_read_numbers(&cursor, widths, numbers); /* all of them were fetched */
    return GRADCMP_OK;
}

/* Without an end record, the first bytes tell an archive that was cut short from other content. */
static enum gradcmp_status fail_without_end(const struct gcmp_zip_archive *archive) {
    uint64_t signature = 0;
    GCMP_TRY(read_numbers(archive, 0, 4, "4", &signature));
    if (signature != GCMP_ZIP_LOCAL_SIGNATURE) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, 0,
                      "not a torch.save archive: expected it to begin with %08x, found %08x",
                      __builtin_bswap32(GCMP_ZIP_LOCAL_SIGNATURE),
                      __builtin_bswap32((uint32_t)signature));
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
        uint64_t numbers[1 + CLASSIC_NUMBERS] = {0};
        (void)gcmp_cursor_seek(&cursor, skip); /* a whole record lies there */
        (void)gcmp_read_numbers(&cursor, "4", numbers);
        if (numbers[0] != END_SIGNATURE) {
            continue;
        }
        (void)gcmp_read_numbers(&cursor, CLASSIC_WIDTHS + 1, numbers + 1);
        bool this_fits = skip + END_BYTES_FIXED + numbers[CLASSIC_NUMBERS] == span;
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

/* Find and read the classic end record. */
static enum gradcmp_status read_end(const struct gcmp_zip_archive *archive,
                                    struct end_record *end) {
    uint64_t numbers[1 + CLASSIC_NUMBERS] = {0};
    if (archive->length_bytes < END_BYTES_FIXED) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, archive->length_bytes,
                      "%llu bytes cannot hold an archive",
                      (unsigned long long)archive->length_bytes);
    }
    end->at = archive->length_bytes - END_BYTES_FIXED;
    GCMP_TRY(read_numbers(archive, end->at, END_BYTES_FIXED, CLASSIC_WIDTHS, numbers));
    if (numbers[0] != END_SIGNATURE || numbers[CLASSIC_NUMBERS] != 0) {
        GCMP_TRY(find_end_with_comment(archive, &end->at));
        GCMP_TRY(read_numbers(archive, end->at, END_BYTES_FIXED, CLASSIC_WIDTHS, numbers));
    }
    memcpy(end, numbers + 1, CLASSIC_NUMBERS * sizeof *numbers);
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
    uint64_t numbers[4] = {0}; /* signature, disk, position, disks */
    *found = false;
    if (end_at < LOCATOR_BYTES) {
        return GRADCMP_OK;
    }
    uint64_t locator_at = end_at - LOCATOR_BYTES;
    GCMP_TRY(read_numbers(archive, locator_at, LOCATOR_BYTES, LOCATOR_WIDTHS, numbers));
    if (numbers[0] != LOCATOR_SIGNATURE) {
        return GRADCMP_OK;
    }
    *at = numbers[2];
    *found = true;
    if (numbers[1] != 0 || numbers[3] > 1 || *at > locator_at ||
        locator_at - *at < END64_BYTES_MIN) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, locator_at,
                      "zip64 locator points to byte %llu, outside the archive",
                      (unsigned long long)*at);
    }
    return GRADCMP_OK;
}

/* Read the zip64 end record, which must reach up to its locator. */
static enum gradcmp_status read_wide(const struct gcmp_zip_archive *archive, uint64_t locator_at,
                                     struct end_record *wide) {
    uint64_t numbers[3 + WIDE_NUMBERS] = {0}; /* signature, bytes, versions, then the others */
    GCMP_TRY(read_numbers(archive, wide->at, END64_BYTES_MIN, WIDE_WIDTHS, numbers));
    if (numbers[0] != END64_SIGNATURE || numbers[1] != locator_at - wide->at - 12) {
        GCMP_ZIP_FAIL(archive, GRADCMP_ERROR_CORRUPT, wide->at,
                      "no zip64 end record where the locator says");
    }
    memcpy(wide, numbers + 3, WIDE_NUMBERS * sizeof *numbers);
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
    struct end_record end = {0};
    GCMP_TRY(read_end(archive, &end));
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
