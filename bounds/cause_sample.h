/* Looks for order in a sample of lines: blocks in other places, rows rolled. What it finds is only
 * a hypothesis, to be confirmed on the whole parameter. */
#ifndef GCMP_BOUNDS_CAUSE_SAMPLE_H
#define GCMP_BOUNDS_CAUSE_SAMPLE_H

#include "bounds/cause.h"

enum { GCMP_MAX_BLOCKS = 64 };

/* Lines of both sides along one axis: value [row][column] is at row * columns + column. */
struct gcmp_lines {
    const double *a, *b;
    uint64_t rows; /* the whole extent of the axis */
    uint64_t columns;
    double limit; /* relative difference up to which two blocks count as the same */
};

/* What a map of blocks amounts to. */
enum gcmp_map_kind { GCMP_MAP_NO_FIT, GCMP_MAP_IDENTITY, GCMP_MAP_PERMUTED, GCMP_MAP_REPEATED };

/* Find for each of `count` equal blocks (at most GCMP_MAX_BLOCKS, dividing the rows) of b the block
 * of a that it equals: map[j]. A block that equals its own counterpart is never looked for
 * elsewhere. NO_FIT where some block equals none. */
enum gcmp_map_kind gcmp_sample_map(const struct gcmp_lines *lines, size_t count, size_t *map);

/* True where a map of `count` blocks moves all of them around by one distance. */
bool gcmp_map_is_cyclic(const size_t *map, size_t count);

/* Find the shift by which each of `count` equal blocks of b is a, rolled: row i of a block of b is
 * row i - shift of a's. Returns 0 where there is none. */
uint64_t gcmp_sample_roll(const struct gcmp_lines *lines, size_t count);

/* Find by how many elements a run of values is shifted: b[i] is a[i + offset]. Looks at one window
 * of b only. Returns 0 where there is none. */
int64_t gcmp_sample_shift(const double *a, const double *b, uint64_t count, double limit);

/* The first of the last rows that all differ by more than the limit, where the one before them does
 * not; `rows` where the last row agrees, 0 where all differ. */
uint64_t gcmp_sample_tail(const struct gcmp_lines *lines);

/* True where b's values are those of a in another order: many of them, most unlike each other, and
 * none another. `room` holds twice as many values as a has. */
bool gcmp_sample_is_reordered(const struct gcmp_lines *lines, double *room);

/* Sum of the squares of the difference in row `row`. */
double gcmp_sample_row_sq(const struct gcmp_lines *lines, uint64_t row);

#endif
