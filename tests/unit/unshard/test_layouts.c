/* Random models, stored as writers of sharded checkpoints store them, read back element by element
 * through the slabs. The writers here are plain loops that copy numbers from the whole tensor; they
 * share no code with what is tested. */
#include "hand_catalogue.h"

/* A small generator, so that a failure can be repeated: the seed is in its message. */
static uint64_t random_state;

static uint64_t draw(uint64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

/* A whole tensor of the model: leading axes of layers and experts included. */
struct tensor {
    unsigned ndim;
    uint64_t shape[8];
    uint64_t grid[8]; /* parts that ranks hold, on each axis */
    uint64_t elems;
    double *values; /* row-major */
};

static void make_tensor(struct tensor *tensor, const uint64_t *lead, unsigned lead_axes) {
    static double next = 1.0;
    tensor->ndim = lead_axes + (unsigned)draw(lead_axes == 2 ? 3 : 4);
    if (lead_axes == 2 && tensor->ndim < 4) {
        tensor->ndim = 4; /* stacked experts are told by their axes */
    }
    tensor->elems = 1;
    for (unsigned d = 0; d < tensor->ndim; d++) {
        uint64_t local = 1 + draw(5);
        tensor->grid[d] = d < lead_axes ? lead[d] : 1 + draw(3);
        tensor->shape[d] = d < lead_axes ? lead[d] : tensor->grid[d] * local;
        tensor->elems *= tensor->shape[d];
    }
    tensor->values = malloc(tensor->elems * sizeof(double));
    assert_non_null(tensor->values);
    for (uint64_t i = 0; i < tensor->elems; i++) {
        tensor->values[i] = next;
        next += 1.0;
    }
}

/* Row-major counting through a box; false at its end. */
static bool count_up(uint64_t *index, const uint64_t *extent, unsigned ndim) {
    for (unsigned d = ndim; d-- > 0;) {
        if (++index[d] < extent[d]) {
            return true;
        }
        index[d] = 0;
    }
    return false;
}

static double value_at(const struct tensor *tensor, const uint64_t *index) {
    uint64_t at = 0;
    for (unsigned d = 0; d < tensor->ndim; d++) {
        at = at * tensor->shape[d] + index[d];
    }
    return tensor->values[at];
}

/* The elements of a box of the tensor, in row-major order. */
static double *copy_box(const struct tensor *tensor, const uint64_t *start, const uint64_t *extent,
                        uint64_t *count) {
    *count = 1;
    for (unsigned d = 0; d < tensor->ndim; d++) {
        *count *= extent[d];
    }
    double *values = malloc((*count + 1) * sizeof *values);
    assert_non_null(values);
    uint64_t index[8] = {0}, at[8], i = 0;
    do {
        for (unsigned d = 0; d < tensor->ndim; d++) {
            at[d] = start[d] + index[d];
        }
        if (*count > 0) {
            values[i++] = value_at(tensor, at);
        }
    } while (count_up(index, extent, tensor->ndim) && *count > 0);
    return values;
}

/* Put a piece's values somewhere into a larger source, every second element. */
static void spread_piece(struct hand *hand, struct gradcmp_piece *piece, unsigned ndim) {
    double *packed = hand->values[piece->source];
    size_t count = hand->value_counts[piece->source], offset = (size_t)draw(5);
    double *spread = calloc(2 * count + offset + 1, sizeof *spread);
    int64_t *stride = gcmp_arena_alloc(&hand->arena, ndim, sizeof *stride);
    assert_non_null(spread);
    assert_non_null(stride);
    for (size_t i = 0; i < count; i++) {
        spread[offset + 2 * i] = packed[i];
    }
    int64_t step = 2;
    for (unsigned d = ndim; d-- > 0;) {
        stride[d] = step;
        step *= (int64_t)piece->extent[d];
    }
    piece->stride = stride;
    piece->offset_elems = (int64_t)offset;
    free(packed);
    hand->values[piece->source] = spread;
    hand->value_counts[piece->source] = 2 * count + offset + 1;
}

/* Append a piece with these values, one for each of its elements. */
static void add_piece(struct hand *hand, size_t stored, const uint64_t *start,
                      const uint64_t *extent, double *values) {
    uint64_t count = 1;
    for (unsigned d = 0; d < hand_stored(hand, stored)->ndim; d++) {
        count *= extent[d];
    }
    uint32_t source = hand_source(hand, values, count);
    struct gradcmp_piece *piece = hand_piece_of(hand, stored, start, extent, source);
    if (draw(4) == 0) {
        spread_piece(hand, piece, hand_stored(hand, stored)->ndim);
    }
}

static void shuffle_pieces(struct gradcmp_stored *stored) {
    for (size_t i = stored->piece_count; i > 1; i--) {
        size_t j = (size_t)draw(i);
        struct gradcmp_piece moved = stored->pieces[i - 1];
        stored->pieces[i - 1] = stored->pieces[j];
        stored->pieces[j] = moved;
    }
}

/* Flat local shards of one cell of the grid, cut into slices of data-parallel ranks. */
static void write_cell(struct hand *hand, size_t stored, const struct tensor *tensor,
                       const uint64_t *cell) {
    uint64_t start[9], extent[9], local[8], count;
    for (unsigned d = 0; d < tensor->ndim; d++) {
        local[d] = tensor->shape[d] / tensor->grid[d];
        start[d] = cell[d] * local[d];
    }
    double *flat = copy_box(tensor, start, local, &count);
    for (unsigned d = 0; d < tensor->ndim; d++) {
        start[d] = cell[d];
        extent[d] = 1;
    }
    for (uint64_t from = 0; from < count || draw(8) == 0;) {
        uint64_t length = from < count && draw(2) == 0 ? draw(count - from + 1) : count - from;
        double *slice = malloc((length + 1) * sizeof *slice);
        assert_non_null(slice);
        memcpy(slice, flat + from, length * sizeof *slice);
        start[tensor->ndim] = from;
        extent[tensor->ndim] = length;
        add_piece(hand, stored, start, extent, slice);
        from += length;
    }
    free(flat);
}

/* All cells in one piece: [cells..., local elements], as a tool that gathers may write. */
static void write_grid(struct hand *hand, size_t stored, const struct tensor *tensor) {
    uint64_t start[9] = {0}, local[8], at[8], cell[8] = {0}, count, filled = 0;
    double *values = malloc((tensor->elems + 1) * sizeof *values);
    assert_non_null(values);
    for (unsigned d = 0; d < tensor->ndim; d++) {
        local[d] = tensor->shape[d] / tensor->grid[d];
    }
    do {
        for (unsigned d = 0; d < tensor->ndim; d++) {
            at[d] = cell[d] * local[d];
        }
        double *flat = copy_box(tensor, at, local, &count);
        memcpy(values + filled, flat, count * sizeof *values);
        filled += count;
        free(flat);
    } while (count_up(cell, tensor->grid, tensor->ndim));
    const uint64_t *shape = hand_stored(hand, stored)->shape;
    add_piece(hand, stored, start, shape, values);
}

/* Fragments: the grid, then the flat local shard. */
static void write_fragments(struct hand *hand, const char *name, const struct tensor *tensor) {
    uint64_t shape[9], local = 1, cell[8] = {0};
    for (unsigned d = 0; d < tensor->ndim; d++) {
        shape[d] = tensor->grid[d];
        local *= tensor->shape[d] / tensor->grid[d];
    }
    shape[tensor->ndim] = local;
    size_t stored = hand_tensor(hand, "exp_avg", name, tensor->ndim + 1, shape);
    if (draw(2) == 0) {
        hand_model_shape(hand, stored, tensor->ndim, tensor->shape);
    } else {
        hand_tensor(hand, "param", name, tensor->ndim, tensor->shape);
    }
    if (draw(5) == 0) {
        write_grid(hand, stored, tensor);
    } else {
        do {
            write_cell(hand, stored, tensor, cell);
        } while (count_up(cell, tensor->grid, tensor->ndim));
    }
    shuffle_pieces(hand_stored(hand, stored));
}

struct box {
    uint64_t start[8], extent[8];
};

/* Boxes: the tensor cut at random places, again and again. */
static void write_boxes_below(struct hand *hand, size_t stored, const struct tensor *tensor,
                              const struct box *box, unsigned depth) {
    unsigned axis = tensor->ndim == 0 ? 0 : (unsigned)draw(tensor->ndim);
    if (depth == 0 || tensor->ndim == 0 || box->extent[axis] < 2) {
        uint64_t count;
        double *values = copy_box(tensor, box->start, box->extent, &count);
        add_piece(hand, stored, box->start, box->extent, values);
        return;
    }
    uint64_t cut = 1 + draw(box->extent[axis] - 1);
    struct box first = *box, second = *box;
    first.extent[axis] = cut;
    second.start[axis] += cut;
    second.extent[axis] -= cut;
    write_boxes_below(hand, stored, tensor, &first, depth - 1);
    write_boxes_below(hand, stored, tensor, &second, depth - 1);
}

static void write_boxes(struct hand *hand, const char *name, const struct tensor *tensor) {
    struct box whole = {{0}, {0}};
    memcpy(whole.extent, tensor->shape, tensor->ndim * sizeof *tensor->shape);
    size_t stored = hand_tensor(hand, "exp_avg", name, tensor->ndim, tensor->shape);
    write_boxes_below(hand, stored, tensor, &whole, (unsigned)draw(7));
    shuffle_pieces(hand_stored(hand, stored));
}

static void write_tensor(struct hand *hand, const char *name, const struct tensor *tensor) {
    if (draw(2) == 0) {
        write_fragments(hand, name, tensor);
    } else {
        write_boxes(hand, name, tensor);
    }
}

/* A read model beside the catalogue that it came from. */
struct read {
    const struct hand *hand;
    const struct gradcmp_model *model;
};

/* Check part `part` of a tensor: what is left of it when `lead` axes have fixed indices. */
static void check_part(struct read read, const char *name, const struct tensor *tensor,
                       unsigned lead, uint64_t part) {
    const struct gradcmp_parameter *parameter = hand_find(read.model, name);
    assert_shape(parameter, tensor->ndim - lead, tensor->shape + lead);
    assert_int_equal(parameter->copy_count, 1);
    double *values = hand_read(read.hand, parameter, 0);
    assert_memory_equal(values, tensor->values + part * parameter->elem_count,
                        parameter->elem_count * sizeof *values);
    free(values);
}

static char *name_of(struct hand *hand, const char *format, uint64_t a, uint64_t b) {
    char *name = gcmp_arena_format(&hand->arena, format, (unsigned)a, (unsigned)b);
    assert_non_null(name);
    return name;
}

/* A stack of layers, tensors of single layers, stacked experts, and a gated weight in halves. */
struct tensors {
    uint64_t lead[2]; /* layers, experts */
    struct tensor stacked, experts, head, single[4], first, second;
};

static void write_halves(struct hand *hand, struct tensors *all) {
    make_tensor(&all->first, all->lead, 0);
    while (all->first.ndim == 0) {
        free(all->first.values);
        make_tensor(&all->first, all->lead, 0);
    }
    all->second = all->first;
    all->second.values = malloc(all->first.elems * sizeof(double));
    assert_non_null(all->second.values);
    for (uint64_t i = 0; i < all->first.elems; i++) {
        all->second.values[i] = -all->first.values[i];
    }
    write_tensor(hand, "gate.weight_w", &all->first);
    write_tensor(hand, "gate.weight_v", &all->second);
}

static void write_model(struct hand *hand, struct tensors *all) {
    all->lead[0] = 1 + draw(4);
    all->lead[1] = 1 + draw(3);
    hand->catalogue.layers = (uint32_t)all->lead[0];
    make_tensor(&all->stacked, all->lead, 1);
    make_tensor(&all->experts, all->lead, 2);
    make_tensor(&all->head, all->lead, 0);
    write_tensor(hand, "decoder.layers.mlp.weight", &all->stacked);
    write_tensor(hand, "decoder.layers.mlp.experts.experts.weight", &all->experts);
    write_tensor(hand, "head.weight", &all->head);
    for (uint64_t l = 0; l < all->lead[0]; l++) {
        make_tensor(&all->single[l], all->lead, 0);
        write_tensor(hand, name_of(hand, "decoder.layers.%u.own", l, 0), &all->single[l]);
    }
    write_halves(hand, all);
}

static void check_halves(struct read read, const struct tensors *all) {
    const struct gradcmp_parameter *gate = hand_find(read.model, "gate.weight");
    assert_int_equal(gate->shape[0], 2 * all->first.shape[0]);
    double *values = hand_read(read.hand, gate, 0);
    size_t bytes = all->first.elems * sizeof *values;
    assert_memory_equal(values, all->first.values, bytes);
    assert_memory_equal(values + all->first.elems, all->second.values, bytes);
    free(values);
}

static void check_all(struct hand *hand, struct read read, const struct tensors *all) {
    for (uint64_t l = 0; l < all->lead[0]; l++) {
        check_part(read, name_of(hand, "decoder.layers.%u.mlp.weight", l, 0), &all->stacked, 1, l);
        check_part(read, name_of(hand, "decoder.layers.%u.own", l, 0), &all->single[l], 0, 0);
        for (uint64_t e = 0; e < all->lead[1]; e++) {
            check_part(read, name_of(hand, "decoder.layers.%u.mlp.experts.experts.%u.weight", l, e),
                       &all->experts, 2, l * all->lead[1] + e);
        }
    }
    check_part(read, "head.weight", &all->head, 0, 0);
    check_halves(read, all);
    assert_int_equal(read.model->count, all->lead[0] * (2 + all->lead[1]) + 2);
}

static void check_model(uint64_t seed) {
    struct hand hand;
    struct tensors all;
    random_state = seed;
    hand_init(&hand);
    write_model(&hand, &all);
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    check_all(&hand, (struct read){&hand, &model}, &all);
    gcmp_model_free(&model);
    hand_free(&hand);
    double *values[] = {all.stacked.values, all.experts.values, all.head.values, all.first.values,
                        all.second.values};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        free(values[i]);
    }
    for (uint64_t l = 0; l < all.lead[0]; l++) {
        free(all.single[l].values);
    }
}

static void test_layouts__random_models_are_read_back(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        print_message("seed %d\n", (int)seed);
        check_model(seed);
    }
}

/* What the numbers mean: a row-parallel weight [O, I] on two ranks, stored [1, 2, O*I/2], is
 * columns side by side, as [.., tp, O, I/tp] permuted to [.., O, tp, I/tp]. */
static void test_layouts__row_parallel_fragments_are_columns(void **state) {
    (void)state;
    struct hand hand;
    hand_init(&hand);
    size_t stored = HAND_TENSOR(&hand, "exp_avg", "proj.weight", 1, 2, 6);
    HAND_MODEL_SHAPE(&hand, stored, 3, 4);
    for (uint64_t rank = 0; rank < 2; rank++) {
        double *values = malloc(6 * sizeof *values);
        assert_non_null(values);
        for (uint64_t i = 0; i < 6; i++) {
            uint64_t row = i / 2, column = 2 * rank + i % 2;
            values[i] = (double)(10 * row + column);
        }
        uint32_t source = hand_source(&hand, values, 6);
        hand_piece_of(&hand, stored, DIMS(0, rank, 0), DIMS(1, 1, 6), source);
    }
    struct gradcmp_model model = hand_unshard(&hand, "exp_avg");
    double *values = hand_read(&hand, hand_find(&model, "proj.weight"), 0);
    const double expected[12] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    assert_memory_equal(values, expected, sizeof expected);
    free(values);
    gcmp_model_free(&model);
    hand_free(&hand);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts__row_parallel_fragments_are_columns),
        cmocka_unit_test(test_layouts__random_models_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
