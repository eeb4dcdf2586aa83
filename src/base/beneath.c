/* Walks names below a directory: with openat2, or one component at a time. */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own limit on links; and the deepest folder that the walk by hand enters. */
enum { MAX_LINKS = 40, MAX_DEPTH = 32, MAX_RACES = 16 };

/* O_NONBLOCK: opening a FIFO without a writer must not wait. It means nothing for regular files. */
enum { READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static int call_openat2(int root, const char *name, int flags) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (unsigned)flags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    return (int)syscall(SYS_openat2, root, name, &how, sizeof how);
}

bool gcmp_beneath_by_kernel(int root) {
    int fd = call_openat2(root, ".", O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    close(fd);
    return true;
}

int gcmp_beneath_open_by_kernel(int root, const char *name) {
    /* EAGAIN: something was renamed during the walk, and the kernel cannot tell where it is. */
    int fd = -1;
    for (int tries = 0; tries < MAX_RACES; tries++) {
        fd = call_openat2(root, name, READ_FLAGS);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) {
            break;
        }
    }
    return fd;
}

/* The state of a walk by hand: the folders entered, the innermost last, and what is left to walk.
 */
struct walk {
    int root;
    int folders[MAX_DEPTH];
    int depth;
    int links;
    char rest[2 * PATH_MAX];
};

static int walk_here(const struct walk *walk) {
    return walk->depth == 0 ? walk->root : walk->folders[walk->depth - 1];
}

static int walk_fail(int code) {
    errno = code;
    return -1;
}

/* Cut the first component off walk->rest; *last tells whether nothing follows it. */
static void take_component(struct walk *walk, char *component, bool *last) {
    size_t length = strcspn(walk->rest, "/");
    size_t skip = length + strspn(walk->rest + length, "/");
    memcpy(component, walk->rest, length);
    component[length] = '\0';
    memmove(walk->rest, walk->rest + skip, strlen(walk->rest + skip) + 1);
    *last = walk->rest[0] == '\0';
}

/* Put the target of a link in front of what is left. */
static int splice_link(struct walk *walk, const char *component) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(walk_here(walk), component, target, sizeof target - 1);
    if (length < 0) {
        return -1;
    }
    target[length] = '\0';
    if (++walk->links > MAX_LINKS) {
        return walk_fail(ELOOP);
    }
    if (target[0] == '/') {
        return walk_fail(EXDEV);
    }
    char joined[sizeof walk->rest];
    int total = snprintf(joined, sizeof joined, "%s/%s", target, walk->rest);
    if (total < 0 || (size_t)total >= sizeof joined) {
        return walk_fail(ENAMETOOLONG);
    }
    memcpy(walk->rest, joined, (size_t)total + 1);
    return 0;
}

static int enter_folder(struct walk *walk, const char *component) {
    if (walk->depth == MAX_DEPTH) {
        return walk_fail(ENAMETOOLONG);
    }
    int fd = openat(walk_here(walk), component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    walk->folders[walk->depth++] = fd;
    return 0;
}

/* Go up one folder, never above the root. */
static int leave_folder(struct walk *walk) {
    if (walk->depth == 0) {
        return walk_fail(EXDEV);
    }
    close(walk->folders[--walk->depth]);
    return 0;
}

/* Take one step; returns a descriptor when the walk has arrived, -1 on failure, -2 to go on. */
static int step(struct walk *walk) {
    char component[sizeof walk->rest];
    bool last;
    take_component(walk, component, &last);
    if (component[0] == '\0' || strcmp(component, ".") == 0) {
        return last ? openat(walk_here(walk), ".", READ_FLAGS) : -2;
    }
    if (strcmp(component, "..") == 0) {
        if (leave_folder(walk) < 0) {
            return -1;
        }
        return last ? openat(walk_here(walk), ".", READ_FLAGS) : -2;
    }
    struct stat info;
    if (fstatat(walk_here(walk), component, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        return -1;
    }
    if (S_ISLNK(info.st_mode)) {
        return splice_link(walk, component) < 0 ? -1 : -2;
    }
    /* O_NOFOLLOW: should a link have taken its place since, this fails with ELOOP. */
    if (last) {
        return openat(walk_here(walk), component, READ_FLAGS | O_NOFOLLOW);
    }
    return enter_folder(walk, component) < 0 ? -1 : -2;
}

int gcmp_beneath_open_by_hand(int root, const char *name) {
    struct walk walk = {.root = root};
    size_t length = strlen(name);
    if (length == 0) {
        return walk_fail(ENOENT);
    }
    if (length >= PATH_MAX) {
        return walk_fail(ENAMETOOLONG);
    }
    if (name[0] == '/') {
        return walk_fail(EXDEV);
    }
    memcpy(walk.rest, name, length + 1);
    int fd;
    do {
        fd = step(&walk);
    } while (fd == -2);
    int code = errno;
    while (walk.depth > 0) {
        close(walk.folders[--walk.depth]);
    }
    errno = code;
    return fd;
}
