/* Bytes on their way through decoders: a range of a checkpoint's file at first; after a decoder,
 * memory while they are few, and else an unlinked temporary file. */
#ifndef GCMP_FORMATS_DECODED_H
#define GCMP_FORMATS_DECODED_H

#include "base/dir.h"
#include "base/error.h"
#include "gradcmp/sys/format.h"

/* Decoded bytes that are kept in memory at most; more go to a file in $TMPDIR (/var/tmp, /tmp). */
enum { GCMP_DECODED_MAX_MEMORY = 4 << 20 };

enum gcmp_bytes_kind { GCMP_BYTES_FILE, GCMP_BYTES_MEMORY, GCMP_BYTES_TEMPORARY };

/* A run of bytes. Owns its memory or its descriptor (gcmp_bytes_free). */
struct gcmp_bytes {
    struct gcmp_dir *dir;  /* the file that the bytes come from: for messages, and for */
    uint32_t file;         /* GCMP_BYTES_FILE to read from */
    uint64_t origin_bytes; /* offset in that file of what they come from */
    uint64_t length_bytes;
    enum gcmp_bytes_kind kind;
    unsigned char *memory; /* MEMORY: malloced */
    int fd;                /* TEMPORARY: from its byte 0 */
};

/* A range of a checkpoint's file, which must lie inside of it. */
struct gcmp_bytes gcmp_bytes_of_file(struct gcmp_dir *dir, uint32_t file, uint64_t offset_bytes,
                                     uint64_t length_bytes);
void gcmp_bytes_free(struct gcmp_bytes *bytes);

/* Read `count` bytes from byte `at` of the run, which must lie inside of it. Status: IO, CORRUPT
 * where the file became shorter. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bytes_read(const struct gcmp_bytes *bytes, uint64_t at,
                                                     void *buffer, size_t count,
                                                     struct gradcmp_error *error);

/* Fail at byte `at` of the run, or at its origin where the run was decoded. */
#define GCMP_BYTES_FAIL(bytes, at, error, code, ...)                                               \
    return gcmp_failure(gcmp_error_set(                                                            \
        (error), (code), gcmp_dir_file_path((bytes)->dir, (bytes)->file),                          \
        (bytes)->origin_bytes + ((bytes)->kind == GCMP_BYTES_FILE ? (at) : 0), __VA_ARGS__))

/* Give decoded bytes to an extent: sets decoded (or decoded_fd) and the record's place; the bytes
 * are the extent's afterwards. */
void gcmp_bytes_give(struct gcmp_bytes *bytes, struct gradcmp_extent *extent);

/* Collects what a decoder makes of `source`, which must stay while it is used. */
struct gcmp_writer {
    const struct gcmp_bytes *source;
    struct gcmp_bytes made;
    uint64_t max_bytes;
    uint64_t min_bytes;    /* for decoders that learn early how much there will be; else 0 */
    unsigned char *buffer; /* TEMPORARY: what is not yet in the file */
    size_t buffered;
    unsigned char spare; /* where the byte too many goes */
};

/* Begin; at most max_bytes can be written. Free it whatever happens (gcmp_writer_free). Status: IO
 * where no temporary file can be made, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_writer_open(struct gcmp_writer *writer,
                                                      const struct gcmp_bytes *source,
                                                      uint64_t max_bytes,
                                                      struct gradcmp_error *error);
void gcmp_writer_free(struct gcmp_writer *writer);

/* Where the next bytes go: never empty; after max_bytes there is room for one byte, and committing
 * it fails. */
unsigned char *gcmp_writer_room(struct gcmp_writer *writer, size_t *room);

/* Add `count` bytes that were put into the room. Status: CORRUPT, at the source's origin, for a
 * byte more than max_bytes; IO. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_writer_commit(struct gcmp_writer *writer, size_t count,
                                                        struct gradcmp_error *error);
/* Add bytes that lie elsewhere. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_writer_add(struct gcmp_writer *writer, const void *bytes,
                                                     size_t count, struct gradcmp_error *error);

/* End; *out is owned by the caller. CORRUPT where there are fewer than min_bytes. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_writer_finish(struct gcmp_writer *writer,
                                                        uint64_t min_bytes, struct gcmp_bytes *out,
                                                        struct gradcmp_error *error);

#endif
