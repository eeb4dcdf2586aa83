/* Where in failing parameters the difference lies: one reading of both sides, from which the
 * shards, the ranks, the heat map and what copies add up to are taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "bounds/cause_shards.h"
#include "diagnose_search.h"
#include "kernels/convert.h"

enum {
    SHARDS_LISTED = 64, /* of one side; ranks are told however many there are */
    CHUNK_ELEMS = 4096
};

/* --- the reading --- */

/* Receives the sides of one parameter. */
struct taker {
    struct gcmp_places *places;
    const struct gcmp_job *job;
    const unsigned char *elems_a;       /* of the run at hand */
    double *copies[GCMP_PLACES_COPIES]; /* the run's values, where copies are multiplied */
    size_t capacity;                    /* of each, elements */
    bool no_memory;
};

static enum gradcmp_dtype dtype_of(const struct gcmp_job *job, size_t side) {
    const struct gcmp_side *at = side == 0 ? &job->a : &job->b[side - 1];
    bool is_computed = job->scale_log2 != 0 || at->parameter->former != NULL;
    return is_computed ? GRADCMP_DTYPE_FLOAT64 : (enum gradcmp_dtype)at->parameter->dtype;
}

static void convert(const struct gcmp_job *job, size_t side, const unsigned char *elems,
                    size_t from, size_t count, double *out) {
    enum gradcmp_dtype dtype = dtype_of(job, side);
    gcmp_scale_float64(elems + from * gcmp_dtype_bytes(dtype), dtype, count, 0, out);
}

/* Room for the values of all copies of a run. */
static bool make_room(struct taker *taker, size_t count) {
    if (count <= taker->capacity) {
        return true;
    }
    for (size_t i = 0; i < taker->places->copies; i++) {
        double *grown = reallocarray(taker->copies[i], count, sizeof *grown);
        if (grown == NULL) {
            taker->no_memory = true;
            return false;
        }
        taker->copies[i] = grown;
    }
    taker->capacity = count;
    return true;
}

/* Keep the copy at hand, and multiply it with those before it. */
static bool take_copy(struct taker *taker, size_t copy, const unsigned char *elems, size_t count) {
    if (!make_room(taker, count)) {
        return false;
    }
    convert(taker->job, copy + 1, elems, 0, count, taker->copies[copy]);
    for (size_t i = 0; i < copy; i++) {
        gcmp_places_multiply(taker->places, i, copy, taker->copies[i], taker->copies[copy], count);
    }
    return true;
}

static int take_side(void *user, size_t side, uint64_t first, const void *elems, size_t count) {
    struct taker *taker = user;
    if (side == 0) {
        taker->elems_a = elems;
        return 0;
    }
    double a[CHUNK_ELEMS], b[CHUNK_ELEMS];
    for (size_t done = 0; done < count;) {
        size_t some = count - done < CHUNK_ELEMS ? count - done : CHUNK_ELEMS;
        convert(taker->job, 0, taker->elems_a, done, some, a);
        convert(taker->job, side, elems, done, some, b);
        gcmp_places_add(taker->places, side, first + done, a, b, some);
        done += some;
    }
    return taker->places->copies > 1 && !take_copy(taker, side - 1, elems, count);
}

/* Boxes of the slabs of one side: the candidate's each against its own copy, the baseline's first
 * copy against the candidate's. */
static void add_boxes(struct gcmp_search *search, const struct gradcmp_parameter *parameter,
                      bool in_a) {
    struct gcmp_places *places = &search->places;
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        bool taken = in_a ? slab->copy == 0 : slab->copy < places->copies;
        if (taken) {
            places->boxes[places->box_count++] = (struct gcmp_place_box){
                .start = slab->start, .extent = slab->extent, .side = in_a ? 1 : slab->copy + 1};
        }
    }
}

static bool has_boxes(const struct gradcmp_parameter *parameter) {
    return parameter->slab_count >= 2 && parameter->slab_count <= GCMP_PLACES_BOXES &&
           parameter->ndim > 0;
}

/* The output layer that the candidate alone stores although its embedding serves as one: a further
 * copy of the embedding, which the stages of a pipeline have to add up. NULL: none. */
static const struct gradcmp_parameter *tied_output(const struct gcmp_search *search,
                                                   const struct gcmp_search_scene *scene) {
    const struct gcmp_pairing *pairing = &scene->comparison->pairings[scene->pair];
    bool is_embedding = pairing->tied.output != NULL && pairing->tied.in_b &&
                        pairing->tied.embedding == pairing->sides[search->index].b;
    return is_embedding ? pairing->tied.output : NULL;
}

/* Copies of the candidate, a tied output layer as the last. */
static size_t count_copies(const struct gcmp_search *search,
                           const struct gcmp_search_scene *scene) {
    size_t own = search->b->copy_count == 0 ? 1 : search->b->copy_count;
    return own + (tied_output(search, scene) != NULL);
}

static enum gradcmp_status prepare(struct gcmp_search *search,
                                   const struct gcmp_search_scene *scene,
                                   struct gradcmp_error *error) {
    const struct gradcmp_parameter *a = search->a, *b = search->b;
    size_t all = count_copies(search, scene);
    size_t copies = all < GCMP_PLACES_COPIES ? all : GCMP_PLACES_COPIES;
    struct gcmp_places *places = &search->places;
    GCMP_TRY(gcmp_places_make(places, b->ndim, b->shape, copies, scene->scratch, error));
    places->factor = search->common;
    places->boxes =
        gcmp_arena_alloc(scene->scratch, a->slab_count + b->slab_count + 1, sizeof *places->boxes);
    if (places->boxes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (has_boxes(b)) {
        add_boxes(search, b, false);
    }
    search->shards_b = places->box_count;
    if (has_boxes(a)) {
        add_boxes(search, a, true);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status make_job(struct gcmp_search *search,
                                    const struct gcmp_search_scene *scene, struct taker *taker,
                                    struct gcmp_job *job, struct gradcmp_error *error) {
    size_t copies = search->places.copies;
    struct gcmp_side *sides = gcmp_arena_alloc(scene->scratch, copies, sizeof *sides);
    if (sides == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < copies; i++) {
        sides[i] = i > 0 && i >= search->b->copy_count
                       ? gcmp_search_side_b(scene, tied_output(search, scene), 0)
                       : gcmp_search_side_b(scene, search->b, (uint32_t)i);
    }
    *job = (struct gcmp_job){.a = gcmp_search_side_a(scene, search->a),
                             .b = sides,
                             .b_count = copies,
                             .elems = search->a->elem_count,
                             .scale_log2 = (int)gcmp_search_report(search, scene)->scale_a_log2,
                             .tallies = search->tallies,
                             .sides = take_side,
                             .sink_user = taker};
    *taker = (struct taker){.places = &search->places, .job = job};
    return GRADCMP_OK;
}

static enum gradcmp_status run(struct gcmp_job *jobs, const struct taker *takers, size_t count,
                               struct gcmp_comparison *comparison, struct gradcmp_error *error) {
    enum gradcmp_status status = gcmp_probes_engine(jobs, count, comparison, error);
    for (size_t i = 0; status != GRADCMP_OK && i < count; i++) {
        if (takers[i].no_memory) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return status;
}

enum gradcmp_status gcmp_search_places(struct gcmp_search *searches, size_t count,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    struct gcmp_job *jobs = calloc(count + 1, sizeof *jobs);
    struct taker *takers = calloc(count + 1, sizeof *takers);
    enum gradcmp_status status = GRADCMP_OK;
    size_t job_count = 0;
    if (jobs == NULL || takers == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    }
    for (size_t i = 0; status == GRADCMP_OK && i < count; i++) {
        if (gcmp_search_report(&searches[i], scene)->shapes_agree) {
            status = prepare(&searches[i], scene, error);
            if (status == GRADCMP_OK) {
                status = make_job(&searches[i], scene, &takers[job_count], &jobs[job_count], error);
                job_count++;
            }
        }
    }
    if (status == GRADCMP_OK && job_count > 0) {
        status = run(jobs, takers, job_count, scene->comparison, error);
    }
    for (size_t i = 0; takers != NULL && i < count; i++) {
        for (size_t c = 0; c < GCMP_PLACES_COPIES; c++) {
            free(takers[i].copies[c]);
        }
    }
    free(jobs);
    free(takers);
    return status;
}

/* --- the report --- */

static const struct gradcmp_slab *slab_of(const struct gcmp_search *search, size_t box) {
    const struct gradcmp_parameter *parameter = box < search->shards_b ? search->b : search->a;
    const struct gcmp_place_box *wanted = &search->places.boxes[box];
    for (size_t i = 0; i < parameter->slab_count; i++) {
        if (parameter->slabs[i].start == wanted->start &&
            (box >= search->shards_b || parameter->slabs[i].copy + 1u == wanted->side)) {
            return &parameter->slabs[i];
        }
    }
    return &parameter->slabs[0];
}

static const char *file_of(const struct gcmp_search *search, const struct gcmp_search_scene *scene,
                           size_t box) {
    const struct gradcmp_catalogue *catalogue =
        box < search->shards_b ? gcmp_search_catalogue_b(scene) : gcmp_search_catalogue_a(scene);
    uint32_t source = slab_of(search, box)->source;
    return gcmp_dir_file_name(catalogue->dir, catalogue->sources[source].file);
}

/* The shards of the report: those of a side that has at most SHARDS_LISTED. */
static enum gradcmp_status list_shards(const struct gcmp_search *search,
                                       const struct gcmp_search_scene *scene,
                                       struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    const struct gcmp_places *places = &search->places;
    struct gcmp_arena *arena = scene->comparison->report->arena;
    size_t ndim = places->ndim, count = places->box_count, shards_a = count - search->shards_b;
    struct gradcmp_shard *shards = gcmp_arena_alloc(arena, count + 1, sizeof *shards);
    uint64_t *dims = gcmp_arena_alloc(arena, 2 * ndim * count + 1, sizeof *dims);
    if (shards == NULL || dims == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t listed = 0;
    for (size_t i = 0; i < count; i++) {
        bool in_a = i >= search->shards_b;
        if ((in_a ? shards_a : search->shards_b) > SHARDS_LISTED) {
            continue;
        }
        uint64_t *start = dims + 2 * ndim * i, *extent = start + ndim;
        memcpy(start, places->boxes[i].start, ndim * sizeof *start);
        memcpy(extent, places->boxes[i].extent, ndim * sizeof *extent);
        shards[listed++] =
            (struct gradcmp_shard){file_of(search, scene, i),
                                   slab_of(search, i)->coords,
                                   start,
                                   extent,
                                   gcmp_cause_residual(&places->boxes[i].tally, search->common),
                                   in_a};
    }
    report->shards = shards;
    report->shard_count = listed;
    return GRADCMP_OK;
}

static int32_t rank_on(const struct gradcmp_coords *coords, size_t axis) {
    const int32_t ranks[] = {coords->tp, coords->pp, coords->ep, coords->dp, coords->etp};
    return ranks[axis];
}

static const char *const axis_names[] = {"tp", "pp", "ep", "dp", "etp"};
enum { RANK_AXES = sizeof axis_names / sizeof axis_names[0] };

/* Sums of the boxes from .. to whose writer has a rank on an axis. */
struct rank_sum {
    struct gradcmp_tally tally;
    size_t slabs;
};

static void add_sums(struct gradcmp_tally *total, const struct gradcmp_tally *part) {
    total->d2 += part->d2;
    total->ad += part->ad;
    total->a2 += part->a2;
    total->b2 += part->b2;
    total->max_d = fmax(total->max_d, part->max_d);
}

static struct rank_sum sum_rank(const struct gcmp_search *search, size_t from, size_t to,
                                size_t axis, int32_t rank) {
    struct rank_sum sum = {0};
    for (size_t i = from; i < to; i++) {
        const struct gradcmp_coords *coords = slab_of(search, i)->coords;
        if (coords != NULL && rank_on(coords, axis) == rank) {
            add_sums(&sum.tally, &search->places.boxes[i].tally);
            sum.slabs++;
        }
    }
    return sum;
}

/* The least rank on an axis that is larger than `above`; INT32_MAX: none. */
static int32_t next_rank(const struct gcmp_search *search, size_t from, size_t to, size_t axis,
                         int32_t above) {
    int32_t next = INT32_MAX;
    for (size_t i = from; i < to; i++) {
        const struct gradcmp_coords *coords = slab_of(search, i)->coords;
        if (coords != NULL && rank_on(coords, axis) > above && rank_on(coords, axis) < next) {
            next = rank_on(coords, axis);
        }
    }
    return next;
}

/* Ranks of one side, where there are several on an axis. */
static void list_ranks_of(const struct gcmp_search *search, size_t from, size_t to,
                          struct gradcmp_parameter_report *report) {
    for (size_t axis = 0; axis < RANK_AXES; axis++) {
        size_t first = report->rank_count;
        for (int32_t rank = next_rank(search, from, to, axis, -1); rank != INT32_MAX;
             rank = next_rank(search, from, to, axis, rank)) {
            struct rank_sum sum = sum_rank(search, from, to, axis, rank);
            report->ranks[report->rank_count++] = (struct gradcmp_rank_error){
                axis_names[axis], rank, from >= search->shards_b, sum.slabs,
                gcmp_cause_residual(&sum.tally, search->common)};
        }
        if (report->rank_count - first < 2) {
            report->rank_count = first;
        }
    }
}

static enum gradcmp_status list_ranks(const struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    size_t count = search->places.box_count, most = RANK_AXES * count;
    report->rank_count = 0;
    report->ranks =
        gcmp_arena_alloc(scene->comparison->report->arena, most + 1, sizeof *report->ranks);
    if (report->ranks == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    list_ranks_of(search, 0, search->shards_b, report);
    list_ranks_of(search, search->shards_b, count, report);
    return GRADCMP_OK;
}

/* --- claims --- */

static uint64_t writer_of(const struct gcmp_search *search, const struct gcmp_search_scene *scene,
                          size_t box) {
    const struct gradcmp_slab *slab = slab_of(search, box);
    const struct gradcmp_coords *at = slab->coords;
    const struct gradcmp_catalogue *catalogue =
        box < search->shards_b ? gcmp_search_catalogue_b(scene) : gcmp_search_catalogue_a(scene);
    if (at != NULL && at->tp >= 0) {
        return (uint64_t)1 << 63 | (uint64_t)(uint32_t)at->tp << 31 |
               (uint64_t)(uint32_t)(at->dp < 0 ? 0 : at->dp);
    }
    return catalogue->sources[slab->source].file;
}

static const char *describe_shard(const struct gcmp_search_scene *scene,
                                  const struct gcmp_search *search,
                                  const struct gcmp_shard_set *set, size_t from, uint64_t writer) {
    size_t parts = 0, first = 0;
    for (size_t i = set->count; i-- > 0;) {
        if (set->writers[i] == writer) {
            parts++;
            first = from + i;
        }
    }
    const struct gradcmp_coords *coords = slab_of(search, first)->coords;
    char rank[48] = "";
    if (coords != NULL && coords->tp >= 0) {
        snprintf(rank, sizeof rank, "tensor parallel rank %d, ", coords->tp);
    }
    return gcmp_arena_format(scene->comparison->report->arena,
                             "%zu of %zu parts%s differ%s and the others agree: %sfile %s", parts,
                             set->count,
                             from > 0 || search->shards_b == 0 ? " of the baseline" : "",
                             parts == 1 ? "s" : "", rank, file_of(search, scene, first));
}

/* Claim one writer of the boxes from .. to where it is to blame. */
static enum gradcmp_status claim_shards(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene, size_t from,
                                        size_t to, struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    size_t count = to - from;
    uint64_t *writers = gcmp_arena_alloc(scene->scratch, count, sizeof *writers);
    struct gradcmp_tally *tallies = gcmp_arena_alloc(scene->scratch, count, sizeof *tallies);
    if (writers == NULL || tallies == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        writers[i] = writer_of(search, scene, from + i);
        tallies[i] = search->places.boxes[from + i].tally;
    }
    struct gcmp_shard_set set = {
        tallies, writers, count, report->bound, gcmp_search_before(report), search->common};
    uint64_t writer;
    double residual;
    if (!gcmp_cause_one_shard(&set, &writer, &residual)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_ONE_SHARD), NAN, residual,
                                  describe_shard(scene, search, &set, from, writer)};
    return gcmp_search_add_cause(search, scene, cause, error);
}

/* Choose copies of which no two are the same; fill inner and with_a of those kept, and how far from
 * the baseline the nearest of them is; returns how many they are. */
static size_t distinct_copies(const struct gcmp_search *search, double *inner, double *with_a,
                              double *nearest) {
    const struct gcmp_places *places = &search->places;
    size_t count = places->copies, kept = 0, chosen[GCMP_PLACES_COPIES];
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t k = 0; k < kept && !seen; k++) {
            seen = !places->differ[chosen[k] * count + i];
        }
        if (!seen) {
            chosen[kept++] = i;
        }
    }
    *nearest = INFINITY;
    for (size_t i = 0; i < kept; i++) {
        const struct gradcmp_tally *tally = &search->tallies[chosen[i]];
        *nearest = fmin(*nearest, tally->a2 > 0.0 ? sqrt(tally->d2 / tally->a2) : (double)INFINITY);
        with_a[i] = tally->a2 + tally->ad;
        inner[i * kept + i] = tally->b2;
        for (size_t j = i + 1; j < kept; j++) {
            inner[i * kept + j] = places->products[chosen[i] * count + chosen[j]];
        }
    }
    return kept;
}

/* The mean of copies that are near the baseline is near it too, and explains nothing: it has to be
 * clearly nearer than each of them. */
static enum gradcmp_status claim_copies(struct gcmp_search *search,
                                        const struct gcmp_search_scene *scene,
                                        struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    double inner[GCMP_PLACES_COPIES * GCMP_PLACES_COPIES], with_a[GCMP_PLACES_COPIES];
    double nearest, before = 1.0;
    size_t kept = distinct_copies(search, inner, with_a, &nearest);
    struct gcmp_copy_sums sums = {inner, with_a, kept, search->tallies[0].a2};
    double residual = gcmp_cause_copy_sum(&sums, 1.0);
    bool is_mean = kept >= 2 && !gcmp_cause_holds(residual, report->bound, 1.0);
    if (is_mean) {
        residual = gcmp_cause_copy_sum(&sums, 1.0 / (double)kept);
        before = nearest;
    }
    bool usable = kept >= 2 && search->common == 1.0 && search->tallies[0].nonfinite_any == 0 &&
                  count_copies(search, scene) <= GCMP_PLACES_COPIES;
    if (!usable || !gcmp_cause_holds(residual, report->bound, before)) {
        return GRADCMP_OK;
    }
    struct gradcmp_cause cause = {gcmp_cause_name(GCMP_CAUSE_PARTIAL_SUM), NAN, residual, NULL};
    cause.text = gcmp_arena_format(
        scene->comparison->report->arena,
        is_mean ? "the candidate's %zu copies differ and their mean is the baseline"
                : "the candidate's %zu copies differ and add up to the baseline",
        kept);
    return gcmp_search_add_cause(search, scene, cause, error);
}

enum gradcmp_status gcmp_search_tell_places(struct gcmp_search *search,
                                            const struct gcmp_search_scene *scene,
                                            struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    size_t count = search->places.box_count;
    if (search->places.rows == 0) {
        return GRADCMP_OK;
    }
    GCMP_TRY(
        gcmp_places_heat(&search->places, scene->comparison->report->arena, &report->heat, error));
    GCMP_TRY(list_shards(search, scene, error));
    GCMP_TRY(list_ranks(search, scene, error));
    if (report->tally.nonfinite_any > 0 || report->verdict == GRADCMP_VERDICT_SCALE) {
        return GRADCMP_OK;
    }
    if (search->shards_b > 0) {
        GCMP_TRY(claim_shards(search, scene, 0, search->shards_b, error));
    }
    if (search->shards_b < count) {
        GCMP_TRY(claim_shards(search, scene, search->shards_b, count, error));
    }
    return search->places.copies > 1 ? claim_copies(search, scene, error) : GRADCMP_OK;
}
