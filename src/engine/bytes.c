/* Moving elements: byte order and strided copies. */
#include "engine/bytes.h"

#include <stdint.h>
#include <string.h>

#define DEFINE_SWAP(BITS)                                                                          \
    static void swap##BITS(unsigned char *at, size_t length_bytes) {                               \
        for (size_t i = 0; i + BITS / 8 <= length_bytes; i += BITS / 8) {                          \
            uint##BITS##_t value;                                                                  \
            memcpy(&value, at + i, sizeof value);                                                  \
            value = __builtin_bswap##BITS(value);                                                  \
            memcpy(at + i, &value, sizeof value);                                                  \
        }                                                                                          \
    }

DEFINE_SWAP(16)
DEFINE_SWAP(32)
DEFINE_SWAP(64)

void gcmp_swap_bytes(void *bytes, size_t length_bytes, unsigned width) {
    switch (width) {
    case 2:
        swap16(bytes, length_bytes);
        break;
    case 4:
        swap32(bytes, length_bytes);
        break;
    case 8:
        swap64(bytes, length_bytes);
        break;
    default:
        break;
    }
}

/* The size is constant in each call, so that memcpy is one move. */
static inline __attribute__((always_inline)) void copy_strided(struct gcmp_row to,
                                                               const unsigned char *from,
                                                               ptrdiff_t from_step, size_t count,
                                                               size_t elem_bytes) {
    ptrdiff_t width = (ptrdiff_t)elem_bytes;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)count; i++) {
        memcpy(to.at + i * to.step * width, from + i * from_step * width, elem_bytes);
    }
}

void gcmp_copy_row(struct gcmp_row to, const unsigned char *from, ptrdiff_t from_step, size_t count,
                   unsigned elem_bytes) {
    if (to.step == 1 && from_step == 1) {
        memcpy(to.at, from, count * elem_bytes);
        return;
    }
    switch (elem_bytes) {
    case 1:
        copy_strided(to, from, from_step, count, 1);
        break;
    case 2:
        copy_strided(to, from, from_step, count, 2);
        break;
    case 4:
        copy_strided(to, from, from_step, count, 4);
        break;
    case 8:
        copy_strided(to, from, from_step, count, 8);
        break;
    default:
        copy_strided(to, from, from_step, count, 16);
        break;
    }
}
