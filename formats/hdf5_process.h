/* The helper program that reads HDF5 files, as a process. */
#ifndef GCMP_FORMATS_HDF5_PROCESS_H
#define GCMP_FORMATS_HDF5_PROCESS_H

#include "base/dir.h"
#include "base/error.h"

/* Run gradcmp-h5 on a registered file and read all that it writes (hdf5_wire.h): *bytes is
 * malloced. What the stream says is not looked at, but one whose process did not end by itself is
 * an error: CORRUPT where it crashed, LIMIT where it took more processor time or wrote more than a
 * file of that size can account for. Others: UNSUPPORTED where there is no helper; IO; MEMORY.
 * Thread-safe. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_run(struct gcmp_dir *dir, uint32_t file,
                                                 unsigned char **bytes, size_t *count,
                                                 struct gradcmp_error *error);

#endif
