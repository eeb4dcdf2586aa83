/* Linked into every program of a coverage build (tests/coverage.sh): how its counts are written.
 * Processes that have bounded themselves (a sandbox, a limit on files) or whose calls are made to
 * fail (fault_shim.c) cannot write them where they end: libgcov would complain on standard error,
 * crash without memory, or be killed by SIGXFSZ, which no other build does. Such a process ends
 * without its counts. One that ends by _exit, as forked ones do, writes them like any other. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void __gcov_dump(void); /* libgcov's */

static _Noreturn void leave(int code) {
    for (;;) {
        (void)syscall(SYS_exit_group, code);
    }
}

/* Whether a file in the folder of the build can be opened and grow. */
static bool can_count(void) {
    struct rlimit limit;
    void (*end_faults)(void) = NULL;
    *(void **)&end_faults = dlsym(RTLD_DEFAULT, "fault_shim_end");
    if (end_faults != NULL) {
        end_faults();
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
        return false;
    }
    int fd = open(COUNTS_FOLDER "/counted", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return fd >= 0 && close(fd) == 0;
}

static void at_exit(int code, void *ignored) {
    (void)ignored;
    if (!can_count()) {
        (void)fflush(NULL);
        leave(code);
    }
}

/* Its handler is the last one to run, since it is the first one that is registered. */
__attribute__((constructor)) static void begin(void) {
    (void)on_exit(at_exit, NULL);
}

void _exit(int code) {
    if (can_count()) {
        __gcov_dump();
    }
    leave(code);
}
