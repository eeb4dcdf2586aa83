/* Loaded before the C library into the program under test.
 * SHIM_CLOCK: the monotonic clock goes on by one second each time it is looked at, so that what
 * depends on time shows without waiting. SHIM_SIGNAL=N: the first look raises signal N, once the
 * program has said what to do about it (a sanitizer looks at the clock before main).
 * SHIM_PROBE=FILE: when the program asks whether it has a terminal, which it does before it reads
 * anything, each of reading FILE, starting a program, a process and a connection is tried, and told
 * on standard error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static void raise_once(int number) {
    static int raised;
    struct sigaction now;
    if (!raised && sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL) {
        raised = 1;
        raise(number);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int looks;
    if (clock != CLOCK_MONOTONIC) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    if (getenv("SHIM_SIGNAL") != NULL) {
        raise_once(atoi(getenv("SHIM_SIGNAL")));
    }
    if (getenv("SHIM_CLOCK") == NULL) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    now->tv_sec = ++looks;
    now->tv_nsec = 0;
    return 0;
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
