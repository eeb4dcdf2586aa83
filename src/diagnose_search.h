/* The search for the cause of one failing parameter: what is read for it, and what that shows. */
#ifndef GCMP_DIAGNOSE_SEARCH_H
#define GCMP_DIAGNOSE_SEARCH_H

#include <math.h>

#include "bounds/cause_moves.h"
#include "bounds/cause_sample.h"
#include "bounds/places.h"
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
    const struct gradcmp_parameter *a;   /* the baseline, made to look like the candidate */
    const struct gradcmp_parameter *b;   /* what it is to look like; NULL: all of the candidate */
    enum gradcmp_dtype round_a, round_b; /* type that a side is rounded to; NONE: as it is */
    struct gcmp_guess *rest;             /* a further part of the same hypothesis, or NULL */
    const char *text;
    uint64_t spot_elems; /* of a sample of elements that lie together; 0: of lines all over */
    ptrdiff_t probe;     /* of the sample, then of the whole */
    bool confirmed;      /* probe is of the whole */
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
    bool of_noise;                         /* only an order is looked for, and of all values */
    double common; /* what the values as stored have in common: the pair's factors, or 1 */
    struct gcmp_search_sample samples[GCMP_SEARCH_AXES];
    double *flat_a, *flat_b; /* the first rows of two-axis parameters as they lie; NULL: none */
    uint64_t flat_count;
    struct gcmp_guess *guesses, **last;
    struct gcmp_places places; /* where the difference lies; boxes: slabs of the candidate, then of
                                  the baseline */
    size_t shards_b;           /* boxes of the candidate */
    struct gradcmp_tally tallies[GCMP_PLACES_COPIES]; /* the baseline with each copy */
};

/* Take up a parameter. Fails as unshard/reslab does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_begin(struct gcmp_search *search,
                                                       const struct gcmp_search_scene *scene,
                                                       struct gradcmp_error *error);
/* Plan the first step: samples. Fails as the engine and unshard/reslab do. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_sample(struct gcmp_search *search,
                                                        const struct gcmp_search_scene *scene,
                                                        struct gradcmp_error *error);
/* Conclude from `sampled`, and plan the second step: whole parameters. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_confirm(struct gcmp_search *search,
                                                         const struct gcmp_search_scene *scene,
                                                         const struct gcmp_probes *sampled,
                                                         struct gradcmp_error *error);
/* Claim what the second step proved: fills the report's causes, in the report's arena. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_claim(struct gcmp_search *search,
                                                       const struct gcmp_search_scene *scene,
                                                       struct gradcmp_error *error);

/* Read parameters once to see where their differences lie: fills the places of the searches.
 * Fails as the engine does. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_places(struct gcmp_search *searches, size_t count,
                                                        const struct gcmp_search_scene *scene,
                                                        struct gradcmp_error *error);
/* Fill the report's shards, ranks and heat map, and claim what they show. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_tell_places(struct gcmp_search *search,
                                                             const struct gcmp_search_scene *scene,
                                                             struct gradcmp_error *error);

/* Add a cause to the report of a search, at its place in the order of preference. Errors: MEMORY,
 * also where its text is NULL. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_add_cause(struct gcmp_search *search,
                                                           const struct gcmp_search_scene *scene,
                                                           struct gradcmp_cause cause,
                                                           struct gradcmp_error *error);

/* What there was to explain: without a factor common to all, and not less than a whole gradient
 * where the shapes differ. */
static inline double gcmp_search_before(const struct gradcmp_parameter_report *report) {
    double rel = isnan(report->rel_common) ? report->rel : report->rel_common;
    return report->shapes_agree ? rel : 1.0;
}

/* Add a guess; its sample is compared where `spot` says so, else it is taken as found. Errors:
 * MEMORY, also where the text is NULL. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_search_guess(struct gcmp_search *search,
                                                       const struct gcmp_search_scene *scene,
                                                       struct gcmp_guess guess, bool spot,
                                                       struct gradcmp_error *error);

static inline struct gradcmp_pair_report *gcmp_search_pair(const struct gcmp_search_scene *scene) {
    return &scene->comparison->report->pairs[scene->pair];
}

static inline struct gradcmp_parameter_report *
gcmp_search_report(const struct gcmp_search *search, const struct gcmp_search_scene *scene) {
    return &gcmp_search_pair(scene)->parameters[search->index];
}

static inline const struct gradcmp_catalogue *
gcmp_search_catalogue_a(const struct gcmp_search_scene *scene) {
    return &scene->comparison->baseline.checkpoint->catalogue;
}

static inline const struct gradcmp_catalogue *
gcmp_search_catalogue_b(const struct gcmp_search_scene *scene) {
    return &scene->comparison->candidates[scene->pair].checkpoint->catalogue;
}

static inline struct gcmp_side gcmp_search_side_a(const struct gcmp_search_scene *scene,
                                                  const struct gradcmp_parameter *parameter) {
    struct gcmp_side side = {.catalogue = gcmp_search_catalogue_a(scene), .parameter = parameter};
    return side;
}

static inline struct gcmp_side gcmp_search_side_b(const struct gcmp_search_scene *scene,
                                                  const struct gradcmp_parameter *parameter,
                                                  uint32_t copy) {
    struct gcmp_side side = {.catalogue = gcmp_search_catalogue_b(scene),
                             .parameter = parameter,
                             .copy = copy,
                             .owner = (uint32_t)scene->pair + 1};
    return side;
}

static inline struct gcmp_axis gcmp_search_axis(const struct gradcmp_parameter *parameter,
                                                unsigned axis) {
    return (struct gcmp_axis){parameter->shape, parameter->ndim, axis};
}

#endif
