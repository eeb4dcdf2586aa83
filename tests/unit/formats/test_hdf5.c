/* The format "hdf5": files that h5py made, files that libhdf5 makes here in every layout, and files
 * with one defect each. */
#include "formats/hdf5_tools.h"

#if defined(GCMP_TEST_H5HELPER)

#include <zstd.h>

#define SAMPLES GCMP_TEST_DATA "/hdf5/"
#define BAD     GCMP_TEST_DATA "/bad/hdf5/"

static const struct gradcmp_format *const format = &gcmp_format_hdf5;

static void test_open__samples_have_their_true_values(void **state) {
    (void)state;
    static const char *const names[] = {"latest", "gzip_latest", "bf16_custom", "bf16_u16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], truth[512];
        snprintf(path, sizeof path, SAMPLES "%s.h5", names[i]);
        snprintf(truth, sizeof truth, SAMPLES "%s.truth", names[i]);
        check_sample(format, path, truth);
    }
}

#define ANY_SIZE H5S_UNLIMITED

/* Every kind of index, filter and layout. Sizes are chosen so that chunks reach over edges. */
static const struct made layouts[] = {
    {.name = "exp_avg/contiguous/w", .ndim = 2, .sizes = {5, 7}, .layout = H5D_CONTIGUOUS},
    {.name = "exp_avg/scalar/w", .ndim = 0, .layout = H5D_CONTIGUOUS},
    {.name = "exp_avg/compact/w", .ndim = 1, .sizes = {9}, .layout = H5D_COMPACT},
    {.name = "exp_avg/chunked/w",
     .ndim = 2,
     .sizes = {5, 7},
     .chunk = {2, 3},
     .layout = H5D_CHUNKED},
    {.name = "exp_avg/early/w",
     .ndim = 2,
     .sizes = {5, 7},
     .chunk = {2, 3},
     .layout = H5D_CHUNKED,
     .early = true},
    {.name = "exp_avg/single/w",
     .ndim = 2,
     .sizes = {5, 7},
     .chunk = {5, 7},
     .layout = H5D_CHUNKED},
    {.name = "exp_avg/deflate/w",
     .ndim = 2,
     .sizes = {50, 7},
     .chunk = {20, 3},
     .layout = H5D_CHUNKED,
     .deflate = true},
    {.name = "exp_avg/single_deflate/w",
     .ndim = 2,
     .sizes = {50, 7},
     .chunk = {50, 7},
     .layout = H5D_CHUNKED,
     .deflate = true},
    {.name = "exp_avg/shuffle/w",
     .ndim = 3,
     .sizes = {3, 4, 5},
     .chunk = {2, 2, 2},
     .layout = H5D_CHUNKED,
     .shuffle = true},
    {.name = "exp_avg/all/w",
     .ndim = 2,
     .sizes = {50, 7},
     .chunk = {20, 3},
     .layout = H5D_CHUNKED,
     .shuffle = true,
     .deflate = true,
     .fletcher32 = true},
    {.name = "exp_avg/checksum_last/w",
     .ndim = 2,
     .sizes = {50, 7},
     .chunk = {20, 3},
     .layout = H5D_CHUNKED,
     .deflate = true,
     .fletcher32 = true},
    {.name = "exp_avg/checksum_only/w",
     .ndim = 2,
     .sizes = {5, 7},
     .chunk = {2, 3},
     .layout = H5D_CHUNKED,
     .fletcher32 = true},
    {.name = "exp_avg/growing/w",
     .ndim = 2,
     .sizes = {50, 7},
     .max_sizes = {70, ANY_SIZE},
     .chunk = {9, 2},
     .growing = true,
     .layout = H5D_CHUNKED,
     .deflate = true},
    {.name = "exp_avg/growing_twice/w",
     .ndim = 2,
     .sizes = {50, 7},
     .max_sizes = {ANY_SIZE, ANY_SIZE},
     .chunk = {9, 2},
     .growing = true,
     .layout = H5D_CHUNKED,
     .deflate = true},
};
#define LAYOUT_COUNT (sizeof layouts / sizeof *layouts)

static void check_layouts(const char *path) {
    struct opened *opened = open_good(format, path);
    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", layouts[i].name + sizeof "exp_avg/" - 1);
        *strchr(name, '/') = '.';
        bool filtered = layouts[i].shuffle || layouts[i].deflate || layouts[i].fletcher32;
        made_check(opened, name, made_count(&layouts[i]),
                   filtered || layouts[i].layout == H5D_COMPACT ? GRADCMP_SOURCE_ITEM
                                                                : GRADCMP_SOURCE_RANGE);
    }
    assert_int_equal(opened->catalogue.stored_count, LAYOUT_COUNT);
    close_format(opened);
}

static void write_layouts(const char *path, bool latest, hsize_t user_block) {
    hid_t file = made_file(path, latest, user_block);
    for (size_t i = 0; i < LAYOUT_COUNT; i++) {
        H5Dclose(made_write(file, &layouts[i], H5T_IEEE_F32LE));
    }
    H5Fclose(file);
}

static void test_open__every_layout_is_read(void **state) {
    char *path = temp_path(*state, "a.h5");
    write_layouts(path, false, 0);
    check_layouts(path);
    write_layouts(path, true, 0);
    check_layouts(path);
    free(path);
}

/* Addresses in the file count from behind a user block. */
static void test_open__user_block_is_passed_over(void **state) {
    char *path = temp_path(*state, "other.name");
    struct gcmp_dir *dir;
    write_layouts(path, false, 1024);
    check_layouts(path);
    write_layouts(path, true, 512);
    check_layouts(path);
    assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
    assert_int_equal(format->probe(dir), 2);
    gcmp_dir_close(dir);
    free(path);
}

/* Chunks over an edge that are not filtered, beside others that are. */
static void test_open__chunks_that_left_filters_out_are_read(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, true, 0);
    struct made edges = {.name = "exp_avg.edges",
                         .ndim = 2,
                         .sizes = {5, 7},
                         .chunk = {2, 3},
                         .layout = H5D_CHUNKED,
                         .deflate = true,
                         .plain_edges = true};
    struct made masked = {.name = "exp_avg.masked",
                          .ndim = 1,
                          .sizes = {12},
                          .chunk = {4},
                          .layout = H5D_CHUNKED,
                          .shuffle = true,
                          .deflate = true};
    H5Dclose(made_write(file, &edges, H5T_IEEE_F32LE));
    hid_t dataset = made_write(file, &masked, H5T_IEEE_F32LE);
    float plain[4] = {made_value(4), made_value(5), made_value(6), made_value(7)};
    unsigned char bytes[sizeof plain], shuffled[sizeof plain];
    hsize_t at = 4;
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 3, &at, sizeof plain, plain) >= 0);
    for (int i = 0; i < 4; i++) {
        plain[i] = made_value(8 + (uint64_t)i);
    }
    memcpy(bytes, plain, sizeof plain);
    for (size_t i = 0; i < sizeof bytes; i++) {
        shuffled[i % 4 * 4 + i / 4] = bytes[i];
    }
    at = 8; /* shuffled, but not deflated */
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 2, &at, sizeof shuffled, shuffled) >= 0);
    H5Dclose(dataset);
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    const struct gradcmp_stored *stored = find_stored(opened, "masked", "exp_avg");
    const struct gradcmp_source *sources = opened->catalogue.sources;
    assert_int_equal(sources[stored->pieces[0].source].kind, GRADCMP_SOURCE_ITEM);
    assert_int_equal(sources[stored->pieces[1].source].kind, GRADCMP_SOURCE_RANGE);
    uint64_t count;
    float *values = gather_stored(opened, stored, &count, NULL);
    for (uint64_t i = 0; i < 12; i++) {
        assert_true(values[i] == made_value(i));
    }
    free(values);
    values = gather_stored(opened, find_stored(opened, "edges", "exp_avg"), &count, NULL);
    for (uint64_t i = 0; i < 35; i++) {
        assert_true(values[i] == made_value(i));
    }
    free(values);
    close_format(opened);
    free(path);
}

/* Filter 32015 as the plug-in in use compresses: one frame. */
static size_t compress_zstd(unsigned flags, size_t value_count, const unsigned values[],
                            size_t count, size_t *capacity, void **buffer) {
    (void)value_count;
    (void)values;
    if ((flags & H5Z_FLAG_REVERSE) != 0) {
        return 0;
    }
    size_t room = ZSTD_compressBound(count);
    void *made = malloc(room);
    size_t made_bytes = ZSTD_compress(made, room, *buffer, count, 3);
    free(*buffer);
    *buffer = made;
    *capacity = room;
    return made_bytes;
}

static void test_open__zstd_is_decoded(void **state) {
    static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 32015, 1,    1,
                                        "zstd",           NULL,  NULL, compress_zstd};
    struct made made = {.name = "exp_avg.w",
                        .ndim = 2,
                        .sizes = {50, 7},
                        .chunk = {20, 3},
                        .layout = H5D_CHUNKED,
                        .shuffle = true,
                        .extra_filter = 32015};
    char *path = temp_path(*state, "a.h5");
    assert_true(H5Zregister(&filter) >= 0);
    hid_t file = made_file(path, false, 0);
    H5Dclose(made_write(file, &made, H5T_IEEE_F32LE));
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    made_check(opened, "w", 350, GRADCMP_SOURCE_ITEM);
    close_format(opened);
    free(path);
}

/* Thousands of chunks: indexes of several levels, and more than one page. */
static void test_open__large_indexes_are_read(void **state) {
    static const struct made many[] = {
        {.name = "exp_avg.tree", .ndim = 1, .sizes = {1800}, .chunk = {1}, .layout = H5D_CHUNKED},
        {.name = "exp_avg.array",
         .ndim = 2,
         .sizes = {30, 60},
         .max_sizes = {40, 61},
         .chunk = {1, 1},
         .growing = true,
         .layout = H5D_CHUNKED},
        {.name = "exp_avg.grown",
         .ndim = 2,
         .sizes = {30, 60},
         .max_sizes = {30, ANY_SIZE},
         .chunk = {1, 1},
         .growing = true,
         .layout = H5D_CHUNKED},
        {.name = "exp_avg.grown_twice",
         .ndim = 2,
         .sizes = {30, 60},
         .max_sizes = {ANY_SIZE, ANY_SIZE},
         .chunk = {1, 1},
         .growing = true,
         .layout = H5D_CHUNKED}};
    char *path = temp_path(*state, "a.h5");
    for (int latest = 0; latest < 2; latest++) {
        hid_t file = made_file(path, latest != 0, 0);
        for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
            H5Dclose(made_write(file, &many[i], H5T_IEEE_F32LE));
        }
        H5Fclose(file);
        struct opened *opened = open_good(format, path);
        for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
            made_check(opened, many[i].name + 8, 1800, GRADCMP_SOURCE_RANGE);
        }
        close_format(opened);
    }
    free(path);
}

/* --- types --- */

static hid_t custom_float(size_t exponent_bits, size_t mantissa_bits, size_t bias) {
    hid_t type = H5Tcopy(H5T_IEEE_F64LE);
    size_t bits = 1 + exponent_bits + mantissa_bits;
    assert_true(H5Tset_fields(type, bits - 1, mantissa_bits, exponent_bits, 0, mantissa_bits) >= 0);
    assert_true(H5Tset_size(type, bits / 8) >= 0);
    assert_true(H5Tset_ebias(type, bias) >= 0);
    return type;
}

static void mark_as(hid_t dataset, const char *text, bool fixed) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, fixed ? strlen(text) + 1 : H5T_VARIABLE);
    hid_t attribute = H5Acreate2(dataset, "dtype", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, fixed ? (const void *)text : (const void *)&text) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static void write_typed(hid_t file, const char *name, hid_t type, const char *mark, bool fixed) {
    struct made made = {.name = name, .ndim = 1, .sizes = {4}, .layout = H5D_CONTIGUOUS};
    hid_t dataset = made_write(file, &made, type);
    if (mark != NULL) {
        mark_as(dataset, mark, fixed);
    }
    H5Dclose(dataset);
}

static void check_type(const struct opened *opened, const char *key, enum gradcmp_dtype dtype,
                       bool big_endian) {
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const struct gradcmp_stored *stored = &opened->catalogue.stored[i];
        if (strcmp(stored->key, key) == 0) {
            if (stored->dtype != dtype) {
                fail_msg("%s: %s", key, gradcmp_dtype_name((enum gradcmp_dtype)stored->dtype));
            }
            assert_int_equal(stored->piece_count, dtype == GRADCMP_DTYPE_NONE ? 0 : 1);
            if (stored->piece_count > 0) {
                const struct gradcmp_source *source =
                    &opened->catalogue.sources[stored->pieces[0].source];
                assert_int_equal(source->big_endian, big_endian);
            }
            return;
        }
    }
    fail_msg("no %s", key);
}

static void test_open__types_are_told(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, false, 0);
    hid_t half = custom_float(5, 10, 15), brain = custom_float(8, 7, 127),
          odd = custom_float(7, 8, 63), e5m2 = custom_float(5, 2, 15);
    write_typed(file, "f64be", H5T_IEEE_F64BE, NULL, false);
    write_typed(file, "f32be", H5T_IEEE_F32BE, NULL, false);
    write_typed(file, "f16", half, NULL, false);
    write_typed(file, "bf16", brain, NULL, false);
    write_typed(file, "e5m2", e5m2, NULL, false);
    write_typed(file, "odd", odd, NULL, false);
    write_typed(file, "u16", H5T_STD_U16LE, NULL, false);
    write_typed(file, "u16_bf16", H5T_STD_U16LE, "bfloat16", false);
    write_typed(file, "u16_torch", H5T_STD_U16LE, "torch.bfloat16", true);
    write_typed(file, "u8_e4m3", H5T_STD_U8LE, "float8_e4m3fn", true);
    write_typed(file, "u16_text", H5T_STD_U16LE, "something", true);
    write_typed(file, "u16_f32", H5T_STD_U16LE, "float32", true); /* of another size */
    write_typed(file, "i64", H5T_STD_I64BE, NULL, false);
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    check_type(opened, "f64be", GRADCMP_DTYPE_FLOAT64, true);
    check_type(opened, "f32be", GRADCMP_DTYPE_FLOAT32, true);
    check_type(opened, "f16", GRADCMP_DTYPE_FLOAT16, false);
    check_type(opened, "bf16", GRADCMP_DTYPE_BFLOAT16, false);
    check_type(opened, "e5m2", GRADCMP_DTYPE_FLOAT8_E5M2, false);
    check_type(opened, "odd", GRADCMP_DTYPE_NONE, false);
    check_type(opened, "u16", GRADCMP_DTYPE_UINT16, false);
    check_type(opened, "u16_bf16", GRADCMP_DTYPE_BFLOAT16, false);
    check_type(opened, "u16_torch", GRADCMP_DTYPE_BFLOAT16, false);
    check_type(opened, "u8_e4m3", GRADCMP_DTYPE_FLOAT8_E4M3FN, false);
    check_type(opened, "u16_text", GRADCMP_DTYPE_UINT16, false);
    check_type(opened, "u16_f32", GRADCMP_DTYPE_UINT16, false);
    check_type(opened, "i64", GRADCMP_DTYPE_INT64, true);
    close_format(opened);
    H5Tclose(half);
    H5Tclose(brain);
    H5Tclose(odd);
    H5Tclose(e5m2);
    free(path);
}

/* What is no tensor of numbers is listed, and an empty one has no pieces. */
static void test_open__other_datasets_are_listed(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, false, 0);
    hid_t text = H5Tcopy(H5T_C_S1), none = H5Screate(H5S_NULL), one = H5Screate(H5S_SCALAR);
    H5Tset_size(text, H5T_VARIABLE);
    H5Dclose(H5Dcreate2(file, "text", text, one, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "none", H5T_IEEE_F32LE, none, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hsize_t empty_sizes[] = {0, 3};
    hid_t empty = H5Screate_simple(2, empty_sizes, NULL);
    H5Dclose(H5Dcreate2(file, "exp_avg.empty", H5T_IEEE_F32LE, empty, H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    hid_t committed = H5Tcopy(H5T_IEEE_F32LE);
    H5Tcommit2(file, "a_type", committed, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Tclose(committed);
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    check_type(opened, "text", GRADCMP_DTYPE_NONE, false);
    check_type(opened, "none", GRADCMP_DTYPE_NONE, false);
    const struct gradcmp_stored *stored = find_stored(opened, "empty", "exp_avg");
    assert_non_null(stored);
    assert_int_equal(stored->piece_count, 0);
    assert_int_equal(stored->shape[1], 3);
    assert_int_equal(opened->catalogue.stored_count, 3);
    close_format(opened);
    H5Sclose(none);
    H5Sclose(one);
    H5Sclose(empty);
    H5Tclose(text);
    free(path);
}

/* --- links and attributes --- */

static void write_one(hid_t file, const char *name) {
    struct made made = {.name = name, .ndim = 1, .sizes = {6}, .layout = H5D_CONTIGUOUS};
    H5Dclose(made_write(file, &made, H5T_IEEE_F32LE));
}

static void test_open__links_within_the_file_are_followed(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, true, 0);
    struct made chunked = {.name = "exp_avg/x/b",
                           .ndim = 1,
                           .sizes = {6},
                           .chunk = {4},
                           .layout = H5D_CHUNKED,
                           .deflate = true};
    write_one(file, "exp_avg/x/a");
    H5Dclose(made_write(file, &chunked, H5T_IEEE_F32LE));
    H5Lcreate_soft("/exp_avg/x/a", file, "exp_avg/x/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("b", file, "exp_avg/x/beside", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("beside", file, "exp_avg/x/twice", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "exp_avg/x/a", file, "exp_avg/x/hard", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    made_check(opened, "x.a", 6, GRADCMP_SOURCE_RANGE);
    made_check(opened, "x.soft", 6, GRADCMP_SOURCE_RANGE);
    made_check(opened, "x.hard", 6, GRADCMP_SOURCE_RANGE);
    made_check(opened, "x.b", 6, GRADCMP_SOURCE_ITEM);
    made_check(opened, "x.beside", 6, GRADCMP_SOURCE_ITEM);
    made_check(opened, "x.twice", 6, GRADCMP_SOURCE_ITEM);
    assert_int_equal(opened->catalogue.stored_count, 6);
    close_format(opened);
    free(path);
}

/* Groups list by name; what is numbered elsewhere needs the order of the model. */
static void test_open__datasets_come_in_the_order_of_their_making(void **state) {
    static const char *const names[] = {"exp_avg/layers/1/z", "exp_avg/embedding",
                                        "exp_avg/layers/0/a", "exp_avg/layers/1/b", "exp_avg/aa"};
    char *path = temp_path(*state, "a.h5");
    for (int latest = 0; latest < 2; latest++) {
        hid_t file = made_file(path, latest != 0, 0);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            write_one(file, names[i]);
        }
        H5Fclose(file);
        struct opened *opened = open_good(format, path);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            assert_string_equal(opened->catalogue.stored[i].key, names[i]);
        }
        assert_true(opened->catalogue.is_ordered);
        close_format(opened);
    }
    /* Made in the order of their names: that says nothing of a model. */
    hid_t file = made_file(path, false, 0);
    write_one(file, "exp_avg/a");
    write_one(file, "exp_avg/b");
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    assert_false(opened->catalogue.is_ordered);
    close_format(opened);
    free(path);
}

static void test_open__step_is_the_iteration(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, false, 0), space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(file, "step", H5T_STD_I32BE, space, H5P_DEFAULT, H5P_DEFAULT);
    int step = 17;
    H5Awrite(attribute, H5T_NATIVE_INT, &step);
    H5Aclose(attribute);
    H5Sclose(space);
    write_one(file, "exp_avg.w");
    H5Fclose(file);
    struct opened *opened = open_good(format, path);
    assert_int_equal(opened->catalogue.iteration, 17);
    close_format(opened);
    free(path);
}

/* --- what is refused --- */

static void check_made_refused(const char *path, enum gradcmp_status code, const char *message) {
    check_refused_open(format, path, code, GRADCMP_NO_OFFSET, path, message);
}

static void test_open__bytes_in_other_files_are_refused(void **state) {
    char *path = temp_path(*state, "a.h5");
    hsize_t size = 4;
    hid_t space = H5Screate_simple(1, &size, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t file = made_file(path, false, 0);
    H5Pset_external(properties, "/etc/passwd", 0, 16);
    H5Dclose(H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Fclose(file);
    check_made_refused(path, GRADCMP_ERROR_UNSUPPORTED,
                       "hdf5: \"w\": its bytes are in an external file");
    H5Pclose(properties);

    properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(properties, space, "/etc/passwd", "x", space);
    file = made_file(path, true, 0);
    H5Dclose(H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Fclose(file);
    check_made_refused(path, GRADCMP_ERROR_UNSUPPORTED,
                       "hdf5: \"w\": a virtual dataset, made of others");
    H5Pclose(properties);
    H5Sclose(space);

    file = made_file(path, false, 0);
    write_one(file, "a");
    H5Lcreate_external("other.h5", "/x", file, "b", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    check_made_refused(path, GRADCMP_ERROR_UNSUPPORTED,
                       "hdf5: \"b\": a link into another file, which is not followed");
    free(path);
}

static void test_open__external_link_on_the_way_is_refused(void **state) {
    char *path = temp_path(*state, "a.h5"), *other = temp_path(*state, "b.h5");
    hid_t file = made_file(other, false, 0);
    write_one(file, "group/w");
    H5Fclose(file);
    file = made_file(path, false, 0);
    H5Lcreate_external("b.h5", "/group", file, "exp_avg", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/exp_avg/w", file, "w", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    check_made_refused(path, GRADCMP_ERROR_UNSUPPORTED,
                       "hdf5: \"exp_avg\": a link into another file, which is not followed");
    free(path);
    free(other);
}

static void test_open__data_that_was_never_written_is_refused(void **state) {
    char *path = temp_path(*state, "a.h5");
    hsize_t sizes[] = {6, 6}, chunk[] = {2, 4}, at[] = {2, 0};
    hid_t space = H5Screate_simple(2, sizes, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    float values[8] = {0};
    for (int latest = 0; latest < 2; latest++) {
        hid_t file = made_file(path, latest != 0, 0);
        H5Dclose(
            H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Fclose(file);
        check_made_refused(path, GRADCMP_ERROR_CORRUPT,
                           "hdf5: \"w\": was never written (its fill value is not taken for data)");
        H5Pset_chunk(properties, 2, chunk);
        for (int deflate = 0; deflate < 2; deflate++) {
            file = made_file(path, latest != 0, 0);
            if (deflate) {
                H5Pset_deflate(properties, 1);
            }
            hid_t dataset =
                H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
            H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, sizeof values, values);
            H5Dclose(dataset);
            H5Fclose(file);
            check_made_refused(path, GRADCMP_ERROR_CORRUPT,
                               "hdf5: \"w\": the chunk at [0, 0] was never written (its fill value "
                               "is not taken for data)");
        }
        H5Pclose(properties);
        properties = H5Pcreate(H5P_DATASET_CREATE);
    }
    H5Pclose(properties);
    H5Sclose(space);
    free(path);
}

static void test_open__filter_that_is_not_read_is_refused(void **state) {
    char *path = temp_path(*state, "a.h5");
    hid_t file = made_file(path, false, 0), properties = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t size = 8;
    hid_t space = H5Screate_simple(1, &size, NULL);
    H5Pset_chunk(properties, 1, &size);
    H5Pset_scaleoffset(properties, H5Z_SO_INT, 2);
    hid_t dataset =
        H5Dcreate2(file, "w", H5T_STD_I32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    int values[8] = {1, 2, 3, 4, 1, 2, 3, 0};
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Fclose(file);
    check_made_refused(path, GRADCMP_ERROR_UNSUPPORTED,
                       "hdf5: \"w\": filter 6 is not read (deflate, shuffle, fletcher32, zstd and "
                       "blosc are)");
    H5Pclose(properties);
    H5Sclose(space);
    free(path);
}

static void test_open__several_files_are_refused(void **state) {
    char *path = temp_path(*state, "a.h5"), *other = temp_path(*state, "b.hdf5");
    struct gcmp_dir *dir;
    hid_t file = made_file(path, false, 0);
    write_one(file, "exp_avg.w");
    H5Fclose(file);
    struct opened *opened = open_good(format, *state); /* the one file of the folder */
    made_check(opened, "w", 6, GRADCMP_SOURCE_RANGE);
    close_format(opened);
    file = made_file(other, false, 0);
    H5Fclose(file);
    assert_int_equal(gcmp_dir_open(*state, &dir, NULL), GRADCMP_OK);
    assert_int_equal(format->probe(dir), 1);
    gcmp_dir_close(dir);
    check_made_refused(*state, GRADCMP_ERROR_UNSUPPORTED,
                       "2 HDF5 files and nothing that tells how they belong together: name one");
    free(path);
    free(other);
}

struct bad {
    const char *name;
    enum gradcmp_status code;
    uint64_t offset;
    const char *message;
};

#define NONE  GRADCMP_NO_OFFSET
#define STATE "\"optimizer/exp_avg/w\": expected a tensor of numbers for the state exp_avg, found "
/* Messages of libhdf5 itself, and the byte where it stopped, are not compared. */
static const struct bad bad_files[] = {
    {"empty", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"trunc_super", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"trunc_half", GRADCMP_ERROR_CORRUPT, ANY_OFFSET,
     "hdf5: not a readable HDF5 file: truncated file*"},
    {"trunc_tail", GRADCMP_ERROR_CORRUPT, ANY_OFFSET,
     "hdf5: not a readable HDF5 file: truncated file*"},
    {"signature", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"addr0", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"addr1", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"addr2", GRADCMP_ERROR_CORRUPT, ANY_OFFSET, "hdf5: not a readable HDF5 file: *"},
    {"external_link", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/exp_avg/p\": a link into another file, which is not followed"},
    {"external_storage", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/exp_avg/w\": its bytes are in an external file"},
    {"hard_cycle", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/exp_avg/loop\": a second hard link to a group"},
    {"soft_cycle", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/a\": a soft link to \"/optimizer/b\", which is no dataset of this file"},
    {"dangling", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/exp_avg/z\": a soft link to \"/nowhere\", which is no dataset of this "
     "file"},
    {"fill_bomb", GRADCMP_ERROR_CORRUPT, NONE,
     "hdf5: \"optimizer/exp_avg/w\": the chunk at [4194304] was never written (its fill value is "
     "not taken for data)"},
    {"shape_huge", GRADCMP_ERROR_CORRUPT, NONE,
     "hdf5: \"optimizer/exp_avg/w\": the chunk at [0] was never written (its fill value is not "
     "taken for data)"},
    {"filter_unknown", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "hdf5: \"optimizer/exp_avg/w\": filter 31999 is not read (deflate, shuffle, fletcher32, zstd "
     "and blosc are)"},
    {"string_dtype", GRADCMP_ERROR_UNSUPPORTED, NONE, STATE "texts"},
    {"compound", GRADCMP_ERROR_UNSUPPORTED, NONE, STATE "compound values"},
    {"reference", GRADCMP_ERROR_UNSUPPORTED, NONE, STATE "references"},
};

static void test_open__each_defect_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        char path[512];
        snprintf(path, sizeof path, BAD "%s.h5", bad_files[i].name);
        check_refused_open(format, path, bad_files[i].code, bad_files[i].offset, path,
                           bad_files[i].message);
    }
}

static void check_bad_chunk(const char *name, uint64_t offset, const char *message) {
    char path[512];
    struct gradcmp_extent extent;
    snprintf(path, sizeof path, BAD "%s.h5", name);
    struct opened *opened = open_good(format, path);
    memset(&extent, 0, sizeof extent);
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(opened->error.message, message);
    assert_int_equal(opened->error.offset_bytes, offset);
    assert_text_contains(opened->error.path, name);
    close_format(opened);
}

static void test_resolve__damaged_chunk_is_told(void **state) {
    (void)state;
    check_bad_chunk("gzip_damaged", 0x1605, "zlib: invalid literal/lengths set");
    check_bad_chunk("fletcher", 0x15b8, "hdf5: checksum: expected b68bd02f, found 2e8cd12f");
}

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__samples_have_their_true_values),
        TEMP_TEST(test_open__every_layout_is_read),
        TEMP_TEST(test_open__user_block_is_passed_over),
        TEMP_TEST(test_open__chunks_that_left_filters_out_are_read),
        TEMP_TEST(test_open__zstd_is_decoded),
        TEMP_TEST(test_open__large_indexes_are_read),
        TEMP_TEST(test_open__types_are_told),
        TEMP_TEST(test_open__other_datasets_are_listed),
        TEMP_TEST(test_open__links_within_the_file_are_followed),
        TEMP_TEST(test_open__datasets_come_in_the_order_of_their_making),
        TEMP_TEST(test_open__step_is_the_iteration),
        TEMP_TEST(test_open__bytes_in_other_files_are_refused),
        TEMP_TEST(test_open__external_link_on_the_way_is_refused),
        TEMP_TEST(test_open__data_that_was_never_written_is_refused),
        TEMP_TEST(test_open__filter_that_is_not_read_is_refused),
        TEMP_TEST(test_open__several_files_are_refused),
        cmocka_unit_test(test_open__each_defect_is_told),
        cmocka_unit_test(test_resolve__damaged_chunk_is_told),
    };
    setenv("GRADCMP_H5HELPER", GCMP_TEST_H5HELPER, 1);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    return 0; /* this build has no libhdf5 */
}

#endif
