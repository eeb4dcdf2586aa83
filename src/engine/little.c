/* On a little-endian host nothing is copied. */
#include "engine/little.h"

#include <stdbool.h>
#include <string.h>

#include "base/dtype.h"
#include "engine/bytes.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

int gcmp_give_little(const void *elems, size_t length_bytes, enum gradcmp_dtype dtype,
                     int (*take)(void *user, const void *bytes, size_t count), void *user) {
    (void)dtype;
    return take(user, elems, length_bytes);
}

#else

enum { PART_BYTES = 4096 };

int gcmp_give_little(const void *elems, size_t length_bytes, enum gradcmp_dtype dtype,
                     int (*take)(void *user, const void *bytes, size_t count), void *user) {
    bool is_complex = dtype == GRADCMP_DTYPE_COMPLEX64 || dtype == GRADCMP_DTYPE_COMPLEX128;
    unsigned width = gcmp_dtype_bytes(dtype) / (is_complex ? 2 : 1);
    const unsigned char *from = elems;
    unsigned char part[PART_BYTES];
    int result = 0;
    while (length_bytes > 0 && result == 0) {
        size_t count = length_bytes < sizeof part ? length_bytes : sizeof part;
        memcpy(part, from, count);
        if (width > 1) {
            gcmp_swap_bytes(part, count, width);
        }
        result = take(user, part, count);
        from += count;
        length_bytes -= count;
    }
    return result;
}

#endif
