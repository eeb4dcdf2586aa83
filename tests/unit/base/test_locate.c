/* From a path to the checkpoint meant by it. */
#include "temp_tools.h"

#include "base/locate.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Make a folder that is a finished checkpoint. */
static void make_checkpoint(const char *temp, const char *name) {
    char file[300];
    temp_folder(temp, name);
    snprintf(file, sizeof file, "%s/.metadata", name);
    temp_file(temp, file, "x", 1);
    snprintf(file, sizeof file, "%s/__0_0.distcp", name);
    temp_file(temp, file, "x", 1);
}

/* Look from `start` (relative to the temporary folder) and expect `expected` (likewise). */
static void expect_found(void **state, const char *start, int64_t iteration, const char *expected) {
    char *path = start[0] == '\0' ? strdup(*state) : temp_path(*state, start);
    char *want = expected[0] == '\0' ? strdup(*state) : temp_path(*state, expected);
    char *found = NULL;
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gcmp_locate(path, iteration, &found, &error);
    if (status != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
    assert_string_equal(found, want);
    free(found);
    free(path);
    free(want);
}

static void expect_failure(void **state, const char *start, int64_t iteration,
                           enum gradcmp_status code, const char *message) {
    char *path = start[0] == '\0' ? strdup(*state) : temp_path(*state, start);
    char *found = NULL;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_locate(path, iteration, &found, &error), code);
    assert_null(found);
    assert_int_equal(error.code, code);
    assert_text_contains(error.message, message);
    assert_text_contains(error.path, path);
    free(path);
}

static void test_locate__checkpoint_itself(void **state) {
    make_checkpoint(*state, "iter_0000005");
    expect_found(state, "iter_0000005", -1, "iter_0000005");
    expect_found(state, "iter_0000005/", -1, "iter_0000005");
    expect_found(state, "iter_0000005", 5, "iter_0000005");
    expect_failure(state, "iter_0000005", 6, GRADCMP_ERROR_USAGE, "another iteration");
}

static void test_locate__single_file(void **state) {
    temp_file(*state, "a.pt", "x", 1);
    expect_found(state, "a.pt", -1, "a.pt");
    expect_found(state, "", -1, ""); /* the folder holds a file that may be a checkpoint */
}

/* One file of many is not the checkpoint. */
static void test_locate__one_file_of_a_checkpoint_names_the_folder(void **state) {
    static const char *const parts[] = {"__0_0.distcp",
                                        ".metadata",
                                        "__3.metadata",
                                        "zarr.json",
                                        "distrib_optim.pt",
                                        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
                                        "shard-00002-model-00001-of-00001.safetensors",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        temp_file(*state, parts[i], "x", 1);
        expect_failure(state, parts[i], -1, GRADCMP_ERROR_UNSUPPORTED,
                       "one file of a checkpoint: name the folder that holds them all");
    }
    temp_folder(*state, "own");
    temp_file(*state, "own/common.pt", "x", 1);
    expect_found(state, "own/common.pt", -1, "own/common.pt"); /* no .metadata beside it */
    expect_failure(state, "own/../common.pt", -1, GRADCMP_ERROR_IO, "no such file");
    temp_file(*state, "common.pt", "x", 1);
    expect_failure(state, "common.pt", -1, GRADCMP_ERROR_UNSUPPORTED, "name the folder");
}

static void test_locate__empty_path(void **state) {
    char *found = NULL;
    struct gradcmp_error error = {0};
    (void)state;
    assert_int_equal(gcmp_locate("", -1, &found, &error), GRADCMP_ERROR_USAGE);
    assert_string_equal(error.message, "an empty path where a checkpoint is to be named");
    assert_null(found);
}

/* Megatron's dumps lie beside each other under the same names: those of weights' gradients are
 * meant. */
static void test_locate__gradient_dumps_beside_others(void **state) {
    static const char *const names[] = {"save/dgrads/iter_0000001", "save/params/iter_0000001",
                                        "save/wgrads/iter_0000001"};
    temp_folder(*state, "save");
    for (size_t i = 0; i < 3; i++) {
        char file[100];
        snprintf(file, sizeof file, "%.11s", names[i]);
        temp_folder(*state, file);
        temp_folder(*state, names[i]);
        snprintf(file, sizeof file, "%s/mp_rank_00.pth", names[i]);
        temp_file(*state, file, "x", 1);
    }
    expect_found(state, "save", -1, "save/wgrads/iter_0000001");
    expect_found(state, "save/dgrads", -1, "save/dgrads/iter_0000001");
    expect_found(state, "save/params", -1, "save/params/iter_0000001");
    make_checkpoint(*state, "save/iter_0000001");
    expect_found(state, "save", -1, "save/iter_0000001");
}

static void test_locate__absent_path_is_io(void **state) {
    expect_failure(state, "nothing", -1, GRADCMP_ERROR_IO, "no such file or directory");
}

static void test_locate__folder_of_another_kind(void **state) {
    temp_folder(*state, "empty");
    temp_folder(*state, "texts");
    temp_file(*state, "texts/readme.txt", "x", 1);
    expect_failure(state, "empty", -1, GRADCMP_ERROR_UNSUPPORTED, "not a checkpoint: no .metadata");
    expect_failure(state, "texts", -1, GRADCMP_ERROR_UNSUPPORTED, "not a checkpoint: no .metadata");
}

static void test_locate__megatron_tracker(void **state) {
    make_checkpoint(*state, "iter_0000001");
    make_checkpoint(*state, "iter_0000020");
    make_checkpoint(*state, "release");
    temp_file(*state, "latest_checkpointed_iteration.txt", "20", 2);
    expect_found(state, "", -1, "iter_0000020");
    temp_file(*state, "latest_checkpointed_iteration.txt", "1\n", 2);
    expect_found(state, "", -1, "iter_0000001");
    temp_file(*state, "latest_checkpointed_iteration.txt", "release\n", 8);
    expect_found(state, "", -1, "release");
    expect_found(state, "", 20, "iter_0000020");
    expect_failure(state, "", 3, GRADCMP_ERROR_USAGE,
                   "no checkpoint of that iteration; there are: iter_0000001, iter_0000020, "
                   "release");
}

static void test_locate__deepspeed_tracker(void **state) {
    temp_folder(*state, "global_step1");
    temp_file(*state, "global_step1/mp_rank_00_model_states.pt", "x", 1);
    temp_folder(*state, "my-tag");
    temp_file(*state, "my-tag/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", "x", 1);
    temp_file(*state, "latest", "my-tag", 6);
    expect_found(state, "", -1, "my-tag");
    expect_found(state, "", 1, "global_step1");
}

static void test_locate__weights_beside_deepspeed_tracker_are_less(void **state) {
    temp_folder(*state, "run");
    make_checkpoint(*state, "run/global_step1");
    temp_file(*state, "run/model.safetensors", "x", 1);
    expect_found(state, "run", -1, "run");
    temp_file(*state, "run/latest", "global_step1", 12);
    expect_found(state, "run", -1, "run/global_step1");
    expect_found(state, "", 1, "run/global_step1");
    temp_file(*state, "run/latest", "global_step2", 12); /* it was removed */
    expect_found(state, "run", -1, "run");
    temp_file(*state, "run/.metadata", "x", 1);
    temp_file(*state, "run/latest", "global_step1", 12);
    expect_found(state, "run", -1, "run");
}

static void test_locate__bad_trackers_are_corrupt(void **state) {
    static const char *const contents[] = {"",    "\n",   "../x",  "/etc", "a/b",  ".",       "..",
                                           "1 2", "1\n2", "1\n\n", "a\tb", "\x7f", "1\n..\n", " 1"};
    make_checkpoint(*state, "iter_0000001");
    make_checkpoint(*state, "iter_0000002");
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        const char *tracker =
            i % 2 == 0 ? "latest" : "latest_checkpointed_iteration.txt"; /* checked alike */
        temp_file(*state, tracker, contents[i], strlen(contents[i]));
        expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "does not name one folder beside it");
        char *path = temp_path(*state, tracker);
        unlink(path);
        free(path);
    }
    temp_file(*state, "latest_checkpointed_iteration.txt", "1\0", 2);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "does not name one folder beside it");
    temp_file(*state, "latest_checkpointed_iteration.txt", "iter_0000001", 12);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "does not name one folder beside it");
    temp_file(*state, "latest_checkpointed_iteration.txt", "1234567890123456789", 19);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "does not name one folder beside it");
    temp_file(*state, "latest_checkpointed_iteration.txt", "77", 2);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT,
                   "names \"iter_0000077\", which is not a folder here; choose with --iteration "
                   "among iter_0000001, iter_0000002");
    char *big = malloc(70000);
    memset(big, 'x', 70000);
    temp_file(*state, "latest_checkpointed_iteration.txt", big, 70000);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "too long for a tracker file");
    free(big);
    expect_found(state, "", 2, "iter_0000002"); /* the option does without the tracker */
}

static void test_locate__tracker_to_a_link_that_leads_out_is_refused(void **state) {
    make_checkpoint(*state, "elsewhere");
    temp_folder(*state, "save");
    temp_link(*state, "save/iter_0000001", "../elsewhere");
    temp_file(*state, "save/latest_checkpointed_iteration.txt", "1", 1);
    expect_failure(state, "save", -1, GRADCMP_ERROR_CORRUPT, "give that path itself");
    expect_found(state, "save/iter_0000001", -1, "save/iter_0000001");
}

/* "ln -s iter_0000001 latest" is what people make by hand. */
static void test_locate__tracker_that_is_a_link_to_a_folder_is_followed(void **state) {
    make_checkpoint(*state, "iter_0000001");
    make_checkpoint(*state, "iter_0000002");
    temp_folder(*state, "below");
    make_checkpoint(*state, "below/iter_0000003");
    static const char *const targets[][2] = {{"iter_0000001", "iter_0000001"},
                                             {"iter_0000002/", "iter_0000002"},
                                             {"below/iter_0000003", "latest"}};
    char *path = temp_path(*state, "latest");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        temp_link(*state, "latest", targets[i][0]);
        expect_found(state, "", -1, targets[i][1]);
        expect_found(state, "", 2, "iter_0000002");
        unlink(path);
    }
    temp_link(*state, "latest", "iter_0000007");
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT,
                   "names \"iter_0000007\", which is not a folder here; choose with --iteration");
    unlink(path);
    char *absolute = temp_path(*state, "iter_0000001");
    temp_link(*state, "latest", absolute);
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT,
                   "an absolute link, or one that leads elsewhere: give its folder itself");
    unlink(path);
    free(absolute);
    free(path);
}

/* A folder of that name is no tracker, but may be a checkpoint. */
static void test_locate__folder_named_latest_is_one_of_several(void **state) {
    make_checkpoint(*state, "latest");
    expect_found(state, "", -1, "latest");
    make_checkpoint(*state, "iter_0000001");
    expect_failure(state, "", -1, GRADCMP_ERROR_USAGE, "several checkpoints");
    expect_found(state, "", 1, "iter_0000001");
}

static void test_locate__link_that_leads_out_is_told_where_nothing_else_is(void **state) {
    make_checkpoint(*state, "elsewhere");
    temp_folder(*state, "save");
    temp_link(*state, "save/iter_0000001", "../elsewhere");
    expect_failure(state, "save", -1, GRADCMP_ERROR_UNSUPPORTED,
                   "a link that leads elsewhere, or is absolute, is not followed: give its folder");
    make_checkpoint(*state, "save/iter_0000002");
    expect_found(state, "save", -1, "save/iter_0000002");
}

static void test_locate__iterations_without_tracker(void **state) {
    make_checkpoint(*state, "iter_0000001");
    temp_folder(*state, "tensorboard");
    expect_found(state, "", -1, "iter_0000001");
    make_checkpoint(*state, "iter_0000002");
    expect_failure(state, "", -1, GRADCMP_ERROR_USAGE,
                   "several checkpoints (name one, or choose with --iteration): iter_0000001, "
                   "iter_0000002");
    expect_found(state, "", 1, "iter_0000001");
}

static void test_locate__many_iterations_are_not_all_listed(void **state) {
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "step-%d", i);
        make_checkpoint(*state, name);
    }
    expect_failure(state, "", -1, GRADCMP_ERROR_USAGE, ", ... (12 in all)");
    expect_found(state, "", 11, "step-11");
}

static void test_locate__up_to_three_folders_down(void **state) {
    temp_folder(*state, "policy");
    temp_folder(*state, "policy/weights");
    temp_folder(*state, "policy/tokenizer");
    make_checkpoint(*state, "policy/weights/iter_0000000");
    expect_found(state, "", -1, "policy/weights/iter_0000000");
    expect_found(state, "policy", -1, "policy/weights/iter_0000000");
    temp_folder(*state, "a");
    temp_folder(*state, "a/b");
    temp_folder(*state, "a/b/c");
    make_checkpoint(*state, "a/b/c/d");
    expect_failure(state, "a/..", 9, GRADCMP_ERROR_USAGE, "there are: policy/weights/iter_0000000");
    expect_found(state, "a", -1, "a/b/c/d");
    temp_folder(*state, "top");
    temp_folder(*state, "top/a");
    temp_folder(*state, "top/a/b");
    temp_folder(*state, "top/a/b/c");
    make_checkpoint(*state, "top/a/b/c/d");
    expect_failure(state, "top", -1, GRADCMP_ERROR_UNSUPPORTED, "not a checkpoint");
}

static void test_locate__nearest_level_decides(void **state) {
    make_checkpoint(*state, "iter_0000001");
    temp_folder(*state, "wgrads");
    make_checkpoint(*state, "wgrads/iter_0000001");
    make_checkpoint(*state, "wgrads/iter_0000002");
    expect_found(state, "", -1, "iter_0000001");
    expect_found(state, "", 1, "iter_0000001");
    expect_failure(state, "", 2, GRADCMP_ERROR_USAGE, "there are: iter_0000001");
}

static void test_locate__tracker_further_down(void **state) {
    temp_folder(*state, "checkpoint");
    make_checkpoint(*state, "checkpoint/iter_0000001");
    make_checkpoint(*state, "checkpoint/iter_0000002");
    temp_file(*state, "checkpoint/latest_checkpointed_iteration.txt", "2", 1);
    expect_found(state, "", -1, "checkpoint/iter_0000002");
}

static void test_locate__shards_without_metadata_are_unfinished(void **state) {
    temp_folder(*state, "iter_0000001");
    temp_file(*state, "iter_0000001/__0_0.distcp", "x", 1);
    expect_failure(state, "iter_0000001", -1, GRADCMP_ERROR_CORRUPT,
                   "save unfinished: .metadata is missing");
    expect_failure(state, "", -1, GRADCMP_ERROR_CORRUPT, "save unfinished: .metadata is missing");
    temp_file(*state, "iter_0000001/__0.metadata", "x", 1);
    expect_found(state, "", -1, "iter_0000001");
}

static void make_array(const char *temp, const char *name) {
    char file[300];
    temp_folder(temp, name);
    snprintf(file, sizeof file, "%s/.zarray", name);
    temp_file(temp, file, "{}", 2);
}

static void test_locate__zarr_arrays_side_by_side_are_one_checkpoint(void **state) {
    temp_folder(*state, "run");
    temp_folder(*state, "run/iter_0000003");
    make_array(*state, "run/iter_0000003/a.weight");
    make_array(*state, "run/iter_0000003/b.weight");
    temp_folder(*state, "run/iter_0000003/rng_state");
    expect_found(state, "run/iter_0000003", -1, "run/iter_0000003");
    expect_found(state, "run", -1, "run/iter_0000003");
    expect_found(state, "run", 3, "run/iter_0000003");
    expect_found(state, "run/iter_0000003/a.weight", -1, "run/iter_0000003/a.weight");
    temp_folder(*state, "run/iter_0000004");
    make_array(*state, "run/iter_0000004/a.weight");
    expect_found(state, "run", 4, "run/iter_0000004");
    expect_failure(state, "run", -1, GRADCMP_ERROR_USAGE, "several checkpoints");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_locate__checkpoint_itself),
        TEMP_TEST(test_locate__single_file),
        TEMP_TEST(test_locate__one_file_of_a_checkpoint_names_the_folder),
        TEMP_TEST(test_locate__empty_path),
        TEMP_TEST(test_locate__gradient_dumps_beside_others),
        TEMP_TEST(test_locate__absent_path_is_io),
        TEMP_TEST(test_locate__folder_of_another_kind),
        TEMP_TEST(test_locate__megatron_tracker),
        TEMP_TEST(test_locate__deepspeed_tracker),
        TEMP_TEST(test_locate__weights_beside_deepspeed_tracker_are_less),
        TEMP_TEST(test_locate__bad_trackers_are_corrupt),
        TEMP_TEST(test_locate__tracker_to_a_link_that_leads_out_is_refused),
        TEMP_TEST(test_locate__tracker_that_is_a_link_to_a_folder_is_followed),
        TEMP_TEST(test_locate__folder_named_latest_is_one_of_several),
        TEMP_TEST(test_locate__link_that_leads_out_is_told_where_nothing_else_is),
        TEMP_TEST(test_locate__iterations_without_tracker),
        TEMP_TEST(test_locate__many_iterations_are_not_all_listed),
        TEMP_TEST(test_locate__up_to_three_folders_down),
        TEMP_TEST(test_locate__nearest_level_decides),
        TEMP_TEST(test_locate__tracker_further_down),
        TEMP_TEST(test_locate__shards_without_metadata_are_unfinished),
        TEMP_TEST(test_locate__zarr_arrays_side_by_side_are_one_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
