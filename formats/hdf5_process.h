/* The helper program that reads HDF5 files, as a process. */
#ifndef GCMP_FORMATS_HDF5_PROCESS_H
#define GCMP_FORMATS_HDF5_PROCESS_H

#include <sys/types.h>

#include "base/dir.h"
#include "base/error.h"

/* Run gradcmp-h5 on a registered file and read all that it writes (hdf5_wire.h): *bytes is
 * malloced. The program is looked for in $GRADCMP_H5HELPER (not in set-uid programs), beside the
 * library or the program, and in the libexec folder of their installation. What the stream says is
 * not looked at, but one whose process did not end by itself is an error: CORRUPT where it crashed,
 * LIMIT where it took more processor time or wrote more than a file of that size can account for.
 * Others: UNSUPPORTED where there is no helper; IO; MEMORY. Thread-safe. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_run(struct gcmp_dir *dir, uint32_t file,
                                                 unsigned char **bytes, size_t *count,
                                                 struct gradcmp_error *error);

/* Find the helper program; `path` has room for `capacity` bytes, twice PATH_MAX at least. */
bool gcmp_h5_find_program(char *path, size_t capacity);

/* Start the helper with one argument (under 64 bytes). It gets streams[0] as standard input and
 * streams[1] as standard output, no messages, no blocked signals, and of the environment what finds
 * libraries. Returns 0, or what posix_spawn says; on success the caller waits for *pid. */
int gcmp_h5_spawn(const char *program, const char *argument, const int streams[2], pid_t *pid);

#endif
