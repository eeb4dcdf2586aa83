/* io_uring through liburing, where the build found it. */
#include "engine/ring.h"

#if defined(GRADCMP_HAVE_URING)
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <time.h>

struct gcmp_ring {
    struct io_uring uring;
    bool is_broken; /* it takes no more reads */
};

/* Tell whether the kernel has the one operation that is used (Linux 5.6). */
static bool can_read(struct io_uring *uring) {
    struct io_uring_probe *probe = io_uring_get_probe_ring(uring);
    bool can = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
    io_uring_free_probe(probe);
    return can;
}

static struct gcmp_ring *open_ring(unsigned entries) {
    struct gcmp_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL || io_uring_queue_init(entries, &ring->uring, 0) < 0) {
        free(ring);
        return NULL;
    }
    if (!can_read(&ring->uring)) {
        io_uring_queue_exit(&ring->uring);
        free(ring);
        return NULL;
    }
    return ring;
}

/* Each read is submitted alone: what was not taken is then known to be this one. The call costs
 * about as much as a pread, and copies what the page cache has. */
static bool start_read(struct gcmp_ring *ring, struct gcmp_ring_read *read) {
    struct io_uring_sqe *entry = ring->is_broken ? NULL : io_uring_get_sqe(&ring->uring);
    if (entry == NULL) {
        return false;
    }
    io_uring_prep_read(entry, read->fd, read->buffer, (unsigned)read->count, read->offset_bytes);
    io_uring_sqe_set_data(entry, read);
    read->is_done = false;
    int taken;
    do {
        taken = io_uring_submit(&ring->uring);
    } while (taken == -EINTR);
    ring->is_broken = taken != 1; /* the entry stays in the queue: never submit again */
    return taken == 1;
}

static void note(struct gcmp_ring *ring, struct io_uring_cqe *cqe) {
    struct gcmp_ring_read *read = io_uring_cqe_get_data(cqe);
    read->result = cqe->res;
    read->is_done = true;
    io_uring_cqe_seen(&ring->uring, cqe);
}

/* Wait for one read. Should waiting be refused, look again and again: reads end all the same, and
 * until then their buffers are the kernel's. */
static struct io_uring_cqe *await_one(struct gcmp_ring *ring) {
    struct io_uring_cqe *cqe = NULL;
    int code;
    do {
        code = io_uring_wait_cqe(&ring->uring, &cqe);
    } while (code == -EINTR);
    while (code < 0 && io_uring_peek_cqe(&ring->uring, &cqe) != 0) {
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    return cqe;
}

static void reap_reads(struct gcmp_ring *ring, bool block) {
    struct io_uring_cqe *cqe = NULL;
    if (block) {
        note(ring, await_one(ring));
    }
    while (io_uring_peek_cqe(&ring->uring, &cqe) == 0) {
        note(ring, cqe);
    }
}

static void close_ring(struct gcmp_ring *ring) {
    io_uring_queue_exit(&ring->uring);
    free(ring);
}

static const struct gcmp_ring_way uring_way = {
    .open = open_ring, .start = start_read, .reap = reap_reads, .close = close_ring};

const struct gcmp_ring_way *gcmp_ring_uring(void) {
    return &uring_way;
}
#else
const struct gcmp_ring_way *gcmp_ring_uring(void) {
    return NULL;
}
#endif
