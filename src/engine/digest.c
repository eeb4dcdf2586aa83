/* Digests. */
#include "engine/digest.h"

#include <string.h>
#include <xxhash.h>

void gcmp_digest_begin(struct gcmp_digest *digest) {
    XXH3_state_t *state = XXH3_createState();
    if (state != NULL) {
        XXH3_128bits_reset(state);
    }
    digest->state = state;
}

void gcmp_digest_bytes(struct gcmp_digest *digest, const void *bytes, size_t count) {
    if (digest->state != NULL && count > 0) {
        XXH3_128bits_update(digest->state, bytes, count);
    }
}

void gcmp_digest_number(struct gcmp_digest *digest, uint64_t number) {
    gcmp_digest_bytes(digest, &number, sizeof number);
}

void gcmp_digest_text(struct gcmp_digest *digest, const char *text) {
    gcmp_digest_number(digest, text != NULL ? strlen(text) : UINT64_MAX);
    gcmp_digest_bytes(digest, text, text != NULL ? strlen(text) : 0);
}

enum gradcmp_status gcmp_digest_end(struct gcmp_digest *digest, uint64_t out[2],
                                    struct gradcmp_error *error) {
    if (digest->state == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(digest->state);
    out[0] = hash.low64;
    out[1] = hash.high64;
    XXH3_freeState(digest->state);
    digest->state = NULL;
    return GRADCMP_OK;
}

/* --- jobs --- */

static void add_parameter(struct gcmp_digest *digest, const struct gradcmp_parameter *parameter) {
    size_t axes = parameter->ndim;
    gcmp_digest_text(digest, parameter->name);
    gcmp_digest_number(digest, parameter->elem_count);
    gcmp_digest_number(digest, axes);
    gcmp_digest_number(digest, parameter->dtype);
    gcmp_digest_number(digest, parameter->copy_count);
    gcmp_digest_number(digest, parameter->slab_count);
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        gcmp_digest_number(digest, slab->source);
        gcmp_digest_number(digest, slab->copy);
        gcmp_digest_number(digest, (uint64_t)slab->offset_elems);
        gcmp_digest_bytes(digest, slab->start, axes * sizeof *slab->start);
        gcmp_digest_bytes(digest, slab->extent, axes * sizeof *slab->extent);
        gcmp_digest_bytes(digest, slab->stride, axes * sizeof *slab->stride);
    }
}

static void add_side(struct gcmp_digest *digest, const struct gcmp_side *side) {
    const struct gradcmp_former *former = side->parameter->former;
    gcmp_digest_number(digest, side->first_elem);
    gcmp_digest_number(digest, side->copy);
    gcmp_digest_number(digest, side->owner);
    add_parameter(digest, side->parameter);
    gcmp_digest_bytes(digest, &side->divisor, sizeof side->divisor);
    gcmp_digest_number(digest, (uint64_t)side->rounding);
    gcmp_digest_number(digest, former != NULL);
    if (former != NULL) {
        gcmp_digest_bytes(digest, &former->beta, sizeof former->beta);
        add_parameter(digest, former->parameter);
    }
}

enum gradcmp_status gcmp_digest_jobs(const struct gcmp_job *jobs, size_t job_count, int verify,
                                     uint64_t out[2], struct gradcmp_error *error) {
    struct gcmp_digest digest;
    gcmp_digest_begin(&digest);
    gcmp_digest_number(&digest, job_count);
    gcmp_digest_number(&digest, (uint64_t)verify);
    for (size_t j = 0; j < job_count; j++) {
        gcmp_digest_number(&digest, jobs[j].elems);
        gcmp_digest_number(&digest, jobs[j].b_count);
        gcmp_digest_number(&digest, (uint64_t)jobs[j].scale_log2);
        add_side(&digest, &jobs[j].a);
        for (size_t i = 0; i < jobs[j].b_count; i++) {
            add_side(&digest, &jobs[j].b[i]);
        }
    }
    return gcmp_digest_end(&digest, out, error);
}
