/* Datasets of an HDF5 file, from what the helper tells to a catalogue, and to decoded chunks. */
#ifndef GCMP_FORMATS_HDF5_DATASET_H
#define GCMP_FORMATS_HDF5_DATASET_H

#include "formats/decode.h"
#include "formats/hdf5_wire.h"
#include "gradcmp/sys/catalogue.h"

struct gcmp_h5_filter {
    uint32_t id;
    uint32_t values[GCMP_H5_MAX_VALUES];
};

struct gcmp_h5_dataset {
    const char *path; /* without a slash in front */
    const uint64_t *sizes;
    const char *type;         /* what its elements are, for messages */
    enum gradcmp_dtype dtype; /* NONE: no numbers that are read */
    uint8_t ndim, layout;     /* enum gcmp_h5_layout */
    bool big_endian;
    uint64_t offset_bytes; /* CONTIGUOUS */
    const unsigned char *compact;
    size_t compact_bytes;

    const uint64_t *chunk; /* CHUNKED: sizes of a chunk */
    uint64_t chunk_bytes;  /* decoded */
    unsigned filter_count;
    struct gcmp_h5_filter
        filters[GCMP_H5_MAX_FILTERS]; /* in the order in which they were applied */
};

/* What resolve() needs: both arrays live in the catalogue's arena. */
struct gcmp_h5_data {
    const struct gcmp_h5_dataset *const *of_stored; /* by stored tensor */
    uint32_t *skipped;                              /* by source: filters that were left out */
};

/* Read the stream of the helper into the catalogue, format_data and all. Every number in it is
 * checked as if it came from the file. Errors: those that the stream tells; CORRUPT, UNSUPPORTED
 * for a filter, type or link that is not read; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_read_stream(struct gradcmp_catalogue *catalogue,
                                                         uint32_t file, const unsigned char *bytes,
                                                         size_t count, struct gradcmp_error *error);

/* True where a filter is undone by this program. */
bool gcmp_h5_knows_filter(uint32_t id);

/* Undo the filters of a chunk but those in the mask `skipped`; *out has chunk_bytes and is the
 * caller's. Errors: those of decode.h; CORRUPT for another checksum. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_undo_filters(const struct gcmp_h5_dataset *dataset,
                                                          const struct gcmp_bytes *chunk,
                                                          uint32_t skipped, struct gcmp_bytes *out,
                                                          struct gradcmp_error *error);

#endif
