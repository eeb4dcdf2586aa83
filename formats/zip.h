/* The directory of a zip archive as torch.save writes it, with the exact byte range of each record.
 * The archive is a range of a file: a whole .pt, or one item of a .distcp. */
#ifndef GCMP_FORMATS_ZIP_H
#define GCMP_FORMATS_ZIP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/dir.h"
#include "base/error.h"

struct gcmp_zip_record {
    const char *name;      /* below the archive's one root folder ("data.pkl", "data/0") */
    uint64_t offset_bytes; /* of the data, in the file */
    uint64_t length_bytes;
    uint32_t crc32; /* 0: none */
};

/* Bytes of the file that were read on the way and are kept, so that small records need no further
 * read. */
struct gcmp_zip_window {
    const unsigned char *bytes;
    uint64_t offset_bytes; /* in the file */
    size_t count;
};

struct gcmp_zip {
    struct gcmp_zip_record *records; /* in the order of the central directory */
    size_t count;
    struct gcmp_dir *dir;
    uint32_t file;
    struct gcmp_zip_window head, tail;
    size_t *by_name; /* indices of records, sorted by name without regard to letter case */
};

/* Read the directory of the archive in [offset, offset + length) of a file. Stored records only
 * (method 0); compressed, encrypted, overlapping, duplicate or out-of-range records are errors, as
 * are a directory and local headers that disagree where it matters. Records live in `arena`. An
 * archive of at most 16 KiB costs one read, a larger one of few records two. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zip_open(struct gcmp_dir *dir, uint32_t file,
                                                   uint64_t offset, uint64_t length,
                                                   struct gcmp_arena *arena, struct gcmp_zip *out,
                                                   struct gradcmp_error *error);

/* Fill by_name from records and count; of names that differ in letter case alone, either may be
 * found. For those who put records together that no archive's directory lists. False without
 * memory. */
bool gcmp_zip_index(struct gcmp_zip *zip, struct gcmp_arena *arena);

/* Find a record by its name below the archive's one root folder ("data.pkl", "data/0"); letter case
 * does not matter, as in torch. NULL if absent. */
const struct gcmp_zip_record *gcmp_zip_find(const struct gcmp_zip *zip, const char *name);

/* Read a whole record that is to be interpreted (data.pkl, byteorder) and check its checksum where
 * it has one. *bytes lives in `arena` or in the archive's windows. Errors: LIMIT for more than
 * `limit` bytes; CORRUPT at the record's first byte where the checksum differs. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zip_read_record(const struct gcmp_zip *zip,
                                                          const struct gcmp_zip_record *record,
                                                          uint64_t limit, struct gcmp_arena *arena,
                                                          const unsigned char **bytes,
                                                          struct gradcmp_error *error);

#endif
