/* Starts gradcmp-h5 to write, and sends it what hdf5_wire_write.h says. */
#include "formats/hdf5_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/hdf5_spawn.h"
#include "formats/hdf5_wire_write.h"

enum { BUFFER_BYTES = 64 << 10, FIRST_FREE_DESCRIPTOR = 3, MAX_ANSWER_BYTES = 401 };

struct gcmp_h5_writer {
    int socket;
    struct gcmp_h5_child child;
    bool is_broken; /* the helper listens no more */
    size_t buffered;
    unsigned char buffer[BUFFER_BYTES];
};

bool gcmp_h5_writer_takes(enum gradcmp_dtype dtype) {
    return dtype > GRADCMP_DTYPE_NONE && dtype <= GRADCMP_DTYPE_BOOL;
}

/* --- starting --- */

/* Start the helper with one end of a pair of sockets: unlike a pipe's, a broken one raises no
 * signal in the caller's program. */
static enum gradcmp_status start(struct gcmp_h5_writer *writer, const char *program, int descriptor,
                                 struct gradcmp_error *error) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "no socket to the helper for HDF5: %s", strerror(errno));
    }
    /* Numbers that the helper's own three do not overwrite. */
    int theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
    int file = fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR);
    const int streams[2] = {theirs, file};
    int code = theirs < 0 || file < 0
                   ? EMFILE
                   : gcmp_h5_spawn(program, GCMP_H5W_ARGUMENT, streams, &writer->child);
    close(ends[1]);
    if (theirs >= 0) {
        close(theirs);
    }
    if (file >= 0) {
        close(file);
    }
    writer->socket = ends[0];
    if (code == ENOMEM) {
        close(writer->socket);
        GCMP_FAIL_MEMORY(error);
    }
    if (code != 0) {
        close(writer->socket);
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "hdf5: the helper program %.300s cannot be started: %s",
                  program, strerror(code));
    }
    return GRADCMP_OK;
}

static bool send_all(struct gcmp_h5_writer *writer, const unsigned char *bytes, size_t count) {
    while (count > 0 && !writer->is_broken) {
        ssize_t done = send(writer->socket, bytes, count, MSG_NOSIGNAL);
        if (done < 0 && errno != EINTR) {
            writer->is_broken = true;
        } else if (done > 0) {
            bytes += done;
            count -= (size_t)done;
        }
    }
    return !writer->is_broken;
}

static bool flush(struct gcmp_h5_writer *writer) {
    size_t count = writer->buffered;
    writer->buffered = 0;
    return send_all(writer, writer->buffer, count);
}

static bool put(struct gcmp_h5_writer *writer, const void *bytes, size_t count) {
    const unsigned char *from = bytes;
    while (count > 0 && !writer->is_broken) {
        size_t room = BUFFER_BYTES - writer->buffered, part = count < room ? count : room;
        memcpy(writer->buffer + writer->buffered, from, part);
        writer->buffered += part;
        from += part;
        count -= part;
        if (writer->buffered == BUFFER_BYTES) {
            (void)flush(writer);
        }
    }
    return !writer->is_broken;
}

static void put_number(struct gcmp_h5_writer *writer, uint64_t value, unsigned count) {
    unsigned char bytes[8];
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    (void)put(writer, bytes, count);
}

static void put_text(struct gcmp_h5_writer *writer, const char *text) {
    size_t count = strlen(text);
    count = count < GCMP_H5W_MAX_TEXT ? count : GCMP_H5W_MAX_TEXT;
    put_number(writer, count, 4);
    (void)put(writer, text, count);
}

enum gradcmp_status gcmp_h5_writer_start(int descriptor, struct gcmp_h5_writer **out,
                                         struct gradcmp_error *error) {
    char program[2 * PATH_MAX];
    struct stat info;
    *out = NULL;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "an HDF5 file can be written into an empty regular file only");
    }
    if (!gcmp_h5_find_program(program, sizeof program)) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                  "hdf5: the helper program gradcmp-h5 is not installed beside gradcmp");
    }
    struct gcmp_h5_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = start(writer, program, descriptor, error);
    if (status != GRADCMP_OK) {
        free(writer);
        return status;
    }
    (void)put(writer, GCMP_H5W_MAGIC, sizeof GCMP_H5W_MAGIC - 1);
    *out = writer;
    return GRADCMP_OK;
}

/* --- sending --- */

bool gcmp_h5_writer_attribute(struct gcmp_h5_writer *writer, const char *name, const char *value) {
    put_number(writer, GCMP_H5W_ATTRIBUTE, 1);
    put_text(writer, name);
    put_text(writer, value);
    return !writer->is_broken;
}

bool gcmp_h5_writer_dataset(struct gcmp_h5_writer *writer, const struct gcmp_h5_new *dataset) {
    put_number(writer, GCMP_H5W_DATASET, 1);
    put_text(writer, dataset->path);
    put_number(writer, dataset->dtype, 1);
    put_number(writer, dataset->ndim, 1);
    for (unsigned d = 0; d < dataset->ndim; d++) {
        put_number(writer, dataset->sizes[d], 8);
    }
    put_number(writer, dataset->layer, 8);
    put_number(writer, dataset->text_count, 1);
    for (unsigned i = 0; i < dataset->text_count; i++) {
        put_text(writer, dataset->texts[i][0]);
        put_text(writer, dataset->texts[i][1]);
    }
    return !writer->is_broken;
}

bool gcmp_h5_writer_elements(struct gcmp_h5_writer *writer, const void *bytes, size_t count) {
    return put(writer, bytes, count);
}

/* --- ending --- */

/* Read the answer up to the end of the stream; its length. */
static size_t read_answer(const struct gcmp_h5_writer *writer, char *answer, size_t capacity) {
    size_t count = 0;
    for (;;) {
        ssize_t done = recv(writer->socket, answer + count, capacity - count, 0);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0 || (count += (size_t)done) == capacity) {
            return count;
        }
    }
}

static enum gradcmp_status conclude(const char *answer, size_t count, int ended,
                                    struct gradcmp_error *error) {
    bool is_done = WIFEXITED(ended) && (WEXITSTATUS(ended) == 0 || answer[0] != GRADCMP_OK);
    if (count == 0 || !is_done) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO,
                  "hdf5: the helper program ended %s %d before the file did",
                  WIFSIGNALED(ended) ? "by signal" : "with status",
                  WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
    }
    if (answer[0] == GCMP_H5W_SYSTEM) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO, "%s", answer + 1);
    }
    if (answer[0] != GRADCMP_OK) {
        enum gradcmp_status code = (enum gradcmp_status)answer[0];
        bool is_known = code == GRADCMP_ERROR_UNSUPPORTED || code == GRADCMP_ERROR_LIMIT ||
                        code == GRADCMP_ERROR_MEMORY;
        GCMP_FAIL(error, is_known ? code : GRADCMP_ERROR_IO, "hdf5: %s", answer + 1);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_h5_writer_end(struct gcmp_h5_writer *writer, bool keep,
                                       struct gradcmp_error *error) {
    char answer[MAX_ANSWER_BYTES + 1] = "";
    int ended = 0;
    if (keep) {
        put_number(writer, GCMP_H5W_END, 1);
        (void)flush(writer);
    }
    (void)shutdown(writer->socket, SHUT_WR);
    size_t count = keep ? read_answer(writer, answer, MAX_ANSWER_BYTES) : 0;
    close(writer->socket);
    if (keep) {
        ended = gcmp_h5_wait(&writer->child);
    } else {
        gcmp_h5_give_up(&writer->child);
    }
    free(writer);
    if (!keep) {
        GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "the file was given up");
    }
    return conclude(answer, count, ended, error);
}
