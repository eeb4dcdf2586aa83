/* Tells one dataset through libhdf5: its type, its sizes, and where its bytes lie. */
#include "h5helper/helper.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Compact datasets lie in an object header, which is below 64 KiB. */
enum { MAX_COMPACT_BYTES = 64 << 10 };

/* Chunks are below 4 GiB. Where their bytes would be read to: addresses without memory, since the
 * driver only notes the place. If libhdf5 touched them, the process would end. */
#define LANDING_BYTES ((size_t)1 << 32)

static bool read_sizes(hid_t id, struct dataset *dataset) {
    hid_t space = H5Dget_space(id);
    H5S_class_t class = space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
    dataset->ndim = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    bool good = dataset->ndim >= 0 && class != H5S_NO_CLASS &&
                H5Sget_simple_extent_dims(space, dataset->sizes, NULL) >= 0;
    H5Sclose(space);
    if (!good) {
        return fail_part(dataset->path, "sizes");
    }
    dataset->has_elements = class != H5S_NULL;
    for (int d = 0; d < dataset->ndim; d++) {
        dataset->has_elements = dataset->has_elements && dataset->sizes[d] > 0;
    }
    if (class == H5S_NULL) {
        dataset->type.class = GCMP_H5_OTHER;
        snprintf(dataset->type.description, sizeof dataset->type.description, "nothing");
    }
    return true;
}

/* Bytes that lie in other files are never followed. */
static bool refuse_other_files(const char *path, hid_t properties) {
    if (H5Pget_layout(properties) == H5D_VIRTUAL) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": a virtual dataset, made of others",
                    path);
        return false;
    }
    if (H5Pget_external_count(properties) > 0) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": its bytes are in an external file",
                    path);
        return false;
    }
    return true;
}

static bool tell_contiguous(hid_t id, const struct dataset *dataset) {
    haddr_t offset = H5Dget_offset(id);
    if (offset == HADDR_UNDEF) {
        fail_unwritten(dataset->path, NULL, NULL);
        return false;
    }
    put_dataset(dataset, GCMP_H5_CONTIGUOUS);
    put_u64(offset);
    return true;
}

static bool tell_compact(hid_t id, const struct dataset *dataset) {
    static unsigned char bytes[MAX_COMPACT_BYTES];
    hid_t type = H5Dget_type(id), space = H5Dget_space(id);
    hssize_t elems = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    bool good = elems > 0 && size > 0 && (uint64_t)elems <= MAX_COMPACT_BYTES / size &&
                H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0;
    H5Sclose(space);
    H5Tclose(type);
    if (!good) {
        return fail_part(dataset->path, "compact elements");
    }
    put_dataset(dataset, GCMP_H5_COMPACT);
    put_text((const char *)bytes, (size_t)elems * size);
    return true;
}

/* --- chunks --- */

static bool read_filter(hid_t properties, unsigned index, struct filter *filter) {
    unsigned flags, values[GCMP_H5_MAX_VALUES] = {0};
    size_t count = GCMP_H5_MAX_VALUES;
    H5Z_filter_t id = H5Pget_filter2(properties, index, &flags, &count, values, 0, NULL, NULL);
    filter->id = (uint32_t)id;
    filter->value_count = count < GCMP_H5_MAX_VALUES ? (unsigned)count : GCMP_H5_MAX_VALUES;
    for (unsigned i = 0; i < filter->value_count; i++) {
        filter->values[i] = values[i];
    }
    return id >= 0;
}

static bool read_chunks(hid_t properties, const struct dataset *dataset, struct chunks *chunks) {
    unsigned options = 0;
    int filters = H5Pget_nfilters(properties);
    *chunks = (struct chunks){.ndim = dataset->ndim, .sizes = dataset->sizes};
    bool good = dataset->ndim > 0 &&
                H5Pget_chunk(properties, H5S_MAX_RANK, chunks->chunk) == dataset->ndim &&
                H5Pget_chunk_opts(properties, &options) >= 0 && filters >= 0 &&
                filters <= GCMP_H5_MAX_FILTERS;
    chunks->filter_count = good ? (unsigned)filters : 0;
    for (unsigned i = 0; i < chunks->filter_count && good; i++) {
        good = read_filter(properties, i, &chunks->filters[i]);
    }
    if (!good) {
        return fail_part(dataset->path, "chunks");
    }
    chunks->partial_is_unfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    return count_chunks(dataset->path, chunks);
}

static void *landing(void) {
    static void *zone;
    if (zone == NULL) {
        zone = mmap(NULL, LANDING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                    0);
    }
    return zone == MAP_FAILED ? NULL : zone;
}

/* Tell the chunk at `at`. `all_there` tells whether as many chunks are stored as the grid has.
 * H5Dread_chunk looks a chunk up in its index; H5Dget_chunk_info would go through the whole index
 * each time, and tell the same. */
static bool tell_chunk(hid_t id, const char *path, const struct chunks *chunks, const hsize_t *at,
                       bool all_there) {
    uint32_t skipped = 0;
    driver_find_begin();
    herr_t result = H5Dread_chunk(id, H5P_DEFAULT, at, &skipped, landing());
    struct place place = driver_find_end();
    if (result < 0 && all_there) {
        return fail_part(path, "index of chunks");
    }
    if (result < 0 || !place.found) {
        fail_unwritten(path, chunks, at);
        return false;
    }
    put_chunk(chunks, at, place.offset_bytes, place.length_bytes, skipped);
    return true;
}

static bool tell_chunked(hid_t id, hid_t properties, const struct dataset *dataset) {
    struct chunks chunks;
    hsize_t at[H5S_MAX_RANK] = {0}, stored = 0;
    if (!read_chunks(properties, dataset, &chunks)) {
        return false;
    }
    hid_t space = H5Dget_space(id);
    herr_t counted = space < 0 ? -1 : H5Dget_num_chunks(id, space, &stored);
    H5Sclose(space);
    if (counted < 0) {
        return fail_part(dataset->path, "index of chunks");
    }
    if (landing() == NULL) {
        helper_fail(GRADCMP_ERROR_MEMORY, "out of memory");
        return false;
    }
    put_dataset(dataset, GCMP_H5_CHUNKED);
    put_chunks(&chunks);
    for (uint64_t i = 0; i < chunks.count; i++) {
        if (!tell_chunk(id, dataset->path, &chunks, at, stored >= chunks.count)) {
            return false;
        }
        next_chunk(&chunks, at);
    }
    return true;
}

/* --- the dataset --- */

static bool tell_layout(hid_t id, hid_t properties, const struct dataset *dataset) {
    if (!refuse_other_files(dataset->path, properties)) {
        return false;
    }
    if (dataset->type.class == GCMP_H5_OTHER || !dataset->has_elements) {
        put_dataset(dataset, GCMP_H5_NO_DATA);
        return true;
    }
    switch (H5Pget_layout(properties)) {
    case H5D_CONTIGUOUS:
        return tell_contiguous(id, dataset);
    case H5D_COMPACT:
        return tell_compact(id, dataset);
    case H5D_CHUNKED:
        return tell_chunked(id, properties, dataset);
    default:
        return fail_part(dataset->path, "layout");
    }
}

bool tell_dataset(hid_t id, const char *path) {
    struct dataset dataset = {.path = path};
    hid_t properties = H5Dget_create_plist(id);
    if (properties < 0) {
        return fail_part(path, "properties");
    }
    bool good = read_type(id, path, &dataset.type) && read_sizes(id, &dataset) &&
                tell_layout(id, properties, &dataset);
    H5Pclose(properties);
    return good && put_flush();
}
