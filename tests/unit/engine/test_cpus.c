/* Quotas of both kinds of cgroups, in folders made by hand. */
#include "temp_tools.h"

#include "engine/cpus.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void write_text(const char *temp, const char *name, const char *text) {
    temp_file(temp, name, text, strlen(text));
}

static unsigned within(const char *temp, unsigned cpus) {
    char *file = temp_path(temp, "cgroup");
    unsigned found = gcmp_cpus_within_quota(cpus, file, temp);
    free(file);
    return found;
}

static void test_quota__version_2_takes_the_tightest_above(void **state) {
    char *temp = *state;
    temp_folder(temp, "box");
    temp_folder(temp, "box/job");
    write_text(temp, "cgroup", "0::/box/job\n");
    assert_int_equal(within(temp, 8), 8); /* nothing there */
    write_text(temp, "box/job/cpu.max", "max 100000\n");
    assert_int_equal(within(temp, 8), 8);
    write_text(temp, "box/job/cpu.max", "550000 100000\n");
    assert_int_equal(within(temp, 8), 6); /* 5.5, rounded up */
    assert_int_equal(within(temp, 3), 3);
    write_text(temp, "box/cpu.max", "200000 100000\n");
    assert_int_equal(within(temp, 8), 2);
    write_text(temp, "cpu.max", "1000 100000\n");
    assert_int_equal(within(temp, 8), 1);
}

static void test_quota__root_of_a_container(void **state) {
    write_text(*state, "cgroup", "0::/\n");
    write_text(*state, "cpu.max", "300000 100000\n");
    assert_int_equal(within(*state, 8), 3);
}

static void test_quota__version_1_takes_the_cpu_controller(void **state) {
    char *temp = *state;
    temp_folder(temp, "cpu");
    temp_folder(temp, "cpu/job");
    write_text(temp, "cgroup", "5:memory,cpuset:/other\n4:cpuacct,cpu:/job\n");
    write_text(temp, "cpu/job/cpu.cfs_quota_us", "-1\n");
    write_text(temp, "cpu/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(within(temp, 8), 8);
    write_text(temp, "cpu/job/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(within(temp, 8), 4);
}

static void test_quota__nonsense_limits_nothing(void **state) {
    char *temp = *state;
    assert_int_equal(within(temp, 8), 8); /* no file */
    write_text(temp, "cgroup", "nonsense\n:\n::\n0::/../..\n0::\n");
    write_text(temp, "cpu.max", "soon 0\n");
    assert_int_equal(within(temp, 8), 8);
    write_text(temp, "cpu.max", "-5 100\n");
    assert_int_equal(within(temp, 8), 8);
    write_text(temp, "cpu.max", "9223372036854775807 1\n");
    assert_int_equal(within(temp, 8), 8);
    write_text(temp, "cpu.max", "5 0\n");
    assert_int_equal(within(temp, 8), 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_quota__version_2_takes_the_tightest_above),
        TEMP_TEST(test_quota__root_of_a_container),
        TEMP_TEST(test_quota__version_1_takes_the_cpu_controller),
        TEMP_TEST(test_quota__nonsense_limits_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
