/* The helper program as a process: started here, or by the broker of a sandboxed process. */
#ifndef GCMP_FORMATS_HDF5_SPAWN_H
#define GCMP_FORMATS_HDF5_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* A helper that runs: a child of this process, or of its broker, which tells how it ended. */
struct gcmp_h5_child {
    pid_t pid;  /* 0: the broker's */
    int ending; /* the broker's: a pipe that its wait status comes through; else -1 */
};

/* Find the helper program: in $GRADCMP_H5HELPER (not in set-uid programs), beside the library or
 * the program, or in the libexec folder of their installation. `path` has room for `capacity`
 * bytes, twice PATH_MAX at least. */
bool gcmp_h5_find_program(char *path, size_t capacity);

/* Start the helper with one argument (under 64 bytes). It gets streams[0] as standard input and
 * streams[1] as standard output (both 3 or above), no messages, no blocked signals, and of the
 * environment what finds libraries. Returns 0, or an errno; on success the caller waits. */
int gcmp_h5_spawn(const char *program, const char *argument, const int streams[2],
                  struct gcmp_h5_child *child);

/* Wait for the helper; returns its status as waitpid has it, 0 where somebody else waited. */
int gcmp_h5_wait(struct gcmp_h5_child *child);

/* End a helper whose output nobody wants any more, and wait for it. The broker's ends by itself: at
 * its next write, or at its limit of processor time. */
void gcmp_h5_give_up(struct gcmp_h5_child *child);

#endif
