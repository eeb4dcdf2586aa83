/* The broker: a process that starts the helper program for one that may start none any more. */
#ifndef GCMP_FORMATS_HDF5_BROKER_H
#define GCMP_FORMATS_HDF5_BROKER_H

#include <stdbool.h>

#include "base/error.h"

/* Fork a process that starts the helper for this one from now on, so that this one can give up the
 * right to start programs. It does nothing else, ends when this process does, and then removes
 * `folder` (NULL: none) if it is empty. Call it once, before there are threads. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_h5_broker_start(const char *folder,
                                                          struct gradcmp_error *error);

/* The socket to the broker; -1: there is none. */
int gcmp_h5_broker(void);

/* Have the helper started with these streams (gcmp_h5_spawn). *ending is a pipe that its wait
 * status comes through, the caller's to close. Returns 0, or an errno. Thread-safe. */
int gcmp_h5_broker_ask(const char *argument, const int streams[2], int *ending);

/* Read one number from such a pipe; false where the broker is gone. */
bool gcmp_h5_broker_read(int pipe, int *number);

#endif
