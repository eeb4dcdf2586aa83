/* Which build it is: notes of every kind, and what there is of the test's own program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <link.h>

#include "build_id.h"

/* Notes while they are written. */
struct notes {
    unsigned char bytes[256];
    size_t count, alignment;
};

static void add(struct notes *notes, uint32_t type, const char *name, const char *text,
                uint32_t text_bytes) {
    ElfW(Nhdr) note = {(uint32_t)strlen(name) + 1, text_bytes, type};
    memcpy(notes->bytes + notes->count, &note, sizeof note);
    memcpy(notes->bytes + notes->count + sizeof note, name, note.n_namesz);
    size_t at = notes->count + sizeof note + note.n_namesz;
    at = (at + notes->alignment - 1) / notes->alignment * notes->alignment;
    memcpy(notes->bytes + at, text, text_bytes);
    at += text_bytes;
    notes->count = (at + notes->alignment - 1) / notes->alignment * notes->alignment;
}

static void test_take__the_build_id_among_others(void **state) {
    (void)state;
    for (size_t alignment = 4; alignment <= 8; alignment += 4) {
        struct notes notes = {.alignment = alignment};
        struct gcmp_build_id id;
        add(&notes, NT_GNU_BUILD_ID, "FDO", "other", 5);
        add(&notes, NT_GNU_ABI_TAG, "GNU", "kernel", 6);
        add(&notes, NT_GNU_BUILD_ID, "GNU", "", 0);
        assert_false(gcmp_build_id_take(notes.bytes, notes.count, alignment, &id));
        add(&notes, NT_GNU_BUILD_ID, "GNU", "0123456789abcdefghij", 20);
        assert_true(gcmp_build_id_take(notes.bytes, notes.count, alignment, &id));
        assert_int_equal(id.count, 20);
        assert_memory_equal(id.bytes, "0123456789abcdefghij", 20);
    }
}

static void test_take__notes_that_are_cut_off(void **state) {
    (void)state;
    struct notes notes = {.alignment = 4};
    struct gcmp_build_id id;
    add(&notes, NT_GNU_BUILD_ID, "GNU", "0123456789abcdefghij", 20);
    for (size_t count = 0; count < notes.count; count++) {
        assert_false(gcmp_build_id_take(notes.bytes, count, 4, &id));
    }
    memset(notes.bytes, 0xff, 8); /* sizes */
    assert_false(gcmp_build_id_take(notes.bytes, notes.count, 4, &id));
}

static void test_find__the_same_every_time(void **state) {
    (void)state;
    struct gcmp_build_id one, two;
    assert_true(gcmp_build_id_find(&one));
    assert_true(gcmp_build_id_find(&two));
    assert_true(one.count > 0);
    assert_memory_equal(&one, &two, sizeof one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take__the_build_id_among_others),
        cmocka_unit_test(test_take__notes_that_are_cut_off),
        cmocka_unit_test(test_find__the_same_every_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
