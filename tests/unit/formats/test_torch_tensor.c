/* Tensors in torch.save archives: what each rebuild function means, and numbers that lie. Pickles
 * are written in protocol 0, which is text. */
#include "formats/zip_writer.h"

#include "formats/torch_file.h"

/* Pieces of pickles. "t" closes the tuple that "(" opened, "R" calls, "Q" makes a persistent id. */
#define STORAGE_IN(class, key, count) "(Vstorage\nc" class "\nV" key "\nVcpu\nI" count "\ntQ"
#define STORAGE(class, key, count)    STORAGE_IN("torch\n" class, key, count)
#define HOOKS                         "I00\nccollections\nOrderedDict\n)R"
#define V2(storage, offset, size, stride)                                                          \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage "I" offset "\n" size stride HOOKS "tR"
#define V3(storage, offset, size, stride, dtype)                                                   \
    "ctorch._utils\n_rebuild_tensor_v3\n(" storage "I" offset "\n" size stride HOOKS               \
    "ctorch\n" dtype "\ntR"
#define SIZE_3_4   "(I3\nI4\nt"
#define STRIDE_4_1 "(I4\nI1\nt"
#define FLOATS     STORAGE("FloatStorage", "0", "12") /* data/0 is 48 bytes */
#define PLAIN      V2(FLOATS, "0", SIZE_3_4, STRIDE_4_1)

enum { DATA_BYTES = 48 };

struct opened {
    char *temp;
    struct gcmp_arena arena;
    struct gcmp_dir *dir;
    struct zip_writer *writer;
    struct gcmp_torch_file torch;
    struct gradcmp_error error;
    enum gradcmp_status status;
    struct gradcmp_extent extent;
};

/* Write an archive of data.pkl, byteorder (where it is not NULL), `other` (the same) and data/0. */
static struct opened *open_archive(const char *pickle, size_t count, const char *byteorder,
                                   const char *other) {
    struct opened *opened = calloc(1, sizeof *opened);
    unsigned char data[DATA_BYTES] = {1, 2, 3};
    uint32_t file;
    opened->temp = temp_dir_make();
    opened->writer = writer_make();
    put_record(opened->writer, "archive/data.pkl", pickle, count);
    if (byteorder != NULL) {
        put_record(opened->writer, "archive/byteorder", byteorder, strlen(byteorder));
    }
    if (other != NULL) {
        put_record(opened->writer, other, "x", 1);
    }
    put_record(opened->writer, "archive/data/0", data, sizeof data);
    put_end(opened->writer);
    temp_file(opened->temp, "file.pt", opened->writer->bytes, opened->writer->count);
    assert_int_equal(gcmp_dir_open(opened->temp, &opened->dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(opened->dir, "file.pt", 7, &file, NULL), GRADCMP_OK);
    opened->status = gcmp_torch_open(opened->dir, file, 0, opened->writer->count, &opened->arena,
                                     &opened->torch, &opened->error);
    return opened;
}

static void close_archive(struct opened *opened) {
    gcmp_dir_close(opened->dir);
    gcmp_arena_free(&opened->arena);
    temp_dir_remove(opened->temp);
    writer_free(opened->writer);
    free(opened);
}

/* Open an archive whose pickle is one tensor, and describe that. */
static struct opened *open_tensor(const char *pickle) {
    char *whole = malloc(strlen(pickle) + 2);
    sprintf(whole, "%s.", pickle);
    struct opened *opened = open_archive(whole, strlen(whole), "little", NULL);
    free(whole);
    assert_int_equal(opened->status, GRADCMP_OK);
    opened->status =
        gcmp_torch_tensor(&opened->torch, opened->torch.root, &opened->extent, &opened->error);
    return opened;
}

/* The tensor is 3 x 4 of that type, row-major from the start of data/0. */
static void check_reads(const char *pickle, enum gradcmp_dtype dtype) {
    struct opened *opened = open_tensor(pickle);
    const struct gradcmp_extent *extent = &opened->extent;
    if (opened->status != GRADCMP_OK) {
        fail_msg("%s", opened->error.message);
    }
    assert_true(gcmp_torch_is_tensor(opened->torch.root));
    assert_int_equal(extent->dtype, dtype);
    assert_int_equal(extent->ndim, 2);
    assert_int_equal(extent->shape[0], 3);
    assert_int_equal(extent->shape[1], 4);
    assert_int_equal(extent->stride[0], 4);
    assert_int_equal(extent->stride[1], 1);
    assert_int_equal(extent->offset_elems, 0);
    assert_int_equal(extent->offset_bytes, opened->writer->record[2].data_at);
    assert_int_equal(extent->length_bytes, DATA_BYTES);
    assert_int_equal(extent->crc32, opened->writer->record[2].crc);
    assert_int_equal(extent->big_endian, 0);
    assert_null(extent->decoded);
    close_archive(opened);
}

/* The tensor is refused: code and message, at the call that `last` bytes before the end made. */
static void check_refused_before(const char *pickle, size_t last, enum gradcmp_status code,
                                 const char *message) {
    struct opened *opened = open_tensor(pickle);
    if (opened->status != code || strcmp(opened->error.message, message) != 0) {
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)code, message, (int)opened->status,
                 opened->error.message);
    }
    assert_int_equal(opened->error.code, code);
    assert_int_equal(opened->error.offset_bytes,
                     opened->writer->record[0].data_at + strlen(pickle) - 1 - last);
    assert_text_contains(opened->error.path, "file.pt");
    close_archive(opened);
}

static void check_refused(const char *pickle, enum gradcmp_status code, const char *message) {
    check_refused_before(pickle, 0, code, message);
}

static void test_torch_tensor__every_rebuild_function_reads(void **state) {
    (void)state;
    check_reads(PLAIN, GRADCMP_DTYPE_FLOAT32);
    check_reads("ctorch._utils\n_rebuild_tensor\n(" FLOATS "I0\n" SIZE_3_4 STRIDE_4_1 "tR",
                GRADCMP_DTYPE_FLOAT32);
    /* A seventh argument: the writer's metadata, as Ascend devices have it. */
    check_reads("ctorch._utils\n_rebuild_tensor_v2\n(" FLOATS "I0\n" SIZE_3_4 STRIDE_4_1 HOOKS
                "(Vnpu_format_/ND\nI01\ndtR",
                GRADCMP_DTYPE_FLOAT32);
    check_reads(V3(STORAGE_IN("torch.storage\nUntypedStorage", "0", "48"), "0", SIZE_3_4,
                   STRIDE_4_1, "uint32"),
                GRADCMP_DTYPE_UINT32);
    check_reads("ctorch_npu.utils.storage\n_rebuild_npu_tensor\n(" FLOATS
                "I0\n" SIZE_3_4 STRIDE_4_1 HOOKS "I29\ntR",
                GRADCMP_DTYPE_FLOAT32);
    check_reads("ctorch._utils\n_rebuild_parameter\n(" PLAIN HOOKS "tR", GRADCMP_DTYPE_FLOAT32);
    check_reads("ctorch._utils\n_rebuild_parameter_with_state\n(" PLAIN HOOKS "(dtR",
                GRADCMP_DTYPE_FLOAT32);
    check_reads("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" PLAIN
                "ctorch\nfloat32\nVnpu:0\nI00\ntR",
                GRADCMP_DTYPE_FLOAT32);
    check_reads("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
                "ctorch\nTensor\n(" FLOATS "I0\n" SIZE_3_4 STRIDE_4_1 HOOKS
                "t(Vpartition_dim\nI0\ndtR",
                GRADCMP_DTYPE_FLOAT32);
    /* A parameter around a subclass around a parameter. */
    check_reads("ctorch._utils\n_rebuild_parameter\n("
                "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_parameter\n"
                "cmy\nTensor\n(" PLAIN HOOKS "t(dtR" HOOKS "tR",
                GRADCMP_DTYPE_FLOAT32);
    check_reads(V2(FLOATS, "0", "ctorch\nSize\n(" SIZE_3_4 "tR", STRIDE_4_1),
                GRADCMP_DTYPE_FLOAT32);
}

static void test_torch_tensor__every_storage_class_reads(void **state) {
    (void)state;
    check_reads(V2(STORAGE_IN("torch.cuda\nFloatStorage", "0", "12"), "0", SIZE_3_4, STRIDE_4_1),
                GRADCMP_DTYPE_FLOAT32);
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
        unsigned count;
    } classes[] = {
        {"HalfStorage", GRADCMP_DTYPE_FLOAT16, 24},
        {"BFloat16Storage", GRADCMP_DTYPE_BFLOAT16, 24},
        {"ShortStorage", GRADCMP_DTYPE_INT16, 24},
        {"CharStorage", GRADCMP_DTYPE_INT8, 48},
        {"ByteStorage", GRADCMP_DTYPE_UINT8, 48},
        {"BoolStorage", GRADCMP_DTYPE_BOOL, 48},
        {"UntypedStorage", GRADCMP_DTYPE_UINT8, 48},
        {"IntStorage", GRADCMP_DTYPE_INT32, 12},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        char pickle[400];
        snprintf(pickle, sizeof pickle, V2(STORAGE("%s", "0", "%u"), "0", SIZE_3_4, STRIDE_4_1),
                 classes[i].name, classes[i].count);
        check_reads(pickle, classes[i].dtype);
    }
}

/* Types of 8 and 16 bytes, of which data/0 has 6 and 3 elements. */
static void test_torch_tensor__wide_storage_classes_read(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
        unsigned count;
    } classes[] = {
        {"DoubleStorage", GRADCMP_DTYPE_FLOAT64, 6},
        {"LongStorage", GRADCMP_DTYPE_INT64, 6},
        {"ComplexFloatStorage", GRADCMP_DTYPE_COMPLEX64, 6},
        {"ComplexDoubleStorage", GRADCMP_DTYPE_COMPLEX128, 3},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        char pickle[400];
        snprintf(pickle, sizeof pickle, V2(STORAGE("%s", "0", "%u"), "0", "(I3\nt", "(I1\nt"),
                 classes[i].name, classes[i].count);
        struct opened *opened = open_tensor(pickle);
        assert_int_equal(opened->status, GRADCMP_OK);
        assert_int_equal(opened->extent.dtype, classes[i].dtype);
        close_archive(opened);
    }
}

static void check_view(const char *pickle, int64_t offset, unsigned ndim, const int64_t *stride) {
    struct opened *opened = open_tensor(pickle);
    if (opened->status != GRADCMP_OK) {
        fail_msg("%s", opened->error.message);
    }
    assert_int_equal(opened->extent.offset_elems, offset);
    assert_int_equal(opened->extent.ndim, ndim);
    for (unsigned d = 0; d < ndim; d++) {
        assert_int_equal(opened->extent.stride[d], stride[d]);
    }
    close_archive(opened);
}

static void test_torch_tensor__views_are_legal(void **state) {
    (void)state;
    check_view(V2(FLOATS, "11", "(t", "(t"), 11, 0, NULL);
    check_view(V2(FLOATS, "5", "(I7\nt", "(I1\nt"), 5, 1, (int64_t[]){1});
    check_view(V2(FLOATS, "0", "(I4\nI3\nt", "(I1\nI4\nt"), 0, 2,
               (int64_t[]){1, 4}); /* transposed: the last element is 3 + 8 = 11 */
}

/* 2^40 rows of the same 12 elements: expand() writes that, and nothing is allocated for it. */
static void test_torch_tensor__stride_0_is_legal(void **state) {
    (void)state;
    check_view(V2(FLOATS, "0", "(I1099511627776\nI12\nt", "(I0\nI1\nt"), 0, 2, (int64_t[]){0, 1});
}

static void test_torch_tensor__meaningless_strides_become_row_major(void **state) {
    (void)state;
    check_view(V2(FLOATS, "3", "(I2\nI1\nI3\nt", "(I3\nI-9223372036854775807\nI1\nt"), 3, 3,
               (int64_t[]){3, 3, 1});
    check_view(
        V2(FLOATS, "9223372036854775807", "(I2\nI0\nI5\nt", "(I9223372036854775807\nI-5\nI1\nt"), 0,
        3, (int64_t[]){5, 5, 1});
}

#define REACHES "torch: a view that reaches past the 12 elements of its storage (offset "

static void test_torch_tensor__views_past_the_storage_are_corrupt(void **state) {
    (void)state;
    check_refused(V2(FLOATS, "1", SIZE_3_4, STRIDE_4_1), GRADCMP_ERROR_CORRUPT, REACHES "1)");
    check_refused(V2(FLOATS, "12", "(t", "(t"), GRADCMP_ERROR_CORRUPT, REACHES "12)");
    check_refused(V2(FLOATS, "0", "(I13\nt", "(I1\nt"), GRADCMP_ERROR_CORRUPT, REACHES "0)");
    check_refused(V2(FLOATS, "9223372036854775807", "(I2\nt", "(I1\nt"), GRADCMP_ERROR_CORRUPT,
                  REACHES "9223372036854775807)");
    /* Sums and products that would wrap around 2^64 to something small. */
    check_refused(V2(FLOATS, "2", "(I3\nt", "(I9223372036854775807\nt"), GRADCMP_ERROR_CORRUPT,
                  REACHES "2)");
    check_refused(V2(FLOATS, "0", "(I4294967297\nI2\nt", "(I4294967296\nI4294967296\nt"),
                  GRADCMP_ERROR_CORRUPT, REACHES "0)");
    check_refused(V2(FLOATS, "0", "(I2\nt", "(I-1\nt"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected strides of 0 or more, found -1");
}

static void test_torch_tensor__bad_shapes_are_refused(void **state) {
    (void)state;
    check_refused(V2(FLOATS, "0", "(I-3\nI4\nt", STRIDE_4_1), GRADCMP_ERROR_CORRUPT,
                  "torch: expected the size as integers of 0 or more");
    check_refused(V2(FLOATS, "0", "(I01\nt", "(I1\nt"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected the size as integers of 0 or more");
    check_refused(V2(FLOATS, "0", "I3\n", "(t"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected the size as integers of 0 or more");
    check_refused(V2(FLOATS, "0", SIZE_3_4, "(I1\nt"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected 2 strides, found 1");
    check_refused(V2(FLOATS, "0", SIZE_3_4, "(I4\nI1\nI1\nt"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected 2 strides, found 3");
    check_refused(V2(FLOATS, "0", SIZE_3_4, "(I4\nVone\nt"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected integers as strides, found a text");
    check_refused(V2(FLOATS, "-1", SIZE_3_4, STRIDE_4_1), GRADCMP_ERROR_CORRUPT,
                  "torch: expected an offset of 0 or more");
    check_refused(V2(FLOATS, "0", "(I4294967296\nI4294967296\nt", "(I0\nI0\nt"),
                  GRADCMP_ERROR_CORRUPT, "torch: a size whose product is over 2^63 - 1");
    check_refused(V2(FLOATS, "0", "(I0\nI4294967296\nI4294967296\nt", "(I0\nI0\nI0\nt"),
                  GRADCMP_ERROR_CORRUPT, "torch: a size whose product is over 2^63 - 1");
}

#define EIGHT_ONES "I1\nI1\nI1\nI1\nI1\nI1\nI1\nI1\n"

static void test_torch_tensor__axes_are_limited(void **state) {
    (void)state;
    struct opened *opened =
        open_tensor(V2(FLOATS, "0", "(" EIGHT_ONES EIGHT_ONES "t", "(" EIGHT_ONES EIGHT_ONES "t"));
    assert_int_equal(opened->status, GRADCMP_OK);
    assert_int_equal(opened->extent.ndim, 16);
    close_archive(opened);
    check_refused(V2(FLOATS, "0", "(" EIGHT_ONES EIGHT_ONES "I1\nt", "(t"), GRADCMP_ERROR_LIMIT,
                  "torch: a tensor of 17 axes, at most 16 are read");
}

/* CVE-2026-24747: a count that the record does not have. */
static void test_torch_tensor__count_that_is_not_the_records_is_corrupt(void **state) {
    (void)state;
#define LIE(count, type, storage)                                                                  \
    check_refused(V2(storage, "0", "(t", "(t"), GRADCMP_ERROR_CORRUPT,                             \
                  "torch: expected " count " elements of " type                                    \
                  ", found a record data/0 of 48 bytes")
    LIE("13", "float32", STORAGE("FloatStorage", "0", "13"));
    LIE("11", "float32", STORAGE("FloatStorage", "0", "11"));
    LIE("0", "float32", STORAGE("FloatStorage", "0", "0"));
    LIE("12", "float64", STORAGE("DoubleStorage", "0", "12"));
    LIE("4611686018427387916", "float32", STORAGE("FloatStorage", "0", "4611686018427387916"));
    check_refused(V3(STORAGE_IN("torch.storage\nUntypedStorage", "0", "47"), "0", SIZE_3_4,
                     STRIDE_4_1, "float32"),
                  GRADCMP_ERROR_CORRUPT,
                  "torch: expected 47 elements of uint8, found a record data/0 of 48 bytes");
}

static void test_torch_tensor__missing_record_is_corrupt(void **state) {
    (void)state;
    check_refused(V2(STORAGE("FloatStorage", "7", "12"), "0", SIZE_3_4, STRIDE_4_1),
                  GRADCMP_ERROR_CORRUPT, "torch: expected a record data/7, found none");
    check_refused(V2(STORAGE("FloatStorage", "../data.pkl", "12"), "0", SIZE_3_4, STRIDE_4_1),
                  GRADCMP_ERROR_CORRUPT, "torch: expected a record data/../data.pkl, found none");
    char pickle[1000], key[300];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = '\0';
    snprintf(pickle, sizeof pickle, V2(STORAGE("FloatStorage", "%s", "12"), "0", "(t", "(t"), key);
    check_refused(pickle, GRADCMP_ERROR_CORRUPT,
                  "torch: expected a short text as storage key, found a text");
}

#define BAD_ID "torch: expected (\"storage\", class, key, location, count) as persistent id"

static void test_torch_tensor__bad_persistent_ids_are_corrupt(void **state) {
    (void)state;
    static const char *const ids[] = {
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\ntQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI12\nNNtQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI12\n(I0\nttQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nV12\ntQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI01\ntQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI-12\ntQ",
        "(Vstorage\nVFloatStorage\nV0\nVcpu\nI12\ntQ",
        "(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI12\nlQ",
        "(Vstorage\nlQ",
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char pickle[400];
        snprintf(pickle, sizeof pickle, V2("%s", "0", "(t", "(t"), ids[i]);
        check_refused(pickle, GRADCMP_ERROR_CORRUPT, BAD_ID);
    }
    check_refused(V2("(Vmodule\ntQ", "0", "(t", "(t"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected a storage as first argument, found a persistent id");
    check_refused(V2("N", "0", "(t", "(t"), GRADCMP_ERROR_CORRUPT,
                  "torch: expected a storage as first argument, found None");
    check_refused(V2("(Vstorage\nctorch\nFloatStorage\nI0\nVcpu\nI12\ntQ", "0", "(t", "(t"),
                  GRADCMP_ERROR_CORRUPT,
                  "torch: expected a short text as storage key, found an integer");
}

static void test_torch_tensor__sixth_item_none_of_an_id_is_legal(void **state) {
    (void)state;
    check_reads(
        V2("(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI12\nNtQ", "0", SIZE_3_4, STRIDE_4_1),
        GRADCMP_DTYPE_FLOAT32);
}

static void test_torch_tensor__unknown_names_are_unsupported(void **state) {
    (void)state;
    check_refused(V2(STORAGE("QInt8Storage", "0", "48"), "0", "(t", "(t"),
                  GRADCMP_ERROR_UNSUPPORTED,
                  "torch: storage class \"torch QInt8Storage\" is not read");
    check_refused(V2(STORAGE_IN("os\nsystem", "0", "48"), "0", "(t", "(t"),
                  GRADCMP_ERROR_UNSUPPORTED, "torch: storage class \"os system\" is not read");
    check_refused(V3(STORAGE_IN("torch.storage\nUntypedStorage", "0", "48"), "0", "(t", "(t",
                     "float8_e8m0fnu"),
                  GRADCMP_ERROR_UNSUPPORTED,
                  "torch: element type \"torch float8_e8m0fnu\" is not read");
    check_refused(
        V3(STORAGE_IN("torch.storage\nUntypedStorage", "0", "48"), "0", "(t", "(t", "bf16"),
        GRADCMP_ERROR_UNSUPPORTED, "torch: element type \"torch bf16\" is not read");
    check_refused("ctorch_npu.utils.storage\n_rebuild_blocked_tensor\n(" FLOATS "I16\nI192\ntR",
                  GRADCMP_ERROR_UNSUPPORTED,
                  "torch: a tensor made by \"torch_npu.utils.storage _rebuild_blocked_tensor\" "
                  "is not read");
    check_refused("ctorch._tensor\n_rebuild_from_type_v2\n(cmy\nmake\nctorch\nTensor\n(" FLOATS
                  "t(dtR",
                  GRADCMP_ERROR_UNSUPPORTED, "torch: a tensor made by \"my make\" is not read");
    check_refused("ctorch._utils\n_rebuild_sparse_tensor\n(NNtR", GRADCMP_ERROR_UNSUPPORTED,
                  "torch: a sparse tensor (\"torch._utils _rebuild_sparse_tensor\") is not read");
}

static void test_torch_tensor__device_dtype_that_differs_is_unsupported(void **state) {
    (void)state;
    static const char tail[] = "ctorch\nbfloat16\nVnpu:0\nI00\ntR";
    check_refused_before("ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" PLAIN
                         "ctorch\nbfloat16\nVnpu:0\nI00\ntR",
                         sizeof tail - 1, GRADCMP_ERROR_UNSUPPORTED,
                         "torch: a tensor stored as float32 that stands for one of bfloat16 is not "
                         "read");
}

static void test_torch_tensor__wrong_numbers_of_arguments_are_corrupt(void **state) {
    (void)state;
    check_refused("ctorch._utils\n_rebuild_tensor_v2\n(" FLOATS "I0\ntR", GRADCMP_ERROR_CORRUPT,
                  "torch: \"torch._utils _rebuild_tensor_v2\": expected 6 to 7 arguments in a "
                  "tuple, found 2");
    check_refused("ctorch._utils\n_rebuild_parameter\n(" PLAIN "tR", GRADCMP_ERROR_CORRUPT,
                  "torch: \"torch._utils _rebuild_parameter\": expected 3 to 3 arguments in a "
                  "tuple, found 1");
    check_refused("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
                  "ctorch\nTensor\nN(dtR",
                  GRADCMP_ERROR_CORRUPT,
                  "torch: \"torch._utils _rebuild_tensor_v2\": expected 6 to 7 arguments in a "
                  "tuple, found 0");
    static const char tail[] = HOOKS "tR";
    check_refused_before("ctorch._utils\n_rebuild_parameter\n(I5\n" HOOKS "tR", sizeof tail - 1 + 2,
                         GRADCMP_ERROR_CORRUPT, "torch: expected a tensor, found an integer");
}

/* The two ways to change a tensor after it was made. */
static void test_torch_tensor__tensors_that_were_changed_are_refused(void **state) {
    (void)state;
    check_refused_before(PLAIN "Va\nI1\ns", 7, GRADCMP_ERROR_CORRUPT,
                         "torch: items were set on a tensor");
    check_refused_before(PLAIN "I1\na", 4, GRADCMP_ERROR_CORRUPT,
                         "torch: items were set on a tensor");
    check_refused_before(PLAIN "(db", 3, GRADCMP_ERROR_UNSUPPORTED,
                         "torch: a tensor with a state is not read");
    static const char tail[] = "Va\nI1\ns" HOOKS "tR";
    check_refused_before("ctorch._utils\n_rebuild_parameter\n(" PLAIN "Va\nI1\ns" HOOKS "tR",
                         sizeof tail - 1, GRADCMP_ERROR_CORRUPT,
                         "torch: items were set on a tensor");
}

static void test_torch_tensor__wrappers_are_limited(void **state) {
    (void)state;
    static const char open[] = "ctorch._utils\n_rebuild_parameter\n(", close[] = "NNtR";
    for (int wrappers = 8; wrappers <= 9; wrappers++) {
        char pickle[2000] = "";
        for (int i = 0; i < wrappers; i++) {
            strcat(pickle, open);
        }
        strcat(pickle, PLAIN);
        for (int i = 0; i < wrappers; i++) {
            strcat(pickle, close);
        }
        if (wrappers == 8) {
            check_reads(pickle, GRADCMP_DTYPE_FLOAT32);
        } else {
            check_refused_before(pickle, 8 * strlen(close), GRADCMP_ERROR_LIMIT,
                                 "torch: a tensor inside more than 8 wrappers");
        }
    }
}

#define DTENSOR(state)                                                                             \
    "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n"           \
    "ctorch.distributed.tensor\nDTensor\n(ctorch.distributed.tensor\nDTensor\nctorch\nfloat32\n"   \
    "tp9\n" state "tR"

static void test_torch_tensor__dtensor_is_named_and_its_local_tensor_found(void **state) {
    (void)state;
    static const char *const states[] = {
        DTENSOR("(V_spec\nNV_local_tensor\n" PLAIN "d"),
        DTENSOR("(N(V_spec\nNV_local_tensor\n" PLAIN "dt"),
        "ctorch._utils\n_rebuild_parameter\n(" DTENSOR("(N(V_local_tensor\n" PLAIN "dt") HOOKS "tR",
    };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct opened *opened = open_tensor(states[i]);
        assert_int_equal(opened->status, GRADCMP_ERROR_UNSUPPORTED);
        assert_string_equal(opened->error.message, "torch: a tensor of class "
                                                   "\"torch.distributed.tensor DTensor\" is not "
                                                   "read");
        assert_true(gcmp_torch_is_tensor(opened->torch.root));
        const struct gcmp_node *local = gcmp_torch_local_tensor(opened->torch.root);
        assert_int_equal(gcmp_torch_tensor(&opened->torch, local, &opened->extent, NULL),
                         GRADCMP_OK);
        assert_int_equal(opened->extent.shape[0], 3);
        assert_null(gcmp_torch_local_tensor(local));
        close_archive(opened);
    }
}

static void test_torch_tensor__other_nodes_are_no_tensors(void **state) {
    (void)state;
    static const char *const pickles[] = {"N",
                                          "(d",
                                          "ctorch\nSize\n((ttR",
                                          FLOATS,
                                          "ccollections\nOrderedDict\n)R",
                                          "cmy\nWrapper\n(" PLAIN "tR"};
    for (size_t i = 0; i < sizeof pickles / sizeof pickles[0]; i++) {
        struct opened *opened = open_tensor(pickles[i]);
        assert_false(gcmp_torch_is_tensor(opened->torch.root));
        assert_null(gcmp_torch_local_tensor(opened->torch.root));
        assert_int_not_equal(opened->status, GRADCMP_OK);
        close_archive(opened);
    }
    assert_false(gcmp_torch_is_tensor(NULL));
    assert_null(gcmp_torch_local_tensor(NULL));
    assert_int_equal(gcmp_torch_dtype(NULL), GRADCMP_DTYPE_NONE);
}

static void test_torch_tensor__no_node_is_corrupt(void **state) {
    (void)state;
    struct opened *opened = open_tensor("N");
    assert_int_equal(gcmp_torch_tensor(&opened->torch, NULL, &opened->extent, &opened->error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(opened->error.message, "torch: expected a tensor, found nothing");
    assert_int_equal(opened->error.offset_bytes, opened->writer->record[0].data_at);
    close_archive(opened);
}

static void test_torch_dtype__knows_torchs_names_only(void **state) {
    (void)state;
    static const struct {
        const char *pickle;
        enum gradcmp_dtype dtype;
    } examples[] = {
        {"ctorch\nfloat8_e4m3fn\n.", GRADCMP_DTYPE_FLOAT8_E4M3FN},
        {"ctorch\nbool\n.", GRADCMP_DTYPE_BOOL},
        {"ctorch\nfp32\n.", GRADCMP_DTYPE_NONE},
        {"ctorch\nnone\n.", GRADCMP_DTYPE_NONE},
        {"ctorc\nfloat32\n.", GRADCMP_DTYPE_NONE},
        {"Vtorch float32\n.", GRADCMP_DTYPE_NONE},
        {"ctorch\nfloat32\n(tR.", GRADCMP_DTYPE_NONE},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gcmp_cursor cursor =
            gcmp_cursor_make(examples[i].pickle, strlen(examples[i].pickle), 0);
        struct gcmp_node *root;
        assert_int_equal(gcmp_pickle_load(&cursor, &arena, "f", &root, NULL), GRADCMP_OK);
        assert_int_equal(gcmp_torch_dtype(root), examples[i].dtype);
        gcmp_arena_free(&arena);
    }
}

static void test_torch_open__byte_order(void **state) {
    (void)state;
    struct opened *big = open_archive(PLAIN ".", sizeof(PLAIN ".") - 1, "big", NULL);
    assert_int_equal(big->status, GRADCMP_OK);
    assert_int_equal(gcmp_torch_tensor(&big->torch, big->torch.root, &big->extent, NULL),
                     GRADCMP_OK);
    assert_int_equal(big->extent.big_endian, 1);
    close_archive(big);
    struct opened *absent = open_archive("N.", 2, NULL, NULL);
    assert_int_equal(absent->status, GRADCMP_OK);
    assert_false(absent->torch.big_endian);
    close_archive(absent);
    static const char *const bad[] = {"middle", "Little", "little\n", "", "bigger", "bi"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct opened *opened = open_archive("N.", 2, bad[i], NULL);
        assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
        assert_string_equal(opened->error.message,
                            "torch: record byteorder: expected \"little\" or \"big\"");
        assert_int_equal(opened->error.offset_bytes, opened->writer->record[1].data_at);
        close_archive(opened);
    }
}

static void test_torch_open__torchscript_is_unsupported(void **state) {
    (void)state;
    struct opened *opened = open_archive("N.", 2, NULL, "archive/constants.pkl");
    assert_int_equal(opened->status, GRADCMP_ERROR_UNSUPPORTED);
    assert_text_contains(opened->error.message, "torch: a TorchScript archive");
    close_archive(opened);
}

static void test_torch_open__broken_pickles_are_at_their_byte_of_the_file(void **state) {
    (void)state;
    struct opened *opened = open_archive("\x80\x02"
                                         "h\x07.",
                                         5, "little", NULL);
    assert_int_equal(opened->status, GRADCMP_ERROR_CORRUPT);
    assert_string_equal(opened->error.message,
                        "pickle: BINGET: memo entry 7 was never set; 0 entries were");
    assert_int_equal(opened->error.offset_bytes, opened->writer->record[0].data_at + 2);
    assert_text_contains(opened->error.path, "file.pt");
    close_archive(opened);
}

static void test_torch_open__without_a_pickle_is_corrupt(void **state) {
    (void)state;
    char *temp = temp_dir_make();
    struct zip_writer *writer = writer_make();
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    struct gradcmp_error error = {0};
    struct gcmp_dir *dir;
    uint32_t file;
    put_record(writer, "archive/version", "3\n", 2);
    put_end(writer);
    temp_file(temp, "file.pt", writer->bytes, writer->count);
    assert_int_equal(gcmp_dir_open(temp, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "file.pt", 7, &file, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_torch_open(dir, file, 0, writer->count, &arena, &torch, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message, "torch: expected a record data.pkl, found none");
    gcmp_dir_close(dir);
    gcmp_arena_free(&arena);
    temp_dir_remove(temp);
    writer_free(writer);
}

/* The bytes of a tensor in row-major order, as a checksum. */
static uint32_t gather(struct gcmp_dir *dir, uint32_t file, const struct gradcmp_extent *extent,
                       unsigned elem_bytes) {
    unsigned char *record = malloc(extent->length_bytes + 1);
    assert_int_equal(
        gcmp_dir_read(dir, file, extent->offset_bytes, record, extent->length_bytes, NULL),
        GRADCMP_OK);
    uint64_t count = 1;
    uint32_t crc = 0;
    for (unsigned d = 0; d < extent->ndim; d++) {
        count *= extent->shape[d];
    }
    for (uint64_t i = 0; i < count; i++) {
        int64_t at = extent->offset_elems;
        uint64_t rest = i;
        for (unsigned d = extent->ndim; d-- > 0; rest /= extent->shape[d]) {
            at += (int64_t)(rest % extent->shape[d]) * extent->stride[d];
        }
        crc = (uint32_t)crc32_z(crc, record + (uint64_t)at * elem_bytes, elem_bytes);
    }
    free(record);
    return crc;
}

/* Checksums of the contiguous bytes of each tensor, from the program that wrote the file. */
static const struct {
    const char *name;
    enum gradcmp_dtype dtype;
    unsigned elem_bytes;
    uint32_t crc;
} zoo[] = {
    {"transposed", GRADCMP_DTYPE_FLOAT32, 4, 0xcbd45732},
    {"strided_slice", GRADCMP_DTYPE_FLOAT32, 4, 0xf6a587af},
    {"offset_view", GRADCMP_DTYPE_FLOAT32, 4, 0x7e432abc},
    {"expanded", GRADCMP_DTYPE_FLOAT32, 4, 0x6540cb9e},
    {"shared_a", GRADCMP_DTYPE_FLOAT32, 4, 0x3d948e37},
    {"shared_b", GRADCMP_DTYPE_FLOAT32, 4, 0xc5c8314a},
    {"channels_last", GRADCMP_DTYPE_FLOAT32, 4, 0x6dc47405},
    {"permuted3", GRADCMP_DTYPE_FLOAT32, 4, 0x1504d7c0},
    {"scalar", GRADCMP_DTYPE_FLOAT32, 4, 0x2fa4390e},
    {"empty", GRADCMP_DTYPE_FLOAT32, 4, 0},
    {"empty_3x0x2", GRADCMP_DTYPE_FLOAT32, 4, 0},
    {"bfloat16", GRADCMP_DTYPE_BFLOAT16, 2, 0x6e2dc4ce},
    {"float16", GRADCMP_DTYPE_FLOAT16, 2, 0xbc680957},
    {"float64", GRADCMP_DTYPE_FLOAT64, 8, 0x981ada43},
    {"float8_e4m3fn", GRADCMP_DTYPE_FLOAT8_E4M3FN, 1, 0x0e45c386},
    {"float8_e5m2", GRADCMP_DTYPE_FLOAT8_E5M2, 1, 0x6536ab23},
    {"int8", GRADCMP_DTYPE_INT8, 1, 0xad2d8ee1},
    {"int16", GRADCMP_DTYPE_INT16, 2, 0x0c32f1ef},
    {"int32", GRADCMP_DTYPE_INT32, 4, 0xf53fb492},
    {"int64", GRADCMP_DTYPE_INT64, 8, 0xe4545c12},
    {"uint8", GRADCMP_DTYPE_UINT8, 1, 0xad2d8ee1},
    {"uint16", GRADCMP_DTYPE_UINT16, 2, 0x0c32f1ef},
    {"uint32", GRADCMP_DTYPE_UINT32, 4, 0xf53fb492},
    {"uint64", GRADCMP_DTYPE_UINT64, 8, 0xe4545c12},
    {"bool", GRADCMP_DTYPE_BOOL, 1, 0xd8bd332b},
    {"parameter", GRADCMP_DTYPE_FLOAT32, 4, 0x50ab4196},
    {"parameter_nograd", GRADCMP_DTYPE_FLOAT32, 4, 0xa7e3f7cc},
    {"parameter_subclass", GRADCMP_DTYPE_FLOAT32, 4, 0x734fb6ce},
    {"buffer_tagged", GRADCMP_DTYPE_FLOAT32, 4, 0xf2921f4c},
    {"specials", GRADCMP_DTYPE_FLOAT32, 4, 0x4fbcf90b},
    {"complex64", GRADCMP_DTYPE_COMPLEX64, 8, 0x42887f4c},
};

static void test_torch_tensor__every_tensor_of_a_real_file_has_its_bytes(void **state) {
    (void)state;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    struct gradcmp_error error = {0};
    struct gcmp_dir *dir;
    uint32_t file;
    assert_int_equal(gcmp_dir_open(GCMP_TEST_DATA "/torch_file", &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "zoo.pt", 6, &file, NULL), GRADCMP_OK);
    assert_int_equal(
        gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), &arena, &torch, &error),
        GRADCMP_OK);
    const struct gcmp_node *tensors = gcmp_node_get(torch.root, "tensors");
    struct gradcmp_extent extent;
    for (size_t i = 0; i < sizeof zoo / sizeof zoo[0]; i++) {
        assert_int_equal(
            gcmp_torch_tensor(&torch, gcmp_node_get(tensors, zoo[i].name), &extent, &error),
            GRADCMP_OK);
        assert_int_equal(extent.dtype, zoo[i].dtype);
        assert_int_equal(gather(dir, file, &extent, zoo[i].elem_bytes), zoo[i].crc);
    }
    assert_int_equal(
        gcmp_torch_tensor(&torch, gcmp_node_get(tensors, "float8_e8m0fnu"), &extent, &error),
        GRADCMP_ERROR_UNSUPPORTED);
    gcmp_dir_close(dir);
    gcmp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_tensor__every_rebuild_function_reads),
        cmocka_unit_test(test_torch_tensor__every_storage_class_reads),
        cmocka_unit_test(test_torch_tensor__wide_storage_classes_read),
        cmocka_unit_test(test_torch_tensor__views_are_legal),
        cmocka_unit_test(test_torch_tensor__stride_0_is_legal),
        cmocka_unit_test(test_torch_tensor__meaningless_strides_become_row_major),
        cmocka_unit_test(test_torch_tensor__views_past_the_storage_are_corrupt),
        cmocka_unit_test(test_torch_tensor__bad_shapes_are_refused),
        cmocka_unit_test(test_torch_tensor__axes_are_limited),
        cmocka_unit_test(test_torch_tensor__count_that_is_not_the_records_is_corrupt),
        cmocka_unit_test(test_torch_tensor__missing_record_is_corrupt),
        cmocka_unit_test(test_torch_tensor__bad_persistent_ids_are_corrupt),
        cmocka_unit_test(test_torch_tensor__sixth_item_none_of_an_id_is_legal),
        cmocka_unit_test(test_torch_tensor__unknown_names_are_unsupported),
        cmocka_unit_test(test_torch_tensor__device_dtype_that_differs_is_unsupported),
        cmocka_unit_test(test_torch_tensor__wrong_numbers_of_arguments_are_corrupt),
        cmocka_unit_test(test_torch_tensor__tensors_that_were_changed_are_refused),
        cmocka_unit_test(test_torch_tensor__wrappers_are_limited),
        cmocka_unit_test(test_torch_tensor__dtensor_is_named_and_its_local_tensor_found),
        cmocka_unit_test(test_torch_tensor__other_nodes_are_no_tensors),
        cmocka_unit_test(test_torch_tensor__no_node_is_corrupt),
        cmocka_unit_test(test_torch_dtype__knows_torchs_names_only),
        cmocka_unit_test(test_torch_open__byte_order),
        cmocka_unit_test(test_torch_open__torchscript_is_unsupported),
        cmocka_unit_test(test_torch_open__broken_pickles_are_at_their_byte_of_the_file),
        cmocka_unit_test(test_torch_open__without_a_pickle_is_corrupt),
        cmocka_unit_test(test_torch_tensor__every_tensor_of_a_real_file_has_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
