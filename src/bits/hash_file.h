/* A file of fingerprints: JSON that says of itself when it is damaged. */
#ifndef GCMP_BITS_HASH_FILE_H
#define GCMP_BITS_HASH_FILE_H

#include "bits/item.h"

/* What a file holds. Each item is a value: its type is a tensor's type and shape, or a value's
 * type, and its bytes are the 32 hexadecimal digits of its XXH3-128. */
struct gcmp_bits_hashes {
    const char *layout;               /* what `of_layout` belongs to */
    struct gcmp_bits_items items;     /* the same for any sharding */
    struct gcmp_bits_items of_layout; /* only for the same layout: generators, ranks' own objects */
};

/* Write the file whole or not at all: under a temporary name in the same folder, flushed, renamed.
 * Errors: IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_hashes_write(const char *path,
                                                            struct gcmp_bits_hashes *hashes,
                                                            struct gradcmp_error *error);

/* Read a file; texts go into `arena`, lists are freed by the caller in any case. Errors: IO;
 * CORRUPT for what is no such file, another schema, or one whose own checksum differs; LIMIT;
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_hashes_read(const char *path,
                                                           struct gcmp_arena *arena,
                                                           struct gcmp_bits_hashes *out,
                                                           struct gradcmp_error *error);

#endif
