/* Holds decoded bytes in memory or in a temporary file that has no name. */
#include "formats/decoded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BUFFER_BYTES = 256 << 10, MAX_READ_BYTES = 1 << 30 };

struct gcmp_bytes gcmp_bytes_of_file(struct gcmp_dir *dir, uint32_t file, uint64_t offset_bytes,
                                     uint64_t length_bytes) {
    return (struct gcmp_bytes){.dir = dir,
                               .file = file,
                               .origin_bytes = offset_bytes,
                               .length_bytes = length_bytes,
                               .kind = GCMP_BYTES_FILE,
                               .fd = -1};
}

void gcmp_bytes_free(struct gcmp_bytes *bytes) {
    free(bytes->memory);
    bytes->memory = NULL;
    if (bytes->kind == GCMP_BYTES_TEMPORARY && bytes->fd >= 0) {
        close(bytes->fd);
    }
    bytes->fd = -1;
}

/* Read from the temporary file, which nobody else can make shorter. */
static enum gradcmp_status read_temporary(const struct gcmp_bytes *bytes, uint64_t at,
                                          unsigned char *buffer, size_t count,
                                          struct gradcmp_error *error) {
    for (size_t got = 0; got < count;) {
        size_t want = count - got < MAX_READ_BYTES ? count - got : MAX_READ_BYTES;
        ssize_t done = pread(bytes->fd, buffer + got, want, (off_t)(at + got));
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            GCMP_FAIL(error, GRADCMP_ERROR_IO, "temporary file: cannot be read back");
        }
        got += (size_t)done;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bytes_read(const struct gcmp_bytes *bytes, uint64_t at, void *buffer,
                                    size_t count, struct gradcmp_error *error) {
    switch (bytes->kind) {
    case GCMP_BYTES_MEMORY:
        memcpy(buffer, bytes->memory + at, count);
        return GRADCMP_OK;
    case GCMP_BYTES_TEMPORARY:
        return read_temporary(bytes, at, buffer, count, error);
    default:
        return gcmp_dir_read(bytes->dir, bytes->file, bytes->origin_bytes + at, buffer, count,
                             error);
    }
}

void gcmp_bytes_give(struct gcmp_bytes *bytes, struct gradcmp_extent *extent) {
    extent->offset_bytes = 0;
    extent->length_bytes = bytes->length_bytes;
    extent->crc32 = 0;
    if (bytes->kind == GCMP_BYTES_MEMORY) {
        extent->decoded = bytes->memory;
        bytes->memory = NULL;
    } else if (bytes->kind == GCMP_BYTES_TEMPORARY) {
        extent->decoded_in_file = 1;
        extent->decoded_fd = bytes->fd;
        bytes->fd = -1;
    }
}

/* Make a file without a name; -1 with errno. File systems without O_TMPFILE get a name for a
 * moment. */
static int make_nameless(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    char path[1024];
    int length = snprintf(path, sizeof path, "%s/gradcmp-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        unlink(path);
    }
    return fd;
}

static enum gradcmp_status open_temporary(struct gcmp_writer *writer, struct gradcmp_error *error) {
    const char *chosen = getenv("TMPDIR");
    const char *folders[] = {chosen, "/var/tmp", "/tmp"};
    writer->made.fd = -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && writer->made.fd < 0; i++) {
        if (folders[i] != NULL && folders[i][0] == '/') {
            writer->made.fd = make_nameless(folders[i]);
        }
    }
    if (writer->made.fd < 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO,
                  "no temporary file for decoded bytes can be made (set TMPDIR)");
    }
    writer->buffer = malloc(FILE_BUFFER_BYTES);
    if (writer->buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_writer_open(struct gcmp_writer *writer, const struct gcmp_bytes *source,
                                     uint64_t max_bytes, struct gradcmp_error *error) {
    *writer = (struct gcmp_writer){.source = source, .max_bytes = max_bytes};
    writer->made = (struct gcmp_bytes){
        .dir = source->dir, .file = source->file, .origin_bytes = source->origin_bytes, .fd = -1};
    if (max_bytes > GCMP_DECODED_MAX_MEMORY) {
        writer->made.kind = GCMP_BYTES_TEMPORARY;
        return open_temporary(writer, error);
    }
    writer->made.kind = GCMP_BYTES_MEMORY;
    writer->made.memory = malloc(max_bytes == 0 ? 1 : (size_t)max_bytes);
    if (writer->made.memory == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

void gcmp_writer_free(struct gcmp_writer *writer) {
    gcmp_bytes_free(&writer->made);
    free(writer->buffer);
    writer->buffer = NULL;
}

unsigned char *gcmp_writer_room(struct gcmp_writer *writer, size_t *room) {
    uint64_t left = writer->max_bytes - writer->made.length_bytes;
    if (left == 0) {
        *room = 1;
        return &writer->spare;
    }
    if (writer->made.kind == GCMP_BYTES_MEMORY) {
        *room = (size_t)left;
        return writer->made.memory + writer->made.length_bytes;
    }
    size_t free_bytes = FILE_BUFFER_BYTES - writer->buffered;
    *room = left < free_bytes ? (size_t)left : free_bytes;
    return writer->buffer + writer->buffered;
}

static enum gradcmp_status flush(struct gcmp_writer *writer, struct gradcmp_error *error) {
    for (size_t put = 0; put < writer->buffered;) {
        ssize_t done = write(writer->made.fd, writer->buffer + put, writer->buffered - put);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            GCMP_FAIL(error, GRADCMP_ERROR_IO, "temporary file for decoded bytes: %s (set TMPDIR)",
                      errno == ENOSPC ? "no space left" : "cannot be written");
        }
        put += (size_t)done;
    }
    writer->buffered = 0;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_writer_commit(struct gcmp_writer *writer, size_t count,
                                       struct gradcmp_error *error) {
    if (count > writer->max_bytes - writer->made.length_bytes) {
        GCMP_BYTES_FAIL(writer->source, 0, error, GRADCMP_ERROR_CORRUPT,
                        "decodes to more than the %llu bytes expected",
                        (unsigned long long)writer->max_bytes);
    }
    writer->made.length_bytes += count;
    if (writer->made.kind == GCMP_BYTES_TEMPORARY) {
        writer->buffered += count;
        if (writer->buffered == FILE_BUFFER_BYTES) {
            return flush(writer, error);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_writer_add(struct gcmp_writer *writer, const void *bytes, size_t count,
                                    struct gradcmp_error *error) {
    const unsigned char *from = bytes;
    while (count > 0) {
        size_t room;
        unsigned char *to = gcmp_writer_room(writer, &room);
        size_t part = count < room ? count : room;
        memcpy(to, from, part);
        GCMP_TRY(gcmp_writer_commit(writer, part, error));
        from += part;
        count -= part;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_writer_finish(struct gcmp_writer *writer, uint64_t min_bytes,
                                       struct gcmp_bytes *out, struct gradcmp_error *error) {
    if (writer->made.length_bytes < min_bytes) {
        GCMP_BYTES_FAIL(
            writer->source, 0, error, GRADCMP_ERROR_CORRUPT, "decodes to %llu bytes, expected %llu",
            (unsigned long long)writer->made.length_bytes, (unsigned long long)min_bytes);
    }
    if (writer->made.kind == GCMP_BYTES_TEMPORARY) {
        GCMP_TRY(flush(writer, error));
    }
    *out = writer->made;
    if (out->kind == GCMP_BYTES_MEMORY && out->length_bytes < writer->max_bytes) {
        size_t count = out->length_bytes == 0 ? 1 : (size_t)out->length_bytes;
        unsigned char *smaller = realloc(out->memory, count);
        if (smaller != NULL) {
            out->memory = smaller;
        }
    }
    writer->made.memory = NULL;
    writer->made.fd = -1;
    return GRADCMP_OK;
}
