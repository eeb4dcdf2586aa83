/* Loaded before the C library into the program under test (faults.py): one call fails, or all from
 * one on. Each variable is a number, from 1, of the call that fails; a "+" behind it: all from
 * there.
 *   FAULT_ALLOC=N    malloc, calloc, realloc, aligned_alloc, posix_memalign: no memory
 *   FAULT_READ=N     read, pread, preadv: FAULT_KIND error (EIO), short (one byte), interrupt
 * (EINTR) FAULT_WRITE=N    write, pwrite, fwrite's write: FAULT_ERRNO FAULT_OPEN=N     open,
 * openat, and openat2 through syscall: FAULT_ERRNO FAULT_FLUSH=N    fsync, close of a file that was
 * written, rename: FAULT_ERRNO FAULT_SIGNAL=N   at the Nth read, the signal FAULT_KIND is raised
 * FAULT_COUNTS=FILE: at the end, how many calls of each there were is written there. Calls on
 * standard error are left alone, and so is what happens before main. io_uring is refused, so that
 * reads are calls that can be counted. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum what { ALLOC, READ, WRITE, OPEN, FLUSH, SIGNAL, WHAT_COUNT };
static const char *const names[] = {"ALLOC", "READ", "WRITE", "OPEN", "FLUSH", "SIGNAL"};

static atomic_long counts[WHAT_COUNT];
static long first[WHAT_COUNT], last[WHAT_COUNT];
static int is_on, code = EIO, number;
static char kind;
static pid_t owner;

static void refuse_io_uring(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 425 /* io_uring_setup, on every processor */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
        (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    }
}

__attribute__((constructor)) static void begin(void) {
    refuse_io_uring();
    char name[32];
    for (int i = 0; i < WHAT_COUNT; i++) {
        snprintf(name, sizeof name, "FAULT_%s", names[i]);
        const char *text = getenv(name);
        if (text != NULL) {
            first[i] = atol(text);
            last[i] = strchr(text, '+') == NULL ? first[i] : -1;
        }
    }
    code = getenv("FAULT_ERRNO") == NULL ? EIO : atoi(getenv("FAULT_ERRNO"));
    kind = getenv("FAULT_KIND") == NULL ? 'e' : getenv("FAULT_KIND")[0];
    number = getenv("FAULT_KIND") == NULL ? 0 : atoi(getenv("FAULT_KIND"));
    owner = getpid();
    is_on = 1;
}

/* No call fails from here on: for what a coverage build does at its end (counted_exit.c). */
void fault_shim_end(void);
void fault_shim_end(void) {
    is_on = 0;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULT_COUNTS");
    fault_shim_end();
    if (path == NULL || getpid() != owner) {
        return;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    for (int i = 0; fd >= 0 && i < WHAT_COUNT; i++) {
        dprintf(fd, "%s %ld\n", names[i], atomic_load(&counts[i]));
    }
}

/* Count a call; whether it is to fail. */
static int fails(enum what what) {
    if (!is_on) {
        return 0;
    }
    long count = atomic_fetch_add(&counts[what], 1) + 1;
    return first[what] != 0 && count >= first[what] && (last[what] < 0 || count <= last[what]);
}

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (real == NULL) {                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }

/* --- memory; dlsym itself may want some --- */

static char spare[65536];
static size_t spare_used;
static _Thread_local int is_looking;

static void *from_spare(size_t bytes) {
    spare_used = (spare_used + 15) / 16 * 16;
    if (bytes > sizeof spare - spare_used) {
        return NULL;
    }
    void *memory = spare + spare_used;
    spare_used += bytes;
    return memory;
}

#define REAL_MEMORY(name, bytes)                                                                   \
    static __typeof__(name) *real;                                                                 \
    if (real == NULL) {                                                                            \
        if (is_looking) {                                                                          \
            return from_spare(bytes);                                                              \
        }                                                                                          \
        is_looking = 1;                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        is_looking = 0;                                                                            \
    }                                                                                              \
    if (fails(ALLOC)) {                                                                            \
        errno = ENOMEM;                                                                            \
        return NULL;                                                                               \
    }

void *malloc(size_t bytes) {
    REAL_MEMORY(malloc, bytes)
    return real(bytes);
}
void *calloc(size_t count, size_t bytes) {
    REAL_MEMORY(calloc, count * bytes)
    return real(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
    REAL_MEMORY(realloc, bytes)
    return real(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    REAL_MEMORY(aligned_alloc, bytes)
    return real(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    REAL(posix_memalign)
    return fails(ALLOC) ? ENOMEM : real(memory, alignment, bytes);
}
void free(void *memory) {
    if ((char *)memory >= spare && (char *)memory < spare + sizeof spare) {
        return;
    }
    REAL(free)
    real(memory);
}

/* --- reading --- */

static void raise_if_due(void) {
    struct sigaction now;
    if (fails(SIGNAL) && sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL) {
        raise(number);
    }
}

/* What a read of `bytes` is to be: -1 an error, else how many bytes. */
static ssize_t read_as(size_t bytes) {
    raise_if_due();
    if (!fails(READ)) {
        return (ssize_t)bytes;
    }
    if (kind == 's') {
        return bytes > 1 ? 1 : (ssize_t)bytes;
    }
    errno = kind == 'i' ? EINTR : code;
    return -1;
}

ssize_t read(int fd, void *buffer, size_t bytes) {
    REAL(read)
    ssize_t wanted = read_as(bytes);
    return wanted < 0 ? -1 : real(fd, buffer, (size_t)wanted);
}
ssize_t pread(int fd, void *buffer, size_t bytes, off_t at) {
    REAL(pread)
    ssize_t wanted = read_as(bytes);
    return wanted < 0 ? -1 : real(fd, buffer, (size_t)wanted, at);
}
ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at) {
    return pread(fd, buffer, bytes, at);
}
ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(preadv)
    struct iovec one = parts[0];
    ssize_t wanted = read_as(one.iov_len);
    if (wanted < 0 || (size_t)wanted == one.iov_len) {
        return wanted < 0 ? -1 : real(fd, parts, count, at);
    }
    one.iov_len = (size_t)wanted;
    return real(fd, &one, 1, at);
}

/* --- writing --- */

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write)
    if (fd != STDERR_FILENO && fails(WRITE)) {
        errno = code;
        return -1;
    }
    return real(fd, bytes, count);
}

static int flush_fails(void) {
    if (fails(FLUSH)) {
        errno = code;
        return 1;
    }
    return 0;
}
int fsync(int fd) {
    REAL(fsync)
    return flush_fails() ? -1 : real(fd);
}
int rename(const char *from, const char *to) {
    REAL(rename)
    return flush_fails() ? -1 : real(from, to);
}

/* --- opening --- */

static int open_fails(void) {
    if (fails(OPEN)) {
        errno = code;
        return 1;
    }
    return 0;
}
int open(const char *path, int flags, ...) {
    REAL(open)
    va_list more;
    va_start(more, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_fails() ? -1 : real(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    REAL(openat)
    va_list more;
    va_start(more, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_fails() ? -1 : real(folder, path, flags, mode);
}
long syscall(long which, ...) {
    REAL(syscall)
    va_list more;
    long a[6];
    va_start(more, which);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(more, long);
    }
    va_end(more);
#if defined(SYS_openat2)
    if (which == SYS_openat2 && open_fails()) {
        return -1;
    }
#endif
    return real(which, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int dup(int fd) {
    REAL(dup)
    return open_fails() ? -1 : real(fd);
}
