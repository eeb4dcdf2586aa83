/* Gradient dumps of Megatron: what a rank's file must not hold. */
#include "formats/torch_save_tools.h"

#include "formats/megatron_wgrads.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#define CHUNK          PT_DICT(PT_TEXT("decoder.w.weight") PT_VECTOR("4"))
#define NO_CHUNK(name) "expected model_chunk0, model_chunk1, ... as keys, found \"" name "\""

static void test_megatron_wgrads__what_a_file_must_not_hold(void **state) {
    static const struct {
        const char *pickle, *message;
        enum gradcmp_status code;
    } rows[] = {
        {PT_DICT(""), "expected a dict of model chunks, found a dict", GRADCMP_ERROR_CORRUPT},
        {PT_LIST(CHUNK), "expected a dict of model chunks, found a list", GRADCMP_ERROR_CORRUPT},
        {"N", "expected a dict of model chunks, found None", GRADCMP_ERROR_CORRUPT},
        {PT_DICT(PT_INT("0") CHUNK), NO_CHUNK("an integer"), GRADCMP_ERROR_UNSUPPORTED},
        {PT_DICT(PT_TEXT("model") CHUNK), NO_CHUNK("model"), GRADCMP_ERROR_UNSUPPORTED},
        {PT_DICT(PT_TEXT("model_chunk") CHUNK), NO_CHUNK("model_chunk"), GRADCMP_ERROR_UNSUPPORTED},
        {PT_DICT(PT_TEXT("model_chunk0x") CHUNK), NO_CHUNK("model_chunk0x"),
         GRADCMP_ERROR_UNSUPPORTED},
        {PT_DICT(PT_TEXT("model_chunk1234567") CHUNK), NO_CHUNK("model_chunk1234567"),
         GRADCMP_ERROR_UNSUPPORTED},
        {PT_DICT(PT_TEXT("model_chunk999999") CHUNK), NO_CHUNK("model_chunk999999"),
         GRADCMP_ERROR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_pt(*state, "mp_rank_00.pth", rows[i].pickle);
        struct opened *opened = open_format(&gcmp_format_megatron_wgrads, *state);
        assert_true(opened->error.offset_bytes > 30 &&
                    opened->error.offset_bytes < 100 + strlen(rows[i].pickle));
        close_format(opened);
        check_refused_open(&gcmp_format_megatron_wgrads, *state, rows[i].code, ANY_OFFSET,
                           "mp_rank_00.pth", rows[i].message);
    }
    write_pt(*state, "mp_rank_00.pth", PT_DICT(PT_TEXT("model_chunk0") CHUNK));
    close_format(open_good(&gcmp_format_megatron_wgrads, *state));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_megatron_wgrads__what_a_file_must_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
