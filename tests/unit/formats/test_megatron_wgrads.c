/* Gradient dumps: what is found in the files of ranks, and what is refused. */
#include "sample_tools.h"

#include "formats/megatron_wgrads.h"

#define DUMP(name) GCMP_TEST_DATA "/wgrads/" name "/wgrads/iter_0000001"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Copy files of a sample into <temp>/<folder>; `names` is a pattern of the shell. */
static char *copy_files(const char *temp, const char *from, const char *names, const char *folder) {
    char command[900];
    snprintf(command, sizeof command, "mkdir -p '%s/%s' && cp '%s'/%s '%s/%s/'", temp, folder, from,
             names, temp, folder);
    assert_int_equal(system(command), 0);
    return temp_path(temp, folder);
}

static const struct gradcmp_coords *coords_of(const struct opened *opened, const char *file) {
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const struct gradcmp_stored *stored = &opened->catalogue.stored[i];
        if (strncmp(stored->key, file, strlen(file)) == 0) {
            return stored->pieces[0].coords;
        }
    }
    fail_msg("no tensor of %s", file);
    return NULL;
}

static void expect_coords(const struct opened *opened, const char *file,
                          struct gradcmp_coords expected) {
    const struct gradcmp_coords *found = coords_of(opened, file);
    if (memcmp(found, &expected, sizeof expected) != 0) {
        fail_msg("%s: tp %d pp %d ep %d dp %d vp %d etp %d", file, found->tp, found->pp, found->ep,
                 found->dp, found->vp, found->etp);
    }
}

static void test_megatron_wgrads_probe__by_content(void **state) {
    static const struct {
        const char *path;
        int strength;
    } cases[] = {
        {DUMP("base"), 2},
        {DUMP("moe_te_tp2ep2"), 2},
        {GCMP_TEST_DATA "/wgrads/base/wgrads", 0},
        {DUMP("base") "/mp_rank_00.pth", 2},
        {GCMP_TEST_DATA "/wgrads/truth.json", 0},
        {GCMP_TEST_DATA "/legacy/moe_ep2/iter_0000001", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gcmp_dir *dir;
        assert_int_equal(gcmp_dir_open(cases[i].path, &dir, NULL), GRADCMP_OK);
        if (gcmp_format_megatron_wgrads.probe(dir) != cases[i].strength) {
            fail_msg("%s", cases[i].path);
        }
        gcmp_dir_close(dir);
    }
    struct gcmp_dir *dir;
    temp_file(*state, "mp_rank_00.pth", "no zip", 6);
    assert_int_equal(gcmp_dir_open(*state, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_format_megatron_wgrads.probe(dir), 0);
    gcmp_dir_close(dir);
}

static void test_megatron_wgrads__one_rank(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, DUMP("base"));
    const struct gradcmp_stored *norm =
        find_stored(opened, "decoder.layers.3.pre_mlp_layernorm.weight", "main_grad");
    assert_non_null(norm);
    assert_int_equal(norm->layout, GRADCMP_LAYOUT_LOCAL);
    assert_int_equal(norm->dtype, GRADCMP_DTYPE_FLOAT32);
    assert_string_equal(norm->key,
                        "mp_rank_00.pth: model_chunk0.decoder.layers.3.pre_mlp_layernorm.weight");
    assert_int_equal(opened->catalogue.stored_count, 27);
    assert_int_equal(opened->catalogue.iteration, 1);
    assert_int_equal(opened->catalogue.parallel.tp, 1);
    assert_true(opened->catalogue.is_dump);
    close_format(opened);
}

static void test_megatron_wgrads__second_number_is_a_stage(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, DUMP("tp2pp2"));
    expect_coords(opened, "mp_rank_01_000.pth", (struct gradcmp_coords){1, 0, 0, -1, 0, 1});
    expect_coords(opened, "mp_rank_00_001.pth", (struct gradcmp_coords){0, 1, 0, -1, 0, 0});
    assert_int_equal(opened->catalogue.parallel.pp, 2);
    assert_int_equal(opened->catalogue.parallel.ep, 1);
    close_format(opened);
}

static void test_megatron_wgrads__second_number_is_a_rank_of_experts(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, DUMP("moe_te_tp2ep2"));
    expect_coords(opened, "mp_rank_00_000.pth", (struct gradcmp_coords){0, 0, 0, -1, 0, 0});
    expect_coords(opened, "mp_rank_01_001.pth", (struct gradcmp_coords){1, 0, 1, -1, 0, 0});
    assert_int_equal(opened->catalogue.parallel.ep, 2);
    assert_int_equal(opened->catalogue.parallel.etp, 1);
    assert_int_equal(opened->catalogue.parallel.tp, 0); /* there may have been more */
    close_format(opened);
}

/* More files than tensor-parallel ranks: these went round, so that there are no more. */
static void test_megatron_wgrads__ranks_that_went_round(void **state) {
    char *path = copy_files(*state, DUMP("moe_te_tp2ep2"), "*", "a"), command[1200];
    snprintf(command, sizeof command,
             "cp '%s/mp_rank_00_000.pth' '%s/mp_rank_00_002.pth' && "
             "cp '%s/mp_rank_01_001.pth' '%s/mp_rank_01_003.pth'",
             path, path, path, path);
    assert_int_equal(system(command), 0);
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, path);
    assert_int_equal(opened->catalogue.parallel.tp, 2);
    assert_int_equal(opened->catalogue.parallel.ep, 4);
    close_format(opened);
    free(path);
}

static void test_megatron_wgrads__chunks(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, DUMP("pp2vp2"));
    expect_coords(opened, "mp_rank_00_001.pth: model_chunk1",
                  (struct gradcmp_coords){0, 1, 0, -1, 1, 0});
    assert_int_equal(opened->catalogue.parallel.vp, 2);
    close_format(opened);
}

static void test_megatron_wgrads__weights_beside_them(void **state) {
    char *path = copy_files(*state, DUMP("base"), "*", "params/iter_0000007");
    struct opened *opened = open_good(&gcmp_format_megatron_wgrads, path);
    assert_non_null(find_stored(opened, "output_layer.weight", "param"));
    assert_int_equal(opened->catalogue.iteration, 7);
    close_format(opened);
    free(path);
}

static void test_megatron_wgrads__missing_file_is_named(void **state) {
    char *path = copy_files(*state, DUMP("tp2pp2"), "mp_rank_0[01]_000.pth", "a");
    free(copy_files(*state, DUMP("tp2pp2"), "mp_rank_01_001.pth", "a"));
    check_refused_open(&gcmp_format_megatron_wgrads, path, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET,
                       "a", "incomplete: mp_rank_00_001 is missing (3 files; *");
    free(path);
}

static void test_megatron_wgrads__files_of_two_saves(void **state) {
    char *path = copy_files(*state, DUMP("pp2vp2"), "mp_rank_00_000.pth", "a");
    free(copy_files(*state, DUMP("tp2pp2"), "mp_rank_00_001.pth", "a"));
    check_refused_open(&gcmp_format_megatron_wgrads, path, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET,
                       "a", "mp_rank_00_000.pth holds other chunks of the model than *");
    free(path);
}

static void test_megatron_wgrads__truncated_file(void **state) {
    char *path = copy_files(*state, DUMP("tp2pp2"), "*", "a");
    char *file = temp_path(path, "mp_rank_01_000.pth");
    assert_int_equal(truncate(file, 9000), 0);
    check_refused_open(&gcmp_format_megatron_wgrads, path, GRADCMP_ERROR_CORRUPT, ANY_OFFSET,
                       "mp_rank_01_000.pth", "zip: *");
    free(file);
    free(path);
}

/* One rank of several is not the dump. */
static void test_megatron_wgrads__one_rank_alone_is_refused(void **state) {
    (void)state;
    check_refused_open(&gcmp_format_megatron_wgrads, DUMP("tp2pp2") "/mp_rank_00_000.pth",
                       GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "mp_rank_00_000.pth",
                       "the gradient dump of one rank: name the folder of the iteration, which "
                       "holds all mp_rank_*.pth");
}

static void test_megatron_wgrads__other_archives_are_refused(void **state) {
    char *path = copy_files(*state, GCMP_TEST_DATA "/legacy/moe_ep2/iter_0000001/mp_rank_00_000",
                            "model_optim_rng.pt", "a");
    char *from = temp_path(path, "model_optim_rng.pt"), *to = temp_path(path, "mp_rank_00.pth");
    assert_int_equal(rename(from, to), 0);
    check_refused_open(&gcmp_format_megatron_wgrads, path, GRADCMP_ERROR_UNSUPPORTED, ANY_OFFSET,
                       "mp_rank_00.pth",
                       "expected model_chunk0, model_chunk1, ... as keys, found \"args\"");
    free(from);
    free(to);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_megatron_wgrads_probe__by_content),
        cmocka_unit_test(test_megatron_wgrads__one_rank),
        cmocka_unit_test(test_megatron_wgrads__second_number_is_a_stage),
        cmocka_unit_test(test_megatron_wgrads__second_number_is_a_rank_of_experts),
        TEMP_TEST(test_megatron_wgrads__ranks_that_went_round),
        cmocka_unit_test(test_megatron_wgrads__chunks),
        TEMP_TEST(test_megatron_wgrads__weights_beside_them),
        TEMP_TEST(test_megatron_wgrads__missing_file_is_named),
        TEMP_TEST(test_megatron_wgrads__files_of_two_saves),
        TEMP_TEST(test_megatron_wgrads__truncated_file),
        cmocka_unit_test(test_megatron_wgrads__one_rank_alone_is_refused),
        TEMP_TEST(test_megatron_wgrads__other_archives_are_refused),
    };
    return cmocka_run_group_tests_name("megatron wgrads", tests, NULL, NULL);
}
