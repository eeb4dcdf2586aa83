/* One of several processes. The work is done by a child, so that the launcher is told of one that
 * is killed as of any other failure: by a line and by exit status 2. */
#include "cli/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/message.h"

enum { LEAST_INTERRUPTED = 128, HEARSAY_SECONDS = 2 };

/* A process, as its parent and its child know it. */
struct process {
    unsigned index;
    volatile int *is_ended; /* shared: the child has said all that is to be said */
    int kept;               /* what a rank other than 0 writes to standard error; -1: nothing is */
    int standard_error;     /* the launcher's */
};

/* --- what ranks other than 0 print --- */

/* Rank 0 prints; what another one writes to standard error is kept, since it says why it failed. */
static bool hush(struct process *process) {
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    process->standard_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    process->kept = memfd_create("gradcmp", MFD_CLOEXEC);
    bool ok = nowhere >= 0 && process->kept >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 &&
              dup2(process->kept, STDERR_FILENO) >= 0;
    if (nowhere >= 0) {
        close(nowhere);
    }
    return ok;
}

/* Find the last line that was kept, without the program's name. */
static void last_complaint(const struct process *process, char *out, size_t capacity) {
    static const char name[] = "gradcmp: ";
    char text[4096];
    off_t end = process->kept < 0 ? 0 : lseek(process->kept, 0, SEEK_END);
    off_t from = end > (off_t)sizeof text - 1 ? end - ((off_t)sizeof text - 1) : 0;
    ssize_t count = end <= 0 ? 0 : pread(process->kept, text, sizeof text - 1, from);
    text[count < 0 ? 0 : count] = '\0';
    char *last = NULL, *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        last = line;
    }
    if (last == NULL) {
        last = text;
    }
    if (strncmp(last, name, sizeof name - 1) == 0) {
        last += sizeof name - 1;
    }
    snprintf(out, capacity, "%.*s", (int)capacity - 1, last);
}

/* Print although another rank is the one that prints. */
static void complain_here(const struct process *process, const char *text) {
    fflush(stderr);
    if (process->standard_error >= 0) {
        dup2(process->standard_error, STDERR_FILENO);
    }
    cli_complain("%s (on rank %u)", text, process->index);
    fflush(stderr);
}

/* --- the child --- */

static int is_interrupted(void *user, uint64_t bytes_done, uint64_t bytes_total) {
    (void)user;
    (void)bytes_done;
    (void)bytes_total;
    return cli_interrupt_signal() != 0;
}

/* What one rank cannot do, most often none can: rank 0 says so, and the launcher ends the others
 * before they repeat it. */
static int end_apart(const struct process *process, const struct gradcmp_error *error) {
    if (process->index == 0) {
        cli_complain_error(error);
        return CLI_EXIT_TROUBLE;
    }
    struct timespec nap = {HEARSAY_SECONDS, 0};
    nanosleep(&nap, NULL);
    complain_here(process, error->message);
    return CLI_EXIT_TROUBLE;
}

/* Part from the others; returns the exit status. */
static int leave(const struct process *process, struct gradcmp_ranks *ranks, int exit_status) {
    struct gradcmp_farewell farewell = {.struct_size = sizeof farewell};
    struct gradcmp_error error = {0};
    char complaint[sizeof farewell.text] = "";
    farewell.exit_status = exit_status;
    farewell.progress = is_interrupted;
    fflush(NULL);
    if (process->index > 0 && exit_status != CLI_EXIT_CONSISTENT) {
        last_complaint(process, complaint, sizeof complaint);
        memcpy(farewell.text, complaint, sizeof complaint);
    }
    if (cli_interrupt_signal() == 0) {
        cli_interrupt_catch();
    }
    if (gradcmp_ranks_leave(ranks, &farewell, &error) != GRADCMP_OK) {
        if (exit_status < LEAST_INTERRUPTED && process->index > 0 && complaint[0] != '\0') {
            complain_here(process, complaint);
        } else if (exit_status < CLI_EXIT_TROUBLE && cli_interrupt_signal() == 0) {
            complain_here(process, error.message);
        }
        return exit_status < CLI_EXIT_TROUBLE ? CLI_EXIT_TROUBLE : exit_status;
    }
    if (process->index > 0) {
        return CLI_EXIT_CONSISTENT; /* rank 0's exit status counts */
    }
    if (farewell.text[0] != '\0') {
        cli_complain("%s", farewell.text);
    }
    return farewell.exit_status;
}

static int work(const struct process *process, int argc, char **argv, cli_ranks_fn run) {
    struct gradcmp_ranks *ranks;
    struct gradcmp_error error = {0};
    int exit_status;
    if (gradcmp_ranks_join(&ranks, &error) != GRADCMP_OK) {
        exit_status = end_apart(process, &error);
    } else if (ranks == NULL) {
        exit_status = run(argc, argv, NULL);
    } else {
        cli_interrupt_leave_untold();
        exit_status = leave(process, ranks, run(argc, argv, ranks));
    }
    fflush(NULL);
    *process->is_ended = 1;
    return exit_status;
}

/* --- the parent --- */

/* Say what became of a child that could not say it, with what it had written. */
static void complain_of_child(const struct process *process, int status) {
    char text[256], complaint[160];
    last_complaint(process, complaint, sizeof complaint);
    const char *between = complaint[0] == '\0' ? "" : ": ";
    if (WIFSIGNALED(status)) {
        bool by_kernel = WTERMSIG(status) == SIGKILL;
        snprintf(text, sizeof text, "killed by signal %d (%s%s)%s%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), by_kernel ? ", as where memory runs out" : "",
                 between, complaint);
    } else {
        snprintf(text, sizeof text, "ended with status %d before its time%s%s", WEXITSTATUS(status),
                 between, complaint);
    }
    complain_here(process, text);
}

/* Wait for the child, and pass on how it ended. Signals are for the child, which has them too: a
 * launcher sends them to the whole group. */
static int watch(const struct process *process, pid_t child) {
    int status = 0;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_NAME, "rank-watch"); /* whoever looks for gradcmp looks for the child */
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return CLI_EXIT_TROUBLE;
        }
    }
    int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool is_asked = by == SIGINT || by == SIGTERM || by == SIGHUP;
    if (is_asked) {
        return LEAST_INTERRUPTED + by;
    }
    if (WIFEXITED(status) && *process->is_ended) {
        return WEXITSTATUS(status);
    }
    complain_of_child(process, status);
    return CLI_EXIT_TROUBLE;
}

int cli_ranks_run(int argc, char **argv, cli_ranks_fn run) {
    static volatile int is_ended_here;
    struct process process = {.is_ended = &is_ended_here, .kept = -1, .standard_error = -1};
    unsigned count;
    if (!gradcmp_ranks_launched(&process.index, &count)) {
        return run(argc, argv, NULL);
    }
    if (process.index > 0 && !hush(&process)) {
        cli_complain("rank %u: no descriptors for what it prints", process.index);
        return CLI_EXIT_TROUBLE;
    }
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody learns how a child ended */
    void *shared = mmap(NULL, sizeof *process.is_ended, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = shared == MAP_FAILED ? -1 : fork();
    if (child < 0) {
        return work(&process, argc, argv, run);
    }
    process.is_ended = shared;
    if (child > 0) {
        return watch(&process, child);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return work(&process, argc, argv, run);
}
