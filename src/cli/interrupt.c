/* Ctrl-C, SIGTERM, and a terminal that goes away. */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/message.h"

static volatile sig_atomic_t caught;
static bool is_left_untold;

static void remember(int signal_number) {
    caught = signal_number;
}

void cli_interrupt_catch(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = remember;
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
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
