/* Optimizers in other forms than torch's own, and far down in the object: none is passed over. */
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

#define STATES       PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("4"))
#define MOMENTS      PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("4") PT_TEXT("exp_avg_sq") PT_VECTOR("4"))
#define NORMAL       PT_TEXT("first") PT_OPTIMIZER(PT_TEXT("a.w") STATES, PT_GROUP(PT_TEXT("a.w")))
#define BESIDE(form) PT_DICT(NORMAL PT_TEXT("second") form)

static void test_torch_save_forms__a_second_optimizer_may_have_another_form(void **state) {
    static const char *const forms[] = {
        BESIDE(PT_DICT(PT_TEXT("state.b.w.exp_avg") PT_VECTOR("4") PT_TEXT("param_groups.b.w.lr")
                           PT_INT("1"))),
        BESIDE(PT_DICT(PT_TEXT("state") PT_DICT(PT_TEXT("b.w") STATES))),
        BESIDE(PT_DICT(PT_TEXT("state") PT_DICT(PT_TEXT("b.w") STATES) PT_TEXT("param_groups")
                           PT_DICT(PT_TEXT("lr") PT_INT("1")))),
        BESIDE(PT_DICT(PT_TEXT("b.w") STATES)),
        BESIDE(PT_DICT(PT_TEXT("b.w.exp_avg") PT_VECTOR("4"))),
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct opened *opened = open_pickle(*state, forms[i]);
        assert_int_equal(count_state(opened, "exp_avg"), 2);
        assert_non_null(find_stored(opened, "a.w", "exp_avg"));
        assert_non_null(find_stored(opened, "b.w", "exp_avg"));
        assert_int_equal(count_state(opened, "param"), 0);
        close_format(opened);
    }
}

static void test_torch_save_forms__a_flattened_optimizer_may_be_alone(void **state) {
    struct opened *opened = open_pickle(
        *state,
        PT_DICT(PT_TEXT("model") PT_DICT(PT_TEXT("b.w") PT_VECTOR("4")) PT_TEXT("optim") PT_DICT(
            PT_TEXT("state.b.w.step") PT_SCALAR PT_TEXT("state.b.w.exp_avg") PT_VECTOR("4"))));
    assert_non_null(find_stored(opened, "b.w", "exp_avg"));
    assert_non_null(find_stored(opened, "b.w", "param"));
    assert_int_equal(count_state(opened, "param"), 1);
    close_format(opened);
}

/* Beside the weights of a bare dict, what a parameter has beside a clear state is a state as well.
 */
static void test_torch_save_forms__a_flattened_optimizer_may_be_merged(void **state) {
    struct opened *opened =
        open_pickle(*state, PT_DICT(PT_TEXT("b.w") PT_VECTOR("4") PT_TEXT("state.b.w.step")
                                        PT_SCALAR PT_TEXT("state.b.w.exp_avg") PT_VECTOR("4")
                                            PT_TEXT("state.c.step") PT_VECTOR("4")));
    assert_non_null(find_stored(opened, "b.w", "exp_avg"));
    assert_non_null(find_stored(opened, "b.w", "step"));
    assert_non_null(find_stored(opened, "b.w", "param"));
    assert_non_null(find_stored(opened, "state.c.step", "param"));
    assert_int_equal(count_state(opened, "param"), 2);
    close_format(opened);
}

static void test_torch_save_forms__numbers_that_nothing_counts_are_refused(void **state) {
    check_pickle_refused(
        *state, BESIDE(PT_DICT(PT_TEXT("state") PT_DICT(PT_INT("0") STATES))),
        GRADCMP_ERROR_UNSUPPORTED,
        "torch: \"second.state.0\" is the state of a parameter that has a number, and no "
        "list param_groups beside it tells *");
    check_pickle_refused(*state, BESIDE(PT_DICT(PT_TEXT("0") MOMENTS)), GRADCMP_ERROR_UNSUPPORTED,
                         "torch: \"second.0\" is the state of a parameter that has a number, *");
    check_pickle_refused(*state, BESIDE(PT_LIST(MOMENTS)), GRADCMP_ERROR_UNSUPPORTED,
                         "torch: \"second.0\" is the state of a parameter that has a number, *");
}

/* Weights may be called what states are, and others keep averages too. */
static void test_torch_save_forms__not_all_averages_are_states(void **state) {
    struct opened *opened = open_pickle(
        *state,
        BESIDE(PT_LIST(STATES) PT_TEXT("stats") PT_DICT(PT_TEXT("reward") STATES) PT_TEXT("model")
                   PT_DICT(PT_TEXT("a.w") PT_VECTOR("4") PT_TEXT("vq.exp_avg") PT_VECTOR("4")
                               PT_TEXT("state.b.grad") PT_VECTOR("4")) PT_TEXT("teacher")
                       PT_DICT(PT_TEXT("a.w") PT_VECTOR("4") PT_TEXT("queue.momentum_buffer")
                                   PT_VECTOR("4"))));
    assert_int_equal(count_state(opened, "exp_avg"), 1);
    assert_int_equal(count_state(opened, "momentum_buffer"), 0);
    assert_non_null(find_stored(opened, "vq.exp_avg", "param"));
    assert_non_null(find_stored(opened, "state.b.grad", "param"));
    assert_int_equal(count_state(opened, "param"), 3);
    close_format(opened);
}

/* A configuration that many entries of a history hold is looked at once. */
static void test_torch_save_forms__what_holds_nothing_may_be_held_often(void **state) {
    enum { ENTRIES = 300, KEYS = 100 };
    char *pickle = malloc(1 << 16), *at = pickle;
    at += sprintf(at, "(" NORMAL "Vhistory\n((");
    for (int i = 0; i < KEYS; i++) {
        at += sprintf(at, "I%d\nN", i);
    }
    at += sprintf(at, "dp0\n");
    for (int i = 1; i < ENTRIES; i++) {
        at += sprintf(at, "g0\n");
    }
    sprintf(at, "ld");
    struct opened *opened = open_pickle(*state, pickle);
    assert_non_null(find_stored(opened, "a.w", "exp_avg"));
    close_format(opened);
    free(pickle);
}

#define BELOW(what) PT_DICT(PT_TEXT("k") what)

static void test_torch_save_forms__optimizers_and_models_far_down_are_found(void **state) {
    struct opened *opened = open_pickle(
        *state, BESIDE(BELOW(BELOW(BELOW(BELOW(PT_DICT(
                    PT_TEXT("model") PT_DICT(PT_TEXT("b.w") PT_VECTOR("4")) PT_TEXT("buffers")
                        PT_DICT(PT_TEXT("x") PT_VECTOR("4")) PT_TEXT("optimizer")
                            PT_OPTIMIZER(PT_INT("0") STATES, PT_GROUP(PT_INT("0"))))))))));
    assert_non_null(find_stored(opened, "b.w", "exp_avg"));
    assert_non_null(find_stored(opened, "b.w", "param"));
    assert_int_equal(count_state(opened, "param"), 1);
    close_format(opened);
}

/* Objects that hold each other: far down, each is looked at once. */
static void test_torch_save_forms__objects_may_hold_each_other(void **state) {
    struct opened *opened =
        open_pickle(*state, BESIDE("(dp7\n" PT_TEXT("self") "g7\ns" PT_TEXT("also") "g7\ns" PT_TEXT(
                                "third") "g7\ns" PT_TEXT("b.w") STATES "s"));
    assert_non_null(find_stored(opened, "b.w", "exp_avg"));
    close_format(opened);
}

/* torch's converter from distributed checkpoints writes numbers as texts; other texts, and those
 * that groups list as such, are names. */
static void test_torch_save_forms__numbers_may_be_texts(void **state) {
#define OTHER   PT_TENSOR(PT_FLOATS, "4", "(I4\nt", "(I1\nt")
#define WEIGHTS PT_TEXT("model") PT_DICT(PT_TEXT("a") PT_VECTOR("4") PT_TEXT("b") OTHER)
#define CONVERTED(first, second, names)                                                            \
    PT_DICT(WEIGHTS PT_TEXT("optim")                                                               \
                PT_OPTIMIZER(PT_TEXT(first) STATES PT_TEXT(second) STATES,                         \
                             PT_DICT(PT_TEXT("params") PT_LIST(PT_INT("0") PT_INT("1"))            \
                                         PT_TEXT("lr") PT_INT("1") names)))
#define NAMES PT_TEXT("param_names") PT_LIST(PT_TEXT("b") PT_TEXT("a"))
    static const struct {
        const char *pickle, *name, *key;
    } rows[] = {
        {CONVERTED("0", "1", ""), "a", "optim.state.0.exp_avg"},
        {CONVERTED("0", "1", NAMES), "b", "optim.state.0.exp_avg"},
        {CONVERTED("1", "0", NAMES), "b", "optim.state.0.exp_avg"},
        {CONVERTED("1", "0", ""), "0", "optim.state.0.exp_avg"}, /* the order tells nothing */
        {CONVERTED("0", "01", ""), "01", "optim.state.01.exp_avg"},
        {PT_DICT(WEIGHTS PT_TEXT("optim")
                     PT_OPTIMIZER(PT_TEXT("0") STATES, PT_GROUP(PT_TEXT("0")))),
         "0", "optim.state.0.exp_avg"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened *opened = open_pickle(*state, rows[i].pickle);
        const struct gradcmp_stored *stored = find_stored(opened, rows[i].name, "exp_avg");
        assert_non_null(stored);
        assert_string_equal(stored->key, rows[i].key);
        close_format(opened);
    }
}

static void test_torch_save_forms__one_name_twice_in_a_file_is_refused(void **state) {
    check_pickle_refused(*state, BESIDE(PT_DICT(PT_TEXT("a.w") STATES)), GRADCMP_ERROR_UNSUPPORTED,
                         "torch: the exp_avg of \"a.w\" is stored more than once, as "
                         "\"first.state.a.w.exp_avg\" and as \"second.a.w.exp_avg\": *");
}

/* Write a dict under two long words that holds one value in the memo under many numbers. */
static void write_long_paths(const char *temp, const char *value, size_t word_bytes) {
    enum { COUNT = 2000 };
    char *word = malloc(word_bytes + 1), *pickle = malloc(COUNT * 16 + 2 * word_bytes + 1000);
    memset(word, 'w', word_bytes);
    word[word_bytes] = '\0';
    char *at = pickle + sprintf(pickle, "(V%s\n(V%s\n(I0\n%sp0\n", word, word, value);
    for (int i = 1; i < COUNT; i++) {
        at += sprintf(at, "I%d\ng0\n", i);
    }
    sprintf(at, "ddd");
    write_pt(temp, "file.pt", pickle);
    free(word);
    free(pickle);
}

/* What is in the object many times under a long path does not make as many long texts. */
static void test_torch_save_forms__long_paths_are_bounded(void **state) {
    char *path = temp_path(*state, "file.pt");
    write_long_paths(*state, PT_VECTOR("4"), 900);
    check_refused_open(&gcmp_format_torch_save, path, GRADCMP_ERROR_LIMIT, ANY_OFFSET, "file.pt",
                       "torch: more entries than a pickle of *");
    write_long_paths(*state, PT_VECTOR("4"), 1500);
    check_refused_open(&gcmp_format_torch_save, path, GRADCMP_ERROR_LIMIT, ANY_OFFSET, "file.pt",
                       "torch: a path of 3001 bytes, at most 2048 are read");
    write_long_paths(*state, PT_DICT(PT_TEXT("a") "N"), 1500);
    check_refused_open(&gcmp_format_torch_save, path, GRADCMP_ERROR_UNSUPPORTED, ANY_OFFSET,
                       "file.pt", "torch: no state of an optimizer *");
    free(path);
}

/* One rank's names beside another rank's numbers. */
static void test_torch_save_forms__ranks_of_names_and_of_numbers(void **state) {
    write_pt(*state, "rank0.pt",
             PT_DICT(PT_TEXT("optimizer")
                         PT_OPTIMIZER(PT_TEXT("a.w") STATES, PT_GROUP(PT_TEXT("a.w")))));
    write_pt(*state, "rank1.pt",
             PT_DICT(PT_TEXT("optimizer") PT_OPTIMIZER(PT_INT("0") STATES, PT_GROUP(PT_INT("0")))));
    check_refused_open(&gcmp_format_torch_save, *state, GRADCMP_ERROR_UNSUPPORTED, ANY_OFFSET,
                       "rank1.pt", "torch: param_groups list other parameters than rank 0's, *");
}

#define PT_TRUE        "I01\n"
#define PT_FALSE       "I00\n"
#define NAMESPACE(own) "(iargparse\nNamespace\n" PT_DICT(own) "b"
#define RUN(own)       PT_DICT(NORMAL own)

/* What arguments say of the type that was computed in; of float32 they say nothing. */
static void test_torch_save_forms__arguments_tell_the_compute_type(void **state) {
    static const struct {
        const char *pickle;
        enum gradcmp_dtype compute;
    } rows[] = {
        {RUN(PT_TEXT("args") NAMESPACE(PT_TEXT("bf16") PT_TRUE PT_TEXT("fp16") PT_FALSE)),
         GRADCMP_DTYPE_BFLOAT16},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("fp16") PT_TRUE)), GRADCMP_DTYPE_FLOAT16},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("bf16") PT_TRUE PT_TEXT("fp16") PT_TRUE)),
         GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("bf16") PT_TEXT("no"))), GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("args")
                 PT_DICT(PT_TEXT("amp") PT_TRUE PT_TEXT("amp_dtype") PT_TEXT("float16"))),
         GRADCMP_DTYPE_FLOAT16},
        {RUN(PT_TEXT("args")
                 PT_DICT(PT_TEXT("amp") PT_FALSE PT_TEXT("amp_dtype") PT_TEXT("float16"))),
         GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("amp_dtype") PT_TEXT("bfloat16"))),
         GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("config")
                 PT_DICT(PT_TEXT("device") PT_TEXT("cuda:1") PT_TEXT("dtype") PT_TEXT("bfloat16"))),
         GRADCMP_DTYPE_BFLOAT16},
        {RUN(PT_TEXT("config")
                 PT_DICT(PT_TEXT("device") PT_TEXT("cpu") PT_TEXT("dtype") PT_TEXT("float16"))),
         GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("config") PT_DICT(PT_TEXT("dtype") PT_TEXT("bfloat16"))), GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("config") PT_DICT(PT_TEXT("precision") PT_TEXT("bf16")
                                           PT_TEXT("transformers_version") PT_TEXT("5"))),
         GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("precision") PT_TEXT("16-mixed"))),
         GRADCMP_DTYPE_FLOAT16},
        {RUN(PT_TEXT("args") PT_DICT(PT_TEXT("precision") PT_TEXT("32-true"))), GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("cfg") PT_DICT(PT_TEXT("common") PT_DICT(PT_TEXT("bf16") PT_TRUE))),
         GRADCMP_DTYPE_BFLOAT16},
        {RUN(PT_TEXT("args") PT_TEXT("bf16")), GRADCMP_DTYPE_NONE},
        {RUN(PT_TEXT("bf16") PT_TRUE), GRADCMP_DTYPE_NONE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened *opened = open_pickle(*state, rows[i].pickle);
        assert_int_equal(opened->catalogue.compute, rows[i].compute);
        close_format(opened);
    }
}

static void test_torch_save_forms__arguments_tell_seed_and_clipping(void **state) {
    struct opened *opened =
        open_pickle(*state, RUN(PT_TEXT("args") NAMESPACE(PT_TEXT("seed") PT_INT("7") PT_TEXT(
                                "max_grad_norm") PT_INT("2") PT_TEXT("clip_grad") "N")));
    const struct gradcmp_setting *seed = gcmp_catalogue_setting(&opened->catalogue, "seed");
    const struct gradcmp_setting *clip = gcmp_catalogue_setting(&opened->catalogue, "clip_grad");
    assert_true(seed != NULL && seed->integer == 7);
    assert_true(clip != NULL && clip->integer == 2);
    close_format(opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_torch_save_forms__a_second_optimizer_may_have_another_form),
        TEMP_TEST(test_torch_save_forms__a_flattened_optimizer_may_be_alone),
        TEMP_TEST(test_torch_save_forms__a_flattened_optimizer_may_be_merged),
        TEMP_TEST(test_torch_save_forms__numbers_that_nothing_counts_are_refused),
        TEMP_TEST(test_torch_save_forms__not_all_averages_are_states),
        TEMP_TEST(test_torch_save_forms__what_holds_nothing_may_be_held_often),
        TEMP_TEST(test_torch_save_forms__optimizers_and_models_far_down_are_found),
        TEMP_TEST(test_torch_save_forms__objects_may_hold_each_other),
        TEMP_TEST(test_torch_save_forms__numbers_may_be_texts),
        TEMP_TEST(test_torch_save_forms__one_name_twice_in_a_file_is_refused),
        TEMP_TEST(test_torch_save_forms__long_paths_are_bounded),
        TEMP_TEST(test_torch_save_forms__ranks_of_names_and_of_numbers),
        TEMP_TEST(test_torch_save_forms__arguments_tell_the_compute_type),
        TEMP_TEST(test_torch_save_forms__arguments_tell_seed_and_clipping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
