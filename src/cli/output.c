/* Standard output and files that are there whole or not at all. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/message.h"

static int stdout_error; /* errno of the first failed write, or 0 */

int cli_stdout_write(void *user, const char *bytes, size_t length_bytes) {
    (void)user;
    if (stdout_error == 0 && fwrite(bytes, 1, length_bytes, stdout) != length_bytes) {
        stdout_error = errno;
    }
    return stdout_error != 0;
}

bool cli_stdout_failed(void) {
    return stdout_error != 0;
}

static int close_stdout(int status, bool pipe_is_trouble) {
    if (fflush(stdout) != 0 && stdout_error == 0) {
        stdout_error = errno;
    }
    if (stdout_error == 0 && ferror(stdout)) {
        stdout_error = EIO; /* an earlier printf failed and kept no errno */
    }
    if (stdout_error == 0 || (stdout_error == EPIPE && !pipe_is_trouble)) {
        return status;
    }
    cli_complain("standard output: %s", strerror(stdout_error));
    return CLI_EXIT_TROUBLE;
}

int cli_stdout_close(int status) {
    return close_stdout(status, false);
}

int cli_stdout_close_document(int status) {
    return close_stdout(status, true);
}

static bool fail_on(const char *path) {
    cli_complain("%s: %s", path, strerror(errno));
    return false;
}

/* Length of the folder's part of a path, with its slash; 0 where there is none. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

enum { HEAD_BYTES = 4096 };

/* The mark may stand among bytes of any sort. */
static bool is_of_kind(const char *head, size_t length, const struct cli_file_kind *kind) {
    size_t mark = strlen(kind->mark), start = strlen(kind->start);
    bool is_found = false;
    for (size_t at = 0; at + mark <= length && !is_found; at++) {
        is_found = memcmp(head + at, kind->mark, mark) == 0;
    }
    return is_found && length >= start && memcmp(head, kind->start, start) == 0;
}

/* True where a regular file is empty or is known as one of ours. */
static bool may_replace(const char *path, const struct cli_file_kind *kind) {
    char head[HEAD_BYTES + 1] = "";
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return fail_on(path);
    }
    ssize_t got = read(descriptor, head, HEAD_BYTES);
    close(descriptor);
    if (got < 0) {
        return fail_on(path);
    }
    if (got > 0 && !is_of_kind(head, (size_t)got, kind)) {
        cli_complain("%s: is no %s of gradcmp and is not overwritten", path, kind->name);
        return false;
    }
    return true;
}

static bool check_folder(const char *path) {
    size_t length = folder_length(path);
    char *folder = length == 0 ? strdup(".") : strndup(path, length);
    bool is_fine = folder != NULL && access(folder, W_OK | X_OK) == 0;
    if (!is_fine) {
        fail_on(path);
    }
    free(folder);
    return is_fine;
}

bool cli_file_check(const char *path, const struct cli_file_kind *kind) {
    struct stat status;
    if (stat(path, &status) != 0) {
        return errno == ENOENT ? check_folder(path) : fail_on(path);
    }
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return fail_on(path);
    }
    if (!S_ISREG(status.st_mode)) {
        return access(path, W_OK) == 0 || fail_on(path);
    }
    return may_replace(path, kind) && check_folder(path);
}

bool cli_file_check_new(const char *path) {
    struct stat status;
    if (lstat(path, &status) == 0 && (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))) {
        cli_complain("%s: is there already; remove it first or take another name", path);
        return false;
    }
    static const struct cli_file_kind none = {"file", "\n", "\n"};
    return cli_file_check(path, &none);
}

/* Where a link leads is what is replaced, not the link. */
static char *resolve(const char *path) {
    char *real = realpath(path, NULL);
    return real != NULL ? real : strdup(path);
}

static bool open_temporary(struct cli_file *file, int access) {
    enum { ATTEMPTS = 100, HOW = O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW };
    size_t folder = folder_length(file->final_path), room = folder + 64;
    file->temporary_path = malloc(room);
    if (file->temporary_path == NULL) {
        return false;
    }
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(file->temporary_path, room, "%.*s.gradcmp-%ld-%u.tmp", (int)folder,
                 file->final_path, (long)getpid(), attempt);
        file->descriptor = open(file->temporary_path, access | HOW, 0666);
        if (file->descriptor >= 0) {
            cli_interrupt_remove(file->temporary_path);
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

static void release(struct cli_file *file) {
    free(file->final_path);
    free(file->temporary_path);
    file->final_path = file->temporary_path = NULL;
}

static bool open_file(struct cli_file *file, const char *path, int access) {
    struct stat status;
    bool exists = stat(path, &status) == 0;
    *file = (struct cli_file){.path = path, .descriptor = -1};
    if (exists && !S_ISREG(status.st_mode)) {
        file->descriptor = open(path, O_WRONLY | O_CLOEXEC);
        return file->descriptor >= 0 || fail_on(path);
    }
    file->final_path = resolve(path);
    if (file->final_path == NULL || !open_temporary(file, access)) {
        fail_on(path);
        release(file);
        return false;
    }
    if (exists && fchmod(file->descriptor, status.st_mode & 07777) != 0) {
        errno = 0; /* the new file then has the modes of any new file */
    }
    return true;
}

bool cli_file_open(struct cli_file *file, const char *path) {
    return open_file(file, path, O_WRONLY);
}

bool cli_file_open_readable(struct cli_file *file, const char *path) {
    return open_file(file, path, O_RDWR);
}

int cli_file_write(void *user, const char *bytes, size_t length_bytes) {
    struct cli_file *file = user;
    while (length_bytes > 0) {
        ssize_t written = write(file->descriptor, bytes, length_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            file->failed = true;
            fail_on(file->path);
            return 1;
        }
        bytes += written;
        length_bytes -= (size_t)written;
    }
    return 0;
}

/* EINVAL: pipes and some file systems cannot be flushed. */
static bool finish(struct cli_file *file) {
    bool is_flushed = fsync(file->descriptor) == 0 || errno == EINVAL || errno == EROFS;
    bool is_closed = close(file->descriptor) == 0;
    bool is_named =
        is_flushed && is_closed &&
        (file->temporary_path == NULL || rename(file->temporary_path, file->final_path) == 0);
    return is_named || fail_on(file->path);
}

bool cli_file_close(struct cli_file *file, bool keep) {
    bool is_there = false;
    if (keep) {
        is_there = finish(file);
    } else {
        close(file->descriptor);
    }
    if (!is_there && file->temporary_path != NULL) {
        unlink(file->temporary_path);
    }
    cli_interrupt_remove(NULL);
    release(file);
    return is_there;
}
