/* Loaded before the C library into the program under test.
 * SHIM_CLOCK: the monotonic clock goes on by one second each time it is looked at, so that what
 * depends on time shows without waiting. SHIM_SIGNAL=N: the first look raises signal N, once the
 * program has said what to do about it (a sanitizer looks at the clock before main).
 * SHIM_LOOK=M: not the first look does, but the Mth behind that. SHIM_RENAME=M: no look at the
 * clock raises it, but the Mth file that is renamed, once it has its new name. SHIM_READS=TEXT: at
 * the end, how many bytes were read from files with TEXT in their paths is told on standard error.
 * SHIM_FLUSH=K: it is raised K times when a file is flushed, with its content in it but not its
 * name. SHIM_PROBE=FILE: when the program asks whether it has a terminal, which it does before it
 * reads anything, each of reading FILE, starting a program, a process and a connection is tried,
 * and told on standard error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static long number_of(const char *name) {
    return getenv(name) == NULL ? 0 : atol(getenv(name));
}

/* Raise the signal at call number `which` of those that are made once it is caught. */
static void raise_once(long which) {
    static long calls;
    struct sigaction now;
    int number = (int)number_of("SHIM_SIGNAL");
    if (number != 0 && sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
        ++calls == which) {
        raise(number);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int looks;
    if (clock != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    if (getenv("SHIM_RENAME") == NULL && getenv("SHIM_FLUSH") == NULL) {
        raise_once(number_of("SHIM_LOOK") + 1);
    }
    if (getenv("SHIM_CLOCK") == NULL) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    now->tv_sec = ++looks;
    now->tv_nsec = 0;
    return 0;
}

int rename(const char *from, const char *to) {
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0 && getenv("SHIM_RENAME") != NULL) {
        raise_once(number_of("SHIM_RENAME"));
    }
    return result;
}

int fsync(int descriptor) {
    static long raised;
    while (raised < number_of("SHIM_FLUSH")) {
        raised++;
        raise((int)number_of("SHIM_SIGNAL"));
    }
    return (int)syscall(SYS_fsync, descriptor);
}

static atomic_long bytes_read;

static ssize_t count_read(int descriptor, ssize_t got) {
    char link[64], path[4096];
    const char *wanted = getenv("SHIM_READS");
    if (wanted != NULL && got > 0) {
        int error = errno;
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length < 0 ? 0 : length] = '\0';
        if (strstr(path, wanted) != NULL) {
            atomic_fetch_add(&bytes_read, got);
        }
        errno = error;
    }
    return got;
}

ssize_t pread(int descriptor, void *buffer, size_t count, off_t offset) {
    return count_read(descriptor, syscall(SYS_pread64, descriptor, buffer, count, offset));
}
/* What the compiler's hardening makes of the same call. */
ssize_t __pread_chk(int descriptor, void *buffer, size_t count, off_t offset, size_t room) {
    (void)room;
    return pread(descriptor, buffer, count, offset);
}

__attribute__((destructor)) static void tell_reads(void) {
    if (getenv("SHIM_READS") != NULL) {
        fprintf(stderr, "read from %s: %ld bytes\n", getenv("SHIM_READS"),
                atomic_load(&bytes_read));
    }
}

static void tell(const char *what, long result) {
    fprintf(stderr, "%s: %s\n", what, result < 0 ? strerror(errno) : "allowed");
}

static long start_process(void) {
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    return pid;
}

int isatty(int descriptor) {
    static int probed;
    const char *file = getenv("SHIM_PROBE");
    char *arguments[] = {NULL};
    struct termios state;
    if (file != NULL && !probed) {
        probed = 1;
        tell("read another file", syscall(SYS_openat, AT_FDCWD, file, O_RDONLY));
        tell("make a socket", socket(AF_INET, SOCK_DGRAM, 0));
        tell("start a process", start_process());
        tell("start a program", execve("/nosuch", arguments, arguments));
    }
    return tcgetattr(descriptor, &state) == 0;
}
