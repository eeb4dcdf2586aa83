/* CRC-32C (Castagnoli), and the masked form in which TFRecord files store it. */
#ifndef GCMP_METRICS_CRC32C_H
#define GCMP_METRICS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t gcmp_crc32c(const unsigned char *bytes, size_t length_bytes);

/* Rotated right by 15 bits plus 0xa282ead8, so that a checksum of bytes that hold checksums is no
 * special case (TensorFlow's record format). */
uint32_t gcmp_crc32c_masked(const unsigned char *bytes, size_t length_bytes);

#endif
