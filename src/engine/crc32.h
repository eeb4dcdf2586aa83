/* The checksum of zip and gzip (CRC-32, polynomial 0xedb88320), fast, and of pieces in any order.
 */
#ifndef GCMP_ENGINE_CRC32_H
#define GCMP_ENGINE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continue the checksum `crc32` (0 at the start) over more bytes. */
uint32_t gcmp_crc32(uint32_t crc32, const void *bytes, size_t count);

/* What a piece with this checksum adds (by exclusive or) to that of the whole, where `after` bytes
 * of other pieces follow it. */
uint32_t gcmp_crc32_shift(uint32_t crc32, uint64_t after);

#endif
