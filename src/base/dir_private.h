/* What dir.c (which files may be opened), dir_read.c (the pool of descriptors of one checkpoint)
 * and dir_room.c (what all checkpoints keep open together) share. */
#ifndef GCMP_BASE_DIR_PRIVATE_H
#define GCMP_BASE_DIR_PRIVATE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/dir.h"
#include "base/map.h"

/* Descriptors of files that one checkpoint keeps open at most: enough for those that threads read
 * at one time. */
enum { GCMP_MAX_OPEN = 64 };

/* Stands for errno where a folder, or a single file, is no longer what it was when it was opened;
 * no call on files gives this one. */
enum { GCMP_DIR_CHANGED = EREMCHG };

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
    bool by_kernel;   /* openat2 works here */
    dev_t device;     /* of the directory, or of the single file */
    ino_t inode;
    struct gcmp_file *files;
    uint32_t file_count, file_capacity;
    struct gcmp_map names;
    atomic_int trouble; /* errno of the first question that the system did not answer, or 0 */

    struct gcmp_dir *before, *after; /* among all that are open; dir_room.c's, as is the next */
    bool is_listed;

    pthread_mutex_t lock; /* guards what follows and the pool fields of files */
    pthread_cond_t changed;
    int root; /* descriptor of the directory, or of the single file; -1: not open now */
    unsigned root_users;
    bool is_root_opening;
    char *place;                        /* where to open it again; written while it is open */
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
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_open_regular(struct gcmp_dir *dir, const char *name,
                                                           struct gcmp_opened *out,
                                                           struct gradcmp_error *error);

/* Close a file's descriptors, if they are open. */
void gcmp_dir_close_file(struct gcmp_file *file);

/* Close the idle descriptor that was used longest ago; false when none is idle. Lock held. */
bool gcmp_dir_evict_one(struct gcmp_dir *dir);

/* --- dir_room.c --- */

/* Have an open checkpoint take part: its idle descriptors, the root's too, may be closed at any
 * time that its lock is free. */
void gcmp_dir_enter_room(struct gcmp_dir *dir);
/* End that, and close the root. */
void gcmp_dir_leave_room(struct gcmp_dir *dir);

/* Count descriptors that checkpoints opened for longer (negative: closed). */
void gcmp_dir_count_open(int change);
/* Close idle descriptors where all together have their share; to be asked before one is opened for
 * longer, with no lock held. */
void gcmp_dir_keep_room(void);
/* Count one more file with pins, false where all together have enough; and one less. */
bool gcmp_dir_take_pin(void);
void gcmp_dir_give_pin(void);
/* After a call that failed with errno `code`, which stays in errno: true where it failed for want
 * of descriptors and some could be closed, so that it is worth another try. No lock held. */
bool gcmp_dir_find_room(int code);

/* Get the descriptor of the root; it stays open until gcmp_dir_release_root, which keeps errno. -1
 * with errno: GCMP_DIR_CHANGED where it was closed and another stands in its place. Thread-safe. */
int gcmp_dir_hold_root(struct gcmp_dir *dir);
void gcmp_dir_release_root(struct gcmp_dir *dir);

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
