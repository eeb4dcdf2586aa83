/* The zip directory: good archives of every make, and one damage a test. */
#include "formats/zip_writer.h"

#include "formats/zip.h"

/* An open archive and what it needs. */
struct opened {
    struct gcmp_arena arena;
    struct gcmp_dir *dir;
    uint32_t file;
    struct gcmp_zip zip;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static const char PICKLE[] = "pickle bytes", DATA[] = "0123456789abcdef";

/* The archive that most tests damage: data.pkl, byteorder, data/0, version. */
static struct zip_writer *small_archive(void) {
    struct zip_writer *writer = writer_make();
    put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "archive/byteorder", "little", 6);
    put_record(writer, "archive/data/0", DATA, sizeof DATA);
    put_record(writer, "archive/version", "3\n", 2);
    return writer;
}

/* Write `before` bytes, the archive and `after` bytes to a file, and open the archive in it. */
static struct opened *open_at(void **state, struct zip_writer *writer, size_t before,
                              size_t after) {
    size_t total = before + writer->count + after;
    unsigned char *bytes = calloc(1, total + 1);
    memset(bytes, '#', total);
    memcpy(bytes + before, writer->bytes, writer->count);
    temp_file(*state, "file", bytes, total);
    free(bytes);
    struct opened *opened = calloc(1, sizeof *opened);
    assert_int_equal(gcmp_dir_open(*state, &opened->dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(opened->dir, "file", 4, &opened->file, NULL), GRADCMP_OK);
    opened->status = gcmp_zip_open(opened->dir, opened->file, before, writer->count, &opened->arena,
                                   &opened->zip, &opened->error);
    writer_free(writer);
    return opened;
}

static void close_it(struct opened *opened) {
    gcmp_dir_close(opened->dir);
    gcmp_arena_free(&opened->arena);
    free(opened);
}

enum { BEFORE = 1000 };

/* Expect a failure at byte `at` of the archive. */
static void expect_failure(void **state, struct zip_writer *writer, enum gradcmp_status code,
                           size_t at, const char *message) {
    struct opened *opened = open_at(state, writer, BEFORE, 5);
    assert_int_equal(opened->status, code);
    assert_int_equal(opened->error.code, code);
    assert_text_contains(opened->error.message, message);
    assert_int_equal(opened->error.offset_bytes, BEFORE + at);
    assert_string_equal(strrchr(opened->error.path, '/'), "/file");
    close_it(opened);
}

/* Expect the small archive to be read: names, ranges and content. */
static void expect_small(void **state, struct zip_writer *writer) {
    size_t data_at = BEFORE + writer->record[2].data_at;
    uint32_t crc = writer->record[2].crc;
    struct opened *opened = open_at(state, writer, BEFORE, 5);
    assert_int_equal(opened->status, GRADCMP_OK);
    assert_int_equal(opened->zip.count, 4);
    const struct gcmp_zip_record *data = gcmp_zip_find(&opened->zip, "data/0");
    assert_non_null(data);
    assert_string_equal(data->name, "data/0");
    assert_int_equal(data->offset_bytes, data_at);
    assert_int_equal(data->length_bytes, sizeof DATA);
    assert_int_equal(data->crc32, crc);
    const unsigned char *bytes = NULL;
    const struct gcmp_zip_record *pickle = gcmp_zip_find(&opened->zip, "data.pkl");
    assert_non_null(pickle);
    assert_int_equal(gcmp_zip_read_record(&opened->zip, pickle, 100, &opened->arena, &bytes, NULL),
                     GRADCMP_OK);
    assert_memory_equal(bytes, PICKLE, sizeof PICKLE);
    assert_non_null(gcmp_zip_find(&opened->zip, "VERSION"));
    assert_null(gcmp_zip_find(&opened->zip, "data/1"));
    assert_null(gcmp_zip_find(&opened->zip, ""));
    close_it(opened);
}

static void test_open__archive_of_torch(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    expect_small(state, writer);
}

static void test_open__sizes_in_local_headers(void **state) {
    struct zip_writer *writer = writer_make();
    writer->sizes_in_header = true;
    put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "archive/byteorder", "little", 6);
    put_record(writer, "archive/data/0", DATA, sizeof DATA);
    put_record(writer, "archive/version", "3\n", 2);
    put_end(writer);
    expect_small(state, writer);
}

static void test_open__zip64_extra_fields(void **state) {
    struct zip_writer *writer = writer_make();
    writer->sizes_in_header = true;
    writer->wide = true;
    put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "archive/byteorder", "little", 6);
    put_record(writer, "archive/data/0", DATA, sizeof DATA);
    put_record(writer, "archive/version", "3\n", 2);
    put_end(writer);
    patch_le(writer, writer->end_at + 8, 0xffff, 2);
    patch_le(writer, writer->end_at + 10, 0xffff, 2);
    patch_le(writer, writer->end_at + 12, 0xffffffff, 4);
    patch_le(writer, writer->end_at + 16, 0xffffffff, 4);
    expect_small(state, writer);
}

static void test_open__without_zip64_records(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    memmove(writer->bytes + writer->end64_at, writer->bytes + writer->end_at, 22);
    writer->count = writer->end64_at + 22;
    expect_small(state, writer);
}

static void test_open__comment(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    patch_le(writer, writer->end_at + 20, 7, 2);
    put_bytes(writer, "comment", 7);
    expect_small(state, writer);
}

static void test_open__no_checksums(void **state) {
    struct zip_writer *writer = writer_make();
    writer->no_crc = true;
    put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "archive/byteorder", "little", 6);
    put_record(writer, "archive/data/0", DATA, sizeof DATA);
    put_record(writer, "archive/version", "3\n", 2);
    put_end(writer);
    expect_small(state, writer);
}

static void test_open__records_in_any_order_of_the_directory(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    /* swap the two entries of names of equal length */
    unsigned char *a = writer->bytes + writer->record[0].entry_at;
    unsigned char *d = writer->bytes + writer->record[3].entry_at;
    size_t length = writer->end64_at - writer->record[3].entry_at;
    assert_int_equal(length + 1, writer->record[1].entry_at - writer->record[0].entry_at);
    unsigned char *copy = malloc(writer->directory_bytes);
    memcpy(copy, d, length);
    memcpy(copy + length, a, writer->directory_bytes - length);
    memcpy(a, copy, writer->directory_bytes);
    free(copy);
    expect_small(state, writer);
}

/* More than the windows at both ends hold: headers and directory are read where they are. */
static void test_open__many_records(void **state) {
    enum { MANY = 1500 };
    struct zip_writer *writer = writer_make();
    put_record(writer, "many/data.pkl", PICKLE, sizeof PICKLE);
    for (unsigned i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof name, "many/data/%u", i);
        put_record(writer, name, &i, sizeof i);
    }
    put_end(writer);
    struct opened *opened = open_at(state, writer, BEFORE, 0);
    assert_int_equal(opened->status, GRADCMP_OK);
    assert_int_equal(opened->zip.count, MANY + 1);
    for (unsigned i = 0; i < MANY; i += 7) {
        char name[64];
        const unsigned char *bytes = NULL;
        snprintf(name, sizeof name, "data/%u", i);
        const struct gcmp_zip_record *record = gcmp_zip_find(&opened->zip, name);
        assert_non_null(record);
        assert_int_equal(
            gcmp_zip_read_record(&opened->zip, record, 4, &opened->arena, &bytes, &opened->error),
            GRADCMP_OK);
        assert_memory_equal(bytes, &i, sizeof i);
    }
    close_it(opened);
}

static void test_open__range_past_the_file_is_corrupt_at_its_end(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    size_t total = writer->count;
    struct opened *opened = open_at(state, writer, 0, 0);
    struct gcmp_zip zip;
    assert_int_equal(
        gcmp_zip_open(opened->dir, opened->file, 1, total, &opened->arena, &zip, &opened->error),
        GRADCMP_ERROR_CORRUPT);
    assert_int_equal(opened->error.offset_bytes, total);
    assert_int_equal(gcmp_zip_open(opened->dir, opened->file, UINT64_MAX - 8, 32, &opened->arena,
                                   &zip, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    close_it(opened);
}

static void test_open__cut_anywhere_is_corrupt(void **state) {
    struct zip_writer *whole = small_archive();
    put_end(whole);
    for (size_t count = 0; count < whole->count; count++) {
        struct zip_writer *writer = writer_make();
        put_bytes(writer, whole->bytes, count);
        struct opened *opened = open_at(state, writer, BEFORE, 0);
        assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
        assert_int_equal(opened->error.offset_bytes, BEFORE + count);
        close_it(opened);
    }
    writer_free(whole);
}

static void test_open__bytes_in_front_are_corrupt(void **state) {
    struct zip_writer *writer = writer_make();
    put_bytes(writer, "#!/bin/sh\n", 10);
    put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
    put_end(writer);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, 0, "10 bytes in front");
}

static void test_open__second_end_record_in_comment_is_corrupt(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    size_t at = writer->end_at;
    patch_le(writer, at + 20, 30, 2);
    put_bytes(writer, "PK\5\6 looks like an end record", 30);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, at, "more than one end record");
}

static void test_open__empty_archive_is_corrupt(void **state) {
    struct zip_writer *writer = writer_make();
    put_end(writer);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, 0, "0 records");
}

static void test_open__volumes_are_unsupported(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    patch_le(writer, writer->end64_at + 16, 1, 4);
    patch_le(writer, writer->end_at + 4, 1, 2);
    expect_failure(state, writer, GRADCMP_ERROR_UNSUPPORTED, writer->end64_at, "several volumes");
}

/* Numbers of the end records that lie. `field` counts from the start of the record named. */
static void test_open__lying_end_records_are_corrupt(void **state) {
    static const struct {
        int record; /* 0: end, 1: locator, 2: zip64 end */
        unsigned field, bytes;
        uint64_t value;
        const char *message;
    } cases[] = {
        {0, 10, 2, 65000, "the two end records disagree"},
        {0, 12, 4, 1, "the two end records disagree"},
        {0, 16, 4, 1, "the two end records disagree"},
        {1, 8, 8, UINT64_MAX, "outside the archive"},
        {1, 8, 8, 1 << 20, "outside the archive"},
        {1, 8, 8, 0, "no zip64 end record"},
        {1, 16, 4, 2, "outside the archive"},
        {2, 0, 4, 0, "no zip64 end record"},
        {2, 4, 8, 43, "no zip64 end record"},
        {2, 4, 8, UINT64_MAX, "no zip64 end record"},
        {2, 32, 8, 1ULL << 40, "the two end records disagree"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zip_writer *writer = small_archive();
        put_end(writer);
        size_t start = cases[i].record == 0   ? writer->end_at
                       : cases[i].record == 1 ? writer->locator_at
                                              : writer->end64_at;
        patch_le(writer, start + cases[i].field, cases[i].value, cases[i].bytes);
        struct opened *opened = open_at(state, writer, BEFORE, 0);
        assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
        assert_text_contains(opened->error.message, cases[i].message);
        close_it(opened);
    }
}

/* The same lie in both end records. */
static void test_open__lying_directory_range_is_corrupt(void **state) {
    static const struct {
        unsigned classic, classic_bytes, wide;
        uint64_t value;
        const char *message;
    } cases[] = {
        {10, 2, 32, 5, "no directory entry"},
        {10, 2, 32, 3, "more in the directory than the 3 records"},
        {10, 2, 32, 0xffff, "65535 records announced"},
        {12, 4, 40, 1, "does not end at its end record"},
        {12, 4, 40, 0xfffffff, "does not end at its end record"},
        {16, 4, 48, 0xfffffff, "does not end at its end record"},
        {16, 4, 48, 0, "does not end at its end record"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zip_writer *writer = small_archive();
        put_end(writer);
        patch_le(writer, writer->end_at + cases[i].classic, cases[i].value, cases[i].classic_bytes);
        patch_le(writer, writer->end64_at + cases[i].wide, cases[i].value, 8);
        if (cases[i].wide == 32) {
            patch_le(writer, writer->end_at + 8, cases[i].value, 2);
            patch_le(writer, writer->end64_at + 24, cases[i].value, 8);
        }
        struct opened *opened = open_at(state, writer, BEFORE, 0);
        assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
        assert_text_contains(opened->error.message, cases[i].message);
        close_it(opened);
    }
}

/* Fields of the directory entry of data/0. */
static void test_open__bad_entries(void **state) {
    static const struct {
        unsigned field, bytes;
        uint64_t value;
        enum gradcmp_status code;
        const char *message;
    } cases[] = {
        {8, 2, 0x809, GRADCMP_ERROR_UNSUPPORTED, "record \"archive/data/0\" is encrypted"},
        {8, 2, 0x848, GRADCMP_ERROR_UNSUPPORTED, "is encrypted"},
        {10, 2, 8, GRADCMP_ERROR_UNSUPPORTED, "is compressed (method 8)"},
        {10, 2, 99, GRADCMP_ERROR_UNSUPPORTED, "is compressed (method 99)"},
        {20, 4, 3, GRADCMP_ERROR_CORRUPT, "3 bytes stored for 17"},
        {24, 4, 0xffffffff, GRADCMP_ERROR_CORRUPT, "bad zip64 extra field"},
        {34, 2, 1, GRADCMP_ERROR_CORRUPT, "bad zip64 extra field"}, /* on another disk */
        {38, 4, 0x10, GRADCMP_ERROR_CORRUPT,
         "record \"archive/data/0\": 17 bytes of what the directory says is a folder"},
        {38, 4, 0x41ed0010, GRADCMP_ERROR_CORRUPT, "17 bytes of what the directory says is a"},
        {42, 4, 0xfffffff0, GRADCMP_ERROR_CORRUPT, "do not lie before the directory"},
        {42, 4, 0xffffffff, GRADCMP_ERROR_CORRUPT, "bad zip64 extra field"},
        {46, 1, 0, GRADCMP_ERROR_CORRUPT, "a name that is empty or holds a NUL"},
        {46, 1, 'X', GRADCMP_ERROR_CORRUPT, "is not below the archive's one folder \"archive/\""},
        {0, 1, 0, GRADCMP_ERROR_CORRUPT, "no directory entry where one is due"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zip_writer *writer = small_archive();
        put_end(writer);
        size_t at = writer->record[2].entry_at;
        patch_le(writer, at + cases[i].field, cases[i].value, cases[i].bytes);
        expect_failure(state, writer, cases[i].code, at, cases[i].message);
    }
}

/* torch's reader (miniz) reads nothing of a record that is a folder: only an empty one is the same
 * for both. */
static void test_open__folders_hold_nothing(void **state) {
    struct zip_writer *writer = small_archive();
    put_record(writer, "archive/data/", "", 0);
    put_end(writer);
    patch_le(writer, writer->record[4].entry_at + 38, 0x10, 4);
    struct opened *opened = open_at(state, writer, BEFORE, 5);
    assert_int_equal(opened->status, GRADCMP_OK);
    close_it(opened);
    writer = small_archive();
    put_record(writer, "archive/data/1/", DATA, sizeof DATA);
    put_end(writer);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, writer->record[4].entry_at,
                   "record \"archive/data/1/\": 17 bytes of what the directory says is a folder");
    writer = small_archive();
    put_end(writer);
    patch_le(writer, writer->record[2].entry_at + 38, 0x20, 4); /* DOS: to be archived */
    expect_small(state, writer);
}

/* TorchScript compresses its code, which stands before its constants. */
static void test_open__compressed_code_is_of_torchscript(void **state) {
    struct zip_writer *writer = writer_make();
    put_record(writer, "archive/data.pkl", "N.", 2);
    put_record(writer, "archive/code/a.py", "x", 1);
    put_end(writer);
    size_t at = writer->record[1].entry_at;
    patch_le(writer, at + 10, 8, 2);
    expect_failure(state, writer, GRADCMP_ERROR_UNSUPPORTED, at,
                   "a TorchScript archive (it has a record \"archive/code/a.py\"); save the state");
}

static void test_open__size_past_the_directory_is_corrupt(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    size_t at = writer->record[2].entry_at;
    patch_le(writer, at + 20, 100000, 4);
    patch_le(writer, at + 24, 100000, 4);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, at, "do not lie before the directory");
}

/* Fields of the zip64 extra field of data/0's entry. */
static void test_open__bad_zip64_extra_is_corrupt(void **state) {
    static const struct {
        unsigned field, bytes;
        uint64_t value;
        const char *message;
    } cases[] = {
        {0, 2, 2, "bad zip64 extra field"},  /* another id */
        {2, 2, 16, "bad zip64 extra field"}, /* the last number lacks */
        {2, 2, 25, "bad zip64 extra field"}, /* longer than the extra area */
        {4, 8, 1ULL << 60, "though not compressed"},
        {20, 8, 1ULL << 63, "do not lie before the directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zip_writer *writer = writer_make();
        writer->wide = true;
        put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
        put_record(writer, "archive/data/0", DATA, sizeof DATA);
        put_end(writer);
        size_t at = writer->record[1].entry_at;
        patch_le(writer, at + 46 + 14 + cases[i].field, cases[i].value, cases[i].bytes);
        expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, at, cases[i].message);
    }
}

/* Fields of the local header of data/0. */
static void test_open__bad_local_headers_are_corrupt(void **state) {
    static const struct {
        bool sizes;
        unsigned field, bytes;
        uint64_t value;
        const char *message;
    } cases[] = {
        {false, 0, 4, 0x04034b51, "no local header where the directory says"},
        {false, 30, 1, 'X', "the local header disagrees"},
        {false, 26, 2, 13, "the local header disagrees"},
        {false, 8, 2, 8, "the local header disagrees"},
        {false, 6, 2, 0x809, "the local header disagrees"},
        {false, 28, 2, 60000, "its data run into the directory"},
        {true, 18, 4, 18, "other sizes"},
        {true, 22, 4, 18, "other sizes"},
        {true, 14, 4, 1, "another checksum"},
        {true, 18, 4, 0xffffffff, "other sizes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zip_writer *writer = writer_make();
        writer->sizes_in_header = cases[i].sizes;
        put_record(writer, "archive/data.pkl", PICKLE, sizeof PICKLE);
        put_record(writer, "archive/data/0", DATA, sizeof DATA);
        put_end(writer);
        size_t at = writer->record[1].header_at;
        patch_le(writer, at + cases[i].field, cases[i].value, cases[i].bytes);
        expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, at, cases[i].message);
    }
}

static void test_open__overlapping_records_are_corrupt(void **state) {
    struct zip_writer *writer = writer_make();
    writer->padding = 0;
    put_record(writer, "a/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "a/data/0", DATA, sizeof DATA);
    put_record(writer, "a/data/1", DATA, sizeof DATA);
    put_end(writer);
    /* data/0 swallows the header of data/1 */
    size_t bytes = writer->record[2].header_at + 1 - writer->record[1].data_at;
    patch_le(writer, writer->record[1].entry_at + 20, bytes, 4);
    patch_le(writer, writer->record[1].entry_at + 24, bytes, 4);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, writer->record[2].header_at,
                   "records \"data/0\" and \"data/1\" overlap");
}

static void test_open__two_entries_of_one_header_are_corrupt(void **state) {
    struct zip_writer *writer = writer_make();
    put_record(writer, "a/data.pkl", PICKLE, sizeof PICKLE);
    put_record(writer, "a/data/0", DATA, sizeof DATA);
    writer->record[2] = writer->record[1];
    writer->records = 3;
    put_end(writer);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, writer->record[1].header_at, "overlap");
}

static void test_open__duplicate_names_are_corrupt(void **state) {
    const char *names[] = {"a/data/0", "a/DATA/0"};
    for (size_t i = 0; i < 2; i++) {
        struct zip_writer *writer = writer_make();
        put_record(writer, "a/data.pkl", PICKLE, sizeof PICKLE);
        put_record(writer, "a/data/0", DATA, sizeof DATA);
        put_record(writer, names[i], PICKLE, sizeof PICKLE);
        put_end(writer);
        expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, writer->directory_at,
                       "two records are named");
    }
}

static void test_open__no_root_folder_is_corrupt(void **state) {
    struct zip_writer *writer = writer_make();
    put_record(writer, "data.pkl", PICKLE, sizeof PICKLE);
    put_end(writer);
    expect_failure(state, writer, GRADCMP_ERROR_CORRUPT, writer->record[0].entry_at,
                   "is not below the archive's one folder");
}

static void test_read_record__wrong_checksum_is_corrupt_at_its_first_byte(void **state) {
    struct zip_writer *writer = small_archive();
    put_end(writer);
    size_t at = BEFORE + writer->record[0].data_at;
    writer->bytes[writer->record[0].data_at + 3] ^= 0x10;
    struct opened *opened = open_at(state, writer, BEFORE, 0);
    assert_int_equal(opened->status, GRADCMP_OK);
    const unsigned char *bytes;
    const struct gcmp_zip_record *record = gcmp_zip_find(&opened->zip, "data.pkl");
    assert_int_equal(
        gcmp_zip_read_record(&opened->zip, record, 100, &opened->arena, &bytes, &opened->error),
        GRADCMP_ERROR_CORRUPT);
    assert_int_equal(opened->error.offset_bytes, at);
    assert_text_contains(opened->error.message, "record \"data.pkl\": checksum");
    assert_int_equal(
        gcmp_zip_read_record(&opened->zip, record, 12, &opened->arena, &bytes, &opened->error),
        GRADCMP_ERROR_LIMIT);
    assert_text_contains(opened->error.message, "13 bytes, at most 12");
    close_it(opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_open__archive_of_torch),
        TEMP_TEST(test_open__sizes_in_local_headers),
        TEMP_TEST(test_open__zip64_extra_fields),
        TEMP_TEST(test_open__without_zip64_records),
        TEMP_TEST(test_open__comment),
        TEMP_TEST(test_open__no_checksums),
        TEMP_TEST(test_open__records_in_any_order_of_the_directory),
        TEMP_TEST(test_open__many_records),
        TEMP_TEST(test_open__range_past_the_file_is_corrupt_at_its_end),
        TEMP_TEST(test_open__cut_anywhere_is_corrupt),
        TEMP_TEST(test_open__bytes_in_front_are_corrupt),
        TEMP_TEST(test_open__second_end_record_in_comment_is_corrupt),
        TEMP_TEST(test_open__empty_archive_is_corrupt),
        TEMP_TEST(test_open__volumes_are_unsupported),
        TEMP_TEST(test_open__lying_end_records_are_corrupt),
        TEMP_TEST(test_open__lying_directory_range_is_corrupt),
        TEMP_TEST(test_open__bad_entries),
        TEMP_TEST(test_open__folders_hold_nothing),
        TEMP_TEST(test_open__compressed_code_is_of_torchscript),
        TEMP_TEST(test_open__size_past_the_directory_is_corrupt),
        TEMP_TEST(test_open__bad_zip64_extra_is_corrupt),
        TEMP_TEST(test_open__bad_local_headers_are_corrupt),
        TEMP_TEST(test_open__overlapping_records_are_corrupt),
        TEMP_TEST(test_open__two_entries_of_one_header_are_corrupt),
        TEMP_TEST(test_open__duplicate_names_are_corrupt),
        TEMP_TEST(test_open__no_root_folder_is_corrupt),
        TEMP_TEST(test_read_record__wrong_checksum_is_corrupt_at_its_first_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
