/* Ranks' own shards by hand. */
#ifndef GCMP_TEST_LOCAL_TOOLS_H
#define GCMP_TEST_LOCAL_TOOLS_H

#include "hand_catalogue.h"

/* Most ranks of a test, by tp, pp, ep, vp, etp. */
struct local_rank {
    int32_t tp, pp, ep, vp, etp;
};

static inline int local_setup(void **state) {
    struct hand *hand = malloc(sizeof *hand);
    hand_init(hand);
    *state = hand;
    return 0;
}

static inline int local_teardown(void **state) {
    hand_free(*state);
    free(*state);
    return 0;
}

/* Append a rank's shard; its key is "tp<tp>pp<pp>ep<ep>vp<vp>: <name>". */
static inline size_t local_shard(struct hand *hand, struct local_rank rank, const char *name,
                                 unsigned ndim, const uint64_t *shape) {
    struct gradcmp_coords *coords = gcmp_arena_alloc(&hand->arena, 1, sizeof *coords);
    assert_non_null(coords);
    *coords = (struct gradcmp_coords){rank.tp, rank.pp, rank.ep, -1, rank.vp, rank.etp};
    size_t tensor = hand_whole(hand, "main_grad", name, ndim, shape);
    struct gradcmp_stored *stored = hand_stored(hand, tensor);
    stored->layout = GRADCMP_LAYOUT_LOCAL;
    stored->pieces[0].coords = coords;
    stored->key = gcmp_arena_format(&hand->arena, "tp%dpp%dep%dvp%d: %s", rank.tp, rank.pp, rank.ep,
                                    rank.vp, name);
    return tensor;
}
#define LOCAL_SHARD(hand, rank, name, ...)                                                         \
    local_shard(hand, rank, name, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

/* Append the shards of all tensor-parallel ranks, which are of one shape. */
static inline void local_ranks(struct hand *hand, int32_t tp, const char *name, unsigned ndim,
                               const uint64_t *shape) {
    for (int32_t rank = 0; rank < tp; rank++) {
        local_shard(hand, (struct local_rank){.tp = rank, .etp = rank}, name, ndim, shape);
    }
}
#define LOCAL_RANKS(hand, tp, name, ...)                                                           \
    local_ranks(hand, tp, name, NDIMS(__VA_ARGS__), DIMS(__VA_ARGS__))

static inline void local_setting(struct hand *hand, const char *name, int64_t value) {
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_INT, .integer = value};
    assert_int_equal(gcmp_catalogue_set(&hand->catalogue, &setting, NULL), GRADCMP_OK);
}

static inline void local_flag(struct hand *hand, const char *name, bool value) {
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_BOOL, .integer = value};
    assert_int_equal(gcmp_catalogue_set(&hand->catalogue, &setting, NULL), GRADCMP_OK);
}

/* Expect a slab, `index` in order, at a place. */
static inline void expect_slab(const struct gradcmp_parameter *parameter, size_t index,
                               const uint64_t *start, const uint64_t *extent,
                               int64_t offset_elems) {
    assert_true(index < parameter->slab_count);
    const struct gradcmp_slab *slab = &parameter->slabs[index];
    for (unsigned d = 0; d < parameter->ndim; d++) {
        assert_int_equal(slab->start[d], start[d]);
        assert_int_equal(slab->extent[d], extent[d]);
    }
    assert_int_equal(slab->offset_elems, offset_elems);
}

#endif
