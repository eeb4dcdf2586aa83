/* Rates of the engine on files in the page cache, beside a limit: a program that reads the same
 * extents in the same sizes on the same number of threads, takes the same checksums, and throws the
 * bytes away.
 *
 *   bench_engine FOLDER MIB      makes FOLDER/a and FOLDER/b of MIB each, if they are not there */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/dtype.h"
#include "bench_tools.h"
#include "engine/crc32.h"
#include "engine/engine.h"

enum { COLUMNS = 8192, UNIT_BYTES = 256 * 1024, MOST_RANKS = 64, MOST_THREADS = 64 };

static void fail(const char *what) {
    fprintf(stderr, "bench_engine: %s\n", what);
    exit(1);
}

/* A file of numbers that look like gradients, whatever type they are read as. */
static void make_file(const char *path, uint64_t bytes, uint64_t seed) {
    static uint32_t chunk[1 << 18];
    struct stat info;
    if (stat(path, &info) == 0 && (uint64_t)info.st_size == bytes) {
        return;
    }
    FILE *file = fopen(path, "wb");
    uint64_t random = seed;
    for (size_t i = 0; i < sizeof chunk / sizeof *chunk; i++) {
        chunk[i] = (uint32_t)(next_random(&random) & 0x87ff87ff) | 0x38003800;
    }
    for (uint64_t done = 0; file != NULL && done < bytes; done += sizeof chunk) {
        fwrite(chunk, 1, sizeof chunk, file);
    }
    if (file == NULL || fclose(file) != 0) {
        fail(path);
    }
}

/* A matrix in one file, dealt over ranks by rows or by columns; each rank's shard is a source. */
struct matrix {
    struct gradcmp_catalogue catalogue;
    struct gradcmp_parameter parameter;
    struct gradcmp_source sources[MOST_RANKS];
    struct gradcmp_slab slabs[MOST_RANKS];
    uint64_t shape[2], start[MOST_RANKS][2], extent[MOST_RANKS][2];
    int64_t stride[MOST_RANKS][2];
    char path[1024];
    unsigned ranks, elem_bytes;
    bool by_rows;
};

static void make_matrix(struct matrix *m, const char *folder, const char *name, uint64_t rows,
                        enum gradcmp_dtype dtype) {
    struct gradcmp_error error;
    uint32_t file;
    m->elem_bytes = gcmp_dtype_bytes(dtype);
    snprintf(m->path, sizeof m->path, "%s/%s", folder, name);
    if (gcmp_dir_open(folder, &m->catalogue.dir, &error) != GRADCMP_OK ||
        gcmp_dir_add(m->catalogue.dir, name, strlen(name), &file, &error) != GRADCMP_OK) {
        fail(error.message);
    }
    m->shape[0] = rows;
    m->shape[1] = COLUMNS;
    m->catalogue.sources = m->sources;
    m->catalogue.source_count = m->ranks;
    m->parameter = (struct gradcmp_parameter){.name = "m",
                                              .ndim = 2,
                                              .dtype = (uint8_t)dtype,
                                              .shape = m->shape,
                                              .elem_count = rows * COLUMNS,
                                              .slabs = m->slabs,
                                              .slab_count = m->ranks,
                                              .copy_count = 1};
    for (unsigned r = 0; r < m->ranks; r++) {
        uint64_t bytes = rows * COLUMNS / m->ranks * m->elem_bytes;
        m->extent[r][0] = m->by_rows ? rows / m->ranks : rows;
        m->extent[r][1] = m->by_rows ? COLUMNS : COLUMNS / m->ranks;
        m->start[r][0] = m->by_rows ? r * m->extent[r][0] : 0;
        m->start[r][1] = m->by_rows ? 0 : r * m->extent[r][1];
        m->stride[r][0] = (int64_t)m->extent[r][1];
        m->stride[r][1] = 1;
        m->sources[r] = (struct gradcmp_source){.offset_bytes = r * bytes, .length_bytes = bytes};
        m->slabs[r] = (struct gradcmp_slab){
            .start = m->start[r], .extent = m->extent[r], .stride = m->stride[r], .source = r};
    }
}

static void set_checksums(struct matrix *m) {
    unsigned char *buffer = malloc(UNIT_BYTES);
    int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    for (unsigned r = 0; r < m->ranks; r++) {
        struct gradcmp_source *source = &m->sources[r];
        uint32_t crc32 = 0;
        for (uint64_t at = 0; at < source->length_bytes;) {
            uint64_t left = source->length_bytes - at;
            size_t count = left < UNIT_BYTES ? (size_t)left : UNIT_BYTES;
            ssize_t got = pread(fd, buffer, count, (off_t)(source->offset_bytes + at));
            if (got <= 0) {
                fail("read");
            }
            crc32 = gcmp_crc32(crc32, buffer, (size_t)got);
            at += (uint64_t)got;
        }
        source->crc32 = crc32;
    }
    close(fd);
    free(buffer);
}

/* --- the limit --- */

struct limit {
    const struct matrix *sides[2];
    bool check;
    atomic_uint_fast64_t next_row;
    uint64_t rows_per_unit;
};

/* Read rows [row, row + rows) of a matrix: one piece of each shard that has some. */
static uint32_t read_rows(const struct matrix *m, int fd, uint64_t row, uint64_t rows, bool check,
                          unsigned char *buffer) {
    uint32_t sum = 0;
    for (unsigned r = 0; r < m->ranks; r++) {
        uint64_t first = row > m->start[r][0] ? row : m->start[r][0];
        uint64_t end = m->start[r][0] + m->extent[r][0];
        end = row + rows < end ? row + rows : end;
        if (first >= end) {
            continue;
        }
        uint64_t row_bytes = m->extent[r][1] * m->elem_bytes;
        uint64_t at = m->sources[r].offset_bytes + (first - m->start[r][0]) * row_bytes;
        size_t count = (size_t)((end - first) * row_bytes);
        if (pread(fd, buffer, count, (off_t)at) != (ssize_t)count) {
            fail("read");
        }
        sum ^= check ? gcmp_crc32(0, buffer, count) : 0;
    }
    return sum;
}

static void *read_all(void *user) {
    struct limit *limit = user;
    int fds[2];
    unsigned char *buffer = aligned_alloc(64, 4 * UNIT_BYTES);
    uint64_t rows = limit->sides[0]->shape[0];
    for (int side = 0; side < 2; side++) {
        fds[side] = open(limit->sides[side]->path, O_RDONLY | O_CLOEXEC);
    }
    for (;;) {
        uint64_t row = atomic_fetch_add(&limit->next_row, limit->rows_per_unit);
        if (row >= rows) {
            break;
        }
        uint64_t count = rows - row < limit->rows_per_unit ? rows - row : limit->rows_per_unit;
        for (int side = 0; side < 2; side++) {
            read_rows(limit->sides[side], fds[side], row, count, limit->check, buffer);
        }
    }
    close(fds[0]);
    close(fds[1]);
    free(buffer);
    return NULL;
}

static double time_limit(const struct matrix *a, const struct matrix *b, bool check,
                         unsigned threads) {
    unsigned widest = a->elem_bytes > b->elem_bytes ? a->elem_bytes : b->elem_bytes;
    struct limit limit = {
        .sides = {a, b}, .check = check, .rows_per_unit = UNIT_BYTES / (COLUMNS * widest)};
    pthread_t others[MOST_THREADS];
    double start = now_s();
    for (unsigned i = 1; i < threads; i++) {
        pthread_create(&others[i], NULL, read_all, &limit);
    }
    read_all(&limit);
    for (unsigned i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
    }
    return now_s() - start;
}

/* --- the engine --- */

static double time_engine(const struct matrix *a, const struct matrix *b, bool check,
                          unsigned threads) {
    struct gradcmp_error errors[2], error;
    struct gradcmp_tally tally;
    struct gcmp_side side_b = {.catalogue = &b->catalogue, .parameter = &b->parameter, .owner = 1};
    struct gcmp_job job = {.a = {.catalogue = &a->catalogue, .parameter = &a->parameter},
                           .b = &side_b,
                           .b_count = 1,
                           .elems = a->parameter.elem_count,
                           .tallies = &tally};
    struct gcmp_engine_options options = {.threads = threads, .verify = check ? 0 : -1};
    double start = now_s();
    if (gcmp_engine_run(&job, 1, &options, errors, 2, &error) != GRADCMP_OK) {
        fail(error.message);
    }
    if (errors[1].code != GRADCMP_OK) {
        fail(errors[1].message);
    }
    return now_s() - start;
}

static void compare(const struct matrix *a, const struct matrix *b, bool check, unsigned threads) {
    double engine[ROUNDS], limit[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        limit[round] = time_limit(a, b, check, threads);
        engine[round] = time_engine(a, b, check, threads);
    }
    double bytes = (double)a->parameter.elem_count * (a->elem_bytes + b->elem_bytes);
    double least_limit = smallest(limit, ROUNDS), least_engine = smallest(engine, ROUNDS);
    double limit_s = median(limit, ROUNDS), engine_s = median(engine, ROUNDS);
    printf("%u thread%s  %-8s / %-8s  1 / %2u by %-7s  %-9s  limit %6.2f  engine %6.2f GB/s  "
           "ratio %.2f (best of each %.2f)\n",
           threads, threads == 1 ? " " : "s",
           gradcmp_dtype_name((enum gradcmp_dtype)a->parameter.dtype),
           gradcmp_dtype_name((enum gradcmp_dtype)b->parameter.dtype), b->ranks,
           b->by_rows ? "rows" : "columns", check ? "checked" : "unchecked", bytes / limit_s * 1e-9,
           bytes / engine_s * 1e-9, limit_s / engine_s, least_limit / least_engine);
    fflush(stdout);
}

static void compare_all(const char *folder, uint64_t mib, enum gradcmp_dtype dtype_a,
                        enum gradcmp_dtype dtype_b) {
    static const unsigned ranks[] = {2, 8};
    unsigned most = gcmp_engine_default_threads();
    most = most < MOST_THREADS ? most : MOST_THREADS;
    uint64_t rows = mib * (1 << 20) / (COLUMNS * sizeof(float)) / 64 * 64;
    for (unsigned k = 0; k < 4; k++) {
        static struct matrix a, b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        a.ranks = 1;
        a.by_rows = true;
        b.ranks = ranks[k / 2];
        b.by_rows = k % 2 == 0;
        make_matrix(&a, folder, "a", rows, dtype_a);
        make_matrix(&b, folder, "b", rows, dtype_b);
        set_checksums(&a);
        set_checksums(&b);
        for (unsigned threads = 1; threads <= most; threads *= 2) {
            compare(&a, &b, true, threads);
            compare(&a, &b, false, threads);
        }
        gcmp_dir_close(a.catalogue.dir);
        gcmp_dir_close(b.catalogue.dir);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fail("usage: bench_engine FOLDER MIB");
    }
    char path[1024];
    uint64_t mib = strtoull(argv[2], NULL, 10);
    for (int side = 0; side < 2; side++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], side == 0 ? "a" : "b");
        make_file(path, mib << 20, (uint64_t)side);
    }
    compare_all(argv[1], mib, GRADCMP_DTYPE_FLOAT32, GRADCMP_DTYPE_FLOAT32);
    compare_all(argv[1], mib, GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FLOAT32);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory %ld MiB\n", usage.ru_maxrss / 1024);
    return 0;
}
