/* Reading registered files: positioned reads over a bounded pool of descriptors. */
#include "base/dir_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pages.h"

/* The largest single read; the system's own limit is just under 2 GiB. */
enum { MAX_READ_BYTES = 1 << 30 };

void gcmp_dir_close_file(struct gcmp_file *file) {
    if (file->fd >= 0) {
        close(file->fd);
        gcmp_dir_count_open(-1);
    }
    if (file->direct >= 0) {
        close(file->direct);
        gcmp_dir_count_open(-1);
    }
    file->fd = file->direct = -1;
}

bool gcmp_dir_evict_one(struct gcmp_dir *dir) {
    unsigned oldest = dir->open_count;
    for (unsigned i = 0; i < dir->open_count; i++) {
        const struct gcmp_file *file = &dir->files[dir->open_files[i]];
        if (file->users == 0 && (oldest == dir->open_count ||
                                 file->last_use < dir->files[dir->open_files[oldest]].last_use)) {
            oldest = i;
        }
    }
    if (oldest == dir->open_count) {
        return false;
    }
    struct gcmp_file *file = &dir->files[dir->open_files[oldest]];
    gcmp_dir_close_file(file);
    dir->open_files[oldest] = dir->open_files[--dir->open_count];
    return true;
}

/* Open a registered file again; it must still be the one that was registered. */
static enum gradcmp_status reopen(struct gcmp_dir *dir, const struct gcmp_file *file,
                                  struct gcmp_opened *out, struct gradcmp_error *error) {
    GCMP_TRY(gcmp_dir_open_regular(dir, file->name, out, error));
    if (out->info.st_dev != file->device || out->info.st_ino != file->inode ||
        (uint64_t)out->info.st_size != file->bytes) {
        close(out->fd);
        GCMP_FAIL_AT(error, GRADCMP_ERROR_IO, file->path, GRADCMP_NO_OFFSET,
                     "changed while being read");
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dir_open_fd(struct gcmp_dir *dir, uint32_t file, int *fd,
                                     struct gradcmp_error *error) {
    struct gcmp_opened opened;
    *fd = -1;
    GCMP_TRY(reopen(dir, &dir->files[file], &opened, error));
    *fd = opened.fd;
    return GRADCMP_OK;
}

/* Open `file` for the pool without holding the lock during the system call. Lock held on entry and
 * on return. Sets *again where descriptors ran out and one of ours may come free. */
static enum gradcmp_status open_for_pool(struct gcmp_dir *dir, struct gcmp_file *file, bool *again,
                                         struct gradcmp_error *error) {
    file->opening = true;
    dir->opening_count++;
    pthread_mutex_unlock(&dir->lock);
    struct gcmp_opened opened;
    gcmp_dir_keep_room();
    enum gradcmp_status status = reopen(dir, file, &opened, error);
    bool ran_out = opened.code == EMFILE || opened.code == ENFILE;
    pthread_mutex_lock(&dir->lock);
    file->opening = false;
    dir->opening_count--;
    pthread_cond_broadcast(&dir->changed);
    if (status == GRADCMP_OK) {
        file->fd = opened.fd;
        gcmp_dir_count_open(1);
        dir->open_files[dir->open_count++] = (uint32_t)(file - dir->files);
    } else if (ran_out && dir->open_count > dir->pinned_count) {
        dir->open_limit = dir->open_count; /* the process has no more to give: live with these */
        *again = true;
    }
    errno = opened.code;
    return status;
}

/* Have a file open, waiting for others where need be. Lock held. */
static enum gradcmp_status open_file(struct gcmp_dir *dir, struct gcmp_file *file,
                                     struct gradcmp_error *error) {
    while (file->fd < 0) {
        if (file->opening) {
            pthread_cond_wait(&dir->changed, &dir->lock);
            continue;
        }
        if (dir->open_count + dir->opening_count >= dir->open_limit && !gcmp_dir_evict_one(dir)) {
            pthread_cond_wait(&dir->changed, &dir->lock);
            continue;
        }
        bool again = false;
        enum gradcmp_status status = open_for_pool(dir, file, &again, error);
        if (status != GRADCMP_OK && !again) {
            return status;
        }
    }
    return GRADCMP_OK;
}

/* Get a descriptor of a file; it stays open until release_fd. On failure errno is the system's
 * reason, or 0. */
static enum gradcmp_status acquire_fd(struct gcmp_dir *dir, uint32_t index, int *fd,
                                      struct gradcmp_error *error) {
    struct gcmp_file *file = &dir->files[index];
    pthread_mutex_lock(&dir->lock);
    enum gradcmp_status status = open_file(dir, file, error);
    if (status == GRADCMP_OK) {
        file->users++;
        file->last_use = ++dir->clock;
        *fd = file->fd;
    }
    pthread_mutex_unlock(&dir->lock);
    return status;
}

static void release_fd(struct gcmp_dir *dir, uint32_t index) {
    pthread_mutex_lock(&dir->lock);
    if (--dir->files[index].users == 0) {
        pthread_cond_broadcast(&dir->changed);
    }
    pthread_mutex_unlock(&dir->lock);
}

/* Read until `count` bytes are there; *got tells how many are, -1 with errno on failure. */
static int read_fully(int fd, uint64_t offset, unsigned char *buffer, size_t count, size_t *got) {
    *got = 0;
    while (*got < count) {
        size_t want = count - *got < MAX_READ_BYTES ? count - *got : MAX_READ_BYTES;
        ssize_t done = pread(fd, buffer + *got, want, (off_t)(offset + *got));
        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -1;
        }
        if (done == 0) {
            break;
        }
        *got += (size_t)done;
    }
    return 0;
}

enum gradcmp_status gcmp_dir_fail_read(const struct gcmp_dir *dir, uint32_t file, uint64_t at,
                                       int code, struct gradcmp_error *error) {
    const char *path = dir->files[file].path;
    if (code != 0) {
        GCMP_FAIL_AT(error, gcmp_dir_status(code), path, at, "read: %s", gcmp_dir_reason(code));
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, at,
                 "truncated while being read: %llu bytes expected, the file ends at byte %llu",
                 (unsigned long long)dir->files[file].bytes, (unsigned long long)at);
}

enum gradcmp_status gcmp_dir_read(struct gcmp_dir *dir, uint32_t file, uint64_t offset,
                                  void *buffer, size_t count, struct gradcmp_error *error) {
    const char *path = dir->files[file].path;
    uint64_t bytes = dir->files[file].bytes;
    uint64_t end;
    if (!gcmp_add_u64(offset, count, &end) || end > bytes) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, offset > bytes ? offset : bytes,
                     "truncated: %zu bytes expected at byte %llu, the file ends at byte %llu",
                     count, (unsigned long long)offset, (unsigned long long)bytes);
    }
    int fd = -1;
    enum gradcmp_status status = acquire_fd(dir, file, &fd, error);
    if (status != GRADCMP_OK) {
        gcmp_dir_note(dir, errno == EMFILE || errno == ENFILE ? errno : EIO);
        return status;
    }
    size_t got;
    int result = read_fully(fd, offset, buffer, count, &got);
    int code = errno;
    release_fd(dir, file);
    if (result < 0 || got < count) {
        gcmp_dir_note(dir, result < 0 ? code : 0);
        return gcmp_dir_fail_read(dir, file, offset + got, result < 0 ? code : 0, error);
    }
    return GRADCMP_OK;
}

/* --- pins --- */

void gcmp_dir_use_direct(struct gcmp_dir *dir) {
    if (dir->direct == GCMP_DIR_CACHED) {
        dir->direct = GCMP_DIR_DIRECT;
        dir->open_limit = dir->open_limit / 2 < 2 ? 2 : dir->open_limit / 2; /* each counts twice */
    }
}

void gcmp_dir_refuse_direct(struct gcmp_dir *dir) {
    pthread_mutex_lock(&dir->lock);
    dir->direct = GCMP_DIR_REFUSED;
    pthread_mutex_unlock(&dir->lock);
}

enum gcmp_dir_direct gcmp_dir_direct(struct gcmp_dir *dir) {
    pthread_mutex_lock(&dir->lock);
    enum gcmp_dir_direct direct = dir->direct;
    pthread_mutex_unlock(&dir->lock);
    return direct;
}

/* Tell whether a file may be pinned, and count it among all that are: at least one descriptor stays
 * for those who do not pin, who give it back without waiting for anything, so that nobody waits
 * forever. Lock held. */
static bool may_pin(struct gcmp_dir *dir, const struct gcmp_file *file) {
    if (file->opening) { /* opened twice, one of the two would be lost */
        return false;
    }
    if (file->pins > 0) {
        return true;
    }
    if (dir->pinned_count + 1 >= dir->open_limit) {
        return false;
    }
    if (!gcmp_dir_take_pin()) {
        return false;
    }
    if (file->fd >= 0 || dir->open_count + dir->opening_count < dir->open_limit ||
        gcmp_dir_evict_one(dir)) {
        return true;
    }
    gcmp_dir_give_pin();
    return false;
}

static void unpin(struct gcmp_dir *dir, struct gcmp_file *file) {
    if (--file->pins == 0) {
        dir->pinned_count--;
        gcmp_dir_give_pin();
    }
    if (--file->users == 0) {
        pthread_cond_broadcast(&dir->changed);
    }
}

/* Open a pinned file once more, past the page cache: by the descriptor, so that it is the same
 * file. False where that is refused. Lock held on entry and return, but not meanwhile. */
static bool open_direct(struct gcmp_dir *dir, struct gcmp_file *file) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    pthread_mutex_unlock(&dir->lock);
    int fd = open(path, O_RDONLY | O_DIRECT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int code = errno;
    pthread_mutex_lock(&dir->lock);
    if (fd < 0) {
        /* Without a descriptor left, this one is read through the cache. */
        dir->direct = code == EMFILE || code == ENFILE ? dir->direct : GCMP_DIR_REFUSED;
        return file->direct >= 0;
    }
    if (file->direct >= 0) {
        close(fd); /* another thread was faster */
    } else {
        file->direct = fd;
        gcmp_dir_count_open(1);
    }
    return true;
}

/* Have a file that may be pinned open, without waiting for others. Lock held. */
static bool open_now(struct gcmp_dir *dir, struct gcmp_file *file) {
    bool again = false;
    return file->fd >= 0 || open_for_pool(dir, file, &again, NULL) == GRADCMP_OK;
}

bool gcmp_dir_pin(struct gcmp_dir *dir, uint32_t index, bool direct, int *fd) {
    struct gcmp_file *file = &dir->files[index];
    pthread_mutex_lock(&dir->lock);
    bool pinned = may_pin(dir, file);
    if (pinned) {
        file->users++;
        file->last_use = ++dir->clock;
        dir->pinned_count += file->pins++ == 0; /* counted first: the lock is let go of below */
        pinned =
            open_now(dir, file) && (!direct || file->direct >= 0 ||
                                    (dir->direct == GCMP_DIR_DIRECT && open_direct(dir, file)));
        if (pinned) {
            *fd = direct ? file->direct : file->fd;
        } else {
            unpin(dir, file);
        }
    }
    pthread_mutex_unlock(&dir->lock);
    return pinned;
}

void gcmp_dir_unpin(struct gcmp_dir *dir, uint32_t index) {
    pthread_mutex_lock(&dir->lock);
    unpin(dir, &dir->files[index]);
    pthread_mutex_unlock(&dir->lock);
}

/* Files of /proc have bytes, but no size. */
enum { UNSIZED_BYTES = 4 << 20 };

/* Read an open file of *count bytes into new memory; with is_unsized, up to as many, and *count
 * becomes how many there are. */
static enum gradcmp_status slurp_fd(const char *path, int fd, size_t *count_out, bool is_unsized,
                                    unsigned char **bytes, struct gradcmp_error *error) {
    size_t total, count = *count_out;
    unsigned char *buffer = gcmp_add_size(count, 1, &total) ? malloc(total) : NULL;
    if (buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (!is_unsized) {
        gcmp_ask_for_huge_pages(buffer, total);
    }
    size_t got;
    if (read_fully(fd, 0, buffer, count, &got) < 0) {
        int code = errno;
        free(buffer);
        GCMP_FAIL_AT(error, gcmp_dir_status(code), path, got, "read: %s", gcmp_dir_reason(code));
    }
    if (got < count && !is_unsized) {
        free(buffer);
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, got,
                     "truncated while being read: %zu bytes expected", count);
    }
    if (got == count && is_unsized) {
        free(buffer);
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, path, got,
                     "a file without a size: at most %zu bytes are read", count - 1);
    }
    buffer[got] = '\0';
    *count_out = got;
    *bytes = buffer;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dir_slurp(struct gcmp_dir *dir, const char *name, uint64_t limit,
                                   unsigned char **bytes, size_t *count,
                                   struct gradcmp_error *error) {
    const char *fault = gcmp_dir_name_fault(name, strlen(name));
    if (fault != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "file name \"%.200s\" %s", name, fault);
    }
    struct gcmp_file file = {.fd = -1, .direct = -1};
    GCMP_TRY(gcmp_dir_name_file(dir, name, strlen(name), &file, error));
    struct gcmp_opened opened;
    enum gradcmp_status status;
    status = gcmp_dir_open_regular(dir, file.name, &opened, error);
    if (status != GRADCMP_OK) {
        gcmp_dir_note(dir, opened.code);
        goto out;
    }
    uint64_t size = (uint64_t)opened.info.st_size;
    if (size > limit || size >= SIZE_MAX) {
        status = gcmp_error_set(error, GRADCMP_ERROR_LIMIT, file.path, GRADCMP_NO_OFFSET,
                                "%llu bytes, at most %llu are read", (unsigned long long)size,
                                (unsigned long long)limit);
    } else {
        bool is_unsized = size == 0;
        *count = is_unsized ? UNSIZED_BYTES : (size_t)size;
        status = slurp_fd(file.path, opened.fd, count, is_unsized, bytes, error);
        gcmp_dir_note(dir, status == GRADCMP_ERROR_MEMORY ? ENOMEM
                           : status == GRADCMP_ERROR_IO   ? EIO
                                                          : 0);
    }
    close(opened.fd);
out:
    free(file.path);
    return status;
}

void gcmp_dir_hint(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t count) {
    int fd = -1;
    uint64_t end;
    if (gcmp_add_u64(offset, count, &end) && end <= INT64_MAX &&
        gcmp_dir_pin(dir, file, false, &fd)) {
        (void)posix_fadvise(fd, (off_t)offset, (off_t)count, POSIX_FADV_WILLNEED);
        gcmp_dir_unpin(dir, file);
    }
}
