/* Counts the ways in which some of a row of weights fill buckets.
 *
 * A place is the start of a piece of a bucket, or its end; a parameter ends at one. ways[i][p] is
 * in how many ways some of the first i items end at place p: 0, 1, or 2 for more. Where all end in
 * one way, going back from the end finds it. */
#include "unshard/bucket_frozen.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of `ways`: of some thousand weights. */
static const size_t MAX_WAYS = (size_t)8 << 20;

struct search {
    const struct gcmp_buffer *buffer;
    uint64_t align;
    const struct gcmp_frozen_item *items;
    size_t place_count;
    size_t *bucket_of; /* bucket of each place */
    size_t *first;     /* place of each bucket's first piece */
    uint8_t *ways;
};

static uint64_t size_of(const struct search *search, size_t bucket) {
    return search->buffer->buckets[bucket].stored->shape[0];
}

static uint64_t elem_of(const struct search *search, size_t place) {
    size_t bucket = search->bucket_of[place], piece = place - search->first[bucket];
    const struct gcmp_bucket *at = &search->buffer->buckets[bucket];
    return piece == at->piece_count ? size_of(search, bucket) : at->pieces[piece]->start[0];
}

static uint64_t aligned(const struct search *search, size_t place) {
    uint64_t elem = elem_of(search, place);
    return (elem + search->align - 1) / search->align * search->align;
}

/* True where nothing but padding is left of the place's bucket. */
static bool is_full(const struct search *search, size_t place) {
    uint64_t size = size_of(search, search->bucket_of[place]);
    return elem_of(search, place) == size || aligned(search, place) == size;
}

/* The place at which an item ends that starts at an element; SIZE_MAX where it cannot lie there. */
static size_t end_of(const struct search *search, size_t bucket, uint64_t start, uint64_t elems) {
    const struct gcmp_bucket *at = &search->buffer->buckets[bucket];
    uint64_t size = size_of(search, bucket);
    if (start > size || elems > size - start || !gcmp_bucket_has_edge(at, start) ||
        !gcmp_bucket_has_edge(at, start + elems)) {
        return SIZE_MAX;
    }
    return search->first[bucket] + gcmp_bucket_find(at, start + elems);
}

/* The place at which an item ends behind a place; SIZE_MAX where it does not fit. */
static size_t put(const struct search *search, size_t place, uint64_t elems) {
    size_t bucket = search->bucket_of[place];
    uint64_t start = aligned(search, place), size = size_of(search, bucket);
    if (start <= size && elems <= size - start) {
        return end_of(search, bucket, start, elems);
    }
    bool has_next = bucket + 1 < search->buffer->count && is_full(search, place);
    return has_next ? end_of(search, bucket + 1, 0, elems) : SIZE_MAX;
}

static uint8_t *row_of(const struct search *search, size_t item) {
    return search->ways + item * search->place_count;
}

/* One more item, held or not. */
static void add_item(const struct search *search, size_t item) {
    const uint8_t *before = row_of(search, item);
    uint8_t *after = row_of(search, item + 1);
    memcpy(after, before, search->place_count);
    for (size_t place = 0; place < search->place_count; place++) {
        size_t end = before[place] == 0 ? SIZE_MAX : put(search, place, search->items[item].elems);
        if (end != SIZE_MAX) {
            unsigned sum = (unsigned)after[end] + before[place];
            after[end] = sum > 2 ? 2 : (uint8_t)sum;
        }
    }
}

/* In how many ways all end; *last is where. */
static unsigned count_ends(const struct search *search, size_t count, size_t *last) {
    const uint8_t *row = row_of(search, count);
    unsigned ways = 0;
    for (size_t place = search->first[search->buffer->count - 1]; place < search->place_count;
         place++) {
        if (row[place] > 0 && is_full(search, place)) {
            ways += row[place];
            *last = place;
        }
    }
    return ways;
}

/* Go the one way back. */
static void go_back(const struct search *search, size_t count, size_t place,
                    struct gcmp_frozen_item *items) {
    for (size_t i = count; i-- > 0;) {
        const uint8_t *before = row_of(search, i);
        items[i].is_held = before[place] == 0;
        for (size_t from = 0; items[i].is_held && from < search->place_count; from++) {
            if (before[from] > 0 && put(search, from, items[i].elems) == place) {
                place = from;
                break;
            }
        }
    }
}

static bool make_places(struct search *search) {
    size_t buckets = search->buffer->count;
    search->first = calloc(buckets, sizeof *search->first);
    for (size_t i = 0; i < buckets && search->first != NULL; i++) {
        search->first[i] = search->place_count;
        search->place_count += search->buffer->buckets[i].piece_count + 1;
    }
    search->bucket_of = calloc(search->place_count + 1, sizeof *search->bucket_of);
    if (search->first == NULL || search->bucket_of == NULL) {
        return false;
    }
    for (size_t i = 0, place = 0; i < buckets; i++) {
        for (size_t j = 0; j <= search->buffer->buckets[i].piece_count; j++) {
            search->bucket_of[place++] = i;
        }
    }
    return true;
}

enum gcmp_frozen gcmp_frozen_choose(const struct gcmp_buffer *buffer, uint64_t align,
                                    struct gcmp_frozen_item *items, size_t count) {
    struct search search = {.buffer = buffer, .align = align, .items = items};
    enum gcmp_frozen found = GCMP_FROZEN_NO_MEMORY;
    size_t last = 0;
    if (!make_places(&search)) {
        goto out;
    }
    if (count + 1 > MAX_WAYS / search.place_count) {
        found = GCMP_FROZEN_SEVERAL;
        goto out;
    }
    search.ways = calloc(count + 1, search.place_count);
    if (search.ways == NULL) {
        goto out;
    }
    search.ways[0] = 1;
    for (size_t i = 0; i < count; i++) {
        add_item(&search, i);
    }
    unsigned ways = count_ends(&search, count, &last);
    found = ways == 0 ? GCMP_FROZEN_NONE : ways == 1 ? GCMP_FROZEN_ONE : GCMP_FROZEN_SEVERAL;
    if (found == GCMP_FROZEN_ONE) {
        go_back(&search, count, last, items);
    }
out:
    free(search.first);
    free(search.bucket_of);
    free(search.ways);
    return found;
}
