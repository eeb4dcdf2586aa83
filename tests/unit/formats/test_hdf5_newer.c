/* Objects that libhdf5 refuses as too new, which the helper reads by itself. Files whose chunks are
 * not filtered are the same in versions 4 and 5 of the layout message but for its number, so that
 * large indexes are made with version 4 and then given the number 5. Filtered ones, whose elements
 * are wider in version 5, are in tests/data/hdf5/gzip_latest.h5. */
#include "formats/hdf5_tools.h"

#if defined(GCMP_TEST_H5HELPER)

static const struct gradcmp_format *const format = &gcmp_format_hdf5;

/* --- checksums as the format has them: Bob Jenkins' lookup3 on bytes --- */

#define ROTATE(value, bits) ((value) << (bits) | (value) >> (32 - (bits)))

static uint32_t word(const unsigned char *bytes, size_t left) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && i < left; i++) {
        value += (uint32_t)bytes[i] << (8 * i);
    }
    return value;
}

static uint32_t checksum(const unsigned char *bytes, size_t count) {
    uint32_t a = 0xdeadbeef + (uint32_t)count, b = a, c = a;
    for (; count > 12; bytes += 12, count -= 12) {
        a += word(bytes, 4), b += word(bytes + 4, 4), c += word(bytes + 8, 4);
        a -= c, a ^= ROTATE(c, 4), c += b;
        b -= a, b ^= ROTATE(a, 6), a += c;
        c -= b, c ^= ROTATE(b, 8), b += a;
        a -= c, a ^= ROTATE(c, 16), c += b;
        b -= a, b ^= ROTATE(a, 19), a += c;
        c -= b, c ^= ROTATE(b, 4), b += a;
    }
    a += word(bytes, count);
    b += count > 4 ? word(bytes + 4, count - 4) : 0;
    c += count > 8 ? word(bytes + 8, count - 8) : 0;
    c ^= b, c -= ROTATE(b, 14);
    a ^= c, a -= ROTATE(c, 11);
    b ^= a, b -= ROTATE(a, 25);
    c ^= b, c -= ROTATE(b, 16);
    a ^= c, a -= ROTATE(c, 4);
    b ^= a, b -= ROTATE(a, 14);
    c ^= b, c -= ROTATE(b, 24);
    return c;
}

/* --- giving a file the number of the newer version --- */

struct bytes {
    unsigned char *at;
    size_t count;
};

static struct bytes load(const char *path) {
    FILE *file = fopen(path, "rb");
    struct bytes bytes;
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    bytes.count = (size_t)ftell(file);
    bytes.at = malloc(bytes.count);
    rewind(file);
    assert_int_equal(fread(bytes.at, 1, bytes.count, file), bytes.count);
    fclose(file);
    return bytes;
}

static void save(const char *path, const struct bytes *bytes) {
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes->at, 1, bytes->count, file), bytes->count);
    fclose(file);
}

/* Bytes of the header that begins there, but its checksum; its messages begin at *start. */
static size_t header_bytes(const unsigned char *header, size_t *start) {
    unsigned flags = header[5], size_bytes = 1u << (flags & 3);
    *start = 6u + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u);
    size_t count = word(header + *start, size_bytes);
    *start += size_bytes;
    return *start + count;
}

static void put_checksum(unsigned char *header, size_t count) {
    uint32_t sum = checksum(header, count);
    for (int i = 0; i < 4; i++) {
        header[count + (size_t)i] = (unsigned char)(sum >> (8 * i));
    }
}

/* Find the layout message of a header; NULL where it has none, of version 4. */
static unsigned char *find_layout(unsigned char *header) {
    size_t start, count = header_bytes(header, &start);
    size_t head = 4 + (header[5] & 4 ? 2 : 0);
    for (size_t at = start; at + head <= count;) {
        size_t bytes = header[at + 1] | (size_t)header[at + 2] << 8;
        if (header[at] == 8 && header[at + head] == 4) {
            return header + at + head;
        }
        at += head + bytes;
    }
    return NULL;
}

/* Give every dataset of the file version 5; returns how many there are. */
static size_t make_newer(const char *path) {
    struct bytes bytes = load(path);
    size_t changed = 0;
    for (size_t at = 0; at + 64 < bytes.count; at++) {
        if (memcmp(bytes.at + at, "OHDR\2", 5) == 0) {
            unsigned char *layout = find_layout(bytes.at + at);
            if (layout != NULL) {
                size_t start;
                *layout = 5;
                put_checksum(bytes.at + at, header_bytes(bytes.at + at, &start));
                changed++;
            }
        }
    }
    save(path, &bytes);
    free(bytes.at);
    return changed;
}

static const struct made many[] = {
    {.name = "exp_avg.single", .ndim = 2, .sizes = {5, 7}, .chunk = {5, 7}, .layout = H5D_CHUNKED},
    {.name = "exp_avg.implicit",
     .ndim = 2,
     .sizes = {50, 100},
     .max_sizes = {60, 110},
     .chunk = {3, 7},
     .growing = true,
     .layout = H5D_CHUNKED,
     .early = true},
    {.name = "exp_avg.array",
     .ndim = 2,
     .sizes = {30, 60},
     .max_sizes = {40, 61},
     .chunk = {1, 1},
     .growing = true,
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.array_small",
     .ndim = 2,
     .sizes = {50, 7},
     .chunk = {9, 2},
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.grown_rows",
     .ndim = 2,
     .sizes = {30, 60},
     .max_sizes = {H5S_UNLIMITED, 70},
     .chunk = {1, 1},
     .growing = true,
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.grown_columns",
     .ndim = 3,
     .sizes = {3, 100, 12},
     .max_sizes = {3, H5S_UNLIMITED, 14},
     .chunk = {1, 1, 2},
     .growing = true,
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.grown_few",
     .ndim = 1,
     .sizes = {11},
     .max_sizes = {H5S_UNLIMITED},
     .chunk = {4},
     .growing = true,
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.tree",
     .ndim = 2,
     .sizes = {30, 60},
     .max_sizes = {H5S_UNLIMITED, H5S_UNLIMITED},
     .chunk = {1, 1},
     .growing = true,
     .layout = H5D_CHUNKED},
    {.name = "exp_avg.tree_leaf",
     .ndim = 2,
     .sizes = {5, 7},
     .max_sizes = {H5S_UNLIMITED, H5S_UNLIMITED},
     .chunk = {2, 3},
     .growing = true,
     .layout = H5D_CHUNKED},
};
#define MANY (sizeof many / sizeof *many)

static void write_many(const char *path, hsize_t user_block) {
    hid_t file = made_file(path, true, user_block);
    for (size_t i = 0; i < MANY; i++) {
        H5Dclose(made_write(file, &many[i], H5T_IEEE_F32LE));
    }
    H5Fclose(file);
    assert_int_equal(make_newer(path), MANY);
}

static void check_many(const char *path) {
    struct opened *opened = open_good(format, path);
    for (size_t i = 0; i < MANY; i++) {
        made_check(opened, many[i].name + 8, made_count(&many[i]), GRADCMP_SOURCE_RANGE);
    }
    close_format(opened);
}

static void test_open__indexes_of_every_kind_are_read(void **state) {
    char *path = temp_path(*state, "a.h5");
    write_many(path, 0);
    check_many(path);
    write_many(path, 2048);
    check_many(path);
    free(path);
}

/* So many chunks that data blocks of an extensible array have pages, of which some block's bits
 * begin within a byte. Nothing is written: space is allocated at once. */
static void test_open__pages_of_extensible_arrays_are_found(void **state) {
    enum { CHUNKS = 165000 };
    char *path = temp_path(*state, "a.h5");
    hsize_t size = CHUNKS, most = H5S_UNLIMITED, one = 1;
    hid_t file = made_file(path, true, 0), properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, &size, &most);
    H5Pset_chunk(properties, 1, &one);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    H5Dclose(H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(properties);
    H5Fclose(file);
    struct opened *as_it_is = open_good(format, path); /* through libhdf5 */
    assert_int_equal(make_newer(path), 1);
    struct opened *newer = open_good(format, path);
    assert_int_equal(as_it_is->catalogue.source_count, CHUNKS);
    assert_int_equal(newer->catalogue.source_count, CHUNKS);
    assert_memory_equal(newer->catalogue.sources, as_it_is->catalogue.sources,
                        CHUNKS * sizeof *newer->catalogue.sources);
    close_format(as_it_is);
    close_format(newer);
    free(path);
}

/* Types, marks and truth values, which the helper reads here without libhdf5. */
static void test_open__types_are_told(void **state) {
    char *path = temp_path(*state, "a.h5");
    static const struct made made = {.ndim = 1, .sizes = {4}, .chunk = {3}, .layout = H5D_CHUNKED};
    static const struct {
        const char *name, *mark;
        bool fixed;
        enum gradcmp_dtype dtype;
        int elem_bytes; /* negative: signed; 0: truth values */
    } types[] = {{"exp_avg.f8", NULL, false, GRADCMP_DTYPE_FLOAT64, 80},
                 {"exp_avg.f4", NULL, false, GRADCMP_DTYPE_FLOAT32, 40},
                 {"exp_avg.bf16", "bfloat16", false, GRADCMP_DTYPE_BFLOAT16, 2},
                 {"exp_avg.bf16_fixed", "bfloat16", true, GRADCMP_DTYPE_BFLOAT16, 2},
                 {"i8", NULL, false, GRADCMP_DTYPE_INT8, -1},
                 {"u8", NULL, false, GRADCMP_DTYPE_UINT8, 1},
                 {"flag", NULL, false, GRADCMP_DTYPE_BOOL, 0}};
    hid_t file = made_file(path, true, 0), truth = H5Tenum_create(H5T_STD_I8LE);
    signed char value = 0;
    H5Tenum_insert(truth, "FALSE", &value);
    value = 1;
    H5Tenum_insert(truth, "TRUE", &value);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct made one = made;
        hid_t type = types[i].elem_bytes == 80   ? H5T_IEEE_F64BE
                     : types[i].elem_bytes == 40 ? H5T_IEEE_F32LE
                     : types[i].elem_bytes == 2  ? H5T_STD_U16LE
                     : types[i].elem_bytes == -1 ? H5T_STD_I8LE
                     : types[i].elem_bytes == 1  ? H5T_STD_U8LE
                                                 : truth;
        one.name = types[i].name;
        hid_t dataset;
        if (type == truth) {
            hid_t properties = made_properties(&one), space = H5Screate_simple(1, one.sizes, NULL);
            signed char flags[4] = {0, 1, 1, 0};
            dataset =
                H5Dcreate2(file, one.name, truth, space, H5P_DEFAULT, properties, H5P_DEFAULT);
            H5Dwrite(dataset, truth, H5S_ALL, H5S_ALL, H5P_DEFAULT, flags);
            H5Sclose(space);
            H5Pclose(properties);
        } else {
            dataset = made_write(file, &one, type);
        }
        if (types[i].mark != NULL) {
            hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
            H5Tset_size(text, types[i].fixed ? strlen(types[i].mark) : H5T_VARIABLE);
            hid_t attribute = H5Acreate2(dataset, "dtype", text, space, H5P_DEFAULT, H5P_DEFAULT);
            H5Awrite(attribute, text,
                     types[i].fixed ? (const void *)types[i].mark : (const void *)&types[i].mark);
            H5Aclose(attribute);
            H5Sclose(space);
            H5Tclose(text);
        }
        H5Dclose(dataset);
    }
    H5Tclose(truth);
    H5Fclose(file);
    assert_int_equal(make_newer(path), sizeof types / sizeof *types);
    struct opened *opened = open_good(format, path);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct gradcmp_stored *stored = NULL;
        for (size_t k = 0; k < opened->catalogue.stored_count; k++) {
            if (strcmp(opened->catalogue.stored[k].key, types[i].name) == 0) {
                stored = &opened->catalogue.stored[k];
            }
        }
        assert_non_null(stored);
        assert_int_equal(stored->dtype, types[i].dtype);
        assert_int_equal(opened->catalogue.sources[stored->pieces[0].source].big_endian,
                         types[i].elem_bytes == 80);
    }
    made_check(opened, "f8", 4, GRADCMP_SOURCE_RANGE);
    close_format(opened);
    free(path);
}

/* A chunk that is not there, in each kind of index. */
static void test_open__chunk_that_was_never_written_is_refused(void **state) {
    char *path = temp_path(*state, "a.h5");
    hsize_t at[] = {4, 0}, half = 2;
    float values[4] = {0};
    for (size_t kind = 0; kind < 3; kind++) {
        struct made made = {
            .name = "w",
            .ndim = 2,
            .sizes = {6, 2},
            .max_sizes = {kind > 0 ? H5S_UNLIMITED : 6, kind > 1 ? H5S_UNLIMITED : 2},
            .chunk = {2, 2},
            .growing = true,
            .layout = H5D_CHUNKED};
        hid_t file = made_file(path, true, 0), properties = made_properties(&made);
        hid_t space = H5Screate_simple(2, made.sizes, made.max_sizes);
        hid_t dataset =
            H5Dcreate2(file, "w", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
        for (hsize_t row = 0; row < 6; row += half) {
            at[0] = row;
            if (row != 2) {
                H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, sizeof values, values);
            }
        }
        H5Dclose(dataset);
        H5Sclose(space);
        H5Pclose(properties);
        H5Fclose(file);
        assert_int_equal(make_newer(path), 1);
        check_refused_open(format, path, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, path,
                           "hdf5: \"w\": the chunk at [2, 0] was never written (its fill value is "
                           "not taken for data)");
    }
    free(path);
}

/* The first block of chunks' indexes that begins with a signature. Trees of links have the same
 * signatures, and other types. */
static size_t find_block(const struct bytes *bytes, const char *signature) {
    for (size_t i = 0; i + 6 < bytes->count; i++) {
        bool of_chunks = signature[0] != 'B' || bytes->at[i + 5] == 10;
        if (memcmp(bytes->at + i, signature, 4) == 0 && of_chunks) {
            return i;
        }
    }
    fail_msg("no %s", signature);
    return 0;
}

static void test_open__damage_of_an_index_is_told(void **state) {
    static const char *const blocks[] = {"FAHD", "FADB", "EAHD", "EAIB", "EASB",
                                         "EADB", "BTHD", "BTIN", "BTLF"};
    char *path = temp_path(*state, "a.h5");
    write_many(path, 0);
    struct bytes bytes = load(path);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        size_t at = find_block(&bytes, blocks[i]);
        bytes.at[at + 12] ^= 0x10;
        save(path, &bytes);
        struct opened *opened = open_format(format, path);
        if (opened->status != GRADCMP_ERROR_CORRUPT) {
            fail_msg("%s: %d %s", blocks[i], (int)opened->status, opened->error.message);
        }
        assert_text_contains(opened->error.message, blocks[i]);
        assert_text_contains(opened->error.message, "has another checksum or signature");
        assert_int_equal(opened->error.offset_bytes, at);
        close_format(opened);
        bytes.at[at + 12] ^= 0x10;
    }
    free(bytes.at);
    free(path);
}

/* Version 6 is nobody's: libhdf5's own words are passed on. */
static void test_open__still_newer_versions_are_refused(void **state) {
    char *path = temp_path(*state, "a.h5");
    struct made made = {.name = "w", .ndim = 1, .sizes = {4}, .chunk = {2}, .layout = H5D_CHUNKED};
    hid_t file = made_file(path, true, 0);
    H5Dclose(made_write(file, &made, H5T_IEEE_F32LE));
    H5Fclose(file);
    struct bytes bytes = load(path);
    for (size_t at = 0; at + 64 < bytes.count; at++) {
        if (memcmp(bytes.at + at, "OHDR\2", 5) == 0 && find_layout(bytes.at + at) != NULL) {
            size_t start;
            *find_layout(bytes.at + at) = 6;
            put_checksum(bytes.at + at, header_bytes(bytes.at + at, &start));
        }
    }
    save(path, &bytes);
    free(bytes.at);
    check_refused_open(format, path, GRADCMP_ERROR_CORRUPT, ANY_OFFSET, path,
                       "hdf5: \"w\": object: *");
    free(path);
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
        TEMP_TEST(test_open__indexes_of_every_kind_are_read),
        TEMP_TEST(test_open__pages_of_extensible_arrays_are_found),
        TEMP_TEST(test_open__types_are_told),
        TEMP_TEST(test_open__chunk_that_was_never_written_is_refused),
        TEMP_TEST(test_open__damage_of_an_index_is_told),
        TEMP_TEST(test_open__still_newer_versions_are_refused),
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
