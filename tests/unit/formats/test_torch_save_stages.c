/* Ranks that hold parameters of their own, as stages of a pipeline do: whose numbers are whose, and
 * in which order all weights stand. */
#include "formats/torch_save_tools.h"

#include "formats/torch_save.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Two elements of the record, which is 0.5, 1.5, 2.5, ... */
#define PAIR(at)       PT_TENSOR(PT_FLOATS, at, "(I2\nt", "(I1\nt")
#define WEIGHT(name)   PT_TEXT(name) PAIR("0")
#define OTHER(name)    PT_TEXT(name) PAIR("2") /* elements of its own: they are not tied */
#define MOMENT(id, at) PT_INT(id) PT_DICT(PT_TEXT("exp_avg") PAIR(at))
#define MOMENT_3(id)   PT_INT(id) PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("3"))
#define BOTH           PT_GROUP(PT_INT("0") PT_INT("1"))
#define MODEL(weights) PT_TEXT("model") PT_DICT(weights)
#define FILE_OF(weights, states, groups)                                                           \
    PT_DICT(MODEL(weights) PT_TEXT("optimizer") PT_OPTIMIZER(states, groups))
#define NAMED(ids, names)                                                                          \
    PT_DICT(PT_TEXT("params") PT_LIST(ids) PT_TEXT("param_names") PT_LIST(names))

static void write_ranks(const char *temp, const char *const *pickles, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "rank%zu.pt", i);
        write_pt(temp, name, pickles[i]);
    }
}

static void remove_ranks(const char *temp, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "rank%zu.pt", i);
        char *path = temp_path(temp, name);
        remove(path);
        free(path);
    }
}

/* The gradient of a parameter begins with the element at `at`. */
static void check_gradient(const struct opened *opened, const char *name, float at) {
    const struct gradcmp_stored *stored = find_stored(opened, name, "exp_avg");
    uint64_t count;
    if (stored == NULL) {
        fail_msg("no gradient of %s", name);
        return;
    }
    float *values = gather_pieces(opened, stored, false, &count);
    assert_float_equal(values[0], at + 0.5f, 0.0f);
    free(values);
}

static void test_torch_save_stages__a_rank_counts_its_own_parameters(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("layers.0.a") OTHER("layers.1.a"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        FILE_OF(WEIGHT("layers.2.a") OTHER("layers.3.a"), MOMENT("0", "2") MOMENT("1", "3"), BOTH),
        /* fewer, and a list of its own */
        FILE_OF(WEIGHT("layers.4.a"), MOMENT("0", "4"), PT_GROUP(PT_INT("0"))),
    };
    write_ranks(*state, pickles, 3);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "layers.0.a", 0.0f);
    check_gradient(opened, "layers.1.a", 1.0f);
    check_gradient(opened, "layers.2.a", 2.0f);
    check_gradient(opened, "layers.3.a", 3.0f);
    check_gradient(opened, "layers.4.a", 4.0f);
    assert_int_equal(count_state(opened, "exp_avg"), 5);
    assert_true(opened->catalogue.is_ordered);
    assert_null(opened->catalogue.number_groups);
    close_format(opened);
}

/* Copies of a stage, and an optimizer that all ranks count alike beside one that they do not. */
static void test_torch_save_stages__peers_and_further_optimizers(void **state) {
#define TWO(first, second) PT_DICT(MODEL(first) PT_TEXT("o") PT_LIST(second))
    static const char *const pickles[] = {
        TWO(WEIGHT("a") OTHER("b"), PT_OPTIMIZER(MOMENT("0", "0"), PT_GROUP(PT_INT("0")))
                                        PT_OPTIMIZER(MOMENT("0", "1"), PT_GROUP(PT_INT("0")))),
        TWO(WEIGHT("c") OTHER("d"), PT_OPTIMIZER(MOMENT("0", "2"), PT_GROUP(PT_INT("0")))
                                        PT_OPTIMIZER(MOMENT("0", "3"), PT_GROUP(PT_INT("0")))),
        TWO(WEIGHT("c") OTHER("d"), PT_OPTIMIZER(MOMENT("0", "2"), PT_GROUP(PT_INT("0")))
                                        PT_OPTIMIZER(MOMENT("0", "3"), PT_GROUP(PT_INT("0")))),
    };
    write_ranks(*state, pickles, 3);
    /* two groups share a shape: only names could tell */
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                       GRADCMP_NO_OFFSET, "rank0.pt",
                       "the optimizer numbers its parameters, and number 0, of shape [2], could be "
                       "several weights (groups share that shape); save with names *");
    static const char *const peers[] = {
        FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        FILE_OF(WEIGHT("c") OTHER("d"), MOMENT("0", "2") MOMENT("1", "3"), BOTH),
        FILE_OF(WEIGHT("c") OTHER("d"), MOMENT("0", "2") MOMENT("1", "3"), BOTH),
    };
    write_ranks(*state, peers, 3);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "b", 1.0f);
    check_gradient(opened, "d", 3.0f);
    assert_int_equal(find_stored(opened, "d", "exp_avg")->piece_count, 2);
    assert_int_equal(find_stored(opened, "b", "exp_avg")->piece_count, 1);
    close_format(opened);
}

static void test_torch_save_stages__names_of_a_rank_are_its_own(void **state) {
    static const char *const pickles[] = {
        PT_OPTIMIZER(MOMENT("0", "0"), NAMED(PT_INT("0"), PT_TEXT("a"))),
        PT_OPTIMIZER(MOMENT("0", "1"), NAMED(PT_INT("0"), PT_TEXT("b"))),
        PT_OPTIMIZER(MOMENT("0", "0"), NAMED(PT_INT("0"), PT_TEXT("a"))),
    };
    write_ranks(*state, pickles, 3);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "a", 0.0f);
    check_gradient(opened, "b", 1.0f);
    assert_int_equal(find_stored(opened, "a", "exp_avg")->piece_count, 2);
    close_format(opened);
}

/* Where ranks share all weights, lists that differ are parts of an optimizer that nothing tells. */
static void test_torch_save_stages__lists_without_weights_are_refused(void **state) {
#define WAY_OUT                                                                                    \
    "torch: param_groups list other parameters than rank 0's, and no weights of other names tell " \
    "which; save with names *"
    static const struct {
        const char *pickles[2];
    } rows[] = {
        {{FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
          FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0"), PT_GROUP(PT_INT("0")))}},
        {{PT_OPTIMIZER(MOMENT("0", "0"), PT_GROUP(PT_INT("0"))),
          PT_OPTIMIZER(MOMENT("0", "0") MOMENT("1", "1"), BOTH)}},
        {{PT_OPTIMIZER(MOMENT("0", "0"), NAMED(PT_INT("0"), PT_TEXT("a"))),
          PT_OPTIMIZER(MOMENT("0", "0"), PT_GROUP(PT_INT("0")))}},
        {{PT_OPTIMIZER(MOMENT("0", "0"), PT_GROUP(PT_INT("0"))),
          PT_OPTIMIZER(MOMENT("1", "0"), PT_GROUP(PT_INT("1")))}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_ranks(*state, rows[i].pickles, 2);
        check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                           GRADCMP_NO_OFFSET, "rank1.pt", WAY_OUT);
    }
}

/* Optimizers that hold the states of some parameters each, counted over all of them. */
static void test_torch_save_stages__states_dealt_among_ranks_are_not_stages(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("a"), MOMENT("0", "0"), BOTH),
        FILE_OF(PT_TEXT("b") PT_VECTOR("3"), MOMENT_3("1"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "a", 0.0f);
    check_gradient(opened, "b", 0.0f);
    close_format(opened);
}

/* A rank's groups are its own, in whatever order they list the numbers that rank 0 lists too. */
static void test_torch_save_stages__groups_of_a_rank_are_its_own(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("l.0") PT_TEXT("l.1") PT_VECTOR("3"), MOMENT("0", "0") MOMENT_3("1"), BOTH),
        FILE_OF(WEIGHT("l.2") PT_TEXT("l.3") PT_VECTOR("3"), MOMENT("1", "4") MOMENT_3("0"),
                PT_GROUP(PT_INT("0")) PT_GROUP(PT_INT("1"))),
        FILE_OF(WEIGHT("l.4") OTHER("l.5"), MOMENT("0", "5") MOMENT("1", "6"),
                PT_GROUP(PT_INT("1") PT_INT("0"))),
    };
    write_ranks(*state, pickles, 3);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "l.2", 4.0f);
    check_gradient(opened, "l.3", 0.0f);
    check_gradient(opened, "l.4", 6.0f); /* the first of the group */
    check_gradient(opened, "l.5", 5.0f);
    close_format(opened);
    /* what rank 0 must not list, no rank must */
    static const char *const twice[] = {
        FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0"), BOTH),
        FILE_OF(WEIGHT("c") OTHER("d"), MOMENT("0", "0"), PT_GROUP(PT_INT("0") PT_INT("0"))),
    };
    write_ranks(*state, twice, 2);
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_CORRUPT, ANY_OFFSET,
                       "rank1.pt", "torch: param_groups list parameter 0 twice");
}

/* Numbers that ranks have states of need not be the same ones. */
static void test_torch_save_stages__states_may_lack_at_other_numbers(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("l.0") PT_TEXT("l.1") PT_VECTOR("3"), MOMENT_3("1"), BOTH),
        FILE_OF(WEIGHT("l.2") PT_TEXT("l.3") PT_VECTOR("5"), MOMENT("0", "4"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "l.1", 0.0f);
    check_gradient(opened, "l.2", 4.0f);
    assert_int_equal(count_state(opened, "exp_avg"), 2);
    close_format(opened);
}

/* Where nothing tells whether numbers count one list or each rank's, none has a name. */
static void test_torch_save_stages__states_of_other_numbers_are_refused(void **state) {
    write_pt(
        *state, "model.pt",
        PT_DICT(WEIGHT("a") PT_TEXT("b") PT_VECTOR("3") OTHER("c") PT_TEXT("d") PT_VECTOR("5")));
    write_pt(*state, "optim_rank0.pt", PT_OPTIMIZER(MOMENT_3("1"), BOTH));
    write_pt(*state, "optim_rank1.pt", PT_OPTIMIZER(MOMENT("0", "0"), BOTH));
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                       GRADCMP_NO_OFFSET, "",
                       "torch: 2 numbers of ranks' optimizers may count each rank's own "
                       "parameters, or some of all 4 weights; save with names *");
}

/* A rank that numbers more than its weights: a list of all ranks', or weights that are not there.
 */
static void test_torch_save_stages__fewer_weights_than_numbers_are_refused(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("l.0") OTHER("l.1"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        FILE_OF(WEIGHT("l.2"), MOMENT("0", "2") MOMENT("1", "3"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                       GRADCMP_NO_OFFSET, "",
                       "torch: 2 numbers of ranks' optimizers may count each rank's own "
                       "parameters, or some of all 3 weights; save with names *");
}

static void test_torch_save_stages__numbers_of_a_rank_without_weights_are_refused(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        PT_OPTIMIZER(MOMENT("0", "2") MOMENT("1", "3"), BOTH),
        FILE_OF(WEIGHT("c") OTHER("d"), MOMENT("0", "4") MOMENT("1", "5"), BOTH),
    };
    write_ranks(*state, pickles, 3);
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                       GRADCMP_NO_OFFSET, "rank1.pt",
                       "torch: the optimizer numbers its parameters, ranks hold different weights, "
                       "and this one's files have none; save with names *");
}

static void test_torch_save_stages__a_stage_without_an_optimizer_is_told(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        PT_DICT(MODEL(WEIGHT("c") OTHER("d"))),
    };
    write_ranks(*state, pickles, 2);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "b", 1.0f);
    assert_int_equal(count_state(opened, "exp_avg"), 2);
    assert_int_equal(opened->catalogue.note_count, 1);
    assert_string_equal(opened->catalogue.notes[0],
                        "files of 1 rank (rank 1) hold weights and no state of an optimizer; their "
                        "weights have no gradients here");
    close_format(opened);
}

/* Names that a list gives stand, whatever else has none. */
static void test_torch_save_stages__names_stand_beside_numbers(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("l.0") OTHER("l.1"), MOMENT("0", "0") MOMENT("1", "1"),
                NAMED(PT_INT("0") PT_INT("1"), PT_TEXT("l.1") PT_TEXT("l.0"))),
        FILE_OF(WEIGHT("l.2") OTHER("l.3"), MOMENT("0", "2") MOMENT("1", "3"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "l.1", 0.0f);
    check_gradient(opened, "l.0", 1.0f);
    check_gradient(opened, "l.3", 3.0f);
    close_format(opened);
    /* two optimizers in one file: the second numbers the weight that is left */
    write_ranks(*state,
                (const char *const[]){PT_DICT(MODEL(WEIGHT("a") OTHER("b")) PT_TEXT("o") PT_LIST(
                    PT_OPTIMIZER(MOMENT("0", "0"), NAMED(PT_INT("0"), PT_TEXT("b")))
                        PT_OPTIMIZER(MOMENT("0", "1"), PT_GROUP(PT_INT("0")))))},
                1);
    remove_ranks(*state, 1, 2);
    opened = open_good(&gcmp_format_torch_save, *state);
    check_gradient(opened, "b", 0.0f);
    check_gradient(opened, "a", 1.0f);
    close_format(opened);
}

/* Numbers of another checkpoint are not told by weights whose order is not the model's. */
static void test_torch_save_stages__stages_in_turns_have_no_order(void **state) {
    static const struct {
        const char *weights[2];
        bool is_ordered;
    } rows[] = {
        {{WEIGHT("e") WEIGHT("layers.0.a"), WEIGHT("layers.1.a") WEIGHT("norm")}, true},
        {{WEIGHT("layers.0.a"), WEIGHT("layers.0.b")}, true},
        {{WEIGHT("layers.9.a"), WEIGHT("layers.10.a")}, true},
        {{WEIGHT("l0.w") WEIGHT("l1.w"), WEIGHT("l2.w")}, true},
        {{WEIGHT("layer1.0.w") WEIGHT("layer1.1.w"), WEIGHT("layer1.2.w") WEIGHT("layer2.0.w")},
         true},
        {{WEIGHT("e.0"), WEIGHT("e.0") WEIGHT("e.1")}, true}, /* tied */
        {{WEIGHT("layers.0.a") WEIGHT("layers.2.a"), WEIGHT("layers.1.a")}, false},
        {{WEIGHT("layers.0.a") WEIGHT("norm"), WEIGHT("layers.1.a")}, false},
        {{WEIGHT("m.0.a") WEIGHT("n.0.a"), WEIGHT("m.1.a")}, false},
        {{WEIGHT("l.0.experts.0.a") WEIGHT("l.1.experts.0.a"), WEIGHT("l.0.experts.1.a")}, false},
        {{WEIGHT("1") WEIGHT("3"), WEIGHT("2")}, false},
        {{WEIGHT("l0.w") WEIGHT("l2.w"), WEIGHT("l1.w") WEIGHT("l3.w")}, false},
        {{WEIGHT("layer1.0.w") WEIGHT("layer1.2.w"), WEIGHT("layer1.1.w")}, false},
        {{WEIGHT("m.0.a") WEIGHT("m.1.a"), WEIGHT("n.0.a")}, false}, /* no list goes on */
        {{WEIGHT("emb") WEIGHT("out"), WEIGHT("layers.0.a") WEIGHT("layers.1.a")}, false},
        {{WEIGHT("l.0.experts.0.w") WEIGHT("l.0.post"), WEIGHT("l.0.experts.1.w")}, false},
        /* no rank has weights of its own: the order is the file's */
        {{WEIGHT("layers.1.a") WEIGHT("layers.0.a"), WEIGHT("layers.0.a")}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int rank = 0; rank < 2; rank++) {
            char name[32], pickle[4096];
            snprintf(name, sizeof name, "rank%d.pt", rank);
            snprintf(pickle, sizeof pickle,
                     "(" PT_TEXT("model") "(%sd"
                                          "d",
                     rows[i].weights[rank]);
            write_pt(*state, name, pickle);
        }
        struct opened *opened = open_good(&gcmp_format_torch_save, *state);
        if (opened->catalogue.is_ordered != rows[i].is_ordered) {
            fail_msg("row %zu: ordered %d", i, opened->catalogue.is_ordered);
        }
        close_format(opened);
    }
}

/* Files, dicts and states that are put together are in an order that says nothing of the model's.
 */
static void test_torch_save_stages__what_is_put_together_has_no_order(void **state) {
    static const struct {
        const char *names[2], *pickles[2];
        bool is_ordered;
    } rows[] = {
        {{"decoder.pt", "encoder.pt"}, {PT_DICT(WEIGHT("d.w")), PT_DICT(WEIGHT("e.w"))}, false},
        {{"m-00001-of-00002.pt", "m-00002-of-00002.pt"},
         {PT_DICT(WEIGHT("d.w")), PT_DICT(WEIGHT("e.w"))},
         true},
        {{"part1.pt", "part2.pt"}, {PT_DICT(WEIGHT("l.0")), PT_DICT(WEIGHT("l.1"))}, true},
        {{"a.pt", NULL}, {PT_DICT(WEIGHT("d.w") WEIGHT("e.w")), NULL}, true},
        {{"a.pt", NULL},
         {PT_DICT(PT_TEXT("d") PT_DICT(WEIGHT("w")) PT_TEXT("e") PT_DICT(WEIGHT("w"))), NULL},
         false},
        {{"a.pt", NULL},
         {PT_OPTIMIZER(MOMENT("0", "0"), NAMED(PT_INT("0"), PT_TEXT("d.w"))), NULL},
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < 2 && rows[i].names[k] != NULL; k++) {
            write_pt(*state, rows[i].names[k], rows[i].pickles[k]);
        }
        struct opened *opened = open_good(&gcmp_format_torch_save, *state);
        if (opened->catalogue.is_ordered != rows[i].is_ordered) {
            fail_msg("row %zu: ordered %d", i, opened->catalogue.is_ordered);
        }
        close_format(opened);
        for (size_t k = 0; k < 2 && rows[i].names[k] != NULL; k++) {
            char *path = temp_path(*state, rows[i].names[k]);
            remove(path);
            free(path);
        }
    }
}

/* The order of all weights does not matter to a rank that counts its own. */
static void test_torch_save_stages__stages_in_turns_count_their_own(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("layers.0.a") OTHER("layers.2.a"), MOMENT("0", "0") MOMENT("1", "2"), BOTH),
        FILE_OF(WEIGHT("layers.1.a") OTHER("layers.3.a"), MOMENT("0", "1") MOMENT("1", "3"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    struct opened *opened = open_good(&gcmp_format_torch_save, *state);
    for (int i = 0; i < 4; i++) {
        char name[] = "layers.0.a";
        name[7] = (char)('0' + i);
        check_gradient(opened, name, (float)i);
    }
    assert_false(opened->catalogue.is_ordered);
    close_format(opened);
}

/* Of a shape that no weight of the rank has. */
static void test_torch_save_stages__a_number_that_fits_no_weight_is_refused(void **state) {
    static const char *const pickles[] = {
        FILE_OF(WEIGHT("a") OTHER("b"), MOMENT("0", "0") MOMENT("1", "1"), BOTH),
        FILE_OF(WEIGHT("c") OTHER("d"), MOMENT("0", "2") MOMENT_3("1"), BOTH),
    };
    write_ranks(*state, pickles, 2);
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED,
                       GRADCMP_NO_OFFSET, "rank1.pt",
                       "the optimizer numbers its parameters, and number 1, of shape [3], is not "
                       "of the shape of the weight at its place; save with names *");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_torch_save_stages__a_rank_counts_its_own_parameters),
        TEMP_TEST(test_torch_save_stages__peers_and_further_optimizers),
        TEMP_TEST(test_torch_save_stages__names_of_a_rank_are_its_own),
        TEMP_TEST(test_torch_save_stages__lists_without_weights_are_refused),
        TEMP_TEST(test_torch_save_stages__states_dealt_among_ranks_are_not_stages),
        TEMP_TEST(test_torch_save_stages__stages_in_turns_have_no_order),
        TEMP_TEST(test_torch_save_stages__stages_in_turns_count_their_own),
        TEMP_TEST(test_torch_save_stages__groups_of_a_rank_are_its_own),
        TEMP_TEST(test_torch_save_stages__states_may_lack_at_other_numbers),
        TEMP_TEST(test_torch_save_stages__states_of_other_numbers_are_refused),
        TEMP_TEST(test_torch_save_stages__numbers_of_a_rank_without_weights_are_refused),
        TEMP_TEST(test_torch_save_stages__names_stand_beside_numbers),
        TEMP_TEST(test_torch_save_stages__fewer_weights_than_numbers_are_refused),
        TEMP_TEST(test_torch_save_stages__a_stage_without_an_optimizer_is_told),
        TEMP_TEST(test_torch_save_stages__what_is_put_together_has_no_order),
        TEMP_TEST(test_torch_save_stages__a_number_that_fits_no_weight_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
