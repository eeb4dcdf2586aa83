/* Files of one checkpoint: which may be opened, and their names. */
#include "base/dir_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/checked.h"
#include "base/grow.h"

/* The pool's share of the descriptors that the process may have. */
enum { MIN_OPEN = 4, SHARE_OF_LIMIT = 16 };

const char *gcmp_dir_reason(int code) {
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return "no such file";
    case EXDEV:
        return "leads out of the checkpoint";
    case ELOOP:
        return "a loop of symbolic links, or too many of them";
    case ENAMETOOLONG:
        return "the name is too long";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case EIO:
        return "input/output error";
    case GCMP_DIR_CHANGED:
        return "changed while being read";
    case ESTALE:
        return "stale handle of a network file system";
    case ENXIO:
        return "not a regular file but a socket or a device";
    case ENOMEM:
        return "out of memory";
    default:
        return "refused by the system";
    }
}

enum gradcmp_status gcmp_dir_status(int code) {
    switch (code) {
    case EXDEV:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
        return GRADCMP_ERROR_CORRUPT;
    case ENOMEM:
        return GRADCMP_ERROR_MEMORY;
    default:
        return GRADCMP_ERROR_IO;
    }
}

void gcmp_dir_note(struct gcmp_dir *dir, int code) {
    int none = 0;
    switch (code) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case EXDEV:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case EACCES:
    case EPERM:
        return;
    default:
        atomic_compare_exchange_strong(&dir->trouble, &none, code);
    }
}

void gcmp_dir_note_memory(struct gcmp_dir *dir) {
    gcmp_dir_note(dir, ENOMEM);
}

enum gradcmp_status gcmp_dir_check(struct gcmp_dir *dir, struct gradcmp_error *error) {
    int code = atomic_load(&dir->trouble);
    if (code == ENOMEM) {
        GCMP_FAIL_MEMORY(error);
    }
    if (code != 0) {
        GCMP_FAIL_AT(error, gcmp_dir_status(code), dir->path, GRADCMP_NO_OFFSET, "%s",
                     gcmp_dir_reason(code));
    }
    return GRADCMP_OK;
}

static const char *kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
    case S_IFBLK:
        return "a device";
    default:
        return "something else";
    }
}

/* Write the path of `name` below the directory (NULL: the directory itself), for a message. */
static void place_of(const struct gcmp_dir *dir, const char *name, char *path, size_t capacity) {
    if (name == NULL || dir->only != NULL) {
        snprintf(path, capacity, "%s", dir->path);
    } else {
        snprintf(path, capacity, "%s/%s", dir->path, name);
    }
}

static enum gradcmp_status fail_errno(const struct gcmp_dir *dir, const char *name, int code,
                                      struct gradcmp_error *error) {
    char path[sizeof error->path];
    place_of(dir, name, path, sizeof path);
    GCMP_FAIL_AT(error, gcmp_dir_status(code), path, GRADCMP_NO_OFFSET, "%s",
                 gcmp_dir_reason(code));
}

const char *gcmp_dir_name_fault(const char *name, size_t name_bytes) {
    if (name_bytes == 0) {
        return "is empty";
    }
    if (name_bytes >= PATH_MAX) {
        return "is too long";
    }
    if (memchr(name, '\0', name_bytes) != NULL) {
        return "holds a NUL";
    }
    if (name[0] == '/') {
        return "is absolute";
    }
    for (const char *part = name;; part++) {
        size_t length = 0;
        while (part + length < name + name_bytes && part[length] != '/') {
            length++;
        }
        if (length == 2 && memcmp(part, "..", 2) == 0) {
            return "leads out of the checkpoint";
        }
        if (length == 0 || (length == 1 && part[0] == '.')) {
            return "is not a plain path";
        }
        part += length;
        if (part == name + name_bytes) {
            return NULL;
        }
    }
}

/* Open a name below the directory; -1 with errno. */
static int open_name(struct gcmp_dir *dir, const char *name) {
    if (dir->only != NULL && strcmp(name, dir->only) != 0) {
        errno = ENOENT;
        return -1;
    }
    int root = gcmp_dir_hold_root(dir);
    if (root < 0) {
        return -1;
    }
    int fd;
    do {
        /* A single file is shared, which does no harm: reads are positioned. */
        fd = dir->only != NULL ? fcntl(root, F_DUPFD_CLOEXEC, 0)
             : dir->by_kernel  ? gcmp_beneath_open_by_kernel(root, name)
                               : gcmp_beneath_open_by_hand(root, name);
    } while (fd < 0 && gcmp_dir_find_room(errno));
    gcmp_dir_release_root(dir);
    return fd;
}

/* Say that `name` is not a regular file. */
static enum gradcmp_status fail_kind(const struct gcmp_dir *dir, const char *name, mode_t mode,
                                     struct gradcmp_error *error) {
    char path[sizeof error->path];
    place_of(dir, name, path, sizeof path);
    GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET, "not a regular file but %s",
                 kind_of(mode));
}

enum gradcmp_status gcmp_dir_open_regular(struct gcmp_dir *dir, const char *name,
                                          struct gcmp_opened *out, struct gradcmp_error *error) {
    out->code = 0;
    out->fd = open_name(dir, name);
    if (out->fd < 0 || fstat(out->fd, &out->info) < 0) {
        out->code = errno;
        if (out->fd >= 0) {
            close(out->fd);
        }
        return fail_errno(dir, name, out->code, error);
    }
    if (!S_ISREG(out->info.st_mode)) {
        close(out->fd);
        return fail_kind(dir, name, out->info.st_mode, error);
    }
    return GRADCMP_OK;
}

static unsigned choose_open_limit(void) {
    struct rlimit limit;
    rlim_t share = GCMP_MAX_OPEN;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        share = limit.rlim_cur / SHARE_OF_LIMIT;
    }
    return share > GCMP_MAX_OPEN ? GCMP_MAX_OPEN : share < MIN_OPEN ? MIN_OPEN : (unsigned)share;
}

/* Open the given path, unless it is open, and learn whether it is a directory or a file. */
static enum gradcmp_status open_root(struct gcmp_dir *dir, struct gradcmp_error *error) {
    struct stat info;
    gcmp_dir_keep_room();
    while (dir->root < 0) {
        dir->root = open(dir->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (dir->root < 0 && !gcmp_dir_find_room(errno)) {
            break;
        }
    }
    if (dir->root < 0 || fstat(dir->root, &info) < 0) {
        int code = errno == ENXIO ? EINVAL : errno;
        if (code == ENOENT || code == ENOTDIR) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_IO, dir->path, GRADCMP_NO_OFFSET,
                         "no such file or directory");
        }
        return fail_errno(dir, NULL, code, error);
    }
    dir->device = info.st_dev;
    dir->inode = info.st_ino;
    if (S_ISREG(info.st_mode)) {
        const char *slash = strrchr(dir->path, '/');
        dir->only = slash == NULL ? dir->path : slash + 1;
    } else if (!S_ISDIR(info.st_mode)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, dir->path, GRADCMP_NO_OFFSET,
                     "neither a directory nor a regular file but %s", kind_of(info.st_mode));
    } else {
        dir->by_kernel = gcmp_beneath_by_kernel(dir->root);
    }
    return GRADCMP_OK;
}

/* Open a path, or take what is open already (root >= 0). */
static enum gradcmp_status make_dir(int root, const char *path, struct gcmp_dir **out,
                                    struct gradcmp_error *error) {
    *out = NULL;
    struct gcmp_dir *dir = calloc(1, sizeof *dir);
    if (dir == NULL) {
        if (root >= 0) {
            close(root);
        }
        GCMP_FAIL_MEMORY(error);
    }
    dir->root = root;
    dir->names = (struct gcmp_map)GCMP_MAP_INIT;
    dir->open_limit = choose_open_limit();
    pthread_mutex_init(&dir->lock, NULL);
    pthread_cond_init(&dir->changed, NULL);
    dir->path = strdup(path);
    enum gradcmp_status status = GRADCMP_OK;
    if (dir->path == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
        goto out;
    }
    for (size_t length = strlen(dir->path); length > 1 && dir->path[length - 1] == '/'; length--) {
        dir->path[length - 1] = '\0';
    }
    GCMP_TRY_OUT(open_root(dir, error));
    gcmp_dir_enter_room(dir);
    *out = dir;
    dir = NULL;
out:
    gcmp_dir_close(dir);
    return status;
}

enum gradcmp_status gcmp_dir_open(const char *path, struct gcmp_dir **out,
                                  struct gradcmp_error *error) {
    return make_dir(-1, path, out, error);
}

enum gradcmp_status gcmp_dir_adopt(int fd, const char *path, struct gcmp_dir **out,
                                   struct gradcmp_error *error) {
    return make_dir(fd, path, out, error);
}

void gcmp_dir_close(struct gcmp_dir *dir) {
    if (dir == NULL) {
        return;
    }
    gcmp_dir_leave_room(dir);
    for (uint32_t i = 0; i < dir->file_count; i++) {
        gcmp_dir_close_file(&dir->files[i]);
        free(dir->files[i].path);
    }
    pthread_mutex_destroy(&dir->lock);
    pthread_cond_destroy(&dir->changed);
    gcmp_map_free(&dir->names);
    free(dir->files);
    free(dir->place);
    free(dir->path);
    free(dir);
}

const char *gcmp_dir_path(const struct gcmp_dir *dir) {
    return dir->path;
}

bool gcmp_dir_is_file(const struct gcmp_dir *dir, const char **name) {
    if (dir->only != NULL && name != NULL) {
        *name = dir->only;
    }
    return dir->only != NULL;
}

enum gcmp_dir_kind gcmp_dir_look(struct gcmp_dir *dir, const char *name,
                                 struct gcmp_dir_place *place) {
    *place = (struct gcmp_dir_place){0, 0};
    if (name[0] != '\0' && gcmp_dir_name_fault(name, strlen(name)) != NULL) {
        return GCMP_DIR_ABSENT;
    }
    int fd = open_name(dir, name[0] == '\0' && dir->only == NULL ? "." : name);
    if (fd < 0) {
        gcmp_dir_note(dir, errno);
        return errno == ENOENT || errno == ENOTDIR ? GCMP_DIR_ABSENT : GCMP_DIR_OTHER;
    }
    struct stat info;
    bool known = fstat(fd, &info) == 0;
    close(fd);
    errno = 0;
    if (!known) {
        return GCMP_DIR_OTHER;
    }
    *place = (struct gcmp_dir_place){info.st_dev, info.st_ino};
    return S_ISREG(info.st_mode)   ? GCMP_DIR_FILE
           : S_ISDIR(info.st_mode) ? GCMP_DIR_FOLDER
                                   : GCMP_DIR_OTHER;
}

enum gcmp_dir_kind gcmp_dir_kind(struct gcmp_dir *dir, const char *name) {
    struct gcmp_dir_place place;
    return name[0] == '\0' ? GCMP_DIR_ABSENT : gcmp_dir_look(dir, name, &place);
}

bool gcmp_dir_has_file(struct gcmp_dir *dir, const char *name) {
    return gcmp_dir_kind(dir, name) == GCMP_DIR_FILE;
}

bool gcmp_dir_has_dir(struct gcmp_dir *dir, const char *name) {
    return gcmp_dir_kind(dir, name) == GCMP_DIR_FOLDER;
}

/* Names while they are collected. */
struct name_list {
    char **names;
    size_t count, capacity, limit;
};

static enum gradcmp_status add_name(struct name_list *list, const char *name,
                                    struct gradcmp_error *error) {
    if (list->count == list->limit) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %zu entries in the directory",
                  list->limit);
    }
    if (!gcmp_grow(&list->names, list->count, &list->capacity, sizeof *list->names)) {
        GCMP_FAIL_MEMORY(error);
    }
    list->names[list->count] = strdup(name);
    if (list->names[list->count] == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    list->count++;
    return GRADCMP_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collect the entries of an open folder; takes over `fd`. */
static enum gradcmp_status collect_names(const struct gcmp_dir *dir, const char *sub, int fd,
                                         struct name_list *list, struct gradcmp_error *error) {
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        int code = errno;
        close(fd);
        return fail_errno(dir, sub, code, error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            status = errno == 0 ? GRADCMP_OK : fail_errno(dir, sub, errno, error);
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        status = add_name(list, entry->d_name, error);
        if (status != GRADCMP_OK) {
            gcmp_error_add_path(error, dir->path);
            break;
        }
    }
    closedir(stream);
    return status;
}

/* The same for what failed behind the opening. */
static void note_status(struct gcmp_dir *dir, enum gradcmp_status status) {
    gcmp_dir_note(dir, status == GRADCMP_ERROR_MEMORY ? ENOMEM
                       : status == GRADCMP_ERROR_IO   ? EIO
                                                      : 0);
}

enum gradcmp_status gcmp_dir_list(struct gcmp_dir *dir, const char *sub, size_t limit,
                                  char ***names, size_t *count, struct gradcmp_error *error) {
    *names = NULL;
    *count = 0;
    struct name_list list = {NULL, 0, 0, limit};
    enum gradcmp_status status;
    if (dir->only != NULL && sub[0] == '\0') {
        status = add_name(&list, dir->only, error);
    } else {
        const char *fault = sub[0] == '\0' ? NULL : gcmp_dir_name_fault(sub, strlen(sub));
        if (fault != NULL) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, dir->path, GRADCMP_NO_OFFSET,
                         "name \"%.200s\" %s", sub, fault);
        }
        int fd = open_name(dir, sub[0] == '\0' ? "." : sub);
        if (fd < 0) {
            gcmp_dir_note(dir, errno);
            return fail_errno(dir, sub[0] == '\0' ? NULL : sub, errno, error);
        }
        status = collect_names(dir, sub, fd, &list, error);
    }
    if (status != GRADCMP_OK) {
        note_status(dir, status);
        gcmp_dir_free_names(list.names, list.count);
        return status;
    }
    if (list.count > 0) {
        qsort(list.names, list.count, sizeof *list.names, compare_names);
    }
    *names = list.names;
    *count = list.count;
    return GRADCMP_OK;
}

void gcmp_dir_free_names(char **names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

static enum gradcmp_status grow_files(struct gcmp_dir *dir, struct gradcmp_error *error) {
    if (dir->file_count < dir->file_capacity) {
        return GRADCMP_OK;
    }
    if (dir->file_count > UINT32_MAX / 2) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %u files", UINT32_MAX / 2);
    }
    uint32_t capacity = dir->file_capacity == 0 ? 16 : 2 * dir->file_capacity;
    size_t bytes;
    struct gcmp_file *moved =
        gcmp_mul_size(capacity, sizeof *moved, &bytes) ? realloc(dir->files, bytes) : NULL;
    if (moved == NULL) {
        gcmp_dir_note(dir, ENOMEM);
        GCMP_FAIL_MEMORY(error);
    }
    dir->files = moved;
    dir->file_capacity = capacity;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dir_name_file(struct gcmp_dir *dir, const char *name, size_t name_bytes,
                                       struct gcmp_file *file, struct gradcmp_error *error) {
    size_t prefix = dir->only != NULL ? (size_t)(dir->only - dir->path) : strlen(dir->path);
    bool slash = dir->only == NULL && (prefix == 0 || dir->path[prefix - 1] != '/');
    size_t total;
    if (!gcmp_add_size(prefix + slash, name_bytes, &total) || !gcmp_add_size(total, 1, &total) ||
        (file->path = malloc(total)) == NULL) {
        gcmp_dir_note(dir, ENOMEM);
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(file->path, dir->path, prefix);
    if (slash) {
        file->path[prefix++] = '/';
    }
    memcpy(file->path + prefix, name, name_bytes);
    file->path[prefix + name_bytes] = '\0';
    file->name = file->path + prefix;
    return GRADCMP_OK;
}

/* Learn what file a name means now, and put it into the map of names. */
static enum gradcmp_status identify_file(struct gcmp_dir *dir, struct gcmp_file *file,
                                         struct gradcmp_error *error) {
    struct gcmp_opened opened;
    enum gradcmp_status status = gcmp_dir_open_regular(dir, file->name, &opened, error);
    if (status != GRADCMP_OK) {
        gcmp_dir_note(dir, opened.code);
        return status;
    }
    close(opened.fd);
    file->bytes = (uint64_t)opened.info.st_size;
    file->device = opened.info.st_dev;
    file->inode = opened.info.st_ino;
    if (gcmp_map_add(&dir->names, file->name, strlen(file->name), dir->file_count, NULL) ==
        GCMP_MAP_NO_MEMORY) {
        gcmp_dir_note(dir, ENOMEM);
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dir_add(struct gcmp_dir *dir, const char *name, size_t name_bytes,
                                 uint32_t *file, struct gradcmp_error *error) {
    size_t known;
    if (gcmp_map_find(&dir->names, name, name_bytes, &known)) {
        *file = (uint32_t)known;
        return GRADCMP_OK;
    }
    const char *fault = gcmp_dir_name_fault(name, name_bytes);
    if (fault != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "file name \"%.*s\" %s",
                  name_bytes > 200 ? 200 : (int)name_bytes, name, fault);
    }
    GCMP_TRY(grow_files(dir, error));
    struct gcmp_file added = {.fd = -1, .direct = -1};
    GCMP_TRY(gcmp_dir_name_file(dir, name, name_bytes, &added, error));
    enum gradcmp_status status = identify_file(dir, &added, error);
    if (status != GRADCMP_OK) {
        free(added.path);
        return status;
    }
    *file = dir->file_count;
    dir->files[dir->file_count++] = added;
    return GRADCMP_OK;
}

/* True where both sides registered files, and in the same order the very same ones (hard links made
 * by cp -al, a bind mount). */
static bool same_files(const struct gcmp_dir *a, const struct gcmp_dir *b) {
    bool same = a->file_count > 0 && a->file_count == b->file_count;
    for (uint32_t i = 0; same && i < a->file_count; i++) {
        same = a->files[i].device == b->files[i].device && a->files[i].inode == b->files[i].inode;
    }
    return same;
}

bool gcmp_dir_is_one(const struct gcmp_dir *a, const struct gcmp_dir *b) {
    struct stat stat_a, stat_b;
    return same_files(a, b) ||
           (stat(gcmp_dir_path(a), &stat_a) == 0 && stat(gcmp_dir_path(b), &stat_b) == 0 &&
            stat_a.st_dev == stat_b.st_dev && stat_a.st_ino == stat_b.st_ino);
}

const char *gcmp_dir_one_note(const struct gcmp_dir *a, const struct gcmp_dir *b) {
    return gcmp_dir_is_one(a, b) ? "A and B are the same files, and that they agree proves nothing"
                                 : NULL;
}

uint32_t gcmp_dir_file_count(const struct gcmp_dir *dir) {
    return dir->file_count;
}

const char *gcmp_dir_file_name(const struct gcmp_dir *dir, uint32_t file) {
    return dir->files[file].name;
}

const char *gcmp_dir_file_path(const struct gcmp_dir *dir, uint32_t file) {
    return dir->files[file].path;
}

uint64_t gcmp_dir_file_bytes(const struct gcmp_dir *dir, uint32_t file) {
    return dir->files[file].bytes;
}
