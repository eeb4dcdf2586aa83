/* Tests of the sandbox: each enters it in a process of its own and then tries something. Where the
 * kernel has no Landlock, entering must fail with one clear line, and the rest is skipped. */
#include "temp_tools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "gradcmp/gradcmp.h"

enum { ALLOWED = 0, NOT_ENTERED = 99 };

static bool has_landlock(void) {
    return syscall(444, NULL, (size_t)0, 1U) >= 1;
}

/* errno of what failed, ALLOWED where it did not. */
static int code_of(long result) {
    return result < 0 ? errno : ALLOWED;
}

static enum gradcmp_status enter(const char *temp) {
    char input[600], report[600];
    snprintf(input, sizeof input, "%s/in", temp);
    snprintf(report, sizeof report, "%s/out/report.json", temp);
    const char *inputs[] = {input, "/nosuch"}, *outputs[] = {report};
    struct gradcmp_sandbox_options sandbox = GRADCMP_SANDBOX_OPTIONS_INIT;
    sandbox.inputs = inputs;
    sandbox.input_count = 2;
    sandbox.outputs = outputs;
    sandbox.output_count = 1;
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gradcmp_sandbox_enter(&sandbox, &error);
    if (status != GRADCMP_OK) {
        printf("%s\n", error.message);
    }
    return status;
}

typedef int (*probe_fn)(const char *temp);

/* Run a probe inside; what it returns is the process' status. */
static int inside(const char *temp, probe_fn probe) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(enter(temp) == GRADCMP_OK ? probe(temp) : NOT_ENTERED);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_in(const char *temp, const char *name, int flags) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", temp, name);
    return open(path, flags, 0600);
}

static int read_input(const char *temp) {
    char byte;
    int fd = open_in(temp, "in/a", O_RDONLY);
    return fd < 0 ? errno : code_of(read(fd, &byte, 1));
}
static int read_by_openat2(const char *temp) {
    char path[600];
    uint64_t how[3] = {O_RDONLY, 0, 0};
    snprintf(path, sizeof path, "%s/secret", temp);
    return code_of(syscall(SYS_openat2, AT_FDCWD, path, how, sizeof how));
}
static int list_input(const char *temp) {
    char path[600];
    snprintf(path, sizeof path, "%s/in", temp);
    return opendir(path) == NULL ? errno : ALLOWED;
}
static int read_outside(const char *temp) {
    return code_of(open_in(temp, "secret", O_RDONLY));
}
static int read_through_link(const char *temp) {
    return code_of(open_in(temp, "in/link", O_RDONLY));
}
static int list_outside(const char *temp) {
    return opendir(temp) == NULL ? errno : ALLOWED;
}
static int read_passwords(const char *temp) {
    (void)temp;
    return code_of(open("/etc/passwd", O_RDONLY));
}
static int write_input(const char *temp) {
    return code_of(open_in(temp, "in/a", O_WRONLY));
}
static int truncate_input(const char *temp) {
    return code_of(open_in(temp, "in/a", O_RDONLY | O_TRUNC));
}
static int make_beside_input(const char *temp) {
    return code_of(open_in(temp, "in/new", O_WRONLY | O_CREAT));
}
static int remove_input(const char *temp) {
    char path[600];
    snprintf(path, sizeof path, "%s/in/a", temp);
    return code_of(unlink(path));
}
static int change_modes(const char *temp) {
    char path[600];
    snprintf(path, sizeof path, "%s/in/a", temp);
    return code_of(chmod(path, 0777));
}
static int write_report(const char *temp) {
    char from[600], to[600];
    snprintf(from, sizeof from, "%s/out/x.tmp", temp);
    snprintf(to, sizeof to, "%s/out/report.json", temp);
    int fd = open(from, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, "{}", 2) != 2 || fsync(fd) != 0 || close(fd) != 0) {
        return errno;
    }
    return code_of(rename(from, to));
}
static int read_beside_report(const char *temp) {
    return code_of(open_in(temp, "out/other", O_RDONLY));
}
static int start_program(const char *temp) {
    char *arguments[] = {(char *)"true", NULL}, *environment[] = {NULL};
    (void)temp;
    return code_of(execve("/bin/true", arguments, environment));
}
static int make_process(const char *temp) {
    (void)temp;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    return code_of(pid);
}
static int make_socket(const char *temp) {
    (void)temp;
    return code_of(socket(AF_INET, SOCK_STREAM, 0));
}
static int make_local_socket(const char *temp) {
    (void)temp;
    return code_of(socket(AF_UNIX, SOCK_STREAM, 0));
}
static int make_executable(const char *temp) {
    (void)temp;
    void *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? errno : ALLOWED;
}
static int signal_another(const char *temp) {
    (void)temp;
    return code_of(kill(getppid(), 0));
}
static int trace_another(const char *temp) {
    (void)temp;
    return code_of(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}
static int raise_limit(const char *temp) {
    uint64_t limit[2] = {1024, 1024};
    (void)temp;
    return code_of(syscall(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, limit, NULL));
}
static int load_kernel_code(const char *temp) {
    (void)temp;
    return code_of(syscall(SYS_bpf, 0, NULL, 0));
}
static int make_nameless(const char *temp) {
    (void)temp;
    return code_of(open(getenv("TMPDIR"), O_TMPFILE | O_RDWR | O_EXCL, 0600));
}
static int enter_twice(const char *temp) {
    return enter(temp) == GRADCMP_ERROR_USAGE ? ALLOWED : EINVAL;
}

static void *read_in_thread(void *temp) {
    return (void *)(intptr_t)(read_input(temp) == ALLOWED ? read_outside(temp) : -1);
}
static int start_thread(const char *temp) {
    pthread_t thread;
    void *result;
    int code = pthread_create(&thread, NULL, read_in_thread, (void *)temp);
    return code != 0 || pthread_join(thread, &result) != 0 ? 1 : (int)(intptr_t)result;
}

/* What is asked of the inside, and what has to come of it. */
static const struct {
    const char *what;
    probe_fn probe;
    int expected;
} probes[] = {
    {"read an input", read_input, ALLOWED},
    {"list an input", list_input, ALLOWED},
    {"write the report", write_report, ALLOWED},
    {"make a temporary file", make_nameless, ALLOWED},
    {"read another file", read_outside, EACCES},
    {"read another file by openat2", read_by_openat2, EACCES},
    {"read through a link in an input", read_through_link, EACCES},
    {"list another folder", list_outside, EACCES},
    {"read a system file", read_passwords, EACCES},
    {"write an input", write_input, EACCES},
    {"truncate an input", truncate_input, EACCES},
    {"make a file in an input", make_beside_input, EACCES},
    {"remove an input", remove_input, EACCES},
    {"change modes", change_modes, EPERM},
    {"read what lies beside the report", read_beside_report, EACCES},
    {"start a program", start_program, EPERM},
    {"make a process", make_process, EPERM},
    {"make a socket", make_socket, EPERM},
    {"make a local socket", make_local_socket, EPERM},
    {"make memory executable", make_executable, EPERM},
    {"signal another process", signal_another, EPERM},
    {"trace another process", trace_another, EPERM},
    {"change a limit", raise_limit, EPERM},
    {"load code into the kernel", load_kernel_code, EPERM},
    {"a thread is inside too", start_thread, EACCES},
    {"a second time is wrong usage", enter_twice, ALLOWED},
};

static void prepare(const char *temp) {
    char *link = temp_path(temp, "in/link"), *secret = temp_path(temp, "secret");
    temp_folder(temp, "in");
    temp_folder(temp, "out");
    temp_file(temp, "in/a", "a", 1);
    temp_file(temp, "secret", "s", 1);
    temp_file(temp, "out/other", "o", 1);
    assert_int_equal(symlink(secret, link), 0);
    free(link);
    free(secret);
}

static void test_sandbox__each_probe_is_allowed_or_refused(void **state) {
    prepare(*state);
    if (!has_landlock()) {
        skip();
    }
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        int found = inside(*state, probes[i].probe);
        if (found != probes[i].expected) {
            fail_msg("%s: expected %s, found %s", probes[i].what, strerror(probes[i].expected),
                     strerror(found));
        }
    }
}

/* The same probes outside: a probe that fails anyway would prove nothing. */
static void test_sandbox__outside_files_can_be_read(void **state) {
    prepare(*state);
    assert_int_equal(read_outside(*state), ALLOWED);
    assert_int_equal(read_through_link(*state), ALLOWED);
    assert_int_equal(read_beside_report(*state), ALLOWED);
    assert_int_equal(make_beside_input(*state), ALLOWED);
}

static void test_sandbox__without_landlock_is_one_line(void **state) {
    struct gradcmp_error error = {0};
    if (has_landlock()) {
        skip();
    }
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        bool is_told = gradcmp_sandbox_enter(NULL, &error) == GRADCMP_ERROR_UNSUPPORTED &&
                       strstr(error.message, "has no Landlock") != NULL;
        _exit(is_told ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}
static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_sandbox__each_probe_is_allowed_or_refused),
        TEMP_TEST(test_sandbox__outside_files_can_be_read),
        TEMP_TEST(test_sandbox__without_landlock_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
