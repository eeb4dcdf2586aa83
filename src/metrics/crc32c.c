/* CRC-32C four bits at a time: event files are small, and the table is short enough to read. */
#include "metrics/crc32c.h"

/* The reflected polynomial 0x82f63b78, one entry a nibble: small enough to stand here. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t gcmp_crc32c(const unsigned char *bytes, size_t length_bytes) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length_bytes; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return crc ^ 0xffffffffu;
}

uint32_t gcmp_crc32c_masked(const unsigned char *bytes, size_t length_bytes) {
    uint32_t crc = gcmp_crc32c(bytes, length_bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
