/* Compare two checkpoints from C and print the parameters that did not pass.
 *
 *   cc compare.c $(pkg-config --cflags --libs gradcmp) -o compare
 *   ./compare BASELINE CANDIDATE
 *
 * Exit status as of the program gradcmp: 0 consistent, 1 a difference, 2 trouble. */
#include <gradcmp/gradcmp.h>

#include <inttypes.h>
#include <stdio.h>

static void print_failures(const struct gradcmp_report *report) {
    size_t count = gradcmp_report_parameter_count(report, 0);
    for (size_t i = 0; i < count; i++) {
        struct gradcmp_parameter_result result;
        gradcmp_report_parameter(report, 0, i, &result);
        if (result.verdict != GRADCMP_VERDICT_PASS) {
            printf("layer %" PRId64 "  %-10s %s: rel %.3g, bound %.3g\n", result.layer,
                   gradcmp_verdict_name(result.verdict), result.name, result.rel, result.bound);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: compare BASELINE CANDIDATE\n");
        return 2;
    }
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_report *report = NULL;
    const char *candidates[] = {argv[2]};
    if (gradcmp_compare(argv[1], candidates, 1, &options, &report, &error) != GRADCMP_OK) {
        fprintf(stderr, "compare: %s: %s\n", error.path, error.message);
        return 2;
    }
    enum gradcmp_outcome outcome = gradcmp_report_outcome(report, 0);
    printf("%s\n", gradcmp_outcome_name(outcome));
    print_failures(report);
    if (outcome == GRADCMP_OUTCOME_ERROR) {
        const struct gradcmp_error *why = gradcmp_report_error(report, 0);
        fprintf(stderr, "compare: %s: %s\n", why->path, why->message);
    }
    gradcmp_report_free(report);
    return outcome == GRADCMP_OUTCOME_CONSISTENT     ? 0
           : outcome == GRADCMP_OUTCOME_INCONSISTENT ? 1
                                                     : 2;
}
