/* Files of torch.save: what optimizers must not say of their parameters, steps of every type, and
 * what names of files say of ranks and parts. */
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

#define MOMENT PT_TEXT("exp_avg") PT_MATRIX("3", "4")
#define STATE0 PT_INT("0") PT_DICT(MOMENT)
#define GROUPS(items)                                                                              \
    PT_DICT(PT_TEXT("state") PT_DICT(STATE0) PT_TEXT("param_groups") PT_LIST(items))
#define NAMED(params, names)                                                                       \
    GROUPS(PT_DICT(PT_TEXT("params") PT_LIST(params) PT_TEXT("param_names") names))
#define NO_PARAMS(found) "torch: expected a list \"params\" in a group of parameters, found " found
#define NO_PARAM(found)  "torch: expected a number or a name of a parameter, found " found
#define NO_VALUES(found) "torch: expected a dict as state of a parameter, found " found

/* Each is refused as damage, at a byte of the pickle. */
static void test_torch_save__what_an_optimizer_must_not_say(void **state) {
    static const struct {
        const char *pickle, *message;
    } rows[] = {
        {GROUPS(PT_DICT(PT_TEXT("params") "N")), NO_PARAMS("None")},
        {GROUPS(PT_DICT(PT_TEXT("params") PT_TEXT("0"))), NO_PARAMS("a text")},
        {GROUPS("N"), NO_PARAMS("nothing")},
        {GROUPS(PT_GROUP("F0.5\n")), NO_PARAM("a float")},
        {GROUPS(PT_GROUP("(I0\nt")), NO_PARAM("a tuple")},
        {NAMED(PT_INT("0"), PT_LIST(PT_INT("7"))),
         "torch: param_names: expected the name of parameter 0, found an integer"},
        {NAMED(PT_INT("0"), PT_LIST("N")),
         "torch: param_names: expected the name of parameter 0, found None"},
        {NAMED(PT_INT("0"), PT_INT("7")), "torch: a group of 1 parameters with 0 names"},
        {NAMED(PT_INT("0") PT_INT("0"), PT_LIST(PT_TEXT("a") PT_TEXT("b"))),
         "torch: param_groups list parameter 0 twice"},
        {PT_OPTIMIZER(STATE0 "N" PT_DICT(MOMENT), PT_GROUP(PT_INT("0"))), NO_PARAM("None")},
        {PT_OPTIMIZER(STATE0 "F0.5\n" PT_DICT(MOMENT), PT_GROUP(PT_INT("0"))), NO_PARAM("a float")},
        {PT_OPTIMIZER(STATE0 PT_INT("1") "N", PT_GROUP(PT_INT("0") PT_INT("1"))),
         NO_VALUES("None")},
        {PT_OPTIMIZER(STATE0 PT_INT("1") PT_VECTOR("3"), PT_GROUP(PT_INT("0") PT_INT("1"))),
         NO_VALUES("an object")},
        {PT_OPTIMIZER(STATE0 PT_TEXT("a") PT_VECTOR("3"), PT_GROUP(PT_INT("0"))),
         NO_VALUES("an object")},
        {PT_OPTIMIZER(STATE0 PT_INT("-1") PT_DICT(MOMENT), PT_GROUP(PT_INT("0"))),
         "torch: a state of parameter -1, which no group lists"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_pt(*state, "file.pt", rows[i].pickle);
        char *path = temp_path(*state, "file.pt");
        struct opened *opened = open_format(&gcmp_format_torch_save, path);
        assert_true(opened->error.offset_bytes > 30 &&
                    opened->error.offset_bytes < 100 + strlen(rows[i].pickle));
        close_format(opened);
        check_refused_open(&gcmp_format_torch_save, path, GRADCMP_ERROR_CORRUPT, ANY_OFFSET,
                           "file.pt", rows[i].message);
        free(path);
    }
}

static void test_torch_save__what_an_optimizer_may_keep_beside(void **state) {
    static const char *const pickles[] = {
        PT_OPTIMIZER(STATE0 PT_TEXT("history") PT_LIST(""), PT_GROUP(PT_INT("0"))),
        PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT PT_INT("4") PT_VECTOR("3") PT_TEXT("step") "N"),
                     PT_GROUP(PT_INT("0"))),
        PT_OPTIMIZER(STATE0, PT_DICT(PT_TEXT("params") "(I0\nt" PT_TEXT("param_names") "N")),
        PT_OPTIMIZER(STATE0, PT_GROUP(PT_INT("0") PT_INT("1"))), /* 1 has no state yet */
    };
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        write_pt(*state, "file.pt", pickles[i]);
        char *path = temp_path(*state, "file.pt");
        struct opened *opened = open_good(&gcmp_format_torch_save, path);
        assert_non_null(find_stored(opened, "0", "exp_avg"));
        assert_int_equal(opened->catalogue.iteration, -1);
        close_format(opened);
        free(path);
    }
}

/* --- steps --- */

static int64_t iteration_of(const char *temp, const char *class, const void *bytes, size_t count,
                            const char *order) {
    struct zip_writer *writer = writer_make();
    char pickle[2048];
    snprintf(pickle, sizeof pickle,
             PT_OPTIMIZER(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("12") PT_TEXT(
                              "step") PT_TENSOR(PT_STORAGE("%s", "1", "1"), "0", "(t", "(t")),
                          PT_GROUP(PT_INT("0"))) ".",
             class);
    float values[12];
    fill_floats(values, 12);
    put_record(writer, "archive/data.pkl", pickle, strlen(pickle));
    put_record(writer, "archive/byteorder", order, strlen(order));
    put_record(writer, "archive/data/0", values, sizeof values);
    put_record(writer, "archive/data/1", bytes, count);
    put_end(writer);
    temp_file(temp, "file.pt", writer->bytes, writer->count);
    writer_free(writer);
    char *path = temp_path(temp, "file.pt");
    struct opened *opened = open_good(&gcmp_format_torch_save, path);
    int64_t iteration = opened->catalogue.iteration;
    close_format(opened);
    free(path);
    return iteration;
}

static void test_torch_save__a_step_of_any_type_and_byte_order(void **state) {
    static const struct {
        const char *class;
        const char *bytes; /* little-endian */
        size_t count;
        int64_t step;
    } rows[] = {
        {"FloatStorage", "\0\0\x40\x41", 4, 12},
        {"DoubleStorage", "\0\0\0\0\0\0\x2a\x40", 8, 13},
        {"LongStorage", "\x0e\0\0\0\1\0\0\0", 8, 4294967310},
        {"IntStorage", "\x0f\0\0\0", 4, 15},
        {"IntStorage", "\xff\xff\xff\xff", 4, -1},
        {"FloatStorage", "\0\0\xc0\x7f", 4, -1},          /* NaN */
        {"FloatStorage", "\0\0\x48\x41", 4, -1},          /* 12.5 */
        {"DoubleStorage", "\0\0\0\0\0\0\x50\x43", 8, -1}, /* 2^54, past what counts */
        {"ShortStorage", "\x10\0", 2, -1},                /* a type that no step has */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char swapped[8];
        for (size_t k = 0; k < rows[i].count; k++) {
            swapped[k] = rows[i].bytes[rows[i].count - 1 - k];
        }
        int64_t little =
            iteration_of(*state, rows[i].class, rows[i].bytes, rows[i].count, "little");
        int64_t big = iteration_of(*state, rows[i].class, swapped, rows[i].count, "big");
        if (little != rows[i].step || big != rows[i].step) {
            fail_msg("row %zu: expected %lld, found %lld and %lld", i, (long long)rows[i].step,
                     (long long)little, (long long)big);
        }
    }
}

/* --- names of files --- */

/* Write a file of one weight under each name: of its own, or, for ranks' files, the same one. */
static void write_files(const char *temp, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        char pickle[512];
        bool is_rank = strstr(names[i], "rank") != NULL;
        snprintf(pickle, sizeof pickle, PT_DICT(PT_TEXT("w%zu.weight") PT_VECTOR("4")),
                 is_rank ? 0 : i);
        write_pt(temp, names[i], pickle);
    }
}

static void remove_files(const char *temp, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        char *path = temp_path(temp, names[i]);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
}

static void test_torch_save__names_tell_ranks_and_parts(void **state) {
    static const struct {
        const char *names[5];
        const char *message; /* NULL: all is there */
        enum gradcmp_status code;
    } rows[] = {
        {{"m_rank_0.pt", "m_rank_1.pt"}, NULL, GRADCMP_OK},
        {{"m_rank0.bin", "m_rank1.bin"}, NULL, GRADCMP_OK},
        {{"m-rank-0.pt", "m-rank-1.pt"}, NULL, GRADCMP_OK},
        {{"m_rank_9.pt", "m_rank_10.pt"},
         "incomplete: m_rank_9.pt is there, but not the file of rank 8",
         GRADCMP_ERROR_CORRUPT},
        {{"m_rank_1.pt", "n_rank_0.pt"},
         "incomplete: m_rank_1.pt is there, but not the file of rank 0",
         GRADCMP_ERROR_CORRUPT},
        {{"m_rank_1048576.pt", "m_rank_0.pt"},
         "m_rank_1048576.pt: at most 1048576 ranks are read",
         GRADCMP_ERROR_LIMIT},
        {{"world_size_2_rank_0.pt"},
         "incomplete: world_size_2_rank_0.pt is one of 2 ranks' files, 1 are there",
         GRADCMP_ERROR_CORRUPT},
        {{"world_size_0_rank_0.pt"}, NULL, GRADCMP_OK},
        {{"world_size_x_rank_0.pt"}, NULL, GRADCMP_OK},
        {{"world_size_12345678_rank_0.pt"}, NULL, GRADCMP_OK},
        {{"0.pt", "1.pt", "10.pt", "01.pt"}, NULL, GRADCMP_OK}, /* only numbers: no ranks */
        {{"m_00000001.pt", "m_1.pt", "m_2.pt"}, NULL, GRADCMP_OK},
        {{"p-1-of-2.pt", "p-2-of-2.pt"}, NULL, GRADCMP_OK},
        {{"p-9-of-10.pt", "p-10-of-10.pt"},
         "incomplete: p-9-of-10.pt is there, but not part 1",
         GRADCMP_ERROR_CORRUPT},
        {{"p-1-of-2.pt", "q-1-of-1.pt"},
         "incomplete: p-1-of-2.pt is there, but not part 2",
         GRADCMP_ERROR_CORRUPT},
        {{"p-1-of-3.pt", "p-3-of-3.pt"},
         "incomplete: p-3-of-3.pt is there, but not part 2",
         GRADCMP_ERROR_CORRUPT},
        {{"p-1-of-2.pt", "p-2-of-3.pt"},
         "incomplete: p-1-of-2.pt is there, but not part 2",
         GRADCMP_ERROR_CORRUPT},
        {{"p-1-of-1.pt", "q-1-of-1.pt"}, NULL, GRADCMP_OK},
        /* none of these is a part */
        {{"p-x-of-2.pt", "-of-2.pt", "p1-of-2.pt", "1-of-2.pt"}, NULL, GRADCMP_OK},
        {{"p-1-of-.pt", "p-1-of-2x.pt", "p-12345678-of-2.pt", "p-1-of-12345678.pt"},
         NULL,
         GRADCMP_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_files(*state, rows[i].names);
        if (rows[i].message == NULL) {
            close_format(open_good(&gcmp_format_torch_save, *state));
        } else {
            check_refused_open(&gcmp_format_torch_save, *state, rows[i].code, GRADCMP_NO_OFFSET, "",
                               rows[i].message);
        }
        remove_files(*state, rows[i].names);
    }
}

/* --- objects that a pickle holds again and again, and names without end --- */

static char *repeat(const char *begin, const char *again, size_t times, const char *end) {
    char *text = malloc(strlen(begin) + times * strlen(again) + strlen(end) + 1);
    char *at = stpcpy(text, begin);
    for (size_t i = 0; i < times; i++) {
        at = stpcpy(at, again);
    }
    strcpy(at, end);
    return text;
}

static void check_limit(const char *temp, char *pickle, const char *message) {
    write_pt(temp, "file.pt", pickle);
    char *path = temp_path(temp, "file.pt");
    check_refused_open(&gcmp_format_torch_save, path, GRADCMP_ERROR_LIMIT, ANY_OFFSET, "file.pt",
                       message);
    free(path);
    free(pickle);
}

static void test_torch_save__looking_is_bounded(void **state) {
#define TEN "I0\nI1\nI2\nI3\nI4\nI5\nI6\nI7\nI8\nI9\n"
    static const char entries[] = "torch: more entries than a pickle of *";
    check_limit(*state,
                repeat("(" PT_TEXT("b") PT_VECTOR("3") PT_TEXT("a") "(" PT_DICT(TEN) "p1\n", "g1\n",
                       250, "ld"),
                entries);
    /* one group's list of names, which are no entries, in many groups */
    check_limit(*state,
                repeat("(" PT_TEXT("state") "(" STATE0 "d" PT_TEXT("param_groups") "(" PT_GROUP(
                           PT_TEXT("a") PT_TEXT("b") PT_TEXT("c") PT_TEXT("d") PT_TEXT("e")
                               PT_TEXT("f") PT_TEXT("g")) "p1\n",
                       "g1\n", 900, "ld"),
                entries);
    check_limit(*state, repeat("(V", "x", 2049, "\n" PT_VECTOR("3") "d"),
                "torch: a name of 2049 bytes, at most 2048 are read");
}

/* However long a list is, what it holds at its end is found, or it is said that it was not looked
 * at. */
static void test_torch_save__long_lists_are_read_to_their_end(void **state) {
    char *pickle = repeat("(" PT_TEXT("optimizers") "(", "N", 5000,
                          PT_OPTIMIZER(STATE0, PT_GROUP(PT_INT("0"))) "ld");
    write_pt(*state, "file.pt", pickle);
    free(pickle);
    char *path = temp_path(*state, "file.pt");
    struct opened *opened = open_good(&gcmp_format_torch_save, path);
    assert_non_null(find_stored(opened, "0", "exp_avg"));
    close_format(opened);
    free(path);
}

static void test_torch_save__any_number_of_dicts_is_read(void **state) {
    char *pickle =
        repeat("(" PT_TEXT("layers") "(", PT_DICT(PT_TEXT("w") PT_VECTOR("3")), 300, "ld");
    struct opened *opened = open_pickle(*state, pickle);
    assert_int_equal(count_state(opened, "param"), 300);
    assert_non_null(find_stored(opened, "layers.299.w", "param"));
    close_format(opened);
    free(pickle);
    /* one dict that stands in many places under a long path */
    char start[900];
    memset(start, 'w', sizeof start);
    memcpy(start, "(V", 2);
    memcpy(start + sizeof start - 3, "\n(", 3);
    pickle = malloc(1 << 16);
    char *at =
        pickle + sprintf(pickle, "%.900sI0\n" PT_DICT(PT_TEXT("w") PT_VECTOR("3")) "p0\n", start);
    for (int i = 1; i < 2000; i++) {
        at += sprintf(at, "I%d\ng0\n", i);
    }
    strcpy(at, "dd");
    check_limit(*state, pickle, "torch: more entries than a pickle of *");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_torch_save__what_an_optimizer_must_not_say),
        TEMP_TEST(test_torch_save__what_an_optimizer_may_keep_beside),
        TEMP_TEST(test_torch_save__a_step_of_any_type_and_byte_order),
        TEMP_TEST(test_torch_save__names_tell_ranks_and_parts),
        TEMP_TEST(test_torch_save__looking_is_bounded),
        TEMP_TEST(test_torch_save__long_lists_are_read_to_their_end),
        TEMP_TEST(test_torch_save__any_number_of_dicts_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
