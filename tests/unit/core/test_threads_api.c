/* Several users of the library in one process: each thread with handles of its own gets its own
 * answer, and one that is cancelled disturbs no other. */
#include "temp_tools.h"

#include <pthread.h>
#include <string.h>

#include "gradcmp/gradcmp.h"

#define DATA GCMP_TEST_DATA "/megatron/"

enum { THREADS = 100, ROUNDS = 2 };

struct user {
    pthread_t thread;
    const char *candidate;
    int cancels;
    enum gradcmp_status expected_status;
    enum gradcmp_outcome expected_outcome;
    size_t expected_failures;
    const char *trouble; /* NULL: all as expected */
};

static int cancel(void *user, uint64_t done, uint64_t total) {
    (void)user, (void)done, (void)total;
    return 1;
}

static size_t count_failures(const struct gradcmp_report *report) {
    size_t failures = 0;
    for (size_t i = 0; i < gradcmp_report_parameter_count(report, 0); i++) {
        struct gradcmp_parameter_result result;
        gradcmp_report_parameter(report, 0, i, &result);
        failures += result.verdict == GRADCMP_VERDICT_FAIL;
    }
    return failures;
}

static const char *compare_once(const struct user *user) {
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_report *report = NULL;
    options.threads = 2;
    options.progress = user->cancels ? cancel : NULL;
    const char *candidates[] = {user->candidate};
    enum gradcmp_status status =
        gradcmp_compare(DATA "s_base", candidates, 1, &options, &report, &error);
    const char *trouble = NULL;
    if (status != user->expected_status || error.code != status) {
        trouble = "another status";
    } else if (status != GRADCMP_OK) {
        trouble = report == NULL ? NULL : "a report after a failure";
    } else if (gradcmp_report_outcome(report, 0) != user->expected_outcome) {
        trouble = "another outcome";
    } else if (count_failures(report) != user->expected_failures) {
        trouble = "other failures";
    }
    gradcmp_report_free(report);
    return trouble;
}

static void *run(void *argument) {
    struct user *user = argument;
    for (int i = 0; i < ROUNDS && user->trouble == NULL; i++) {
        user->trouble = compare_once(user);
    }
    return NULL;
}

static void test_threads_api__comparisons_at_once_keep_apart(void **state) {
    (void)state;
    static const struct user kinds[] = {
        {.candidate = DATA "tp2dp2", .expected_outcome = GRADCMP_OUTCOME_CONSISTENT},
        {.candidate = DATA "bug_double_layer1",
         .expected_outcome = GRADCMP_OUTCOME_INCONSISTENT,
         .expected_failures = 6},
        {.candidate = DATA "tp2dp2", .cancels = 1, .expected_status = GRADCMP_ERROR_CANCELLED}};
    struct user users[THREADS];
    for (int i = 0; i < THREADS; i++) {
        users[i] = kinds[i % 3];
        assert_int_equal(pthread_create(&users[i].thread, NULL, run, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        if (users[i].trouble != NULL) {
            fail_msg("thread %d, %s: %s", i, users[i].candidate, users[i].trouble);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_api__comparisons_at_once_keep_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
