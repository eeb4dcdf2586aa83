/* Reads the header of an object of the latest format. */
#include "h5helper/newer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Limits: an object header of this size, and blocks that continue it. */
enum { MAX_HEADER_BYTES = 1 << 20, MAX_BLOCKS = 256, PREFIX_BYTES = 6 + 16 + 4 + 4 };

enum message {
    MESSAGE_DATASPACE = 0x01,
    MESSAGE_DATATYPE = 0x03,
    MESSAGE_EXTERNAL_FILES = 0x07,
    MESSAGE_LAYOUT = 0x08,
    MESSAGE_FILTERS = 0x0b,
    MESSAGE_ATTRIBUTE = 0x0c,
    MESSAGE_CONTINUATION = 0x10,
    MESSAGE_ATTRIBUTE_INFO = 0x15
};

enum { FLAG_SHARED = 2 };

/* Blocks of messages still to be read. */
struct blocks {
    struct {
        uint64_t address, length_bytes;
    } block[MAX_BLOCKS];
    unsigned count;
    bool tracks_order; /* messages have two bytes more */
};

bool newer_fail(const struct object *object, uint64_t offset_bytes, const char *what) {
    helper_fail_at(GRADCMP_ERROR_CORRUPT, offset_bytes, "\"%.200s\": %s", object->path, what);
    return false;
}

/* --- checksums: Bob Jenkins' lookup3 (2006), byte by byte --- */

static uint32_t rotate(uint32_t value, unsigned bits) {
    return value << bits | value >> (32 - bits);
}

static uint32_t word_at(const unsigned char *bytes, size_t count) {
    uint32_t word = 0;
    for (size_t i = 0; i < count && i < 4; i++) {
        word |= (uint32_t)bytes[i] << (8 * i);
    }
    return word;
}

static void mix(uint32_t *a, uint32_t *b, uint32_t *c) {
    static const unsigned char turns[] = {4, 6, 8, 16, 19, 4};
    for (size_t i = 0; i < sizeof turns; i++) {
        *a -= *c;
        *a ^= rotate(*c, turns[i]);
        *c += *b;
        uint32_t *first = a; /* the three change places */
        a = b;
        b = c;
        c = first;
    }
}

static uint32_t finish(uint32_t a, uint32_t b, uint32_t c) {
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    return (c ^ b) - rotate(b, 24);
}

static uint32_t lookup3(const unsigned char *bytes, size_t count) {
    uint32_t a = 0xdeadbeef + (uint32_t)count, b = a, c = a;
    while (count > 12) {
        a += word_at(bytes, 4);
        b += word_at(bytes + 4, 4);
        c += word_at(bytes + 8, 4);
        mix(&a, &b, &c);
        bytes += 12;
        count -= 12;
    }
    if (count == 0) {
        return c;
    }
    a += word_at(bytes, count);
    b += count > 4 ? word_at(bytes + 4, count - 4) : 0;
    c += count > 8 ? word_at(bytes + 8, count - 8) : 0;
    return finish(a, b, c);
}

/* Compare the checksum in the last bytes. A fuzzer would never find the right one. */
static bool is_intact(const unsigned char *bytes, size_t count) {
#if defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
    (void)lookup3(bytes, count - CHECKSUM_BYTES);
    return true;
#else
    return lookup3(bytes, count - CHECKSUM_BYTES) ==
           word_at(bytes + count - CHECKSUM_BYTES, CHECKSUM_BYTES);
#endif
}

/* Read bytes with a checksum at their end; NULL where that cannot be, without telling. */
static unsigned char *read_checked(uint64_t offset_bytes, size_t count) {
    unsigned char *bytes = count < CHECKSUM_BYTES ? NULL : malloc(count);
    if (bytes == NULL || !driver_read_at(offset_bytes, bytes, count) || !is_intact(bytes, count)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

unsigned char *newer_read_block(const struct object *object, uint64_t address, size_t count,
                                const char *signature) {
    uint64_t offset;
    char what[80];
    if (!gcmp_add_u64(object->base_bytes, address, &offset) || offset > driver_file_bytes() ||
        count > driver_file_bytes() - offset) {
        snprintf(what, sizeof what, "block \"%s\" of %zu bytes reaches beyond the end of the file",
                 signature, count);
        (void)newer_fail(object, driver_file_bytes(), what);
        return NULL;
    }
    unsigned char *bytes = read_checked(offset, count);
    if (bytes == NULL || memcmp(bytes, signature, strlen(signature)) != 0) {
        free(bytes);
        snprintf(what, sizeof what, "block \"%s\" has another checksum or signature", signature);
        (void)newer_fail(object, offset, what);
        return NULL;
    }
    return bytes;
}

/* --- messages; each returns false where the message is damaged --- */

static bool read_dataspace(struct object *object, struct gcmp_cursor *cursor) {
    struct dataset *dataset = &object->dataset;
    uint8_t version, ndim, flags, type;
    if (!gcmp_read_u8(cursor, &version) || version != 2 || !gcmp_read_u8(cursor, &ndim) ||
        ndim > H5S_MAX_RANK || !gcmp_read_u8(cursor, &flags) || !gcmp_read_u8(cursor, &type)) {
        return false;
    }
    dataset->ndim = ndim;
    dataset->has_elements = type != 2;
    for (unsigned d = 0; d < ndim; d++) {
        uint64_t size;
        if (!gcmp_read_u64le(cursor, &size)) {
            return false;
        }
        dataset->sizes[d] = object->max_sizes[d] = size;
        dataset->has_elements = dataset->has_elements && size > 0;
    }
    for (unsigned d = 0; d < ndim && (flags & 1) != 0; d++) {
        uint64_t size;
        if (!gcmp_read_u64le(cursor, &size) || size < dataset->sizes[d]) {
            return false;
        }
        object->max_sizes[d] = size;
    }
    return true;
}

static bool read_filter(struct gcmp_cursor *cursor, struct filter *filter) {
    uint16_t id, name_bytes = 0, flags, values;
    if (!gcmp_read_u16le(cursor, &id) || (id >= 256 && !gcmp_read_u16le(cursor, &name_bytes)) ||
        !gcmp_read_u16le(cursor, &flags) || !gcmp_read_u16le(cursor, &values) ||
        !gcmp_skip(cursor, name_bytes)) {
        return false;
    }
    filter->id = id;
    filter->value_count = values < GCMP_H5_MAX_VALUES ? values : GCMP_H5_MAX_VALUES;
    for (unsigned i = 0; i < values; i++) {
        uint32_t value;
        if (!gcmp_read_u32le(cursor, &value)) {
            return false;
        }
        if (i < GCMP_H5_MAX_VALUES) {
            filter->values[i] = value;
        }
    }
    return true;
}

static bool read_filters(struct object *object, struct gcmp_cursor *cursor) {
    uint8_t version, count;
    if (!gcmp_read_u8(cursor, &version) || version != 2 || !gcmp_read_u8(cursor, &count) ||
        count > GCMP_H5_MAX_FILTERS) {
        return false;
    }
    object->chunks.filter_count = count;
    for (unsigned i = 0; i < count; i++) {
        if (!read_filter(cursor, &object->chunks.filters[i])) {
            return false;
        }
    }
    return true;
}

/* Read what the layout message says of the index, up to its address. */
static bool read_index(struct object *object, struct gcmp_cursor *cursor, unsigned flags) {
    static const unsigned char parameter_bytes[] = {0, 0, 0, 1, 5, 6};
    uint8_t kind;
    if (!gcmp_read_u8(cursor, &kind) || kind < INDEX_SINGLE || kind > INDEX_B_TREE_2) {
        return false;
    }
    object->index = (enum index_kind)kind;
    if (kind == INDEX_SINGLE && (flags & 2) != 0) {
        return gcmp_read_u64le(cursor, &object->single_bytes) &&
               gcmp_read_u32le(cursor, &object->single_skipped);
    }
    return gcmp_skip(cursor, parameter_bytes[kind]); /* the index itself says them again */
}

static bool read_chunked(struct object *object, struct gcmp_cursor *cursor) {
    uint8_t flags, ndim, size_bytes;
    if (!gcmp_read_u8(cursor, &flags) || !gcmp_read_u8(cursor, &ndim) || ndim < 2 ||
        ndim > H5S_MAX_RANK + 1 || !gcmp_read_u8(cursor, &size_bytes) || size_bytes < 1 ||
        size_bytes > 8) {
        return false;
    }
    object->chunks.ndim = ndim - 1; /* the last one is the size of an element */
    object->chunks.partial_is_unfiltered = (flags & 1) != 0;
    for (unsigned d = 0; d < ndim; d++) {
        uint64_t size;
        if (!gcmp_read_le(cursor, size_bytes, &size)) {
            return false;
        }
        if (d + 1u < ndim) {
            object->chunks.chunk[d] = size;
        }
    }
    return read_index(object, cursor, flags) && gcmp_read_u64le(cursor, &object->data_address);
}

static bool read_layout(struct object *object, struct gcmp_cursor *cursor) {
    uint8_t version, class;
    uint16_t bytes;
    const unsigned char *data;
    if (!gcmp_read_u8(cursor, &version) || !gcmp_read_u8(cursor, &class)) {
        return false;
    }
    object->layout_version = version;
    object->layout_class = class;
    if (version != 5) {
        return true; /* libhdf5 knows why it refuses the object */
    }
    switch (class) {
    case H5D_COMPACT:
        if (!gcmp_read_u16le(cursor, &bytes) || !gcmp_read_bytes(cursor, bytes, &data)) {
            return false;
        }
        memcpy(object->compact, data, bytes);
        object->compact_bytes = bytes;
        return true;
    case H5D_CONTIGUOUS:
        return gcmp_read_u64le(cursor, &object->data_address);
    case H5D_CHUNKED:
        return read_chunked(object, cursor);
    default:
        return true;
    }
}

static bool read_attribute_info(struct object *object, struct gcmp_cursor *cursor) {
    uint8_t version, flags;
    uint64_t heap;
    if (!gcmp_read_u8(cursor, &version) || !gcmp_read_u8(cursor, &flags) ||
        !gcmp_skip(cursor, (flags & 1) != 0 ? 2 : 0) || !gcmp_read_u64le(cursor, &heap)) {
        return false;
    }
    object->has_dense_attributes = heap != UINT64_MAX;
    return true;
}

static bool read_continuation(struct blocks *blocks, struct gcmp_cursor *cursor) {
    if (blocks->count == MAX_BLOCKS) {
        return false;
    }
    return gcmp_read_u64le(cursor, &blocks->block[blocks->count].address) &&
           gcmp_read_u64le(cursor, &blocks->block[blocks->count++].length_bytes);
}

static bool read_message(struct object *object, struct blocks *blocks, unsigned type,
                         struct gcmp_cursor *cursor) {
    switch (type) {
    case MESSAGE_DATASPACE:
        return read_dataspace(object, cursor);
    case MESSAGE_DATATYPE:
        return newer_read_type(cursor, &object->dataset.type);
    case MESSAGE_LAYOUT:
        return read_layout(object, cursor);
    case MESSAGE_FILTERS:
        return read_filters(object, cursor);
    case MESSAGE_ATTRIBUTE:
        return newer_read_attribute(object, cursor);
    case MESSAGE_ATTRIBUTE_INFO:
        return read_attribute_info(object, cursor);
    case MESSAGE_EXTERNAL_FILES:
        object->has_external_files = true;
        return true;
    case MESSAGE_CONTINUATION:
        return read_continuation(blocks, cursor);
    default:
        return true;
    }
}

/* Read the messages of one block. What is left at its end and is too short for one is a gap. */
static bool read_messages(struct object *object, struct blocks *blocks,
                          struct gcmp_cursor *cursor) {
    size_t head = 4u + (blocks->tracks_order ? 2 : 0);
    while (gcmp_cursor_left(cursor) >= head) {
        uint8_t type, flags;
        uint16_t bytes;
        const unsigned char *data;
        if (!gcmp_read_u8(cursor, &type) || !gcmp_read_u16le(cursor, &bytes) ||
            !gcmp_read_u8(cursor, &flags) || !gcmp_skip(cursor, head - 4) ||
            !gcmp_read_bytes(cursor, bytes, &data)) {
            return false;
        }
        struct gcmp_cursor message = gcmp_cursor_make(data, bytes, 0);
        bool shared = (flags & FLAG_SHARED) != 0 && type != MESSAGE_LAYOUT;
        if (!shared && !read_message(object, blocks, type, &message)) {
            return false;
        }
    }
    return true;
}

/* --- the header --- */

/* Read the first block of the header. Its messages begin at *start; NULL where this is no header of
 * version 2. */
static unsigned char *read_first_block(const struct object *object, struct blocks *blocks,
                                       size_t *start, size_t *count) {
    unsigned char prefix[PREFIX_BYTES];
    uint64_t left =
        driver_file_bytes() < object->header_bytes ? 0 : driver_file_bytes() - object->header_bytes;
    size_t have = left < sizeof prefix ? (size_t)left : sizeof prefix;
    struct gcmp_cursor cursor = gcmp_cursor_make(prefix, have, 0);
    const unsigned char *signature;
    uint8_t version, flags;
    uint64_t size;
    if (!driver_read_at(object->header_bytes, prefix, have) ||
        !gcmp_read_bytes(&cursor, 4, &signature) || memcmp(signature, "OHDR", 4) != 0 ||
        !gcmp_read_u8(&cursor, &version) || version != 2 || !gcmp_read_u8(&cursor, &flags) ||
        !gcmp_skip(&cursor, (flags & 0x20) != 0 ? 16 : 0) ||
        !gcmp_skip(&cursor, (flags & 0x10) != 0 ? 4 : 0) ||
        !gcmp_read_le(&cursor, 1u << (flags & 3), &size) || size > MAX_HEADER_BYTES) {
        return NULL;
    }
    blocks->tracks_order = (flags & 4) != 0;
    *start = cursor.at_bytes;
    *count = (size_t)size;
    return read_checked(object->header_bytes, *start + *count + CHECKSUM_BYTES);
}

/* Read a block that continues the header. */
static bool read_next_block(struct object *object, struct blocks *blocks, unsigned which) {
    uint64_t length = blocks->block[which].length_bytes;
    if (length < 8 || length > MAX_HEADER_BYTES) {
        return newer_fail(object, object->header_bytes,
                          "object header goes on in a block of a "
                          "size that cannot be");
    }
    unsigned char *bytes =
        newer_read_block(object, blocks->block[which].address, (size_t)length, "OCHK");
    if (bytes == NULL) {
        return false;
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes + 4, (size_t)length - 8, 0);
    bool good = read_messages(object, blocks, &cursor);
    free(bytes);
    return good || newer_fail(object, object->header_bytes, "object header: a damaged message");
}

/* Read all blocks of the header. */
static enum newer read_header(struct object *object) {
    struct blocks blocks = {.count = 0};
    size_t start, count;
    unsigned char *bytes = read_first_block(object, &blocks, &start, &count);
    if (bytes == NULL) {
        return NEWER_NONE;
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes + start, count, 0);
    bool good = read_messages(object, &blocks, &cursor);
    free(bytes);
    if (!good) {
        return object->layout_version == 5 && !helper_has_failed() &&
                       !newer_fail(object, object->header_bytes, "object header: a damaged message")
                   ? NEWER_FAILED
                   : NEWER_NONE;
    }
    for (unsigned i = 0; i < blocks.count; i++) {
        if (!read_next_block(object, &blocks, i)) {
            return NEWER_FAILED;
        }
    }
    return object->layout_version == 5 ? NEWER_TOLD : NEWER_NONE;
}

/* --- the dataset --- */

static bool check_object(const struct object *object) {
    const struct type *type = &object->dataset.type;
    if (object->has_external_files || object->layout_class == H5D_VIRTUAL) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED, "\"%.200s\": its bytes are in %s", object->path,
                    object->has_external_files ? "an external file" : "other datasets");
        return false;
    }
    if (object->has_dense_attributes && type->class == GCMP_H5_INTEGER && !type->is_signed &&
        type->size_bytes <= 2) {
        helper_fail(GRADCMP_ERROR_UNSUPPORTED,
                    "\"%.200s\": too many attributes to tell whether its integers are bfloat16; "
                    "needs libhdf5 2.0",
                    object->path);
        return false;
    }
    return true;
}

static bool tell_compact(const struct object *object) {
    uint64_t elems, bytes;
    const struct dataset *dataset = &object->dataset;
    if (!gcmp_product((const uint64_t *)dataset->sizes, (unsigned)dataset->ndim, &elems) ||
        !gcmp_mul_u64(elems, dataset->type.size_bytes, &bytes) || bytes != object->compact_bytes) {
        return newer_fail(object, object->header_bytes, "compact elements of another size");
    }
    put_dataset(dataset, GCMP_H5_COMPACT);
    put_text((const char *)object->compact, object->compact_bytes);
    return true;
}

static bool tell_contiguous(const struct object *object) {
    uint64_t offset;
    if (object->data_address == UINT64_MAX) {
        fail_unwritten(object->path, NULL, NULL);
        return false;
    }
    if (!gcmp_add_u64(object->base_bytes, object->data_address, &offset)) {
        return newer_fail(object, object->header_bytes, "an address that cannot be");
    }
    put_dataset(&object->dataset, GCMP_H5_CONTIGUOUS);
    put_u64(offset);
    return true;
}

static bool tell(struct object *object) {
    if (!check_object(object)) {
        return false;
    }
    if (object->dataset.type.class == GCMP_H5_OTHER || !object->dataset.has_elements) {
        put_dataset(&object->dataset, GCMP_H5_NO_DATA);
        return true;
    }
    switch (object->layout_class) {
    case H5D_COMPACT:
        return tell_compact(object);
    case H5D_CONTIGUOUS:
        return tell_contiguous(object);
    case H5D_CHUNKED:
        return newer_tell_chunks(object);
    default:
        return newer_fail(object, object->header_bytes, "a layout that is not known");
    }
}

enum newer newer_tell(uint64_t base_bytes, haddr_t address, const char *path) {
    static struct object object; /* large; one at a time */
    memset(&object, 0, sizeof object);
    object.base_bytes = base_bytes;
    object.path = object.dataset.path = path;
    if (!gcmp_add_u64(base_bytes, address, &object.header_bytes)) {
        return NEWER_NONE;
    }
    enum newer read = read_header(&object);
    if (read != NEWER_TOLD) {
        return read;
    }
    return tell(&object) && put_flush() ? NEWER_TOLD : NEWER_FAILED;
}
