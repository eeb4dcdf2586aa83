/* Records of datasets and their chunks. */
#include "h5helper/helper.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

static void put_type(const struct type *type) {
    put_u8(type->class);
    put_u8(type->big_endian);
    put_u8(type->is_signed);
    put_u32(type->size_bytes);
    put_u32(type->precision);
    put_u32(type->exponent_bits);
    put_u32(type->mantissa_bits);
    put_u64(type->exponent_bias);
    put_text(type->description, strlen(type->description));
    put_text(type->mark, strlen(type->mark));
}

void put_dataset(const struct dataset *dataset, enum gcmp_h5_layout layout) {
    if (dataset->type.stated_layer != 0) {
        put_u8(GCMP_H5_LAYER);
        put_u32(dataset->type.stated_layer);
    }
    put_u8(GCMP_H5_DATASET);
    put_text(dataset->path, strlen(dataset->path));
    put_type(&dataset->type);
    put_u8((unsigned)dataset->ndim);
    for (int d = 0; d < dataset->ndim; d++) {
        put_u64(dataset->sizes[d]);
    }
    put_u8(layout);
}

static hsize_t grid_size(const struct chunks *chunks, int axis) {
    return chunks->sizes[axis] / chunks->chunk[axis] +
           (chunks->sizes[axis] % chunks->chunk[axis] != 0);
}

bool count_chunks(const char *path, struct chunks *chunks) {
    chunks->count = 1;
    for (int d = 0; d < chunks->ndim; d++) {
        if (chunks->chunk[d] == 0) {
            helper_fail(GRADCMP_ERROR_CORRUPT, "\"%.200s\": chunks without elements", path);
            return false;
        }
        if (!gcmp_mul_u64(chunks->count, grid_size(chunks, d), &chunks->count)) {
            chunks->count = UINT64_MAX; /* the first that is missing will be told */
            return true;
        }
    }
    return true;
}

void put_chunks(const struct chunks *chunks) {
    for (int d = 0; d < chunks->ndim; d++) {
        put_u64(chunks->chunk[d]);
    }
    put_u8(chunks->filter_count);
    for (unsigned i = 0; i < chunks->filter_count; i++) {
        const struct filter *filter = &chunks->filters[i];
        put_u32(filter->id);
        put_u8(filter->value_count);
        for (unsigned k = 0; k < filter->value_count; k++) {
            put_u32(filter->values[k]);
        }
    }
    put_u64(chunks->count);
}

void next_chunk(const struct chunks *chunks, hsize_t *at) {
    for (int d = chunks->ndim - 1; d >= 0; d--) {
        if (chunks->sizes[d] - at[d] > chunks->chunk[d]) {
            at[d] += chunks->chunk[d];
            return;
        }
        at[d] = 0;
    }
}

static bool is_partial(const struct chunks *chunks, const hsize_t *at) {
    for (int d = 0; d < chunks->ndim; d++) {
        if (chunks->sizes[d] - at[d] < chunks->chunk[d]) {
            return true;
        }
    }
    return false;
}

void put_chunk(const struct chunks *chunks, const hsize_t *at, uint64_t offset_bytes,
               uint64_t length_bytes, uint32_t skipped) {
    bool as_it_is = chunks->partial_is_unfiltered && is_partial(chunks, at);
    put_u8(GCMP_H5_CHUNK);
    put_u64(offset_bytes);
    put_u64(length_bytes);
    put_u32(as_it_is ? UINT32_MAX : skipped);
}

void fail_unwritten(const char *path, const struct chunks *chunks, const hsize_t *at) {
    char text[200] = "";
    int length = 0;
    for (int d = 0; at != NULL && d < chunks->ndim && length < (int)sizeof text - 24; d++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%llu",
                           d == 0 ? "" : ", ", (unsigned long long)at[d]);
    }
    helper_fail(GRADCMP_ERROR_CORRUPT,
                "\"%.160s\":%s%s%s was never written (its fill value is not taken for data)", path,
                at == NULL ? "" : " the chunk at [", text, at == NULL ? "" : "]");
}

bool fail_part(const char *path, const char *part) {
    char text[300];
    snprintf(text, sizeof text, "\"%.200s\": %s", path[0] == '\0' ? "/" : path, part);
    helper_fail_hdf5(text);
    return false;
}
