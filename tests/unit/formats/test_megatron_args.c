/* What Megatron says of a run, from nodes written by hand (pickle protocol 0). */
#include "temp_tools.h"

#include "base/catalogue.h"
#include "formats/megatron_args.h"

struct run {
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
};

static struct run *read_run(const char *pickle) {
    struct run *run = calloc(1, sizeof *run);
    struct gcmp_node *root = NULL;
    struct gradcmp_error error = {0};
    struct gcmp_cursor cursor = gcmp_cursor_make(pickle, strlen(pickle), 0);
    if (gcmp_pickle_load(&cursor, &run->arena, "", &root, &error) != GRADCMP_OK) {
        fail_msg("%s", error.message);
    }
    run->catalogue.arena = &run->arena;
    run->catalogue.iteration = -1;
    assert_int_equal(gcmp_megatron_read_run(&run->catalogue, root, &error), GRADCMP_OK);
    return run;
}

static void run_free(struct run *run) {
    gcmp_catalogue_free(&run->catalogue);
    gcmp_arena_free(&run->arena);
    free(run);
}

static const struct gradcmp_setting *setting(const struct run *run, const char *name) {
    const struct gradcmp_setting *found = gcmp_catalogue_setting(&run->catalogue, name);
    if (found == NULL) {
        fail_msg("no setting \"%s\"", name);
    }
    return found;
}

/* {"args": Namespace(...), ...}: the start, up to the attributes. */
#define ARGS     "(dVargs\ncargparse\nNamespace\n(tR(d"
#define END_ARGS "bs"

static void test_read__scalars_become_settings(void **state) {
    (void)state;
    struct run *run = read_run(ARGS "Vseed\nI1234\ns"
                                    "Vclip_grad\nF1.5\ns"
                                    "Vnormalization\nVRMSNorm\ns"
                                    "Vswiglu\nI01\ns"
                                    "Vno_save_rng\nNs"
                                    "Vparams_dtype\nctorch\nfloat16\ns"
                                    "Vbackend\ncmegatron.core.transformer.enums\nAttnBackend\n"
                                    "(I4\ntRs"
                                    "Vdevice\nctorch\ndevice\n(Vcpu\ntRs"
                                    "Vlist\n(I1\nI2\nls"
                                    "Vhuge\nL123456789012345678901234567890L\ns" END_ARGS ".");
    assert_int_equal(setting(run, "seed")->kind, GRADCMP_SETTING_INT);
    assert_int_equal(setting(run, "seed")->integer, 1234);
    assert_int_equal(setting(run, "clip_grad")->kind, GRADCMP_SETTING_FLOAT);
    assert_true(setting(run, "clip_grad")->number == 1.5);
    assert_string_equal(setting(run, "normalization")->text, "RMSNorm");
    assert_int_equal(setting(run, "swiglu")->kind, GRADCMP_SETTING_BOOL);
    assert_int_equal(setting(run, "swiglu")->integer, 1);
    assert_int_equal(setting(run, "no_save_rng")->kind, GRADCMP_SETTING_NONE);
    assert_string_equal(setting(run, "params_dtype")->text, "float16");
    assert_string_equal(setting(run, "backend")->text, "AttnBackend(4)");
    assert_string_equal(setting(run, "device")->text, "device(cpu)");
    assert_string_equal(setting(run, "list")->text, "[1,2]");
    assert_string_equal(setting(run, "huge")->text, "0x018ee90ff6c373e0ee4e3f0ad2");
    assert_int_equal(run->catalogue.compute, GRADCMP_DTYPE_FLOAT16);
    run_free(run);
}

static void test_read__other_values_become_texts(void **state) {
    (void)state;
    static const struct {
        const char *value, *text;
    } rows[] = {
        {"(lp1\nVa b\naF0.1\naI01\naNa", "[\"a b\",0.1,true,null]"},
        {"(I1\n(I2\ntt", "[1,[2]]"},
        {"(dVk\nI1\ns", "{\"k\":1}"},
        {"cargparse\nNamespace\n(tR(dVk\nI1\nsb", "argparse Namespace[]{\"k\":1}"},
        {"(Va\nI3\ntQ", "<not read>"},
        {"((((((((I1\ntttttttt", "[[[[[[[[1]]]]]]]]"},
        {"(((((((((I1\nttttttttt", "[[[[[[[[<not read>]]]]]]]]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char pickle[500];
        snprintf(pickle, sizeof pickle, ARGS "Vx\n%ss" END_ARGS ".", rows[i].value);
        struct run *run = read_run(pickle);
        assert_string_equal(setting(run, "x")->text, rows[i].text);
        run_free(run);
    }
}

static void test_read__model_and_parallel(void **state) {
    (void)state;
    struct run *run = read_run(ARGS "Vnum_layers\nI8\ns"
                                    "Vvocab_size\nI70\ns"
                                    "Vpadded_vocab_size\nI72\ns"
                                    "Vnum_experts\nNs"
                                    "Vtensor_model_parallel_size\nI2\ns"
                                    "Vpipeline_model_parallel_size\nI4\ns"
                                    "Vvirtual_pipeline_model_parallel_size\nNs"
                                    "Vdata_parallel_size\nI-3\ns"
                                    "Vcontext_parallel_size\nL4294967297L\ns"
                                    "Vexpert_model_parallel_size\nI5\ns"
                                    "Vexpert_tensor_parallel_size\nI6\ns"
                                    "Vworld_size\nI7\ns"
                                    "Viteration\nI9\ns"
                                    "Vbf16\nI01\nsVfp16\nI00\ns" END_ARGS ".");
    assert_int_equal(run->catalogue.layers, 8);
    assert_int_equal(run->catalogue.vocab, 70);
    assert_int_equal(run->catalogue.padded_vocab, 72);
    assert_int_equal(run->catalogue.experts, 0);
    assert_int_equal(run->catalogue.parallel.tp, 2);
    assert_int_equal(run->catalogue.parallel.pp, 4);
    assert_int_equal(run->catalogue.parallel.vp, 0);
    assert_int_equal(run->catalogue.parallel.dp, 0); /* nonsense is not known */
    assert_int_equal(run->catalogue.parallel.cp, 0);
    assert_int_equal(run->catalogue.parallel.ep, 5);
    assert_int_equal(run->catalogue.parallel.etp, 6);
    assert_int_equal(run->catalogue.parallel.world, 7);
    assert_int_equal(run->catalogue.iteration, 9);
    assert_int_equal(run->catalogue.compute, GRADCMP_DTYPE_BFLOAT16);
    run_free(run);
}

static void test_read__iteration_and_content_metadata(void **state) {
    (void)state;
    struct run *run = read_run(ARGS "Viteration\nI9\ns" END_ARGS "Viteration\nI3\ns"
                                    "Vcontent_metadata\n(dVdistrib_optim_sharding_type\n"
                                    "Vfully_reshardable\nsVsingleton_local_shards\nI00\nss.");
    assert_int_equal(run->catalogue.iteration, 3); /* that of the save, not of the arguments */
    assert_string_equal(run->catalogue.layout_name, "fully_reshardable");
    assert_int_equal(setting(run, "content_metadata.singleton_local_shards")->integer, 0);
    run_free(run);
}

#define GROUP(betas) "(dVbetas\n" betas "sVlr\nF0.25\nsVweight_decay\nF0.1\nsVstep\nF1.0\ns"

static void test_read__betas_of_the_optimizer_win(void **state) {
    (void)state;
    struct run *run =
        read_run(ARGS "Vadam_beta1\nF0.9\nsVadam_beta2\nF0.0\nsVlr\nF0.5\ns" END_ARGS
                      "Voptimizer\n(dVoptimizer\n(dVparam_groups\n(" GROUP("(F0.0\nF0.0\nt")
                          GROUP("(F0.0\nF0.0\nt") "lsss.");
    assert_true(setting(run, "adam_beta1")->number == 0.0);
    assert_true(setting(run, "adam_beta2")->number == 0.0);
    assert_true(setting(run, "lr")->number == 0.5);
    assert_true(setting(run, "optimizer.lr")->number == 0.25);
    assert_true(setting(run, "optimizer.step")->number == 1.0);
    assert_int_equal(run->catalogue.note_count, 1);
    assert_string_equal(run->catalogue.notes[0],
                        "the arguments say adam_beta1 = 0.9, the optimizer was saved with 0");
    run_free(run);
}

static void test_read__chained_optimizers_with_other_betas_are_noted(void **state) {
    (void)state;
    struct run *run =
        read_run("(dVoptimizer\n(d"
                 "I0\n(dVoptimizer\n(dVparam_groups\n(" GROUP(
                     "(F0.5\nF0.0\nt") "lsss"
                                       "I1\n(dVparam_groups\n(" GROUP("(F0.5\nF0.25\nt") "lss"
                                                                                         "s.");
    assert_true(setting(run, "adam_beta1")->number == 0.5);
    assert_true(setting(run, "adam_beta2")->number == 0.0);
    assert_int_equal(run->catalogue.note_count, 1);
    assert_text_contains(run->catalogue.notes[0], "differ in their betas");
    run_free(run);
}

static void test_read__nothing_of_it_is_fine(void **state) {
    (void)state;
    static const char *const pickles[] = {"(d.", "N.", "(dVargs\nNsVoptimizer\nI3\ns.",
                                          "(dVargs\n(lsVcontent_metadata\nVx\ns.",
                                          "(dVoptimizer\n(dVparam_groups\n(I1\nNlss."};
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        struct run *run = read_run(pickles[i]);
        assert_int_equal(run->catalogue.setting_count, 0);
        assert_int_equal(run->catalogue.iteration, -1);
        assert_int_equal(run->catalogue.compute, GRADCMP_DTYPE_NONE);
        run_free(run);
    }
}

/* Settings are looked up one after another, so a file must not make a million of them. */
static void test_read__settings_are_bounded(void **state) {
    (void)state;
    enum { MANY = 20000 };
    char *pickle = malloc(MANY * 24 + 100), *at = pickle;
    at += sprintf(at, ARGS);
    for (int i = 0; i < MANY; i++) {
        at += sprintf(at, "Va%d\nI1\ns", i);
    }
    sprintf(at, END_ARGS ".");
    struct run *run = read_run(pickle);
    assert_int_equal(run->catalogue.setting_count, 4097);
    assert_string_equal(setting(run, "further arguments")->text, "<not read>");
    run_free(run);
    free(pickle);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read__scalars_become_settings),
        cmocka_unit_test(test_read__other_values_become_texts),
        cmocka_unit_test(test_read__model_and_parallel),
        cmocka_unit_test(test_read__iteration_and_content_metadata),
        cmocka_unit_test(test_read__betas_of_the_optimizer_win),
        cmocka_unit_test(test_read__chained_optimizers_with_other_betas_are_noted),
        cmocka_unit_test(test_read__nothing_of_it_is_fine),
        cmocka_unit_test(test_read__settings_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
