/* All runs below a folder, and what is told of the rest. */
#include "temp_tools.h"

#include "base/runs.h"
#include "base/search.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Make a folder, and those around it, with one file in it. */
static void make_run(const char *temp, const char *name, const char *file) {
    char path[600];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%s/%.*s", temp, (int)(slash - name), name);
        (void)mkdir(path, 0700);
    }
    temp_folder(temp, name);
    snprintf(path, sizeof path, "%s/%s", name, file);
    temp_file(temp, path, "x", 1);
}

static void expect_list(const char *temp, const struct gcmp_name_list *list,
                        const char *const *names, size_t count) {
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++) {
        char *path = temp_path(temp, names[i]);
        assert_string_equal(list->names[i], path);
        free(path);
    }
}

#define EXPECT(list, ...)                                                                          \
    do {                                                                                           \
        const char *const names[] = {__VA_ARGS__};                                                 \
        expect_list(*state, &(list), names, sizeof names / sizeof *names);                         \
    } while (0)

static void look(void **state, int64_t iteration, struct gcmp_runs *runs) {
    struct gradcmp_error error = {0};
    if (gcmp_locate_runs(*state, iteration, runs, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
}

static void test_runs__iterations_by_name(void **state) {
    struct gcmp_runs runs;
    make_run(*state, "a/iter_0000001", ".metadata");
    make_run(*state, "a/iter_0000002", ".metadata");
    make_run(*state, "b", ".metadata");
    make_run(*state, "tp2", ".metadata");
    temp_file(*state, "step-1.pt", "x", 1);
    temp_file(*state, "step-2.pt", "x", 1);
    look(state, 1, &runs);
    EXPECT(runs.found, "a/iter_0000001", "step-1.pt");
    EXPECT(runs.others, "a/iter_0000002", "step-2.pt");
    EXPECT(runs.unsure, "b", "tp2");
    gcmp_runs_free(&runs);
    look(state, -1, &runs);
    assert_int_equal(runs.found.count, 6);
    assert_int_equal(runs.others.count + runs.unsure.count, 0);
    gcmp_runs_free(&runs);
}

static void test_runs__far_down_are_found_and_further_ones_told(void **state) {
    struct gcmp_runs runs;
    make_run(*state, "1/2/3/4/5/6/7/8/9/10/run", ".metadata");
    make_run(*state, "x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/run",
             ".metadata");
    look(state, -1, &runs);
    EXPECT(runs.found, "1/2/3/4/5/6/7/8/9/10/run");
    EXPECT(runs.deep, "x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x");
    gcmp_runs_free(&runs);
}

/* Make names below a folder: folders, or links to one. */
static void make_many(const char *temp, const char *below, int count, const char *target) {
    temp_folder(temp, below);
    for (int i = 0; i < count; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s/%02d", below, i);
        if (target == NULL) {
            temp_folder(temp, name);
        } else {
            temp_link(temp, name, target);
        }
    }
}

static void test_runs__too_many_folders_are_refused_or_far_down_told(void **state) {
    struct gcmp_runs runs;
    struct gradcmp_error error = {0};
    make_many(*state, "p", 63, NULL);
    make_many(*state, "q", 62, "../p"); /* 62 * 63 and 62, with 63 and 3 above: 4034 */
    make_run(*state, "1/2/3/4/5/6/7", "text");
    make_many(*state, "1/2/3/4/5/6/7/8", 56, NULL); /* 8 and 54 */
    look(state, -1, &runs);
    EXPECT(runs.deep, "1/2/3/4/5/6/7/8/54", "1/2/3/4/5/6/7/8/55");
    gcmp_runs_free(&runs);
    temp_link(*state, "q/more", "../p");
    assert_int_equal(gcmp_locate_runs(*state, -1, &runs, &error), GRADCMP_ERROR_LIMIT);
    assert_text_contains(error.message, "more than 4096 folders");
    assert_int_equal(runs.found.count, 0);
}

static void test_runs__links_that_lead_elsewhere_are_told(void **state) {
    struct gcmp_runs runs;
    temp_folder(*state, "out");
    make_run(*state, "out/run", ".metadata");
    temp_file(*state, "out/x.pt", "x", 1);
    temp_folder(*state, "in");
    char *inside = temp_path(*state, "in");
    temp_link(*state, "in/folder", "../out/run");
    temp_link(*state, "in/file.pt", "../out/x.pt");
    temp_link(*state, "in/text", "../out/x.pt");
    temp_link(*state, "in/nothing.pt", "../out/none");
    assert_int_equal(gcmp_locate_runs(inside, -1, &runs, NULL), GRADCMP_OK);
    EXPECT(runs.links, "in/file.pt", "in/folder");
    assert_int_equal(runs.found.count, 0);
    gcmp_runs_free(&runs);
    free(inside);
}

/* The superuser may open everything. */
static void test_runs__folders_that_may_not_be_opened_are_told(void **state) {
    const uid_t nobody = 65534;
    struct gcmp_runs runs;
    make_run(*state, "open", ".metadata");
    temp_folder(*state, "closed");
    temp_file(*state, "text", "x", 1);
    temp_file(*state, "model.pt", "x", 1);
    char *closed = temp_path(*state, "closed"), *text = temp_path(*state, "text");
    char *open = temp_path(*state, "open"), *model = temp_path(*state, "model.pt");
    assert_int_equal(chmod(*state, 0755) | chmod(open, 0755) | chmod(closed, 0) | chmod(text, 0) |
                         chmod(model, 0),
                     0);
    bool is_super = geteuid() == 0;
    assert_true(!is_super || seteuid(nobody) == 0);
    enum gradcmp_status status = gcmp_locate_runs(*state, -1, &runs, NULL);
    assert_true(!is_super || seteuid(0) == 0);
    assert_int_equal(chmod(closed, 0700), 0);
    assert_int_equal(status, GRADCMP_OK);
    EXPECT(runs.found, "open");
    EXPECT(runs.closed, "closed", "model.pt");
    gcmp_runs_free(&runs);
    free(closed);
    free(text);
    free(open);
    free(model);
}

static void test_runs__number_of_a_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t iteration;
        bool is_sure;
    } cases[] = {{"runs/iter_0000005", 5, true},
                 {"global_step7", 7, true},
                 {"checkpoint-500", 500, true},
                 {"epoch=3", 3, true},
                 {"12", 12, true},
                 {"epoch=1-step=30.ckpt", 30, true},
                 {"tp2", 2, false},
                 {"checkpoint_tp2", 2, false},
                 {"run1.pt", 1, false},
                 {"step=3-v1.ckpt", 3, true},
                 {"epoch=1-step=30-v12.ckpt", 30, true},
                 {"model-v2.ckpt", 2, false},
                 {"step-v2.ckpt", 2, false},
                 {"model.step3.pt", 3, true},
                 {"step_3.safetensors", 3, true},
                 {"checkpoint_rank3.pt", -1, false},
                 {"step5_rank_3", -1, false},
                 {"model-00001-of-00002.safetensors", -1, false},
                 {"shard7.bin", -1, false},
                 {"part-0003.pt", -1, false},
                 {"step5/model", -1, false},
                 {"iter_0000000000000000001", -1, false},
                 {"", -1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_sure = !cases[i].is_sure;
        assert_int_equal(gcmp_iteration_of(cases[i].name, &is_sure), cases[i].iteration);
        assert_int_equal(is_sure, cases[i].is_sure);
    }
    assert_int_equal(gcmp_epoch_of("runs/epoch_3"), 3);
    assert_int_equal(gcmp_epoch_of("epoch=12.ckpt"), 12);
    assert_int_equal(gcmp_epoch_of("epoch=12-v3.ckpt"), 12);
    assert_int_equal(gcmp_epoch_of("epoch=1-step=30.ckpt"), -1);
    assert_int_equal(gcmp_epoch_of("iter_0000003"), -1);
    assert_int_equal(gcmp_epoch_of("epoch"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_runs__iterations_by_name),
        TEMP_TEST(test_runs__far_down_are_found_and_further_ones_told),
        TEMP_TEST(test_runs__too_many_folders_are_refused_or_far_down_told),
        TEMP_TEST(test_runs__links_that_lead_elsewhere_are_told),
        TEMP_TEST(test_runs__folders_that_may_not_be_opened_are_told),
        cmocka_unit_test(test_runs__number_of_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
