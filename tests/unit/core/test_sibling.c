/* What a gradient dump learns from a checkpoint beside it, and what is said of both. */
#include "temp_tools.h"

#include "checkpoint.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Copy a folder of the test data into the save folder. */
static void copy_into(const char *save, const char *from, const char *to) {
    char command[1200];
    snprintf(command, sizeof command, "mkdir -p '%s/%s' && cp -r '%s/%s/.' '%s/%s'", save, to,
             GCMP_TEST_DATA, from, save, to);
    assert_int_equal(system(command), 0);
}

static struct gradcmp_checkpoint *open_below(const char *save, const char *name) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    struct gradcmp_error error = {0};
    char *path = temp_path(save, name);
    if (gcmp_checkpoint_open(path, NULL, &checkpoint, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
    free(path);
    return checkpoint;
}

static enum gradcmp_dtype_source precision(struct gradcmp_checkpoint *checkpoint,
                                           enum gradcmp_dtype *dtype) {
    const struct gradcmp_model *model;
    enum gradcmp_dtype_source source;
    assert_int_equal(gcmp_checkpoint_model(checkpoint, "main_grad", &model, NULL), GRADCMP_OK);
    gcmp_checkpoint_precision(checkpoint, model, GRADCMP_DTYPE_NONE, dtype, &source);
    return source;
}

static void expect_precision(const char *save, const char *dump, enum gradcmp_dtype expected,
                             enum gradcmp_dtype_source source) {
    struct gradcmp_checkpoint *checkpoint = open_below(save, dump);
    enum gradcmp_dtype dtype;
    assert_int_equal(precision(checkpoint, &dtype), source);
    assert_int_equal(dtype, expected);
    gradcmp_checkpoint_free(checkpoint);
}

static void test_sibling__type_is_assumed_without_one(void **state) {
    copy_into(*state, "wgrads/base/wgrads", "wgrads");
    expect_precision(*state, "wgrads/iter_0000001", GRADCMP_DTYPE_BFLOAT16,
                     GRADCMP_DTYPE_ASSUMED_DUMP);
    expect_precision(*state, "", GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_ASSUMED_DUMP);
}

static void test_sibling__type_of_a_checkpoint_beside(void **state) {
    copy_into(*state, "wgrads/base/wgrads", "wgrads");
    copy_into(*state, "legacy/fp32_pp2", "");
    expect_precision(*state, "wgrads/iter_0000001", GRADCMP_DTYPE_BFLOAT16,
                     GRADCMP_DTYPE_FROM_SIBLING); /* its arguments say bf16 */
    expect_precision(*state, "wgrads", GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FROM_SIBLING);
}

/* A checkpoint of another iteration tells the type as well. */
static void test_sibling__of_another_iteration(void **state) {
    copy_into(*state, "wgrads/base/wgrads/iter_0000001", "wgrads/iter_0000002");
    copy_into(*state, "legacy/bucket_size", "");
    expect_precision(*state, "wgrads", GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_FROM_SIBLING);
}

/* What cannot be read changes nothing. */
static void test_sibling__that_cannot_be_read(void **state) {
    copy_into(*state, "wgrads/base/wgrads", "wgrads");
    copy_into(*state, "bad/legacy/no_model", "");
    expect_precision(*state, "wgrads", GRADCMP_DTYPE_BFLOAT16, GRADCMP_DTYPE_ASSUMED_DUMP);
}

/* A folder of another name is no save folder's. */
static void test_sibling__only_in_a_save_folder(void **state) {
    copy_into(*state, "wgrads/base/wgrads", "grads");
    copy_into(*state, "legacy/bucket_size", "");
    expect_precision(*state, "grads/iter_0000001", GRADCMP_DTYPE_BFLOAT16,
                     GRADCMP_DTYPE_ASSUMED_DUMP);
}

static void test_sibling__number_of_ranks(void **state) {
    copy_into(*state, "wgrads/moe_te_tp2ep2/wgrads", "wgrads");
    struct gradcmp_checkpoint *dump = open_below(*state, "wgrads/iter_0000001");
    assert_int_equal(dump->catalogue.parallel.tp, 0);
    gradcmp_checkpoint_free(dump);
    copy_into(*state, "legacy/moe_tp2ep2", "");
    dump = open_below(*state, "wgrads/iter_0000001");
    assert_int_equal(dump->catalogue.parallel.tp, 2);
    gradcmp_checkpoint_free(dump);
}

/* One of another layout says nothing of these ranks. */
static void test_sibling__of_another_layout(void **state) {
    copy_into(*state, "wgrads/moe_te_tp2ep2/wgrads", "wgrads");
    copy_into(*state, "legacy/moe_tp2etp2", "");
    struct gradcmp_checkpoint *dump = open_below(*state, "wgrads/iter_0000001");
    assert_int_equal(dump->catalogue.parallel.tp, 0);
    assert_int_equal(dump->catalogue.sibling_compute, GRADCMP_DTYPE_BFLOAT16);
    gradcmp_checkpoint_free(dump);
}

static bool has_note(const struct gradcmp_checkpoint *checkpoint, const char *text) {
    for (size_t i = 0; i < checkpoint->catalogue.note_count; i++) {
        if (strstr(checkpoint->catalogue.notes[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

/* Of a save folder with both, the checkpoint is read, and that is said. */
static void test_sibling__save_folder_with_both(void **state) {
    static const char text[] = "holds gradient dumps (wgrads) too; the checkpoint is read";
    copy_into(*state, "wgrads/base/wgrads", "wgrads");
    copy_into(*state, "legacy/bucket_size", "");
    struct gradcmp_checkpoint *checkpoint = open_below(*state, "");
    assert_false(checkpoint->catalogue.is_dump);
    assert_true(has_note(checkpoint, text));
    gradcmp_checkpoint_free(checkpoint);
    checkpoint = open_below(*state, "iter_0000001");
    assert_false(has_note(checkpoint, text));
    gradcmp_checkpoint_free(checkpoint);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_sibling__type_is_assumed_without_one),
        TEMP_TEST(test_sibling__type_of_a_checkpoint_beside),
        TEMP_TEST(test_sibling__of_another_iteration),
        TEMP_TEST(test_sibling__that_cannot_be_read),
        TEMP_TEST(test_sibling__only_in_a_save_folder),
        TEMP_TEST(test_sibling__number_of_ranks),
        TEMP_TEST(test_sibling__of_another_layout),
        TEMP_TEST(test_sibling__save_folder_with_both),
    };
    return cmocka_run_group_tests_name("sibling", tests, NULL, NULL);
}
