/* Safetensors: what names of files and their metadata say of parts, ranks and the run. */
#include "formats/sample_tools.h"

#include "formats/safetensors.h"

static const struct gradcmp_format *const format = &gcmp_format_safetensors;

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

/* Write a file of one tensor of one element, with texts as metadata (NULL: none). */
static void write_file(const char *temp, const char *name, const char *tensor,
                       const char *metadata) {
    char header[1024], bytes[1100];
    int count = snprintf(header, sizeof header,
                         "{%s%s%s\"exp_avg.%s\":{\"dtype\":\"F32\",\"shape\":[1],"
                         "\"data_offsets\":[0,4]}}",
                         metadata == NULL ? "" : "\"__metadata__\":{",
                         metadata == NULL ? "" : metadata, metadata == NULL ? "" : "},", tensor);
    assert_true(count > 0 && (size_t)count < sizeof header);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)((uint64_t)count >> (8 * i));
    }
    memcpy(bytes + 8, header, (size_t)count);
    memcpy(bytes + 8 + count, "\0\0\x80\x3f", 4);
    temp_file(temp, name, bytes, (size_t)count + 12);
}

static void remove_file(const char *temp, const char *name) {
    char *path = temp_path(temp, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

#define ALONE                                                                                      \
    "2 safetensors files and nothing that tells how they belong together (an index, "              \
    "DCP_SHARDING_INFO, rank and world_size, numbers k of n): name one"

static void test_open__names_tell_parts(void **state) {
    static const struct {
        const char *first, *second, *message; /* NULL: both are read */
        enum gradcmp_status code;
    } rows[] = {
        {"m-1-of-2.safetensors", "m-2-of-2.safetensors", NULL, GRADCMP_OK},
        {"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", NULL, GRADCMP_OK},
        {"shard-00001-m-1-of-2.safetensors", "shard-00001-m-2-of-2.safetensors", NULL, GRADCMP_OK},
        {"shard-x-1-of-2.safetensors", "shard-x-2-of-2.safetensors", NULL, GRADCMP_OK},
        {"shard-1x-1-of-2.safetensors", "shard-1x-2-of-2.safetensors", NULL, GRADCMP_OK},
        {"m-1-of-1.safetensors", "n-1-of-1.safetensors", NULL, GRADCMP_OK},
        {"m-1-of-2.safetensors", "n-2-of-2.safetensors",
         "safetensors: m-1-of-2.safetensors is there, but not part m-2 of 2",
         GRADCMP_ERROR_CORRUPT},
        {"m-1-of-2.safetensors", "m-3-of-3.safetensors",
         "safetensors: m-1-of-2.safetensors is there, but not part m-2 of 2",
         GRADCMP_ERROR_CORRUPT},
        /* none of these is a part */
        {"m-x-of-2.safetensors", "m-y-of-2.safetensors", ALONE, GRADCMP_ERROR_UNSUPPORTED},
        {"m1-of-2.safetensors", "m2-of-2.safetensors", ALONE, GRADCMP_ERROR_UNSUPPORTED},
        {"1-of-2.safetensors", "2-of-2.safetensors", ALONE, GRADCMP_ERROR_UNSUPPORTED},
        {"m-1-of-.safetensors", "m-2-of-.safetensors", ALONE, GRADCMP_ERROR_UNSUPPORTED},
        {"m-1-of-2x.safetensors", "m-2-of-2x.safetensors", ALONE, GRADCMP_ERROR_UNSUPPORTED},
        {"m-0000000001-of-2.safetensors", "m-0000000002-of-2.safetensors", ALONE,
         GRADCMP_ERROR_UNSUPPORTED},
        {"m-1-of-0000000002.safetensors", "m-2-of-0000000002.safetensors", ALONE,
         GRADCMP_ERROR_UNSUPPORTED},
        {"m-0-of-2.safetensors", "m-3-of-2.safetensors",
         "safetensors: m-0-of-2.safetensors is there, but not part m-1 of 2",
         GRADCMP_ERROR_CORRUPT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(*state, rows[i].first, "v", NULL);
        write_file(*state, rows[i].second, "w", NULL);
        if (rows[i].message == NULL) {
            struct opened *opened = open_good(format, *state);
            assert_int_equal(opened->catalogue.stored_count, 2);
            close_format(opened);
        } else {
            check_refused_open(format, *state, rows[i].code, GRADCMP_NO_OFFSET, *state,
                               rows[i].message);
        }
        remove_file(*state, rows[i].first);
        remove_file(*state, rows[i].second);
    }
}

#define RANK(rank, world) "\"rank\":\"" rank "\",\"world_size\":\"" world "\""

static void test_open__numbers_of_ranks_are_whole(void **state) {
    static const struct {
        const char *metadata, *message;
    } rows[] = {
        {RANK("", "2"), "safetensors: rank  of 2, expected each rank of 2 files once"},
        {RANK("x", "2"), "safetensors: rank x of 2, expected each rank of 2 files once"},
        {RANK("-1", "2"), "safetensors: rank -1 of 2, expected each rank of 2 files once"},
        {RANK("2", "2"), "safetensors: rank 2 of 2, expected each rank of 2 files once"},
        {RANK("0", "2"), "safetensors: rank 0 of 2, expected each rank of 2 files once"},
        {RANK("1", ""), "safetensors: rank 1 of , expected each rank of 2 files once"},
        {RANK("1", "2x"), "safetensors: rank 1 of 2x, expected each rank of 2 files once"},
        {RANK("1", "0000000002"),
         "safetensors: rank 1 of 0000000002, expected each rank of 2 files once"},
        {RANK("1", "99999999"),
         "safetensors: rank 1 of 99999999, expected each rank of 2 files once"},
    };
    write_file(*state, "a.safetensors", "w", RANK("0", "2"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(*state, "b.safetensors", "w", rows[i].metadata);
        check_refused_open(format, *state, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET,
                           "/b.safetensors", rows[i].message);
    }
    /* Files of one rank, or of which not all name one, are no series of ranks. */
    write_file(*state, "b.safetensors", "v", RANK("0", "1"));
    check_refused_open(format, *state, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, *state, ALONE);
    write_file(*state, "b.safetensors", "v", "\"world_size\":\"2\"");
    check_refused_open(format, *state, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, *state, ALONE);
}

static void test_open__the_iteration_is_a_number(void **state) {
    static const struct {
        const char *metadata;
        int64_t iteration;
        const char *writer;
    } rows[] = {
        {"\"iteration\":\"12\"", 12, NULL},
        {"\"step\":\"13\",\"format\":\"pt\"", 13, "torch"},
        {"\"iteration\":\"x\",\"step\":\"14\",\"format\":\"np\"", 14, NULL},
        {"\"iteration\":\"12 \"", -1, NULL},
        {"\"iteration\":\"-1\"", -1, NULL},
        {"\"iteration\":\"\"", -1, NULL},
        {"\"iteration\":\"1000000000000000000\"", -1, NULL},
        {"\"iteration\":\"999999999999999999\"", 999999999999999999, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(*state, "a.safetensors", "w", rows[i].metadata);
        struct opened *opened = open_good(format, *state);
        assert_int_equal(opened->catalogue.iteration, rows[i].iteration);
        if (rows[i].writer == NULL) {
            assert_null(opened->catalogue.writer);
        } else {
            assert_string_equal(opened->catalogue.writer, rows[i].writer);
        }
        close_format(opened);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_open__names_tell_parts),
        TEMP_TEST(test_open__numbers_of_ranks_are_whole),
        TEMP_TEST(test_open__the_iteration_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
