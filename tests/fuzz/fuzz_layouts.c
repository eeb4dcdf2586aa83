/* Fuzz target of meaning: one random set of tensors in two random layouts. Each layout must read as
 * the tensors that went in, bit for bit, and the two must compare as equal. */
#include "random_layout.h"

#include "gradcmp/gradcmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const struct gradcmp_error *error) {
    fprintf(stderr, "%s: %s: %s\n", what, error->path, error->message);
    abort();
}

static int print(void *user, const char *bytes, size_t length_bytes) {
    (void)user;
    return fwrite(bytes, 1, length_bytes, stderr) != length_bytes;
}

/* Read one tensor and hold it against what went in. */
static void check_tensor(struct gradcmp_checkpoint *checkpoint, const struct kind *kind,
                         const struct whole *whole, bool weight) {
    static uint8_t bytes[8 * MAX_ELEMS];
    const struct element *element = weight ? kind->weight : kind->gradient;
    size_t count = (size_t)kind->elems * element->bytes, index = 0;
    struct gradcmp_tensor_info info;
    struct gradcmp_error error = {0};
    do {
        demand(index < gradcmp_checkpoint_tensor_count(checkpoint), "a tensor has its name");
        gradcmp_checkpoint_tensor(checkpoint, index++, &info);
    } while (strcmp(info.name, whole->name) != 0 ||
             strcmp(info.state, weight ? "param" : "exp_avg") != 0);
    demand(strcmp(gradcmp_dtype_name(info.dtype), element->name) == 0, "the type");
    demand(info.ndim == kind->ndim && info.copies == 1, "axes and copies");
    for (unsigned d = 0; d < kind->ndim; d++) {
        demand(info.shape[d] == kind->shape[d], "the shape");
    }
    if (gradcmp_checkpoint_read(checkpoint, index - 1, bytes, count, &error) != GRADCMP_OK) {
        fail("read", &error);
    }
    demand(memcmp(bytes, weight ? whole->weight : whole->gradient, count) == 0,
           "a tensor holds what went in");
}

/* Every tensor is there once and holds what the oracle has. */
static void check_content(const struct set *set, const char *folder) {
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_error error = {0};
    if (gradcmp_checkpoint_open(folder, NULL, &checkpoint, &error) != GRADCMP_OK) {
        fail("open", &error);
    }
    demand(gradcmp_checkpoint_tensor_count(checkpoint) == set->count * (set->has_weights ? 2U : 1U),
           "every tensor is there");
    for (unsigned k = 0; k < set->kind_count; k++) {
        const struct kind *kind = &set->kinds[k];
        for (unsigned i = 0; i < slots_of(kind); i++) {
            check_tensor(checkpoint, kind, &set->wholes[kind->first + i], false);
            if (set->has_weights) {
                check_tensor(checkpoint, kind, &set->wholes[kind->first + i], true);
            }
        }
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
    if (gradcmp_evidence_exit_status(evidence) != 0) {
        struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
        (void)!gradcmp_evidence_write_text(evidence, &text, print, NULL, &error);
        demand(false, "all bits are the same");
    }
    gradcmp_evidence_free(evidence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct set set;
    static struct layout layout;
    struct input input = make_input(data, size);
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    options.dtype = GRADCMP_DTYPE_FLOAT32;
    options.threads = 1;
    options.buffer_bytes = 1; /* as little as there can be: nothing here is large */
    make_set(&input, &set);
    write_layouts(&input, &set, &layout);
    for (int i = 0; i < 2; i++) {
        check_content(&set, layout_folders[i]);
    }
    if (one_in(&input, 2)) {
        check_equal(&set, &options);
    } else {
        check_bits(&options);
    }
    return 0;
}
