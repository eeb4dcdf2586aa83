/* The broker's two sides. A request is the helper's argument with three descriptors: its streams,
 * and a pipe on which the broker answers with 0 or an errno, and then with the wait status. The
 * broker trusts nobody: it starts that one program, with a number or with the word for writing. */
#include "formats/hdf5_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/hdf5_spawn.h"
#include "formats/hdf5_wire_write.h"

enum { ARGUMENT_BYTES = 64, PASSED = 3, FIRST_FREE_DESCRIPTOR = 3, MAX_DESCRIPTORS = 65536 };

/* Which process this is cannot be handed down to every reader: it belongs to the process. */
static int broker = -1;

int gcmp_h5_broker(void) {
    return broker;
}

/* Room for the descriptors of a message, aligned as its header wants. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PASSED * sizeof(int))];
};

/* --- the process that asks --- */

static int send_request(const char *argument, const int descriptors[PASSED]) {
    char text[ARGUMENT_BYTES] = "";
    union control control;
    memset(&control, 0, sizeof control);
    memcpy(text, argument, strnlen(argument, sizeof text - 1));
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(PASSED * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, PASSED * sizeof(int));
    for (;;) {
        if (sendmsg(broker, &message, MSG_NOSIGNAL) >= 0) {
            return 0;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
}

bool gcmp_h5_broker_read(int pipe, int *number) {
    ssize_t done;
    do {
        done = read(pipe, number, sizeof *number);
    } while (done < 0 && errno == EINTR);
    return done == (ssize_t)sizeof *number;
}

int gcmp_h5_broker_ask(const char *argument, const int streams[2], int *ending) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    const int descriptors[PASSED] = {streams[0], streams[1], ends[1]};
    int code = send_request(argument, descriptors);
    close(ends[1]);
    if (code == 0 && !gcmp_h5_broker_read(ends[0], &code)) {
        code = EPIPE;
    }
    if (code != 0) {
        close(ends[0]);
        return code;
    }
    *ending = ends[0];
    return 0;
}

/* --- the broker --- */

static bool is_known(const char *argument) {
    return strcmp(argument, GCMP_H5W_ARGUMENT) == 0 ||
           (argument[0] != '\0' && argument[strspn(argument, "0123456789")] == '\0');
}

static void tell(int pipe, int number) {
    ssize_t done = write(pipe, &number, sizeof number);
    (void)done; /* whoever asked may be gone */
}

/* In a process of its own: start one helper, wait for it, tell how it ended. */
static void serve(const char *program, const char *argument, const int descriptors[PASSED]) {
    struct gcmp_h5_child child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_DFL);
    int code = gcmp_h5_spawn(program, argument, descriptors, &child);
    close(descriptors[0]);
    close(descriptors[1]);
    tell(descriptors[2], code);
    if (code == 0) {
        tell(descriptors[2], gcmp_h5_wait(&child));
    }
    _exit(0);
}

/* Receive a request; how many descriptors came with it, or -1 at the end. */
static int receive(int socket, char text[ARGUMENT_BYTES], int descriptors[PASSED]) {
    union control control;
    struct iovec part = {text, ARGUMENT_BYTES};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t done;
    do {
        done = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (done < 0 && errno == EINTR);
    if (done <= 0) {
        return -1;
    }
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
        return 0;
    }
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
    text[ARGUMENT_BYTES - 1] = '\0';
    return done == ARGUMENT_BYTES ? (int)count : 0;
}

/* Leave it the socket alone, as descriptor 3; what another program reads must not be held open. */
static bool keep_only(int socket) {
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || dup2(socket, FIRST_FREE_DESCRIPTOR) < 0) {
        return false;
    }
    (void)fcntl(FIRST_FREE_DESCRIPTOR, F_SETFD, FD_CLOEXEC);
#if defined(SYS_close_range)
    if (syscall(SYS_close_range, (unsigned)FIRST_FREE_DESCRIPTOR + 1, ~0U, 0U) == 0) {
        return true;
    }
#endif
    for (int fd = FIRST_FREE_DESCRIPTOR + 1; fd < MAX_DESCRIPTORS; fd++) {
        (void)close(fd);
    }
    return true;
}

static void work(const char *program, const char *folder) {
    char text[ARGUMENT_BYTES];
    int descriptors[PASSED], count;
    while ((count = receive(FIRST_FREE_DESCRIPTOR, text, descriptors)) >= 0) {
        if (count == PASSED && is_known(text) && fork() == 0) {
            serve(program, text, descriptors);
        }
        for (int i = 0; i < count; i++) {
            close(descriptors[i]);
        }
    }
    if (folder != NULL) {
        (void)rmdir(folder);
    }
}

/* Signals from a terminal go to the whole group: the broker ends after the other, not before. */
static void outlive(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], SIG_IGN);
    }
    struct sigaction forget = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    sigemptyset(&forget.sa_mask);
    sigaction(SIGCHLD, &forget, NULL);
}

enum gradcmp_status gcmp_h5_broker_start(const char *folder, struct gradcmp_error *error) {
    char program[2 * PATH_MAX];
    int ends[2];
    if (!gcmp_h5_find_program(program, sizeof program)) {
        program[0] = '\0'; /* it is then missed where it is needed */
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "no socket for the sandbox: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "no process for the sandbox: %s", strerror(errno));
    }
    if (pid == 0) {
        outlive();
        if (keep_only(ends[1])) {
            work(program, folder);
        }
        _exit(0);
    }
    close(ends[1]);
    broker = ends[0];
    return GRADCMP_OK;
}
