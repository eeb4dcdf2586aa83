/* Room for descriptors: what the checkpoints of the process keep open beside one another is
 * bounded together, and given up where another needs it. The one state that all share, as the
 * descriptors of a process are. */
#include "base/dir_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Checkpoints keep this share of what the process may have, the rest is for what else it opens. As
 * many are closed at once as PART of the share; and PINNED of it is the most that are pinned, since
 * those cannot be closed and may be open twice. */
enum { SHARE = 2, PART = 4, PINNED = 4, LEAST = 8 };

/* Lock order: this one before that of a checkpoint, which is only tried. */
static struct {
    pthread_mutex_t lock;
    struct gcmp_dir *first, *last; /* those looked at longest ago come first */
    atomic_uint open_count, pin_count;
} room = {.lock = PTHREAD_MUTEX_INITIALIZER};

void gcmp_dir_count_open(int change) {
    atomic_fetch_add(&room.open_count, (unsigned)change);
}

static void unlink_dir(struct gcmp_dir *dir) {
    *(dir->before != NULL ? &dir->before->after : &room.first) = dir->after;
    *(dir->after != NULL ? &dir->after->before : &room.last) = dir->before;
    dir->before = dir->after = NULL;
}

static void append_dir(struct gcmp_dir *dir) {
    dir->before = room.last;
    *(room.last != NULL ? &room.last->after : &room.first) = dir;
    room.last = dir;
}

void gcmp_dir_enter_room(struct gcmp_dir *dir) {
    gcmp_dir_count_open(1);
    pthread_mutex_lock(&room.lock);
    append_dir(dir);
    dir->is_listed = true;
    pthread_mutex_unlock(&room.lock);
}

void gcmp_dir_leave_room(struct gcmp_dir *dir) {
    pthread_mutex_lock(&room.lock);
    if (dir->is_listed) {
        unlink_dir(dir);
    }
    pthread_mutex_unlock(&room.lock);
    if (dir->root >= 0) {
        close(dir->root);
        gcmp_dir_count_open(dir->is_listed ? -1 : 0);
    }
}

/* Learn where the root can be opened again: by its path without links, which holds wherever the
 * process goes, if what stands there now is the root. Lock of `dir` held. */
static bool find_place(struct gcmp_dir *dir) {
    char link[40];
    char place[PATH_MAX];
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir->root);
    ssize_t length = readlink(link, place, sizeof place - 1);
    if (length <= 0 || place[0] != '/') {
        return false;
    }
    place[length] = '\0';
    if (stat(place, &info) != 0 || info.st_dev != dir->device || info.st_ino != dir->inode) {
        return false;
    }
    free(dir->place);
    dir->place = strdup(place);
    return dir->place != NULL;
}

/* Close what nobody uses; returns how many. Lock of `dir` held. */
static unsigned close_idle(struct gcmp_dir *dir) {
    unsigned before = dir->open_count;
    while (gcmp_dir_evict_one(dir)) {
    }
    unsigned closed = before - dir->open_count;
    if (dir->root >= 0 && dir->root_users == 0 && find_place(dir)) {
        close(dir->root);
        dir->root = -1;
        gcmp_dir_count_open(-1);
        closed++;
    }
    return closed;
}

/* Close idle descriptors of some checkpoints, at least `wanted` where there are so many. */
static unsigned make_room(unsigned wanted) {
    unsigned closed = 0;
    pthread_mutex_lock(&room.lock);
    struct gcmp_dir *last = room.last;
    for (bool more = last != NULL; more && closed < wanted;) {
        struct gcmp_dir *dir = room.first;
        more = dir != last;
        unlink_dir(dir);
        append_dir(dir);
        if (pthread_mutex_trylock(&dir->lock) == 0) {
            closed += close_idle(dir);
            pthread_mutex_unlock(&dir->lock);
        }
    }
    pthread_mutex_unlock(&room.lock);
    return closed;
}

/* How many descriptors checkpoints may keep. */
static unsigned choose_share(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / SHARE > INT_MAX) {
        return INT_MAX;
    }
    unsigned share = (unsigned)(limit.rlim_cur / SHARE);
    return share < LEAST ? LEAST : share;
}

void gcmp_dir_keep_room(void) {
    unsigned share = choose_share();
    if (atomic_load(&room.open_count) >= share) {
        (void)make_room(share / PART);
    }
}

bool gcmp_dir_take_pin(void) {
    if (atomic_fetch_add(&room.pin_count, 1) < choose_share() / PINNED) {
        return true;
    }
    gcmp_dir_give_pin();
    return false;
}

void gcmp_dir_give_pin(void) {
    atomic_fetch_sub(&room.pin_count, 1);
}

bool gcmp_dir_find_room(int code) {
    bool found = (code == EMFILE || code == ENFILE) && make_room(1) > 0;
    errno = code;
    return found;
}

/* Open the root once more; -1 with errno. It must be what it was. */
static int reopen_root(const struct gcmp_dir *dir) {
    struct stat info;
    int fd;
    gcmp_dir_keep_room();
    do {
        fd = open(dir->place, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } while (fd < 0 && gcmp_dir_find_room(errno));
    if (fd < 0) {
        errno = errno == ENOENT || errno == ENOTDIR || errno == ENXIO ? GCMP_DIR_CHANGED : errno;
        return -1;
    }
    if (fstat(fd, &info) == 0 && info.st_dev == dir->device && info.st_ino == dir->inode) {
        gcmp_dir_count_open(1);
        return fd;
    }
    close(fd);
    errno = GCMP_DIR_CHANGED;
    return -1;
}

int gcmp_dir_hold_root(struct gcmp_dir *dir) {
    int code = 0;
    pthread_mutex_lock(&dir->lock);
    while (dir->root < 0 && dir->is_root_opening) {
        pthread_cond_wait(&dir->changed, &dir->lock);
    }
    if (dir->root < 0) {
        dir->is_root_opening = true;
        pthread_mutex_unlock(&dir->lock);
        int fd = reopen_root(dir);
        code = errno;
        pthread_mutex_lock(&dir->lock);
        dir->root = fd;
        dir->is_root_opening = false;
        pthread_cond_broadcast(&dir->changed);
    }
    int root = dir->root;
    dir->root_users += root >= 0;
    pthread_mutex_unlock(&dir->lock);
    errno = code;
    return root;
}

void gcmp_dir_release_root(struct gcmp_dir *dir) {
    int code = errno;
    pthread_mutex_lock(&dir->lock);
    dir->root_users--;
    pthread_mutex_unlock(&dir->lock);
    errno = code;
}
