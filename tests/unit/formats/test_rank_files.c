/* Names of ranks' files, and which of them there must be. */
#include "temp_tools.h"

#include "base/dir.h"
#include "formats/rank_files.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void test_rank_name_read__forms(void **state) {
    (void)state;
    static const struct {
        const char *name, *suffix;
        unsigned count; /* 0: no such name */
        uint32_t numbers[3];
    } cases[] = {
        {"mp_rank_00", "", 1, {0, 0, 0}},
        {"mp_rank_07_012", "", 2, {7, 12, 0}},
        {"mp_rank_07_012_003.pth", ".pth", 3, {7, 12, 3}},
        {"mp_rank_128_1024", "", 2, {128, 1024, 0}},
        {"mp_rank_0", "", 0, {0}},
        {"mp_rank_007", "", 0, {0}},
        {"mp_rank_00_01", "", 0, {0}},
        {"mp_rank_00_0012", "", 0, {0}},
        {"mp_rank_00_000_000_000", "", 0, {0}},
        {"mp_rank_00.pth", "", 0, {0}},
        {"mp_rank_00", ".pth", 0, {0}},
        {"mp_rank_00_", "", 0, {0}},
        {"mp_rank_", "", 0, {0}},
        {"mp_rank_00_model_states.pt", "", 0, {0}},
        {"mp_rank_1234567", "", 0, {0}},
        {"xmp_rank_00", "", 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t numbers[3];
        unsigned count;
        bool is_rank = gcmp_rank_name_read(cases[i].name, cases[i].suffix, numbers, &count);
        if (is_rank != (cases[i].count != 0)) {
            fail_msg("%s: %s", cases[i].name, is_rank ? "is read" : "is not read");
        }
        if (is_rank) {
            assert_int_equal(count, cases[i].count);
            assert_memory_equal(numbers, cases[i].numbers, sizeof numbers);
        }
    }
}

/* One folder of empty files under way. */
struct listing {
    struct gcmp_dir *dir;
    struct gcmp_rank_files files;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

/* Make files named "mp_rank_" and each word of `names`, and list them. */
static struct listing list_files(const char *temp, const char *names) {
    struct listing listing = {.status = GRADCMP_OK};
    char *copy = strdup(names), *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char name[64];
        snprintf(name, sizeof name, "mp_rank_%s.pth", word);
        temp_file(temp, name, "", 0);
    }
    temp_file(temp, "other.txt", "", 0);
    free(copy);
    assert_int_equal(gcmp_dir_open(temp, &listing.dir, NULL), GRADCMP_OK);
    listing.status = gcmp_rank_files_list(listing.dir, ".pth", &listing.files, &listing.error);
    return listing;
}

static void free_listing(struct listing *listing) {
    gcmp_rank_files_free(&listing->files);
    gcmp_dir_close(listing->dir);
}

static void place(struct listing *listing, enum gcmp_rank_second second,
                  struct gradcmp_parallel stated) {
    assert_int_equal(listing->status, GRADCMP_OK);
    listing->status =
        gcmp_rank_files_place(&listing->files, second, &stated, listing->dir, &listing->error);
}

static void expect_sizes(const struct listing *listing, uint32_t tp, uint32_t pp, uint32_t ep,
                         uint32_t etp) {
    if (listing->status != GRADCMP_OK) {
        fail_msg("%s", listing->error.message);
    }
    assert_int_equal(listing->files.tp, tp);
    assert_int_equal(listing->files.pp, pp);
    assert_int_equal(listing->files.ep, ep);
    assert_int_equal(listing->files.etp, etp);
}

static void expect_corrupt(const struct listing *listing, const char *message) {
    assert_int_equal(listing->status, GRADCMP_ERROR_CORRUPT);
    assert_non_null(strstr(listing->error.message, message));
    assert_string_not_equal(listing->error.path, "");
}

static const struct gradcmp_parallel NOTHING = {.tp = 0};

static void test_rank_files__one_number_is_tensor_parallel(void **state) {
    struct listing listing = list_files(*state, "00 01 02 03");
    place(&listing, GCMP_SECOND_IS_STAGE, NOTHING);
    expect_sizes(&listing, 4, 1, 1, 4);
    assert_int_equal(listing.files.list[3].tp, 3);
    assert_int_equal(listing.files.list[3].etp, 3);
    free_listing(&listing);
}

static void test_rank_files__two_numbers_mean_what_is_said(void **state) {
    struct listing listing = list_files(*state, "00_000 00_001 01_000 01_001");
    place(&listing, GCMP_SECOND_IS_STAGE, NOTHING);
    expect_sizes(&listing, 2, 2, 1, 2);
    assert_int_equal(listing.files.list[1].tp, 1); /* sorted by stage first */
    assert_int_equal(listing.files.list[1].pp, 0);
    assert_int_equal(listing.files.list[1].listed, 2);
    free_listing(&listing);
    listing = list_files(*state, "");
    place(&listing, GCMP_SECOND_IS_EXPERTS, NOTHING);
    expect_sizes(&listing, 2, 1, 2, 2);
    free_listing(&listing);
}

static void test_rank_files__ranks_of_experts_go_round(void **state) {
    struct listing listing = list_files(*state, "00_000_000 00_000_002 01_000_001 01_000_003");
    place(&listing, GCMP_SECOND_IS_STAGE, NOTHING);
    expect_sizes(&listing, 2, 1, 4, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(listing.files.list[i].etp, 0);
    }
    free_listing(&listing);
}

static void test_rank_files__experts_split_less_than_the_rest(void **state) {
    /* tp 4, etp 2, ep 4: (0,0) (1,0) (2,1) (3,1) (0,2) (1,2) (2,3) (3,3) */
    struct listing listing =
        list_files(*state, "00_000 01_000 02_001 03_001 00_002 01_002 02_003 03_003");
    place(&listing, GCMP_SECOND_IS_EXPERTS, NOTHING);
    expect_sizes(&listing, 4, 1, 4, 2);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(listing.files.list[i].etp, listing.files.list[i].tp % 2);
    }
    free_listing(&listing);
}

static void test_rank_files__missing_rank_is_named(void **state) {
    struct listing listing = list_files(*state, "00_000 00_001 01_000");
    place(&listing, GCMP_SECOND_IS_STAGE, NOTHING);
    expect_corrupt(&listing, "incomplete: mp_rank_01_001 is missing (3 files");
    free_listing(&listing);
}

static void test_rank_files__missing_last_rank_is_known_from_arguments(void **state) {
    struct listing listing = list_files(*state, "00 01 02");
    place(&listing, GCMP_SECOND_IS_STAGE, (struct gradcmp_parallel){.tp = 4, .pp = 1});
    expect_corrupt(&listing, "incomplete: mp_rank_03 is missing");
    free_listing(&listing);
}

static void test_rank_files__missing_first_rank(void **state) {
    struct listing listing = list_files(*state, "01 02");
    place(&listing, GCMP_SECOND_IS_STAGE, NOTHING);
    expect_corrupt(&listing, "incomplete: mp_rank_00 is missing");
    free_listing(&listing);
}

static void test_rank_files__one_too_many(void **state) {
    struct listing listing = list_files(*state, "00 01 02 03");
    place(&listing, GCMP_SECOND_IS_STAGE, (struct gradcmp_parallel){.tp = 2, .pp = 1, .ep = 1});
    expect_corrupt(&listing, "4 ranks' files (mp_rank_00.pth ... mp_rank_03.pth), but");
    free_listing(&listing);
}

static void test_rank_files__ranks_that_wrote_nothing(void **state) {
    struct listing listing = list_files(*state, "00_000 01_001");
    place(&listing, GCMP_SECOND_IS_EXPERTS,
          (struct gradcmp_parallel){.tp = 4, .pp = 1, .ep = 2, .etp = 1});
    expect_corrupt(&listing, "incomplete: with tensor-parallel 4, but expert-parallel 2 times "
                             "expert-tensor-parallel 1, ranks from 2 on wrote no file");
    free_listing(&listing);
}

static void test_rank_files__ranks_that_overwrote_each_other(void **state) {
    struct listing listing = list_files(*state, "00");
    place(&listing, GCMP_SECOND_IS_STAGE,
          (struct gradcmp_parallel){.tp = 1, .pp = 1, .ep = 1, .etp = 2});
    expect_corrupt(&listing, "expert-tensor-parallel 2, ranks overwrote each other's files");
    free_listing(&listing);
}

static void test_rank_files__two_saves(void **state) {
    struct listing listing = list_files(*state, "00 00_000");
    expect_corrupt(&listing, "are of two different saves");
    free_listing(&listing);
}

static void test_rank_files__none(void **state) {
    struct listing listing = list_files(*state, "");
    assert_int_equal(listing.status, GRADCMP_OK);
    assert_int_equal(listing.files.count, 0);
    free_listing(&listing);
}

static void test_rank_files_iteration__of_a_folder(void **state) {
    (void)state;
    assert_int_equal(gcmp_rank_files_iteration("/a/wgrads/iter_0000012"), 12);
    assert_int_equal(gcmp_rank_files_iteration("iter_0000000"), 0);
    assert_int_equal(gcmp_rank_files_iteration("/a/iter_"), -1);
    assert_int_equal(gcmp_rank_files_iteration("/a/iter_12x"), -1);
    assert_int_equal(gcmp_rank_files_iteration("/iter_0000012/a"), -1);
    assert_int_equal(gcmp_rank_files_iteration("/a/iter_1234567890123456789"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_name_read__forms),
        TEMP_TEST(test_rank_files__one_number_is_tensor_parallel),
        TEMP_TEST(test_rank_files__two_numbers_mean_what_is_said),
        TEMP_TEST(test_rank_files__ranks_of_experts_go_round),
        TEMP_TEST(test_rank_files__experts_split_less_than_the_rest),
        TEMP_TEST(test_rank_files__missing_rank_is_named),
        TEMP_TEST(test_rank_files__missing_last_rank_is_known_from_arguments),
        TEMP_TEST(test_rank_files__missing_first_rank),
        TEMP_TEST(test_rank_files__one_too_many),
        TEMP_TEST(test_rank_files__ranks_that_wrote_nothing),
        TEMP_TEST(test_rank_files__ranks_that_overwrote_each_other),
        TEMP_TEST(test_rank_files__two_saves),
        TEMP_TEST(test_rank_files__none),
        cmocka_unit_test(test_rank_files_iteration__of_a_folder),
    };
    return cmocka_run_group_tests_name("rank files", tests, NULL, NULL);
}
