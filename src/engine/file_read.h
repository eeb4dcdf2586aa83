/* One read of a stretch of a file: through the page cache or past it, now or under way in a ring.
 */
#ifndef GCMP_ENGINE_FILE_READ_H
#define GCMP_ENGINE_FILE_READ_H

#include "engine/pages.h"
#include "engine/ring.h"

/* A read of `count` bytes at `at`, of which the first `needed` must be there (a direct read is
 * rounded up beyond the end of what is wanted, and perhaps of the file). Filled in by the caller
 * up to here. */
struct gcmp_file_read {
    struct gcmp_pages_at at;
    unsigned char *buffer; /* room for `count` bytes */
    size_t count, needed;
    bool is_direct; /* offset, count and buffer are multiples of GCMP_DIRECT_BYTES */

    /* Private to file_read.c. */
    struct gcmp_ring_read ring;
};

/* Make a direct read of what holds `wanted` bytes at `at`, and tell where in the buffer the first
 * of them will be. False where it would take more than `room` bytes. */
bool gcmp_file_read_align(struct gcmp_file_read *read, struct gcmp_pages_at at, size_t wanted,
                          unsigned char *buffer, size_t room, size_t *skip);

/* Start a read. False where it cannot be: it is then to be made by gcmp_file_read_now. */
bool gcmp_file_read_start(struct gcmp_file_read *read, const struct gcmp_ring_way *way,
                          struct gcmp_ring *ring);
/* Wait for a read that was started, and see how it ended. Status: as gcmp_dir_read. What the system
 * refuses to do in this way, though not the reading itself, is read as gcmp_dir_read does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_file_read_end(struct gcmp_file_read *read,
                                                        const struct gcmp_ring_way *way,
                                                        struct gcmp_ring *ring,
                                                        struct gradcmp_error *error);
/* Read, and wait. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_file_read_now(struct gcmp_file_read *read,
                                                        struct gradcmp_error *error);

#endif
