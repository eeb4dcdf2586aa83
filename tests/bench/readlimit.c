/* The limit that a comparison is measured against: reads what a comparison of two checkpoints
 * reads, the same extents in pieces of the same size on the same number of threads, takes the same
 * checksums, and throws the bytes away.
 *
 *   readlimit [--threads N] [--direct] [--no-verify] BASELINE CANDIDATE
 *
 * Prints bytes, seconds of reading alone, and their rate. Checkpoints whose elements have to be
 * decoded first are not measured. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/dtype.h"
#include "bench_tools.h"
#include "checkpoint.h"
#include "engine/crc32.h"
#include "engine/engine.h"

enum { PIECE_BYTES = 256 * 1024, MOST_THREADS = 1024 };

/* A record that is read whole. */
struct extent {
    struct gcmp_dir *dir;
    uint32_t file, stored_crc32;
    uint64_t offset_bytes, length_bytes;
    atomic_uint_fast32_t crc32; /* of the pieces that were read */
};

/* A piece of an extent; those of one parameter's sides take turns, as units do. */
struct piece {
    size_t extent; /* its index */
    uint64_t at;
    size_t count;
};

struct limit {
    struct extent *extents;
    struct piece *pieces;
    size_t extent_count, extent_room, piece_count, piece_room;
    uint64_t bytes;
    atomic_size_t next;
    bool check, direct;
};

static void fail(const char *what) {
    fprintf(stderr, "readlimit: %s\n", what);
    exit(2);
}

static void *grow(void *list, size_t count, size_t *room, size_t bytes) {
    if (count < *room) {
        return list;
    }
    *room = *room == 0 ? 1024 : 2 * *room;
    list = realloc(list, *room * bytes);
    if (list == NULL) {
        fail("out of memory");
    }
    return list;
}

/* --- what is read --- */

/* Where the elements of a source lie. */
static void resolve(const struct gradcmp_catalogue *catalogue, uint32_t index, struct extent *out) {
    const struct gradcmp_source *source = &catalogue->sources[index];
    struct gradcmp_extent item = {.offset_bytes = source->offset_bytes,
                                  .length_bytes = source->length_bytes,
                                  .crc32 = source->crc32};
    struct gradcmp_error error;
    if (source->kind == GRADCMP_SOURCE_ITEM &&
        catalogue->format->resolve(catalogue, index, &item, &error) != GRADCMP_OK) {
        fail(error.message);
    }
    if (item.decoded != NULL || item.decoded_in_file) {
        fail("a record has to be decoded: there is no limit to measure");
    }
    out->dir = catalogue->dir;
    out->file = source->file;
    out->offset_bytes = item.offset_bytes;
    out->length_bytes = item.length_bytes;
    out->stored_crc32 = item.crc32;
}

/* One side: a checkpoint, its parameters, and which sources were taken already (a stacked tensor is
 * many parameters). */
struct side {
    struct gradcmp_checkpoint *checkpoint;
    const struct gradcmp_model *model;
    bool *taken;
};

static void add_extents(struct limit *limit, struct side *side,
                        const struct gradcmp_parameter *parameter) {
    for (size_t i = 0; i < parameter->slab_count; i++) {
        uint32_t source = parameter->slabs[i].source;
        if (side->taken[source]) {
            continue;
        }
        side->taken[source] = true;
        limit->extents =
            grow(limit->extents, limit->extent_count, &limit->extent_room, sizeof *limit->extents);
        struct extent *extent = &limit->extents[limit->extent_count++];
        memset(extent, 0, sizeof *extent);
        resolve(&side->checkpoint->catalogue, source, extent);
        limit->bytes += extent->length_bytes;
    }
}

static void add_piece(struct limit *limit, size_t index, uint64_t at) {
    limit->pieces =
        grow(limit->pieces, limit->piece_count, &limit->piece_room, sizeof *limit->pieces);
    uint64_t left = limit->extents[index].length_bytes - at;
    limit->pieces[limit->piece_count++] =
        (struct piece){index, at, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES};
}

/* Cut extents [first, middle) of one side and [middle, end) of the other, turn by turn. */
static void add_pieces(struct limit *limit, size_t first, size_t middle, size_t end) {
    size_t at[2] = {first, middle}, ends[2] = {middle, end};
    uint64_t done[2] = {0, 0};
    while (at[0] < ends[0] || at[1] < ends[1]) {
        for (int side = 0; side < 2; side++) {
            if (at[side] == ends[side]) {
                continue;
            }
            struct extent *extent = &limit->extents[at[side]];
            if (extent->length_bytes > 0) {
                add_piece(limit, at[side], done[side]);
            }
            done[side] += PIECE_BYTES;
            if (done[side] >= extent->length_bytes) {
                at[side]++;
                done[side] = 0;
            }
        }
    }
}

static struct side open_side(const char *path) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct side side = {NULL, NULL, NULL};
    if (gcmp_checkpoint_open(path, &options, &side.checkpoint, &error) != GRADCMP_OK ||
        gcmp_checkpoint_model(side.checkpoint, "exp_avg", &side.model, &error) != GRADCMP_OK) {
        fail(error.message);
    }
    side.taken = calloc(side.checkpoint->catalogue.source_count + 1, sizeof *side.taken);
    if (side.taken == NULL) {
        fail("out of memory");
    }
    return side;
}

/* Parameters are sorted by name on both sides. */
static void plan(struct limit *limit, struct side *a, struct side *b) {
    size_t j = 0;
    for (size_t i = 0; i < a->model->count; i++) {
        const char *name = a->model->parameters[i].name;
        while (j < b->model->count && strcmp(b->model->parameters[j].name, name) < 0) {
            j++;
        }
        if (j == b->model->count || strcmp(b->model->parameters[j].name, name) != 0) {
            continue;
        }
        size_t first = limit->extent_count;
        add_extents(limit, a, &a->model->parameters[i]);
        size_t middle = limit->extent_count;
        add_extents(limit, b, &b->model->parameters[j]);
        add_pieces(limit, first, middle, limit->extent_count);
    }
}

/* --- reading --- */

static void read_piece(struct limit *limit, const struct piece *piece, unsigned char *buffer) {
    struct extent *extent = &limit->extents[piece->extent];
    uint64_t offset = extent->offset_bytes + piece->at;
    size_t skip = limit->direct ? (size_t)(offset % GCMP_DIRECT_BYTES) : 0;
    size_t count = piece->count + skip;
    if (limit->direct) {
        count = (count + GCMP_DIRECT_BYTES - 1) / GCMP_DIRECT_BYTES * GCMP_DIRECT_BYTES;
    }
    int fd = -1;
    if (!gcmp_dir_pin(extent->dir, extent->file, limit->direct, &fd)) {
        fail(limit->direct ? "direct reads are refused here" : "too many open files");
    }
    ssize_t got = pread(fd, buffer, count, (off_t)(offset - skip));
    gcmp_dir_unpin(extent->dir, extent->file);
    if (got < (ssize_t)(piece->count + skip)) {
        fail("a read failed");
    }
    if (limit->check && extent->stored_crc32 != 0) {
        uint32_t crc32 = gcmp_crc32(0, buffer + skip, piece->count);
        crc32 = gcmp_crc32_shift(crc32, extent->length_bytes - piece->at - piece->count);
        atomic_fetch_xor(&extent->crc32, crc32);
    }
}

static void *read_all(void *user) {
    struct limit *limit = user;
    unsigned char *buffer = aligned_alloc(GCMP_DIRECT_BYTES, PIECE_BYTES + 2 * GCMP_DIRECT_BYTES);
    for (;;) {
        size_t next = atomic_fetch_add(&limit->next, 1);
        if (next >= limit->piece_count || buffer == NULL) {
            break;
        }
        read_piece(limit, &limit->pieces[next], buffer);
    }
    free(buffer);
    return NULL;
}

static void compare_checksums(const struct limit *limit) {
    for (size_t i = 0; i < limit->extent_count; i++) {
        const struct extent *extent = &limit->extents[i];
        if (limit->check && extent->stored_crc32 != 0 && extent->crc32 != extent->stored_crc32) {
            fail("a checksum is wrong");
        }
    }
}

static double time_reading(struct limit *limit, unsigned threads) {
    static pthread_t others[MOST_THREADS];
    double start = now_s();
    for (unsigned i = 1; i < threads; i++) {
        if (pthread_create(&others[i], NULL, read_all, limit) != 0) {
            fail("no thread could be had");
        }
    }
    read_all(limit);
    for (unsigned i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
    }
    return now_s() - start;
}

int main(int argc, char **argv) {
    struct limit limit = {.check = true};
    unsigned threads = gcmp_engine_default_threads();
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--direct") == 0) {
            limit.direct = true;
        } else if (strcmp(argv[at], "--no-verify") == 0) {
            limit.check = false;
        } else if (strcmp(argv[at], "--threads") == 0 && at + 1 < argc) {
            threads = (unsigned)strtoul(argv[++at], NULL, 10);
        } else {
            fail("usage: readlimit [--threads N] [--direct] [--no-verify] BASELINE CANDIDATE");
        }
    }
    if (argc - at != 2 || threads == 0 || threads > MOST_THREADS) {
        fail("usage: readlimit [--threads N] [--direct] [--no-verify] BASELINE CANDIDATE");
    }
    double start = now_s();
    struct side a = open_side(argv[at]), b = open_side(argv[at + 1]);
    plan(&limit, &a, &b);
    if (limit.direct) {
        gcmp_dir_use_direct(a.checkpoint->catalogue.dir);
        gcmp_dir_use_direct(b.checkpoint->catalogue.dir);
    }
    double opened = now_s();
    double seconds = time_reading(&limit, threads);
    compare_checksums(&limit);
    printf("%llu bytes in %.4f s, %.2f GB/s, %u thread%s; opening took %.4f s\n",
           (unsigned long long)limit.bytes, seconds, (double)limit.bytes / seconds * 1e-9, threads,
           threads == 1 ? "" : "s", opened - start);
    gradcmp_checkpoint_free(a.checkpoint);
    gradcmp_checkpoint_free(b.checkpoint);
    free(a.taken);
    free(b.taken);
    free(limit.extents);
    free(limit.pieces);
    return 0;
}
