/* Reads under way in the kernel: a thin wall around io_uring, so that the engine sees no more of it
 * than four functions, and a test can stand in for the kernel. */
#ifndef GCMP_ENGINE_RING_H
#define GCMP_ENGINE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread's reads under way. */
struct gcmp_ring;

/* A read, and in the end what became of it. */
struct gcmp_ring_read {
    int fd;
    uint64_t offset_bytes;
    unsigned char *buffer;
    size_t count;
    int64_t result; /* bytes, or a negative errno; set once is_done */
    bool is_done;
};

/* Ways to have reads under way; none of them is thread-safe for one ring. */
struct gcmp_ring_way {
    /* Room for `entries` reads at a time; NULL where the system does not allow it (an old kernel,
     * a container's filter, limits), which is no error: there are other ways to read. */
    struct gcmp_ring *(*open)(unsigned entries);
    /* Start a read; false where it was not taken. It and its buffer must stay where they are until
     * is_done. A read that is served from memory may be done on return. */
    bool (*start)(struct gcmp_ring *ring, struct gcmp_ring_read *read);
    /* Take note of reads that are done; with `block`, wait until at least one more is. To be called
     * with `block` only while reads are under way. */
    void (*reap)(struct gcmp_ring *ring, bool block);
    /* Free the ring; nothing may be under way. */
    void (*close)(struct gcmp_ring *ring);
};

/* io_uring; NULL in builds without liburing. */
const struct gcmp_ring_way *gcmp_ring_uring(void);

#endif
