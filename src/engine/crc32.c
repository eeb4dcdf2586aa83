/* Checksums by libdeflate, which uses the processor's instructions; shifts by zlib. */
#include "engine/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

/* Older libdeflate multiplies 128 bits at a time, at 12 GB/s where processors that multiply 256
 * (VPCLMULQDQ) could do 24. Since 1.20 it does that by itself. */
#if defined(__x86_64__) && LIBDEFLATE_VERSION_MAJOR == 1 && LIBDEFLATE_VERSION_MINOR < 20

#include <immintrin.h>

enum { VECTORS = 8, STRIDE_BYTES = VECTORS * 32, LEAST_BYTES = 4 * STRIDE_BYTES };

/* Bytes that are replaced by the last STRIDE_BYTES of them, made to have the same checksum. Bytes
 * are a polynomial over GF(2), first bits being the highest powers; those of a 128-bit half of a
 * vector, h x^64 + l, stand 8 * STRIDE_BYTES = 2048 bits before those that they are added to, so
 * they are h x^2112 + l x^2048, where the powers may be taken modulo the checksum's polynomial.
 * The powers are one lower since a product of numbers whose bits are in reverse order has its
 * lowest bit in second place. Source of the method: Gopal et al., Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction, 2009. */
__attribute__((target("avx2,pclmul,vpclmulqdq"))) static void
fold(uint32_t crc, const unsigned char *bytes, size_t count, unsigned char out[STRIDE_BYTES]) {
    const __m256i powers = _mm256_set_epi64x(0x03f9f86300000000, 0x7cc8e1e700000000,
                                             0x03f9f86300000000, 0x7cc8e1e700000000);
    __m256i sums[VECTORS];
    for (size_t v = 0; v < VECTORS; v++) {
        sums[v] = _mm256_loadu_si256((const __m256i *)(bytes + 32 * v));
    }
    /* What came before is added to the first four bytes. */
    sums[0] = _mm256_xor_si256(sums[0], _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)~crc));
    for (size_t at = STRIDE_BYTES; at < count; at += STRIDE_BYTES) {
        for (size_t v = 0; v < VECTORS; v++) {
            __m256i high = _mm256_clmulepi64_epi128(sums[v], powers, 0x00);
            __m256i low = _mm256_clmulepi64_epi128(sums[v], powers, 0x11);
            __m256i next = _mm256_loadu_si256((const __m256i *)(bytes + at + 32 * v));
            sums[v] = _mm256_xor_si256(_mm256_xor_si256(high, low), next);
        }
    }
    for (size_t v = 0; v < VECTORS; v++) {
        _mm256_storeu_si256((__m256i *)(out + 32 * v), sums[v]);
    }
}

uint32_t gcmp_crc32(uint32_t crc, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    if (count >= LEAST_BYTES && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("vpclmulqdq")) {
        unsigned char folded[STRIDE_BYTES];
        size_t whole = count / STRIDE_BYTES * STRIDE_BYTES;
        fold(crc, at, whole, folded);
        crc = libdeflate_crc32(~0u, folded, sizeof folded); /* nothing is added before them */
        at += whole;
        count -= whole;
    }
    return libdeflate_crc32(crc, at, count);
}

#else

uint32_t gcmp_crc32(uint32_t crc, const void *bytes, size_t count) {
    return libdeflate_crc32(crc, bytes, count);
}

#endif

uint32_t gcmp_crc32_shift(uint32_t crc, uint64_t after) {
    return after == 0 ? crc : (uint32_t)crc32_combine64(crc, 0, (z_off64_t)after);
}
