/* Gives up rights. With a sanitizer built in the process keeps system calls and memory: the
 * sanitizer needs them. */
#include "h5helper/helper.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED)
#define SANITIZED 0
#endif

/* Memory that libhdf5 may take: its caches hold at most 32 MiB, an object header 64 KiB, a fractal
 * heap's block or a vector of links what the file has. */
#define MAX_DATA_BYTES ((rlim_t)512 << 20)

static bool lower(struct rlimit *limit, rlim_t value) {
    limit->rlim_max = limit->rlim_max < value ? limit->rlim_max : value;
    limit->rlim_cur = limit->rlim_max;
    return true;
}

/* The type of a resource's number is not the same in every C library. */
#define LOWER(resource, value)                                                                     \
    (getrlimit((resource), &limit) == 0 && lower(&limit, (value)) &&                               \
     setrlimit((resource), &limit) == 0)

static bool set_limits(unsigned long cpu_seconds) {
    struct rlimit limit;
    bool memory = SANITIZED || LOWER(RLIMIT_DATA, MAX_DATA_BYTES);
    return memory && LOWER(RLIMIT_CPU, cpu_seconds) && LOWER(RLIMIT_CORE, 0) &&
           LOWER(RLIMIT_FSIZE, 0) && LOWER(RLIMIT_NOFILE, 3);
}

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(OWN_ARCH) && !SANITIZED

#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ALLOW                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define KILL                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define SKIP_IF_SET(bits, count)  BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (count), 0)
#define ALLOW_CALL(number)        SKIP_UNLESS((number), 1), ALLOW
/* Allow a call whose argument `which` (from 0), below 2^32, equals `value`. */
#define ALLOW_CALL_ON(number, which, value)                                                        \
    SKIP_UNLESS((number), 4), LOAD(args[which]), SKIP_UNLESS((value), 1), ALLOW, REFUSE
/* Allow a call that maps or protects memory, but not memory that can be executed. */
#define ALLOW_NOT_EXECUTABLE(number)                                                               \
    SKIP_UNLESS((number), 4), LOAD(args[2]), SKIP_IF_SET(4 /* PROT_EXEC */, 1), ALLOW, REFUSE

/* Argument words are little-endian on both processors, so that the low half comes first. */
static struct sock_filter filter[] = {
    LOAD(arch),
    SKIP_UNLESS(OWN_ARCH, 1),
    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
    KILL,
    LOAD(nr),
    ALLOW_CALL_ON(SYS_pread64, 0, STDIN_FILENO),
    ALLOW_CALL_ON(SYS_write, 0, STDOUT_FILENO),
    ALLOW_NOT_EXECUTABLE(SYS_mmap),
    ALLOW_NOT_EXECUTABLE(SYS_mprotect),
    ALLOW_CALL(SYS_munmap),
    ALLOW_CALL(SYS_mremap),
    ALLOW_CALL(SYS_madvise),
    ALLOW_CALL(SYS_brk),
    ALLOW_CALL(SYS_fstat),
#if defined(SYS_newfstatat)
    ALLOW_CALL(SYS_newfstatat),
#endif
    ALLOW_CALL(SYS_clock_gettime),
    ALLOW_CALL(SYS_gettimeofday),
    ALLOW_CALL(SYS_getrandom),
    ALLOW_CALL(SYS_futex),
    ALLOW_CALL(SYS_rt_sigreturn),
    ALLOW_CALL(SYS_exit),
    ALLOW_CALL(SYS_exit_group),
    REFUSE,
};

/* What writing takes beside: the descriptors that are open are the stream and the file. */
static struct sock_filter writer_filter[] = {
    LOAD(arch),
    SKIP_UNLESS(OWN_ARCH, 1),
    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
    KILL,
    LOAD(nr),
    ALLOW_CALL(SYS_read),
    ALLOW_CALL(SYS_write),
    ALLOW_CALL(SYS_pread64),
    ALLOW_CALL(SYS_pwrite64),
    ALLOW_CALL(SYS_lseek),
    ALLOW_CALL(SYS_ftruncate),
    ALLOW_CALL(SYS_close),
    ALLOW_NOT_EXECUTABLE(SYS_mmap),
    ALLOW_NOT_EXECUTABLE(SYS_mprotect),
    ALLOW_CALL(SYS_munmap),
    ALLOW_CALL(SYS_mremap),
    ALLOW_CALL(SYS_madvise),
    ALLOW_CALL(SYS_brk),
    ALLOW_CALL(SYS_fstat),
#if defined(SYS_newfstatat)
    ALLOW_CALL(SYS_newfstatat),
#endif
    ALLOW_CALL(SYS_clock_gettime),
    ALLOW_CALL(SYS_gettimeofday),
    ALLOW_CALL(SYS_getrandom),
    ALLOW_CALL(SYS_futex),
    ALLOW_CALL(SYS_rt_sigreturn),
    ALLOW_CALL(SYS_exit),
    ALLOW_CALL(SYS_exit_group),
    REFUSE,
};

static void set_filter(struct sock_filter *calls, size_t count) {
    struct sock_fprog program = {(unsigned short)count, calls};
    /* Where the kernel has no such filter, the limits and the driver are what there is. */
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void filter_calls(bool writes) {
    if (writes) {
        set_filter(writer_filter, sizeof writer_filter / sizeof *writer_filter);
    } else {
        set_filter(filter, sizeof filter / sizeof *filter);
    }
}

#else

static void filter_calls(bool writes) {
    (void)writes;
}

#endif

bool sandbox_enter(unsigned long cpu_seconds) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !set_limits(cpu_seconds)) {
        return false;
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    filter_calls(false);
    return true;
}

bool sandbox_enter_writer(void) {
    struct rlimit limit;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        !(SANITIZED || LOWER(RLIMIT_DATA, MAX_DATA_BYTES)) || !LOWER(RLIMIT_CORE, 0)) {
        return false;
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    filter_calls(true);
    return true;
}
