/* What the helper program gradcmp-h5 writes on its standard output: GCMP_H5_MAGIC, then records,
 * each a tag and its fields, all integers little-endian. The last record is an END or an ERROR. A
 * text is its length (u32) and its bytes.
 *
 *   DATASET  text path; u8 class, u8 big_endian, u8 is_signed, u32 size; u32 precision, u32
 *            exponent_bits, u32 mantissa_bits, u64 exponent_bias (of a FLOAT; else 0); text what
 * the type is; text of the attribute "dtype"; u8 ndim, u64 sizes; u8 layout, and by that:
 *     CONTIGUOUS  u64 offset in the file
 *     COMPACT     text of the elements' bytes
 *     CHUNKED     u64 sizes of a chunk; u8 filters, each u32 id, u8 values, u32 values; u64 chunks:
 *                 as many CHUNK records follow, in row-major order of the grid
 *   CHUNK    u64 offset in the file, u64 bytes, u32 filters that were skipped (a bit each)
 *   LINK     text path, text target: a soft link
 *   LAYER    u32 1 + l: of the layer of the dataset that comes next
 *   TEXT     text name, text value: a text attribute of the file whose name begins with "gradcmp."
 *   NUMBER   text name, u64 value: an integer attribute of the file
 *   ERROR    u8 status (enum gradcmp_status), u64 offset, text message
 *   END      nothing
 */
#ifndef GCMP_FORMATS_HDF5_WIRE_H
#define GCMP_FORMATS_HDF5_WIRE_H

#define GCMP_H5_MAGIC "gcmp-h5\1"

enum gcmp_h5_tag {
    GCMP_H5_DATASET = 'D',
    GCMP_H5_CHUNK = 'C',
    GCMP_H5_LINK = 'L',
    GCMP_H5_NUMBER = 'N',
    GCMP_H5_LAYER = 'Y',
    GCMP_H5_TEXT = 'T',
    GCMP_H5_ERROR = 'E',
    GCMP_H5_END = 'Z'
};

enum gcmp_h5_class {
    GCMP_H5_OTHER = 0, /* nothing but the description is known */
    GCMP_H5_INTEGER,
    GCMP_H5_FLOAT, /* sign, exponent, mantissa next to each other, normalised, no padding */
    GCMP_H5_BOOL   /* one byte */
};

enum gcmp_h5_layout {
    GCMP_H5_NO_DATA = 0, /* no elements, or of a type that is not read */
    GCMP_H5_CONTIGUOUS,
    GCMP_H5_COMPACT,
    GCMP_H5_CHUNKED
};

/* Longest text attribute that is told, largest l. */
enum { GCMP_H5_MAX_TEXT = 1 << 20, GCMP_H5_MAX_LAYER = 1 << 24 };

/* Longest path, most filters of a dataset, most values of a filter that are told. */
enum { GCMP_H5_MAX_PATH = 4096, GCMP_H5_MAX_FILTERS = 32, GCMP_H5_MAX_VALUES = 4 };

#endif
