/* A report as HDF5: every column is what the report says, as libhdf5 and our own reader find it. */
#include "temp_tools.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gradcmp/gradcmp.h"
#include "gradcmp/sys/result.h"

#if defined(GCMP_TEST_H5HELPER)
#include <hdf5.h>
#include <zstd.h>

#define DATA GCMP_TEST_DATA "/megatron/"

struct written {
    char path[512];
    struct gradcmp_report *report;
    struct gradcmp_checkpoint *file;
};

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void write_report(struct written *written, const char *temp) {
    static const char *const candidates[] = {DATA "bug_double_layer1", DATA "tp2dp2"};
    struct gradcmp_error error = {0};
    assert_int_equal(gradcmp_compare(DATA "s_base", candidates, 2, NULL, &written->report, &error),
                     GRADCMP_OK);
    snprintf(written->path, sizeof written->path, "%s/report.h5", temp);
    int descriptor = open(written->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(descriptor >= 0);
    if (gradcmp_report_write_hdf5(written->report, descriptor, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    close(descriptor);
    assert_int_equal(gradcmp_checkpoint_open(written->path, NULL, &written->file, &error),
                     GRADCMP_OK);
}

static void release(struct written *written) {
    gradcmp_checkpoint_free(written->file);
    gradcmp_report_free(written->report);
}

/* Read a dataset by our own reader: `count` words. */
static void read_words(const struct written *written, const char *name, uint64_t *words,
                       size_t count) {
    struct gradcmp_error error = {0};
    for (size_t i = 0; i < gradcmp_checkpoint_tensor_count(written->file); i++) {
        struct gradcmp_tensor_info info;
        gradcmp_checkpoint_tensor(written->file, i, &info);
        if (strcmp(info.name, name) == 0) {
            if (gradcmp_checkpoint_read(written->file, i, words, 8 * count, &error) != GRADCMP_OK) {
                fail_msg("%s: %s", name, error.message);
            }
            return;
        }
    }
    fail_msg("no dataset %s", name);
}

/* Read a column by libhdf5, which has no zstd of its own: one chunk, whose bytes were shuffled. */
static void read_column(const struct written *written, const char *name, uint64_t *words,
                        size_t count) {
    hsize_t at = 0, bytes = 0;
    uint32_t filters = 0;
    unsigned char packed[4096], shuffled[512];
    hid_t file = H5Fopen(written->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t column = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(column >= 0 && 8 * count <= sizeof shuffled);
    assert_true(H5Dget_chunk_storage_size(column, &at, &bytes) >= 0 && bytes <= sizeof packed);
    assert_true(H5Dread_chunk(column, H5P_DEFAULT, &at, &filters, packed) >= 0);
    assert_int_equal(ZSTD_decompress(shuffled, sizeof shuffled, packed, (size_t)bytes), 8 * count);
    for (size_t i = 0; i < count; i++) {
        words[i] = 0;
        for (size_t byte = 0; byte < 8; byte++) {
            words[i] |= (uint64_t)shuffled[byte * count + i] << (8 * byte);
        }
    }
    H5Dclose(column);
    H5Fclose(file);
}

static void expect_real(uint64_t word, double expected, const char *what) {
    double value;
    memcpy(&value, &word, sizeof value);
    if (memcmp(&value, &expected, sizeof value) != 0 && !(isnan(value) && isnan(expected))) {
        fail_msg("%s: %.17g, expected %.17g", what, value, expected);
    }
}

static void test_report_hdf5__columns_are_the_figures(void **state) {
    struct written written;
    uint64_t rel[64], ratio[64], norms[64], layers[64], zeros[64];
    write_report(&written, *state);
    for (size_t pair = 0; pair < 2; pair++) {
        const struct gradcmp_pair_report *report = &written.report->pairs[pair];
        const char *const names[] = {"rel", "ratio", "norm_b"};
        uint64_t *const columns[] = {rel, ratio, norms};
        char name[64];
        assert_in_range(report->parameter_count, 20, 64);
        for (size_t c = 0; c < 3; c++) {
            snprintf(name, sizeof name, "candidates.%zu.%s", pair, names[c]);
            read_words(&written, name, columns[c], report->parameter_count);
        }
        snprintf(name, sizeof name, "/candidates/%zu/layer", pair);
        read_column(&written, name, layers, report->parameter_count);
        snprintf(name, sizeof name, "/candidates/%zu/zeros_b", pair);
        read_column(&written, name, zeros, report->parameter_count);
        for (size_t i = 0; i < report->parameter_count; i++) {
            const struct gradcmp_parameter_report *parameter = &report->parameters[i];
            expect_real(rel[i], parameter->rel, parameter->name);
            expect_real(ratio[i], parameter->ratio, parameter->name);
            expect_real(norms[i], parameter->norm_b, parameter->name);
            assert_int_equal(layers[i], parameter->layer);
            assert_int_equal(zeros[i], parameter->tally.zeros_b);
        }
    }
    release(&written);
}

static void test_report_hdf5__heat_maps_are_those_of_what_fails(void **state) {
    struct written written;
    static uint64_t cells[GRADCMP_HEAT_CELLS * GRADCMP_HEAT_CELLS];
    size_t maps = 0;
    write_report(&written, *state);
    const struct gradcmp_pair_report *report = &written.report->pairs[0];
    for (size_t i = 0; i < report->parameter_count; i++) {
        const struct gradcmp_heat *heat = &report->parameters[i].heat;
        char name[64];
        size_t count = (size_t)heat->rows * heat->columns;
        snprintf(name, sizeof name, "candidates.0.heat.%06zu", i);
        if (count > 0) {
            read_words(&written, name, cells, count);
            maps++;
        }
        for (size_t c = 0; c < count; c++) {
            expect_real(cells[c], heat->cells[c], name);
        }
    }
    assert_int_equal(maps, 6);
    release(&written);
}

/* Texts are not under zstd: whoever has libhdf5 can read them. */
static void test_report_hdf5__names_are_texts(void **state) {
    struct written written;
    write_report(&written, *state);
    const struct gradcmp_pair_report *report = &written.report->pairs[0];
    hid_t file = H5Fopen(written.path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t names = H5Dopen2(file, "/candidates/0/name", H5P_DEFAULT);
    hid_t type = H5Dget_type(names);
    assert_true(names >= 0 && H5Tget_class(type) == H5T_STRING);
    size_t length = H5Tget_size(type);
    char *bytes = calloc(report->parameter_count, length);
    assert_non_null(bytes);
    assert_true(H5Dread(names, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    for (size_t i = 0; i < report->parameter_count; i++) {
        assert_int_equal(strncmp(bytes + i * length, report->parameters[i].name, length), 0);
    }
    assert_true(H5Aexists(names, "verdict") > 0 &&
                H5Aexists_by_name(file, "/", "gradcmp.report", H5P_DEFAULT) > 0);
    free(bytes);
    H5Tclose(type);
    H5Dclose(names);
    H5Fclose(file);
    release(&written);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_report_hdf5__columns_are_the_figures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_report_hdf5__heat_maps_are_those_of_what_fails, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_report_hdf5__names_are_texts, setup, teardown)};
    setenv("GRADCMP_H5HELPER", GCMP_TEST_H5HELPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 0;
}
#endif
