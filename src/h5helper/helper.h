/* The parts of gradcmp-h5: a program that tells what datasets an HDF5 file holds and where their
 * bytes lie, so that what libhdf5 does with a hostile file happens in a process that can do
 * nothing. Functions return false, or a negative value, after a failure was told (helper_fail);
 * then all that is left is to end. */
#ifndef GRADCMP_H5HELPER_HELPER_H
#define GRADCMP_H5HELPER_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Interfaces are libhdf5 1.10's, also with later versions. */
#include <hdf5.h>

#include "formats/hdf5_wire.h"
#include "gradcmp/gradcmp.h"

/* --- output.c: the stream of records. A record is put only when it can be completed --- */

void put_u8(unsigned value);
void put_u32(uint32_t value);
void put_u64(uint64_t value);
void put_bytes(const void *bytes, size_t count);
void put_text(const char *bytes, size_t count);
/* Write what is buffered; false when nobody reads any more. */
bool put_flush(void);

/* End the stream with an error; the first one counts. */
void helper_fail(enum gradcmp_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void helper_fail_at(enum gradcmp_status status, uint64_t offset_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with what libhdf5 says went wrong; at the byte it read last. */
void helper_fail_hdf5(const char *what);
bool helper_has_failed(void);

/* --- driver.c: libhdf5's access to the file on descriptor 0 --- */

/* A property list that opens the file through our driver, whatever name is given; < 0: failure. */
hid_t driver_properties(void);

/* Where the raw data read last lies, in place of reading it: between driver_find_begin and _end,
 * reads of raw data only note their place, and their buffer is not touched. */
struct place {
    uint64_t offset_bytes, length_bytes;
    bool found;
};
void driver_find_begin(void);
struct place driver_find_end(void);

/* Byte of the file that was read last; GRADCMP_NO_OFFSET where none was. */
uint64_t driver_last_offset(void);
uint64_t driver_file_bytes(void);

/* Read `size` bytes at an offset of the file; false where they are not all there. */
bool driver_read_at(uint64_t offset_bytes, void *buffer, size_t size);

/* --- what is told of a dataset --- */

enum { MAX_DESCRIPTION_BYTES = 80, MAX_MARK_BYTES = 40 };

/* What the elements of a dataset are. */
struct type {
    enum gcmp_h5_class class;
    bool big_endian, is_signed;
    uint32_t size_bytes, precision, exponent_bits, mantissa_bits;
    uint64_t exponent_bias;
    char description[MAX_DESCRIPTION_BYTES];
    char mark[MAX_MARK_BYTES]; /* the attribute "dtype"; "" where there is none */
    uint32_t stated_layer;     /* 1 + the attribute "gradcmp.layer"; 0 where there is none */
};

struct filter {
    uint32_t id;
    unsigned value_count;
    uint32_t values[GCMP_H5_MAX_VALUES];
};

/* The chunks of a dataset. */
struct chunks {
    int ndim;
    const hsize_t *sizes; /* of the dataset */
    hsize_t chunk[H5S_MAX_RANK];
    unsigned filter_count;
    struct filter filters[GCMP_H5_MAX_FILTERS];
    uint64_t count;             /* in the grid; UINT64_MAX for more than there can be */
    bool partial_is_unfiltered; /* chunks over an edge are stored as they are */
};

struct dataset {
    const char *path;
    struct type type;
    int ndim;
    hsize_t sizes[H5S_MAX_RANK];
    bool has_elements;
};

/* --- record.c: records of datasets --- */

/* Put the beginning of a dataset's record, up to its layout. */
void put_dataset(const struct dataset *dataset, enum gcmp_h5_layout layout);
/* Put what the record says of chunks, and then a record for each chunk. */
void put_chunks(const struct chunks *chunks);
void put_chunk(const struct chunks *chunks, const hsize_t *at, uint64_t offset_bytes,
               uint64_t length_bytes, uint32_t skipped);

/* Count the chunks of the grid, and check their shape. */
bool count_chunks(const char *path, struct chunks *chunks);
/* Move `at`, the first element of a chunk, to the next chunk of the grid. */
void next_chunk(const struct chunks *chunks, hsize_t *at);

/* Fail for a chunk, or a dataset (at NULL), that was never written: its values would be a fill
 * value. */
void fail_unwritten(const char *path, const struct chunks *chunks, const hsize_t *at);
/* Fail with what libhdf5 says of a part of an object. Returns false. */
bool fail_part(const char *path, const char *part);

/* --- walk.c, dataset.c, type.c: through libhdf5 --- */

/* Tell all objects that are reached from the root by hard links. */
bool walk_file(hid_t file);
/* Tell one dataset. */
bool tell_dataset(hid_t id, const char *path);
/* Describe a dataset's elements, and the layer that an attribute of ours states. */
bool read_type(hid_t id, const char *path, struct type *type);
/* The words for a class of types; also by the number that files have for it. */
const char *type_class_name(int class);

/* --- newer.c, newer_*.c: objects that this version of libhdf5 refuses as too new --- */

enum newer { NEWER_NONE, NEWER_TOLD, NEWER_FAILED };

/* Tell the object whose header is at an address (which counts from `base_bytes`), if it is a
 * dataset with version 5 of the layout message (libhdf5 2.0 and later, with the latest format);
 * NEWER_NONE, with nothing told, for others. */
enum newer newer_tell(uint64_t base_bytes, haddr_t address, const char *path);

/* --- sandbox.c --- */

/* Give up what the process does not need: memory, processor time, files, processes, and all system
 * calls but those for reading descriptor 0 and writing descriptor 1. False where even the limits
 * cannot be set. */
bool sandbox_enter(unsigned long cpu_seconds);
/* The same of the process that writes: it keeps the descriptors that it has open. */
bool sandbox_enter_writer(void);

#endif
