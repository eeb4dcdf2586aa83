/* Fuzz target: a folder with files, opened as a checkpoint of whatever format it turns out to be,
 * listed, and read where it is small. The input is one file after another: a length and a name, a
 * length of two bytes (least significant first) and the bytes. */
#include "gradcmp/gradcmp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/dtype.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILES = 40, MAX_PATH = 128, MAX_TENSORS = 64, MAX_READ_BYTES = 1 << 16 };

/* --- the folder: one for all inputs of a process --- */

static char folder[64];
static char made[2 * MAX_FILES][MAX_PATH]; /* files and folders, in the order in which they came */
static size_t made_count;

static void empty_folder(void) {
    char path[2 * MAX_PATH];
    while (made_count > 0) {
        snprintf(path, sizeof path, "%s/%s", folder, made[--made_count]);
        demand(remove(path) == 0, "what was made can be removed");
    }
}

static void remove_folder(void) {
    empty_folder();
    rmdir(folder);
}

static void make_folder(void) {
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/gradcmp-checkpoint-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        demand(mkdtemp(folder) != NULL, "a folder can be made");
        atexit(remove_folder);
    }
}

static void note(const char *name) {
    demand(made_count < sizeof made / sizeof made[0], "room for names");
    snprintf(made[made_count++], MAX_PATH, "%s", name);
}

/* Make the folders above a file; false where something else is in the way. */
static bool make_parents(const char *name) {
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        char parent[MAX_PATH], path[2 * MAX_PATH];
        snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
        snprintf(path, sizeof path, "%s/%s", folder, parent);
        if (mkdir(path, 0700) == 0) {
            note(parent);
        } else if (errno != EEXIST) {
            return false;
        }
    }
    return true;
}

/* Relative, without "." and "..", and short. */
static bool is_usable(const char *name) {
    size_t parts = 1;
    for (const char *part = name; part != NULL; parts++) {
        size_t bytes = strcspn(part, "/");
        if (bytes == 0 || (part[0] == '.' && (bytes == 1 || (bytes == 2 && part[1] == '.')))) {
            return false;
        }
        part = part[bytes] == '/' ? part + bytes + 1 : NULL;
    }
    return parts <= 4;
}

static void write_file(const char *name, const unsigned char *bytes, size_t count) {
    char path[2 * MAX_PATH];
    if (made_count + 4 > sizeof made / sizeof made[0] || !is_usable(name) || !make_parents(name)) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) { /* each name once */
        demand(write(fd, bytes, count) == (ssize_t)count, "a file can be written");
        close(fd);
        note(name);
    }
}

static void write_files(struct gcmp_cursor *in) {
    uint8_t name_bytes;
    uint16_t count;
    const unsigned char *name, *bytes;
    for (int i = 0; i < MAX_FILES && gcmp_read_u8(in, &name_bytes) &&
                    gcmp_read_bytes(in, name_bytes % 100, &name) && gcmp_read_u16le(in, &count);
         i++) {
        char text[100];
        memcpy(text, name, name_bytes % 100);
        text[name_bytes % 100] = '\0';
        size_t left = gcmp_cursor_left(in), some = count < left ? count : left;
        if (gcmp_read_bytes(in, some, &bytes)) {
            write_file(text, bytes, some);
        }
    }
}

/* --- what is looked at --- */

static void check_error(enum gradcmp_status status, const struct gradcmp_error *error) {
    demand(status == GRADCMP_OK || (error->code == status && error->message[0] != '\0' &&
                                    strchr(error->message, '\n') == NULL),
           "a failure is told in one line");
}

static int drop(void *user, const char *bytes, size_t length_bytes) {
    (void)bytes;
    *(size_t *)user += length_bytes;
    return 0;
}

/* Read a tensor twice: it says the same. One that is large may be nothing but a fill value. */
static void read_tensor(struct gradcmp_checkpoint *checkpoint, size_t index) {
    static unsigned char first[MAX_READ_BYTES], second[MAX_READ_BYTES];
    struct gradcmp_tensor_info info;
    struct gradcmp_error error = {0};
    uint64_t bytes;
    gradcmp_checkpoint_tensor(checkpoint, index, &info);
    demand(info.name != NULL && info.copies > 0, "a tensor has a name and a copy");
    bytes = gcmp_dtype_bytes(info.dtype);
    for (unsigned d = 0; d < info.ndim; d++) {
        if (__builtin_mul_overflow(bytes, info.shape[d], &bytes)) {
            return;
        }
    }
    if (bytes > MAX_READ_BYTES) {
        return;
    }
    enum gradcmp_status status =
        gradcmp_checkpoint_read(checkpoint, index, first, (size_t)bytes, &error);
    check_error(status, &error);
    if (status == GRADCMP_OK) {
        demand(gradcmp_checkpoint_read(checkpoint, index, second, (size_t)bytes, &error) ==
                       GRADCMP_OK &&
                   memcmp(first, second, (size_t)bytes) == 0,
               "a tensor is the same when it is read again");
    }
}

static void look_at(struct gradcmp_checkpoint *checkpoint, const struct gradcmp_options *options) {
    struct gradcmp_ls_options ls = GRADCMP_LS_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    size_t count = gradcmp_checkpoint_tensor_count(checkpoint), written = 0;
    ls.format = GRADCMP_LS_JSON;
    check_error(gradcmp_checkpoint_list(checkpoint, options, &ls, drop, &written, &error), &error);
    for (size_t i = 0; i < count && i < MAX_TENSORS; i++) {
        read_tensor(checkpoint, i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_cursor in = gcmp_cursor_make(data, size, 0);
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_error error = {0};
    options.threads = 1;
    options.buffer_bytes = 1; /* as little as there can be: nothing here is large */
    make_folder();
    write_files(&in);
    enum gradcmp_status status = gradcmp_checkpoint_open(folder, &options, &checkpoint, &error);
    check_error(status, &error);
    demand((status == GRADCMP_OK) == (checkpoint != NULL), "there is one or none");
    if (status == GRADCMP_OK) {
        look_at(checkpoint, &options);
    }
    gradcmp_checkpoint_free(checkpoint);
    empty_folder();
    return 0;
}
