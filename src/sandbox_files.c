/* Landlock: files that may be opened. The kernel's interface is stated here, because the C
 * library's headers are often older than the kernel. */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sibling.h"

/* Rights, by their bit in linux/landlock.h, and the version of the interface that brought them. */
#define EXECUTE     ((uint64_t)1 << 0)
#define WRITE_FILE  ((uint64_t)1 << 1)
#define READ_FILE   ((uint64_t)1 << 2)
#define READ_DIR    ((uint64_t)1 << 3)
#define REMOVE_FILE ((uint64_t)1 << 5)
#define MAKE_REG    ((uint64_t)1 << 8)
#define FIRST_ALL   (((uint64_t)1 << 13) - 1) /* version 1 */
#define REFER       ((uint64_t)1 << 13)       /* version 2 */
#define TRUNCATE    ((uint64_t)1 << 14)       /* version 3 */
#define IOCTL_DEV   ((uint64_t)1 << 15)       /* version 5 */
#define FILE_RIGHTS (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

/* The same numbers on every processor. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { ASK_VERSION = 1, PATH_BENEATH = 1 };

struct path_rule {
    uint64_t rights;
    int32_t parent;
} __attribute__((packed));

struct ruleset {
    int descriptor;
    uint64_t handled;
    struct gradcmp_error *error;
};

static uint64_t rights_of_version(long version) {
    uint64_t rights = FIRST_ALL;
    rights |= version >= 2 ? REFER : 0;
    rights |= version >= 3 ? TRUNCATE : 0;
    return rights | (version >= 5 ? IOCTL_DEV : 0);
}

static enum gradcmp_status create(struct ruleset *rules) {
    long version = syscall(CREATE_RULESET, NULL, (size_t)0, ASK_VERSION);
    if (version < 1) {
        GCMP_FAIL(rules->error, GRADCMP_ERROR_UNSUPPORTED,
                  "sandbox: this kernel or container has no Landlock (%s)", strerror(errno));
    }
    rules->handled = rights_of_version(version);
    rules->descriptor = (int)syscall(CREATE_RULESET, &rules->handled, sizeof rules->handled, 0U);
    if (rules->descriptor < 0) {
        GCMP_FAIL(rules->error, GRADCMP_ERROR_UNSUPPORTED, "sandbox: Landlock is refused (%s)",
                  strerror(errno));
    }
    return GRADCMP_OK;
}

/* Allow what is among `rights` at a path and beneath it. A path that is not there needs no rule. */
static enum gradcmp_status allow(const struct ruleset *rules, const char *path, uint64_t rights) {
    struct stat info;
    int parent = open(path, O_PATH | O_CLOEXEC);
    if (parent < 0) {
        return GRADCMP_OK;
    }
    bool is_file = fstat(parent, &info) != 0 || !S_ISDIR(info.st_mode);
    struct path_rule rule = {rights & rules->handled & (is_file ? FILE_RIGHTS : ~(uint64_t)0),
                             parent};
    long added =
        rule.rights == 0 ? 0 : syscall(ADD_RULE, rules->descriptor, PATH_BENEATH, &rule, 0U);
    int code = errno;
    close(parent);
    /* EBADFD: a pipe or a socket, which lies in no file system and needs no rule. */
    if (added != 0 && code != EBADFD) {
        GCMP_FAIL_AT(rules->error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET,
                     "sandbox: no rule for this path can be made (%s)", strerror(code));
    }
    return GRADCMP_OK;
}

/* A gradient dump is read together with the checkpoints beside it. */
static enum gradcmp_status allow_input(const struct ruleset *rules, const char *path) {
    GCMP_TRY(allow(rules, path, READ_FILE | READ_DIR));
    char *folder = gcmp_sibling_folder(path);
    enum gradcmp_status status =
        folder == NULL ? GRADCMP_OK : allow(rules, folder, READ_FILE | READ_DIR);
    free(folder);
    return status;
}

/* A file is made under another name in its folder and then renamed; a device is written as it is.
 */
static enum gradcmp_status allow_output(const struct ruleset *rules, const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        return allow(rules, path, WRITE_FILE | TRUNCATE);
    }
    /* Where a link leads is what is replaced. */
    char *real = realpath(path, NULL), *folder = strdup(real == NULL ? path : real);
    free(real);
    if (folder == NULL) {
        GCMP_FAIL_MEMORY(rules->error);
    }
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder] = '\0';
    }
    enum gradcmp_status status =
        allow(rules, slash == NULL ? "." : folder, WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE);
    free(folder);
    return status == GRADCMP_OK ? allow(rules, path, READ_FILE) : status;
}

static enum gradcmp_status add_rules(const struct ruleset *rules,
                                     const struct gradcmp_sandbox_options *sandbox,
                                     const char *temporary) {
    /* How many processors may be used; a seed for hash tables. */
    static const char *const common[] = {"/proc/self/cgroup", "/sys/fs/cgroup", "/dev/urandom"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        GCMP_TRY(allow(rules, common[i], READ_FILE));
    }
    for (size_t i = 0; i < sandbox->input_count; i++) {
        GCMP_TRY(allow_input(rules, sandbox->inputs[i]));
    }
    for (size_t i = 0; i < sandbox->output_count; i++) {
        GCMP_TRY(allow_output(rules, sandbox->outputs[i]));
    }
    return allow(rules, temporary, READ_FILE | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE);
}

enum gradcmp_status gcmp_sandbox_files(const struct gradcmp_sandbox_options *sandbox,
                                       const char *temporary, struct gradcmp_error *error) {
    struct ruleset rules = {.descriptor = -1, .error = error};
    GCMP_TRY(create(&rules));
    enum gradcmp_status status = add_rules(&rules, sandbox, temporary);
    if (status == GRADCMP_OK && syscall(RESTRICT_SELF, rules.descriptor, 0U) != 0) {
        gcmp_error_set(error, GRADCMP_ERROR_UNSUPPORTED, NULL, GRADCMP_NO_OFFSET,
                       "sandbox: Landlock is refused (%s)", strerror(errno));
        status = GRADCMP_ERROR_UNSUPPORTED;
    }
    close(rules.descriptor);
    return status;
}
