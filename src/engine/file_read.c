/* Pins a file, reads, and judges what came of it. */
#include "engine/file_read.h"

#include <errno.h>
#include <unistd.h>

/* The most that one read under way is asked for; the system's own limit is just under 2 GiB. */
enum { MAX_READ_BYTES = 1 << 30 };

bool gcmp_file_read_align(struct gcmp_file_read *read, struct gcmp_pages_at at, size_t wanted,
                          unsigned char *buffer, size_t room, size_t *skip) {
    *skip = (size_t)(at.offset_bytes % GCMP_DIRECT_BYTES);
    if (room < GCMP_DIRECT_BYTES || wanted > room || *skip > room - wanted) {
        return false;
    }
    size_t needed = *skip + wanted;
    size_t over = needed % GCMP_DIRECT_BYTES;
    size_t count = over == 0 ? needed : needed + (GCMP_DIRECT_BYTES - over);
    at.offset_bytes -= *skip;
    *read = (struct gcmp_file_read){
        .at = at, .buffer = buffer, .count = count, .needed = needed, .is_direct = true};
    return count <= room;
}

/* Tell whether a failure speaks of the way of reading, not of the file. */
static bool is_refusal(int code) {
    switch (code) {
    case EINVAL:
    case EOPNOTSUPP:
    case ENOSYS:
    case EPERM:
    case EACCES:
    case EFAULT:
    case EINTR:
    case EAGAIN:
    case ECANCELED:
    case ENOMEM:
    case ENOBUFS:
        return true;
    default:
        return false;
    }
}

/* See how a read ended that brought `result` bytes, or failed with -result. What is missing is
 * read through the cache, which knows where the file ends. */
static enum gradcmp_status judge(const struct gcmp_file_read *read, int64_t result,
                                 struct gradcmp_error *error) {
    const struct gcmp_pages_at *at = &read->at;
    if (result < 0 && !is_refusal((int)-result)) {
        return gcmp_dir_fail_read(at->dir, at->file, at->offset_bytes, (int)-result, error);
    }
    if (read->is_direct && (result == -EINVAL || result == -EOPNOTSUPP)) {
        gcmp_dir_refuse_direct(at->dir);
    }
    size_t got = result < 0 ? 0 : (size_t)result;
    if (got >= read->needed) {
        return GRADCMP_OK;
    }
    return gcmp_dir_read(at->dir, at->file, at->offset_bytes + got, read->buffer + got,
                         read->needed - got, error);
}

bool gcmp_file_read_start(struct gcmp_file_read *read, const struct gcmp_ring_way *way,
                          struct gcmp_ring *ring) {
    int fd = -1;
    uint64_t end;
    if (read->count > MAX_READ_BYTES ||
        __builtin_add_overflow(read->at.offset_bytes, (uint64_t)read->needed, &end) ||
        end > gcmp_dir_file_bytes(read->at.dir, read->at.file) ||
        !gcmp_dir_pin(read->at.dir, read->at.file, read->is_direct, &fd)) {
        return false;
    }
    read->ring = (struct gcmp_ring_read){.fd = fd,
                                         .offset_bytes = read->at.offset_bytes,
                                         .buffer = read->buffer,
                                         .count = read->count};
    if (!way->start(ring, &read->ring)) {
        gcmp_dir_unpin(read->at.dir, read->at.file);
        return false;
    }
    return true;
}

enum gradcmp_status gcmp_file_read_end(struct gcmp_file_read *read, const struct gcmp_ring_way *way,
                                       struct gcmp_ring *ring, struct gradcmp_error *error) {
    while (!read->ring.is_done) {
        way->reap(ring, true);
    }
    gcmp_dir_unpin(read->at.dir, read->at.file);
    return judge(read, read->ring.result, error);
}

enum gradcmp_status gcmp_file_read_now(struct gcmp_file_read *read, struct gradcmp_error *error) {
    int64_t result = -EAGAIN;
    int fd = -1;
    uint64_t end;
    if (read->is_direct && read->count <= MAX_READ_BYTES &&
        !__builtin_add_overflow(read->at.offset_bytes, (uint64_t)read->needed, &end) &&
        end <= gcmp_dir_file_bytes(read->at.dir, read->at.file) &&
        gcmp_dir_pin(read->at.dir, read->at.file, true, &fd)) {
        result = pread(fd, read->buffer, read->count, (off_t)read->at.offset_bytes);
        result = result < 0 ? -errno : result;
        gcmp_dir_unpin(read->at.dir, read->at.file);
    }
    return judge(read, result, error);
}
