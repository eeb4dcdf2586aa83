/* seccomp: which system calls are left. A list of what is allowed, so that what a later kernel
 * brings is refused too. */
#include "sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(OWN_ARCH)

enum { MOST_STEPS = 512, PROT_EXECUTE = 4, ASK_TERMINAL = 0x5401, ASK_WINDOW = 0x5413 };

/* Calls that are allowed whatever their arguments are: Landlock decides about paths, and what works
 * on a descriptor needs one that is open. */
static const int plain[] = {
    SYS_read,
    SYS_pread64,
    SYS_preadv,
    SYS_readv,
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_close,
    SYS_lseek,
    SYS_fstat,
    SYS_statx,
    SYS_fstatfs,
    SYS_openat,
    SYS_openat2,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_renameat,
    SYS_unlinkat,
    SYS_fchmod,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_memfd_create,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_readahead,
    SYS_dup,
    SYS_pipe2,
    SYS_ppoll,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mincore,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_futex,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_getcpu,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_uname,
    SYS_sysinfo,
    SYS_recvfrom,
    SYS_shutdown,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#if defined(SYS_faccessat2)
    SYS_faccessat2,
#endif
#if defined(SYS_renameat2)
    SYS_renameat2,
#endif
#if defined(SYS_newfstatat)
    SYS_newfstatat,
#endif
#if defined(__x86_64__) /* older forms of some of these */
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_unlink,
    SYS_poll,
    SYS_getdents,
    SYS_time,
    SYS_dup2,
    SYS_pipe,
#endif
};

/* fcntl may not say who gets signals. */
static const unsigned commands[] = {0 /* F_DUPFD */,         1 /* F_GETFD */,
                                    2 /* F_SETFD */,         3 /* F_GETFL */,
                                    4 /* F_SETFL */,         1030 /* F_DUPFD_CLOEXEC */,
                                    1031 /* F_SETPIPE_SZ */, 1032 /* F_GETPIPE_SZ */};

struct program {
    struct sock_filter steps[MOST_STEPS];
    unsigned short count;
};

static void add(struct program *program, struct sock_filter step) {
    if (program->count < MOST_STEPS) {
        program->steps[program->count++] = step;
    }
}

static void end_with(struct program *program, unsigned verdict) {
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void load(struct program *program, size_t offset) {
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* Load half of an argument; both processors have its low half first. */
static void load_argument(struct program *program, unsigned which, unsigned half) {
    load(program,
         offsetof(struct seccomp_data, args) + sizeof(uint64_t) * which + sizeof(uint32_t) * half);
}

/* Leave out the next `count` steps unless what is loaded is `value`. */
static void unless_equal(struct program *program, unsigned value, unsigned count) {
    add(program,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (unsigned char)count));
}

/* Leave out the next `count` steps where any of the bits is set (`set`), or where none is. */
static void skip_on_bits(struct program *program, unsigned bits, bool set, unsigned count) {
    unsigned char yes = (unsigned char)(set ? count : 0), no = (unsigned char)(set ? 0 : count);
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no));
}

static const unsigned allowed = SECCOMP_RET_ALLOW, refused = SECCOMP_RET_ERRNO | EPERM;

/* Allow a call whose argument `which` is one of some values below 2^32. */
static void allow_on(struct program *program, int call, unsigned which, const unsigned *values,
                     size_t count) {
    unless_equal(program, (unsigned)call, (unsigned)(2 * count + 2));
    load_argument(program, which, 0);
    for (size_t i = 0; i < count; i++) {
        unless_equal(program, values[i], 1);
        end_with(program, allowed);
    }
    end_with(program, refused);
}

/* Allow a call whose argument `which` has none of the bits, or has them, in its low half. */
static void allow_by_bits(struct program *program, int call, unsigned which, unsigned bits,
                          bool wanted) {
    unless_equal(program, (unsigned)call, 4);
    load_argument(program, which, 0);
    skip_on_bits(program, bits, !wanted, 1);
    end_with(program, allowed);
    end_with(program, refused);
}

/* Allow a call whose pointer `which` is NULL. */
static void allow_on_null(struct program *program, int call, unsigned which) {
    unless_equal(program, (unsigned)call, 6);
    load_argument(program, which, 0);
    unless_equal(program, 0, 3);
    load_argument(program, which, 1);
    unless_equal(program, 0, 1);
    end_with(program, allowed);
    end_with(program, refused);
}

static void add_head(struct program *program) {
    load(program, offsetof(struct seccomp_data, arch));
    unless_equal(program, OWN_ARCH, 1);
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    end_with(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(struct seccomp_data, nr));
}

static void add_calls(struct program *program, int broker) {
    const unsigned own = (unsigned)getpid(), socket = (unsigned)broker, local = AF_UNIX,
                   questions[] = {ASK_TERMINAL, ASK_WINDOW};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        unless_equal(program, (unsigned)plain[i], 1);
        end_with(program, allowed);
    }
    allow_by_bits(program, SYS_mmap, 2, PROT_EXECUTE, false);
    allow_by_bits(program, SYS_mprotect, 2, PROT_EXECUTE, false);
    allow_by_bits(program, SYS_clone, 0, CLONE_THREAD, true);
    allow_on(program, SYS_fcntl, 1, commands, sizeof commands / sizeof *commands);
    allow_on(program, SYS_ioctl, 1, questions, 2);
    allow_on(program, SYS_kill, 0, &own, 1);
    allow_on(program, SYS_tgkill, 0, &own, 1);
    allow_on(program, SYS_socketpair, 0, &local, 1);
    allow_on(program, SYS_sendmsg, 0, &socket, 1);
    allow_on_null(program, SYS_sendto, 4);
    allow_on_null(program, SYS_prlimit64, 2);
#if defined(SYS_getrlimit)
    unless_equal(program, SYS_getrlimit, 1);
    end_with(program, allowed);
#endif
    /* The C library then takes clone, whose flags can be seen. */
    unless_equal(program, 435 /* clone3 */, 1);
    end_with(program, SECCOMP_RET_ERRNO | ENOSYS);
    end_with(program, refused);
}

enum gradcmp_status gcmp_sandbox_calls(int broker, struct gradcmp_error *error) {
    struct program program = {.count = 0};
    add_head(&program);
    add_calls(&program, broker);
    struct sock_fprog filter = {program.count, program.steps};
    if (program.count == MOST_STEPS || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "sandbox: this kernel or container refuses seccomp filters (%s)",
                  strerror(errno));
    }
    return GRADCMP_OK;
}

#else

enum gradcmp_status gcmp_sandbox_calls(int broker, struct gradcmp_error *error) {
    (void)broker;
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "sandbox: the list of system calls is not known for this processor");
}

#endif
