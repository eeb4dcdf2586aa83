/* Two sides, item by item: what belongs together, what is left out, and how each pair came out. */
#ifndef GCMP_BITS_MATCH_H
#define GCMP_BITS_MATCH_H

#include "bits/difference.h"
#include "bits/side.h"

/* How two items differ. */
enum gcmp_bits_how {
    GCMP_BITS_SAME = 0,
    GCMP_BITS_BY_VALUE,
    GCMP_BITS_BY_TYPE,
    GCMP_BITS_BY_SHAPE,
    GCMP_BITS_MISSING_IN_A,
    GCMP_BITS_MISSING_IN_B,
    GCMP_BITS_BY_COPY_A, /* copies of a tensor within one side are not the same */
    GCMP_BITS_BY_COPY_B,
    GCMP_BITS_LEFT_OUT,           /* no meaning across layouts */
    GCMP_BITS_LOST_BY_RANKS_OF_A, /* some of its ranks lack what every rank has to have */
    GCMP_BITS_LOST_BY_RANKS_OF_B
};

/* Elements [begin, end) of a flat buffer. */
struct gcmp_bits_span {
    uint64_t begin, end;
};

/* Where parameters lie in a flat buffer; what lies between them is not judged. */
struct gcmp_bits_owned {
    const struct gcmp_bits_span *spans; /* sorted, apart */
    size_t count;
    struct gcmp_bits_difference *gaps; /* between them */
};

/* Two items that belong together, or one alone. */
struct gcmp_bits_entry {
    const char *path;
    const struct gcmp_bits_item *a, *b;      /* NULL: that side lacks it */
    struct gcmp_bits_difference *difference; /* of elements; NULL: there are none */
    const struct gcmp_bits_owned *owned;     /* NULL: all elements count */
    uint64_t elems;     /* elements compared, of tensors: common rows may be fewer than all */
    uint8_t group, how; /* enum gcmp_bits_group, enum gcmp_bits_how */
};

struct gcmp_bits_options {
    const char *const *ignores;
    size_t ignore_count;
    bool no_default_ignores;
};

/* One pair of checkpoints. */
struct gcmp_bits_match {
    struct gcmp_arena *arena;
    struct gcmp_bits_side *a, *b;
    const struct gcmp_bits_options *options;
    bool layouts_differ;
    bool formats_differ; /* objects are kept in other places, so only parameters can be missed */
    const char *format;  /* of both sides, where only the names of their layouts differ; or NULL */
    const char *layout_names[2]; /* of a and b; or NULL */
    unsigned marks[2];           /* of objects: GCMP_BITS_EXTRA_STATES and the like */
    uint32_t left_out[2]; /* groups, as bits, of what a side alone has and need not be judged */
    const char **states;  /* compared in unsharded form, in the arena */
    size_t state_count;
    struct gcmp_bits_items
        reduced[2]; /* of a and b, where layouts differ: what is common to ranks */
    struct gcmp_bits_items ranked[2]; /* and what ranks have each for themselves */
    struct gcmp_bits_entry *entries;
    size_t count, capacity;
    const char **ignored; /* paths that differ and may */
    size_t ignored_count, ignored_capacity;
    struct gcmp_bits_told {
        const char *counted, *left_out; /* paths, by whether the verdict counts them */
    } told[2];                          /* the part that a side lacks and that was told last */
    const char *why_whole; /* why all elements of flat buffers, or of some, count; or NULL */
    uint64_t vocab;        /* words, as far as either side tells; 0: neither does */
    const char *odd_rows;  /* the first path of which one side has further rows that are not zero */
    uint64_t odd_row;      /* the first of these rows */
    size_t odd_count;      /* such paths */
};

/* Find what belongs together; values and arrays in memory are compared at once, tensors become
 * entries with a zeroed difference for the engine to fill. match->arena, a, b and options are set;
 * gcmp_bits_match_free in any case. Errors: of unsharding, where layouts differ; IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_match(struct gcmp_bits_match *match,
                                                     struct gradcmp_error *error);
void gcmp_bits_match_free(struct gcmp_bits_match *match);

/* True where an item may differ. */
bool gcmp_bits_is_ignored(const struct gcmp_bits_options *options,
                          const struct gcmp_bits_item *item);

/* --- parts --- */

/* True for a setting that counts ranks and that both sides have, with other values or fingerprints.
 */
bool gcmp_bits_settings_differ(const struct gcmp_bits_items *a, const struct gcmp_bits_items *b);
/* Tell whether two checkpoints were written by different layouts of ranks. */
void gcmp_bits_compare_layouts(struct gcmp_bits_match *match);
/* Note the formats and the names of the layouts of both sides; NULL: no name. */
void gcmp_bits_name_layouts(struct gcmp_bits_match *match, const char *const formats[2],
                            const char *const names[2]);

/* --- ranks (ranks.c) --- */

/* Items of one path, beside each other in a sorted list. */
struct gcmp_bits_run {
    const struct gcmp_bits_item *list;
    size_t count;
};

/* The items that have the path of the one at `first`. */
struct gcmp_bits_run gcmp_bits_run_at(const struct gcmp_bits_items *items, size_t first);
/* The items of a path; a count of 0: there are none. */
struct gcmp_bits_run gcmp_bits_find_run(const struct gcmp_bits_items *items, const char *path);
/* True where all others of a run are the same as an item, which may be its first, and in memory. */
bool gcmp_bits_is_alike(const struct gcmp_bits_run *run, const struct gcmp_bits_item *item);
/* The first of a run that is neither the same as an item of the other side, nor, of
 * hyperparameters, as that of another group in its list; NULL: none. */
const struct gcmp_bits_item *gcmp_bits_unlike(const struct gcmp_bits_items *items,
                                              const struct gcmp_bits_item *item,
                                              const struct gcmp_bits_run *run);

/* Split a side's items into what all ranks have alike and what they have each for themselves. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_reduce(struct gcmp_bits_match *match, size_t side,
                                                      struct gradcmp_error *error);

/* Mark which ranks have each item (its path has none): `all` are those of the ranks, sorted, and
 * `ranked` the same without ranks in their paths. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_mark_ranks(struct gcmp_arena *arena,
                                                          const struct gcmp_bits_items *all,
                                                          const struct gcmp_bits_items *ranked,
                                                          struct gcmp_bits_items *items,
                                                          struct gradcmp_error *error);

/* Go through the lists of both sides: pairs, and what one of them lacks. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_merge_lists(struct gcmp_bits_match *match,
                                                           struct gradcmp_error *error);

/* Go through what ranks have each for themselves, where layouts differ: named once a path. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_leave_out(struct gcmp_bits_match *match,
                                                         struct gradcmp_error *error);

/* Add an entry; its path lives as long as the match. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_add_entry(struct gcmp_bits_match *match,
                                                         const struct gcmp_bits_entry *entry,
                                                         struct gradcmp_error *error);

/* Note a path that may differ and that is not judged; it is copied. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_bits_add_ignored(struct gcmp_bits_match *match, const char *path, struct gradcmp_error *error);

/* Compare two items of one path: adds an entry. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_pair(struct gcmp_bits_match *match,
                                                    const struct gcmp_bits_item *a,
                                                    const struct gcmp_bits_item *b,
                                                    struct gradcmp_error *error);
/* An item that the other side (0: a lacks it) lacks. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_lone(struct gcmp_bits_match *match,
                                                    const struct gcmp_bits_item *item,
                                                    size_t lacking, struct gradcmp_error *error);

/* Pair the parameters of both sides in their unsharded form, state by state: those that are not
 * stored alike. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_pair_models(struct gcmp_bits_match *match,
                                                           struct gradcmp_error *error);
/* True where an item's state is compared in unsharded form. */
bool gcmp_bits_by_model(const struct gcmp_bits_match *match, const struct gcmp_bits_item *item);

/* --- flat buffers (owned.c) --- */

/* Index of the first span that ends behind an element; count where there is none. */
size_t gcmp_bits_span_after(const struct gcmp_bits_owned *owned, uint64_t elem);

/* Find where parameters lie in flat buffers that are compared as they are stored. What cannot be
 * proved is no error: then all elements count, and match->why_whole says why. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_find_owned(struct gcmp_bits_match *match,
                                                          struct gradcmp_error *error);

#endif
