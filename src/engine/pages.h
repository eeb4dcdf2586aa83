/* Pages of files kept in memory from one run of the engine to the next, and a count of what was
 * read: the search for causes looks at the same small parameters again and again. */
#ifndef GCMP_ENGINE_PAGES_H
#define GCMP_ENGINE_PAGES_H

#include <stdbool.h>

#include "base/dir.h"
#include "base/error.h"

/* Where bytes lie. */
struct gcmp_pages_at {
    struct gcmp_dir *dir;
    uint32_t file;
    uint64_t offset_bytes;
};

/* Thread-safe but for make, keep, clear and free. Files that are kept must outlive the pages. */
struct gcmp_pages;

/* Pages of at most `limit_bytes`; nothing is kept with 0. NULL without memory. */
struct gcmp_pages *gcmp_pages_make(uint64_t limit_bytes);
/* NULL is allowed. */
void gcmp_pages_free(struct gcmp_pages *pages);

/* Say whether what is read from now on is kept (it is at first). What is kept stays. */
void gcmp_pages_keep(struct gcmp_pages *pages, bool keep);
/* Forget all pages; the count stays. */
void gcmp_pages_clear(struct gcmp_pages *pages);

/* Bytes that pages take now. */
uint64_t gcmp_pages_kept_bytes(const struct gcmp_pages *pages);
/* Bytes that were read from files so far, whole pages as what they are. */
uint64_t gcmp_pages_read_bytes(const struct gcmp_pages *pages);

/* Read as gcmp_dir_read does, from memory where it is there. Where the limit is reached, bytes are
 * read and not kept. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pages_read(struct gcmp_pages *pages,
                                                     struct gcmp_pages_at at, void *buffer,
                                                     size_t count, struct gradcmp_error *error);

#endif
