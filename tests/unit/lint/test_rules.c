/* Every rule of the table: what it finds, and what it accepts. */
#include "../temp_tools.h"

#include "lint/lint.h"
#include "lint/text.h"

/* A text, and the rules of `sets` that it breaks: "error MG01, info MG12", in the table's order. */
struct row {
    unsigned sets;
    const char *text, *findings;
};

static void judge(const struct row *row, char *out, size_t out_bytes) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gcmp_lint_source source = {.path = "settings", .arena = &arena, .iteration = -1};
    struct gcmp_lint_content content = {.run = {&source, 1}, .sets = row->sets};
    size_t at = 0;
    if (gcmp_lint_read_text(row->text, strlen(row->text), &source, &error) != GRADCMP_OK ||
        gcmp_lint_judge(&content, &arena, &error) != GRADCMP_OK) {
        fail_msg("%s: %s", error.message, row->text);
    }
    out[0] = '\0';
    for (size_t i = 0; i < content.count; i++) {
        at += (size_t)snprintf(out + at, out_bytes - at, "%s%s %s", i > 0 ? ", " : "",
                               gcmp_lint_severity_name(content.findings[i].severity),
                               content.findings[i].rule->id);
    }
    free(content.findings);
    gcmp_lint_source_free(&source);
    gcmp_arena_free(&arena);
}

static void judge_all(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char found[500];
        judge(&rows[i], found, sizeof found);
        if (strcmp(found, rows[i].findings) != 0) {
            fail_msg("%s: expected \"%s\", found \"%s\"", rows[i].text, rows[i].findings, found);
        }
    }
}

#define M    GCMP_LINT_MEGATRON
#define A    GCMP_LINT_ASCEND
#define G    GCMP_LINT_GRADIENTS
#define GOOD "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\nCUBLAS_WORKSPACE_CONFIG=:4096:8\n"
#define RING "NCCL_ALGO=Ring\n"
#define ON   "{\"deterministic_mode\": true, \"seed\": 1"

static void test_rules__megatron(void **state) {
    (void)state;
    static const struct row rows[] = {
        {M, RING GOOD, ""},
        {M, "NCCL_ALGO= CollnetDirect , Ring,,\n" GOOD, ""},
        {M, "NCCL_ALGO=Tree\n" GOOD, "error MG02"},
        {M, "NCCL_ALGO=ring\n" GOOD, "error MG02"},
        {M, "NCCL_ALGO=\n" GOOD, "error MG02"},
        {M, "NCCL_ALGO=,\n" GOOD, "error MG02"},
        {M, "NCCL_ALGO=^NVLS,Tree\n" GOOD, "error MG02"},
        {M, "NCCL_ALGO=^NVLS\n" GOOD, "info MG03"},
        {M, "NCCL_ALGO=Ring,^NVLS\n" GOOD, "warning MG04"},
        {M, RING "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0 \nCUBLAS_WORKSPACE_CONFIG=:16:8\n",
         "error MG05"},
        {M, RING "NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\nCUBLAS_WORKSPACE_CONFIG=:4096:2\n",
         "error MG06"},
        {M, RING GOOD "MAMBA_DETERMINISTIC= 1\n", "error MG07"},
        {M, RING GOOD "MAMBA_DETERMINISTIC=10\nCAUSAL_CONV1D_DETERMINISTIC=\n", ""},
        {M, RING GOOD "CAUSAL_CONV1D_DETERMINISTIC=yes\n", "error MG08"},
        {M, "A=1\n", "info MG11, info MG11, info MG11"},
        {M, RING GOOD "CUDA_DEVICE_MAX_CONNECTIONS=8\n", "warning MG14"},
        {M, RING GOOD "PYTHONHASHSEED=random\n", "warning MG15"},
        {M, RING GOOD "PYTHONHASHSEED=0\nCUDA_DEVICE_MAX_CONNECTIONS=1\n", ""},
        {M, ON "}", ""},
        {M, "{\"seed\": 1}", "error MG01"},
        {M, "{\"deterministic_mode\": false, \"seed\": 1}", "error MG01"},
        {M, ON ", \"cross_entropy_loss_fusion\": true}", "error MG09"},
        {M, ON ", \"tp_comm_overlap\": true}", "error MG10"},
        {M, "{\"deterministic_mode\": true}", "info MG12"},
        {M, "causal-conv1d==1.5.4\ntorch==2.9.0\n", "warning MG13"},
        {M, "causal_conv1d==1.6.0\ntorch==2.9.0\n", ""},
        {M, RING GOOD "NCCL_ALGO=Ring\n", "info GN01"},
        {M,
         "#!/bin/sh\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\nif a; then export NCCL_ALGO=Ring; fi\n"
         "torchrun pretrain.py --deterministic-mode --seed 1\n",
         "warning GN06, info MG11, info MG11"},
        {M, RING GOOD "A=line one\nline two\nline three\n", "warning GN02"}};
    judge_all(rows, sizeof rows / sizeof rows[0]);
}

#define HCCL "HCCL_DETERMINISTIC=true\n"
#define K    "CLOSE_MATMUL_K_SHIFT=1\n"

static void test_rules__ascend(void **state) {
    (void)state;
    static const struct row rows[] = {
        {A, HCCL K, ""},
        {A, "HCCL_DETERMINISTIC=TRUE\n" K, ""},
        {A, "HCCL_DETERMINISTIC=1\n" K, "error AS02"},
        {A, K, "warning AS02"},
        {A, "HCCL_DETERMINISTIC=Strict\n" K, "info AS08"},
        {A, HCCL "CLOSE_MATMUL_K_SHIFT=true\n", "warning AS06"},
        {A, HCCL, "warning AS06"},
        {A, HCCL K "HCCL_LOGIC_SUPERPOD_ID=p\n", "warning AS05"},
        {A, HCCL K "HCCL_LOGIC_SUPERPOD_ID=\n", ""},
        {A, HCCL K "PYTHONHASHSEED=random\n", "warning AS09"},
        {A, "{\"npu_deterministic\": true, \"seed\": 1}", ""},
        {A, "{\"seed\": 1}", "error AS01"},
        {A, "{\"use_deter_comp\": true, \"seed\": 1}", "warning AS03"},
        {A, "{\"use_deter_comp\": true, \"npu_deterministic\": true, \"seed\": 1}", "info AS03"},
        {A, "{\"npu_deterministic\": true, \"balanced_moe_experts\": true}",
         "info AS04, error AS07"},
        {A, "training:\n  use_deter_comp: true\n  seed: 4\n", ""},
        {A, "> setting random seeds to 7 ...\ndeterministic computing is applied for npu.\n", ""},
        {A, "  npu_deterministic ........... False\n  seed .......... 1234\n", "error AS01"}};
    judge_all(rows, sizeof rows / sizeof rows[0]);
}

#define READY                                                                                      \
    "{\"attention_dropout\": 0, \"hidden_dropout\": 0.0, \"adam_beta1\": 0, \"adam_beta2\": 0, "   \
    "\"train_iters\": 1, \"global_batch_size\": 4, \"seed\": 1, \"load\": \"start\""

static void test_rules__gradients(void **state) {
    (void)state;
    static const struct row rows[] = {
        {G, READY ", \"clip_grad\": 0}", ""},
        {G, READY ", \"clip_grad\": 1.0}", "info GC05"},
        {G, READY ", \"clip_grad\": 0, \"no_save_optim\": true, \"optimizer\": \"sgd\"}",
         "error GC10, error GC11"},
        {G, "{\"attention_dropout\": 0.1, \"train_iters\": 10, \"adam_beta1\": 0.9}",
         "error GC01, error GC02, info GC03, info GC04, info GC05, warning GC06, warning GC07, "
         "info GC08, warning GC09"},
        {M | G, READY ", \"clip_grad\": 0, \"deterministic_mode\": true}", ""}};
    judge_all(rows, sizeof rows / sizeof rows[0]);
}

/* A rule without a finding in one of the tables above would not be missed. */
static void test_rules__each_is_in_a_table_and_complete(void **state) {
    (void)state;
    for (const struct gcmp_lint_rule *rule = gcmp_lint_rules; rule->id != NULL; rule++) {
        assert_true(strlen(rule->id) == 4 && rule->sets != 0 && rule->severity != 0);
        assert_non_null(rule->subject);
        assert_true(strlen(rule->accepted) > 0 && strlen(rule->why) > 10 && strlen(rule->fix) > 0 &&
                    strlen(rule->source) > 0);
    }
    assert_null(gcmp_lint_rule_find("MG99"));
    assert_string_equal(gcmp_lint_rule_find("as02")->id, "AS02");
}

static void test_forms__are_found_by_content(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum gcmp_lint_form form;
    } rows[] = {{"A=1\nB=2\n", GCMP_LINT_ENV_DUMP},
                {"export A=1\r\n# x\r\nB='2'\r\n", GCMP_LINT_ENV_DUMP},
                {"#!/bin/sh\nA=1\n", GCMP_LINT_SCRIPT},
                {"export A=1\ntorchrun pretrain.py --x\n", GCMP_LINT_SCRIPT},
                {"A=(1 2)\npython x.py ${A[@]}\n", GCMP_LINT_SCRIPT},
                {"{\"a\": 1}", GCMP_LINT_JSON},
                {"ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --x: true\n", GCMP_LINT_YAML},
                {"------ arguments ------\n  seed ........... 1\n", GCMP_LINT_LOG},
                {"torch==2.9.0\nnumpy==2.0\n-e git+x\n", GCMP_LINT_PIP}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gradcmp_error error = {0};
        struct gcmp_lint_source source = {.path = "x", .arena = &arena};
        assert_int_equal(gcmp_lint_read_text(rows[i].text, strlen(rows[i].text), &source, &error),
                         GRADCMP_OK);
        if (source.form != rows[i].form) {
            fail_msg("form %d: %s", (int)source.form, rows[i].text);
        }
        gcmp_lint_source_free(&source);
        gcmp_arena_free(&arena);
    }
}

static void test_forms__what_is_none_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "hello world\n",
                                        "{\"a\": 1",
                                        "{\"a\": 1, \"a\": 2}",
                                        "{}",
                                        "a: 1\na: 2\n",
                                        "version https://git-lfs.github.com/spec/v1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gradcmp_error error = {0};
        struct gcmp_lint_source source = {.path = "x", .arena = &arena};
        if (gcmp_lint_read_text(texts[i], strlen(texts[i]), &source, &error) == GRADCMP_OK) {
            fail_msg("not refused: %s", texts[i]);
        }
        assert_true(error.message[0] != '\0');
        gcmp_lint_source_free(&source);
        gcmp_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules__megatron),
        cmocka_unit_test(test_rules__ascend),
        cmocka_unit_test(test_rules__gradients),
        cmocka_unit_test(test_rules__each_is_in_a_table_and_complete),
        cmocka_unit_test(test_forms__are_found_by_content),
        cmocka_unit_test(test_forms__what_is_none_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
