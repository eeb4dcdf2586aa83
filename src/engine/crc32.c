/* Checksums by libdeflate, which uses the processor's instructions; shifts by zlib. */
#include "engine/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

uint32_t gcmp_crc32(uint32_t crc, const void *bytes, size_t count) {
    return libdeflate_crc32(crc, bytes, count);
}

uint32_t gcmp_crc32_shift(uint32_t crc, uint64_t after) {
    return after == 0 ? crc : (uint32_t)crc32_combine64(crc, 0, (z_off64_t)after);
}
