/* Files of one checkpoint: opened beneath one directory only, regular files only, never blocking,
 * with a bounded pool of descriptors; bytes are read with positioned reads. What is idle, the
 * directory too, is closed where the checkpoints of the process together have half of the
 * descriptors that it may have, or a call finds none left, and opened again when it is needed,
 * which fails where it is not what it was. */
#ifndef GCMP_BASE_DIR_H
#define GCMP_BASE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct gcmp_dir;

/* Open `path`, a directory, or a single regular file (then only that file can be opened, by its
 * last name). On success *out is owned by the caller (gcmp_dir_close). */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_open(const char *path, struct gcmp_dir **out,
                                                   struct gradcmp_error *error);
void gcmp_dir_close(struct gcmp_dir *dir);

/* The same for a regular file that is open already and need not have a name: takes over `fd`, also
 * on failure. `path` is for messages; its last part is the file's name here. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_adopt(int fd, const char *path, struct gcmp_dir **out,
                                                    struct gradcmp_error *error);

/* The path as given, without trailing slashes; for messages and reports. */
const char *gcmp_dir_path(const struct gcmp_dir *dir);
/* True where gcmp_dir_open was given a single file; its last name is then in *name. */
bool gcmp_dir_is_file(const struct gcmp_dir *dir, const char **name);

/* Tell whether a regular file (directory) of that relative name is there; never fails. */
bool gcmp_dir_has_file(struct gcmp_dir *dir, const char *name);
bool gcmp_dir_has_dir(struct gcmp_dir *dir, const char *name);

/* What stands under a relative name. OTHER: a FIFO, a socket, a device, a link that leads outside,
 * something that may not be opened: opening it gives the error that says so; errno is what the
 * system said, 0 where it is only no file. */
enum gcmp_dir_kind { GCMP_DIR_ABSENT, GCMP_DIR_FILE, GCMP_DIR_FOLDER, GCMP_DIR_OTHER };
enum gcmp_dir_kind gcmp_dir_kind(struct gcmp_dir *dir, const char *name);

/* What it is, however it is named: links within the directory may give a folder several names, and
 * lead from a folder back to one that it lies in. */
struct gcmp_dir_place {
    dev_t device;
    ino_t inode;
};
static inline bool gcmp_dir_place_is(const struct gcmp_dir_place *a,
                                     const struct gcmp_dir_place *b) {
    return a->device == b->device && a->inode == b->inode;
}
/* The same, and where it stands; "" is the directory itself. */
enum gcmp_dir_kind gcmp_dir_look(struct gcmp_dir *dir, const char *name,
                                 struct gcmp_dir_place *place);

/* Fail where the system did not answer one of the questions so far (too many open files, an
 * input/output error, no memory): what was taken for absent may be there. To be asked before
 * anything rests on what these functions, or failures that were passed over, said. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_check(struct gcmp_dir *dir,
                                                    struct gradcmp_error *error);
/* Have gcmp_dir_check tell of memory that was missing where something was only looked for. */
void gcmp_dir_note_memory(struct gcmp_dir *dir);

/* Tell what is wrong with a relative name before any file is touched: NULL where nothing is, else a
 * phrase that goes on after the name ("leads out of the checkpoint"). For readers that can say
 * where the name stood. */
const char *gcmp_dir_name_fault(const char *name, size_t name_bytes);

/* List the names below `sub` ("" for the directory itself), sorted bytewise, without "." and "..";
 * at most `limit` entries, else GRADCMP_ERROR_LIMIT. *names and its strings are freed with
 * gcmp_dir_free_names. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_list(struct gcmp_dir *dir, const char *sub,
                                                   size_t limit, char ***names, size_t *count,
                                                   struct gradcmp_error *error);
void gcmp_dir_free_names(char **names, size_t count);

/* Register a file by its relative name ('/' separates folders) and return its index in *file.
 * Absolute names, "..", ".", empty names, names with NUL and links that lead outside are refused as
 * corrupt. The same name gives the same index. The file is opened once to learn its size. Not
 * thread-safe. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_add(struct gcmp_dir *dir, const char *name,
                                                  size_t name_bytes, uint32_t *file,
                                                  struct gradcmp_error *error);
uint32_t gcmp_dir_file_count(const struct gcmp_dir *dir);
/* Relative name, full path for messages (both owned by dir), and size when registered. */
const char *gcmp_dir_file_name(const struct gcmp_dir *dir, uint32_t file);
const char *gcmp_dir_file_path(const struct gcmp_dir *dir, uint32_t file);
uint64_t gcmp_dir_file_bytes(const struct gcmp_dir *dir, uint32_t file);

/* True where both were opened at one place, however it was named, or have the same files, under two
 * names of one checkpoint. */
bool gcmp_dir_is_one(const struct gcmp_dir *a, const struct gcmp_dir *b);
/* The note for a comparison of two that are one; NULL where they are not. */
const char *gcmp_dir_one_note(const struct gcmp_dir *a, const struct gcmp_dir *b);

/* Read exactly `count` bytes at `offset`; a short file is corrupt, at the first byte that lacks.
 * Thread-safe. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_read(struct gcmp_dir *dir, uint32_t file,
                                                   uint64_t offset, void *buffer, size_t count,
                                                   struct gradcmp_error *error);

/* --- reads that a caller makes itself --- */

/* Whether files are opened past the page cache (O_DIRECT) as well. */
enum gcmp_dir_direct {
    GCMP_DIR_CACHED,  /* no */
    GCMP_DIR_DIRECT,  /* yes */
    GCMP_DIR_REFUSED, /* it was wanted, and the file system refused: no */
};
/* What offsets, sizes and addresses of direct reads are multiples of: enough for every disk. */
enum { GCMP_DIRECT_BYTES = 4096 };

/* Have files opened past the page cache too; to be called while nobody reads. Where the system
 * refuses that for one file, or later a read, all go on without it. */
void gcmp_dir_use_direct(struct gcmp_dir *dir);
/* Give it up, after a read that was refused as it is. Thread-safe, as is asking. */
void gcmp_dir_refuse_direct(struct gcmp_dir *dir);
enum gcmp_dir_direct gcmp_dir_direct(struct gcmp_dir *dir);

/* Pin a registered file without waiting for others' descriptors: *fd stays open until
 * gcmp_dir_unpin. With `direct`, one that reads past the page cache. False where there is none to
 * be had now; a read by gcmp_dir_read always gets one, whatever is pinned. */
bool gcmp_dir_pin(struct gcmp_dir *dir, uint32_t file, bool direct, int *fd);
void gcmp_dir_unpin(struct gcmp_dir *dir, uint32_t file);

/* Say that bytes of a registered file will be read soon through the page cache; returns at once. */
void gcmp_dir_hint(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t count);

/* The error of a read that failed at byte `at` with errno `code`, or with 0 where the file ends
 * there: what gcmp_dir_read would say. */
enum gradcmp_status gcmp_dir_fail_read(const struct gcmp_dir *dir, uint32_t file, uint64_t at,
                                       int code, struct gradcmp_error *error);

/* Open a registered file once more, for another process to read: *fd is the caller's to close. It
 * must still be the file that was registered. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_open_fd(struct gcmp_dir *dir, uint32_t file, int *fd,
                                                      struct gradcmp_error *error);

/* Read a whole small file into memory: *bytes is malloced and has one NUL behind its end. A file
 * over `limit` bytes is GRADCMP_ERROR_LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dir_slurp(struct gcmp_dir *dir, const char *name,
                                                    uint64_t limit, unsigned char **bytes,
                                                    size_t *count, struct gradcmp_error *error);

#endif
