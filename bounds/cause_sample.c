/* Order in a sample of lines. */
#include "bounds/cause_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer values of noise may be alike by chance; more are not sorted. */
enum { LEAST_REORDERED = 64, MOST_REORDERED = 1 << 17 };
#define MOST_OTHER 1e-5

/* Sums over the values of two sides, and over their differences. */
struct likeness {
    double d2, a2, b2;
};

static void add_values(struct likeness *sums, const double *a, const double *b, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        double d = b[i] - a[i];
        sums->d2 += d * d;
        sums->a2 += a[i] * a[i];
        sums->b2 += b[i] * b[i];
    }
}

static double relative(const struct likeness *sums) {
    if (sums->d2 == 0.0) {
        return 0.0;
    }
    return sums->a2 > 0.0 ? sqrt(sums->d2 / sums->a2) : (double)INFINITY;
}

/* Block i of a against block j of b. */
static double compare_blocks(const struct gcmp_lines *lines, size_t count, size_t i, size_t j) {
    uint64_t values = lines->rows / count * lines->columns;
    struct likeness sums = {0};
    add_values(&sums, lines->a + i * values, lines->b + j * values, values);
    return relative(&sums);
}

static size_t nearest_block(const struct gcmp_lines *lines, size_t count, size_t j) {
    double least = compare_blocks(lines, count, j, j);
    size_t nearest = j;
    for (size_t i = 0; least > lines->limit && i < count; i++) {
        double off = compare_blocks(lines, count, i, j);
        if (off < least) {
            least = off;
            nearest = i;
        }
    }
    return least <= lines->limit ? nearest : count;
}

enum gcmp_map_kind gcmp_sample_map(const struct gcmp_lines *lines, size_t count, size_t *map) {
    bool taken[GCMP_MAX_BLOCKS] = {false}, repeated = false, moved = false;
    if (count < 2 || count > GCMP_MAX_BLOCKS || lines->rows % count != 0) {
        return GCMP_MAP_NO_FIT;
    }
    for (size_t j = 0; j < count; j++) {
        map[j] = nearest_block(lines, count, j);
        if (map[j] == count) {
            return GCMP_MAP_NO_FIT;
        }
        repeated = repeated || taken[map[j]];
        moved = moved || map[j] != j;
        taken[map[j]] = true;
    }
    if (!moved) {
        return GCMP_MAP_IDENTITY;
    }
    return repeated ? GCMP_MAP_REPEATED : GCMP_MAP_PERMUTED;
}

bool gcmp_map_is_cyclic(const size_t *map, size_t count) {
    for (size_t j = 0; j < count; j++) {
        if (map[j] != (map[0] + j) % count) {
            return false;
        }
    }
    return true;
}

/* Rows [row, row + window) of block `block` of b, around its end, against the rows of a that a
 * roll by `shift` would bring there. */
static double compare_rolled(const struct gcmp_lines *lines, uint64_t block_rows, uint64_t block,
                             struct likeness *sums, uint64_t row, uint64_t window, uint64_t shift) {
    const double *a = lines->a + block * block_rows * lines->columns;
    const double *b = lines->b + block * block_rows * lines->columns;
    for (uint64_t w = 0; w < window; w++) {
        uint64_t to = (row + w) % block_rows, from = (to + block_rows - shift) % block_rows;
        add_values(sums, a + from * lines->columns, b + to * lines->columns, lines->columns);
    }
    return relative(sums);
}

/* The row of the first block of b with the largest values: one that tells most. */
static uint64_t loudest_row(const struct gcmp_lines *lines, uint64_t block_rows) {
    uint64_t loudest = 0;
    double most = 0.0;
    for (uint64_t row = 0; row < block_rows; row++) {
        struct likeness sums = {0};
        const double *values = lines->b + row * lines->columns;
        add_values(&sums, values, values, lines->columns);
        if (sums.b2 > most) {
            most = sums.b2;
            loudest = row;
        }
    }
    return loudest;
}

uint64_t gcmp_sample_roll(const struct gcmp_lines *lines, size_t count) {
    enum { WINDOW_VALUES = 64, MOST_WORK = 1 << 26 };
    if (count == 0 || lines->rows % count != 0 || lines->columns == 0) {
        return 0;
    }
    uint64_t block_rows = lines->rows / count;
    uint64_t window = (WINDOW_VALUES + lines->columns - 1) / lines->columns;
    window = window < block_rows ? window : block_rows;
    if (block_rows < 2 || block_rows > MOST_WORK / (window * lines->columns)) {
        return 0;
    }
    uint64_t row = loudest_row(lines, block_rows), best = 0;
    double least = INFINITY;
    for (uint64_t shift = 0; shift < block_rows; shift++) {
        struct likeness sums = {0};
        double off = compare_rolled(lines, block_rows, 0, &sums, row, window, shift);
        if (off < least) {
            least = off;
            best = shift;
        }
    }
    struct likeness all = {0};
    double off = INFINITY;
    for (uint64_t block = 0; best > 0 && block < count; block++) {
        off = compare_rolled(lines, block_rows, block, &all, 0, block_rows, best);
    }
    return off <= lines->limit ? best : 0;
}

/* The window of b, of those at multiples of its length, with the largest values. */
static uint64_t loudest_window(const double *b, uint64_t count, uint64_t window) {
    uint64_t loudest = 0;
    double most = 0.0;
    for (uint64_t at = 0; at + window <= count; at += window) {
        struct likeness sums = {0};
        add_values(&sums, b + at, b + at, window);
        if (sums.b2 > most) {
            most = sums.b2;
            loudest = at;
        }
    }
    return loudest;
}

int64_t gcmp_sample_shift(const double *a, const double *b, uint64_t count, double limit) {
    enum { WINDOW = 128 };
    if (count < 4 * WINDOW) {
        return 0;
    }
    uint64_t at = loudest_window(b, count, WINDOW), best = at;
    double least = INFINITY;
    for (uint64_t from = 0; from + WINDOW <= count; from++) {
        struct likeness sums = {0};
        add_values(&sums, a + from, b + at, WINDOW);
        double off = relative(&sums);
        if (off < least) {
            least = off;
            best = from;
        }
    }
    return least <= limit ? (int64_t)best - (int64_t)at : 0;
}

static struct likeness compare_row(const struct gcmp_lines *lines, uint64_t row) {
    struct likeness sums = {0};
    uint64_t first = row * lines->columns;
    add_values(&sums, lines->a + first, lines->b + first, lines->columns);
    return sums;
}

double gcmp_sample_row_sq(const struct gcmp_lines *lines, uint64_t row) {
    return compare_row(lines, row).d2;
}

uint64_t gcmp_sample_tail(const struct gcmp_lines *lines) {
    uint64_t row = lines->rows;
    while (row > 0) {
        struct likeness sums = compare_row(lines, row - 1);
        if (!(relative(&sums) > lines->limit)) {
            break;
        }
        row--;
    }
    return row;
}

static int compare_values(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

bool gcmp_sample_is_reordered(const struct gcmp_lines *lines, double *room) {
    uint64_t count = lines->rows * lines->columns, distinct = 1;
    double *a = room, *b = room + count;
    struct likeness sums = {0};
    if (count < LEAST_REORDERED || count > MOST_REORDERED) {
        return false;
    }
    memcpy(a, lines->a, count * sizeof *a);
    memcpy(b, lines->b, count * sizeof *b);
    qsort(a, count, sizeof *a, compare_values);
    qsort(b, count, sizeof *b, compare_values);
    for (uint64_t i = 1; i < count; i++) {
        distinct += a[i] > a[i - 1];
    }
    add_values(&sums, a, b, count);
    return 2 * distinct >= count && relative(&sums) <= MOST_OTHER;
}
