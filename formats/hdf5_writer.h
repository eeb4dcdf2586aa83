/* Writing an HDF5 file through the helper program: libhdf5 is not part of the library, and what it
 * does with memory and files stays in a process that has the file and nothing else. */
#ifndef GCMP_FORMATS_HDF5_WRITER_H
#define GCMP_FORMATS_HDF5_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gcmp_h5_writer;

/* A dataset that is to be written, and texts that become its attributes. */
struct gcmp_h5_new {
    const char *path;         /* names of groups between slashes */
    enum gradcmp_dtype dtype; /* NONE: texts, whose length in bytes is the last of the sizes */
    unsigned ndim;
    const uint64_t *sizes;
    uint64_t layer; /* l; UINT64_MAX: of none */
    const char *const (*texts)[2];
    unsigned text_count;
};

/* True for a type that gcmp_h5_writer_dataset can write. */
bool gcmp_h5_writer_takes(enum gradcmp_dtype dtype);

/* Start the helper on an empty regular file that is open as `descriptor`, which stays the caller's.
 * *out is ended with gcmp_h5_writer_end. Errors: UNSUPPORTED where there is no helper or the
 * descriptor is of something else; IO; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_h5_writer_start(int descriptor, struct gcmp_h5_writer **out, struct gradcmp_error *error);

/* Send an attribute of the file; a dataset; its elements, in any number of calls, little-endian.
 * False once the helper listens no more: gcmp_h5_writer_end tells why. */
bool gcmp_h5_writer_attribute(struct gcmp_h5_writer *writer, const char *name, const char *value);
bool gcmp_h5_writer_dataset(struct gcmp_h5_writer *writer, const struct gcmp_h5_new *dataset);
bool gcmp_h5_writer_elements(struct gcmp_h5_writer *writer, const void *bytes, size_t count);

/* Finish the file, or give it up (keep false), wait for the helper, and free the writer. The status
 * is the helper's: IO where it could not write, crashed, or was of another version. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_writer_end(struct gcmp_h5_writer *writer, bool keep,
                                                        struct gradcmp_error *error);

#endif
