/* Finds the helper program, starts it and waits for it. */
#include "formats/hdf5_spawn.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/hdf5_broker.h"

static const char PROGRAM[] = "gradcmp-h5";

/* Where the helper lies relative to the folder of the module that holds this code: beside it in a
 * build, or in the libexec folder seen from lib or bin. The build system knows the paths. */
static const char *const folders[] = {
    ".",
#if defined(GRADCMP_LIBEXEC_FROM_LIB)
    GRADCMP_LIBEXEC_FROM_LIB,
#endif
#if defined(GRADCMP_LIBEXEC_FROM_BIN)
    GRADCMP_LIBEXEC_FROM_BIN,
#endif
};

/* --- finding --- */

/* Write the real path of the library, or of the program that this code is linked into. */
static bool module_path(char *path) {
    Dl_info info;
    static const char here; /* an address within the module */
    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL &&
        strchr(info.dli_fname, '/') != NULL && realpath(info.dli_fname, path) != NULL) {
        return true;
    }
    return realpath("/proc/self/exe", path) != NULL;
}

static bool is_program(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool gcmp_h5_find_program(char *path, size_t capacity) {
    char module[PATH_MAX];
    const char *chosen = secure_getenv("GRADCMP_H5HELPER");
    if (chosen != NULL) {
        snprintf(path, capacity, "%s", chosen);
        return is_program(path);
    }
    if (!module_path(module)) {
        return false;
    }
    *strrchr(module, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, capacity, "%s/%s/%s", module, folders[i], PROGRAM);
        if (is_program(path)) {
            return true;
        }
    }
    return false;
}

/* --- starting --- */

static int start_process(const char *program, const char *argument, const int streams[2],
                         pid_t *pid) {
    char libraries[PATH_MAX + 32], name[sizeof PROGRAM], text[64];
    const char *path = getenv("LD_LIBRARY_PATH");
    snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", path == NULL ? "" : path);
    snprintf(name, sizeof name, "%s", PROGRAM);
    snprintf(text, sizeof text, "%s", argument);
    char *arguments[] = {name, text, NULL}, *environment[] = {libraries, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    int code = posix_spawn_file_actions_adddup2(&actions, streams[0], STDIN_FILENO);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, streams[1], STDOUT_FILENO);
    code =
        code ? code
             : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    code = code ? code : posix_spawnattr_setsigmask(&attributes, &none);
    code = code ? code : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    code = code ? code
                : posix_spawn(pid, program, &actions, &attributes, arguments,
                              path == NULL ? environment + 1 : environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* --- a helper of this process or of its broker --- */

int gcmp_h5_spawn(const char *program, const char *argument, const int streams[2],
                  struct gcmp_h5_child *child) {
    *child = (struct gcmp_h5_child){0, -1};
    return gcmp_h5_broker() < 0 ? start_process(program, argument, streams, &child->pid)
                                : gcmp_h5_broker_ask(argument, streams, &child->ending);
}

int gcmp_h5_wait(struct gcmp_h5_child *child) {
    int status = 0;
    if (child->ending >= 0) {
        (void)gcmp_h5_broker_read(child->ending, &status);
        close(child->ending);
        child->ending = -1;
        return status;
    }
    while (waitpid(child->pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return 0; /* somebody else waited for it: the stream alone has to do */
        }
    }
    return status;
}

void gcmp_h5_give_up(struct gcmp_h5_child *child) {
    if (child->ending >= 0) {
        close(child->ending);
        child->ending = -1;
        return;
    }
    kill(child->pid, SIGKILL);
    (void)gcmp_h5_wait(child);
}
