/* Pickles that are broken or hostile: each fails with its code, byte and message, or is harmless.
 */
#include "pickle_tools.h"

struct failure {
    const char *bytes;
    size_t count;
    enum gradcmp_status code;
    size_t at;
    const char *message;
};

#define FAILURE(bytes, code, at, message)                                                          \
    { BYTES(bytes), GRADCMP_ERROR_##code, at, "pickle: " message }

static void check_all(const struct failure *failures, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_fails(failures[i].bytes, failures[i].count, failures[i].code, failures[i].at,
                    failures[i].message);
    }
}

#define CHECK_ALL(failures) check_all((failures), sizeof(failures) / sizeof((failures)[0]))

static void test_pickle__without_stop_is_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("", CORRUPT, 0, "end of input: expected STOP after 0 bytes"),
        FAILURE("\x80\x02", CORRUPT, 2, "end of input: expected STOP after 2 bytes"),
        FAILURE("\x80\x04K\x01", CORRUPT, 4, "end of input: expected STOP after 4 bytes"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__protocol_over_5_is_unsupported(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("\x80\x06N.", UNSUPPORTED, 0, "PROTO: protocol 6; 0 to 5 are read"),
        FAILURE("\x80\xffN.", UNSUPPORTED, 0, "PROTO: protocol 255; 0 to 5 are read"),
        FAILURE("\x80", CORRUPT, 0,
                "PROTO: the argument runs past the end of the input at byte 5001"),
    };
    CHECK_ALL(failures);
}

#define NO_VALUE "expected a value on the stack, found none"

static void test_pickle__stack_underflow_is_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE(".", CORRUPT, 0, "STOP: expected one value on the stack, found 0 and 0 marks"),
        FAILURE("0.", CORRUPT, 0, "POP: " NO_VALUE),
        FAILURE("2.", CORRUPT, 0, "DUP: " NO_VALUE),
        FAILURE("\x85.", CORRUPT, 0, "TUPLE1: " NO_VALUE),
        FAILURE("N\x86.", CORRUPT, 1, "TUPLE2: " NO_VALUE),
        FAILURE("NN\x87.", CORRUPT, 2, "TUPLE3: " NO_VALUE),
        FAILURE("a.", CORRUPT, 0, "APPEND: " NO_VALUE),
        FAILURE("Na.", CORRUPT, 1, "APPEND: " NO_VALUE),
        FAILURE("NNs.", CORRUPT, 2, "SETITEM: " NO_VALUE),
        FAILURE("(e.", CORRUPT, 1, "APPENDS: " NO_VALUE),
        FAILURE("(u.", CORRUPT, 1, "SETITEMS: " NO_VALUE),
        FAILURE("(\x90.", CORRUPT, 1, "ADDITEMS: " NO_VALUE),
        FAILURE("Nb.", CORRUPT, 1, "BUILD: " NO_VALUE),
        FAILURE(")R.", CORRUPT, 1, "REDUCE: " NO_VALUE),
        FAILURE(")\x81.", CORRUPT, 1, "NEWOBJ: " NO_VALUE),
        FAILURE(")}\x92.", CORRUPT, 2, "NEWOBJ_EX: " NO_VALUE),
        FAILURE("Va\n\x93.", CORRUPT, 3, "STACK_GLOBAL: " NO_VALUE),
        FAILURE("Q.", CORRUPT, 0, "BINPERSID: " NO_VALUE),
        FAILURE("p0\n.", CORRUPT, 0, "PUT: " NO_VALUE),
        FAILURE("q\x00.", CORRUPT, 0, "BINPUT: " NO_VALUE),
        FAILURE("r\x00\x00\x00\x00.", CORRUPT, 0, "LONG_BINPUT: " NO_VALUE),
        FAILURE("\x94.", CORRUPT, 0, "MEMOIZE: " NO_VALUE),
        FAILURE("\x98.", CORRUPT, 0, "READONLY_BUFFER: " NO_VALUE),
    };
    CHECK_ALL(failures);
}

#define FOUND_MARK "expected a value on the stack, found a mark"
#define NO_MARK    "expected a mark, found none"

static void test_pickle__popping_through_a_mark_is_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("N(\x85.", CORRUPT, 2, "TUPLE1: " FOUND_MARK),
        FAILURE("N(N\x86.", CORRUPT, 3, "TUPLE2: " FOUND_MARK),
        FAILURE("](Na.", CORRUPT, 3, "APPEND: " FOUND_MARK),
        FAILURE("}(NNs.", CORRUPT, 4, "SETITEM: " FOUND_MARK),
        FAILURE("N(2.", CORRUPT, 2, "DUP: " FOUND_MARK),
        FAILURE("N(\x94.", CORRUPT, 2, "MEMOIZE: " FOUND_MARK),
        FAILURE("cm\nC\n()R.", CORRUPT, 7, "REDUCE: " FOUND_MARK),
        FAILURE("cm\nC\n)R(Nb.", CORRUPT, 9, "BUILD: " FOUND_MARK),
    };
    CHECK_ALL(failures);
}

static void test_pickle__missing_mark_is_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("Nt.", CORRUPT, 1, "TUPLE: " NO_MARK),
        FAILURE("Nl.", CORRUPT, 1, "LIST: " NO_MARK),
        FAILURE("NNd.", CORRUPT, 2, "DICT: " NO_MARK),
        FAILURE("N\x91.", CORRUPT, 1, "FROZENSET: " NO_MARK),
        FAILURE("]Ne.", CORRUPT, 2, "APPENDS: " NO_MARK),
        FAILURE("}NNu.", CORRUPT, 3, "SETITEMS: " NO_MARK),
        FAILURE("\x8fN\x90.", CORRUPT, 2, "ADDITEMS: " NO_MARK),
        FAILURE("N1.", CORRUPT, 1, "POP_MARK: " NO_MARK),
        FAILURE("cm\nC\no.", CORRUPT, 5, "OBJ: " NO_MARK),
        FAILURE("im\nC\n.", CORRUPT, 0, "INST: " NO_MARK),
        FAILURE("(o.", CORRUPT, 1, "OBJ: expected a class above the mark"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__values_left_at_stop_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("NN.", CORRUPT, 2, "STOP: expected one value on the stack, found 2 and 0 marks"),
        FAILURE("N(.", CORRUPT, 2, "STOP: expected one value on the stack, found 1 and 1 marks"),
        FAILURE("(N.", CORRUPT, 2, "STOP: expected one value on the stack, found 1 and 1 marks"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__unset_memo_entries_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("h\x00.", CORRUPT, 0, "BINGET: memo entry 0 was never set; 0 entries were"),
        FAILURE("Nq\x03h\x04.", CORRUPT, 3, "BINGET: memo entry 4 was never set; 1 entries were"),
        FAILURE("j\xff\xff\xff\xff.", CORRUPT, 0,
                "LONG_BINGET: memo entry 4294967295 was never set; 0 entries were"),
        FAILURE("g12\n.", CORRUPT, 0, "GET: memo entry 12 was never set; 0 entries were"),
        FAILURE("g-1\n.", CORRUPT, 0, "GET: expected a decimal index below 2^64, found \"-1\""),
        FAILURE("g\n.", CORRUPT, 0, "GET: expected a decimal index below 2^64, found \"\""),
        FAILURE("Np0x1\n.", CORRUPT, 1, "PUT: expected a decimal index below 2^64, found \"0x1\""),
        FAILURE("Np1000000000000000000000000000000\n.", CORRUPT, 1,
                "PUT: expected a decimal index below 2^64, found \"100000000000000000000000\""),
        FAILURE("Np18446744073709551616\n.", CORRUPT, 1,
                "PUT: expected a decimal index below 2^64, found \"18446744073709551616\""),
    };
    CHECK_ALL(failures);
    check_shows(BYTES("Np18446744073709551615\n0g18446744073709551615\n."), "None");
}

/* The arena's limit is what such a memo may cost. */
static void test_pickle__far_memo_indices_cost_one_entry(void **state) {
    (void)state;
    static const char bytes[] =
        "(K\x07r\xff\xff\xff\x7fK\x08r\x00\x00\x00\x08K\x09r\x10\x27\x00\x00"
        "K\x0ar\x00\x00\x00\x08"
        "j\xff\xff\xff\x7fj\x00\x00\x00\x08j\x10\x27\x00\x00t.";
    check_shows(BYTES(bytes), "(7,8,9,10,7,10,9)");
    struct gcmp_arena arena = {.limit_bytes = 4096};
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, sizeof bytes - 1, 0);
    struct gcmp_node *root;
    assert_int_equal(gcmp_pickle_load(&cursor, &arena, "f", &root, NULL), GRADCMP_OK);
    gcmp_arena_free(&arena);
}

static void test_pickle__bad_lengths_are_corrupt(void **state) {
    (void)state;
#define PAST(at) "the argument runs past the end of the input at byte " at
    static const struct failure failures[] = {
        FAILURE("\x8b\xff\xff\xff\xff.", CORRUPT, 0,
                "LONG4: expected a length of 0 or more, found -1"),
        FAILURE("\x8b\xff\xff\xff\x7f.", CORRUPT, 0, "LONG4: " PAST("5006")),
        FAILURE("\x8a\xff.", CORRUPT, 0, "LONG1: " PAST("5003")),
        FAILURE("T\xff\xff\xff\xff.", CORRUPT, 0,
                "BINSTRING: expected a length of 0 or more, found -1"),
        FAILURE("T\x05\x00\x00\x00"
                "abcd",
                CORRUPT, 0, "BINSTRING: " PAST("5009")),
        FAILURE("X\xff\xff\xff\xff.", CORRUPT, 0, "BINUNICODE: " PAST("5006")),
        FAILURE("B\xff\xff\xff\xff.", CORRUPT, 0, "BINBYTES: " PAST("5006")),
        FAILURE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", CORRUPT, 0, "BINUNICODE8: " PAST("5010")),
        FAILURE("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", CORRUPT, 0, "BINUNICODE8: " PAST("5010")),
        FAILURE("\x8e\xf7\xff\xff\xff\xff\xff\xff\xff.", CORRUPT, 0, "BINBYTES8: " PAST("5010")),
        FAILURE("\x8e\x00\x00\x00\x00\x00\x00\x00\x80.", CORRUPT, 0, "BINBYTES8: " PAST("5010")),
        FAILURE("\x96\xff\xff\xff\xff\xff\xff\xff\xff.", CORRUPT, 0, "BYTEARRAY8: " PAST("5010")),
        FAILURE("cos\nsystem", CORRUPT, 0, "GLOBAL: " PAST("5010")),
    };
    CHECK_ALL(failures);
}

static void test_pickle__malformed_scalars_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("I\n.", CORRUPT, 0, "INT: expected a decimal integer"),
        FAILURE("I-\n.", CORRUPT, 0, "INT: expected a decimal integer"),
        FAILURE("I1 \n.", CORRUPT, 0, "INT: expected a decimal integer"),
        FAILURE("I0x10\n.", CORRUPT, 0, "INT: expected a decimal integer"),
        FAILURE("LL\n.", CORRUPT, 0, "LONG: expected a decimal integer"),
        FAILURE("L1LL\n.", CORRUPT, 0, "LONG: expected a decimal integer"),
        FAILURE("F\n.", CORRUPT, 0, "FLOAT: expected a decimal number"),
        FAILURE("F1.5.5\n.", CORRUPT, 0, "FLOAT: expected a decimal number"),
        FAILURE("F1.00000000000000000000000000000000000000000000000000000000000000\n.", CORRUPT, 0,
                "FLOAT: expected a decimal number"), /* 64 characters, one more than is read */
        FAILURE("F0x1p3\n.", CORRUPT, 0, "FLOAT: expected a decimal number"),
        FAILURE("F 1\n.", CORRUPT, 0, "FLOAT: expected a decimal number"),
        FAILURE("F1\x00\n.", CORRUPT, 0, "FLOAT: expected a decimal number"),
        FAILURE("Sabc\n.", CORRUPT, 0, "STRING: expected a quoted string"),
        FAILURE("S'\n.", CORRUPT, 0, "STRING: expected a quoted string"),
        FAILURE("S'abc\"\n.", CORRUPT, 0, "STRING: expected a quoted string"),
        FAILURE("S'\\'\n.", CORRUPT, 0, "STRING: a string with a broken escape"),
        FAILURE("S'\\x4'\n.", CORRUPT, 0, "STRING: a string with a broken escape"),
        FAILURE("V\\u12\n.", CORRUPT, 0, "UNICODE: a text with a broken escape"),
        FAILURE("V\\U00110000\n.", CORRUPT, 0, "UNICODE: a text with a broken escape"),
        FAILURE("P\xe9\n.", CORRUPT, 0, "PERSID: expected an id in ASCII"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__texts_that_are_not_utf8_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("\x8c\x01\x80.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x02\xc0\x80.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x02\xc1\xbf.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x01\xc3.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x03\xe0\x9f\xbf.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x03\xe2\x82z.", CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x04\xf0\x8f\xbf\xbf.", CORRUPT, 0,
                "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x04\xf4\x90\x80\x80.", CORRUPT, 0,
                "SHORT_BINUNICODE: a text that is not UTF-8"),
        FAILURE("\x8c\x0a"
                "abcdefgh\xff!.",
                CORRUPT, 0, "SHORT_BINUNICODE: a text that is not UTF-8"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__frames_hold_whole_opcodes(void **state) {
    (void)state;
    static const struct failure failures[] = {
        /* The argument of BININT2 lies half in the frame. */
        FAILURE("\x95\x02\x00\x00\x00\x00\x00\x00\x00M\x01\x02.", CORRUPT, 9,
                "BININT2: the argument runs past the end of the frame at byte 5011"),
        FAILURE("\x95\x03\x00\x00\x00\x00\x00\x00\x00"
                "cos\nx\n.",
                CORRUPT, 9, "GLOBAL: the argument runs past the end of the frame at byte 5012"),
        FAILURE("\x95\x0b\x00\x00\x00\x00\x00\x00\x00"
                "\x95\x01\x00\x00\x00\x00\x00\x00\x00N.",
                CORRUPT, 9, "FRAME: a frame inside a frame"),
        FAILURE("\x95\x03\x00\x00\x00\x00\x00\x00\x00N.", CORRUPT, 0,
                "FRAME: expected a frame of at most 2 bytes, found 3"),
        FAILURE("\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", CORRUPT, 0,
                "FRAME: expected a frame of at most 2 bytes, found 18446744073709551615"),
        FAILURE("\x95\x00\x00\x00\x00\x00\x00\x00\x80N.", CORRUPT, 0,
                "FRAME: expected a frame of at most 2 bytes, found 9223372036854775808"),
        FAILURE("\x95\x04\x00\x00\x00\x00\x00\x00\x00N.N.", CORRUPT, 10,
                "STOP: expected the end of the frame, found 2 more bytes in it"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__what_is_not_in_the_file_is_unsupported(void **state) {
    (void)state;
#define ABSENT(what) "its value is not in the file: it needs " what " of the program that wrote it"
    static const struct failure failures[] = {
        FAILURE("\x82\x07.", UNSUPPORTED, 0, "EXT1: " ABSENT("the extension registry")),
        FAILURE("\x83\x07\x00.", UNSUPPORTED, 0, "EXT2: " ABSENT("the extension registry")),
        FAILURE("\x84\x07\x00\x00\x00.", UNSUPPORTED, 0, "EXT4: " ABSENT("the extension registry")),
        FAILURE("\x97.", UNSUPPORTED, 0, "NEXT_BUFFER: " ABSENT("a buffer")),
        FAILURE("N\x98.", CORRUPT, 1, "READONLY_BUFFER: expected bytes on the stack, found None"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__wrong_targets_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("}Na.", CORRUPT, 2, "APPEND: expected a list to add to, found a dict"),
        FAILURE(")(Ne.", CORRUPT, 3, "APPENDS: expected a list to add to, found a tuple"),
        FAILURE("]NNs.", CORRUPT, 3, "SETITEM: expected a dict to add to, found a list"),
        FAILURE("cm\nC\n(NNu.", CORRUPT, 8, "SETITEMS: expected a dict to add to, found a global"),
        FAILURE("NQNNs.", CORRUPT, 4, "SETITEM: expected a dict to add to, found a persistent id"),
        FAILURE("](N\x90.", CORRUPT, 3, "ADDITEMS: expected a set to add to, found a list"),
        FAILURE("cm\nC\n)R(N\x90.", CORRUPT, 9,
                "ADDITEMS: expected a set to add to, found an object"),
        FAILURE("cm\nC\n)RNaNNs.", CORRUPT, 11, "SETITEM: expected a dict to add to, found a list"),
        FAILURE("ctorch\nSize\n)RNa.", CORRUPT, 15,
                "APPEND: expected a list to add to, found an object"),
        FAILURE("ctorch\nSize\n)R}b.", CORRUPT, 15,
                "BUILD: expected an object to give a state to, found a torch.Size"),
        FAILURE("}}b.", CORRUPT, 2, "BUILD: expected an object to give a state to, found a dict"),
        FAILURE("cm\nC\n}b.", CORRUPT, 6,
                "BUILD: expected an object to give a state to, found a global"),
        FAILURE("cm\nC\nNR.", CORRUPT, 6, "REDUCE: expected a tuple of arguments, found None"),
        FAILURE("cm\nC\n]\x81.", CORRUPT, 6, "NEWOBJ: expected a tuple of arguments, found a list"),
        FAILURE("K\x01)R.", CORRUPT, 3, "REDUCE: expected something to call, found an integer"),
        FAILURE("(Vabc\no.", CORRUPT, 6, "OBJ: expected something to call, found a text"),
        FAILURE("cm\nC\n)N\x92.", CORRUPT, 7,
                "NEWOBJ_EX: expected a dict of keyword arguments, found None"),
        FAILURE("cm\nC\nN}\x92.", CORRUPT, 7,
                "NEWOBJ_EX: expected a tuple of arguments, found None"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__bad_dict_items_are_corrupt(void **state) {
    (void)state;
    static const struct failure failures[] = {
        FAILURE("}(NNNu.", CORRUPT, 5, "SETITEMS: expected pairs of key and value, found 3 items"),
        FAILURE("(Nd.", CORRUPT, 2, "DICT: expected pairs of key and value, found 1 items"),
        FAILURE("}]Ns.", CORRUPT, 3, "SETITEM: a list as a key of a dict"),
        FAILURE("(}Nd.", CORRUPT, 3, "DICT: a dict as a key of a dict"),
    };
    CHECK_ALL(failures);
    check_shows(BYTES("}(K\x01\x91Ns."), "{<1>:None}"); /* a frozenset is a key */
}

static void test_pickle__bad_global_names_are_corrupt(void **state) {
    (void)state;
#define NAMES "expected a module and a name without spaces"
    static const struct failure failures[] = {
        FAILURE("c\n\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("cos\n\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("ca b\nc\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("ca\nb\x00\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("ca\nb\xff\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("ca\nb\x7f\n.", CORRUPT, 0, "GLOBAL: " NAMES),
        FAILURE("Va\nVb c\n\x93.", CORRUPT, 8, "STACK_GLOBAL: " NAMES),
        FAILURE("U\x01"
                "aVb\n\x93.",
                CORRUPT, 6,
                "STACK_GLOBAL: expected two texts on the stack, found bytes and a text"),
        FAILURE("Va\nN\x93.", CORRUPT, 4,
                "STACK_GLOBAL: expected two texts on the stack, found a text and None"),
    };
    CHECK_ALL(failures);
}

static void test_pickle__self_references_are_harmless(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
    } pickles[] = {
        {BYTES("]q\x00h\x00"
               "a.")},
        {BYTES("}q\x00X\x01\x00\x00\x00xh\x00s.")},
        {BYTES("]q\x00h\x00\x85q\x01"
               "ah\x01"
               "0.")},
        {BYTES("ccollections\nOrderedDict\n]q\x00h\x00h\x00\x86"
               "a\x85Rq\x01h\x01"
               "b.")},
        {BYTES("cm\nC\n)\x81q\x00h\x00"
               "bX\x01\x00\x00\x00xh\x00s.")},
    };
    for (size_t i = 0; i < sizeof pickles / sizeof pickles[0]; i++) {
        struct loaded loaded = load(pickles[i].bytes, pickles[i].count);
        assert_int_equal(loaded.status, GRADCMP_OK);
        const struct gcmp_node *key, *value;
        gcmp_node_pair(loaded.root, 0, &key, &value);
        gcmp_node_get(loaded.root, "nothing");
        gcmp_node_item(loaded.root, 0);
        gcmp_node_count(loaded.root);
        uint64_t sizes[4];
        unsigned count;
        assert_false(gcmp_node_sizes(loaded.root, sizes, 4, &count));
        assert_false(gcmp_node_is_bytes(loaded.root));
        struct gcmp_text text = GCMP_TEXT_INIT;
        show_into(&text, loaded.root, 6);
        assert_text_contains(text.bytes, "...");
        gcmp_text_free(&text);
        unload(&loaded);
    }
}

/* Bytes that a test repeats, behind a prefix and before a suffix. */
static struct loaded load_repeated(const char *prefix, const char *unit, size_t unit_bytes,
                                   size_t times, const char *suffix) {
    size_t head = strlen(prefix), tail = strlen(suffix);
    char *bytes = malloc(head + unit_bytes * times + tail);
    memcpy(bytes, prefix, head);
    for (size_t i = 0; i < times; i++) {
        memcpy(bytes + head + i * unit_bytes, unit, unit_bytes);
    }
    memcpy(bytes + head + unit_bytes * times, suffix, tail);
    struct loaded loaded = load(bytes, head + unit_bytes * times + tail);
    free(bytes);
    return loaded;
}

/* Nesting of 300,000 would end a recursive interpreter, or a recursive release. */
static void test_pickle__deep_nesting_costs_no_stack(void **state) {
    (void)state;
    struct loaded tuples = load_repeated("N", BYTES("\x85"), 300000, ".");
    assert_int_equal(tuples.status, GRADCMP_OK);
    size_t depth = 0;
    for (const struct gcmp_node *at = tuples.root; gcmp_node_item(at, 0) != NULL; depth++) {
        at = gcmp_node_item(at, 0);
    }
    assert_int_equal(depth, 300000);
    unload(&tuples);
    struct loaded marks = load_repeated("", BYTES("("), 300000, "t.");
    assert_int_equal(marks.status, GRADCMP_ERROR_CORRUPT);
    unload(&marks);
}

/* 40 levels of tuples that hold the level below twice: 2^40 leaves, 41 nodes. */
static void test_pickle__memo_and_dup_bombs_stay_small(void **state) {
    (void)state;
    struct loaded dup = load_repeated("N", BYTES("2\x86"), 40, ".");
    assert_int_equal(dup.status, GRADCMP_OK);
    assert_in_range(dup.arena.used_bytes, 1, 41 * 64);
    unload(&dup);
    struct loaded memo = load_repeated("Np0\n0(",
                                       BYTES("h\x00h\x00\x86q\x00"
                                             "0"),
                                       40, "g0\nt.");
    assert_int_equal(memo.status, GRADCMP_OK);
    assert_in_range(memo.arena.used_bytes, 1, 42 * 64);
    unload(&memo);
}

/* 10^n is 2^n times an odd number, so that n of its lowest bits are zero and no more: for every
 * number of digits about the steps in which they are taken. */
static void test_pickle__long_decimals_are_exact(void **state) {
    (void)state;
    for (size_t zeros = 19; zeros < 4300; zeros = zeros < 60 ? zeros + 1 : 3 * zeros) {
        struct loaded power = load_repeated("L1", BYTES("0"), zeros, "L\n.");
        assert_int_equal(power.status, GRADCMP_OK);
        assert_int_equal(power.root->kind, GCMP_NODE_BIGINT);
        const unsigned char *bytes = (const unsigned char *)power.root->as.text.bytes;
        size_t lowest = 0;
        while ((bytes[lowest / 8] >> lowest % 8 & 1) == 0) {
            lowest++;
        }
        assert_int_equal(lowest, zeros);
        unload(&power);
    }
    /* 2^128 - 1, and -2^128 */
    struct loaded ones =
        load_repeated("L340282366920938463463374607431768211455", "", 0, 0, "L\n.");
    assert_int_equal(ones.root->as.text.length_bytes, 17);
    for (size_t i = 0; i < 17; i++) {
        assert_int_equal((unsigned char)ones.root->as.text.bytes[i], i < 16 ? 0xff : 0);
    }
    unload(&ones);
    struct loaded least =
        load_repeated("L-340282366920938463463374607431768211456", "", 0, 0, "L\n.");
    assert_int_equal(least.root->as.text.length_bytes, 17);
    for (size_t i = 0; i < 17; i++) {
        assert_int_equal((unsigned char)least.root->as.text.bytes[i], i < 16 ? 0 : 0xff);
    }
    unload(&least);
}

static void test_pickle__long_decimal_is_limited(void **state) {
    (void)state;
    struct loaded most = load_repeated("L-", BYTES("9"), 4300, "L\n.");
    assert_int_equal(most.status, GRADCMP_OK);
    assert_int_equal(most.root->kind, GCMP_NODE_BIGINT);
    assert_int_equal(most.root->as.text.length_bytes, 1786); /* log2(10^4300) / 8 */
    unload(&most);
    struct loaded over = load_repeated("L", BYTES("9"), 4301, "L\n.");
    assert_int_equal(over.status, GRADCMP_ERROR_LIMIT);
    assert_int_equal(over.error.offset_bytes, PICKLE_BASE);
    assert_string_equal(over.error.message,
                        "pickle: LONG: an integer of 4301 digits, at most 4300 are read");
    unload(&over);
}

/* The length is refused before a byte is looked at, so there need not be as many. */
static void test_pickle__input_is_limited(void **state) {
    (void)state;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_cursor cursor = gcmp_cursor_make("N.", GCMP_PICKLE_MAX_BYTES + 1, PICKLE_BASE);
    struct gcmp_node *root;
    struct gradcmp_error error = {0};
    assert_int_equal(gcmp_pickle_load(&cursor, &arena, "f", &root, &error), GRADCMP_ERROR_LIMIT);
    assert_string_equal(error.message,
                        "pickle: start: 2147483648 bytes, at most 2147483647 are read");
    assert_int_equal(error.offset_bytes, PICKLE_BASE);
    gcmp_arena_free(&arena);
}

/* Whoever wants what is in the bytes interprets them himself, and counts how deep he is. */
static void test_pickle__pickles_inside_bytes_stay_bytes(void **state) {
    (void)state;
    check_shows(BYTES("C\x05"
                      "C\x03"
                      "C\x01N."),
                "b|C\\x03C\\x01N|");
    check_shows(BYTES("C\x04"
                      "\x80\x06N.."),
                "b|\\x80\\x06N.|");
}

/* Two texts from the memo make a global of 1,001 bytes for 6 bytes of input, which are never
 * freed: the budget ends it. */
static void test_pickle__globals_from_the_memo_meet_the_budget(void **state) {
    (void)state;
    char prefix[600] = "V";
    memset(prefix + 1, 'm', 500);
    strcat(prefix, "\np0\n");
    struct loaded loaded = load_repeated(prefix,
                                         BYTES("h\x00h\x00\x93"
                                               "0"),
                                         4000, ".");
    assert_int_equal(loaded.status, GRADCMP_ERROR_LIMIT);
    assert_text_contains(loaded.error.message,
                         "pickle: STACK_GLOBAL: needs more memory than 24506 bytes of input may");
    unload(&loaded);
}

/* Large inputs pay less for a byte than small ones: 256 KiB of the densest opcode are read, 4 MiB
 * are not. */
static void test_pickle__large_inputs_meet_a_lower_budget(void **state) {
    (void)state;
    struct loaded small = load_repeated("(", BYTES("]"), 1 << 18, "l.");
    assert_int_equal(small.status, GRADCMP_OK);
    unload(&small);
    struct loaded large = load_repeated("(", BYTES("]"), 4 << 20, "l.");
    assert_int_equal(large.status, GRADCMP_ERROR_LIMIT);
    assert_text_contains(large.error.message,
                         "pickle: EMPTY_LIST: needs more memory than 4194307 bytes of input may");
    unload(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pickle__without_stop_is_corrupt),
        cmocka_unit_test(test_pickle__protocol_over_5_is_unsupported),
        cmocka_unit_test(test_pickle__stack_underflow_is_corrupt),
        cmocka_unit_test(test_pickle__popping_through_a_mark_is_corrupt),
        cmocka_unit_test(test_pickle__missing_mark_is_corrupt),
        cmocka_unit_test(test_pickle__values_left_at_stop_are_corrupt),
        cmocka_unit_test(test_pickle__unset_memo_entries_are_corrupt),
        cmocka_unit_test(test_pickle__far_memo_indices_cost_one_entry),
        cmocka_unit_test(test_pickle__bad_lengths_are_corrupt),
        cmocka_unit_test(test_pickle__malformed_scalars_are_corrupt),
        cmocka_unit_test(test_pickle__texts_that_are_not_utf8_are_corrupt),
        cmocka_unit_test(test_pickle__frames_hold_whole_opcodes),
        cmocka_unit_test(test_pickle__what_is_not_in_the_file_is_unsupported),
        cmocka_unit_test(test_pickle__wrong_targets_are_corrupt),
        cmocka_unit_test(test_pickle__bad_dict_items_are_corrupt),
        cmocka_unit_test(test_pickle__bad_global_names_are_corrupt),
        cmocka_unit_test(test_pickle__self_references_are_harmless),
        cmocka_unit_test(test_pickle__deep_nesting_costs_no_stack),
        cmocka_unit_test(test_pickle__memo_and_dup_bombs_stay_small),
        cmocka_unit_test(test_pickle__long_decimals_are_exact),
        cmocka_unit_test(test_pickle__long_decimal_is_limited),
        cmocka_unit_test(test_pickle__input_is_limited),
        cmocka_unit_test(test_pickle__pickles_inside_bytes_stay_bytes),
        cmocka_unit_test(test_pickle__globals_from_the_memo_meet_the_budget),
        cmocka_unit_test(test_pickle__large_inputs_meet_a_lower_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
