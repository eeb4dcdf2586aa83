/* Fits a rank's weights into one of its flat buffers.
 *
 * Megatron lays the parameters of a buffer out in reverse order of registration, each at the next
 * multiple of 64 elements of its bucket (before 2024-03: without gaps), and closes a bucket behind
 * the parameter with which it has reached its size, and around a shared embedding
 * (megatron/core/distributed/param_and_grad_buffer.py). distrib_optim.pt holds the buckets one
 * behind the other, without what pads their ends. So where one bucket ends is seen only in the sum,
 * or where the weights themselves are views of one record: that record is such a buffer, padding
 * included. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "unshard/local_buffers.h"

enum { ALIGN_ELEMS = 64 };

/* One way to lay a buffer out. */
struct rule {
    uint64_t align;
    uint64_t bucket_elems; /* 0: buckets end only around a shared embedding */
    bool splits_shared;
};

static uint64_t align_up(uint64_t elems, uint64_t align) {
    return (elems + align - 1) / align * align;
}

/* Lay out by a rule in one part. Returns the end, or UINT64_MAX where it is beyond `limit`. */
static uint64_t lay_out(const struct gcmp_flat_buffer *buffer, struct rule rule, uint64_t limit,
                        uint64_t *starts) {
    uint64_t at = 0, bucket = 0;
    for (size_t i = buffer->weight_count; i-- > 0;) {
        const struct gcmp_flat_weight *weight = &buffer->weights[i];
        bool is_apart = rule.splits_shared && weight->is_shared;
        starts[i] = bucket + align_up(at - bucket, rule.align);
        bucket = is_apart ? starts[i] : bucket;
        if (starts[i] > limit || weight->elems > limit - starts[i]) {
            return UINT64_MAX;
        }
        at = starts[i] + weight->elems;
        if (is_apart || (rule.bucket_elems != 0 && at - bucket >= rule.bucket_elems)) {
            bucket = at;
        }
    }
    return at;
}

/* True for the elements of a weight one behind the other in its source. */
static bool is_dense(const struct gradcmp_stored *stored) {
    int64_t step = 1;
    for (unsigned d = stored->ndim; d-- > 0;) {
        if (stored->shape[d] > 1 && stored->pieces[0].stride != NULL &&
            stored->pieces[0].stride[d] != step) {
            return false;
        }
        step *= stored->shape[d] > 0 ? (int64_t)stored->shape[d] : 1;
    }
    return true;
}

static int64_t offset_of(const struct gcmp_flat_weight *weight) {
    const struct gradcmp_piece *piece = weight->stored->pieces;
    return piece->stride == NULL ? 0 : piece->offset_elems;
}

/* Take the layout over from the weights, where they are views of one record. A wider gap than
 * alignment makes is the end of a bucket. Returns the end, or UINT64_MAX. */
static uint64_t copy_views(const struct gcmp_flat_buffer *buffer, uint64_t limit,
                           uint64_t *starts) {
    uint64_t at = 0, bucket = 0;
    int64_t view_bucket = 0, view_end = 0;
    for (size_t i = buffer->weight_count; i-- > 0;) {
        const struct gcmp_flat_weight *weight = &buffer->weights[i];
        int64_t view = offset_of(weight);
        bool is_first = i + 1 == buffer->weight_count;
        if (weight->stored->pieces[0].source != buffer->weights[0].stored->pieces[0].source ||
            !is_dense(weight->stored) || view < view_end) {
            return UINT64_MAX;
        }
        uint64_t next = align_up((uint64_t)(view_end - view_bucket), ALIGN_ELEMS);
        if (is_first || next != (uint64_t)(view - view_bucket)) {
            bucket = at;
            view_bucket = view;
        }
        starts[i] = bucket + (uint64_t)(view - view_bucket);
        if (starts[i] > limit || weight->elems > limit - starts[i] ||
            weight->elems > (uint64_t)(INT64_MAX - view)) {
            return UINT64_MAX;
        }
        at = starts[i] + weight->elems;
        view_end = view + (int64_t)weight->elems;
    }
    return at;
}

/* Lay out in parts of known sizes; false where they do not fill them. */
static bool fill_parts(struct gcmp_flat_buffer *buffer, uint64_t align) {
    uint64_t at = 0;
    size_t part = 0;
    for (size_t i = buffer->weight_count; i-- > 0;) {
        struct gcmp_flat_weight *weight = &buffer->weights[i];
        uint64_t size = buffer->parts[part]->shape[0], start = align_up(at, align);
        if (start > size || weight->elems > size - start) {
            if (at != size && start != size) {
                return false;
            }
            if (++part == buffer->part_count || weight->elems > buffer->parts[part]->shape[0]) {
                return false;
            }
            start = 0;
        }
        weight->start = start;
        weight->part = part;
        at = start + weight->elems;
    }
    return part + 1 == buffer->part_count && at == buffer->parts[part]->shape[0];
}

static enum gradcmp_status refuse(const struct gcmp_flat_buffer *buffer, const char *why,
                                  struct gradcmp_error *error) {
    uint64_t elems = 0, weights = 0;
    for (size_t i = 0; i < buffer->part_count; i++) {
        elems += buffer->parts[i]->shape[0];
    }
    for (size_t i = 0; i < buffer->weight_count; i++) {
        weights += buffer->weights[i].elems;
    }
    GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
              "%s: %" PRIu64 " elements; its %zu weights have %" PRIu64
              ", and %s; save with --ckpt-format torch_dist --dist-ckpt-optim-fully-reshardable",
              buffer->parts[0]->key, elems, buffer->weight_count, weights, why);
}

static const char NO_RULE[] = "no rule of alignment and buckets makes them as long";
static const char TWO_RULES[] = "several rules of alignment and buckets make them as long";

static enum gradcmp_status fit_parts(struct gcmp_flat_buffer *buffer, struct gradcmp_error *error) {
    /* The denser layout fills the parts as well only where the other one has no gaps. */
    return fill_parts(buffer, ALIGN_ELEMS) || fill_parts(buffer, 1)
               ? GRADCMP_OK
               : refuse(buffer, NO_RULE, error);
}

/* Try each rule; all that reach the end must agree. */
static enum gradcmp_status try_rules(const struct gcmp_flat_buffer *buffer, uint64_t *starts,
                                     uint64_t *tried, struct gradcmp_error *error) {
    uint64_t size = buffer->parts[0]->shape[0];
    size_t bytes = buffer->weight_count * sizeof *starts;
    bool is_found = false;
    for (unsigned i = 0; i < 8; i++) {
        struct rule rule = {(i & 1) == 0 ? ALIGN_ELEMS : 1, (i & 2) == 0 ? 0 : buffer->bucket_elems,
                            (i & 4) != 0};
        if (lay_out(buffer, rule, size, tried) != size) {
            continue;
        }
        if (is_found && memcmp(starts, tried, bytes) != 0) {
            return refuse(buffer, TWO_RULES, error);
        }
        memcpy(starts, tried, bytes);
        is_found = true;
    }
    return is_found ? GRADCMP_OK : refuse(buffer, NO_RULE, error);
}

static enum gradcmp_status fit_one(struct gcmp_flat_buffer *buffer, struct gradcmp_error *error) {
    uint64_t size = buffer->parts[0]->shape[0];
    uint64_t *starts = calloc(2 * buffer->weight_count + 1, sizeof *starts);
    if (starts == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    if (copy_views(buffer, size, starts) != size) {
        status = try_rules(buffer, starts, starts + buffer->weight_count, error);
    }
    for (size_t i = 0; i < buffer->weight_count && status == GRADCMP_OK; i++) {
        buffer->weights[i].start = starts[i];
        buffer->weights[i].part = 0;
    }
    free(starts);
    return status;
}

enum gradcmp_status gcmp_flat_buffer_fit(struct gcmp_flat_buffer *buffer,
                                         struct gradcmp_error *error) {
    if (buffer->weight_count == 0) {
        return refuse(buffer, "there is nothing to fill it", error);
    }
    return buffer->part_count == 1 ? fit_one(buffer, error) : fit_parts(buffer, error);
}
