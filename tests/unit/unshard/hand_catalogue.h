/* Catalogues made by hand for tests, with what their sources would hold kept in memory: a slab can
 * be read element by element. Every failure of memory fails the test. */
#ifndef GCMP_TEST_HAND_CATALOGUE_H
#define GCMP_TEST_HAND_CATALOGUE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/catalogue.h"
#include "gradcmp/sys/parameter.h"
#include "unshard/unshard.h"

struct hand {
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
    double **values; /* of each source, NULL where the test does not read it */
    size_t *value_counts;
};

/* Dimensions as a compound literal: DIMS(8, 32). NO_DIMS for a tensor without axes. */
#define DIMS(...)                                                                                  \
    (const uint64_t[]) {                                                                           \
        __VA_ARGS__                                                                                \
    }
#define NDIMS(...) (sizeof(DIMS(__VA_ARGS__)) / sizeof(uint64_t))

static inline void hand_init(struct hand *hand) {
    memset(hand, 0, sizeof *hand);
    hand->catalogue.arena = &hand->arena;
    hand->catalogue.iteration = -1;
}

static inline void hand_free(struct hand *hand) {
    for (size_t i = 0; i < hand->catalogue.source_count; i++) {
        free(hand->values[i]);
    }
    free(hand->values);
    free(hand->value_counts);
    gcmp_catalogue_free(&hand->catalogue);
    gcmp_arena_free(&hand->arena);
}

/* Append a stored float32 tensor without pieces; returns its index. */
static inline size_t hand_tensor(struct hand *hand, const char *state, const char *name,
                                 unsigned ndim, const uint64_t *shape) {
    struct gradcmp_stored *stored;
    char *key = gcmp_arena_format(&hand->arena, "%s.%s", state == NULL ? "object" : state, name);
    assert_non_null(key);
    assert_int_equal(
        gcmp_catalogue_add_stored(&hand->catalogue, key, ndim, shape, 0, &stored, NULL),
        GRADCMP_OK);
    stored->name = gcmp_arena_dup(&hand->arena, name);
    stored->state = state;
    stored->dtype = GRADCMP_DTYPE_FLOAT32;
    return hand->catalogue.stored_count - 1;
}

static inline struct gradcmp_stored *hand_stored(struct hand *hand, size_t index) {
    return &hand->catalogue.stored[index];
}

/* Append a source; takes `values` (malloced, or NULL). */
static inline uint32_t hand_source(struct hand *hand, double *values, size_t count) {
    uint64_t place = (uint64_t)hand->catalogue.source_count << 20; /* each is another one */
    struct gradcmp_source source = {.offset_bytes = place, .length_bytes = count * 4};
    uint32_t index;
    assert_int_equal(gcmp_catalogue_add_source(&hand->catalogue, &source, &index, NULL),
                     GRADCMP_OK);
    hand->values = realloc(hand->values, (index + 1) * sizeof *hand->values);
    hand->value_counts = realloc(hand->value_counts, (index + 1) * sizeof *hand->value_counts);
    assert_non_null(hand->values);
    assert_non_null(hand->value_counts);
    hand->values[index] = values;
    hand->value_counts[index] = count;
    return index;
}

/* Append a piece with that source to a tensor. */
static inline struct gradcmp_piece *hand_piece_of(struct hand *hand, size_t tensor,
                                                  const uint64_t *start, const uint64_t *extent,
                                                  uint32_t source) {
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    size_t count = stored->piece_count;
    struct gradcmp_piece *pieces =
        gcmp_arena_alloc(&hand->arena, count + 1, sizeof *stored->pieces);
    assert_non_null(pieces);
    if (count > 0) {
        memcpy(pieces, stored->pieces, count * sizeof *pieces);
    }
    pieces[count].start = gcmp_catalogue_dims(&hand->catalogue, stored->ndim, start);
    pieces[count].extent = gcmp_catalogue_dims(&hand->catalogue, stored->ndim, extent);
    pieces[count].source = source;
    stored->pieces = pieces;
    stored->piece_count = count + 1;
    return &pieces[count];
}

/* Append a piece whose values are of no interest; returns its source. */
static inline uint32_t hand_piece(struct hand *hand, size_t tensor, const uint64_t *start,
                                  const uint64_t *extent) {
    uint32_t source = hand_source(hand, NULL, 0);
    hand_piece_of(hand, tensor, start, extent, source);
    return source;
}

/* Append a tensor that is one piece. */
static inline size_t hand_whole(struct hand *hand, const char *state, const char *name,
                                unsigned ndim, const uint64_t *shape) {
    static const uint64_t origin[GRADCMP_MAX_NDIM];
    size_t tensor = hand_tensor(hand, state, name, ndim, shape);
    hand_piece(hand, tensor, origin, shape);
    return tensor;
}
#define HAND_WHOLE(hand, state, name, ...)                                                         \
    hand_whole(hand, state, name, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))
#define HAND_TENSOR(hand, state, name, ...)                                                        \
    hand_tensor(hand, state, name, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline void hand_model_shape(struct hand *hand, size_t tensor, unsigned ndim,
                                    const uint64_t *shape) {
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    stored->model_shape = gcmp_catalogue_dims(&hand->catalogue, ndim, shape);
    stored->model_ndim = (uint8_t)ndim;
}
#define HAND_MODEL_SHAPE(hand, tensor, ...)                                                        \
    hand_model_shape(hand, tensor, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

/* Unshard a state that must succeed. */
static inline struct gradcmp_model hand_unshard(struct hand *hand, const char *state) {
    struct gradcmp_model model;
    struct gradcmp_error error = {0};
    if (gcmp_unshard(&hand->catalogue, state, NULL, &model, &error) != GRADCMP_OK) {
        fail_msg("status %d: %s", (int)error.code, error.message);
    }
    return model;
}

/* Unshard a state that must fail so. */
static inline void hand_refuse(struct hand *hand, const char *state, enum gradcmp_status code,
                               const char *message) {
    struct gradcmp_model model;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_unshard(&hand->catalogue, state, NULL, &model, &error), code);
    assert_string_equal(error.message, message);
    assert_int_equal(error.code, code);
    assert_null(model.arena);
    assert_int_equal(model.count, 0);
}

/* Assert that a model's names are these, in order; the list ends with NULL. */
static inline void assert_names(const struct gradcmp_model *model, const char *const *names) {
    size_t count = 0;
    for (; names[count] != NULL; count++) {
        if (count >= model->count) {
            fail_msg("no parameter \"%s\": there are only %zu", names[count], model->count);
        }
        assert_string_equal(model->parameters[count].name, names[count]);
    }
    assert_int_equal(model->count, count);
}
#define ASSERT_NAMES(model, ...) assert_names(model, (const char *const[]){__VA_ARGS__, NULL})

static inline const struct gradcmp_parameter *hand_find(const struct gradcmp_model *model,
                                                        const char *name) {
    const struct gradcmp_parameter *parameter = gcmp_model_find(model, name);
    if (parameter == NULL) {
        fail_msg("no parameter \"%s\"", name);
    }
    return parameter;
}

static inline void assert_shape(const struct gradcmp_parameter *parameter, unsigned ndim,
                                const uint64_t *shape) {
    assert_int_equal(parameter->ndim, ndim);
    for (unsigned d = 0; d < ndim; d++) {
        assert_int_equal(parameter->shape[d], shape[d]);
    }
}
#define ASSERT_SHAPE(parameter, ...) assert_shape(parameter, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

/* Read copy `copy` of a parameter through its slabs into a malloced array, each element once; an
 * element outside of a source or of the shape, or read twice, or not at all, fails the test. */
static inline double *hand_read(const struct hand *hand, const struct gradcmp_parameter *parameter,
                                uint32_t copy) {
    double *out = calloc(parameter->elem_count + 1, sizeof *out);
    unsigned char *seen = calloc(parameter->elem_count + 1, 1);
    assert_non_null(out);
    assert_non_null(seen);
    uint64_t total = 0;
    for (size_t s = 0; s < parameter->slab_count; s++) {
        const struct gradcmp_slab *slab = &parameter->slabs[s];
        if (slab->copy != copy) {
            continue;
        }
        uint64_t index[GRADCMP_MAX_NDIM] = {0};
        bool more = true;
        while (more) {
            uint64_t at = 0;
            int64_t from = slab->offset_elems;
            for (unsigned d = 0; d < parameter->ndim; d++) {
                assert_true(slab->start[d] + index[d] < parameter->shape[d]);
                at = at * parameter->shape[d] + slab->start[d] + index[d];
                from += (int64_t)index[d] * slab->stride[d];
            }
            assert_true(from >= 0 && (size_t)from < hand->value_counts[slab->source]);
            assert_false(seen[at]);
            seen[at] = 1;
            out[at] = hand->values[slab->source][from];
            total++;
            more = false;
            for (unsigned d = parameter->ndim; d-- > 0 && !more;) {
                more = ++index[d] < slab->extent[d];
                index[d] = more ? index[d] : 0;
            }
        }
    }
    assert_int_equal(total, parameter->elem_count);
    free(seen);
    return out;
}

#endif
