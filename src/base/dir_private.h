/* What dir.c (which files may be opened) and dir_read.c (the pool of descriptors) share. */
#ifndef GCMP_BASE_DIR_PRIVATE_H
#define GCMP_BASE_DIR_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/dir.h"
#include "base/map.h"

/* Descriptors that one checkpoint keeps open at most: enough for the files that threads read at one
 * time, few enough that a dozen candidates fit under the usual limit of 1024. */
enum { GCMP_MAX_OPEN = 64 };

/* A registered file. */
struct gcmp_file {
    char *path;       /* for messages; owned */
    const char *name; /* relative, within path */
    uint64_t bytes;
    dev_t device;
    ino_t inode;
    int fd;     /* -1: not open now */
    int direct; /* the same file past the page cache; -1: not open so */
    bool opening;
    unsigned users; /* pins included */
    unsigned pins;
    uint64_t last_use;
};

struct gcmp_dir {
    char *path;
    const char *only; /* name of the single file, within path; NULL for a directory */
    int root;         /* descriptor of the directory, or of the single file */
    bool by_kernel;   /* openat2 works here */
    struct gcmp_file *files;
    uint32_t file_count, file_capacity;
    struct gcmp_map names;
    atomic_int trouble; /* errno of the first question that the system did not answer, or 0 */

    pthread_mutex_t lock; /* guards what follows and the pool fields of files */
    pthread_cond_t changed;
    uint32_t open_files[GCMP_MAX_OPEN]; /* indices of open files, in no order */
    unsigned open_count, open_limit;
    unsigned opening_count; /* descriptors promised to threads that are opening */
    unsigned pinned_count;  /* open files with pins */
    enum gcmp_dir_direct direct;
    uint64_t clock;
};

/* An open regular file. */
struct gcmp_opened {
    int fd;
    struct stat info;
    int code; /* errno where the system refused to open it, else 0 */
};

/* Open a regular file; on success the caller owns out->fd. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_open_regular(const struct gcmp_dir *dir,
                                                           const char *name,
                                                           struct gcmp_opened *out,
                                                           struct gradcmp_error *error);

/* Close a file's descriptors, if they are open. */
void gcmp_dir_close_file(struct gcmp_file *file);

/* The system's reason as a lower-case phrase, the same in every locale, and the status it means:
 * names that lie are the fault of the file that named them, the rest is the system's. */
const char *gcmp_dir_reason(int code);
enum gradcmp_status gcmp_dir_status(int code);

/* Keep `code` for gcmp_dir_check, where it is the system's failure and not an answer. */
void gcmp_dir_note(struct gcmp_dir *dir, int code);

/* Fill in path and name of a file; the path is malloced. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_name_file(struct gcmp_dir *dir, const char *name,
                                                        size_t name_bytes, struct gcmp_file *file,
                                                        struct gradcmp_error *error);

#endif
