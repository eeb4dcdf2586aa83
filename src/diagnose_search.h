/* The search for the cause of one failing parameter: what is read for it, and what that shows. */
#ifndef GCMP_DIAGNOSE_SEARCH_H
#define GCMP_DIAGNOSE_SEARCH_H

#include "bounds/cause_moves.h"
#include "bounds/cause_sample.h"
#include "diagnose_probes.h"

enum { GCMP_SEARCH_AXES = 3 };

/* What the search needs to know of the pair. */
struct gcmp_search_scene {
    struct gcmp_comparison *comparison;
    size_t pair;                /* index */
    struct gcmp_arena *scratch; /* of the batch */
    struct gcmp_probes *probes; /* of the step */
};

/* A hypothesis under way. */
struct gcmp_guess {
    enum gcmp_cause_kind kind;
    const struct gradcmp_parameter *a; /* the baseline, made to look like the candidate */
    const char *text;
    ptrdiff_t probe; /* of the sample, then of the whole */
    bool confirmed;  /* probe is of the whole */
    struct gcmp_guess *next;
};

/* A sample along one axis: values as they were read, and turned so that rows go along the axis. */
struct gcmp_search_sample {
    struct gcmp_lines lines; /* a and b NULL: none */
    double *read_a, *read_b;
    const uint64_t *shape; /* of the sample */
};

struct gcmp_search {
    size_t index;                          /* of the parameter report */
    const struct gradcmp_parameter *a, *b; /* what of them is compared */
    double common;                         /* the pair's common factor, or 1 */
    struct gcmp_search_sample samples[GCMP_SEARCH_AXES];
    struct gcmp_guess *guesses, **last;
    ptrdiff_t first_shard, first_copy; /* probes; GCMP_NO_PROBE: none */
    size_t shard_count, copy_count;
};

/* Plan the first step: samples. Fails as the engine and unshard/reslab do. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_sample(struct gcmp_search *search,
                                                        const struct gcmp_search_scene *scene,
                                                        struct gradcmp_error *error);
/* Conclude from `sampled`, and plan the second step: whole parameters. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_confirm(struct gcmp_search *search,
                                                         const struct gcmp_search_scene *scene,
                                                         const struct gcmp_probes *sampled,
                                                         struct gradcmp_error *error);
/* Claim what the second step proved: fills the report's causes and shards, in the report's arena.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_claim(struct gcmp_search *search,
                                                       const struct gcmp_search_scene *scene,
                                                       struct gradcmp_error *error);

/* Return the number of `name`'s first part between dots that is a number, with where it stands;
 * false where there is none. */
bool gcmp_name_number(const char *name, size_t *start, size_t *length);

#endif
