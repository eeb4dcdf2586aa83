/* The format "zarr": arrays that real writers made, arrays made here, and arrays with one defect
 * each. */
#include "formats/sample_tools.h"

#include <zlib.h>

#include "formats/zarr.h"

#define SAMPLES GCMP_TEST_DATA "/zarr/"
#define BAD     GCMP_TEST_DATA "/bad/zarr/"

static const struct gradcmp_format *const format = &gcmp_format_zarr;

static void test_open__samples_have_their_true_values(void **state) {
    (void)state;
    static const char *const names[] = {
        "zarr2_raw",
        "zarr2_gzip",
        "zarr2_zstd",
        "zarr3",
#if defined(GRADCMP_HAVE_BLOSC)
        "zarr2_blosc"
#endif
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], truth[512];
        snprintf(path, sizeof path, SAMPLES "%s", names[i]);
        snprintf(truth, sizeof truth, SAMPLES "%s.truth", names[i]);
        check_sample(format, path, truth);
    }
}

/* Write a file below folders that need not be there. */
static void write_file(const char *temp, const char *name, const void *bytes, size_t count) {
    char *path = temp_path(temp, name);
    for (char *slash = strchr(path + strlen(temp) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    free(path);
    temp_file(temp, name, bytes, count);
}

static void write_text(const char *temp, const char *name, const char *text) {
    write_file(temp, name, text, strlen(text));
}

#define V2(shape, chunks, dtype, more)                                                             \
    "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunks ",\"dtype\":\"" dtype              \
    "\",\"compressor\":null,\"filters\":null,\"order\":\"C\",\"fill_value\":0" more "}"
/* One axis of one element (or a chunk of another size), and what decides how bytes are read. */
#define V2_READ(chunk, compressor, filters, order)                                                 \
    "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[" chunk                                          \
    "],\"dtype\":\"<f4\",\"compressor\":" compressor ",\"filters\":" filters ",\"order\":" order   \
    ",\"fill_value\":0}"
#define V3(shape, chunks, dtype, codecs, more)                                                     \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"" dtype        \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunks           \
    "}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" codecs        \
    "]" more "}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

/* Check the values of a state of a tensor, which are small integers. */
static void check_values(const struct opened *opened, const char *name, const char *state,
                         const int *expected, size_t expected_count) {
    const struct gradcmp_stored *stored = find_stored(opened, name, state);
    uint64_t count;
    assert_non_null(stored);
    float *values = gather_stored(opened, stored, &count, NULL);
    assert_non_null(values);
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < expected_count; i++) {
        assert_true(values[i] == (float)expected[i]);
    }
    free(values);
}

/* As Megatron-Core wrote it: a folder for each key, "bfloat16", no compressor, chunks of one layer
 * and one tensor-parallel rank, objects in folders of their own. */
static void test_open__megatron_checkpoint_is_read(void **state) {
    const char *temp = *state;
    const char *const key = "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight";
    char name[256];
    write_text(temp, "metadata.json",
               "{\"sharded_backend\": \"zarr\", \"sharded_backend_version\": 1, "
               "\"common_backend\": \"torch\", \"common_backend_version\": 1}");
    snprintf(name, sizeof name, "%s/.zarray", key);
    write_text(temp, name, V2("[2,4,2]", "[1,2,2]", "bfloat16", ""));
    for (int layer = 0; layer < 2; layer++) {
        for (int rank = 0; rank < 2; rank++) {
            unsigned char chunk[8] = {0};
            for (int i = 0; i < 4; i++) { /* the bits of 1, 2, ... 16 */
                float value = (float)(8 * layer + 4 * rank + i + 1);
                uint32_t bits;
                memcpy(&bits, &value, 4);
                chunk[2 * i] = (unsigned char)(bits >> 16);
                chunk[2 * i + 1] = (unsigned char)(bits >> 24);
            }
            snprintf(name, sizeof name, "%s/%d.%d.0", key, layer, rank);
            write_file(temp, name, chunk, sizeof chunk);
        }
    }
    write_text(temp, "rng_state/shard_0.0_1.1.pt", "x");
    struct opened *opened = open_good(format, temp);
    static const int expected[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    check_values(opened, "decoder.layers.mlp.linear_fc1.weight", "exp_avg", expected, 16);
    assert_string_equal(opened->catalogue.writer, "megatron-core");
    assert_int_equal(opened->catalogue.stored_count, 2);
    assert_string_equal(opened->catalogue.stored[1].key, "rng_state/shard_");
    assert_null(opened->catalogue.stored[1].state);
    assert_int_equal(opened->catalogue.sources[0].kind, GRADCMP_SOURCE_RANGE);
    close_format(opened);
}

/* Groups in groups; a scalar; an array without elements; a big-endian one; an opaque one. */
static void test_open__groups_of_version_2_are_walked(void **state) {
    const char *temp = *state;
    static const unsigned char five[] = {0x40, 0xa0, 0, 0}; /* big-endian */
    write_text(temp, ".zgroup", "{\"zarr_format\":2}");
    write_text(temp, "optimizer/.zgroup", "{\"zarr_format\":2}");
    write_text(temp, "optimizer/exp_avg/.zgroup", "{\"zarr_format\":2}");
    write_text(temp, "optimizer/exp_avg/layers.0.w/.zarray", V2("[]", "[]", ">f4", ""));
    write_file(temp, "optimizer/exp_avg/layers.0.w/0", five, 4);
    write_text(temp, "optimizer/exp_avg/v/.zarray", V2("[0,3]", "[1,3]", "<f4", ""));
    write_text(temp, "model/w/.zarray", V2("[1]", "[2]", "<f4", ",\"dimension_separator\":\"/\""));
    write_text(temp, "model/.zgroup", "{\"zarr_format\":2}");
    write_file(temp, "model/w/0", "\0\0\xc0\x40\0\0\0\0", 8); /* longer than the array */
    write_text(temp, "names/.zarray", V2("[3]", "[3]", "|S8", ""));
    struct opened *opened = open_good(format, temp);
    check_values(opened, "layers.0.w", "exp_avg", (const int[]){5}, 1);
    check_values(opened, "v", "exp_avg", NULL, 0);
    check_values(opened, "w", "param", (const int[]){6}, 1);
    assert_int_equal(opened->catalogue.stored_count, 4);
    close_format(opened);
}

static void test_open__array_alone_has_the_name_of_its_folder(void **state) {
    const char *temp = *state;
    write_text(temp, "exp_avg.w/.zarray", V2("[1]", "[1]", "<f4", ""));
    write_file(temp, "exp_avg.w/0", "\0\0\xc0\x40", 4);
    char *path = temp_path(temp, "exp_avg.w");
    struct opened *opened = open_good(format, path);
    check_values(opened, "w", "exp_avg", (const int[]){6}, 1);
    close_format(opened);
    free(path);
}

/* Bytes of the small integers 1, 2, ... as little-endian binary32. */
static void put_floats(unsigned char *bytes, const int *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float value = (float)values[i];
        uint32_t bits;
        memcpy(&bits, &value, 4);
        for (int k = 0; k < 4; k++) {
            bytes[4 * i + (size_t)k] = (unsigned char)(bits >> (8 * k));
        }
    }
}

/* Axes [2,3,1] of a chunk of 2 x 3 x 4 turned so that the last is the slowest. */
static void test_open__transposed_chunk_is_put_in_order(void **state) {
    const char *temp = *state;
    unsigned char bytes[96];
    int stored[24], expected[24];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 4; k++) {
                expected[(i * 3 + j) * 4 + k] = 100 * i + 10 * j + k;
                stored[(k * 2 + i) * 3 + j] = 100 * i + 10 * j + k; /* order [2,0,1] */
            }
        }
    }
    put_floats(bytes, stored, 24);
    write_text(temp, "exp_avg.w/zarr.json",
               V3("[2,3,4]", "[2,3,4]", "float32",
                  "{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}}," LITTLE, ""));
    write_file(temp, "exp_avg.w/c/0/0/0", bytes, sizeof bytes);
    struct opened *opened = open_good(format, temp);
    check_values(opened, "w", "exp_avg", expected, 24);
    close_format(opened);
}

/* CRC-32C of "123456789" is e3069283 (RFC 3720): here of a chunk that was made by hand. */
static void test_resolve__checksum_is_compared(void **state) {
    const char *temp = *state;
    const unsigned char good[] = {'1', '2', '3',  '4',  '5',  '6', '7',
                                  '8', '9', 0x83, 0x92, 0x06, 0xe3};
    unsigned char bad[sizeof good];
    memcpy(bad, good, sizeof good);
    bad[4] ^= 1;
    write_text(temp, "w/zarr.json",
               V3("[9]", "[9]", "uint8", "{\"name\":\"bytes\"},{\"name\":\"crc32c\"}", ""));
    write_file(temp, "w/c/0", good, sizeof good);
    struct opened *opened = open_good(format, temp);
    struct gradcmp_extent extent;
    memset(&extent, 0, sizeof extent);
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, NULL), GRADCMP_OK);
    assert_int_equal(extent.length_bytes, 9);
    assert_memory_equal(extent.decoded, "123456789", 9);
    free(extent.decoded);
    write_file(temp, "w/c/0", bad, sizeof bad);
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    assert_text_contains(opened->error.message, "zarr: checksum: expected e3069283, found ");
    close_format(opened);
    write_file(temp, "w/c/0", good, 3);
    opened = open_good(format, temp);
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(opened->error.message, "zarr: chunk of 3 bytes, expected a checksum of 4");
    assert_int_equal(opened->error.offset_bytes, 3);
    close_format(opened);
}

static void test_open__shuffled_chunk_is_put_in_order(void **state) {
    const char *temp = *state;
    unsigned char bytes[12], shuffled[12];
    put_floats(bytes, (const int[]){7, 8, 9}, 3);
    for (size_t i = 0; i < 12; i++) {
        shuffled[i % 4 * 3 + i / 4] = bytes[i];
    }
    write_text(
        temp, "exp_avg.w/.zarray",
        "{\"zarr_format\":2,\"shape\":[3],\"chunks\":[3],\"dtype\":\"<f4\",\"compressor\":null,"
        "\"filters\":[{\"id\":\"shuffle\",\"elementsize\":4}],\"order\":\"C\"}");
    write_file(temp, "exp_avg.w/0", shuffled, 12);
    struct opened *opened = open_good(format, temp);
    check_values(opened, "w", "exp_avg", (const int[]){7, 8, 9}, 3);
    close_format(opened);
}

static void test_open__other_names_of_chunks(void **state) {
    const char *temp = *state;
    unsigned char bytes[4];
    put_floats(bytes, (const int[]){3}, 1);
    write_text(
        temp, "exp_avg.w/zarr.json",
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[1,1],\"data_type\":"
        "\"float32\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":"
        "[1,1]}},\"chunk_key_encoding\":{\"name\":\"v2\"},\"codecs\":[" LITTLE "],"
        "\"consolidated_metadata\":{\"must_understand\":false}}");
    write_file(temp, "exp_avg.w/0.0", bytes, 4);
    write_text(temp, "exp_avg.v/zarr.json", V3("[]", "[]", "float32", LITTLE, ""));
    write_file(temp, "exp_avg.v/c", bytes, 4);
    struct opened *opened = open_good(format, temp);
    check_values(opened, "w", "exp_avg", (const int[]){3}, 1);
    check_values(opened, "v", "exp_avg", (const int[]){3}, 1);
    close_format(opened);
}

/* A million million chunks that are not there: the first ends the search. */
static void test_open__claimed_chunks_cost_nothing(void **state) {
    const char *temp = *state;
    write_text(temp, "exp_avg.w/.zarray", V2("[1000000,1000000]", "[1,1]", "<f4", ""));
    write_text(temp, "exp_avg.w/0.0", "1234");
    write_text(temp, "exp_avg.w/0.1", "1234");
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "/exp_avg.w/0.2",
                       "zarr: missing chunk (its fill value is not taken for data)");
}

static void test_open__chunks_without_metadata_are_refused(void **state) {
    const char *temp = *state;
    write_text(temp, "exp_avg.v/.zarray", V2("[1]", "[1]", "<f4", ""));
    write_text(temp, "exp_avg.v/0", "1234");
    write_text(temp, "exp_avg.w/0.0", "1234");
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "/exp_avg.w",
                       "zarr: chunks without .zarray or zarr.json");
}

/* Eight MiB of zeros in place of four bytes. */
static void test_resolve__bomb_is_refused(void **state) {
    const char *temp = *state;
    size_t count = 8 << 20;
    unsigned char *zeros = calloc(1, count), *encoded = malloc(count);
    uLongf encoded_bytes = count;
    assert_int_equal(compress(encoded, &encoded_bytes, zeros, count), Z_OK);
    write_text(temp, "exp_avg.w/.zarray", V2_READ("1", "{\"id\":\"zlib\"}", "null", "\"C\""));
    write_file(temp, "exp_avg.w/0", encoded, encoded_bytes);
    struct opened *opened = open_good(format, temp);
    struct gradcmp_extent extent;
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(opened->error.message, "decodes to more than the 4 bytes expected");
    close_format(opened);
    free(zeros);
    free(encoded);
}

/* A header of blosc that states 4 GiB on both sides. */
static void test_resolve__blosc_that_lies_is_refused(void **state) {
    (void)state;
    struct opened *opened = open_good(format, BAD "blosc_lie");
    struct gradcmp_extent extent;
#if defined(GRADCMP_HAVE_BLOSC)
    enum gradcmp_status code = GRADCMP_ERROR_CORRUPT;
    const char *message = "blosc: the buffer's header contradicts its 40 bytes";
#else
    enum gradcmp_status code = GRADCMP_ERROR_UNSUPPORTED;
    const char *message = "blosc: this build of gradcmp has no decoder for it (GRADCMP_BLOSC)";
#endif
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error), code);
    assert_string_equal(opened->error.message, message);
    assert_int_equal(opened->error.offset_bytes, 0);
    assert_text_contains(opened->error.path, "blosc_lie/optimizer.state.exp_avg.w/0.0");
    close_format(opened);
}

struct bad {
    const char *name, *file;
    enum gradcmp_status code;
    uint64_t offset;
    const char *message;
};

#define NONE GRADCMP_NO_OFFSET
static const struct bad bad_arrays[] = {
    {"json", "/.zarray", GRADCMP_ERROR_CORRUPT, 1, "json: *"},
    {"short_chunk", "/0.0", GRADCMP_ERROR_CORRUPT, 20, "zarr: chunk of 20 bytes, expected 24"},
    {"long_chunk", "/0.0", GRADCMP_ERROR_CORRUPT, 24, "zarr: chunk of 28 bytes, expected 24"},
    {"missing_chunk", "/1.0", GRADCMP_ERROR_CORRUPT, NONE,
     "zarr: missing chunk (its fill value is not taken for data)"},
    {"chunk_huge", "/.zarray", GRADCMP_ERROR_CORRUPT, 0x24, "zarr: chunks of more than 2^62 bytes"},
    {"chunk_zero", "/.zarray", GRADCMP_ERROR_CORRUPT, 0x24,
     "zarr: chunks without elements: size 0 on axis 0"},
    {"shape_negative", "/.zarray", GRADCMP_ERROR_CORRUPT, 0x13,
     "zarr: expected integers of 0 or more as shape, found a negative integer"},
    {"shape_many", "/.zarray", GRADCMP_ERROR_CORRUPT, 0x13,
     "zarr: an array of more than 2^63 bytes"},
    {"separator", "/.zarray", GRADCMP_ERROR_CORRUPT, 0x8c,
     "zarr: expected \".\" or \"/\" as dimension_separator, found \"/../../../\""},
    {"compressor", "/.zarray", GRADCMP_ERROR_UNSUPPORTED, 0x46,
     "zarr: compressor \"evil\" is not read (gzip, zlib, zstd and blosc are)"},
    {"object_dtype", "object_dtype", GRADCMP_ERROR_UNSUPPORTED, NONE,
     "\"optimizer.state.exp_avg.w\": expected a tensor of numbers for the state exp_avg, found |O"},
};

static void test_open__each_defect_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_arrays / sizeof *bad_arrays; i++) {
        char path[512];
        snprintf(path, sizeof path, BAD "%s", bad_arrays[i].name);
        check_refused_open(format, path, bad_arrays[i].code, bad_arrays[i].offset,
                           bad_arrays[i].file, bad_arrays[i].message);
    }
}

/* Metadata of one array that is refused, with the member at which. */
struct bad_text {
    const char *file, *text, *member;
    enum gradcmp_status code;
    const char *message;
};

#define A2 "exp_avg.w/.zarray"
#define A3 "exp_avg.w/zarr.json"
static const struct bad_text bad_texts[] = {
    {A2, "[]", "", GRADCMP_ERROR_CORRUPT, "zarr: expected 2 as zarr_format, found nothing"},
    {A2, "{\"zarr_format\":3}", "\"zarr_format", GRADCMP_ERROR_CORRUPT,
     "zarr: expected 2 as zarr_format, found an integer"},
    {A2, V2("[1]", "[1,1]", "<f4", ""), "\"chunks", GRADCMP_ERROR_CORRUPT,
     "zarr: chunks of 2 axes in an array of 1"},
    {A2, V2("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1]", "<f4", ""), "\"shape",
     GRADCMP_ERROR_LIMIT, "zarr: 17 axes in shape, at most 16 are read"},
    {A2, V2("[1]", "[1]", "|f4", ""), "\"dtype", GRADCMP_ERROR_CORRUPT,
     "zarr: dtype \"|f4\" states no byte order"},
    {A2, "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":4}", "\"dtype",
     GRADCMP_ERROR_CORRUPT, "zarr: expected a text as dtype, found an integer"},
    {A2, V2_READ("1", "null", "[{\"id\":\"delta\"}]", "\"C\""), "\"filters",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: filter \"delta\" is not read"},
    {A2, V2_READ("1", "null", "[{\"id\":\"shuffle\",\"elementsize\":0}]", "\"C\""), "\"filters",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: filter \"shuffle\" is not read"},
    {A2, V2_READ("1", "null", "null", "\"A\""), "\"order", GRADCMP_ERROR_CORRUPT,
     "zarr: expected \"C\" or \"F\" as order, found a text"},
    {A2, V2_READ("1", "\"gzip\"", "null", "\"C\""), "\"compressor", GRADCMP_ERROR_CORRUPT,
     "zarr: expected an object with an id as compressor, found a text"},
    {A2, V2_READ("4294967296", "{\"id\":\"gzip\"}", "null", "\"C\""), "\"chunks",
     GRADCMP_ERROR_LIMIT,
     "zarr: compressed chunks of 17179869184 bytes, at most 2147483648 are read"},
    {A2,
     "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"<f4\",\"filters\":null,"
     "\"order\":\"C\"}",
     "\"zarr_format", GRADCMP_ERROR_CORRUPT,
     "zarr: no compressor, which an array of version 2 must state"},
    {A2,
     "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"<f4\",\"compressor\":null,"
     "\"filter\":null,\"order\":\"C\"}",
     "\"zarr_format", GRADCMP_ERROR_CORRUPT,
     "zarr: no filters, which an array of version 2 must state"},
    {A2,
     "{\"zarr_format\":2,\"shape\":[1],\"chunks\":[1],\"dtype\":\"<f4\",\"compressor\":null,"
     "\"filters\":null,\"Order\":\"F\"}",
     "\"zarr_format", GRADCMP_ERROR_CORRUPT,
     "zarr: no order, which an array of version 2 must state"},
    {A3, "{\"zarr_format\":3,\"node_type\":\"tree\"}", "\"node_type", GRADCMP_ERROR_CORRUPT,
     "zarr: expected \"array\" or \"group\" as node_type, found a text"},
    {A3, V3("[1]", "[1]", "float32", LITTLE, ",\"secret\":1"), "\"secret",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: member \"secret\" is not known"},
    {A3,
     V3("[1,1]", "[1,1]", "float32",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,1]}}," LITTLE, ""),
     "\"order", GRADCMP_ERROR_CORRUPT, "zarr: expected each of 2 axes once as order of transpose"},
    {A3, V3("[1]", "[1]", "float32", "{\"name\":\"sharding_indexed\"}", ""), "\"sharding_indexed",
     GRADCMP_ERROR_UNSUPPORTED,
     "zarr: codec \"sharding_indexed\" is not read (transpose, bytes, gzip, zstd, blosc and crc32c "
     "are)"},
    {A3, V3("[1]", "[1]", "float32", "{\"name\":\"gzip\"}," LITTLE, ""), "\"gzip",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: codec \"gzip\" is not read in this place"},
    {A3, V3("[1]", "[1]", "float32", LITTLE ",{\"name\":\"gzip\"},{\"name\":\"zstd\"}", ""),
     "\"zstd", GRADCMP_ERROR_UNSUPPORTED, "zarr: codec \"zstd\" is not read in this place"},
    {A3, V3("[1]", "[1]", "float32", "", ""), "\"codecs", GRADCMP_ERROR_CORRUPT,
     "zarr: expected the codec \"bytes\", found none"},
    {A3, V3("[1]", "[1]", "float32", "{\"name\":\"bytes\"}", ""), "", GRADCMP_ERROR_CORRUPT,
     "zarr: expected \"little\" or \"big\" as endian, found nothing"},
    {A3, V3("[1]", "[1]", "float32", LITTLE, ",\"storage_transformers\":[1]"),
     "\"storage_transformers", GRADCMP_ERROR_UNSUPPORTED,
     "zarr: storage_transformers are not read"},
    {A2, V2("[3037000500,3037000500]", "[1,1]", "<f4", ""), "\"shape", GRADCMP_ERROR_CORRUPT,
     "zarr: an array of more than 2^63 bytes"},
    {A2, V2("[4611686018427387904,4]", "[1,1]", "<f4", ""), "\"shape", GRADCMP_ERROR_CORRUPT,
     "zarr: an array of more than 2^63 bytes"},
    {A2, V2("[4611686018427387904]", "[1]", "<f8", ""), "\"shape", GRADCMP_ERROR_CORRUPT,
     "zarr: an array of more than 2^63 bytes"},
    {A2, V2("[1,1]", "[4611686018427387904,4]", "<f4", ""), "\"chunks", GRADCMP_ERROR_CORRUPT,
     "zarr: chunks of more than 2^62 bytes"},
    {A2, V2("[1]", "[4611686018427387904]", "<f8", ""), "\"chunks", GRADCMP_ERROR_CORRUPT,
     "zarr: chunks of more than 2^62 bytes"},
    {A2, V2("[1]", "[1152921504606846976]", "<f4", ""), "\"chunks", GRADCMP_ERROR_CORRUPT,
     "zarr: chunks of more than 2^62 bytes"},
    {A2, V2_READ("1", "null", "4", "\"C\""), "\"filters", GRADCMP_ERROR_UNSUPPORTED,
     "zarr: filter \"?\" is not read"},
    {A2, V2_READ("1", "null", "[4]", "\"C\""), "\"filters", GRADCMP_ERROR_UNSUPPORTED,
     "zarr: filter \"?\" is not read"},
    {A2, V2_READ("1", "null", "[{\"id\":\"shuffle\"},{\"id\":\"shuffle\"}]", "\"C\""), "\"filters",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: filter \"shuffle\" is not read"},
    {A2, V2_READ("1", "null", "[{\"id\":\"shuffle\",\"elementsize\":65}]", "\"C\""), "\"filters",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: filter \"shuffle\" is not read"},
    {A2, V2_READ("1", "null", "[{\"id\":\"shuffle\",\"elementsize\":\"4\"}]", "\"C\""), "\"filters",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: filter \"shuffle\" is not read"},
    {A2, V2_READ("1", "{\"id\":\"lzma\"}", "null", "\"C\""), "\"compressor",
     GRADCMP_ERROR_UNSUPPORTED,
     "zarr: compressor \"lzma\" is not read (gzip, zlib, zstd and blosc are)"},
    {A3,
     V3("[1,1]", "[1,1]", "float32",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}," LITTLE, ""),
     "\"order", GRADCMP_ERROR_CORRUPT, "zarr: expected each of 2 axes once as order of transpose"},
    {A3,
     V3("[1,1]", "[1,1]", "float32",
        "{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2]}}," LITTLE, ""),
     "\"order", GRADCMP_ERROR_CORRUPT, "zarr: expected each of 2 axes once as order of transpose"},
    {A3, V3("[1]", "[1]", "float32", LITTLE ",{\"name\":\"zlib\"}", ""), "\"zlib",
     GRADCMP_ERROR_UNSUPPORTED,
     "zarr: codec \"zlib\" is not read (transpose, bytes, gzip, zstd, blosc and crc32c are)"},
    {A3, V3("[1]", "[1]", "float32", LITTLE ",4", ""), "\"codecs", GRADCMP_ERROR_CORRUPT,
     "zarr: expected a codec with a name, found an integer"},
    {A3, V3("[1]", "[1]", "float32", LITTLE, ",\"storage_transformers\":{}"),
     "\"storage_transformers", GRADCMP_ERROR_UNSUPPORTED,
     "zarr: storage_transformers are not read"},
    {A3, V3("[1]", "[1]", "float32", LITTLE, ",\"secret\":{\"must_understand\":true}"), "\"secret",
     GRADCMP_ERROR_UNSUPPORTED, "zarr: member \"secret\" is not known"},
};

static void test_open__each_defect_of_metadata_is_told(void **state) {
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        const struct bad_text *bad = &bad_texts[i];
        char folder[32];
        snprintf(folder, sizeof folder, "case%zu", i);
        temp_folder(*state, folder);
        char *path = temp_path(*state, folder);
        write_text(path, bad->file, bad->text);
        const char *member = strstr(bad->text, bad->member);
        check_refused_open(format, path, bad->code, (uint64_t)(member - bad->text),
                           strrchr(bad->file, '/'), bad->message);
        free(path);
    }
}

static void test_probe__is_by_content(void **state) {
    const char *temp = *state;
    struct gcmp_dir *dir;
    static const struct {
        const char *folder, *file, *text;
        int strength;
    } cases[] = {{"a", "a/.zarray", "{}", 2},
                 {"b", "b/.zgroup", "{}", 2},
                 {"c", "c/zarr.json", "{}", 2},
                 {"d", "d/x/.zarray", "{}", 2},
                 {"e", "e/metadata.json", "{\"sharded_backend\":\"zarr\"}", 2},
                 {"f", "f/metadata.json", "{\"sharded_backend\":\"torch_dist\"}", 0},
                 {"g", "g/x/y/.zarray", "{}", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(temp, cases[i].file, cases[i].text);
        char *path = temp_path(temp, cases[i].folder);
        assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
        assert_int_equal(format->probe(dir), cases[i].strength);
        gcmp_dir_close(dir);
        free(path);
    }
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
        TEMP_TEST(test_open__megatron_checkpoint_is_read),
        TEMP_TEST(test_open__groups_of_version_2_are_walked),
        TEMP_TEST(test_open__array_alone_has_the_name_of_its_folder),
        TEMP_TEST(test_open__transposed_chunk_is_put_in_order),
        TEMP_TEST(test_resolve__checksum_is_compared),
        TEMP_TEST(test_open__shuffled_chunk_is_put_in_order),
        TEMP_TEST(test_open__other_names_of_chunks),
        TEMP_TEST(test_open__claimed_chunks_cost_nothing),
        TEMP_TEST(test_open__chunks_without_metadata_are_refused),
        TEMP_TEST(test_resolve__bomb_is_refused),
        cmocka_unit_test(test_resolve__blosc_that_lies_is_refused),
        cmocka_unit_test(test_open__each_defect_is_told),
        TEMP_TEST(test_open__each_defect_of_metadata_is_told),
        TEMP_TEST(test_probe__is_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
