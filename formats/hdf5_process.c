/* Finds, starts and outlives gradcmp-h5.
 *
 * Limits, by the size of the file: seconds of processor time (MIN_CPU_SECONDS and one more for each
 * GiB), bytes of output (MIN_OUTPUT_BYTES and eight for each byte; MAX_OUTPUT_BYTES). */
#include "formats/hdf5_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "formats/hdf5_spawn.h"

enum { MIN_CPU_SECONDS = 5, MAX_CPU_SECONDS = 3600, FIRST_FREE_DESCRIPTOR = 3 };
#define MIN_OUTPUT_BYTES ((uint64_t)1 << 20)
#define MAX_OUTPUT_BYTES ((uint64_t)1 << 30)

/* --- starting --- */

struct process {
    struct gcmp_dir *dir;
    uint32_t file;
    unsigned long cpu_seconds;
    uint64_t output_limit;
    int input, output_read, output_write; /* -1: not open */
    struct gcmp_h5_child child;
    struct gradcmp_error *error;
};

static const char *path_of(const struct process *process) {
    return gcmp_dir_file_path(process->dir, process->file);
}

static void close_descriptor(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Move a descriptor to a number that the helper's own three do not overwrite. */
static bool move_up(int *fd) {
    if (*fd >= FIRST_FREE_DESCRIPTOR) {
        return true;
    }
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
    close_descriptor(fd);
    *fd = moved;
    return moved >= 0;
}

static enum gradcmp_status open_descriptors(struct process *process) {
    int ends[2];
    GCMP_TRY(gcmp_dir_open_fd(process->dir, process->file, &process->input, process->error));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        GCMP_FAIL(process->error, GRADCMP_ERROR_IO, "no pipe to the helper for HDF5 can be made");
    }
    process->output_read = ends[0];
    process->output_write = ends[1];
    if (!move_up(&process->input) || !move_up(&process->output_write) ||
        !move_up(&process->output_read)) {
        GCMP_FAIL(process->error, GRADCMP_ERROR_IO, "too many open files");
    }
    return GRADCMP_OK;
}

static int spawn(struct process *process, const char *program) {
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%lu", process->cpu_seconds);
    const int streams[2] = {process->input, process->output_write};
    return gcmp_h5_spawn(program, seconds, streams, &process->child);
}

static enum gradcmp_status start(struct process *process) {
    char program[2 * PATH_MAX];
    if (!gcmp_h5_find_program(program, sizeof program)) {
        GCMP_FAIL_AT(process->error, GRADCMP_ERROR_UNSUPPORTED, path_of(process), GRADCMP_NO_OFFSET,
                     "hdf5: the helper program gradcmp-h5 is not installed beside gradcmp");
    }
    GCMP_TRY(open_descriptors(process));
    int code = spawn(process, program);
    close_descriptor(&process->input);
    close_descriptor(&process->output_write);
    if (code == ENOMEM) {
        GCMP_FAIL_MEMORY(process->error);
    }
    if (code != 0) {
        GCMP_FAIL_AT(process->error, GRADCMP_ERROR_IO, path_of(process), GRADCMP_NO_OFFSET,
                     "hdf5: the helper program %.300s cannot be started", program);
    }
    return GRADCMP_OK;
}

/* --- reading and ending --- */

/* Make room for more output; false without memory. */
static bool grow(unsigned char **bytes, size_t *capacity) {
    size_t bigger = *capacity == 0 ? 64 << 10 : 2 * *capacity;
    unsigned char *moved = realloc(*bytes, bigger);
    if (moved != NULL) {
        *bytes = moved;
        *capacity = bigger;
    }
    return moved != NULL;
}

static enum gradcmp_status read_output(struct process *process, unsigned char **bytes,
                                       size_t *count) {
    size_t capacity = 0;
    for (;;) {
        if (*count == capacity && !grow(bytes, &capacity)) {
            GCMP_FAIL_MEMORY(process->error);
        }
        ssize_t done = read(process->output_read, *bytes + *count, capacity - *count);
        if (done == 0) {
            return GRADCMP_OK;
        }
        if (done < 0 && errno != EINTR) {
            GCMP_FAIL(process->error, GRADCMP_ERROR_IO, "hdf5: the helper cannot be read from");
        }
        *count += done > 0 ? (size_t)done : 0;
        if (*count > process->output_limit) {
            GCMP_FAIL_AT(process->error, GRADCMP_ERROR_LIMIT, path_of(process), GRADCMP_NO_OFFSET,
                         "hdf5: a catalogue of more than %llu bytes, which a file of %llu cannot "
                         "account for",
                         (unsigned long long)process->output_limit,
                         (unsigned long long)gcmp_dir_file_bytes(process->dir, process->file));
        }
    }
}

/* The helper ends with 0 whatever it finds. Else it crashed, or could not even begin. */
static enum gradcmp_status check_end(const struct process *process, int status) {
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGXCPU || number == SIGKILL) {
        GCMP_FAIL_AT(process->error, GRADCMP_ERROR_LIMIT, path_of(process), GRADCMP_NO_OFFSET,
                     "hdf5: not read after %lu s of processor time: a damaged file?",
                     process->cpu_seconds);
    }
    if (number != 0) {
        GCMP_FAIL_AT(process->error, GRADCMP_ERROR_CORRUPT, path_of(process), GRADCMP_NO_OFFSET,
                     "hdf5: libhdf5 crashed (signal %d) over this file: it is damaged", number);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        GCMP_FAIL_AT(process->error, GRADCMP_ERROR_IO, path_of(process), GRADCMP_NO_OFFSET,
                     "hdf5: the helper program failed (status %d)", WEXITSTATUS(status));
    }
    return GRADCMP_OK;
}

static void set_limits(struct process *process) {
    uint64_t bytes = gcmp_dir_file_bytes(process->dir, process->file), limit;
    uint64_t seconds = MIN_CPU_SECONDS + (bytes >> 30);
    process->cpu_seconds = (unsigned long)(seconds < MAX_CPU_SECONDS ? seconds : MAX_CPU_SECONDS);
    if (!gcmp_mul_u64(bytes, 8, &limit) || limit > MAX_OUTPUT_BYTES - MIN_OUTPUT_BYTES) {
        limit = MAX_OUTPUT_BYTES - MIN_OUTPUT_BYTES;
    }
    process->output_limit = limit + MIN_OUTPUT_BYTES;
}

enum gradcmp_status gcmp_h5_run(struct gcmp_dir *dir, uint32_t file, unsigned char **bytes,
                                size_t *count, struct gradcmp_error *error) {
    struct process process = {.dir = dir,
                              .file = file,
                              .input = -1,
                              .output_read = -1,
                              .output_write = -1,
                              .child = {0, -1},
                              .error = error};
    *bytes = NULL;
    *count = 0;
    set_limits(&process);
    enum gradcmp_status status = start(&process);
    if (status == GRADCMP_OK) {
        status = read_output(&process, bytes, count);
        if (status != GRADCMP_OK) {
            close_descriptor(&process.output_read);
            gcmp_h5_give_up(&process.child);
        } else {
            status = check_end(&process, gcmp_h5_wait(&process.child));
        }
    }
    close_descriptor(&process.input);
    close_descriptor(&process.output_write);
    close_descriptor(&process.output_read);
    if (status != GRADCMP_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}
