/* What libgradcmp sends to the helper program when that writes an HDF5 file (`gradcmp-h5 write`,
 * the file on descriptor 1): GCMP_H5W_MAGIC, then records, each a tag and its fields, all integers
 * little-endian, a text its length (u32) and its bytes.
 *
 *   ATTRIBUTE  text name, text value: of the root group
 *   DATASET    text path, u8 dtype (enum gradcmp_dtype), u8 ndim, u64 sizes; u64 l of its layer, u8
 *              texts, each text name, text value: its attributes; then its elements, row-major,
 *              little-endian, without a count: type and sizes tell it. dtype NONE: texts, whose
 *              length in bytes is the last size, filled up with NUL. l may be NO_LAYER
 *   END        nothing
 *
 * The answer comes on descriptor 0, once: u8 status (enum gradcmp_status, or SYSTEM where the
 * system refused a write) and, up to the end of the stream, what went wrong: with SYSTEM, its
 * reason alone.
 */
#ifndef GCMP_FORMATS_HDF5_WIRE_WRITE_H
#define GCMP_FORMATS_HDF5_WIRE_WRITE_H

#define GCMP_H5W_MAGIC "gcmp-h5w1"

/* The helper's argument, the attribute that holds l, the filter of chunks. */
#define GCMP_H5W_ARGUMENT "write"
#define GCMP_H5W_LAYER    "gradcmp.layer"

enum gcmp_h5w_tag { GCMP_H5W_ATTRIBUTE = 'A', GCMP_H5W_DATASET = 'D', GCMP_H5W_END = 'Z' };

/* Longest text, most texts of a dataset. */
#define GCMP_H5W_NO_LAYER UINT64_MAX
enum {
    GCMP_H5W_MAX_LENGTH = 1 << 16, /* of a text in a dataset */
    GCMP_H5W_MAX_TEXT = 1 << 20,
    GCMP_H5W_MAX_TEXTS = 16,
    GCMP_H5W_ZSTD = 32015,
    GCMP_H5W_SYSTEM = 1 /* no gradcmp_status */
};

#endif
