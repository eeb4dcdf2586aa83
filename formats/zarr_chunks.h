/* The chunks of zarr arrays, as pieces of a catalogue. */
#ifndef GCMP_FORMATS_ZARR_CHUNKS_H
#define GCMP_FORMATS_ZARR_CHUNKS_H

#include "formats/zarr_array.h"
#include "gradcmp/sys/format.h"

/* Add an array that lies in `folder` ("" for the checkpoint's own) under `key`, with a piece for
 * each chunk. Chunks that are stored as they are become ranges, others items. The array must live
 * as long as the catalogue. Errors: CORRUPT for a chunk that is missing (a fill value is never
 * taken for a gradient) or, stored as it is, of another size; IO; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_add_array(struct gradcmp_catalogue *catalogue,
                                                         const char *folder, const char *key,
                                                         const struct gcmp_zarr_array *array,
                                                         struct gradcmp_error *error);

/* Decode a chunk of an array: what the format's resolve() does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_zarr_decode(const struct gcmp_zarr_array *array,
                                                      const struct gradcmp_catalogue *catalogue,
                                                      uint32_t source, struct gradcmp_extent *out,
                                                      struct gradcmp_error *error);

#endif
