/* Loaded before the C library into the program under test.
 * SHIM_CLOCK: the monotonic clock goes on by one second each time it is looked at, so that what
 * depends on time shows without waiting. SHIM_SIGNAL=N: the first look raises signal N, once the
 * program has said what to do about it (a sanitizer looks at the clock before main). */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
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
