/* Every opcode of the pickle interpreter, by what it makes. */
#include "pickle_tools.h"

#include <math.h>

struct example {
    const char *bytes;
    size_t count;
    const char *shows;
};

#define EXAMPLE(bytes, shows)                                                                      \
    { BYTES(bytes), shows }

static const struct example examples[] = {
    EXAMPLE("N.", "None"),
    EXAMPLE("\x80\x02\x88.", "True"),
    EXAMPLE("\x89.", "False"),
    /* Integers. */
    EXAMPLE("I01\n.", "True"),
    EXAMPLE("I00\n.", "False"),
    EXAMPLE("I1\n.", "1"),
    EXAMPLE("I-12\n.", "-12"),
    EXAMPLE("I001\n.", "1"),
    EXAMPLE("I9223372036854775807\n.", "9223372036854775807"),
    EXAMPLE("I-9223372036854775808\n.", "-9223372036854775808"),
    EXAMPLE("L9223372036854775808L\n.", "big|\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\\x00|"),
    EXAMPLE("L-9223372036854775809L\n.", "big|\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x7f\\xff|"),
    EXAMPLE("L0L\n.", "0"),
    EXAMPLE("L-0L\n.", "0"),
    EXAMPLE("L-000000000000000000000000000000L\n.", "0"),
    EXAMPLE("L+123456\n.", "123456"),
    EXAMPLE("J\xff\xff\xff\xff.", "-1"),
    EXAMPLE("J\x00\x00\x00\x80.", "-2147483648"),
    EXAMPLE("K\xff.", "255"),
    EXAMPLE("M\xff\xff.", "65535"),
    EXAMPLE("\x8a\x00.", "0"),
    EXAMPLE("\x8a\x01\x80.", "-128"),
    EXAMPLE("\x8a\x02\x80\x00.", "128"),
    EXAMPLE("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"),
    EXAMPLE("\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff.", "-1"),
    EXAMPLE("\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", "big|l\\xfc\\x9cF\\xf9 j\\xa8P\\x19|"),
    EXAMPLE("\x8b\x03\x00\x00\x00\x00\x00\x01.", "65536"),
    /* Floats. */
    EXAMPLE("F-1.5e10\n.", "-15000000000f"),
    EXAMPLE("F1.0000000000000000000000000000000000000000000000000000000000000\n.", "1f"),
    EXAMPLE("Fnan\n.", "nanf"),
    EXAMPLE("F-inf\n.", "-inff"),
    EXAMPLE("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5f"),
    EXAMPLE("G\x80\x00\x00\x00\x00\x00\x00\x00.", "-0f"),
    /* Bytes, and the strings of Python 2. */
    EXAMPLE("S'a\\n\\x41\\101\\\\\\'\\q\"\\07'\n.", "b|a\\x0aAA\\\'\\q\"\\x07|"),
    EXAMPLE("S\"it's\"\n.", "b|it's|"),
    EXAMPLE("S''\n.", "b||"),
    EXAMPLE("S'\\1234\\x41f'\n.", "b|S4Af|"), /* three octal digits, two hexadecimal ones */
    EXAMPLE("T\x03\x00\x00\x00"
            "a\x00\xff.",
            "b|a\\x00\\xff|"),
    EXAMPLE("U\x02hi.", "b|hi|"),
    EXAMPLE("C\x02\xff\x00.", "b|\\xff\\x00|"),
    EXAMPLE("B\x02\x00\x00\x00hi.", "b|hi|"),
    EXAMPLE("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b|hi|"),
    EXAMPLE("\x96\x02\x00\x00\x00\x00\x00\x00\x00hi.", "b|hi|"),
    EXAMPLE("C\x01x\x98.", "b|x|"),
    /* Texts. */
    EXAMPLE("Va\\u00e9\\U0001F600\\\\u0041\xe9\n.",
            "'a\\xc3\\xa9\\xf0\\x9f\\x98\\x80\\\\u0041\\xc3\\xa9'"),
    EXAMPLE("V\\ud800x\\\n.", "'\\xed\\xa0\\x80x\\'"),
    EXAMPLE("V\n.", "''"),
    EXAMPLE("V\\u00411\n.", "'A1'"),
    EXAMPLE("X\x03\x00\x00\x00"
            "a\x00z.",
            "'a\\x00z'"),
    EXAMPLE("\x8c\x04"
            "a\xed\xb0\x80.",
            "'a\\xed\\xb0\\x80'"),
    EXAMPLE("\x8d\x08\x00\x00\x00\x00\x00\x00\x00"
            "abcd\xf4\x8f\xbf\xbf.",
            "'abcd\\xf4\\x8f\\xbf\\xbf'"),
    /* Tuples, lists, dicts, sets. */
    EXAMPLE(").", "()"),
    EXAMPLE("K\x01\x85.", "(1)"),
    EXAMPLE("K\x01K\x02\x86.", "(1,2)"),
    EXAMPLE("K\x01K\x02K\x03\x87.", "(1,2,3)"),
    EXAMPLE("(K\x01K\x02K\x03K\x04t.", "(1,2,3,4)"),
    EXAMPLE("(t.", "()"),
    EXAMPLE("].", "[]"),
    EXAMPLE("]K\x01"
            "aK\x02"
            "a.",
            "[1,2]"),
    EXAMPLE("](K\x01K\x02"
            "e(e.",
            "[1,2]"),
    EXAMPLE("(K\x01Nl.", "[1,None]"),
    EXAMPLE("}.", "{}"),
    EXAMPLE("}U\x01"
            "aK\x01s.",
            "{b|a|:1}"),
    EXAMPLE("}(K\x01K\x02K\x03K\x04u.", "{1:2,3:4}"),
    EXAMPLE("(K\x01K\x02"
            "d.",
            "{1:2}"),
    EXAMPLE("(d.", "{}"),
    EXAMPLE("\x8f(K\x01K\x02\x90.", "<1,2>"),
    EXAMPLE("(K\x01K\x02\x91.", "<1,2>"),
    /* The stack and the memo. */
    EXAMPLE("K\x01K\x02"
            "0.",
            "1"),
    EXAMPLE("K\x01(0.", "1"),
    EXAMPLE("K\x01(K\x02K\x03"
            "1.",
            "1"),
    EXAMPLE("K\x01"
            "2\x86.",
            "(1,1)"),
    EXAMPLE("]p0\ng0\n\x86.", "([],[])"),
    EXAMPLE("]q\x07h\x07\x86.", "([],[])"),
    EXAMPLE("]r\x00\x00\x00\x7fj\x00\x00\x00\x7f\x86.", "([],[])"),
    EXAMPLE("K\x01\x94K\x02\x94"
            "00h\x01.",
            "2"),
    /* Globals, calls, objects, persistent ids. */
    EXAMPLE("cos\nsystem\n.", "|os system|"),
    EXAMPLE("\x8c\x02os\x8c\x06system\x93.", "|os system|"),
    EXAMPLE("\x8c\x01m\x8c\x03"
            "A.B\x93.",
            "|m A.B|"),
    EXAMPLE("cos\nsystem\nU\x01x\x85R.", "|os system|(b|x|)"),
    EXAMPLE("cm\nC\n)\x81.", "|m C|()"),
    EXAMPLE("cm\nC\nK\x01\x85}\x92.", "|m C|(1)"),
    EXAMPLE("cm\nC\nK\x01\x85}K\x02K\x03s\x92.", "|m C|(1,{2:3})"),
    EXAMPLE("(K\x01im\nC\n.", "|m C|(1)"),
    EXAMPLE("(cm\nC\nK\x01K\x02o.", "|m C|(1,2)"),
    EXAMPLE("cm\nC\n)\x81}K\x01K\x02sb.", "|m C|() state {1:2}"),
    EXAMPLE("cm\nC\n)\x81K\x01"
            "bK\x02"
            "b.",
            "|m C|() state 2"),
    EXAMPLE("cm\nC\n)RK\x01K\x02s.", "|m C|() holds {1:2}"),
    EXAMPLE("cm\nC\n)R(K\x01K\x02uK\x03K\x04s.", "|m C|() holds {1:2,3:4}"),
    EXAMPLE("cm\nC\n)RK\x01"
            "a(K\x02"
            "e.",
            "|m C|() holds [1,2]"),
    EXAMPLE("Pid 7\n.", "#'id 7'"),
    EXAMPLE("K\x07Q.", "#7"),
    EXAMPLE("PP\n)R.", "#'P'()"),
    /* Protocols and frames. */
    EXAMPLE("\x80\x00N.", "None"),
    EXAMPLE("\x80\x05\x95\x02\x00\x00\x00\x00\x00\x00\x00N.", "None"),
    EXAMPLE("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00N.", "None"),
    EXAMPLE("\x95\x01\x00\x00\x00\x00\x00\x00\x00]"
            "\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x01"
            "a.",
            "[1]"),
};

enum { EXAMPLES = sizeof examples / sizeof examples[0] };

static void test_pickle__each_opcode_makes_its_value(void **state) {
    (void)state;
    for (size_t i = 0; i < EXAMPLES; i++) {
        check_shows(examples[i].bytes, examples[i].count, examples[i].shows);
    }
}

/* The argument of every opcode above is cut at every length. */
static void test_pickle__every_proper_prefix_is_corrupt(void **state) {
    (void)state;
    for (size_t i = 0; i < EXAMPLES; i++) {
        for (size_t count = 0; count < examples[i].count; count++) {
            struct loaded loaded = load(examples[i].bytes, count);
            assert_int_equal(loaded.status, GRADCMP_ERROR_CORRUPT);
            assert_in_range(loaded.error.offset_bytes, PICKLE_BASE, PICKLE_BASE + count);
            assert_null(loaded.root);
            unload(&loaded);
        }
    }
}

/* A guard for whoever edits the examples: a byte that is in none of them is an opcode not run. */
static void test_pickle__examples_hold_every_opcode(void **state) {
    (void)state;
    static const char opcodes[] = "().012BCFGIJKLMNPQRSTUVX]abcdeghijlopqrstu}"
                                  "\x80\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91"
                                  "\x92\x93\x94\x95\x96\x98";
    for (size_t k = 0; k < sizeof opcodes - 1; k++) {
        bool found = false;
        for (size_t i = 0; i < EXAMPLES && !found; i++) {
            found = memchr(examples[i].bytes, opcodes[k], examples[i].count) != NULL;
        }
        assert_true(found);
    }
}

static void test_pickle__every_other_byte_is_no_opcode(void **state) {
    (void)state;
    static const char opcodes[] = "().012BCFGIJKLMNPQRSTUVX]abcdeghijlopqrstu}"
                                  "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e"
                                  "\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98";
    for (int byte = 0; byte < 256; byte++) {
        if (memchr(opcodes, byte, sizeof opcodes - 1) == NULL) {
            char bytes[] = {'N', (char)byte, '.'}, message[80];
            snprintf(message, sizeof message, "pickle: unknown opcode: found byte 0x%02x", byte);
            check_fails(bytes, 3, GRADCMP_ERROR_CORRUPT, 1, message);
        }
    }
}

static void test_pickle__floats_keep_their_bits(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("G\x7f\xf8\x00\x00\x00\x00\x12\x34."));
    uint64_t bits;
    memcpy(&bits, &loaded.root->as.number, sizeof bits);
    assert_int_equal(bits, 0x7ff8000000001234);
    unload(&loaded);
}

static void test_pickle__memo_shares_nodes(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("]q\x00h\x00\x86."));
    assert_ptr_equal(gcmp_node_item(loaded.root, 0), gcmp_node_item(loaded.root, 1));
    unload(&loaded);
}

/* After PUT 5 there is one entry, so MEMOIZE sets 1, as in CPython; then a PUT overrides it. */
static void test_pickle__memoize_counts_entries(void **state) {
    (void)state;
    check_shows(BYTES("(K\x01p5\nK\x02\x94K\x03\x94h\x05h\x01h\x02t."), "(1,2,3,1,2,3)");
    check_shows(BYTES("(K\x01\x94K\x02q\x00K\x03\x94h\x00h\x01t."), "(1,2,3,2,3)");
}

static void test_pickle__nodes_know_their_byte(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("\x80\x02](K\x07M\x00\x07"
                                      "e."));
    assert_int_equal(loaded.root->at, 2);
    assert_int_equal(gcmp_node_item(loaded.root, 0)->at, 4);
    assert_int_equal(gcmp_node_item(loaded.root, 1)->at, 6);
    unload(&loaded);
}

static void test_pickle__cursor_stops_behind_stop(void **state) {
    (void)state;
    struct loaded loaded = load(BYTES("\x8a\x01\x05.\x80\x02K\x06.rest"));
    assert_int_equal(loaded.status, GRADCMP_OK);
    assert_int_equal(loaded.cursor.at_bytes, 4);
    struct gcmp_node *second;
    assert_int_equal(gcmp_pickle_load(&loaded.cursor, &loaded.arena, "f", &second, NULL),
                     GRADCMP_OK);
    assert_int_equal(second->as.integer, 6);
    assert_int_equal(second->at, 6);
    assert_int_equal(loaded.cursor.at_bytes, 9);
    unload(&loaded);
}

static void test_pickle__last_equal_key_replaces_in_place(void **state) {
    (void)state;
    check_shows(BYTES("}(X\x01\x00\x00\x00"
                      "aK\x01K\x05K\x02\x8c\x01"
                      "aK\x03K\x05K\x04u."),
                "{'a':3,5:4}");
    check_shows(BYTES("}(K\x01K\x07\x88K\x08\x89K\x09J\x00\x00\x00\x00K\x0au."), "{1:8,False:10}");
    /* A text is not bytes and not a number; None, floats and tuples are kept as they come. */
    check_shows(BYTES("}(U\x01"
                      "0K\x01\x8c\x01"
                      "0K\x02K\x00K\x03u."),
                "{b|0|:1,'0':2,0:3}");
    check_shows(BYTES("}(NK\x01NK\x02)K\x03)K\x04u."), "{None:1,None:2,():3,():4}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pickle__each_opcode_makes_its_value),
        cmocka_unit_test(test_pickle__every_proper_prefix_is_corrupt),
        cmocka_unit_test(test_pickle__examples_hold_every_opcode),
        cmocka_unit_test(test_pickle__every_other_byte_is_no_opcode),
        cmocka_unit_test(test_pickle__floats_keep_their_bits),
        cmocka_unit_test(test_pickle__memo_shares_nodes),
        cmocka_unit_test(test_pickle__memoize_counts_entries),
        cmocka_unit_test(test_pickle__nodes_know_their_byte),
        cmocka_unit_test(test_pickle__cursor_stops_behind_stop),
        cmocka_unit_test(test_pickle__last_equal_key_replaces_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
