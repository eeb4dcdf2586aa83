/* Pickles whose containers are digested while they are read: what is taken, and that everything
 * that a digest cannot do ends the run, where a plain run goes on. */
#include "pickle_tools.h"

/* Texts of one character; what the digest of these tests wants are the dict D and the list L. */
#define D                                                                                          \
    "\x8c\x01"                                                                                     \
    "d"
#define L                                                                                          \
    "\x8c\x01"                                                                                     \
    "l"
#define O                                                                                          \
    "\x8c\x01"                                                                                     \
    "o"
#define X                                                                                          \
    "\x8c\x01"                                                                                     \
    "x"
#define Z                                                                                          \
    "\x8c\x01"                                                                                     \
    "z"

struct taker {
    struct gcmp_text seen; /* "which items;" of each batch */
    bool refuses;
};

static bool take(void *user, unsigned which, const struct gcmp_node *container,
                 struct gcmp_node *const *items, size_t count) {
    struct taker *taker = user;
    assert_int_equal(container->as.list.count, 0);
    gcmp_text_addf(&taker->seen, "%u", which);
    for (size_t i = 0; i < count; i++) {
        gcmp_text_add(&taker->seen, " ");
        show_into(&taker->seen, items[i], 6);
    }
    gcmp_text_add(&taker->seen, ";");
    return !taker->refuses;
}

static struct loaded load_digested(const char *bytes, size_t count, struct taker *taker) {
    const struct gcmp_pickle_digest digest = {
        .of = {{"d", GCMP_NODE_DICT}, {"l", GCMP_NODE_LIST}}, .take = take, .user = taker};
    struct loaded out = {.arena = GCMP_ARENA_INIT};
    out.bytes = malloc(count);
    memcpy(out.bytes, bytes, count);
    out.cursor = gcmp_cursor_make(out.bytes, count, PICKLE_BASE);
    out.status = gcmp_pickle_load_digested(&out.cursor, &out.arena, "some/file", &digest, &out.root,
                                           &out.error);
    return out;
}

static void expect_taken(const char *bytes, size_t count, const char *taken, const char *left) {
    struct taker taker = {GCMP_TEXT_INIT, false};
    struct loaded loaded = load_digested(bytes, count, &taker);
    if (loaded.status != GRADCMP_OK) {
        fail_msg("%s", loaded.error.message);
    }
    struct gcmp_text text = GCMP_TEXT_INIT;
    show_into(&text, loaded.root, 8);
    assert_string_equal(taker.seen.bytes == NULL ? "" : taker.seen.bytes, taken);
    assert_string_equal(text.bytes, left);
    gcmp_text_free(&text);
    gcmp_text_free(&taker.seen);
    unload(&loaded);
}

/* A digest gives up; without one the pickle is read. */
static void expect_given_up(const char *bytes, size_t count) {
    struct taker taker = {GCMP_TEXT_INIT, false};
    struct loaded loaded = load_digested(bytes, count, &taker);
    assert_int_equal(loaded.status, GRADCMP_ERROR_UNSUPPORTED);
    assert_non_null(strstr(loaded.error.message, "not to be read in batches"));
    assert_null(loaded.root);
    gcmp_text_free(&taker.seen);
    unload(&loaded);
    struct loaded plain = load(bytes, count);
    if (plain.status != GRADCMP_OK) {
        fail_msg("%s", plain.error.message);
    }
    unload(&plain);
}

static void test_digest__items_come_in_batches_and_others_stay(void **state) {
    (void)state;
    expect_taken(BYTES("}(" L "](K\x01K\x02"
                       "e(]K\x03"
                       "a" X "eK\x04"
                       "a" /* three batches */
                       O "](K\x05K\x06"
                       "e" D "}(" X "]" Z "Nu"
                       "u."),
                 "1 1 2;1 [3] 'x';1 4;0 'x' [] 'z' None;", "{'l':[],'o':[5,6],'d':{}}");
}

static void test_digest__wants_a_key_with_a_container_of_its_kind(void **state) {
    (void)state;
    expect_taken(BYTES("}(" L "}(K\x01K\x02u" D "](K\x03"
                       "e" Z "](K\x04"
                       "eu."),
                 "", "{'l':{1:2},'d':[3],'z':[4]}");
}

static void test_digest__what_a_batch_memoises_is_there_within_it(void **state) {
    (void)state;
    expect_taken(BYTES("}\x94(" L "]\x94(]\x94h\x02K\x07\x85\x94h\x03"
                       "eu."),
                 "1 [] [] (7) (7);", "{'l':[]}");
}

static void test_digest__texts_and_small_numbers_outlive_their_batch(void **state) {
    (void)state;
    expect_taken(BYTES("}(" L "](" X "\x94"
                       "cm\nn\n\x94K\x09)J\xff\xff\x00\x00"
                       "e" Z "h\x00" O "h\x01"
                       "K\x01K\x09"
                       "K\x02)"
                       "K\x03J\xff\xff\x00\x00u."),
                 "1 'x' |m n| 9 () 65535;", "{'l':[],'z':'x','o':|m n|,1:9,2:(),3:65535}");
}

static void test_digest__memo_keeps_its_numbers(void **state) {
    (void)state;
    expect_taken(BYTES("}(" L "](]\x94]\x94]\x94"
                       "e" Z "\x94h\x03"
                       "u."),
                 "1 [] [] [];", "{'l':[],'z':'z'}");
    expect_taken(BYTES("}(" L "](]\x94]\x94"
                       "e" Z "q\x00h\x00" X "\x94h\x02"
                       "u."),
                 "1 [] [];", "{'l':[],'z':'z','x':'x'}");
}

static void test_digest__what_refers_to_a_batch_later_finds_it_recycled(void **state) {
    (void)state;
    expect_taken(BYTES("}(" L "](]\x94"
                       "e" Z "h\x00" O "h\x00\x85u."),
                 "1 [];", "{'l':[],'z':?,'o':(?)}");
    expect_taken(BYTES("}(" L "](K\x01\x85\x94"
                       "e(h\x00"
                       "eu."),
                 "1 (1);1 ?;", "{'l':[]}");
    expect_given_up(BYTES("}(" L "](K\x01\x85\x94"
                          "eh\x00Nu."));
}

static void test_digest__gives_up_where_something_older_would_change(void **state) {
    (void)state;
    expect_given_up(BYTES("}(" O "]\x94" L "](h\x00K\x01"
                          "aeu."));
    expect_given_up(BYTES("}(" O "]\x94" L "](h\x00(K\x01"
                          "eeu."));
    expect_given_up(BYTES("}(" O "}\x94" L "](h\x00K\x01Nseu."));
    expect_given_up(BYTES("}(" O "}\x94" L "](h\x00(K\x01Nueu."));
    expect_given_up(BYTES("}(" O "\x8f\x94" L "](h\x00(K\x01\x90"
                          "eu."));
    expect_given_up(BYTES("}(" O "cm\nn\n)\x81\x94" L "](h\x00Nbeu."));
    expect_given_up(BYTES("}(" O "cm\nn\n)\x81\x94" L "](h\x00K\x01"
                          "aeu."));
}

static void test_digest__gives_up_where_the_memo_would_keep_a_batch(void **state) {
    (void)state;
    expect_given_up(BYTES("}(" Z "q\x05N" L "](]q\x05"
                          "eu."));
    expect_given_up(BYTES("}(" L "](]r\xff\xff\xff\x7f"
                          "eu."));
}

static void test_digest__gives_up_where_a_batch_becomes_something_else(void **state) {
    (void)state;
    expect_given_up(BYTES("}(" L "](K\x01t0u."));
    expect_given_up(BYTES("}(" L "](K\x01l0u."));
    expect_given_up(BYTES("}(" L "](K\x01"
                          "1u."));
    expect_given_up(BYTES("}(" L "](0u."));
}

static void test_digest__gives_up_where_items_come_by_another_way(void **state) {
    (void)state;
    expect_given_up(BYTES("}\x94(" L "]\x94(K\x01"
                          "e" Z "h\x01K\x02"
                          "au."));
    expect_given_up(BYTES("}\x94(" D "}\x94(K\x01Nu" Z "h\x01K\x02Nsu."));
}

static void expect_failure(const char *bytes, size_t count, bool refuses) {
    struct taker taker = {GCMP_TEXT_INIT, refuses};
    struct loaded loaded = load_digested(bytes, count, &taker);
    assert_int_not_equal(loaded.status, GRADCMP_OK);
    assert_null(loaded.root);
    assert_int_equal(loaded.cursor.at_bytes, 0);
    gcmp_text_free(&taker.seen);
    unload(&loaded);
}

static void test_digest__refusal_and_damage_are_failures(void **state) {
    (void)state;
    expect_failure(BYTES("}(" L "](K\x01K\x02"
                         "eu."),
                   true);
    expect_failure(BYTES("}(" L "]K\x01"
                         "au."),
                   true);
    expect_failure(BYTES("}(" D "}(K\x01uu."), false);  /* a key without a value */
    expect_failure(BYTES("}(" L "](K\x01Nuu."), false); /* pairs for a list */
    expect_failure(BYTES("}(" L "](]]."), false);
    expect_failure(BYTES("}(" L "](]]"), false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest__items_come_in_batches_and_others_stay),
        cmocka_unit_test(test_digest__wants_a_key_with_a_container_of_its_kind),
        cmocka_unit_test(test_digest__what_a_batch_memoises_is_there_within_it),
        cmocka_unit_test(test_digest__texts_and_small_numbers_outlive_their_batch),
        cmocka_unit_test(test_digest__memo_keeps_its_numbers),
        cmocka_unit_test(test_digest__what_refers_to_a_batch_later_finds_it_recycled),
        cmocka_unit_test(test_digest__gives_up_where_something_older_would_change),
        cmocka_unit_test(test_digest__gives_up_where_the_memo_would_keep_a_batch),
        cmocka_unit_test(test_digest__gives_up_where_a_batch_becomes_something_else),
        cmocka_unit_test(test_digest__gives_up_where_items_come_by_another_way),
        cmocka_unit_test(test_digest__refusal_and_damage_are_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
