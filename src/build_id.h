/* Which build of the library this is: more than its version, which stays while it is changed. */
#ifndef GCMP_BUILD_ID_H
#define GCMP_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>

enum { GCMP_BUILD_ID_BYTES = 64 };

struct gcmp_build_id {
    unsigned char bytes[GCMP_BUILD_ID_BYTES];
    size_t count;
};

/* Find the identity of the file that the library's code is in, the shared library or a program that
 * it was linked into: the GNU build-id, and without one the file's size and times. False where
 * there is neither. */
bool gcmp_build_id_find(struct gcmp_build_id *id);

/* Take the GNU build-id from the notes of a file, which are aligned to 4 or 8 bytes; false where
 * there is none, or notes go beyond the bytes. */
bool gcmp_build_id_take(const unsigned char *notes, size_t byte_count, size_t alignment,
                        struct gcmp_build_id *id);

#endif
