/* What newer.c (object headers), newer_type.c (types) and newer_chunks.c (indexes of chunks) share.
 * Source: HDF5 File Format Specification, version 3.0; for version 5 of the layout message, files
 * that libhdf5 2.0 wrote. */
#ifndef GRADCMP_H5HELPER_NEWER_H
#define GRADCMP_H5HELPER_NEWER_H

#include "base/cursor.h"
#include "h5helper/helper.h"

/* Addresses and lengths in files of the latest format take eight bytes. */
enum { ADDRESS_BYTES = 8, LENGTH_BYTES = 8, CHECKSUM_BYTES = 4 };

/* How chunks are found: the numbers that the layout message has for it. */
enum index_kind {
    INDEX_SINGLE = 1,
    INDEX_IMPLICIT,
    INDEX_FIXED_ARRAY,
    INDEX_EXTENSIBLE_ARRAY,
    INDEX_B_TREE_2
};

/* A dataset while its messages are read. */
struct object {
    uint64_t base_bytes;   /* addresses count from here */
    uint64_t header_bytes; /* offset of the object header in the file */
    const char *path;
    struct dataset dataset;
    struct chunks chunks;
    hsize_t max_sizes[H5S_MAX_RANK]; /* UINT64_MAX: not bounded */

    unsigned layout_version; /* 0: no layout message seen */
    unsigned layout_class;
    uint64_t data_address; /* of the elements, or of the index of chunks */
    enum index_kind index;
    uint64_t single_bytes; /* of the one chunk, where it is filtered */
    uint32_t single_skipped;
    unsigned char compact[UINT16_MAX]; /* elements in the header */
    size_t compact_bytes;

    bool has_external_files, has_dense_attributes;
};

/* Fail at a byte of the file. Returns false. */
bool newer_fail(const struct object *object, uint64_t offset_bytes, const char *what);

/* Read `count` bytes at an address and compare the checksum in the last four of them; the result is
 * malloced, NULL after a failure. `signature` is what the bytes must begin with; "" for none. */
unsigned char *newer_read_block(const struct object *object, uint64_t address, size_t count,
                                const char *signature);

/* Read a datatype message; false where it does not hold one. */
bool newer_read_type(struct gcmp_cursor *cursor, struct type *type);

/* Read an attribute message; takes note of the attribute "dtype". False where it is damaged. */
bool newer_read_attribute(struct object *object, struct gcmp_cursor *cursor);

/* Tell the chunks: the dataset's record and those of all chunks. */
bool newer_tell_chunks(struct object *object);

#endif
