/* Whatever a layout, the engine's figures are those of the assembled tensor. */
#include "engine/engine_tools.h"

static const struct gcmp_engine_options one_thread = {.threads = 1};

static void run_ok(struct gcmp_job *jobs, size_t job_count,
                   const struct gcmp_engine_options *options, size_t owners) {
    struct gradcmp_error errors[8], error;
    memset(&error, 0, sizeof error);
    enum gradcmp_status status = gcmp_engine_run(jobs, job_count, options, errors, owners, &error);
    if (status != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
    for (size_t i = 0; i < owners; i++) {
        if (errors[i].code != GRADCMP_OK) {
            fail_msg("owner %zu: %s: %s", i, errors[i].path, errors[i].message);
        }
    }
}

/* One side of a random comparison. */
struct random_side {
    struct world *world;
    struct tensor tensor;
};

static struct random_side random_side(char *temp, const char *name, uint64_t seed,
                                      enum storing way) {
    struct random_side side;
    side.world = world_make(temp, name, seed);
    enum gradcmp_dtype dtype = float_types[world_random(side.world, FLOAT_TYPES)];
    uint64_t shape[4], parts[4];
    uint64_t shape_seed = seed / 2; /* the same for both sides */
    unsigned ndim = 1 + (unsigned)(next_random(&shape_seed) % 4);
    static const uint64_t longest[] = {150000, 400, 60, 24};
    for (unsigned d = 0; d < ndim; d++) {
        shape[d] = 2 + next_random(&shape_seed) % longest[ndim - 1];
        parts[d] = 1 + world_random(side.world, shape[d] < 4 ? shape[d] : 4);
    }
    side.tensor = tensor_make(dtype, ndim, shape);
    fill_elems(side.tensor.elems, dtype, side.tensor.parameter.elem_count, FILL_SPRINKLED, seed);
    store_grid(side.world, &side.tensor, parts, way, 0);
    world_open(side.world);
    return side;
}

static void free_side(struct random_side *side) {
    free(side->tensor.elems);
    world_free(side->world);
}

/* Compare runs of both tensors: the whole, and a part that begins at different elements. */
static void check_pair(const struct random_side *a, const struct random_side *b, uint64_t seed) {
    static const uint64_t buffers[] = {0, 1, 1000000};
    uint64_t elems = a->tensor.parameter.elem_count;
    struct gradcmp_tally found[2], expected[2];
    struct gcmp_side side_b[2] = {side_of(b->world, &b->tensor, 1),
                                  side_of(b->world, &b->tensor, 1)};
    struct gcmp_job jobs[2] = {{.a = side_of(a->world, &a->tensor, 0),
                                .b = &side_b[0],
                                .b_count = 1,
                                .elems = elems,
                                .tallies = &found[0]},
                               {.a = side_of(a->world, &a->tensor, 0),
                                .b = &side_b[1],
                                .b_count = 1,
                                .tallies = &found[1]}};
    jobs[1].a.first_elem = seed * 7919 % elems;
    side_b[1].first_elem = seed * 104729 % elems;
    jobs[1].elems = elems - (jobs[1].a.first_elem > side_b[1].first_elem ? jobs[1].a.first_elem
                                                                         : side_b[1].first_elem);
    expected[0] = span_of(&a->tensor, 0, &b->tensor, 0, elems);
    expected[1] =
        span_of(&a->tensor, jobs[1].a.first_elem, &b->tensor, side_b[1].first_elem, jobs[1].elems);
    struct gcmp_engine_options options = {.threads = 1 + (unsigned)(seed % 5),
                                          .buffer_bytes = buffers[seed % 3]};
    run_ok(jobs, 2, &options, 2);
    assert_same_tally(&found[0], &expected[0]);
    assert_same_tally(&found[1], &expected[1]);
}

static void check_layouts(char *temp, enum storing way, unsigned rounds) {
    for (uint64_t seed = 2; seed < 2 * rounds; seed += 2) {
        struct random_side a = random_side(temp, "a", seed, way);
        struct random_side b = random_side(temp, "b", seed + 1, STORE_WAYS);
        check_pair(&a, &b, seed);
        free_side(&a);
        free_side(&b);
    }
}

static void test_gather__each_way_of_storing(void **state) {
    for (int way = 0; way < STORE_WAYS; way++) {
        check_layouts(*state, (enum storing)way, 5);
    }
}

static void test_gather__mixed_ways_of_storing(void **state) {
    check_layouts(*state, STORE_WAYS, 25);
}

/* Boxes that are much longer in the record than staging has room for. */
static void test_gather__strides_longer_than_the_buffers(void **state) {
    static const uint64_t shapes[][3] = {{60, 60, 60}, {1, 500, 400}, {2, 90, 1000}};
    for (uint64_t seed = 0; seed < 18; seed++) {
        struct world *world = world_make(*state, "long", seed);
        struct tensor tensor = tensor_make(GRADCMP_DTYPE_FLOAT32, 3, shapes[seed % 3]);
        uint64_t one[3] = {1, 1, 1}, elems = tensor.parameter.elem_count;
        fill_elems(tensor.elems, GRADCMP_DTYPE_FLOAT32, elems, FILL_GRADIENTS, seed);
        store_grid(world, &tensor, one, seed % 2 == 0 ? STORE_PERMUTED : STORE_REVERSED, 0);
        world_open(world);
        struct gradcmp_tally found, expected = span_of(&tensor, 0, &tensor, 0, elems);
        struct gcmp_job job = {.a = side_of(world, &tensor, 0), .elems = elems, .tallies = &found};
        struct gcmp_engine_options options = {.threads = 1, .buffer_bytes = 1};
        run_ok(&job, 1, &options, 1);
        assert_same_tally(&found, &expected);
        free(tensor.elems);
        world_free(world);
    }
}

/* What tensor parallelism makes of a matrix, over many units: rows or columns dealt over ranks. */
static void check_matrix(char *temp, uint64_t ranks, bool by_rows, const uint64_t shape[2]) {
    struct world *world = world_make(temp, "ranks", ranks), *plain = world_make(temp, "plain", 1);
    struct tensor a = tensor_make(GRADCMP_DTYPE_FLOAT32, 2, shape), b = a;
    uint64_t one[2] = {1, 1}, cut[2] = {by_rows ? ranks : 1, by_rows ? 1 : ranks};
    b.elems = malloc(a.parameter.elem_count * a.elem_bytes);
    fill_elems(a.elems, GRADCMP_DTYPE_FLOAT32, a.parameter.elem_count, FILL_GRADIENTS, 1);
    fill_elems(b.elems, GRADCMP_DTYPE_FLOAT32, a.parameter.elem_count, FILL_GRADIENTS, 2);
    store_grid(plain, &a, one, STORE_ITEM, 0);
    store_grid(world, &b, cut, STORE_PLAIN, 0);
    world_open(plain);
    world_open(world);
    struct gradcmp_tally found, expected = span_of(&a, 0, &b, 0, a.parameter.elem_count);
    struct gcmp_side side_b = side_of(world, &b, 1);
    struct gcmp_job job = {.a = side_of(plain, &a, 0),
                           .b = &side_b,
                           .b_count = 1,
                           .elems = a.parameter.elem_count,
                           .tallies = &found};
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct gcmp_engine_options options = {.threads = threads, .buffer_bytes = 1 << 21};
        run_ok(&job, 1, &options, 2);
        assert_same_tally(&found, &expected);
    }
    free(a.elems);
    free(b.elems);
    world_free(world);
    world_free(plain);
}

static void test_gather__rows_and_columns_over_ranks(void **state) {
    for (uint64_t ranks = 1; ranks <= 60; ranks += 7) {
        check_matrix(*state, ranks, true, (const uint64_t[]){500, 777});
        check_matrix(*state, ranks, false, (const uint64_t[]){500, 777});
    }
    check_matrix(*state, 2, false, (const uint64_t[]){90000, 3}); /* rows of a few bytes */
}

/* Units must fall on blocks of the run, not of the parameter. */
static void test_gather__every_length_around_blocks_and_units(void **state) {
    struct world *world = world_make(*state, "long", 1);
    uint64_t count = 2 * 65536 + 5000;
    struct tensor a = tensor_make(GRADCMP_DTYPE_FLOAT32, 1, &count);
    fill_elems(a.elems, GRADCMP_DTYPE_FLOAT32, count, FILL_GRADIENTS, 5);
    uint64_t parts = 3;
    store_grid(world, &a, &parts, STORE_PLAIN, 0);
    world_open(world);
    static const uint64_t bases[] = {0, 16384, 32768, 65536, 131072};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        for (int more = -2; more <= 2; more++) {
            struct gradcmp_tally found;
            struct gcmp_side b = side_of(world, &a, 0);
            struct gcmp_job job = {.a = b, .b = &b, .b_count = 1, .tallies = &found};
            job.elems = bases[i] + (uint64_t)(more + 2);
            job.a.first_elem = 1;
            b.first_elem = 3000;
            struct gradcmp_tally expected = span_of(&a, 1, &a, 3000, job.elems);
            struct gcmp_engine_options options = {.threads = 2, .buffer_bytes = 1};
            run_ok(&job, 1, &options, 1);
            assert_same_tally(&found, &expected);
        }
    }
    free(a.elems);
    world_free(world);
}

static void test_gather__several_candidates_and_many_jobs(void **state) {
    enum { CANDIDATES = 3, JOBS = 40 };
    struct world *worlds[1 + CANDIDATES];
    struct tensor tensors[1 + CANDIDATES][JOBS];
    struct gcmp_side sides[JOBS][CANDIDATES];
    struct gradcmp_tally found[JOBS][CANDIDATES];
    struct gcmp_job jobs[JOBS];
    char name[] = "c0";
    for (size_t c = 0; c <= CANDIDATES; c++) {
        name[1] = (char)('0' + c);
        worlds[c] = world_make(*state, name, c);
        for (size_t j = 0; j < JOBS; j++) {
            uint64_t shape[2] = {1 + j * j % 37, 1 + j * 331 % 900}, parts[2] = {1, 1};
            parts[c % 2] = 1 + (c + j) % (shape[c % 2] < 3 ? shape[c % 2] : 3);
            tensors[c][j] = tensor_make(float_types[(c + j) % FLOAT_TYPES], 2, shape);
            fill_elems(tensors[c][j].elems, float_types[(c + j) % FLOAT_TYPES], shape[0] * shape[1],
                       FILL_FINITE, c * 100 + j);
            store_grid(worlds[c], &tensors[c][j], parts, STORE_WAYS, 0);
        }
        world_open(worlds[c]);
    }
    for (size_t j = 0; j < JOBS; j++) {
        for (size_t c = 0; c < CANDIDATES; c++) {
            sides[j][c] = side_of(worlds[1 + c], &tensors[1 + c][j], (uint32_t)(1 + c));
        }
        jobs[j] = (struct gcmp_job){.a = side_of(worlds[0], &tensors[0][j], 0),
                                    .b = sides[j],
                                    .b_count = j % 5 == 4 ? 0 : CANDIDATES,
                                    .elems = tensors[0][j].parameter.elem_count,
                                    .tallies = found[j]};
    }
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct gcmp_engine_options options = {.threads = threads};
        memset(found, 0xee, sizeof found);
        run_ok(jobs, JOBS, &options, 1 + CANDIDATES);
        for (size_t j = 0; j < JOBS; j++) {
            for (size_t c = 0; c < CANDIDATES; c++) {
                const struct tensor *b = jobs[j].b_count == 0 ? &tensors[0][j] : &tensors[1 + c][j];
                struct gradcmp_tally expected = span_of(&tensors[0][j], 0, b, 0, jobs[j].elems);
                if (jobs[j].b_count > 0 || c == 0) {
                    assert_same_tally(&found[j][c], &expected);
                }
            }
        }
    }
    for (size_t c = 0; c <= CANDIDATES; c++) {
        for (size_t j = 0; j < JOBS; j++) {
            free(tensors[c][j].elems);
        }
        world_free(worlds[c]);
    }
}

/* Two copies in one parameter: each job reads the one it names. */
static void test_gather__copies_are_kept_apart(void **state) {
    struct world *world = world_make(*state, "copies", 1);
    const uint64_t shape[2] = {70, 300}, rows[2] = {2, 1}, columns[2] = {1, 3};
    struct tensor first = tensor_make(GRADCMP_DTYPE_BFLOAT16, 2, shape), second = first;
    second.elems = malloc(70 * 300 * 2);
    fill_elems(first.elems, GRADCMP_DTYPE_BFLOAT16, 70 * 300, FILL_GRADIENTS, 1);
    fill_elems(second.elems, GRADCMP_DTYPE_BFLOAT16, 70 * 300, FILL_GRADIENTS, 2);
    store_grid(world, &first, rows, STORE_PLAIN, 0);
    second.parameter = first.parameter;
    store_grid(world, &second, columns, STORE_REVERSED, 1);
    world_open(world);
    struct gradcmp_tally found, expected = span_of(&first, 0, &second, 0, 70 * 300);
    struct gcmp_side other = side_of(world, &second, 0);
    other.copy = 1;
    struct gcmp_job job = {.a = side_of(world, &second, 0),
                           .b = &other,
                           .b_count = 1,
                           .elems = 70 * 300,
                           .tallies = &found};
    run_ok(&job, 1, &one_thread, 1);
    assert_same_tally(&found, &expected);
    free(first.elems);
    free(second.elems);
    world_free(world);
}

static void test_gather__scaled_values_are_float64(void **state) {
    struct world *world = world_make(*state, "scaled", 1);
    uint64_t count = 40000, parts = 3;
    struct tensor a = tensor_make(GRADCMP_DTYPE_FLOAT64, 1, &count);
    struct tensor b = tensor_make(GRADCMP_DTYPE_BFLOAT16, 1, &count);
    struct tensor scaled_a = tensor_make(GRADCMP_DTYPE_FLOAT64, 1, &count), scaled_b = scaled_a;
    scaled_b.elems = malloc(count * 8);
    fill_elems(a.elems, GRADCMP_DTYPE_FLOAT64, count, FILL_SPRINKLED, 1);
    fill_elems(b.elems, GRADCMP_DTYPE_BFLOAT16, count, FILL_SPRINKLED, 2);
    store_grid(world, &a, &parts, STORE_REVERSED, 0);
    store_grid(world, &b, &parts, STORE_BIG, 0);
    world_open(world);
    for (size_t i = 0; i < count; i++) {
        double x, y;
        memcpy(&x, a.elems + 8 * i, 8);
        uint32_t float32 = (uint32_t)gcmp_load_bits(b.elems, 2, i) << 16;
        float narrow;
        memcpy(&narrow, &float32, 4);
        y = ldexp((double)narrow, -700);
        x = ldexp(x, -700);
        memcpy(scaled_a.elems + 8 * i, &x, 8);
        memcpy(scaled_b.elems + 8 * i, &y, 8);
    }
    struct gradcmp_tally found, expected = span_of(&scaled_a, 0, &scaled_b, 0, count);
    struct gcmp_side other = side_of(world, &b, 0);
    struct gcmp_job job = {.a = side_of(world, &a, 0),
                           .b = &other,
                           .b_count = 1,
                           .elems = count,
                           .scale_log2 = -700,
                           .tallies = &found};
    struct gcmp_engine_options options = {.threads = 2, .buffer_bytes = 1};
    run_ok(&job, 1, &options, 1);
    assert_same_tally(&found, &expected);
    free(a.elems);
    free(b.elems);
    free(scaled_a.elems);
    free(scaled_b.elems);
    world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_gather__each_way_of_storing),
        TEMP_TEST(test_gather__mixed_ways_of_storing),
        TEMP_TEST(test_gather__strides_longer_than_the_buffers),
        TEMP_TEST(test_gather__rows_and_columns_over_ranks),
        TEMP_TEST(test_gather__every_length_around_blocks_and_units),
        TEMP_TEST(test_gather__several_candidates_and_many_jobs),
        TEMP_TEST(test_gather__copies_are_kept_apart),
        TEMP_TEST(test_gather__scaled_values_are_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
