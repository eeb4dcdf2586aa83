/* DeepSpeed: parameters of several model-parallel ranks, as parts or as copies. */
#include "formats/torch_save_tools.h"

#include "formats/deepspeed.h"

#define SAMPLES GCMP_TEST_DATA "/deepspeed/"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#define DEGREES(tp, pp)                                                                            \
    PT_TEXT("checkpoint_parallel_dimensions")                                                      \
    PT_DICT(PT_TEXT("tp_degree") PT_INT(tp) PT_TEXT("pp_degree") PT_INT(pp))
#define MODULE(weights) PT_TEXT("module") PT_DICT(weights)
#define SHAPES(shapes)  PT_TEXT("param_shapes") PT_LIST(PT_DICT(shapes))
#define OPTIMIZER                                                                                  \
    PT_TEXT("optimizer")                                                                           \
    PT_OPTIMIZER(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("4")), PT_GROUP(PT_INT("0")))
/* Stage 1 of ZeRO: the whole group in one rank's file. */
#define PART(count)                                                                                \
    PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT("base_optimizer_state") PT_DICT(       \
        PT_TEXT("state") PT_DICT(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR(count))))        \
                                                        PT_TEXT("partition_count")                 \
                                                            PT_LIST(PT_INT("1"))))

static void check_refused(const char *temp, const char *message) {
    check_refused_open(&gcmp_format_deepspeed, temp, GRADCMP_ERROR_UNSUPPORTED, ANY_OFFSET, "",
                       message);
}

/* Two ranks with a half of "a" each; `more` stands in both of their files. */
#define HALVES(more) PT_DICT(MODULE(PT_TEXT("a") PT_VECTOR("4")) more)

static void test_deepspeed__parts_without_zero_are_refused_with_a_way_out(void **state) {
    static const char *const models[] = {HALVES(OPTIMIZER), HALVES(OPTIMIZER DEGREES("2", "1"))};
    static const char *const messages[] = {
        "tensor parallelism (weights of one name in the files of several mp_ranks): how its parts "
        "are put together is not in the files; save with ZeRO stage 1 and convert with "
        "ds_to_universal, which takes no optimizer without ZeRO",
        "tensor parallelism (degree 2): how its parts are put together is not in the files; save "
        "with ZeRO stage 1*"};
    for (size_t i = 0; i < 2; i++) {
        write_pt(*state, "mp_rank_00_model_states.pt", models[i]);
        write_pt(*state, "mp_rank_01_model_states.pt", models[i]);
        check_refused(*state, messages[i]);
    }
    write_pt(*state, "zero_pp_rank_0_mp_rank_00_optim_states.pt", PART("4"));
    check_refused(*state, "tensor parallelism (degree 2): how its parts are put together is not in "
                          "the files; convert with ds_to_universal");
}

static void write_universal(const char *temp) {
    temp_folder(temp, "zero");
    temp_folder(temp, "zero/a");
    write_pt(temp, "zero/a/exp_avg.pt", PT_DICT(PT_TEXT("param") PT_VECTOR("8")));
    write_pt(temp, "zero/a/fp32.pt", PT_DICT(PT_TEXT("param") PT_VECTOR("8")));
}

static void check_whole(const char *temp) {
    struct opened *opened = open_good(&gcmp_format_deepspeed, temp);
    assert_int_equal(count_state(opened, "param"), 0);
    assert_int_equal(find_stored(opened, "a", "exp_avg")->shape[0], 8);
    assert_int_equal(find_stored(opened, "a", "fp32_param")->shape[0], 8);
    assert_int_equal(opened->catalogue.note_count, 1);
    assert_text_contains(opened->catalogue.notes[0],
                         "weights are taken from zero/*/fp32.pt, where they are whole");
    close_format(opened);
}

static void test_deepspeed__a_universal_folder_has_the_whole_of_parts(void **state) {
    write_universal(*state);
    write_pt(*state, "mp_rank_00_model_states.pt", HALVES(SHAPES(PT_TEXT("a") "(I4\nt")));
    write_pt(*state, "mp_rank_01_model_states.pt", HALVES(SHAPES(PT_TEXT("a") "(I4\nt")));
    check_whole(*state);
    /* one file is left, which says that it is one of two */
    write_pt(*state, "mp_rank_00_model_states.pt", HALVES(DEGREES("2", "1")));
    char *path = temp_path(*state, "mp_rank_01_model_states.pt");
    assert_int_equal(unlink(path), 0);
    free(path);
    check_whole(*state);
}

static void test_deepspeed__stages_copies_tell_their_stage(void **state) {
    static const char model[] =
        PT_DICT(SHAPES(PT_TEXT("tied_modules.e.w") "(I4\nt") DEGREES("1", "2"));
    for (int m = 0; m < 2; m++) {
        char name[64];
        snprintf(name, sizeof name, "mp_rank_0%d_model_states.pt", m);
        write_pt(*state, name, model);
        snprintf(name, sizeof name, "zero_pp_rank_0_mp_rank_0%d_optim_states.pt", m);
        write_pt(*state, name, PART("4"));
    }
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    const struct gradcmp_stored *stored = find_stored(opened, "tied_modules.e.w", "exp_avg");
    assert_int_equal(stored->piece_count, 2);
    for (int m = 0; m < 2; m++) {
        assert_int_equal(stored->pieces[m].coords->pp, m);
    }
    close_format(opened);
}

static void check_layer(const struct opened *opened, const char *name, uint32_t layer) {
    static const char *const states[] = {"param", "exp_avg", "fp32_param"};
    for (size_t i = 0; i < 3; i++) {
        const struct gradcmp_stored *stored = find_stored(opened, name, states[i]);
        assert_non_null(stored);
        assert_int_equal(stored->stated_layer, 1 + layer);
    }
}

static void test_deepspeed__modules_of_a_pipeline_are_layers(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_deepspeed, SAMPLES "pipeline/global_step1");
    assert_int_equal(opened->catalogue.layers, 2);
    check_layer(opened, "0.words.weight", 0);
    check_layer(opened, "1.up.bias", 1);
    check_layer(opened, "3.words.weight", 3);
    close_format(opened);
    opened = open_good(&gcmp_format_deepspeed, SAMPLES "stage2_groups/global_step1");
    assert_int_equal(opened->catalogue.layers, 0);
    assert_int_equal(find_stored(opened, "embed.weight", "exp_avg")->stated_layer, 0);
    close_format(opened);
}

/* Its weights are in the file of its first place. */
static void test_deepspeed__a_tied_module_has_its_weights_and_is_layer_0(void **state) {
    static const char *const samples[] = {SAMPLES "tied_one/global_step1",
                                          SAMPLES "tied_two/global_step1"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct opened *opened = open_good(&gcmp_format_deepspeed, samples[i]);
        check_layer(opened, "tied_modules.embed.words.weight", 0);
        check_layer(opened, "1.norm.bias", 1);
        assert_null(find_stored(opened, "0.words.weight", "param"));
        close_format(opened);
    }
}

/* Two places, or two tied modules, with one rest of a name: nothing tells which is which. */
static void test_deepspeed__what_could_be_tied_twice_keeps_its_name(void **state) {
#define TIED(key) PT_TEXT("tied_modules." key ".w") "(I4\nt"
    static const char *const shapes[] = {PT_DICT(SHAPES(TIED("e"))),
                                         PT_DICT(SHAPES(TIED("e") TIED("f")))};
    write_pt(*state, "layer_00-model_states.pt", PT_DICT(PT_TEXT("w") PT_VECTOR("4")));
    for (size_t i = 0; i < 2; i++) {
        write_pt(*state, "mp_rank_00_model_states.pt", shapes[i]);
        write_pt(*state, "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                 i == 0 ? PART("4") : PART("8"));
        struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
        assert_true((find_stored(opened, "tied_modules.e.w", "param") != NULL) == (i == 0));
        close_format(opened);
    }
    write_pt(*state, "mp_rank_00_model_states.pt", shapes[0]);
    write_pt(*state, "layer_02-model_states.pt", PT_DICT(PT_TEXT("w") PT_VECTOR("4")));
    write_pt(*state, "zero_pp_rank_0_mp_rank_00_optim_states.pt", PART("4"));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    assert_non_null(find_stored(opened, "2.w", "param"));
    assert_null(find_stored(opened, "tied_modules.e.w", "param"));
    close_format(opened);
}

#define MOMENT(number, count) PT_INT(number) PT_DICT(PT_TEXT("exp_avg") PT_VECTOR(count))
#define STAGE(moments, numbers)                                                                    \
    PT_DICT(PT_TEXT("optimizer") PT_OPTIMIZER(moments, PT_GROUP(numbers)) DEGREES("1", "2"))

/* Two stages without ZeRO: module 0 of four elements in the first, module 1 of `second`. */
static struct opened *open_stages(const char *temp, const char *second, const char *last) {
    write_pt(temp, "layer_00-model_states.pt", PT_DICT(PT_TEXT("w") PT_VECTOR("4")));
    write_pt(temp, "layer_01-model_states.pt", second);
    write_pt(temp, "mp_rank_00_model_states.pt", STAGE(MOMENT("0", "4"), PT_INT("0")));
    write_pt(temp, "mp_rank_01_model_states.pt", last);
    return open_good(&gcmp_format_deepspeed, temp);
}

static void test_deepspeed__copies_without_names_stand_in_front(void **state) {
    static const char second[] = PT_DICT(PT_TEXT("v") PT_VECTOR("3"));
    struct opened *opened = open_stages(
        *state, second, STAGE(MOMENT("0", "4") MOMENT("1", "3"), PT_INT("0") PT_INT("1")));
    const struct gradcmp_stored *stored = find_stored(opened, "0.w", "exp_avg");
    assert_int_equal(stored->piece_count, 2);
    for (int m = 0; m < 2; m++) {
        assert_int_equal(stored->pieces[m].coords->pp, m);
        assert_int_equal(stored->pieces[m].coords->dp, -1);
    }
    stored = find_stored(opened, "1.v", "exp_avg");
    assert_int_equal(stored->piece_count, 1);
    assert_null(stored->pieces[0].coords);
    assert_null(opened->catalogue.number_groups);
    close_format(opened);
}

static void check_unsolved(struct opened *opened) {
    assert_null(find_stored(opened, "0.w", "exp_avg"));
    assert_non_null(opened->catalogue.number_groups);
    assert_text_contains(opened->catalogue.notes[0], "each stage numbers its copy of a tied one");
    close_format(opened);
}

static void test_deepspeed__copies_that_do_not_fit_stay_numbers(void **state) {
    static const char second[] = PT_DICT(PT_TEXT("v") PT_VECTOR("3"));
    static const char *const lasts[] = {
        STAGE(MOMENT("0", "3") MOMENT("1", "3"), PT_INT("0") PT_INT("1")),
        STAGE(MOMENT("0", "3") MOMENT("1", "4"), PT_INT("0") PT_INT("1")),
        STAGE(MOMENT("0", "4") MOMENT("1", "4") MOMENT("2", "3"),
              PT_INT("0") PT_INT("1") PT_INT("2")),
        STAGE(MOMENT("1", "3"), PT_INT("0") PT_INT("1")),
    };
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++) {
        check_unsolved(open_stages(*state, second, lasts[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_deepspeed__parts_without_zero_are_refused_with_a_way_out),
        TEMP_TEST(test_deepspeed__a_universal_folder_has_the_whole_of_parts),
        TEMP_TEST(test_deepspeed__stages_copies_tell_their_stage),
        cmocka_unit_test(test_deepspeed__modules_of_a_pipeline_are_layers),
        cmocka_unit_test(test_deepspeed__a_tied_module_has_its_weights_and_is_layer_0),
        TEMP_TEST(test_deepspeed__what_could_be_tied_twice_keeps_its_name),
        TEMP_TEST(test_deepspeed__copies_without_names_stand_in_front),
        TEMP_TEST(test_deepspeed__copies_that_do_not_fit_stay_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
