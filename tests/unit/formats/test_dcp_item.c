/* Items of distributed checkpoints that are not plain archives: compressed ones, and tensors in a
 * safetensors image. */
#include "formats/dcp_tools.h"
#include "formats/sample_tools.h"
#include "formats/zip_writer.h"

#include <zstd.h>

#include "formats/dcp.h"
#include "formats/dcp_item.h"

static const struct gradcmp_format *const format = &gcmp_format_torch_dist;

/* --- writing --- */

struct place {
    const char *key, *shard;
    unsigned ndim;
    const long long *offsets;
    long long offset_bytes, length_bytes;
    const char *transforms[3]; /* up to the first NULL */
};

static void w_place(struct dcp_writer *writer, const struct place *place) {
    w_object(writer, W_METADATA, "MetadataIndex");
    w_text(writer, "fqn");
    w_text(writer, place->key);
    w_text(writer, "offset");
    w_size(writer, place->ndim, place->offsets);
    w_text(writer, "index");
    w_raw(writer, "N");
    w_end(writer);
    w_object(writer, "torch.distributed.checkpoint.filesystem", "_StorageInfo");
    w_text(writer, "relative_path");
    w_text(writer, place->shard);
    w_text(writer, "offset");
    w_int(writer, place->offset_bytes);
    w_text(writer, "length");
    w_int(writer, place->length_bytes);
    if (place->transforms[0] != NULL) {
        w_text(writer, "transform_descriptors");
        w_raw(writer, "](");
        for (size_t i = 0; i < 3 && place->transforms[i] != NULL; i++) {
            w_text(writer, place->transforms[i]);
        }
        w_raw(writer, "e");
    }
    w_end(writer);
}

static void w_close(struct dcp_writer *writer, const char *temp) {
    w_raw(writer, "uub.");
    temp_file(temp, ".metadata", writer->bytes, writer->count);
}

/* A torch.save archive of one float32 vector 0, 1, 2, ... */
static struct zip_writer *make_archive(size_t count) {
    struct zip_writer *archive = writer_make();
    char pickle[512];
    uint8_t *values = malloc(4 * count);
    for (size_t i = 0; i < count; i++) {
        store_little((float)i, values + 4 * i);
    }
    int length =
        snprintf(pickle, sizeof pickle,
                 "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\nFloatStorage\nV0\n"
                 "Vcpu\nI%zu\ntQI0\n(I%zu\nt(I1\ntI00\nccollections\nOrderedDict\n)RtR.",
                 count, count);
    put_record(archive, "archive/data.pkl", pickle, (size_t)length);
    put_record(archive, "archive/byteorder", "little", 6);
    put_record(archive, "archive/data/0", values, 4 * count);
    put_end(archive);
    free(values);
    return archive;
}

/* A checkpoint of one compressed vector; `state` is what its archive is made of. */
struct compressed {
    unsigned char *frame;
    size_t frame_bytes;
};

static struct compressed compress_archive(const struct zip_writer *archive) {
    struct compressed made;
    size_t room = ZSTD_compressBound(archive->count);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0); /* as a stream is written */
    made.frame = malloc(room);
    made.frame_bytes = ZSTD_compress2(context, made.frame, room, archive->bytes, archive->count);
    assert_false(ZSTD_isError(made.frame_bytes));
    ZSTD_freeCCtx(context);
    return made;
}

enum { BEFORE = 13 };

/* Write the metadata of exp_avg of w, a vector, whose item has that many bytes. */
static void write_metadata(const char *temp, size_t elems, size_t item_bytes, const char *first,
                           const char *second) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    const long long shape[1] = {(long long)elems}, zero[1] = {0};
    w_begin(writer);
    w_simple(writer, "optim.state.w.exp_avg", 1, shape);
    w_storage(writer);
    w_place(writer, &(struct place){.key = "optim.state.w.exp_avg",
                                    .shard = "shard",
                                    .ndim = 1,
                                    .offsets = zero,
                                    .offset_bytes = BEFORE,
                                    .length_bytes = (long long)item_bytes,
                                    .transforms = {first, second}});
    w_close(writer, temp);
    free(writer);
}

static void write_compressed(const char *temp, const struct zip_writer *archive, size_t elems) {
    struct compressed made = compress_archive(archive);
    unsigned char *shard = calloc(1, BEFORE + made.frame_bytes);
    memcpy(shard + BEFORE, made.frame, made.frame_bytes);
    temp_file(temp, "shard", shard, BEFORE + made.frame_bytes);
    write_metadata(temp, elems, made.frame_bytes, "stream.zstd/1", NULL);
    free(shard);
    free(made.frame);
}

/* --- compressed items --- */

static void check_vector(const char *temp, size_t elems) {
    struct opened *opened = open_good(format, temp);
    uint64_t count;
    float *values =
        gather_stored(opened, find_stored(opened, "w", "exp_avg"), &count, &opened->error);
    if (values == NULL) {
        fail_msg("%s", opened->error.message);
    }
    assert_int_equal(count, elems);
    for (size_t i = 0; i < elems; i++) {
        assert_true(values[i] == (float)i);
    }
    free(values);
    close_format(opened);
}

static void test_resolve__compressed_item_is_read(void **state) {
    static const size_t sizes[] = {1, 1000, GCMP_DECODED_MAX_MEMORY / 4};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct zip_writer *archive = make_archive(sizes[i]);
        write_compressed(*state, archive, sizes[i]);
        check_vector(*state, sizes[i]);
        writer_free(archive);
    }
}

/* Small ones stay in memory, large ones go to a file; the record's checksum goes along. */
static void test_resolve__decoded_archive_is_the_extents(void **state) {
    for (int large = 0; large < 2; large++) {
        size_t elems = large ? GCMP_DECODED_MAX_MEMORY / 4 : 10;
        struct zip_writer *archive = make_archive(elems);
        write_compressed(*state, archive, elems);
        struct opened *opened = open_good(format, *state);
        struct gradcmp_extent extent;
        memset(&extent, 0, sizeof extent);
        assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, NULL), GRADCMP_OK);
        assert_int_equal(extent.offset_bytes, archive->record[2].data_at);
        assert_int_equal(extent.length_bytes, 4 * elems);
        assert_int_equal(extent.crc32, archive->record[2].crc);
        assert_int_equal(extent.decoded_in_file, large);
        assert_true((extent.decoded != NULL) == !large);
        free(extent.decoded);
        if (large) {
            close(extent.decoded_fd);
        }
        close_format(opened);
        writer_free(archive);
    }
}

static void check_item_refused(const char *temp, enum gradcmp_status code, uint64_t at,
                               const char *message) {
    struct opened *opened = open_good(format, temp);
    struct gradcmp_extent extent;
    memset(&extent, 0, sizeof extent);
    assert_int_equal(format->resolve(&opened->catalogue, 0, &extent, &opened->error), code);
    if (!is_message(opened->error.message, message)) {
        fail_msg("expected \"%s\", found \"%s\"", message, opened->error.message);
    }
    assert_int_equal(opened->error.offset_bytes, at);
    assert_text_contains(opened->error.path, "/shard");
    close_format(opened);
}

static void test_resolve__compressed_item_that_lies_is_refused(void **state) {
    const char *temp = *state;
    struct zip_writer *archive = make_archive(10);
    write_compressed(temp, archive, 9); /* the metadata says 9 elements */
    check_item_refused(temp, GRADCMP_ERROR_CORRUPT, BEFORE,
                       "item of \"optim.state.w.exp_avg\": expected float32 [9], found float32 "
                       "[10]");
    writer_free(archive);
    /* What is compressed is no archive. */
    archive = writer_make();
    put_bytes(archive, "this is not an archive", 22);
    write_compressed(temp, archive, 10);
    check_item_refused(temp, GRADCMP_ERROR_CORRUPT, BEFORE, "decompressed item: zip: not a torch*");
    writer_free(archive);
    /* More than the tensor and an archive around it: 2 MiB for 40 bytes. */
    archive = make_archive(500000);
    write_compressed(temp, archive, 10);
    check_item_refused(temp, GRADCMP_ERROR_CORRUPT, BEFORE,
                       "decodes to more than the 1048616 bytes expected");
    writer_free(archive);
    /* No frame at all. */
    temp_file(temp, "shard", "PK\3\4 plain bytes instead of a frame", 36);
    write_metadata(temp, 10, 20, "stream.zstd/1", NULL);
    check_item_refused(temp, GRADCMP_ERROR_CORRUPT, BEFORE, "zstd: expected a frame*");
}

static void check_transforms(const char *temp, const char *first, const char *second,
                             const char *message) {
    write_metadata(temp, 10, 20, first, second);
    struct opened *opened = open_format(format, temp);
    if (message == NULL) {
        assert_int_equal(opened->status, GRADCMP_OK);
    } else {
        assert_int_equal(opened->status, GRADCMP_ERROR_UNSUPPORTED);
        assert_string_equal(opened->error.message, message);
        assert_text_contains(opened->error.path, ".metadata");
    }
    close_format(opened);
}

static void test_open__transforms_that_are_not_undone_are_refused(void **state) {
    const char *temp = *state;
    temp_file(temp, "shard", "0123456789012345678901234567890123456789", 40);
    check_transforms(temp, "stream.zstd/1", NULL, NULL);
    check_transforms(temp, "stream.zstd", NULL, NULL);
    check_transforms(temp, "stream.zstd/2", NULL,
                     "\"optim.state.w.exp_avg\": stored through the transform \"stream.zstd/2\", "
                     "which this version does not undo (only stream.zstd/1)");
    check_transforms(temp, "stream.zstd/1", "stream.zstd/1",
                     "\"optim.state.w.exp_avg\": stored through 2 transforms, at most one is "
                     "undone");
}

/* --- safetensors images --- */

/* Metadata of two tensors whose pieces lie in two shards' images, of which the first begins at byte
 * BEFORE and the second at 0. */
static void write_image_metadata(const char *temp, long long second_at) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    const long long matrix[2] = {3, 2}, top[2] = {2, 2}, bottom[2] = {1, 2};
    const long long zero[2] = {0, 0}, two[2] = {2, 0}, vector[1] = {3};
    w_begin(writer);
    w_tensor(writer, "optim.state.w.exp_avg", "float32", 2, matrix);
    w_chunk(writer, 2, zero, top);
    w_chunk(writer, 2, two, bottom);
    w_tensor_end(writer);
    w_simple(writer, "optim.state.v.exp_avg", 1, vector);
    w_storage(writer);
    w_place(writer, &(struct place){"optim.state.w.exp_avg", "a", 2, zero, BEFORE, 16, {NULL}});
    w_place(writer, &(struct place){"optim.state.w.exp_avg", "b", 2, two, second_at, 8, {NULL}});
    w_place(writer, &(struct place){"optim.state.v.exp_avg", "a", 1, zero, BEFORE, 12, {NULL}});
    w_close(writer, temp);
    free(writer);
}

#define ENTRY(name, shape, from, to)                                                               \
    "\"optim.state." name ".exp_avg\":{\"dtype\":\"F32\",\"shape\":" shape                         \
    ",\"data_offsets\":[" from "," to "]}"
#define SHARDING(text) "\"__metadata__\":{\"DCP_SHARDING_INFO\":\"{" text "}\"},"
#define PLACED(name, offsets)                                                                      \
    "\\\"optim.state." name ".exp_avg\\\":{\\\"saved_offsets\\\":" offsets "}"

/* Write a shard: `before` bytes, the header's length, the header, small floats from `first` on. */
static void write_image(const char *temp, const char *name, size_t before, const char *header,
                        size_t elems, int first) {
    size_t header_bytes = strlen(header), total = before + 8 + header_bytes + 4 * elems;
    unsigned char *bytes = calloc(1, total);
    for (size_t i = 0; i < 8; i++) {
        bytes[before + i] = (unsigned char)(header_bytes >> (8 * i));
    }
    memcpy(bytes + before + 8, header, header_bytes);
    for (size_t i = 0; i < elems; i++) {
        store_little((float)(first + (int)i), bytes + before + 8 + header_bytes + 4 * i);
    }
    temp_file(temp, name, bytes, total);
    free(bytes);
}

#define A_HEADER                                                                                   \
    "{" SHARDING(PLACED("w", "[0,0]") "," PLACED("v", "[0]"))                                      \
        ENTRY("v", "[3]", "0", "12") "," ENTRY("w", "[2,2]", "12", "28") "}"
#define B_HEADER "{" SHARDING(PLACED("w", "[2,0]")) ENTRY("w", "[1,2]", "0", "8") "}"

static void test_open__tensors_in_images_are_ranges(void **state) {
    const char *temp = *state;
    static const float expected[] = {4, 5, 6, 7, 20, 21};
    uint64_t count;
    write_image_metadata(temp, 0);
    write_image(temp, "a", BEFORE, A_HEADER, 7, 1);
    write_image(temp, "b", 0, B_HEADER, 2, 20);
    struct opened *opened = open_good(format, temp);
    for (size_t i = 0; i < opened->catalogue.source_count; i++) {
        assert_int_equal(opened->catalogue.sources[i].kind, GRADCMP_SOURCE_RANGE);
    }
    float *values = gather_stored(opened, find_stored(opened, "w", "exp_avg"), &count, NULL);
    assert_int_equal(count, 6);
    assert_memory_equal(values, expected, sizeof expected);
    free(values);
    close_format(opened);
}

static void check_image_refused(const char *temp, const char *shard, const char *message) {
    struct opened *opened = open_format(format, temp);
    assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
    if (!is_message(opened->error.message, message)) {
        fail_msg("expected \"%s\", found \"%s\"", message, opened->error.message);
    }
    assert_text_contains(opened->error.path, shard);
    assert_true(opened->error.offset_bytes != GRADCMP_NO_OFFSET);
    close_format(opened);
}

static void test_open__image_that_contradicts_the_metadata_is_refused(void **state) {
    static const char other[] = "\"optim.state.w.exp_avg\": type, sizes or offsets in the "
                                "safetensors image are not those in the metadata";
    const char *temp = *state;
    write_image_metadata(temp, 0);
    write_image(temp, "a", BEFORE, A_HEADER, 7, 1);
    write_image(temp, "b", 0, "{" ENTRY("x", "[1,2]", "0", "8") "}", 2, 20);
    check_image_refused(temp, "/b",
                        "\"optim.state.w.exp_avg\" is not in the shard's safetensors image");
    write_image(temp, "b", 0, "{" ENTRY("w", "[2,1]", "0", "8") "}", 2, 20);
    check_image_refused(temp, "/b", other);
    write_image(temp, "b", 0, "{" ENTRY("w", "[2]", "0", "8") "}", 2, 20);
    check_image_refused(temp, "/b", other);
    write_image(temp, "b", 0, "{" SHARDING(PLACED("w", "[0,0]")) ENTRY("w", "[1,2]", "0", "8") "}",
                2, 20);
    check_image_refused(temp, "/b", other);
    write_image(temp, "b", 0,
                "{\"optim.state.w.exp_avg\":{\"dtype\":\"I32\",\"shape\":[1,2],\"data_offsets\":[0,"
                "8]}}",
                2, 20);
    check_image_refused(temp, "/b", other);
    write_image(temp, "b", 0, B_HEADER, 3, 20); /* four bytes too many */
    check_image_refused(temp, "/b", "safetensors: 4 bytes belong to no tensor");
}

/* Without offsets in the image the sizes alone must do. */
static void test_open__image_without_offsets_is_read(void **state) {
    const char *temp = *state;
    write_image_metadata(temp, 0);
    write_image(temp, "a", BEFORE, A_HEADER, 7, 1);
    write_image(temp, "b", 0, "{" ENTRY("w", "[1,2]", "0", "8") "}", 2, 20);
    close_format(open_good(format, temp));
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
        TEMP_TEST(test_resolve__compressed_item_is_read),
        TEMP_TEST(test_resolve__decoded_archive_is_the_extents),
        TEMP_TEST(test_resolve__compressed_item_that_lies_is_refused),
        TEMP_TEST(test_open__transforms_that_are_not_undone_are_refused),
        TEMP_TEST(test_open__tensors_in_images_are_ranges),
        TEMP_TEST(test_open__image_that_contradicts_the_metadata_is_refused),
        TEMP_TEST(test_open__image_without_offsets_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
