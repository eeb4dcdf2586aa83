/* Ctrl-C, SIGTERM, and a terminal that goes away. */
#include "cli/interrupt.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"

static volatile sig_atomic_t caught;
static bool is_left_untold;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNAL_COUNT = sizeof signals / sizeof signals[0] };
static volatile sig_atomic_t came[SIGNAL_COUNT];

/* The file that is being written. */
static char removed[PATH_MAX];
static volatile sig_atomic_t is_to_be_removed;

static void remember(int signal_number) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i] == signal_number && came[i]) {
            if (is_to_be_removed) {
                unlink(removed);
            }
            signal(signal_number, SIG_DFL);
            raise(signal_number); /* ends the program as soon as this function has returned */
        } else if (signals[i] == signal_number) {
            came[i] = 1;
        }
    }
    caught = signal_number;
}

void cli_interrupt_remove(const char *path) {
    is_to_be_removed = 0;
    size_t length = path == NULL ? sizeof removed : strlen(path);
    if (length < sizeof removed) {
        memcpy(removed, path, length + 1);
        is_to_be_removed = 1;
    }
}

void cli_interrupt_catch(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = remember;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
}

void cli_interrupt_not_by_writes(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

int cli_interrupt_signal(void) {
    return (int)caught;
}

void cli_interrupt_complain(const char *more) {
    if (!is_left_untold) {
        cli_complain("interrupted%s", more);
    }
}

void cli_interrupt_leave_untold(void) {
    is_left_untold = true;
}
