/* What the terminal can show. */
#include "cli/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_WIDTH = 120 }; /* lines longer than that are hard to read */

/* True where the variable is set, not empty, and not `off`. */
static bool is_set(const char *name, const char *off) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' && strcmp(value, off) != 0;
}

static bool is_dumb(void) {
    const char *term = getenv("TERM");
    return term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0;
}

/* mpirun gives a process a terminal, and passes on what it prints to wherever that goes. */
static bool is_terminal(void) {
    return isatty(STDOUT_FILENO) && getenv("OMPI_COMM_WORLD_RANK") == NULL;
}

/* Conventions of no-color.org and bixense.com/clicolors. */
bool cli_terminal_color(enum cli_color wanted) {
    if (wanted != CLI_COLOR_AUTO) {
        return wanted == CLI_COLOR_ALWAYS;
    }
    if (is_set("NO_COLOR", "")) {
        return false;
    }
    if (is_set("CLICOLOR_FORCE", "0")) {
        return true;
    }
    return is_terminal() && !is_dumb();
}

bool cli_terminal_utf8(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

unsigned cli_terminal_width(void) {
    struct winsize size;
    if (!is_terminal() || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    return size.ws_col > MAX_WIDTH ? MAX_WIDTH : size.ws_col;
}

bool cli_terminal_progress(void) {
    return isatty(STDERR_FILENO) && !is_dumb();
}
