/* Opening a relative name so that the walk cannot leave a directory, whatever links lie in it. */
#ifndef GCMP_BASE_BENEATH_H
#define GCMP_BASE_BENEATH_H

#include <stdbool.h>

/* True where the kernel resolves beneath a directory by itself (openat2, Linux 5.6); false too
 * where a sandbox forbids the call. */
bool gcmp_beneath_by_kernel(int root);

/* Open `name` below the directory `root` for reading: never blocking, never a controlling terminal,
 * closed on exec. Symbolic links are followed where they stay below `root`. Returns a descriptor,
 * or -1 with errno: EXDEV where the walk would leave `root`, ELOOP for more than 40 links, else
 * what the system says. Two ways with one behaviour: the kernel's, and a walk by hand for kernels
 * and sandboxes without openat2. Thread-safe. */
int gcmp_beneath_open_by_kernel(int root, const char *name);
int gcmp_beneath_open_by_hand(int root, const char *name);

#endif
