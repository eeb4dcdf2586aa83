/* Fuzz target of meaning: one random set of tensors in two random layouts. Each layout must read as
 * the tensors that went in, bit for bit, and the two must compare as equal. */
#include "random_layout.h"

#include "gradcmp/gradcmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const struct gradcmp_error *error) {
    fprintf(stderr, "%s: %s: %s\n", what, error->path, error->message);
    abort();
}

/* Every tensor is there once and holds what the oracle has. */
static void check_content(const struct set *set, const char *folder) {
    static uint8_t bytes[4 * MAX_ELEMS];
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_error error = {0};
    if (gradcmp_checkpoint_open(folder, NULL, &checkpoint, &error) != GRADCMP_OK) {
        fail("open", &error);
    }
    demand(gradcmp_checkpoint_tensor_count(checkpoint) == set->count, "every tensor is there");
    for (unsigned t = 0; t < set->count; t++) {
        const struct whole *whole = &set->tensors[t];
        struct gradcmp_tensor_info info;
        size_t index = 0;
        do {
            demand(index < set->count, "a tensor has its name");
            gradcmp_checkpoint_tensor(checkpoint, index++, &info);
        } while (strcmp(info.name, whole->name) != 0);
        demand(info.ndim == whole->ndim && strcmp(info.state, "exp_avg") == 0, "axes and state");
        for (unsigned d = 0; d < whole->ndim; d++) {
            demand(info.shape[d] == whole->shape[d], "the shape");
        }
        size_t count = (size_t)whole->elems * whole->elem_bytes;
        if (gradcmp_checkpoint_read(checkpoint, index - 1, bytes, count, &error) != GRADCMP_OK) {
            fail("read", &error);
        }
        demand(memcmp(bytes, whole->bytes, count) == 0, "a tensor holds what went in");
    }
    gradcmp_checkpoint_free(checkpoint);
}

static void check_equal(const struct set *set, const struct gradcmp_options *options) {
    struct gradcmp_report *report;
    struct gradcmp_error error = {0};
    const char *candidates[] = {layout_folders[1]};
    if (gradcmp_compare(layout_folders[0], candidates, 1, options, &report, &error) != GRADCMP_OK) {
        fail("compare", &error);
    }
    if (gradcmp_report_error(report, 0) != NULL) {
        fail("candidate", gradcmp_report_error(report, 0));
    }
    demand(gradcmp_report_outcome(report, 0) == GRADCMP_OUTCOME_CONSISTENT,
           "the pair is consistent");
    demand(gradcmp_report_parameter_count(report, 0) == set->count, "every parameter is judged");
    for (unsigned t = 0; t < set->count; t++) {
        struct gradcmp_parameter_result result;
        gradcmp_report_parameter(report, 0, t, &result);
        demand(result.verdict == GRADCMP_VERDICT_PASS && !(result.rel > 0) && !(result.max_abs > 0),
               "a parameter differs by nothing");
        demand(result.norm_a == result.norm_b && result.norm_a > 0, "norms are the same");
    }
    gradcmp_report_free(report);
}

static void check_bits(const struct gradcmp_options *options) {
    struct gradcmp_evidence *evidence;
    struct gradcmp_error error = {0};
    const char *paths[] = {layout_folders[0], layout_folders[1]};
    if (gradcmp_bits(paths, 2, options, NULL, &evidence, &error) != GRADCMP_OK) {
        fail("bits", &error);
    }
    demand(gradcmp_evidence_exit_status(evidence) == 0, "all bits are the same");
    gradcmp_evidence_free(evidence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct set set;
    static struct cut cuts[MAX_TENSORS];
    struct input input = make_input(data, size);
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.dtype = GRADCMP_DTYPE_FLOAT32;
    options.threads = 1;
    make_folders();
    make_set(&input, &set);
    for (int i = 0; i < 2; i++) {
        write_layout(&input, &set, layout_folders[i], cuts);
        check_content(&set, layout_folders[i]);
    }
    check_equal(&set, &options);
    check_bits(&options);
    return 0;
}
