/* Texts of extracted files. */
#include "formats/extracted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/catalogue.h"

struct fixture {
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
    struct gradcmp_error error;
};

static int start(void **state) {
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fixture.catalogue.arena = &fixture.arena;
    fixture.catalogue.iteration = -1;
    *state = &fixture;
    return 0;
}

static int end(void **state) {
    struct fixture *fixture = *state;
    gcmp_catalogue_free(&fixture->catalogue);
    gcmp_arena_free(&fixture->arena);
    return 0;
}

static void take(struct fixture *fixture, const char *name, const char *text) {
    assert_int_equal(gcmp_extracted_take(&fixture->catalogue, name, text, &fixture->error),
                     GRADCMP_OK);
}

/* What was extracted says which are states; names are what they are. */
static void test_parse__keys_of_extracted_files(void **state) {
    struct fixture *fixture = *state;
    static const struct {
        const char *key, *name, *state;
        enum gcmp_dcp_kind kind;
    } cases[] = {
        {"state.enc.weight", "state.enc.weight", "param", GCMP_DCP_MODEL},
        {"optimizer/enc/exp_avg", "optimizer.enc.exp_avg", "param", GCMP_DCP_MODEL},
        {"model.w", "model.w", "param", GCMP_DCP_MODEL},
        {"optimizer.state.exp_avg.state.w", "state.w", "exp_avg", GCMP_DCP_STATE},
        {"optimizer/state/curvature/x/exp_avg", "x.exp_avg", "curvature", GCMP_DCP_STATE},
        {"optimizer.state.lonely", "optimizer.state.lonely", "param", GCMP_DCP_MODEL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gcmp_dcp_key key;
        assert_true(gcmp_extracted_parse_key(&fixture->arena, cases[i].key, &key));
        assert_string_equal(key.name, cases[i].name);
        assert_string_equal(key.state, cases[i].state);
        assert_int_equal(key.kind, cases[i].kind);
    }
    assert_false(gcmp_is_extracted(&fixture->catalogue));
    take(fixture, GCMP_EXTRACTED_VERSION, "0.1.0");
    assert_true(gcmp_is_extracted(&fixture->catalogue));
}

static void test_take__what_was_written(void **state) {
    struct fixture *fixture = *state;
    struct gradcmp_catalogue *catalogue = &fixture->catalogue;
    assert_int_equal(gcmp_extracted_style(catalogue), GCMP_DCP_TORCH);
    take(fixture, GCMP_EXTRACTED_VERSION, "0.1.0");
    take(fixture, GCMP_EXTRACTED_ITERATION, "7");
    take(fixture, GCMP_EXTRACTED_LAYERS, "48");
    take(fixture, GCMP_EXTRACTED_VOCAB, "50257");
    take(fixture, GCMP_EXTRACTED_PADDED_VOCAB, "50304");
    take(fixture, GCMP_EXTRACTED_EXPERTS, "8");
    take(fixture, GCMP_EXTRACTED_COMPUTE, "bfloat16");
    take(fixture, GCMP_EXTRACTED_DUMP, "1");
    take(fixture, GCMP_EXTRACTED_NUMBERS, "[0, 0, 1]");
    take(fixture, "gradcmp.of_a_later_version", "anything");
    assert_int_equal(gcmp_extracted_style(catalogue), GCMP_DCP_MEGATRON);
    assert_int_equal(catalogue->iteration, 7);
    assert_int_equal(catalogue->layers, 48);
    assert_int_equal(catalogue->vocab, 50257);
    assert_int_equal(catalogue->padded_vocab, 50304);
    assert_int_equal(catalogue->experts, 8);
    assert_int_equal(catalogue->compute, GRADCMP_DTYPE_BFLOAT16);
    assert_true(catalogue->is_dump);
    assert_int_equal(catalogue->number_count, 3);
    assert_int_equal(catalogue->number_groups[2], 1);
}

static void test_take__an_iteration_that_an_optimizer_counted(void **state) {
    struct fixture *fixture = *state;
    take(fixture, GCMP_EXTRACTED_COUNTED, "7");
    assert_int_equal(fixture->catalogue.iteration, 7);
    assert_true(fixture->catalogue.iteration_is_count);
}

static void test_take__settings_of_every_kind(void **state) {
    struct fixture *fixture = *state;
    take(fixture, GCMP_EXTRACTED_SETTINGS,
         "{\"adam_beta1\": 0.9, \"seed\": 1234, \"bf16\": true, \"name\": \"a\", \"none\": null}");
    const struct gradcmp_setting *beta = gcmp_catalogue_setting(&fixture->catalogue, "adam_beta1");
    const struct gradcmp_setting *seed = gcmp_catalogue_setting(&fixture->catalogue, "seed");
    const struct gradcmp_setting *bf16 = gcmp_catalogue_setting(&fixture->catalogue, "bf16");
    const struct gradcmp_setting *name = gcmp_catalogue_setting(&fixture->catalogue, "name");
    const struct gradcmp_setting *none = gcmp_catalogue_setting(&fixture->catalogue, "none");
    assert_int_equal(fixture->catalogue.setting_count, 5);
    assert_true(beta->kind == GRADCMP_SETTING_FLOAT && beta->number == 0.9);
    assert_true(seed->kind == GRADCMP_SETTING_INT && seed->integer == 1234);
    assert_true(bf16->kind == GRADCMP_SETTING_BOOL && bf16->integer == 1);
    assert_string_equal(name->text, "a");
    assert_int_equal(none->kind, GRADCMP_SETTING_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parse__keys_of_extracted_files, start, end),
        cmocka_unit_test_setup_teardown(test_take__what_was_written, start, end),
        cmocka_unit_test_setup_teardown(test_take__an_iteration_that_an_optimizer_counted, start,
                                        end),
        cmocka_unit_test_setup_teardown(test_take__settings_of_every_kind, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
