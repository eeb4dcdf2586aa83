/* DeepSpeed: what ranks' files and model files must not hold, and the forms that they may have. */
#include "formats/torch_save_tools.h"

#include "formats/deepspeed.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#define MODEL_FILE "mp_rank_00_model_states.pt"
#define RANK_FILE  "zero_pp_rank_0_mp_rank_00_optim_states.pt"

/* One group of "a" [2, 3] and "b" [4], ten elements, on one rank. */
#define A_AND_B          PT_TEXT("a") "(I2\nI3\nt" PT_TEXT("b") "(I4\nt"
#define SHAPES(shapes)   PT_TEXT("param_shapes") shapes
#define GOOD_SHAPES      SHAPES(PT_LIST(PT_DICT(A_AND_B)))
#define GOOD_MODEL       PT_DICT(GOOD_SHAPES)
#define MOMENT(value)    PT_INT("0") PT_DICT(PT_TEXT("exp_avg") value)
#define BASE(state)      PT_TEXT("base_optimizer_state") PT_DICT(PT_TEXT("state") state)
#define OPTIMIZER(items) PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(items))
#define GOOD_BASE        BASE(PT_DICT(MOMENT(PT_VECTOR("10"))))
/* A good rank's file, and something beside its moments. */
#define WITH(items) OPTIMIZER(GOOD_BASE items)
#define STAGE3(items)                                                                              \
    OPTIMIZER(PT_TEXT("optimizer_state_dict")                                                      \
                  PT_DICT(PT_TEXT("state") PT_DICT(MOMENT(PT_VECTOR("10")))) items)

/* A model's file, a rank's file, and why they are refused; NULL: they are read. */
struct row {
    const char *model, *rank, *file, *message;
    enum gradcmp_status code;
};

static void check_rows(const char *temp, const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        write_pt(temp, MODEL_FILE, rows[i].model);
        write_pt(temp, RANK_FILE, rows[i].rank);
        if (rows[i].message == NULL) {
            struct opened *opened = open_good(&gcmp_format_deepspeed, temp);
            assert_int_equal(count_state(opened, "exp_avg"), 2);
            close_format(opened);
            continue;
        }
        /* The byte is in the file that is named, in front of its end. */
        struct opened *opened = open_format(&gcmp_format_deepspeed, temp);
        assert_true(opened->error.offset_bytes > 0 && opened->error.offset_bytes < 4096);
        close_format(opened);
        check_refused_open(&gcmp_format_deepspeed, temp, rows[i].code, ANY_OFFSET, rows[i].file,
                           rows[i].message);
    }
}

#define RANK_ROW(rank, code, message)                                                              \
    { GOOD_MODEL, rank, RANK_FILE, message, GRADCMP_ERROR_##code }
#define GOOD_RANK(rank)                                                                            \
    { GOOD_MODEL, rank, NULL, NULL, GRADCMP_OK }
#define MODEL_ROW(model, code, message)                                                            \
    { model, WITH(""), MODEL_FILE, message, GRADCMP_ERROR_##code }
#define GOOD_MODEL_ROW(model)                                                                      \
    { model, WITH(""), NULL, NULL, GRADCMP_OK }

#define NO_STATE                                                                                   \
    "deepspeed: expected the optimizer's state of ZeRO stage 1, 2 or 3, found neither "            \
    "base_optimizer_state nor optimizer_state_dict"
#define NOT_FLAT(word) "deepspeed: " word " of group 0: expected a flat tensor of real numbers"
#define NOT_A_SLICE                                                                                \
    "deepspeed: param_slice_mappings: expected a name with start and numel of 0 or more"
#define NOT_INTEGERS       "deepspeed: expected integers of 0 or more in a list"
#define NOT_A_GROUP(found) "deepspeed: expected a number of a group as key of a state, found " found
#define SLICE(items)                                                                               \
    PT_TEXT("param_slice_mappings")                                                                \
    PT_LIST(PT_DICT(PT_TEXT("a") "cdeepspeed.utils.tensor_fragment\nfragment_address\n)R(" items   \
                                 "db"))
#define LONGS PT_TENSOR(PT_STORAGE("LongStorage", "0", "6"), "0", "(I6\nt", "(I1\nt")

static void test_deepspeed__what_a_ranks_file_must_not_hold(void **state) {
    static const struct row rows[] = {
        GOOD_RANK(WITH("")),
        RANK_ROW("(d", UNSUPPORTED, NO_STATE),
        RANK_ROW(OPTIMIZER(""), UNSUPPORTED, NO_STATE),
        RANK_ROW(PT_DICT(PT_TEXT("optimizer_state_dict") "N"), UNSUPPORTED, NO_STATE),
        RANK_ROW(OPTIMIZER(PT_TEXT("base_optimizer_state") "(d"), UNSUPPORTED,
                 "deepspeed: no state of the optimizer in the file (was it swapped out?)"),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT(PT_TEXT("a") "(d"))), CORRUPT, NOT_A_GROUP("a text")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT("I-1\n(d"))), CORRUPT, NOT_A_GROUP("an integer")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT("I1048576\n(d"))), CORRUPT, NOT_A_GROUP("an integer")),
        RANK_ROW(OPTIMIZER(BASE(PT_LIST("I1\n"))), CORRUPT, NOT_A_GROUP("nothing")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT(MOMENT(PT_MATRIX("3", "4"))))), UNSUPPORTED,
                 NOT_FLAT("exp_avg")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT(MOMENT(PT_TENSOR(PT_FLOATS, "0", "(I5\nt", "(I2\nt"))))),
                 UNSUPPORTED, NOT_FLAT("exp_avg")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT(PT_INT("0") PT_DICT(PT_TEXT("exp_avg_sq") LONGS)))),
                 UNSUPPORTED, NOT_FLAT("exp_avg_sq")),
        RANK_ROW(WITH(PT_TEXT("single_partition_of_fp32_groups") PT_LIST(PT_SCALAR)), UNSUPPORTED,
                 NOT_FLAT("fp32_param")),
        RANK_ROW(OPTIMIZER(BASE(PT_DICT(MOMENT(PT_TENSOR(PT_FLOATS, "9", "(I10\nt", "(I1\nt"))))),
                 CORRUPT, "torch: *"),
        RANK_ROW(WITH(SLICE(PT_TEXT("start") PT_INT("0"))), CORRUPT, NOT_A_SLICE),
        RANK_ROW(WITH(SLICE(PT_TEXT("start") PT_INT("-1") PT_TEXT("numel") PT_INT("6"))), CORRUPT,
                 NOT_A_SLICE),
        RANK_ROW(WITH(SLICE(PT_TEXT("start") PT_INT("0") PT_TEXT("numel") PT_INT("-6"))), CORRUPT,
                 NOT_A_SLICE),
        RANK_ROW(WITH(SLICE(PT_TEXT("start") PT_TEXT("0") PT_TEXT("numel") PT_INT("6"))), CORRUPT,
                 NOT_A_SLICE),
        RANK_ROW(WITH(PT_TEXT("param_slice_mappings") PT_LIST(PT_DICT(PT_INT("7") "(d"))), CORRUPT,
                 NOT_A_SLICE),
        RANK_ROW(WITH(PT_TEXT("partition_count") PT_LIST(PT_TEXT("1"))), CORRUPT, NOT_INTEGERS),
        RANK_ROW(WITH(PT_TEXT("partition_count") PT_LIST(PT_INT("-1"))), CORRUPT, NOT_INTEGERS),
        RANK_ROW(WITH(PT_TEXT("param_alignment_paddings") PT_LIST(PT_LIST(PT_INT("-2")))), CORRUPT,
                 NOT_INTEGERS),
        RANK_ROW(WITH(PT_TEXT("param_alignment_paddings") PT_LIST(PT_LIST("N"))), CORRUPT,
                 NOT_INTEGERS),
        RANK_ROW(STAGE3(PT_TEXT("partition_count") PT_INT("1") PT_TEXT("ds_zero_partition_groups")
                            PT_LIST(PT_DICT(PT_TEXT("partition_count") PT_INT("2")))),
                 UNSUPPORTED,
                 "deepspeed: ZeRO stage 3 with experts of their own partitions (AutoEP) is not "
                 "read; convert with ds_to_universal"),
    };
    check_rows(*state, rows, sizeof rows / sizeof *rows);
}

static void test_deepspeed__forms_of_a_ranks_file(void **state) {
    static const struct row rows[] = {
        /* states of an optimizer's own, which are not of a parameter's shape */
        GOOD_RANK(OPTIMIZER(BASE(PT_DICT(PT_INT("0") PT_DICT(
            PT_TEXT("exp_avg") PT_VECTOR("10") PT_TEXT("factor") PT_MATRIX("3", "4") PT_TEXT("step")
                PT_SCALAR PT_TEXT("count") LONGS PT_INT("7") PT_VECTOR("3")
                    PT_TEXT("beta") "F0.5\n"))))),
        GOOD_RANK(OPTIMIZER(PT_TEXT("base_optimizer_state")
                                PT_LIST(PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("10"))))),
        GOOD_RANK(WITH(PT_TEXT("partition_count") PT_INT("0"))),
        GOOD_RANK(WITH(PT_TEXT("partition_count") PT_TEXT("x"))),
        GOOD_RANK(WITH(PT_TEXT("partition_count") PT_LIST(PT_INT("1")))),
        GOOD_RANK(WITH(PT_TEXT("partition_count") "(I1\nt")),
        GOOD_RANK(WITH(PT_TEXT("single_partition_of_fp32_groups") PT_LIST(PT_VECTOR("10") "N"))),
        GOOD_RANK(WITH(PT_TEXT("param_slice_mappings") "N")),
        GOOD_RANK(WITH(PT_TEXT("param_alignment_paddings") PT_LIST(PT_LIST(PT_INT("0") "I0\n")))),
        GOOD_RANK(STAGE3(PT_TEXT("partition_count") PT_INT("1") PT_TEXT("ds_zero_partition_groups")
                             PT_LIST(PT_DICT(PT_TEXT("partition_count") PT_INT("1")) PT_DICT("")))),
    };
    check_rows(*state, rows, sizeof rows / sizeof *rows);
}

#define NOT_SHAPES                                                                                 \
    "deepspeed: param_shapes: expected names with sizes of at most 16 axes and 2^63 - 1 elements"

static void test_deepspeed__what_a_models_file_must_not_hold(void **state) {
    static const struct row rows[] = {
        MODEL_ROW(PT_LIST(GOOD_MODEL), CORRUPT,
                  "deepspeed: expected a dict of the model's state, found a list"),
        MODEL_ROW(PT_DICT(SHAPES(PT_LIST(PT_LIST("I1\n")))), CORRUPT,
                  "deepspeed: param_shapes: expected a dict of names and sizes, found a list"),
        MODEL_ROW(PT_DICT(SHAPES(PT_LIST(PT_DICT(PT_INT("1") "(I4\nt")))), CORRUPT, NOT_SHAPES),
        MODEL_ROW(PT_DICT(SHAPES(PT_LIST(PT_DICT(PT_TEXT("a") "(I-4\nt")))), CORRUPT, NOT_SHAPES),
        MODEL_ROW(PT_DICT(SHAPES(PT_LIST(PT_DICT(PT_TEXT("a") "N")))), CORRUPT, NOT_SHAPES),
        MODEL_ROW(PT_DICT(SHAPES(PT_DICT(PT_TEXT("a") "(I4611686018427387904\nI4\nt"))), CORRUPT,
                  NOT_SHAPES),
        MODEL_ROW(PT_DICT(SHAPES(PT_DICT(
                      PT_TEXT("a") "(I1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\n"
                                   "I1\nI1\nt"))),
                  CORRUPT, NOT_SHAPES),
        GOOD_MODEL_ROW(GOOD_MODEL),
        GOOD_MODEL_ROW(PT_DICT(SHAPES(PT_DICT(A_AND_B)))), /* before 0.4 */
        GOOD_MODEL_ROW(PT_DICT(SHAPES("(" PT_DICT(A_AND_B) "t"))),
        GOOD_MODEL_ROW(PT_DICT(GOOD_SHAPES PT_TEXT("ds_config") PT_LIST(""))),
        GOOD_MODEL_ROW(PT_DICT(GOOD_SHAPES PT_TEXT("dp_world_size") PT_INT("-1"))),
        GOOD_MODEL_ROW(PT_DICT(GOOD_SHAPES PT_TEXT("dp_world_size") PT_TEXT("x"))),
        GOOD_MODEL_ROW(PT_DICT(GOOD_SHAPES PT_TEXT("buffer_names") PT_LIST(PT_INT("3")))),
        GOOD_MODEL_ROW(PT_DICT(GOOD_SHAPES PT_TEXT("optimizer") PT_LIST(""))),
    };
    check_rows(*state, rows, sizeof rows / sizeof *rows);
}

static void test_deepspeed__model_files_of_two_runs_are_refused(void **state) {
#define RANKS(name, count) PT_DICT(GOOD_SHAPES PT_TEXT(name) PT_INT(count))
    static const char *const models[][2] = {
        {RANKS("dp_world_size", "1"), RANKS("dp_world_size", "2")},
        {RANKS("mp_world_size", "3"), RANKS("mp_world_size", "2")},
    };
    static const char *const messages[] = {
        "mp_rank_01_model_states.pt is of 2 data-parallel ranks, the model file of mp_rank_00 of "
        "1: they are of two runs",
        "mp_rank_01_model_states.pt is of 2 model-parallel ranks, the model file of mp_rank_00 of "
        "3: they are of two runs"};
    for (size_t i = 0; i < 2; i++) {
        write_pt(*state, MODEL_FILE, models[i][0]);
        write_pt(*state, "mp_rank_01_model_states.pt", models[i][1]);
        check_refused_open(&gcmp_format_deepspeed, *state, GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "",
                           messages[i]);
    }
}

/* Without ZeRO the model's file alone holds torch's optimizer. */
static void test_deepspeed__an_optimizer_without_zero(void **state) {
    static const char message[] =
        "deepspeed: an optimizer without ZeRO that is not in torch's form is not read";
    static const char *const models[] = {
        PT_DICT(PT_TEXT("module") PT_DICT(PT_TEXT("a") PT_VECTOR("4")) PT_TEXT("optimizer")
                    PT_DICT(PT_TEXT("state") PT_INT("1"))),
        PT_DICT(PT_TEXT("module") PT_DICT(PT_TEXT("a") PT_VECTOR("4")) PT_TEXT("optimizer")
                    PT_DICT(PT_TEXT("state") PT_DICT(""))),
        PT_DICT(PT_TEXT("module") PT_DICT(PT_TEXT("a") PT_VECTOR("4")) PT_TEXT("optimizer")
                    PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT("x") "N"))),
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        write_pt(*state, MODEL_FILE, models[i]);
        check_refused_open(&gcmp_format_deepspeed, *state, GRADCMP_ERROR_UNSUPPORTED, ANY_OFFSET,
                           MODEL_FILE, message);
    }
}

/* Buffers stand among the weights; names that are none, or of nothing, do no harm. */
static void test_deepspeed__buffers_are_no_weights(void **state) {
    write_pt(*state, MODEL_FILE,
             PT_DICT(PT_TEXT("module") PT_DICT(PT_TEXT("a") PT_MATRIX("3", "4") PT_TEXT("rope")
                                                   PT_VECTOR("4")) PT_TEXT("buffer_names")
                         PT_LIST(PT_TEXT("rope") PT_INT("3") PT_TEXT("rope") PT_TEXT("none"))
                             PT_TEXT("optimizer") PT_OPTIMIZER(
                                 PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_MATRIX("3", "4")),
                                 PT_GROUP(PT_INT("0")))));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    assert_int_equal(count_state(opened, "param"), 1);
    assert_non_null(find_stored(opened, "a", "exp_avg"));
    assert_null(find_stored(opened, "rope", "param"));
    close_format(opened);
}

static void check_number(const struct opened *opened, const char *name, double value) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(&opened->catalogue, name);
    assert_non_null(setting);
    double found =
        setting->kind == GRADCMP_SETTING_INT ? (double)setting->integer : setting->number;
    assert_true(found >= value && found <= value);
}

static void test_deepspeed__settings_are_taken_from_the_configuration(void **state) {
#define ON(name)       PT_TEXT(name) PT_DICT(PT_TEXT("enabled") "I01\n")
#define CONFIG(config) PT_DICT(GOOD_SHAPES PT_TEXT("ds_config") PT_DICT(config))
    static const struct {
        const char *model;
        enum gradcmp_dtype compute;
    } rows[] = {{CONFIG(ON("bf16")), GRADCMP_DTYPE_BFLOAT16},
                {CONFIG(ON("bfloat16")), GRADCMP_DTYPE_BFLOAT16},
                {CONFIG(ON("fp16")), GRADCMP_DTYPE_FLOAT16},
                {CONFIG(PT_TEXT("fp16") PT_DICT(PT_TEXT("enabled") "I00\n")), GRADCMP_DTYPE_NONE},
                {CONFIG(PT_TEXT("fp16") PT_DICT(PT_TEXT("enabled") "N")), GRADCMP_DTYPE_NONE}};
    write_pt(*state, RANK_FILE, WITH(""));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_pt(*state, MODEL_FILE, rows[i].model);
        struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
        assert_int_equal(opened->catalogue.compute, rows[i].compute);
        close_format(opened);
    }
    write_pt(*state, MODEL_FILE,
             PT_DICT(GOOD_SHAPES PT_TEXT("global_steps") PT_INT("-3") PT_TEXT("global_samples")
                         PT_INT("96") PT_TEXT("ds_config") PT_DICT(
                             PT_TEXT("gradient_clipping") "F0.5\n" PT_TEXT("seed") PT_INT("9")
                                 PT_TEXT("train_batch_size") PT_TEXT("auto")
                                     PT_TEXT("zero_optimization") PT_DICT(PT_TEXT("stage") PT_INT(
                                         "1") PT_TEXT("round_robin_gradients") "I01\n"))));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    assert_int_equal(opened->catalogue.iteration, -1);
    check_number(opened, "clip_grad", 0.5);
    check_number(opened, "seed", 9.0);
    check_number(opened, "zero_stage", 1.0);
    check_number(opened, "consumed_train_samples", 96.0);
    assert_null(gcmp_catalogue_setting(&opened->catalogue, "global_batch_size"));
    close_format(opened);
}

/* A pickle may name one object again and again, at three bytes each: what is made of it is bounded
 * by the bytes of the pickle. */
static char *repeat(const char *begin, const char *again, size_t times, const char *end) {
    char *text = malloc(strlen(begin) + times * strlen(again) + strlen(end) + 1);
    strcpy(text, begin);
    for (size_t i = 0; i < times; i++) {
        strcat(text, again);
    }
    return strcat(text, end);
}

static void test_deepspeed__repeated_objects_are_bounded(void **state) {
#define EIGHT                                                                                      \
    PT_TEXT("a")                                                                                   \
    "(t" PT_TEXT("b") "(t" PT_TEXT("c") "(t" PT_TEXT("d") "(t" PT_TEXT("e") "(t" PT_TEXT(          \
        "f") "(t" PT_TEXT("g") "(t" PT_TEXT("h") "(t"
    char *model = repeat("(" PT_TEXT("param_shapes") "(" PT_DICT(EIGHT) "p1\n", "g1\n", 400, "ld");
    write_pt(*state, MODEL_FILE, model);
    write_pt(*state, RANK_FILE, WITH(""));
    check_refused_open(&gcmp_format_deepspeed, *state, GRADCMP_ERROR_LIMIT, ANY_OFFSET, MODEL_FILE,
                       "deepspeed: more parameters than the pickle can hold");
    free(model);
    write_pt(*state, MODEL_FILE, GOOD_MODEL);
    char *rank = repeat("(" PT_TEXT("optimizer_state_dict") "(" PT_TEXT(
                            "base_optimizer_state") "(" PT_DICT(EIGHT) "p1\n",
                        "g1\n", 400, "ldd");
    write_pt(*state, RANK_FILE, rank);
    check_refused_open(&gcmp_format_deepspeed, *state, GRADCMP_ERROR_LIMIT, ANY_OFFSET, RANK_FILE,
                       "deepspeed: more entries than a pickle of *");
    free(rank);
    rank = repeat(
        "(" PT_TEXT("optimizer_state_dict") "(" GOOD_BASE PT_TEXT(
            "param_alignment_paddings") "(" PT_LIST("I0\nI0\nI0\nI0\nI0\nI0\nI0\nI0\n") "p1\n",
        "g1\n", 400, "ldd");
    write_pt(*state, RANK_FILE, rank);
    check_refused_open(&gcmp_format_deepspeed, *state, GRADCMP_ERROR_LIMIT, ANY_OFFSET, RANK_FILE,
                       "deepspeed: more paddings than the pickle can hold");
    free(rank);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_deepspeed__what_a_ranks_file_must_not_hold),
        TEMP_TEST(test_deepspeed__forms_of_a_ranks_file),
        TEMP_TEST(test_deepspeed__what_a_models_file_must_not_hold),
        TEMP_TEST(test_deepspeed__model_files_of_two_runs_are_refused),
        TEMP_TEST(test_deepspeed__an_optimizer_without_zero),
        TEMP_TEST(test_deepspeed__buffers_are_no_weights),
        TEMP_TEST(test_deepspeed__settings_are_taken_from_the_configuration),
        TEMP_TEST(test_deepspeed__repeated_objects_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
