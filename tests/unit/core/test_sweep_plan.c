/* Patterns of a plan: what the system does not let one look into is told. */
#include "temp_tools.h"

#include "sweep.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void set_mode(const char *temp, const char *name, mode_t mode) {
    char *path = temp_path(temp, name);
    assert_int_equal(chmod(path, mode), 0);
    free(path);
}

/* Read a plan with one pattern as somebody who may open less than the superuser may. */
static enum gradcmp_status read_plan(const char *temp, const char *pattern,
                                     struct gcmp_roster *roster, struct gradcmp_error *error) {
    const uid_t nobody = 65534;
    char text[200];
    snprintf(text, sizeof text, "candidates: [\"%s\"]\n", pattern);
    temp_file(temp, "plan.yaml", text, strlen(text));
    set_mode(temp, "plan.yaml", 0644);
    roster->plan = temp_path(temp, "plan.yaml");
    bool is_super = geteuid() == 0;
    assert_true(!is_super || seteuid(nobody) == 0);
    enum gradcmp_status status = gcmp_plan_read(roster, NULL, error);
    assert_true(!is_super || seteuid(0) == 0);
    free((char *)(uintptr_t)roster->plan);
    return status;
}

static void make_folders(const char *temp) {
    static const char *const folders[] = {"runs", "runs/a", "runs/listed", "runs/closed"};
    set_mode(temp, ".", 0755);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        temp_folder(temp, folders[i]);
        set_mode(temp, folders[i], 0755);
    }
    temp_file(temp, "runs/a/x.pt", "x", 1);
    temp_file(temp, "runs/listed/x.pt", "x", 1);
    temp_file(temp, "runs/closed/x.pt", "x", 1);
    set_mode(temp, "runs/closed", 0);
}

static void test_plan__closed_folders_of_a_pattern_are_told(void **state) {
    static const struct {
        const char *pattern, *left;
        mode_t listed;
        size_t count;
    } cases[] = {
        {"runs/*/x.pt", "1 folder that may not be opened: runs/closed", 0755, 2},
        {"runs/*/*.pt", "1 folder that may not be opened: runs/closed", 0755, 2},
        /* May be passed through, or listed, alone. */
        {"runs/*/x.pt", "1 folder that may not be opened: runs/closed", 0711, 2},
        {"runs/*/*.pt", "2 folders that may not be opened: runs/closed, runs/listed", 0711, 1},
        {"runs/[a-l]*/*.pt", "1 folder that may not be opened: runs/closed", 0755, 2},
        {"runs/[ab]/*.pt", NULL, 0711, 1}};
    make_folders(*state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gcmp_roster roster = {
            .arena = &arena, .baseline = SIZE_MAX, .options = GRADCMP_OPTIONS_INIT};
        struct gradcmp_error error = {0};
        set_mode(*state, "runs/listed", cases[i].listed);
        enum gradcmp_status status = read_plan(*state, cases[i].pattern, &roster, &error);
        assert_string_equal(error.message, "");
        assert_int_equal(status, GRADCMP_OK);
        assert_int_equal(roster.count, cases[i].count);
        assert_int_equal(roster.left_count, cases[i].left != NULL);
        if (cases[i].left != NULL) {
            assert_string_equal(roster.left[0].text, cases[i].left);
        }
        gcmp_arena_free(&arena);
    }
    set_mode(*state, "runs/closed", 0700);
}

static void test_plan__nothing_but_a_closed_folder(void **state) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_roster roster = {
        .arena = &arena, .baseline = SIZE_MAX, .options = GRADCMP_OPTIONS_INIT};
    struct gradcmp_error error = {0};
    make_folders(*state);
    assert_int_equal(read_plan(*state, "runs/c*/x.pt", &roster, &error), GRADCMP_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "nothing there; may not be opened: "));
    assert_non_null(strstr(error.message, "runs/closed"));
    set_mode(*state, "runs/closed", 0700);
    gcmp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_plan__closed_folders_of_a_pattern_are_told),
        TEMP_TEST(test_plan__nothing_but_a_closed_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
