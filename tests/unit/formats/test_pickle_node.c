/* Looking into nodes, dicts of any size, and what happens without memory. */
#include "pickle_tools.h"

static void test_node__null_and_other_kinds_are_not_there(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("N."));
    const struct gcmp_node *nodes[] = {NULL, loaded.root};
    for (size_t i = 0; i < 2; i++) {
        const struct gcmp_node *key, *value;
        int64_t integer;
        double number;
        uint64_t sizes[1];
        unsigned count;
        assert_false(gcmp_node_is_global(nodes[i], "m", "C"));
        assert_false(gcmp_node_is_call(nodes[i], "m", "C"));
        assert_null(gcmp_node_arg(nodes[i], 0));
        assert_null(gcmp_node_get(nodes[i], "a"));
        assert_int_equal(gcmp_node_count(nodes[i]), 0);
        assert_null(gcmp_node_item(nodes[i], 0));
        assert_false(gcmp_node_pair(nodes[i], 0, &key, &value));
        assert_null(gcmp_node_text(nodes[i]));
        assert_false(gcmp_node_int(nodes[i], &integer));
        assert_false(gcmp_node_number(nodes[i], &number));
        assert_false(gcmp_node_sizes(nodes[i], sizes, 1, &count));
        assert_false(gcmp_node_is_bytes(nodes[i]));
        assert_null(gcmp_node_global(nodes[i]));
    }
    assert_string_equal(gcmp_node_kind_name(NULL), "nothing");
    assert_string_equal(gcmp_node_kind_name(loaded.root), "None");
    unload(&loaded);
}

static void test_node__globals_match_whole_names_only(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("ctorch\nFloatStorage\n."));
    assert_true(gcmp_node_is_global(loaded.root, "torch", "FloatStorage"));
    assert_false(gcmp_node_is_global(loaded.root, "torch", "FloatStorag"));
    assert_false(gcmp_node_is_global(loaded.root, "torch", "FloatStorageX"));
    assert_false(gcmp_node_is_global(loaded.root, "torc", "hFloatStorage"));
    assert_false(gcmp_node_is_global(loaded.root, "torch F", "oatStorage"));
    assert_false(gcmp_node_is_call(loaded.root, "torch", "FloatStorage"));
    assert_string_equal(gcmp_node_global(loaded.root), "torch FloatStorage");
    unload(&loaded);
}

static void test_node__calls_know_their_class(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
    } same[] = {
        {BYTES("cm\nC\n)R.")},
        {BYTES("(im\nC\n.")},
        {BYTES("ccopy_reg\n_reconstructor\n(cm\nC\nc__builtin__\nobject\nNtR.")},
        {BYTES("ccopyreg\n__newobj__\ncm\nC\n\x85R.")},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct loaded loaded = load(same[i].bytes, same[i].count);
        assert_true(gcmp_node_is_call(loaded.root, "m", "C"));
        assert_false(gcmp_node_is_call(loaded.root, "m", "D"));
        assert_string_equal(gcmp_node_global(loaded.root), "m C");
        unload(&loaded);
    }
}

static int64_t get_int(const struct gcmp_node *node, const char *key) {
    int64_t value = -1;
    gcmp_node_int(gcmp_node_get(node, key), &value);
    return value;
}

static void test_node__get_looks_in_pairs_then_in_the_state(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("cm\nC\n)\x81}(Va\nK\x01Vb\nK\x02ub(Va\nK\x03U\x01"
                                      "cK\x04u."));
    assert_int_equal(get_int(loaded.root, "a"), 3);
    assert_int_equal(get_int(loaded.root, "b"), 2);
    assert_int_equal(get_int(loaded.root, "c"), 4); /* bytes: a name of Python 2 */
    assert_int_equal(get_int(loaded.root, "d"), -1);
    assert_int_equal(gcmp_node_count(loaded.root), 2);
    unload(&loaded);
}

static void test_node__get_looks_in_dict_and_slots(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("cm\nC\n)\x81}Va\nK\x01s}Vb\nK\x02s\x86"
                                      "b."));
    assert_int_equal(get_int(loaded.root, "a"), 1);
    assert_int_equal(get_int(loaded.root, "b"), 2);
    unload(&loaded);
    struct loaded slots = load(BYTES("cm\nC\n)\x81N}Vb\nK\x02s\x86"
                                     "b."));
    assert_int_equal(get_int(slots.root, "b"), 2);
    assert_int_equal(get_int(slots.root, "a"), -1);
    unload(&slots);
}

static void test_node__keys_with_nul_are_other_keys(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("}(\x8c\x03"
                                      "a\x00zK\x01\x8c\x01"
                                      "aK\x02u."));
    assert_int_equal(get_int(loaded.root, "a"), 2);
    const struct gcmp_node *key, *value;
    assert_true(gcmp_node_pair(loaded.root, 0, &key, &value));
    assert_null(gcmp_node_text(key)); /* could not be told from "a" */
    assert_int_equal(key->as.text.length_bytes, 3);
    assert_false(gcmp_node_pair(loaded.root, 2, &key, &value));
    unload(&loaded);
}

static void check_pair(const struct gcmp_node *node, size_t index, const char *name,
                       int64_t number) {
    const struct gcmp_node *key, *value;
    int64_t found;
    assert_true(gcmp_node_pair(node, index, &key, &value));
    assert_string_equal(gcmp_node_text(key), name);
    assert_true(gcmp_node_int(value, &found));
    assert_int_equal(found, number);
}

/* Protocols 0 and 1 of Python 2 wrote OrderedDict([["a", 1], ("b", 2)]); "c" was set on it. */
static void test_node__old_ordered_dicts_have_their_pairs_in_the_argument(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("ccollections\nOrderedDict\n](](Va\nK\x01"
                                      "eVb\nK\x02\x86"
                                      "e\x85R"
                                      "Vc\nK\x03s."));
    assert_int_equal(gcmp_node_count(loaded.root), 3);
    check_pair(loaded.root, 0, "a", 1);
    check_pair(loaded.root, 1, "b", 2);
    check_pair(loaded.root, 2, "c", 3);
    assert_int_equal(get_int(loaded.root, "b"), 2);
    assert_int_equal(get_int(loaded.root, "c"), 3);
    const struct gcmp_node *key, *value;
    assert_false(gcmp_node_pair(loaded.root, 3, &key, &value));
    unload(&loaded);
    struct loaded counter = load(BYTES("ccollections\nCounter\n}Va\nK\x05s\x85R."));
    assert_int_equal(get_int(counter.root, "a"), 5);
    unload(&counter);
    struct loaded no_pairs = load(BYTES("ccollections\nOrderedDict\n]K\x05"
                                        "a\x85R."));
    assert_int_equal(gcmp_node_count(no_pairs.root), 0);
    unload(&no_pairs);
    struct loaded tuple = load(BYTES("ccollections\nOrderedDict\nVa\nK\x05\x86\x85\x85R."));
    assert_int_equal(gcmp_node_count(tuple.root), 0);
    unload(&tuple);
    /* The argument of other classes is not theirs to show: defaultdict's is a factory. */
    struct loaded other = load(BYTES("cm\nC\n}Va\nK\x05s\x85R."));
    assert_int_equal(get_int(other.root, "a"), -1);
    assert_int_equal(gcmp_node_count(other.root), 0);
    unload(&other);
}

static void test_node__items_of_lists_and_of_appended_objects(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("ccollections\ndeque\n)R(K\x05K\x06"
                                      "e."));
    assert_int_equal(gcmp_node_count(loaded.root), 2);
    assert_int_equal(gcmp_node_item(loaded.root, 1)->as.integer, 6);
    assert_null(gcmp_node_item(loaded.root, 2));
    unload(&loaded);
    struct loaded dict = load(BYTES("}K\x05K\x06s."));
    assert_int_equal(gcmp_node_count(dict.root), 1);
    assert_null(gcmp_node_item(dict.root, 0));
    unload(&dict);
}

static void test_node__numbers(void **state) {
    (void)state;
    int64_t integer;
    double number;
    struct loaded loaded = load(
        BYTES("(\x88J\xfe\xff\xff\xffG\x3f\xe0\x00\x00\x00\x00\x00\x00L99999999999999999999L\nt."));
    assert_true(gcmp_node_int(gcmp_node_item(loaded.root, 0), &integer));
    assert_int_equal(integer, 1);
    assert_false(gcmp_node_number(gcmp_node_item(loaded.root, 0), &number));
    assert_true(gcmp_node_int(gcmp_node_item(loaded.root, 1), &integer));
    assert_int_equal(integer, -2);
    assert_true(gcmp_node_number(gcmp_node_item(loaded.root, 1), &number));
    assert_true(number == -2.0);
    assert_true(gcmp_node_number(gcmp_node_item(loaded.root, 2), &number));
    assert_true(number == 0.5);
    assert_false(gcmp_node_int(gcmp_node_item(loaded.root, 2), &integer));
    assert_false(gcmp_node_int(gcmp_node_item(loaded.root, 3), &integer));
    assert_false(gcmp_node_number(gcmp_node_item(loaded.root, 3), &number));
    unload(&loaded);
}

static bool load_sizes(const char *bytes, size_t length, uint64_t *sizes, unsigned *count) {
    struct loaded loaded = load(bytes, length);
    assert_int_equal(loaded.status, GRADCMP_OK);
    bool ok = gcmp_node_sizes(loaded.root, sizes, 3, count);
    unload(&loaded);
    return ok;
}

static void test_node__sizes(void **state) {
    (void)state;
    uint64_t sizes[3];
    unsigned count = 9;
    assert_true(load_sizes(BYTES("(K\x02K\x00M\x00\x01t."), sizes, &count));
    assert_int_equal(count, 3);
    assert_int_equal(sizes[0], 2);
    assert_int_equal(sizes[1], 0);
    assert_int_equal(sizes[2], 256);
    assert_true(load_sizes(BYTES("](K\x07"
                                 "e."),
                           sizes, &count));
    assert_int_equal(count, 1);
    assert_true(load_sizes(BYTES("ctorch\nSize\nK\x05K\x06\x86\x85R."), sizes, &count));
    assert_int_equal(count, 2);
    assert_int_equal(sizes[1], 6);
    assert_true(load_sizes(BYTES("ctorch\nSize\n)\x85R."), sizes, &count));
    assert_int_equal(count, 0);
    assert_true(load_sizes(BYTES("ctorch\nSize\n)R."), sizes, &count));
    assert_int_equal(count, 0);
    assert_true(load_sizes(BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85."), sizes, &count));
    assert_int_equal(sizes[0], INT64_MAX);
    assert_false(load_sizes(BYTES("(K\x01K\x01K\x01K\x01t."), sizes, &count)); /* over the limit */
    assert_false(load_sizes(BYTES("J\xff\xff\xff\xff\x85."), sizes, &count));
    assert_false(load_sizes(BYTES("\x88\x85."), sizes, &count));
    assert_false(load_sizes(BYTES("N\x85."), sizes, &count));
    assert_false(load_sizes(BYTES("G\x3f\xf0\x00\x00\x00\x00\x00\x00\x85."), sizes, &count));
    assert_false(
        load_sizes(BYTES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01\x85."), sizes, &count));
    assert_false(load_sizes(BYTES("}."), sizes, &count));
    assert_false(load_sizes(BYTES("cm\nSize\nK\x05\x85\x85R."), sizes, &count));
    assert_false(load_sizes(BYTES("ctorch\nSize\nctorch\nSize\n)R\x85R."), sizes, &count));
}

struct bytes_example {
    const char *bytes;
    size_t count;
    const char *expected;
    size_t expected_bytes;
};

static void test_node__bytes_in_every_spelling(void **state) {
    (void)state;
    static const struct bytes_example examples[] = {
        {BYTES("C\x02\xff\x00."), BYTES("\xff\x00")},
        {BYTES("U\x02hi."), BYTES("hi")},
        {BYTES("c_codecs\nencode\nX\x05\x00\x00\x00"
               "a\xc3\xbf\xc2\x80X\x06\x00\x00\x00latin1\x86R."),
         BYTES("a\xff\x80")},
        {BYTES("c_codecs\nencode\nV\nVlatin1\n\x86R."), BYTES("")},
        {BYTES("c__builtin__\nbytes\n)R."), BYTES("")},
        {BYTES("cbuiltins\nbytearray\n)R."), BYTES("")},
        {BYTES("cbuiltins\nbytearray\nC\x01x\x85R."), BYTES("x")},
        {BYTES("c__builtin__\nbytearray\nV\xe9\nVlatin-1\n\x86R."), BYTES("\xe9")},
        {BYTES("c__builtin__\nbytearray\nc_codecs\nencode\nV\xe9\nVlatin1\n\x86R\x85R."),
         BYTES("\xe9")},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct loaded loaded = load(examples[i].bytes, examples[i].count);
        const unsigned char *bytes;
        size_t count;
        assert_true(gcmp_node_is_bytes(loaded.root));
        assert_int_equal(gcmp_node_bytes(loaded.root, &loaded.arena, &bytes, &count, NULL),
                         GRADCMP_OK);
        assert_int_equal(count, examples[i].expected_bytes);
        assert_memory_equal(bytes, examples[i].expected, count);
        unload(&loaded);
    }
}

static void test_node__other_nodes_are_not_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *message;
    } examples[] = {
        {BYTES("Va\n."), "pickle: expected bytes, found a text"},
        {BYTES("c_codecs\nencode\nVa\nVutf8\n\x86R."), "pickle: expected bytes, found an object"},
        {BYTES("c_codecs\nencode\n)R."), "pickle: expected bytes, found an object"},
        {BYTES("cos\nsystem\nVa\nVlatin1\n\x86R."), "pickle: expected bytes, found an object"},
        {BYTES("cbuiltins\nbytes\nK\x05\x85R."), "pickle: expected bytes, found an object"},
        {BYTES("c_codecs\nencode\nV\\u0100\nVlatin1\n\x86R."),
         "pickle: bytes as a text with a character over 255"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct loaded loaded = load(examples[i].bytes, examples[i].count);
        const unsigned char *bytes;
        size_t count;
        assert_int_equal(gcmp_node_bytes(loaded.root, &loaded.arena, &bytes, &count, &loaded.error),
                         GRADCMP_ERROR_CORRUPT);
        assert_string_equal(loaded.error.message, examples[i].message);
        unload(&loaded);
    }
}

/* Write {key 0: ..., key 1: ...} with every key set twice, the second time to its number. */
static size_t write_dict(char *to, unsigned keys) {
    size_t used = 0;
    to[used++] = '}';
    for (unsigned i = 0; i < 2 * keys; i++) {
        unsigned key = i % keys, value = i < keys ? 65535 : key;
        used += (size_t)sprintf(to + used, key % 3 == 0 ? "I%u\n" : "Vkey %u\n", key);
        to[used++] = 'M';
        to[used++] = (char)(value & 0xff);
        to[used++] = (char)(value >> 8);
        to[used++] = 's';
    }
    to[used++] = '.';
    return used;
}

/* Around the size where the index comes in, and well beyond several doublings of it. */
static void test_pickle__dicts_of_any_size_hold_each_key_once(void **state) {
    (void)state;
    char *bytes = malloc(2 * 20000 * 20);
    for (unsigned keys = 1; keys < 20000; keys = keys < 40 ? keys + 1 : keys * 5 / 2) {
        struct loaded loaded = load(bytes, write_dict(bytes, keys));
        assert_int_equal(loaded.status, GRADCMP_OK);
        assert_int_equal(gcmp_node_count(loaded.root), keys);
        for (unsigned i = 0; i < keys; i++) {
            const struct gcmp_node *key, *value;
            char name[24];
            assert_true(gcmp_node_pair(loaded.root, i, &key, &value));
            snprintf(name, sizeof name, "key %u", i);
            if (i % 3 == 0) {
                assert_int_equal(key->as.integer, i);
            } else {
                assert_string_equal(gcmp_node_text(key), name);
            }
            assert_int_equal(value->as.integer, i);
        }
        unload(&loaded);
    }
    free(bytes);
}

/* {(0,): None, "k0": None, (1,): None, "k1": None, ...} and the texts once more with a value: keys
 * that are not compared lie between those that the index holds. */
static void test_pickle__dicts_of_mixed_keys_match_texts_only(void **state) {
    (void)state;
    enum { TEXTS = 30 };
    char bytes[TEXTS * 60 + 2] = "}";
    size_t used = 1;
    for (int i = 0; i < TEXTS; i++) {
        used += (size_t)sprintf(bytes + used, "I%d\n\x85NsVk%d\nNs", i, i);
    }
    for (int i = 0; i < TEXTS; i++) {
        used += (size_t)sprintf(bytes + used, "I%d\n\x85NsVk%d\nI%d\ns", i, i, i);
    }
    bytes[used++] = '.';
    struct loaded loaded = load(bytes, used);
    assert_int_equal(loaded.status, GRADCMP_OK);
    assert_int_equal(gcmp_node_count(loaded.root), 3 * TEXTS);
    for (int i = 0; i < TEXTS; i++) {
        const struct gcmp_node *key, *value;
        assert_true(gcmp_node_pair(loaded.root, 2 * (size_t)i + 1, &key, &value));
        assert_int_equal(value->as.integer, i);
        assert_true(gcmp_node_pair(loaded.root, 2 * (size_t)i, &key, &value));
        assert_int_equal(key->kind, GCMP_NODE_TUPLE);
        assert_int_equal(value->kind, GCMP_NODE_NONE);
    }
    unload(&loaded);
}

/* One key of 60,000 bytes, set 3,000 times from the memo: hashing it each time is work out of
 * proportion to the file. */
static void test_pickle__long_keys_from_the_memo_meet_the_work_budget(void **state) {
    (void)state;
    enum { KEY_BYTES = 60000, SETS = 3000 };
    char *bytes = calloc(1, KEY_BYTES + 6 * SETS + 400);
    size_t used = 0;
    bytes[used++] = 'V';
    memset(bytes + used, 'k', KEY_BYTES);
    used += KEY_BYTES;
    memcpy(bytes + used, "\np1\n0}", 6);
    used += 6;
    for (int i = 0; i < 20; i++) { /* enough keys for an index */
        used += (size_t)sprintf(bytes + used, "I%d\nNs", i);
    }
    size_t before = used;
    for (int i = 0; i < SETS; i++) {
        memcpy(bytes + used, "g1\nNs", 5);
        used += 5;
    }
    bytes[used++] = '.';
    struct loaded loaded = load(bytes, used);
    assert_int_equal(loaded.status, GRADCMP_ERROR_LIMIT);
    assert_in_range(loaded.error.offset_bytes, PICKLE_BASE + before, PICKLE_BASE + used);
    assert_text_contains(loaded.error.message,
                         "pickle: SETITEM: needs more comparing of keys than 75");
    unload(&loaded);
    free(bytes);
}

static const char everything[] =
    "\x80\x02}q\x00(U\x01"
    "aK\x01Vb\n]q\x01(K\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00"
    "eVc\ncm\nC\n)\x81}Vx\nNsb"
    "Vd\nr\xff\xff\xff\x7f(K\x07I1234567890\nL99999999999999999999L\ntVe\nS'x\\n'\n"
    "Vf\n\x8f(K\x01\x90Vg\nPid\nVh\nC\x01xVi\n\x88Vj\n\x89Vk\nM\x00\x01Vl\nNVm\nNVn\nNVo\nNVp\n"
    "NVq\nNVr\nNVs\nNVt\nNu.";

/* Each allocation of the arena fails once: the status is MEMORY, and nothing is lost or read. */
static void test_pickle__every_failing_allocation_is_reported(void **state) {
    (void)state;
    enum gradcmp_status status = GRADCMP_ERROR_MEMORY;
    size_t failures = 0;
    for (size_t limit = 16; status != GRADCMP_OK; limit += 16) {
        struct gcmp_arena arena = {.limit_bytes = limit};
        struct gcmp_cursor cursor = gcmp_cursor_make(everything, sizeof everything - 1, 0);
        struct gcmp_node *root;
        struct gradcmp_error error = {0};
        status = gcmp_pickle_load(&cursor, &arena, "f", &root, &error);
        if (status != GRADCMP_OK) {
            assert_int_equal(status, GRADCMP_ERROR_MEMORY);
            assert_text_contains(error.message, "out of memory");
            assert_null(root);
            failures++;
        }
        gcmp_arena_free(&arena);
        assert_in_range(limit, 0, 1 << 20);
    }
    assert_in_range(failures, 40, 400);
}

#define BYTES_64 "................................................................"
#define HALF_KIB BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64
#define REST                                                                                       \
    "B\x00\x10\x00\x00" HALF_KIB HALF_KIB HALF_KIB HALF_KIB HALF_KIB HALF_KIB HALF_KIB HALF_KIB    \
    "0" /* 4096 bytes, popped again */

static void test_pickle__what_never_changes_and_repeats_is_one_node(void **state) {
    (void)state;
    /* [(300, 400), (300, 400), Size((300, 400)), Size((300, 400)), (300, 401), [300], [300]] */
    struct loaded loaded =
        load(BYTES("]ctorch\nSize\nq\x00\x30(M\x2c\x01M\x90\x01\x86M\x2c\x01M\x90\x01"
                   "\x86h\x00M\x2c\x01M\x90\x01\x86\x85Rh\x00M\x2c\x01M\x90\x01\x86\x85R"
                   "M\x2c\x01M\x91\x01\x86]M\x2c\x01\x61]M\x2c\x01\x61\x65" REST "."));
    assert_int_equal(loaded.status, GRADCMP_OK);
    struct gcmp_node **items = loaded.root->as.list.items;
    assert_ptr_equal(items[0], items[1]);
    assert_ptr_equal(items[2], items[3]);
    assert_ptr_equal(items[2]->as.call.args->as.list.items[0], items[0]);
    assert_ptr_not_equal(items[4], items[0]);
    assert_ptr_not_equal(items[5], items[6]); /* lists can change */
    int64_t last;
    assert_true(gcmp_node_int(gcmp_node_item(items[4], 1), &last) && last == 401);
    unload(&loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node__null_and_other_kinds_are_not_there),
        cmocka_unit_test(test_node__globals_match_whole_names_only),
        cmocka_unit_test(test_node__calls_know_their_class),
        cmocka_unit_test(test_node__get_looks_in_pairs_then_in_the_state),
        cmocka_unit_test(test_node__get_looks_in_dict_and_slots),
        cmocka_unit_test(test_node__keys_with_nul_are_other_keys),
        cmocka_unit_test(test_node__old_ordered_dicts_have_their_pairs_in_the_argument),
        cmocka_unit_test(test_node__items_of_lists_and_of_appended_objects),
        cmocka_unit_test(test_node__numbers),
        cmocka_unit_test(test_node__sizes),
        cmocka_unit_test(test_node__bytes_in_every_spelling),
        cmocka_unit_test(test_node__other_nodes_are_not_bytes),
        cmocka_unit_test(test_pickle__dicts_of_any_size_hold_each_key_once),
        cmocka_unit_test(test_pickle__dicts_of_mixed_keys_match_texts_only),
        cmocka_unit_test(test_pickle__long_keys_from_the_memo_meet_the_work_budget),
        cmocka_unit_test(test_pickle__every_failing_allocation_is_reported),
        cmocka_unit_test(test_pickle__what_never_changes_and_repeats_is_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
