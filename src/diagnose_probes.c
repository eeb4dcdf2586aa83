/* Probes for the engine. */
#include "diagnose_probes.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/grow.h"
#include "kernels/convert.h"
#include "unshard/reslab.h"

/* As the engine's own, of which half goes to kept pages. */
enum { DEFAULT_BUFFER_BYTES = 48 * 1024 * 1024, LEAST_BUFFER_BYTES = 384 * 1024 };

static enum gradcmp_status add(struct gcmp_probes *probes, struct gcmp_probe probe,
                               struct gradcmp_error *error) {
    if (!gcmp_grow(&probes->items, probes->count, &probes->capacity, sizeof *probes->items)) {
        GCMP_FAIL_MEMORY(error);
    }
    probes->items[probes->count++] = probe;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_probes_compare(struct gcmp_probes *probes, struct gcmp_side a,
                                        struct gcmp_side b, int scale_log2, ptrdiff_t *index,
                                        struct gradcmp_error *error) {
    *index = (ptrdiff_t)probes->count;
    struct gcmp_probe probe = {.a = a, .b = b, .has_b = true, .scale_log2 = scale_log2};
    return add(probes, probe, error);
}

enum gradcmp_status gcmp_probes_read(struct gcmp_probes *probes, struct gcmp_side a, int scale_log2,
                                     double *values, struct gradcmp_error *error) {
    struct gcmp_probe probe = {
        .a = a, .scale_log2 = scale_log2, .values = values, .values_left = a.parameter->elem_count};
    return add(probes, probe, error);
}

/* A job's sink: elements in order, in the stored type, or float64 where the engine computes them.
 */
static int take_values(void *user, const void *elems, size_t bytes) {
    struct gcmp_probe *probe = user;
    bool is_computed = probe->scale_log2 != 0 || probe->a.parameter->former != NULL;
    enum gradcmp_dtype dtype =
        is_computed ? GRADCMP_DTYPE_FLOAT64 : (enum gradcmp_dtype)probe->a.parameter->dtype;
    size_t count = bytes / gcmp_dtype_bytes(dtype);
    if (count > probe->values_left) {
        return 1;
    }
    gcmp_scale_float64(elems, dtype, count, 0, probe->values);
    probe->values += count;
    probe->values_left -= count;
    return 0;
}

static struct gcmp_job job_of(struct gcmp_probe *probe, struct gradcmp_tally *tally) {
    struct gcmp_job job = {.a = probe->a,
                           .b = &probe->b,
                           .b_count = probe->has_b ? 1 : 0,
                           .elems = probe->a.parameter->elem_count,
                           .scale_log2 = probe->scale_log2,
                           .tallies = tally};
    if (probe->values != NULL) {
        job.sink = take_values;
        job.sink_user = probe;
    }
    return job;
}

enum gradcmp_status gcmp_probes_spot(const struct gradcmp_parameter *from, uint64_t elems,
                                     struct gcmp_arena *arena, struct gradcmp_parameter **out,
                                     struct gradcmp_error *error) {
    uint64_t start[GRADCMP_MAX_NDIM] = {0}, extent[GRADCMP_MAX_NDIM] = {0};
    uint64_t inner = from->elem_count;
    for (unsigned d = 0; d < from->ndim; d++) {
        uint64_t length = from->shape[d];
        extent[d] = length;
        inner = length == 0 ? 0 : inner / length; /* elements of one index */
        if (d < 2 && inner > 0) {
            uint64_t wanted = elems / inner == 0 ? 1 : elems / inner;
            extent[d] = wanted < length ? wanted : length;
            start[d] = (length - extent[d]) / 2;
        }
    }
    return gcmp_reslab_box(from, start, extent, arena, out, error);
}

enum gradcmp_status gcmp_probes_head(const struct gradcmp_parameter *from, uint64_t rows,
                                     struct gcmp_arena *arena, struct gradcmp_parameter **out,
                                     struct gradcmp_error *error) {
    uint64_t start[GRADCMP_MAX_NDIM] = {0}, extent[GRADCMP_MAX_NDIM] = {0};
    memcpy(extent, from->shape, from->ndim * sizeof *extent);
    extent[0] = rows;
    return gcmp_reslab_box(from, start, extent, arena, out, error);
}

uint64_t gcmp_probes_kept_bytes(const struct gradcmp_options *options) {
    uint64_t total = options->buffer_bytes == 0 ? DEFAULT_BUFFER_BYTES : options->buffer_bytes;
    return total < 2 * LEAST_BUFFER_BYTES ? 0 : total / 2;
}

/* What the kept pages leave to the engine's own buffers. */
static uint64_t engine_bytes(const struct gradcmp_options *options) {
    uint64_t total = options->buffer_bytes == 0 ? DEFAULT_BUFFER_BYTES : options->buffer_bytes;
    return total - gcmp_probes_kept_bytes(options);
}

enum gradcmp_status gcmp_probes_engine(struct gcmp_job *jobs, size_t count,
                                       struct gcmp_comparison *comparison,
                                       struct gradcmp_error *error) {
    const struct gradcmp_options *options = comparison->options;
    struct gradcmp_report *report = comparison->report;
    /* What is read here was read and checked before. */
    struct gcmp_engine_options engine = {.threads = options->threads,
                                         .buffer_bytes = engine_bytes(options),
                                         .pages = comparison->pages,
                                         .verify = -1,
                                         .progress = options->progress,
                                         .progress_user = options->progress_user};
    GCMP_TRY(
        gcmp_engine_run(jobs, count, &engine, comparison->errors, report->pair_count + 1, error));
    for (size_t p = 0; p < report->pair_count; p++) {
        if (comparison->errors[p + 1].code != GRADCMP_OK && gcmp_pair_is_open(&report->pairs[p])) {
            gcmp_pair_fail(&report->pairs[p], &comparison->errors[p + 1]);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status run_jobs(struct gcmp_probes *probes, struct gcmp_job *jobs,
                                    struct gcmp_comparison *comparison,
                                    struct gradcmp_error *error) {
    for (size_t i = 0; i < probes->count; i++) {
        jobs[i] = job_of(&probes->items[i], &probes->tallies[i]);
    }
    return gcmp_probes_engine(jobs, probes->count, comparison, error);
}

enum gradcmp_status gcmp_probes_run(struct gcmp_probes *probes, struct gcmp_comparison *comparison,
                                    struct gradcmp_error *error) {
    if (probes->count == 0) {
        return GRADCMP_OK;
    }
    struct gcmp_job *jobs = calloc(probes->count, sizeof *jobs);
    free(probes->tallies);
    probes->tallies = calloc(probes->count, sizeof *probes->tallies);
    enum gradcmp_status status = GRADCMP_OK;
    if (jobs == NULL || probes->tallies == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else {
        status = run_jobs(probes, jobs, comparison, error);
    }
    free(jobs);
    return status;
}

void gcmp_probes_free(struct gcmp_probes *probes) {
    free(probes->items);
    free(probes->tallies);
    *probes = (struct gcmp_probes){0};
}
