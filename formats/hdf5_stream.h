/* The helper's stream (hdf5_wire.h), record by record. */
#ifndef GCMP_FORMATS_HDF5_STREAM_H
#define GCMP_FORMATS_HDF5_STREAM_H

#include "base/arena.h"
#include "base/cursor.h"
#include "formats/hdf5_dataset.h"

struct gcmp_h5_stream {
    struct gcmp_cursor cursor;
    struct gcmp_arena *arena; /* for what records hold */
    const char *path;         /* of the HDF5 file */
    struct gradcmp_error *error;
};

struct gcmp_h5_chunk {
    uint64_t offset_bytes, length_bytes;
    uint32_t skipped;
};

/* The stream itself is wrong, as only a helper out of its mind writes it. */
enum gradcmp_status gcmp_h5_stream_fail(const struct gcmp_h5_stream *stream);

/* Check the beginning. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_stream_begin(struct gcmp_h5_stream *stream);
/* Read the tag of the next record. An ERROR is returned as the status that it tells. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_tag(struct gcmp_h5_stream *stream,
                                                      enum gcmp_h5_tag *tag);
/* Read the fields of a record. Texts, in the arena, hold no NUL. `chunks`: how many CHUNK records
 * follow. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_dataset(struct gcmp_h5_stream *stream,
                                                          struct gcmp_h5_dataset *dataset,
                                                          uint64_t *chunks);
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_chunk(struct gcmp_h5_stream *stream,
                                                        struct gcmp_h5_chunk *chunk);
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_link(struct gcmp_h5_stream *stream,
                                                       const char **path, const char **target);
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_number(struct gcmp_h5_stream *stream,
                                                         const char **name, uint64_t *value);

GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_layer(struct gcmp_h5_stream *stream,
                                                        uint32_t *layer);
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_attribute(struct gcmp_h5_stream *stream,
                                                            const char **name, const char **text);

#endif
