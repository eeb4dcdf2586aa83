/* Gives the input of a fuzz target to code that reads files. */
#ifndef GCMP_FUZZ_MEMORY_FILE_H
#define GCMP_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dir.h"

/* Open the bytes as a file that has no name on any disk: its directory holds only it. */
static inline struct gcmp_dir *memory_file_open(const uint8_t *data, size_t size) {
    char path[64];
    struct gcmp_dir *dir = NULL;
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gcmp_dir_open(path, &dir, NULL) != GRADCMP_OK) {
        abort();
    }
    close(fd);
    return dir;
}

#endif
