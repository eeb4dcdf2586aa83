/* Damaged and hostile distributed checkpoints: each fixture has one defect, and is refused with its
 * code, at its byte, by one line. */
#include "formats/dcp_tools.h"

#include <sys/stat.h>

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#define BAD_DATA GCMP_TEST_DATA "/bad/dcp/"

/* Expect the failure to open the checkpoint at `path`; `file` is the one at fault. */
static void expect_refused(const char *path, const char *file, enum gradcmp_status code,
                           uint64_t offset, const char *message) {
    char full[1024];
    struct dcp_case *dcp = dcp_open(path);
    assert_int_equal(dcp->status, code);
    assert_int_equal(dcp->error.code, code);
    assert_text_contains(dcp->error.message, message);
    assert_int_equal(dcp->error.offset_bytes, offset);
    snprintf(full, sizeof full, "%s/%s", path, file);
    assert_string_equal(dcp->error.path, full);
    assert_null(strchr(dcp->error.message, '\n'));
    dcp_close(dcp);
}

#define C     GRADCMP_ERROR_CORRUPT
#define U     GRADCMP_ERROR_UNSUPPORTED
#define NONE  GRADCMP_NO_OFFSET
#define META  ".metadata"
#define SHARD "__0_0.distcp"

static void test_open__damaged_metadata_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *name, *file;
        enum gradcmp_status code;
        uint64_t offset;
        const char *message;
    } cases[] = {
        {"meta_empty", META, C, 0, "expected STOP"},
        {"meta_trunc", META, C, 2, "FRAME"},
        {"meta_tail", META, C, 2, "FRAME"},
        {"meta_text", META, C, 0, "BINGET"},
        {"meta_class", META, C, 65,
         "expected torch's Metadata object, found torch.distributed.checkpoint.metadatb Metadata"},
        {"meta_missing_attr", META, C, 65,
         "expected a dict storage_data in the Metadata object, found nothing"},
        {"tensor_negative", META, C, 148,
         "\"optim.state.w.exp_avg\": expected integers of 0 or more in size, found -4"},
        {"tensor_overflow", META, C, 148, "a tensor of 2^63 bytes or more"},
        {"chunk_negative", META, C, 436, "expected integers of 0 or more in sizes, found -2"},
        {"chunk_outside", META, C, 436, "a chunk of 2 from 2 on axis 0, which has 3"},
        {"rank_mismatch", META, C, 386, "a chunk of 2 offsets and 2 sizes in a tensor of 3 axes"},
        {"no_storage_entry", META, C, 436, "storage_data has no entry for a chunk"},
        {"length_float", META, C, 903, "expected an integer offset"},
        {"length_zero", META, C, 903, "a length of 1 or more"},
        {"offset_negative", META, C, 903, "expected an integer offset of 0 or more"},
        {"offset_wrap", META, C, 903, "expected an integer offset of 0 or more"},
        {"path_up", META, C, 903, "etc/passwd\" leads out of the checkpoint"},
        {"path_abs", META, C, 903, "relative_path \"/etc/passwd\" is absolute"},
        {"path_sibling", META, C, 903, "leads out of the checkpoint"},
        {"path_dev", META, C, 903, "relative_path \"/dev/zero\" is absolute"},
        {"path_nul", META, C, 903, "holds a NUL"},
        {"path_empty", META, C, 903, "relative_path \"\" is empty"},
        {"path_dot", META, C, 903, "relative_path \".\" is not a plain path"},
        {"path_long", META, C, 903, "is too long"},
        {"path_type", META, C, 903, "expected a text as relative_path, found an integer"},
        {"transform_unknown", META, U, 814, "the transform \"stream.rot13/1\""},
        {"transform_version", META, U, 814, "the transform \"stream.zstd/2\""},
        {"missing_shard", "__9_0.distcp", GRADCMP_ERROR_IO, NONE, "missing shard"},
        {"shard_is_dir", SHARD, C, NONE, "not a regular file but a directory"},
        {"empty_shard", SHARD, C, 0, "takes 1577 bytes from byte 0, the file has 0"},
        {"trunc_shard", SHARD, C, 4631,
         "truncated: \"optim.state.b.exp_avg\" takes 1577 bytes from byte 3154, the file has 4631"},
        {"offset_past_end", SHARD, C, 4731, "from byte 1099511627776, the file has 4731"},
        {"length_huge", SHARD, C, 4731, "takes 4611686018427387904 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s", BAD_DATA, cases[i].name);
        expect_refused(path, cases[i].file, cases[i].code, cases[i].offset, cases[i].message);
    }
}

static void test_resolve__item_that_contradicts_its_metadata_is_corrupt(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t offset; /* of the first item that fails */
        size_t failures;
        const char *message;
    } cases[] = {
        {"blob_shape", 1577, 1, "expected float32 [2, 3], found float32 [3, 2]"},
        {"blob_dtype", 1577, 1, "expected float32 [2, 3], found float64 [2, 3]"},
        {"blob_garbage", 0, 2, "not a torch.save archive: expected it to begin with 504b0304"},
        {"conflict", 1577, 1, "expected float32 [4, 3], found float32 [2, 3]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s", BAD_DATA, cases[i].name);
        struct dcp_case *dcp = dcp_open_good(path);
        size_t failures = 0;
        for (uint32_t k = 0; k < dcp->catalogue.source_count; k++) {
            struct gradcmp_extent extent;
            struct gradcmp_error error = {0};
            if (gcmp_format_torch_dist.resolve(&dcp->catalogue, k, &extent, &error) == GRADCMP_OK) {
                continue;
            }
            assert_int_equal(error.code, GRADCMP_ERROR_CORRUPT);
            assert_text_contains(error.message, cases[i].message);
            assert_text_contains(error.path, "/__0_0.distcp");
            if (failures++ == 0) {
                assert_int_equal(error.offset_bytes, cases[i].offset);
            }
        }
        assert_int_equal(failures, cases[i].failures);
        dcp_close(dcp);
    }
}

/* What a later part must find out, or what is valid, opens. */
static void test_open__valid_or_for_others_to_judge(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t stored, sources;
    } cases[] = {
        {"specials", 2, 3},       {"empty_chunks", 2, 2},      {"dup_chunk", 2, 3},
        {"hole", 2, 2},           {"tensor_huge", 2, 3},       {"flip_data", 2, 3},
        {"exec_dcp_bytes", 3, 4}, {"exec_dcp_metadata", 2, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s", BAD_DATA, cases[i].name);
        struct dcp_case *dcp = dcp_open_good(path);
        assert_int_equal(dcp->catalogue.stored_count, cases[i].stored);
        assert_int_equal(dcp->catalogue.source_count, cases[i].sources);
        assert_true(dcp_resolve_all(dcp) > 0);
        dcp_close(dcp);
    }
    assert_int_equal(access("gradcmp_was_tricked", F_OK), -1);
}

/* Copy a good checkpoint, and put `shard` of the copy out of the way. */
static void copy_without_shard(const char *temp) {
    copy_files(BAD_DATA "specials", temp);
    char *from = temp_path(temp, SHARD), *to = temp_path(temp, "aside");
    assert_int_equal(rename(from, to), 0);
    free(from);
    free(to);
}

static void test_open__shard_that_is_a_fifo_is_refused_without_waiting(void **state) {
    copy_without_shard(*state);
    char *path = temp_path(*state, SHARD);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(*state, SHARD, C, NONE, "not a regular file but a FIFO");
    free(path);
}

static void test_open__metadata_that_is_a_fifo_is_refused_without_waiting(void **state) {
    char *path = temp_path(*state, META);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(*state, META, C, NONE, "not a regular file but a FIFO");
    free(path);
}

static void test_open__links_stay_inside(void **state) {
    static const char *const targets[] = {"/etc/passwd", SHARD, "../../etc/passwd"};
    static const char *const messages[] = {
        "leads out of the checkpoint", "a loop of symbolic links", "leads out of the checkpoint"};
    copy_without_shard(*state);
    char *path = temp_path(*state, SHARD);
    for (size_t i = 0; i < 3; i++) {
        temp_link(*state, SHARD, targets[i]);
        expect_refused(*state, SHARD, C, NONE, messages[i]);
        assert_int_equal(unlink(path), 0);
    }
    temp_link(*state, SHARD, "aside");
    struct dcp_case *dcp = dcp_open_good(*state);
    assert_int_equal(dcp_resolve_all(dcp), 3);
    dcp_close(dcp);
    free(path);
}

static void test_open__unreadable_shard_is_io(void **state) {
    copy_files(BAD_DATA "specials", *state);
    char *path = temp_path(*state, SHARD);
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) {
        expect_refused(*state, SHARD, GRADCMP_ERROR_IO, NONE, "permission denied");
    }
    free(path);
}

static void test_open__directory_without_metadata_is_unfinished(void **state) {
    struct dcp_case *dcp = dcp_open(*state);
    assert_int_equal(dcp->status, GRADCMP_ERROR_CORRUPT);
    assert_string_equal(dcp->error.message, "save unfinished: .metadata is missing");
    dcp_close(dcp);
}

static void test_open__bytes_behind_the_metadata_are_corrupt(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_storage(writer);
    w_raw(writer, "uub.tail");
    temp_file(*state, META, writer->bytes, writer->count);
    expect_refused(*state, META, C, writer->count - 4, "found 4 more bytes");
    free(writer);
}

static const long long zeros[32] = {0};
static const long long ones[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Open what was written, and expect a failure in the metadata. */
static void expect_written(void **state, struct dcp_writer *writer, enum gradcmp_status code,
                           const char *message) {
    w_finish(writer, *state);
    struct dcp_case *dcp = dcp_open(*state);
    assert_int_equal(dcp->status, code);
    assert_text_contains(dcp->error.message, message);
    assert_text_contains(dcp->error.path, "/.metadata");
    assert_true(dcp->error.offset_bytes < writer->count);
    dcp_close(dcp);
    free(writer);
}

static void test_open__two_entries_for_one_chunk_are_corrupt(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_simple(writer, "w", 2, ones);
    w_storage(writer);
    w_entry(writer, "w", 2, zeros, "shard");
    w_entry(writer, "w", 2, zeros, "other");
    expect_written(state, writer, C, "the same key twice in storage_data");
}

/* A tensor "a.0.b" whose path in planner_data is `path`, a value of pickle. */
static struct dcp_writer *write_path(const char *path) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_simple(writer, "a.0.b", 2, ones);
    w_raw(writer, "u");
    w_text(writer, "planner_data");
    w_raw(writer, "}(");
    w_text(writer, "a.0.b");
    w_raw(writer, path);
    w_text(writer, "elsewhere"); /* of what is not listed */
    w_raw(writer, "(Vc\nt");
    w_storage(writer);
    w_entry(writer, "a.0.b", 2, zeros, "shard");
    return writer;
}

/* Names come from the path, data by the key. */
static void test_open__path_that_is_not_the_key_is_corrupt(void **state) {
    static const char *const bad[] = {"(Va\nI0\nVc\nt",     "(Va\nI1\nVb\nt",  "(Va\nI0\nt",
                                      "(Va\nI0\nVb\nVc\nt", "(Va\nVb\nt",      "(Va\nNVb\nt",
                                      "(Va.0.b.\nt",        "(Va.0\nVb\nV\nt", ")"};
    static const char *const good[] = {
        "(Va\nI0\nVb\nt", "(Va\nV0\nVb\nt", "(Va.0.b\nt", "(Va.0\nVb\nt", "N", "Vc\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_written(state, write_path(bad[i]), C,
                       "planner_data has another path for \"a.0.b\" than its key, by which loaders "
                       "take its data");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct dcp_writer *writer = write_path(good[i]);
        w_finish(writer, *state);
        dcp_close(dcp_open_good(*state));
        free(writer);
    }
}

static void test_open__too_many_axes_are_over_the_limit(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_simple(writer, "w", 17, ones);
    w_storage(writer);
    expect_written(state, writer, GRADCMP_ERROR_LIMIT, "17 axes in size, at most 16 are read");
}

static void test_open__chunk_that_begins_outside_is_corrupt(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    static const long long shape[1] = {3}, offset[1] = {9}, size[1] = {1};
    w_begin(writer);
    w_tensor(writer, "w", "float32", 1, shape);
    w_chunk(writer, 1, offset, size);
    w_tensor_end(writer);
    w_storage(writer);
    w_entry(writer, "w", 1, offset, "shard");
    expect_written(state, writer, C, "a chunk of 1 from 9 on axis 0, which has 3");
}

static void test_open__tensor_of_two_to_the_63_bytes_is_corrupt(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    static const long long shape[1] = {1LL << 61};
    w_begin(writer);
    w_tensor(writer, "w", "float32", 1, shape);
    w_tensor_end(writer);
    w_storage(writer);
    expect_written(state, writer, C, "2^63 bytes");
}

static void test_open__sixteen_axes_are_read(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_simple(writer, "w", 16, ones);
    w_storage(writer);
    w_entry(writer, "w", 16, zeros, "shard");
    w_finish(writer, *state);
    struct dcp_case *dcp = dcp_open_good(*state);
    assert_int_equal(dcp_find(dcp, "w")->ndim, 16);
    assert_int_equal(dcp_find(dcp, "w")->piece_count, 1);
    dcp_close(dcp);
    free(writer);
}

static void test_open__long_key_is_refused(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    char key[4098];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    w_begin(writer);
    w_simple(writer, key, 2, ones);
    w_storage(writer);
    expect_written(state, writer, C, "a text without NUL of at most 4096 bytes");
}

static void test_open__entry_key_of_another_kind_is_corrupt(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_simple(writer, "w", 2, ones);
    w_storage(writer);
    w_text(writer, "w");
    w_raw(writer, "N");
    expect_written(state, writer, C, "expected a MetadataIndex as a key of storage_data");
}

/* One list of 1000 empty chunks that 100 tensors share takes a few bytes a tensor. */
static void test_open__shared_list_of_chunks_is_over_the_limit(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    static const long long shape[2] = {0, 1};
    char key[32];
    w_begin(writer);
    w_tensor(writer, "t", "float32", 2, shape);
    w_chunk(writer, 2, zeros, shape);
    w_raw(writer, "q\x01");
    for (int i = 0; i < 1000; i++) {
        w_raw(writer, "h\x01");
    }
    w_raw(writer, "e"); /* the list is on top now */
    w_raw(writer, "q\x02");
    w_end(writer);
    w_raw(writer, "q\x03");
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "t%d", i);
        w_text(writer, key);
        w_raw(writer, "h\x03");
    }
    w_storage(writer);
    expect_written(state, writer, GRADCMP_ERROR_LIMIT, "more chunks than metadata of");
}

static void test_open__broken_metadata_json_is_corrupt(void **state) {
    copy_files(BAD_DATA "specials", *state);
    temp_file(*state, "metadata.json", "{\"sharded_backend\": ", 20);
    expect_refused(*state, "metadata.json", C, 20, "json: ");
}

static void test_open__other_backend_is_unsupported(void **state) {
    static const char json[] = "{\"sharded_backend\": \"zarr\", \"sharded_backend_version\": 1}";
    copy_files(BAD_DATA "specials", *state);
    temp_file(*state, "metadata.json", json, sizeof json - 1);
    expect_refused(*state, "metadata.json", U, NONE, "sharded_backend \"zarr\" is not read");
}

static void test_open__damaged_common_pt_is_corrupt(void **state) {
    copy_files(BAD_DATA "specials", *state);
    temp_file(*state, "common.pt", "not an archive, but long enough", 31);
    expect_refused(*state, "common.pt", C, 0, "not a torch.save archive");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__damaged_metadata_is_refused),
        cmocka_unit_test(test_resolve__item_that_contradicts_its_metadata_is_corrupt),
        cmocka_unit_test(test_open__valid_or_for_others_to_judge),
        TEMP_TEST(test_open__shard_that_is_a_fifo_is_refused_without_waiting),
        TEMP_TEST(test_open__metadata_that_is_a_fifo_is_refused_without_waiting),
        TEMP_TEST(test_open__links_stay_inside),
        TEMP_TEST(test_open__unreadable_shard_is_io),
        TEMP_TEST(test_open__directory_without_metadata_is_unfinished),
        TEMP_TEST(test_open__bytes_behind_the_metadata_are_corrupt),
        TEMP_TEST(test_open__two_entries_for_one_chunk_are_corrupt),
        TEMP_TEST(test_open__path_that_is_not_the_key_is_corrupt),
        TEMP_TEST(test_open__too_many_axes_are_over_the_limit),
        TEMP_TEST(test_open__chunk_that_begins_outside_is_corrupt),
        TEMP_TEST(test_open__tensor_of_two_to_the_63_bytes_is_corrupt),
        TEMP_TEST(test_open__sixteen_axes_are_read),
        TEMP_TEST(test_open__long_key_is_refused),
        TEMP_TEST(test_open__entry_key_of_another_kind_is_corrupt),
        TEMP_TEST(test_open__shared_list_of_chunks_is_over_the_limit),
        TEMP_TEST(test_open__broken_metadata_json_is_corrupt),
        TEMP_TEST(test_open__other_backend_is_unsupported),
        TEMP_TEST(test_open__damaged_common_pt_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
