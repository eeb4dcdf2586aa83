/* What the metadata of one zarr array says: shape, chunks, and how a chunk is encoded. */
#ifndef GCMP_FORMATS_ZARR_ARRAY_H
#define GCMP_FORMATS_ZARR_ARRAY_H

#include "formats/decode.h"
#include "formats/json_doc.h"
#include "gradcmp/sys/catalogue.h"

struct gcmp_zarr_array {
    uint64_t shape[GRADCMP_MAX_NDIM];
    uint64_t chunk[GRADCMP_MAX_NDIM]; /* all chunks have this shape, those at the edges too */
    unsigned axes[GRADCMP_MAX_NDIM];  /* of a chunk in memory, from the slowest to the fastest */
    unsigned ndim;
    enum gradcmp_dtype dtype; /* NONE: elements that are no numbers that are read */
    char type[48];            /* as the metadata spells it */
    bool big_endian;
    uint64_t chunk_bytes; /* of a decoded chunk; 0 where dtype is NONE */

    enum gcmp_codec codec;
    size_t shuffled_bytes; /* size of elements whose bytes were shuffled before; 0: not shuffled */
    bool crc32c;           /* four bytes of checksum behind a chunk */

    char separator;    /* between the indices in a chunk's name */
    bool names_with_c; /* "c/0/1" (version 3) and not "0.1" */
};

/* Read .zarray (version 2). Errors: CORRUPT at the member at fault; UNSUPPORTED for a filter,
 * compressor or order that is not read; LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_read_v2(const struct gcmp_json_file *file,
                                                       struct gcmp_zarr_array *out,
                                                       struct gradcmp_error *error);

/* Read zarr.json (version 3). *is_array is false where it is a group's; then out is not set. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_read_v3(const struct gcmp_json_file *file,
                                                       struct gcmp_zarr_array *out, bool *is_array,
                                                       struct gradcmp_error *error);

/* Checks and reads that both versions share. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_read_sizes(const struct gcmp_json_file *file,
                                                          const json_t *owner, const char *name,
                                                          uint64_t *sizes, unsigned *count,
                                                          struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_check_sizes(const struct gcmp_json_file *file,
                                                           struct gcmp_zarr_array *array,
                                                           unsigned chunk_ndim,
                                                           struct gradcmp_error *error);
/* The decoder of a compressor's name; false for others. */
bool gcmp_zarr_codec(const char *name, enum gcmp_codec *codec);

#endif
