/* Loaded before the C library of one rank's process: makes its reads of tensor bytes fail, or ends
 * or holds the process there. GRADCMP_TEST_FAULT is "RANK:ACTION:N"; RANK may be "all". The N-th
 * larger read is the first that ACTION (eio, kill, crash, hang) happens to. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { LEAST_BYTES = 8192 }; /* headers and samples are shorter */

typedef ssize_t (*pread_fn)(int, void *, size_t, off_t);

/* What this process is to do at its next read; "" nothing. */
static const char *due_action(void) {
    static int count;
    static char rank[16], action[16];
    const char *fault = getenv("GRADCMP_TEST_FAULT"), *here = getenv("OMPI_COMM_WORLD_RANK");
    int nth = 0;
    if (fault == NULL || here == NULL ||
        sscanf(fault, "%15[^:]:%15[^:]:%d", rank, action, &nth) != 3 ||
        (strcmp(rank, "all") != 0 && strcmp(rank, here) != 0)) {
        return "";
    }
    return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) >= nth ? action : "";
}

static int act(void) {
    const char *action = due_action();
    if (strcmp(action, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(action, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    } else if (strcmp(action, "hang") == 0) {
        static int is_told;
        if (__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED) == 0) {
            const char *mark = getenv("GRADCMP_TEST_MARK");
            FILE *file = mark == NULL ? NULL : fopen(mark, "w");
            if (file != NULL) {
                fclose(file);
            }
        }
        usleep(400000); /* slow enough for a signal to come first */
    }
    return strcmp(action, "eio") == 0;
}

static ssize_t read_or_fail(const char *name, int fd, void *buffer, size_t count, off_t offset) {
    pread_fn next;
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(&next, &symbol, sizeof next);
    if (offset > 0 && count > LEAST_BYTES && act()) {
        errno = EIO;
        return -1;
    }
    return next(fd, buffer, count, offset);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset) {
    return read_or_fail("pread", fd, buffer, count, offset);
}

ssize_t pread64(int fd, void *buffer, size_t count, off_t offset) {
    return read_or_fail("pread64", fd, buffer, count, offset);
}
