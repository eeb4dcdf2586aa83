/* What zip.c (records) and zip_end.c (where the directory is) share. */
#ifndef GCMP_FORMATS_ZIP_PRIVATE_H
#define GCMP_FORMATS_ZIP_PRIVATE_H

#include "base/cursor.h"
#include "formats/zip.h"

/* Fixed part of a directory entry: what bounds the number of entries. What an archive begins with.
 */
enum { GCMP_ZIP_ENTRY_BYTES = 46, GCMP_ZIP_LOCAL_SIGNATURE = 0x04034b50 };

/* Numbers that say "too large for this field, see the zip64 one". */
#define GCMP_ZIP_SATURATED_16 0xffffU
#define GCMP_ZIP_SATURATED_32 0xffffffffU

/* An archive while its directory is read. Positions count from its first byte. */
struct gcmp_zip_archive {
    struct gcmp_zip *zip;
    uint64_t offset_bytes, length_bytes;
    struct gcmp_arena *arena;
    const char *path;
    struct gradcmp_error *error;
    uint64_t directory_at, directory_bytes, entry_count;
};

/* A cursor over `count` bytes at position `at` of the archive, which must hold them. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zip_fetch(const struct gcmp_zip_archive *archive,
                                                    uint64_t at, uint64_t count,
                                                    struct gcmp_cursor *out);

/* Learn where the directory is: directory_at, directory_bytes and entry_count, which fits the
 * directory's size. Nothing may lie between the directory and the end records. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zip_locate(struct gcmp_zip_archive *archive);

/* Fail at position `at` of the archive. */
#define GCMP_ZIP_FAIL(archive, code, at, ...)                                                      \
    return gcmp_error_set((archive)->error, (code), (archive)->path,                               \
                          (archive)->offset_bytes + (at), "zip: " __VA_ARGS__)

#endif
