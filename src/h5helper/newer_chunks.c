/* Tells the chunks of a dataset from the elements of its index. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "h5helper/newer_index.h"

enum { FILTERED_BYTES = 8 + 8 + 4, PLAIN_BYTES = 8 };

size_t element_bytes(const struct elements *elements) {
    return elements->filtered ? FILTERED_BYTES : PLAIN_BYTES;
}

bool read_element(const struct elements *elements, struct gcmp_cursor *cursor,
                  struct element *element) {
    *element = (struct element){.length_bytes = elements->chunk_bytes};
    return gcmp_read_u64le(cursor, &element->address) &&
           (!elements->filtered || (gcmp_read_u64le(cursor, &element->length_bytes) &&
                                    gcmp_read_u32le(cursor, &element->skipped)));
}

bool make_elements(struct elements *elements, uint64_t count) {
    const struct object *object = elements->object;
    if (count > driver_file_bytes() / PLAIN_BYTES) {
        helper_fail(GRADCMP_ERROR_CORRUPT,
                    "\"%.200s\": more chunks than a file of %llu bytes can hold: some were never "
                    "written",
                    object->path, (unsigned long long)driver_file_bytes());
        return false;
    }
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): under the file's bytes, so not 0 */
    elements->at = calloc((size_t)count + 1, sizeof *elements->at);
    if (elements->at == NULL) {
        helper_fail(GRADCMP_ERROR_MEMORY, "out of memory");
        return false;
    }
    elements->count = count;
    for (uint64_t i = 0; i < count; i++) {
        elements->at[i].address = UINT64_MAX;
    }
    return true;
}

bool read_run(struct elements *elements, struct gcmp_cursor *cursor, uint64_t first,
              uint64_t count) {
    struct element element;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_element(elements, cursor, &element)) {
            return false;
        }
        if (first + i < elements->count) {
            elements->at[first + i] = element;
        }
    }
    return true;
}

/* --- from the grid to indices --- */

/* Steps of the index per chunk along each axis. */
struct steps {
    uint64_t step[H5S_MAX_RANK];
};

/* Arrays are numbered by the largest grid that the dataset may grow to, with the axis that has no
 * bound, if there is one, as the slowest. */
static bool steps_of_array(const struct object *object, struct steps *steps) {
    const struct chunks *chunks = &object->chunks;
    int unbounded = -1;
    uint64_t step = 1;
    for (int d = 0; d < chunks->ndim; d++) {
        if (object->max_sizes[d] == UINT64_MAX) {
            unbounded = unbounded < 0 ? d : H5S_MAX_RANK;
        }
    }
    if (unbounded == H5S_MAX_RANK ||
        (unbounded >= 0) != (object->index == INDEX_EXTENSIBLE_ARRAY)) {
        return false;
    }
    for (int d = chunks->ndim - 1; d >= 0; d--) {
        if (d != unbounded) {
            uint64_t size = object->max_sizes[d], chunk = chunks->chunk[d];
            steps->step[d] = step;
            if (!gcmp_mul_u64(step, size / chunk + (size % chunk != 0), &step)) {
                return false;
            }
        }
    }
    if (unbounded >= 0) {
        steps->step[unbounded] = step;
    }
    return true;
}

static bool steps_of_grid(const struct chunks *chunks, struct steps *steps) {
    uint64_t step = 1;
    for (int d = chunks->ndim - 1; d >= 0; d--) {
        uint64_t size = chunks->sizes[d], chunk = chunks->chunk[d];
        steps->step[d] = step;
        if (!gcmp_mul_u64(step, size / chunk + (size % chunk != 0), &step)) {
            return false;
        }
    }
    return true;
}

/* The element of the chunk whose first element is at `at`; NULL where there is none. */
static const struct element *find_element(const struct elements *elements,
                                          const struct steps *steps, const hsize_t *at) {
    const struct chunks *chunks = &elements->object->chunks;
    uint64_t index = 0, part;
    for (int d = 0; d < chunks->ndim; d++) {
        if (!gcmp_mul_u64(at[d] / chunks->chunk[d], steps->step[d], &part) ||
            !gcmp_add_u64(index, part, &index)) {
            return NULL;
        }
    }
    return index < elements->count && elements->at[index].address != UINT64_MAX
               ? &elements->at[index]
               : NULL;
}

/* --- the simplest indexes --- */

static bool read_single(struct elements *elements) {
    const struct object *object = elements->object;
    if (!make_elements(elements, 1)) {
        return false;
    }
    elements->at[0].address = object->data_address;
    elements->at[0].length_bytes =
        elements->filtered ? object->single_bytes : elements->chunk_bytes;
    elements->at[0].skipped = object->single_skipped;
    return true;
}

/* All chunks lie behind each other. */
static bool read_implicit(struct elements *elements, const struct steps *steps) {
    const struct object *object = elements->object;
    uint64_t count = 1, offset;
    for (int d = 0; d < object->chunks.ndim; d++) {
        uint64_t last = (object->chunks.sizes[d] - 1) / object->chunks.chunk[d], part;
        if (!gcmp_mul_u64(last, steps->step[d], &part) || !gcmp_add_u64(count, part, &count)) {
            count = UINT64_MAX;
            break;
        }
    }
    if (!make_elements(elements, count)) {
        return false;
    }
    for (uint64_t i = 0; i < count && object->data_address != UINT64_MAX; i++) {
        if (!gcmp_mul_u64(i, elements->chunk_bytes, &offset) ||
            !gcmp_add_u64(offset, object->data_address, &elements->at[i].address)) {
            return newer_fail(object, object->header_bytes, "an address that cannot be");
        }
        elements->at[i].length_bytes = elements->chunk_bytes;
    }
    return true;
}

static bool read_elements(struct elements *elements, const struct steps *steps) {
    if (elements->object->data_address == UINT64_MAX) {
        return make_elements(elements, 0); /* nothing was written yet */
    }
    switch (elements->object->index) {
    case INDEX_SINGLE:
        return read_single(elements);
    case INDEX_IMPLICIT:
        return read_implicit(elements, steps);
    case INDEX_FIXED_ARRAY:
        return read_fixed_array(elements);
    case INDEX_EXTENSIBLE_ARRAY:
        return read_extensible_array(elements);
    default:
        return read_tree(elements);
    }
}

/* --- telling --- */

static bool measure_chunk(struct elements *elements) {
    const struct object *object = elements->object;
    elements->chunk_bytes = object->dataset.type.size_bytes;
    for (int d = 0; d < object->chunks.ndim; d++) {
        if (!gcmp_mul_u64(elements->chunk_bytes, object->chunks.chunk[d], &elements->chunk_bytes)) {
            return newer_fail(object, object->header_bytes, "chunks of more than 2^64 bytes");
        }
    }
    return true;
}

static bool tell_elements(const struct elements *elements, const struct steps *steps) {
    const struct object *object = elements->object;
    hsize_t at[H5S_MAX_RANK] = {0};
    put_dataset(&object->dataset, GCMP_H5_CHUNKED);
    put_chunks(&object->chunks);
    for (uint64_t i = 0; i < object->chunks.count; i++) {
        const struct element *element = find_element(elements, steps, at);
        uint64_t offset;
        if (element == NULL) {
            fail_unwritten(object->path, &object->chunks, at);
            return false;
        }
        if (!gcmp_add_u64(object->base_bytes, element->address, &offset)) {
            return newer_fail(object, object->header_bytes, "an address that cannot be");
        }
        put_chunk(&object->chunks, at, offset, element->length_bytes, element->skipped);
        next_chunk(&object->chunks, at);
    }
    return true;
}

bool newer_tell_chunks(struct object *object) {
    struct elements elements = {.object = object, .filtered = object->chunks.filter_count > 0};
    struct steps steps = {0};
    object->chunks.sizes = object->dataset.sizes;
    if (object->chunks.ndim != object->dataset.ndim) {
        return newer_fail(object, object->header_bytes, "chunks of another number of axes");
    }
    if (!count_chunks(object->path, &object->chunks) || !measure_chunk(&elements)) {
        return false;
    }
    bool by_grid = object->index == INDEX_B_TREE_2 || object->index == INDEX_SINGLE;
    if (!(by_grid ? steps_of_grid(&object->chunks, &steps) : steps_of_array(object, &steps))) {
        return newer_fail(object, object->header_bytes, "an index that does not fit the sizes");
    }
    bool good = read_elements(&elements, &steps) && tell_elements(&elements, &steps);
    free(elements.at);
    return good;
}
