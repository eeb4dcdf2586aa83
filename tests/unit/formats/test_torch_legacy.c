/* The stream of torch.save before 1.6: good ones, and every number in it that can lie. */
#include "formats/torch_save_tools.h"

#include "formats/torch_legacy.h"
#include "formats/torch_legacy_skim.h"

/* The header: pickles of the magic number, of 1001 and of a dict. */
static const unsigned char HEADER[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                       0x20, 0x6a, 0xa8, 0x50, 0x19, '.',  0x80, 2,    'M',
                                       0xe9, 3,    '.',  0x80, 2,    '}',  '.'};

#define ID(key, count, view)                                                                       \
    "(Vstorage\nctorch\nFloatStorage\nV" key "\nVcpu\nI" count "\n" view "tQ"
#define TENSOR(id, offset, size)                                                                   \
    "ctorch._utils\n_rebuild_tensor\n(" id "I" offset "\n(I" size "\nt(I1\nttR"
#define NONE "N"

/* A stream in the making. */
struct stream {
    char *temp;
    unsigned char bytes[4096];
    size_t count;
    size_t object_at, keys_at, storages_at;
    struct gcmp_arena arena;
    struct gcmp_dir *dir;
    struct gcmp_torch_file torch;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static void put(struct stream *stream, const void *bytes, size_t count) {
    assert_true(stream->count + count <= sizeof stream->bytes);
    memcpy(stream->bytes + stream->count, bytes, count);
    stream->count += count;
}

static void put_text(struct stream *stream, const char *text) {
    put(stream, text, strlen(text));
}

static struct stream *begin(const char *object, const char *keys) {
    struct stream *stream = calloc(1, sizeof *stream);
    put(stream, HEADER, sizeof HEADER);
    stream->object_at = stream->count;
    put_text(stream, object);
    put_text(stream, ".");
    stream->keys_at = stream->count;
    put_text(stream, keys);
    put_text(stream, ".");
    stream->storages_at = stream->count;
    return stream;
}

/* A storage: the number of elements, then `count` floats. */
static void put_storage(struct stream *stream, int64_t stated, size_t count) {
    unsigned char bytes[8];
    float values[64];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)stated >> (8 * i));
    }
    fill_floats(values, count);
    put(stream, bytes, sizeof bytes);
    put(stream, values, count * sizeof *values);
}

static void open_stream(struct stream *stream) {
    uint32_t file;
    stream->temp = temp_dir_make();
    temp_file(stream->temp, "file.pt", stream->bytes, stream->count);
    assert_int_equal(gcmp_dir_open(stream->temp, &stream->dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(stream->dir, "file.pt", 7, &file, NULL), GRADCMP_OK);
    stream->status =
        gcmp_legacy_open(stream->dir, file, &stream->arena, &stream->torch, &stream->error);
}

static void close_stream(struct stream *stream) {
    gcmp_dir_close(stream->dir);
    gcmp_arena_free(&stream->arena);
    temp_dir_remove(stream->temp);
    free(stream);
}

static void check_opens(struct stream *stream) {
    open_stream(stream);
    if (stream->status != GRADCMP_OK) {
        fail_msg("%s", stream->error.message);
    }
}

/* Open a stream that must be refused, at that byte, and close it. */
static void check_refused(struct stream *stream, enum gradcmp_status code, uint64_t offset,
                          const char *message) {
    open_stream(stream);
    if (stream->status != code || !is_message(stream->error.message, message)) {
        fail_msg("expected %d \"%s\", found %d \"%s\"", (int)code, message, (int)stream->status,
                 stream->error.message);
    }
    assert_int_equal(stream->error.offset_bytes, offset);
    assert_text_contains(stream->error.path, "file.pt");
    close_stream(stream);
}

/* The tensor under a name of the object begins at that byte of the file. */
static void check_tensor(const struct stream *stream, const char *name, uint64_t offset_bytes,
                         uint64_t length_bytes, int64_t offset_elems) {
    struct gradcmp_extent extent;
    struct gradcmp_error error = {0};
    const struct gcmp_node *node = gcmp_node_get(stream->torch.root, name);
    if (gcmp_torch_tensor(&stream->torch, node, &extent, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", name, error.message);
    }
    assert_int_equal(extent.offset_bytes, offset_bytes);
    assert_int_equal(extent.length_bytes, length_bytes);
    assert_int_equal(extent.offset_elems, offset_elems);
    assert_int_equal(extent.crc32, 0);
    assert_int_equal(extent.big_endian, 0);
}

static void test_torch_legacy__storages_lie_in_the_order_of_the_keys(void **state) {
    (void)state;
    struct stream *stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "2", NONE), "0", "2")
                                              PT_TEXT("b") TENSOR(ID("12", "3", NONE), "1", "2")),
                                  PT_LIST(PT_TEXT("12") PT_TEXT("7")));
    put_storage(stream, 3, 3);
    put_storage(stream, 2, 2);
    check_opens(stream);
    check_tensor(stream, "b", stream->storages_at + 8, 12, 1);
    check_tensor(stream, "a", stream->storages_at + 8 + 12 + 8, 8, 0);
    assert_int_equal(stream->torch.pickle->offset_bytes, stream->object_at);
    close_stream(stream);
}

/* Quantized elements are not read, but what lies behind them is. */
static void test_torch_legacy__unread_types_take_their_room(void **state) {
    (void)state;
    struct stream *stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "2", NONE), "0", "2") PT_TEXT(
                                      "q") "(Vstorage\nctorch\nQInt8Storage\nV1\nVcpu\nI3\nNtQ"),
                                  PT_LIST(PT_TEXT("1") PT_TEXT("7")));
    put_storage(stream, 3, 0);
    put_text(stream, "xyz");
    put_storage(stream, 2, 2);
    check_opens(stream);
    check_tensor(stream, "a", stream->storages_at + 8 + 3 + 8, 8, 0);
    close_stream(stream);
}

static void test_torch_legacy__views_of_storages_are_parts_of_them(void **state) {
    (void)state;
    struct stream *stream =
        begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "6", "(V8\nI2\nI3\nt"), "1", "2") PT_TEXT("b")
                          TENSOR(ID("7", "6", NONE), "0", "6")),
              PT_LIST(PT_TEXT("7")));
    put_storage(stream, 6, 6);
    check_opens(stream);
    check_tensor(stream, "a", stream->storages_at + 8 + 8, 12, 1);
    check_tensor(stream, "b", stream->storages_at + 8, 24, 0);
    close_stream(stream);
    stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "6", "(V8\nI4\nI3\nt"), "0", "2")),
                   PT_LIST(PT_TEXT("7")));
    put_storage(stream, 6, 6);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->object_at + 87, /* the tuple of its id */
                  "torch: a view of 3 elements from 4 in storage \"7\" of 6");
}

/* Their ids are equal, and may be one node. */
static void test_torch_legacy__two_tensors_of_one_view(void **state) {
    (void)state;
    struct stream *stream =
        begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "6", "(V8\nI2\nI3\nt"), "0", "2") PT_TEXT("b")
                          TENSOR(ID("7", "6", "(V8\nI2\nI3\nt"), "1", "2")),
              PT_LIST(PT_TEXT("7")));
    put_storage(stream, 6, 6);
    check_opens(stream);
    check_tensor(stream, "a", stream->storages_at + 8 + 8, 12, 0);
    check_tensor(stream, "b", stream->storages_at + 8 + 8, 12, 1);
    close_stream(stream);
}

/* A loader has one room for the keys of storages and views, and the first of a key fills it. */
static void test_torch_legacy__a_view_key_of_two_things_is_refused(void **state) {
    static const char two_parts[] =
        "torch: view \"8\" of two parts of storages, of which loaders take the first for both";
    static const struct {
        const char *other, *message;
    } rows[] = {
        {TENSOR(ID("7", "6", "(V8\nI1\nI3\nt"), "0", "2"), two_parts},
        {TENSOR(ID("7", "6", "(V8\nI2\nI2\nt"), "0", "2"), two_parts},
        {TENSOR(ID("5", "6", "(V8\nI2\nI3\nt"), "0", "2"), two_parts},
        {TENSOR("(Vstorage\nctorch\nIntStorage\nV7\nVcpu\nI6\n(V8\nI2\nI3\nttQ", "0", "2"),
         two_parts},
        {TENSOR(ID("8", "6", NONE), "0", "2"),
         "torch: \"8\" is both a storage and a view, of which loaders take the first for both"},
        {TENSOR(ID("5", "6", "(V5\nI2\nI3\nt"), "0", "2"),
         "torch: \"5\" is both a storage and a view, of which loaders take the first for both"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char object[1024];
        snprintf(object, sizeof object, "(%s%s%s%sd", PT_TEXT("a"),
                 TENSOR(ID("7", "6", "(V8\nI2\nI3\nt"), "0", "2"), PT_TEXT("b"), rows[i].other);
        struct stream *stream = begin(object, PT_LIST(PT_TEXT("7")));
        open_stream(stream);
        assert_int_equal(stream->status, GRADCMP_ERROR_CORRUPT);
        assert_string_equal(stream->error.message, rows[i].message);
        assert_true(stream->error.offset_bytes > stream->object_at &&
                    stream->error.offset_bytes < stream->keys_at);
        close_stream(stream);
    }
}

#define ONE PT_DICT(PT_TEXT("a") TENSOR(ID("7", "2", NONE), "0", "2"))

static void test_torch_legacy__sizes_that_disagree_are_damage(void **state) {
    (void)state;
    struct stream *stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put_storage(stream, 3, 3);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->storages_at,
                  "torch: storage \"7\": expected 2 elements, as the object says, found 3");
    stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put_storage(stream, -1, 2);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->storages_at,
                  "torch: storage \"7\": expected 2 elements, as the object says, found -1");
    stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "4611686018427387904", NONE), "0", "2")),
                   PT_LIST(PT_TEXT("7")));
    put_storage(stream, 4611686018427387904, 2);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->count, "torch: truncated: storage \"7\"*");
    stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "2", NONE), "0", "2") PT_TEXT("b")
                               TENSOR(ID("7", "3", NONE), "0", "2")),
                   PT_LIST(PT_TEXT("7")));
    put_storage(stream, 2, 2);
    open_stream(stream);
    assert_int_equal(stream->status, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(stream->error.message, "elements here, of");
    close_stream(stream);
}

static void test_torch_legacy__truncation_is_told_at_the_end(void **state) {
    (void)state;
    struct stream *stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put_storage(stream, 2, 1);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->count, "torch: truncated: storage \"7\"*");
    stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put(stream, "\2\0\0", 3);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->count,
                  "torch: truncated: the file ends before the size of storage \"7\"");
    stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put_storage(stream, 2, 2);
    put_text(stream, "more");
    check_refused(stream, GRADCMP_ERROR_UNSUPPORTED, stream->count - 4,
                  "torch: 4 bytes behind the last storage*");
    stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    stream->count = stream->keys_at - 3;
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->count,
                  "pickle: the file ends inside of it");
}

static void test_torch_legacy__keys_must_be_the_objects(void **state) {
    (void)state;
    struct stream *stream = begin(ONE, PT_LIST(PT_TEXT("9")));
    put_storage(stream, 2, 2);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->keys_at,
                  "torch: key \"9\" in the list of storages: the object has no such storage");
    stream = begin(ONE, PT_LIST(PT_TEXT("7") PT_TEXT("8")));
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->keys_at,
                  "torch: expected a list of 1 keys of storages, found a list of 2");
    stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("7", "2", NONE), "0", "2") PT_TEXT("b")
                               TENSOR(ID("8", "2", NONE), "0", "2")),
                   PT_LIST(PT_TEXT("7") PT_TEXT("7")));
    put_storage(stream, 2, 2);
    put_storage(stream, 2, 2);
    check_refused(stream, GRADCMP_ERROR_CORRUPT, stream->keys_at,
                  "torch: key \"7\" in the list of storages: listed twice");
    stream = begin(PT_DICT(PT_TEXT("a") TENSOR(ID("x", "1", NONE), "0", "1") PT_TEXT("b")
                               TENSOR(ID("X", "1", NONE), "0", "1")),
                   PT_LIST(PT_TEXT("X") PT_TEXT("x")));
    put_storage(stream, 1, 1);
    put_storage(stream, 1, 1);
    open_stream(stream);
    assert_int_equal(stream->status, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(stream->error.message, "two storages have the name data/");
    close_stream(stream);
}

static void test_torch_legacy__other_ids_are_refused(void **state) {
    (void)state;
    struct stream *stream = begin(PT_DICT(PT_TEXT("a") "(Vmodule\ncm\nNet\nVf\nVs\ntQ"), "(l");
    open_stream(stream);
    assert_int_equal(stream->status, GRADCMP_ERROR_UNSUPPORTED);
    assert_text_contains(stream->error.message, "a whole module with its source");
    close_stream(stream);
    stream = begin(PT_DICT(PT_TEXT("a") "(Vstorage\nctorch\nEvilStorage\nV7\nVcpu\nI2\nNtQ"), "(l");
    open_stream(stream);
    assert_int_equal(stream->status, GRADCMP_ERROR_UNSUPPORTED);
    assert_text_contains(stream->error.message, "storage class \"torch EvilStorage\"");
    close_stream(stream);
    stream = begin(PT_DICT(PT_TEXT("a") "Vx\nQ"), "(l");
    open_stream(stream);
    assert_int_equal(stream->status, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(stream->error.message, "as persistent id");
    close_stream(stream);
}

static void test_torch_legacy__headers_are_checked(void **state) {
    (void)state;
    struct stream *stream = begin(ONE, PT_LIST(PT_TEXT("7")));
    put_storage(stream, 2, 2);
    stream->bytes[18] = 0xea; /* 1002 */
    check_refused(stream, GRADCMP_ERROR_UNSUPPORTED, 15,
                  "torch: expected version 1001 of the stream, found an integer 1002");
    assert_true(gcmp_legacy_probe(HEADER, sizeof HEADER));
    unsigned char other[sizeof HEADER];
    memcpy(other, HEADER, sizeof other);
    other[7] ^= 1;
    assert_false(gcmp_legacy_probe(other, sizeof other));
    assert_false(gcmp_legacy_probe(HEADER, 13));
    assert_false(gcmp_legacy_probe(HEADER, 0));
}

/* --- stepping over pickles --- */

static enum gradcmp_status skim(const void *bytes, size_t count, uint64_t limit, uint64_t *length,
                                struct gradcmp_error *error) {
    char *temp = temp_dir_make();
    struct gcmp_dir *dir;
    uint32_t file;
    temp_file(temp, "file", bytes, count);
    assert_int_equal(gcmp_dir_open(temp, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "file", 4, &file, NULL), GRADCMP_OK);
    enum gradcmp_status status = gcmp_legacy_skim(dir, file, 0, limit, length, error);
    gcmp_dir_close(dir);
    temp_dir_remove(temp);
    return status;
}

#define SKIM(text, length)                                                                         \
    do {                                                                                           \
        uint64_t found = 0;                                                                        \
        struct gradcmp_error error = {0};                                                          \
        assert_int_equal(skim(text "....", sizeof text + 3, 1000, &found, &error), GRADCMP_OK);    \
        assert_int_equal(found, (length));                                                         \
    } while (0)

static void test_torch_legacy__arguments_are_stepped_over(void **state) {
    (void)state;
    SKIM("N.", 2);
    SKIM("I12.5\n.", 7);                /* a stop in a line is none */
    SKIM("cab.\nc.\n.", 9);             /* two lines */
    SKIM("X\2\0\0\0...", 8);            /* counted by four bytes */
    SKIM("\x8c\3....", 6);              /* by one */
    SKIM("\x8d\1\0\0\0\0\0\0\0..", 11); /* by eight */
    SKIM("G........"
         "N.",
         11);                           /* eight bytes */
    SKIM("\x95\2\0\0\0\0\0\0\0N.", 11); /* a frame's contents are opcodes */
    SKIM("\x80\2K.M..J....h.r....\x82.\x83..\x84.....", 30);
}

static void test_torch_legacy__pickles_without_an_end_are_damage(void **state) {
    static const struct {
        const char *bytes;
        size_t count, at;
        const char *message;
    } cases[] = {
        {"NN", 2, 2, "pickle: the file ends inside of it"},
        {"NX\xff\xff\xff\x7f.", 7, 1, "pickle: an argument that reaches past the end of the file"},
        {"N\xfe.", 3, 1, "pickle: an opcode that is not known"},
        {"NVabc", 5, 1, "pickle: the file ends inside of it"},
        {"NG...", 5, 1, "pickle: an argument that reaches past the end of the file"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gradcmp_error error = {0};
        uint64_t length;
        assert_int_equal(skim(cases[i].bytes, cases[i].count, 1000, &length, &error),
                         GRADCMP_ERROR_CORRUPT);
        assert_string_equal(error.message, cases[i].message);
        assert_int_equal(error.offset_bytes, cases[i].at);
    }
    struct gradcmp_error error = {0};
    uint64_t length;
    assert_int_equal(skim("NNNNNNNN.", 9, 8, &length, &error), GRADCMP_ERROR_LIMIT);
    assert_int_equal(skim("NNNNNNNN.", 9, 9, &length, &error), GRADCMP_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_legacy__storages_lie_in_the_order_of_the_keys),
        cmocka_unit_test(test_torch_legacy__unread_types_take_their_room),
        cmocka_unit_test(test_torch_legacy__views_of_storages_are_parts_of_them),
        cmocka_unit_test(test_torch_legacy__two_tensors_of_one_view),
        cmocka_unit_test(test_torch_legacy__a_view_key_of_two_things_is_refused),
        cmocka_unit_test(test_torch_legacy__sizes_that_disagree_are_damage),
        cmocka_unit_test(test_torch_legacy__truncation_is_told_at_the_end),
        cmocka_unit_test(test_torch_legacy__keys_must_be_the_objects),
        cmocka_unit_test(test_torch_legacy__other_ids_are_refused),
        cmocka_unit_test(test_torch_legacy__headers_are_checked),
        cmocka_unit_test(test_torch_legacy__arguments_are_stepped_over),
        cmocka_unit_test(test_torch_legacy__pickles_without_an_end_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
