/* What the search for causes reads: bytes, counted in the engine. */
#include "temp_tools.h"

#include <math.h>

#include "gradcmp/gradcmp.h"
#include "gradcmp/sys/result.h"

enum { LAYERS = 12, ROWS = 48, COLUMNS = 64, ELEMS = ROWS * COLUMNS, MOST_CONSTANT = 16384 };

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* One weight a layer. */
struct model {
    float values[LAYERS][ELEMS];
};

/* A rough normal distribution, the same on every machine. */
static float draw(uint64_t *seed) {
    double sum = 0.0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(*seed >> 11) / 9007199254740992.0;
    }
    return (float)((sum - 6.0) * 1e-3);
}

static void fill(struct model *model, uint64_t seed) {
    for (size_t layer = 0; layer < LAYERS; layer++) {
        for (size_t i = 0; i < ELEMS; i++) {
            model->values[layer][i] = draw(&seed);
        }
    }
}

/* Rounding that differs between the sides. */
static void add_noise(struct model *model, double size, uint64_t seed) {
    for (size_t layer = 0; layer < LAYERS; layer++) {
        for (size_t i = 0; i < ELEMS; i++) {
            model->values[layer][i] += (float)(size * draw(&seed));
        }
    }
}

static void store(const char *temp, const char *name, const struct model *model) {
    size_t capacity = 65536 + sizeof *model, used = 8;
    char *bytes = calloc(1, capacity);
    assert_non_null(bytes);
    bytes[used++] = '{';
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        size_t from = layer * sizeof model->values[0];
        used += (size_t)snprintf(bytes + used, capacity - used,
                                 "%s\"decoder.layers.%u.mlp.linear_fc2.weight\":{\"dtype\":\"F32\","
                                 "\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]}",
                                 layer == 0 ? "" : ",", layer, ROWS, COLUMNS, from,
                                 from + sizeof model->values[0]);
    }
    bytes[used++] = '}';
    uint64_t header = used - 8;
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (char)(header >> (8 * i));
    }
    memcpy(bytes + used, model, sizeof *model);
    temp_file(temp, name, bytes, used + sizeof *model);
    free(bytes);
}

static struct gradcmp_report *compare(const char *temp) {
    char *a = temp_path(temp, "a.safetensors"), *b = temp_path(temp, "b.safetensors");
    const char *const candidates[] = {b};
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_report *report = NULL;
    options.state = "param";
    options.dtype = GRADCMP_DTYPE_BFLOAT16;
    if (gradcmp_compare(a, candidates, 1, &options, &report, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", error.path, error.message);
    }
    free(a);
    free(b);
    return report;
}

/* Bytes of the failing parameters on both sides. */
static uint64_t failing_bytes(const struct gradcmp_pair_report *pair) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (pair->parameters[i].verdict != GRADCMP_VERDICT_PASS) {
            bytes += 2 * ELEMS * sizeof(float);
        }
    }
    return bytes;
}

/* Make the fault `spoil`, and see that its search stays within three readings. */
static void expect_few_bytes(const char *temp, void (*spoil)(struct model *), const char *cause) {
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    fill(model, 1);
    store(temp, "a.safetensors", model);
    add_noise(model, 1e-3, 2);
    spoil(model);
    store(temp, "b.safetensors", model);
    free(model);
    struct gradcmp_report *report = compare(temp);
    const struct gradcmp_pair_report *pair = &report->pairs[0];
    assert_int_equal(pair->outcome, GRADCMP_OUTCOME_INCONSISTENT);
    assert_string_equal(pair->cause.kind, cause);
    uint64_t failing = failing_bytes(pair);
    assert_true(failing > 0);
    assert_true(report->cause_bytes >= failing); /* it was counted */
    if (report->cause_bytes > 3 * failing + MOST_CONSTANT) {
        fail_msg("%s: %llu bytes read for %llu that fail", cause,
                 (unsigned long long)report->cause_bytes, (unsigned long long)failing);
    }
    gradcmp_report_free(report);
}

static void roll_one(struct model *model) {
    float *values = model->values[LAYERS / 2], kept[COLUMNS];
    memcpy(kept, values, sizeof kept);
    memmove(values, values + COLUMNS, (ELEMS - COLUMNS) * sizeof *values);
    memcpy(values + ELEMS - COLUMNS, kept, sizeof kept);
}

static void swap_layers(struct model *model) {
    for (size_t i = 0; i < ELEMS; i++) {
        float kept = model->values[3][i];
        model->values[3][i] = model->values[7][i];
        model->values[7][i] = kept;
    }
}

static void disturb_one(struct model *model) {
    uint64_t seed = 3;
    for (size_t i = 0; i < ELEMS; i++) {
        model->values[5][i] = draw(&seed);
    }
}

static void disturb_all(struct model *model) {
    fill(model, 4);
}

static void swap_halves(struct model *model) {
    for (size_t i = 0; i < ELEMS / 2; i++) {
        float kept = model->values[2][i];
        model->values[2][i] = model->values[2][i + ELEMS / 2];
        model->values[2][i + ELEMS / 2] = kept;
    }
}

static void repeat_block(struct model *model) {
    memcpy(model->values[2] + ELEMS / 2, model->values[2], ELEMS / 2 * sizeof(float));
}

static void double_one(struct model *model) {
    for (size_t i = 0; i < ELEMS; i++) {
        model->values[4][i] *= 2.0F;
    }
}

static void test_cause_bytes__of_faults_at_most_three_readings(void **state) {
    expect_few_bytes(*state, roll_one, "roll");
    expect_few_bytes(*state, swap_layers, "layer_slot");
    expect_few_bytes(*state, disturb_one, "unexplained");
    expect_few_bytes(*state, disturb_all, "unexplained");
    expect_few_bytes(*state, swap_halves, "blocks_permuted");
    expect_few_bytes(*state, repeat_block, "block_repeated");
    expect_few_bytes(*state, double_one, "scale");
}

static void test_cause_bytes__none_when_all_is_well(void **state) {
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    fill(model, 1);
    store(*state, "a.safetensors", model);
    add_noise(model, 1e-3, 2);
    store(*state, "b.safetensors", model);
    free(model);
    struct gradcmp_report *report = compare(*state);
    assert_int_equal(report->pairs[0].outcome, GRADCMP_OUTCOME_CONSISTENT);
    assert_int_equal(report->cause_bytes, 0);
    gradcmp_report_free(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_cause_bytes__of_faults_at_most_three_readings),
        TEMP_TEST(test_cause_bytes__none_when_all_is_well)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
