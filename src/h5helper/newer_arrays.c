/* Reads fixed arrays (FAHD, FADB) and extensible arrays (EAHD, EAIB, EASB, EADB). */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "h5helper/newer_index.h"

/* Signature, version, kind of client; behind them the address of the header. */
enum { HEAD_BYTES = 6, PREFIX_BYTES = HEAD_BYTES + ADDRESS_BYTES };

static unsigned log2_floor(uint64_t value) {
    unsigned bits = 0;
    while (value > 1) {
        value >>= 1;
        bits++;
    }
    return bits;
}

/* Check version and client of a header, which tells whether its chunks are filtered. */
static bool check_head(const struct elements *elements, const unsigned char *bytes,
                       unsigned stored_element_bytes) {
    return bytes[4] == 0 && bytes[5] == (elements->filtered ? 1 : 0) &&
           stored_element_bytes == element_bytes(elements);
}

static bool fail(const struct elements *elements, const char *what) {
    return newer_fail(elements->object, elements->object->header_bytes, what);
}

/* Whether a bit, the highest first, is set in a map of pages. */
static bool has_page(const unsigned char *map, uint64_t page) {
    return (map[page / 8] >> (7 - page % 8) & 1) != 0;
}

/* Read pages of elements that lie behind each other, each with a checksum. `map` tells which were
 * ever written. `first` is the index of the first element, `count` how many there are. */
struct pages {
    uint64_t address, first, count, page_elems;
    const unsigned char *map;
    uint64_t map_first; /* bit of the first page */
};

static bool read_pages(struct elements *elements, const struct pages *pages) {
    size_t size = element_bytes(elements);
    uint64_t address = pages->address;
    for (uint64_t at = 0, page = 0; at < pages->count; at += pages->page_elems, page++) {
        uint64_t left = pages->count - at;
        uint64_t count = left < pages->page_elems ? left : pages->page_elems;
        size_t bytes = (size_t)count * size + CHECKSUM_BYTES;
        if (has_page(pages->map, pages->map_first + page)) {
            unsigned char *read = newer_read_block(elements->object, address, bytes, "");
            if (read == NULL) {
                return false;
            }
            struct gcmp_cursor cursor = gcmp_cursor_make(read, bytes, 0);
            bool good = read_run(elements, &cursor, pages->first + at, count);
            free(read);
            if (!good) {
                return false;
            }
        }
        address += bytes;
    }
    return true;
}

/* --- fixed arrays --- */

static bool read_fixed_block(struct elements *elements, uint64_t address, unsigned page_bits) {
    uint64_t page_elems = (uint64_t)1 << page_bits, count = elements->count;
    bool paged = count > page_elems;
    uint64_t page_count = count / page_elems + (count % page_elems != 0);
    size_t map_bytes = paged ? (size_t)(page_count / 8 + (page_count % 8 != 0)) : 0;
    size_t elem_bytes = paged ? 0 : (size_t)count * element_bytes(elements);
    size_t bytes = PREFIX_BYTES + map_bytes + elem_bytes + CHECKSUM_BYTES;
    unsigned char *read = newer_read_block(elements->object, address, bytes, "FADB");
    if (read == NULL) {
        return false;
    }
    bool good;
    if (paged) {
        struct pages pages = {address + bytes, 0, count, page_elems, read + PREFIX_BYTES, 0};
        good = read_pages(elements, &pages);
    } else {
        struct gcmp_cursor cursor = gcmp_cursor_make(read + PREFIX_BYTES, elem_bytes, 0);
        good = read_run(elements, &cursor, 0, count);
    }
    free(read);
    return good;
}

bool read_fixed_array(struct elements *elements) {
    enum { BYTES = HEAD_BYTES + 2 + LENGTH_BYTES + ADDRESS_BYTES + CHECKSUM_BYTES };
    unsigned char *read =
        newer_read_block(elements->object, elements->object->data_address, BYTES, "FAHD");
    if (read == NULL) {
        return false;
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(read + HEAD_BYTES + 2, BYTES - HEAD_BYTES - 2, 0);
    uint64_t count = 0, address = 0;
    unsigned page_bits = read[HEAD_BYTES + 1];
    bool good = check_head(elements, read, read[HEAD_BYTES]) && page_bits < 32 &&
                gcmp_read_u64le(&cursor, &count) && gcmp_read_u64le(&cursor, &address);
    free(read);
    if (!good) {
        return fail(elements, "fixed array of chunks of a kind that is not known");
    }
    return make_elements(elements, count) &&
           (address == UINT64_MAX || read_fixed_block(elements, address, page_bits));
}

/* --- extensible arrays --- */

/* What the header says. Behind the elements in the index block come data blocks, in groups ("super
 * blocks") of which group u has 2^(u/2) blocks of 2^((u+1)/2) * min elements. */
struct shape {
    unsigned max_bits, index_elems, min_elems, min_pointers, page_bits;
    uint64_t used;        /* index of the last element that was ever set, plus 1 */
    uint64_t index_block; /* address */
    unsigned groups;      /* in all */
    unsigned direct;      /* groups whose data blocks the index block points at */
    size_t offset_bytes;  /* of a block's place in the array, which blocks repeat */
};

static bool read_shape(struct elements *elements, struct shape *shape) {
    enum {
        FIELDS = 6,
        COUNTS = 6 * LENGTH_BYTES,
        BYTES = HEAD_BYTES + FIELDS + COUNTS + ADDRESS_BYTES + CHECKSUM_BYTES
    };
    unsigned char *read =
        newer_read_block(elements->object, elements->object->data_address, BYTES, "EAHD");
    if (read == NULL) {
        return false;
    }
    const unsigned char *field = read + HEAD_BYTES;
    *shape = (struct shape){.max_bits = field[1],
                            .index_elems = field[2],
                            .min_elems = field[3],
                            .min_pointers = field[4],
                            .page_bits = field[5]};
    /* Of the counts the fifth is the number of elements. */
    struct gcmp_cursor cursor =
        gcmp_cursor_make(field + FIELDS + 4 * LENGTH_BYTES, 2 * LENGTH_BYTES + ADDRESS_BYTES, 0);
    uint64_t ignored;
    bool good = check_head(elements, read, field[0]) && gcmp_read_u64le(&cursor, &shape->used) &&
                gcmp_read_u64le(&cursor, &ignored) && gcmp_read_u64le(&cursor, &shape->index_block);
    free(read);
    good = good && shape->max_bits <= 64 && shape->min_elems > 0 && shape->min_pointers > 1 &&
           shape->page_bits < 32 && shape->max_bits >= log2_floor(shape->min_elems);
    if (!good) {
        return fail(elements, "extensible array of chunks of a kind that is not known");
    }
    shape->groups = 1 + shape->max_bits - log2_floor(shape->min_elems);
    shape->direct = 2 * log2_floor(shape->min_pointers);
    shape->offset_bytes = (shape->max_bits + 7) / 8;
    if (shape->direct > shape->groups) {
        return fail(elements, "extensible array of chunks of a kind that is not known");
    }
    return true;
}

static uint64_t group_blocks(unsigned group) {
    return (uint64_t)1 << (group / 2);
}

static uint64_t block_elems(const struct shape *shape, unsigned group) {
    return ((uint64_t)1 << ((group + 1) / 2)) * shape->min_elems;
}

static uint64_t group_start(const struct shape *shape, unsigned group) {
    return shape->index_elems + (((uint64_t)1 << group) - 1) * shape->min_elems;
}

/* A data block: its elements, and which of its pages were written, where it has pages. */
struct block {
    uint64_t address, first, count;
    const unsigned char *map;
    uint64_t map_first;
};

static bool read_data_block(struct elements *elements, const struct shape *shape,
                            const struct block *block) {
    uint64_t page_elems = (uint64_t)1 << shape->page_bits;
    bool paged = block->count > page_elems;
    uint64_t elem_bytes = paged ? 0 : block->count * element_bytes(elements);
    size_t start = PREFIX_BYTES + shape->offset_bytes;
    if (paged && block->map == NULL) {
        return fail(elements, "extensible array of chunks of a kind that is not known");
    }
    unsigned char *read = newer_read_block(elements->object, block->address,
                                           start + (size_t)elem_bytes + CHECKSUM_BYTES, "EADB");
    if (read == NULL) {
        return false;
    }
    bool good;
    if (paged) {
        struct pages pages = {block->address + start + CHECKSUM_BYTES,
                              block->first,
                              block->count,
                              page_elems,
                              block->map,
                              block->map_first};
        good = read_pages(elements, &pages);
    } else {
        struct gcmp_cursor cursor = gcmp_cursor_make(read + start, (size_t)elem_bytes, 0);
        good = read_run(elements, &cursor, block->first, block->count);
    }
    free(read);
    return good;
}

/* Pages of each data block of a group; 0: not paged. */
static uint64_t group_pages(const struct shape *shape, unsigned group) {
    uint64_t elems = block_elems(shape, group), page_elems = (uint64_t)1 << shape->page_bits;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): page_bits is under 32 */
    return elems > page_elems ? elems / page_elems : 0;
}

/* Read the data blocks of a group, whose addresses `cursor` yields. `map` has a bit for each page
 * of each block, one block behind the other. */
static bool read_group(struct elements *elements, const struct shape *shape, unsigned group,
                       struct gcmp_cursor *cursor, const unsigned char *map) {
    struct block block = {
        .first = group_start(shape, group), .count = block_elems(shape, group), .map = map};
    for (uint64_t i = 0; i < group_blocks(group); i++) {
        if (!gcmp_read_u64le(cursor, &block.address)) {
            return false;
        }
        if (block.address != UINT64_MAX && block.first < elements->count &&
            !read_data_block(elements, shape, &block)) {
            return false;
        }
        block.first += block.count;
        block.map_first += group_pages(shape, group);
    }
    return true;
}

/* The map of pages takes whole bytes for each block, although its bits stand close together. */
static bool read_super_block(struct elements *elements, const struct shape *shape, unsigned group,
                             uint64_t address) {
    uint64_t pages = group_pages(shape, group);
    size_t map_bytes = (size_t)(pages / 8 + (pages % 8 != 0));
    size_t blocks = (size_t)group_blocks(group), start = PREFIX_BYTES + shape->offset_bytes;
    size_t bytes = start + blocks * (map_bytes + ADDRESS_BYTES) + CHECKSUM_BYTES;
    unsigned char *read = newer_read_block(elements->object, address, bytes, "EASB");
    if (read == NULL) {
        return false;
    }
    struct gcmp_cursor cursor =
        gcmp_cursor_make(read + start + blocks * map_bytes, blocks * ADDRESS_BYTES, 0);
    bool good = read_group(elements, shape, group, &cursor, pages > 0 ? read + start : NULL);
    free(read);
    return good;
}

/* Groups that begin behind the last element that is needed hold nothing. */
static bool is_needed(const struct elements *elements, const struct shape *shape, unsigned group) {
    return group < 40 && group_start(shape, group) < elements->count;
}

static bool read_index_block(struct elements *elements, const struct shape *shape) {
    size_t direct_blocks = 2 * ((size_t)shape->min_pointers - 1);
    size_t pointers = direct_blocks + (shape->groups - shape->direct);
    size_t bytes = PREFIX_BYTES + shape->index_elems * element_bytes(elements) +
                   pointers * ADDRESS_BYTES + CHECKSUM_BYTES;
    unsigned char *read = newer_read_block(elements->object, shape->index_block, bytes, "EAIB");
    if (read == NULL) {
        return false;
    }
    struct gcmp_cursor cursor =
        gcmp_cursor_make(read + PREFIX_BYTES, bytes - PREFIX_BYTES - CHECKSUM_BYTES, 0);
    bool good = read_run(elements, &cursor, 0, shape->index_elems);
    for (unsigned group = 0; good && group < shape->direct; group++) {
        good = read_group(elements, shape, group, &cursor, NULL);
    }
    for (unsigned group = shape->direct; good && group < shape->groups; group++) {
        uint64_t address;
        good = gcmp_read_u64le(&cursor, &address);
        if (good && address != UINT64_MAX && is_needed(elements, shape, group)) {
            good = read_super_block(elements, shape, group, address);
        }
    }
    free(read);
    return good;
}

bool read_extensible_array(struct elements *elements) {
    struct shape shape;
    if (!read_shape(elements, &shape) || !make_elements(elements, shape.used)) {
        return false;
    }
    if (shape.index_block != UINT64_MAX && !read_index_block(elements, &shape)) {
        return helper_has_failed() ? false : fail(elements, "extensible array: a damaged block");
    }
    return true;
}
