/* Launch scripts: what the environment and the arguments of the training come to. */
#include "../temp_tools.h"

#include "base/text.h"
#include "lint/text.h"

struct parsed {
    struct gcmp_arena arena;
    struct gcmp_lint_source source;
    struct gradcmp_error error;
    enum gradcmp_status status;
};

static void parse(struct parsed *parsed, const char *script) {
    memset(parsed, 0, sizeof *parsed);
    parsed->source.path = "run.sh";
    parsed->source.arena = &parsed->arena;
    size_t length = strlen(script);
    char *own = malloc(length + 1); /* of the exact size, so that a memory checker sees more */
    memcpy(own, script, length + 1);
    parsed->status = gcmp_lint_read_script(own, length, &parsed->source, &parsed->error);
    free(own);
}

static void done(struct parsed *parsed) {
    gcmp_lint_source_free(&parsed->source);
    gcmp_arena_free(&parsed->arena);
}

static const char *value_of(const struct parsed *parsed, enum gcmp_lint_kind kind,
                            const char *name) {
    const struct gcmp_lint_setting *found = gcmp_lint_find(&parsed->source, kind, name);
    return found == NULL ? "(not set)" : found->text == NULL ? "(none)" : found->text;
}

static void expect(const char *script, enum gcmp_lint_kind kind, const char *name,
                   const char *value) {
    struct parsed parsed;
    parse(&parsed, script);
    if (parsed.status != GRADCMP_OK) {
        fail_msg("%s: in: %s", parsed.error.message, script);
    }
    if (strcmp(value_of(&parsed, kind, name), value) != 0) {
        fail_msg("%s is %s, expected %s, in: %s", name, value_of(&parsed, kind, name), value,
                 script);
    }
    done(&parsed);
}

#define RUN "torchrun pretrain_gpt.py --a 1\n"

static void env(const char *script, const char *value) {
    expect(script, GCMP_LINT_ENV, "X", value);
}

static void arg(const char *script, const char *value) {
    expect(script, GCMP_LINT_ARG, "seed", value);
}

static void test_script__exports_reach_the_launch(void **state) {
    (void)state;
    env("export X=1\n" RUN, "1");
    env("X=1; export X\n" RUN, "1");
    env("export X; X=1\n" RUN, "1");
    env("export X=1; " RUN, "1");
    env("export A=b X=1 C\n" RUN, "1");
    env("declare -x X=1\n" RUN, "1");
    env("typeset -x X=1\n" RUN, "1");
    env("set -a\nX=1\nset +a\n" RUN, "1");
    env("set -o allexport\nX=1\n" RUN, "1");
    env("X=1 " RUN, "1");
    env("env X=1 Y=2 " RUN, "1");
    env("env -i X=1 " RUN, "1");
    env("exec env X=1 " RUN, "1");
    env("export 'X=1'\n" RUN, "1");
    env("V=X=1; export \"$V\"\n" RUN, "1");
    env("if true; then export X=1; fi\n" RUN, "1");
    env("export X=1 &&\\\n " RUN, "1");
    env("mpirun -np 2 -x X=1 python pretrain_gpt.py --a\n", "1");
    env("srun --export=ALL,X=1 python pretrain_gpt.py --a\n", "1");
    env("X=1 bash -c 'python pretrain_gpt.py --a'\n", "1");
    env("bash -c 'export X=1; python pretrain_gpt.py --a'\n", "1");
}

static void test_script__what_does_not_reach_it_is_not_set(void **state) {
    (void)state;
    env("X=1\n" RUN, "(not set)");
    env(RUN "export X=1\n", "(not set)");
    env("# export X=1\n" RUN, "(not set)");
    env("echo export X=1\n" RUN, "(not set)");
    env("export X=1\nunset X\n" RUN, "(not set)");
    env("export X=1\nexport -n X\n" RUN, "(not set)");
    env("export X=1\nenv -u X " RUN, "(not set)");
    env("X=1 true\n" RUN, "(not set)");
    env("cat <<EOF >f\nexport X=1\nEOF\n" RUN, "(not set)");
    env("cat <<-'E F' >f\nexport X=1\n\tE F\n" RUN, "(not set)");
    env("echo 'a\nexport X=1\n'\n" RUN, "(not set)");
    env("declare X=1\n" RUN, "(not set)");
    env("export XX=1 Y=X=1\n" RUN, "(not set)");
}

static void test_script__quotes_and_expansions(void **state) {
    (void)state;
    env("export X='a b'\n" RUN, "a b");
    env("export X=\"a 'b' # c\" # d\n" RUN, "a 'b' # c");
    env("export X=a\\ b\\#c#d\n" RUN, "a b#c#d");
    env("export X=\"a\\\"b\\$c\\d\"\n" RUN, "a\"b$c\\d");
    env("export X=a'b'\"c\"$'d\\te'\n" RUN, "abcd\te");
    env("export X=one\\\ntwo\n" RUN, "onetwo");
    env("export X=\r\n" RUN, "");
    env("export X=1\r\n" RUN, "1");
    env("V=R; export X=${V}ing$V\n" RUN, "RingR");
    env("V=; export X=${V:-d}${V-e}\n" RUN, "d");
    env("export X=${V:-a b}\n" RUN, "a b");
    env("export X=\"${V:-\"${W:-q}\"}\"\n" RUN, "q");
    env("export X=a; X+=b\n" RUN, "ab");
    env("A=(1 2); export X=\"${A[@]}\"\n" RUN, "1 2");
    env("export X='$V'\n" RUN, "$V");
}

static void test_script__arguments_of_the_program(void **state) {
    (void)state;
    arg("python pretrain.py --seed 7\n", "7");
    arg("python pretrain.py --seed=7\n", "7");
    arg("python pretrain.py \\\n  --a \\\r\n  --seed 7 \\\n", "7");
    arg("python3.11 -m torch.distributed.run --seed 1 pretrain.py --seed 7\n", "7");
    arg("python -m pretrain --seed 7\n", "7");
    arg("A=(\n --seed 7 # --seed 8\n #--seed 9\n)\ntorchrun pretrain.py \"${A[@]}\"\n", "7");
    arg("A=(--a 1)\nA+=(--seed 7)\ntorchrun pretrain.py ${A[@]}\n", "7");
    arg("A=\"\n --a \\\n --seed 7 \\\n\"\ntorchrun pretrain.py $A\n", "7");
    arg("A=\"--a\"; A=\"$A --seed 7\"\ntorchrun pretrain.py $A\n", "7");
    arg("A=\"--seed 7\"\nB=\"python pretrain.py $A\"\n$B\n", "7");
    arg("A=\"python pretrain.py --seed 7\"\neval $A\n", "7");
    arg("A=\"python pretrain.py --seed 7\"\nsrun -l sh -c \"$A\"\n", "7");
    arg("python pretrain.py --seed 7 2>&1 | tee log\n", "7");
    arg("python pretrain.py --seed 7 >log 2>err &\n", "7");
    arg("for i in 1 2; do python pretrain.py --seed 7; done\n", "7");
    arg("python prepare_data.py --seed 1\npython pretrain.py --a --b --seed 7\n", "7");
    arg("python pretrain.py --seed 6 --seed 7\n", "7");
    arg("python -c 'x.py --seed 1'\npython pretrain.py --seed 7\n", "7");
    arg("echo python pretrain.py --seed 7\n", "(not set)");
    arg("python pretrain.py -- seed 7\n", "(not set)");
    expect("python pretrain.py --tp-comm-overlap --seed 7\n", GCMP_LINT_ARG, "tp_comm_overlap",
           "true");
}

static void test_script__what_is_not_known_is_marked(void **state) {
    (void)state;
    static const char *const unknown[] = {
        "export X=$V\n",          "export X=${V}\n",
        "export X=$(cat f)\n",    "export X=`cat f`\n",
        "export X=$1\n",          "export X=$((1))\n",
        "export X=${V#a}\n",      "export X=${V:-$W}\n",
        "read V\nexport X=a$V\n", "for V in a b; do export X=$V\n"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char script[200];
        struct parsed parsed;
        snprintf(script, sizeof script, "%s" RUN, unknown[i]);
        parse(&parsed, script);
        const struct gcmp_lint_setting *found = gcmp_lint_find(&parsed.source, GCMP_LINT_ENV, "X");
        if (found == NULL || !found->is_unresolved || strchr(found->raw, '$') == NULL) {
            if (found == NULL || strchr(found->raw == NULL ? "" : found->raw, '`') == NULL) {
                fail_msg("known: %s", unknown[i]);
            }
        }
        done(&parsed);
    }
    struct parsed parsed;
    parse(&parsed, "export X=${V:-Ring}\n" RUN);
    const struct gcmp_lint_setting *found = gcmp_lint_find(&parsed.source, GCMP_LINT_ENV, "X");
    assert_true(found->is_defaulted && !found->is_unresolved);
    assert_string_equal(found->text, "Ring");
    assert_string_equal(found->raw, "${V:-Ring}");
    done(&parsed);
    parse(&parsed, "torchrun $D pretrain.py --a $REST\n");
    assert_string_equal(parsed.source.unknown_arguments, "$REST");
    done(&parsed);
}

static void test_script__counts_assignments_and_lines(void **state) {
    (void)state;
    struct parsed parsed;
    parse(&parsed, "#!/bin/sh\nexport X=1\n\nexport X=2\nX=3 " RUN);
    const struct gcmp_lint_setting *found = gcmp_lint_find(&parsed.source, GCMP_LINT_ENV, "X");
    assert_string_equal(found->text, "3");
    assert_int_equal(found->times, 3);
    assert_int_equal(found->line, 5);
    done(&parsed);
}

static void test_script__broken_ones_are_refused_with_a_line(void **state) {
    (void)state;
    static const char *const broken[] = {"\nexport X=\"1\n" RUN, "\nexport X='1\n" RUN,
                                         "\nexport X=$(1\n" RUN, "\nexport X=${1\n" RUN,
                                         "\nA=(1\n" RUN,         "\nexport X=`1\n" RUN};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct parsed parsed;
        parse(&parsed, broken[i]);
        assert_int_equal(parsed.status, GRADCMP_ERROR_CORRUPT);
        assert_non_null(strstr(parsed.error.message, "line 2"));
        done(&parsed);
    }
    struct parsed parsed;
    parse(&parsed, "X=a\001b\n" RUN);
    assert_int_equal(parsed.status, GRADCMP_ERROR_CORRUPT);
    done(&parsed);
}

/* "value" of X, with "?" behind it where only a branch sets it. */
static void branch(const char *script, const char *value) {
    struct parsed parsed;
    char found[200];
    parse(&parsed, script);
    if (parsed.status != GRADCMP_OK) {
        fail_msg("%s: in: %s", parsed.error.message, script);
    }
    const struct gcmp_lint_setting *x = gcmp_lint_find(&parsed.source, GCMP_LINT_ENV, "X");
    snprintf(found, sizeof found, "%s%s", value_of(&parsed, GCMP_LINT_ENV, "X"),
             x != NULL && x->is_conditional ? "?" : "");
    if (strcmp(found, value) != 0) {
        fail_msg("X is %s, expected %s, in: %s", found, value, script);
    }
    done(&parsed);
}

/* A launch counts where its function is called, with what is set there. */
static void test_script__functions_run_where_they_are_called(void **state) {
    (void)state;
    env("run() { " RUN "}\nexport X=1\nrun\n", "1");
    env("run(){ torchrun pretrain_gpt.py --a; }; export X=1; run", "1");
    env("export X=1\nrun() { " RUN "}\nexport X=2\nrun\nexport X=3\n", "2");
    env("function run { " RUN "}\nexport X=1\nrun\n", "1");
    env("function run() {\n" RUN "}\nexport X=1\nrun\n", "1");
    env("run ()\n{\n" RUN "}\nexport X=1\nrun\n", "1");
    env("run() (\n" RUN ")\nexport X=1\nrun\n", "1");
    env("set_it() { export X=1; }\n" RUN, "(not set)");
    env("set_it() { export X=1; }\nset_it\n" RUN, "1");
    env("a() { export X=1; }\nb() { a; }\nb\n" RUN, "1");
    env("a() { b() { export X=1; }; }\na\nb\n" RUN, "1");
    env("main() { if true; then echo '}'; fi; # }\ncat <<E\n}\nE\n" RUN
        "}\nexport X=1\nmain \"$@\"\n",
        "1");
    env("f() { case $1 in a) echo;; esac\n" RUN "}\nexport X=1\nf\n", "1");
    env("f() { A=${B}; { export X=1; }; }\nf\n" RUN, "1");
    env("f() { \"$@\"; }\nexport X=1\nf " RUN "export X=2\n", "1");
    env("run() { " RUN "}\nX=1 run\nexport X=2\n", "1");
    env("export X=1\nf() { local X=2; }\nf\n" RUN, "1");
    env("export X=1\nf() { local X=2\n" RUN "}\nf\n", "2");
    env("export X=1\nf() { declare -g X=2; }\nf\n" RUN, "2");
    env("export X=1\nnever() { " RUN "}\nexport X=2\n", "2");
    env("f() { export X=1; f; g; }\ng() { f; }\nf\n" RUN, "1");
    env("f() { export X=1; }\nf() { export X=2; }\nf\n" RUN, "2");
}

static void test_script__what_only_a_branch_sets_is_told(void **state) {
    (void)state;
    branch("if a; then export X=1; fi\n" RUN, "1?");
    branch("export X=0\nif a; then export X=1; fi\n" RUN, "1?");
    branch("export X=0\nif a; then X=1; else X=2; fi\n" RUN, "2?");
    branch("export X=1\nif a; then X=1; fi\n" RUN, "1");
    branch("if a; then export X=1; fi\nexport X=2\n" RUN, "2");
    branch("if a; then export X=1\n" RUN "fi\n", "1");
    branch("if a; then export X=1; if b; then export X=2; fi\n" RUN "fi\n", "2?");
    branch("if a; then if b; then export X=1; fi; fi\n" RUN, "1?");
    branch("X=1\nif a; then export X; fi\n" RUN, "1?");
    branch("export X=1\nif a; then unset X; fi\n" RUN, "1?");
    branch("if a; then V=1; fi\nexport X=$V\n" RUN, "1?");
    branch("if a; then V=1; fi\nexport X=a${V}b\n" RUN, "a1b?");
    branch("case $V in\na) export X=1;;\nesac\n" RUN, "1?");
    branch("case $V in\n(a) export X=1;;\n*) ;;\nesac\n" RUN, "1?");
    branch("while a; do export X=1; done\n" RUN, "1?");
    branch("[ -n \"$A\" ] && export X=1\n" RUN, "1?");
    branch("[[ -n $A ]] && { export X=1; }\n" RUN, "1?");
    branch("[ -n \"$A\" ] ||\n  export X=1\n" RUN, "1?");
    branch("cd a && export X=1\n" RUN, "1");
    branch("export X=1 && " RUN, "1");
    branch("[ a ] && true; export X=1\n" RUN, "1");
    branch("f() { export X=1; }\nif a; then f; fi\n" RUN, "1?");
    branch("f() { if a; then export X=1; fi; }\nf\n" RUN, "1?");
    branch("for i in 1 2; do if a; then b; fi; done\nexport X=1\n" RUN, "1");
    branch("(export X=1)\n" RUN, "(not set)");
    branch("(export X=1; " RUN ")\n", "1");
}

static void test_script__arguments_of_branches_are_told(void **state) {
    (void)state;
    static const struct {
        const char *script;
        bool is_seed_conditional, is_replaced;
    } cases[] = {{"A=\"--a\"\nif a; then A=\"$A --seed 7\"; fi\n", true, false},
                 {"A=\"--seed 7\"\nif a; then A=\"$A --a\"; fi\n", false, false},
                 {"A=\"--seed 7\"\nif a; then A=\"--a $A\"; fi\n", false, false},
                 {"A=\"--seed 7\"\nif a; then A+=\" --a\"; fi\n", false, false},
                 {"A=(--seed 7)\nif a; then A+=(--a); fi\n", false, false},
                 {"A=(--a)\nif a; then A+=(--seed 7); fi\n", true, false},
                 {"A=\"--b\"\nif a; then A=\"--seed 7\"; fi\n", true, true},
                 {"A=\"--b\"\nif a; then A=; fi\nA=\"$A --seed 7\"\n", false, true},
                 {"A=(--b --c)\nif a; then A=(--b); fi\nA+=(--seed 7)\n", false, true},
                 {"S=6\nif a; then S=7; fi\nA=\"--seed $S\"\n", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parsed parsed;
        char script[300];
        snprintf(script, sizeof script, "%storchrun pretrain.py %s\n", cases[i].script,
                 strchr(cases[i].script, '(') != NULL ? "\"${A[@]}\"" : "$A");
        parse(&parsed, script);
        const struct gcmp_lint_setting *seed =
            gcmp_lint_find(&parsed.source, GCMP_LINT_ARG, "seed");
        bool is_replaced = parsed.source.conditional_argument != NULL;
        if (seed == NULL || strcmp(seed->text, "7") != 0 ||
            seed->is_conditional != cases[i].is_seed_conditional ||
            is_replaced != cases[i].is_replaced) {
            fail_msg("seed %s%s, %s, in: %s", seed == NULL ? "(not set)" : seed->text,
                     seed != NULL && seed->is_conditional ? "?" : "",
                     is_replaced ? "replaced" : "not replaced", script);
        }
        done(&parsed);
    }
}

/* Functions that call each other: 10^16 runs that nobody asked for. */
static void test_script__calls_are_bounded(void **state) {
    (void)state;
    char script[4096];
    int at = 0;
    for (int i = 0; i < 16; i++) {
        at += sprintf(script + at, "f%d() { ", i);
        for (int k = 0; k < 10; k++) {
            at += sprintf(script + at, "f%d; ", i + 1);
        }
        at += sprintf(script + at, "}\n");
    }
    sprintf(script + at, "f0\n");
    struct parsed parsed;
    parse(&parsed, script);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    done(&parsed);
    at = 0;
    for (int i = 0; i < 300; i++) {
        at += sprintf(script + at, "if a;\n");
    }
    parse(&parsed, script);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    done(&parsed);
}

/* Variables that nothing exports take memory too. */
static void test_script__variables_are_counted(void **state) {
    (void)state;
    struct parsed parsed;
    struct gcmp_text text = GCMP_TEXT_INIT;
    for (int i = 0; i <= GCMP_LINT_MAX_SETTINGS; i++) {
        gcmp_text_addf(&text, "v%d=1\n", i);
    }
    gcmp_text_add(&text, RUN);
    parse(&parsed, text.bytes);
    gcmp_text_free(&text);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    assert_non_null(strstr(parsed.error.message, "more than 65536 variables"));
    done(&parsed);
}

/* Each line doubles the variable: 2^40 bytes that nobody asked for. */
/* A script of a first line, then one line many times, then the launch. */
static void parse_many(struct parsed *parsed, const char *line, size_t times) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_add(&text, "A=(x)\n");
    for (size_t i = 0; i < times; i++) {
        gcmp_text_add(&text, line);
    }
    gcmp_text_add(&text, "torchrun x.py \"${A[@]}\" --seed ${#A[@]}\n");
    parse(parsed, text.bytes);
    gcmp_text_free(&text);
}

/* An array that grows word by word is not copied each time; in branches, where it is, that counts.
 */
static void test_script__arrays_grow_within_bounds(void **state) {
    (void)state;
    struct parsed parsed;
    parse_many(&parsed, "A+=(--y z)\n", 30000);
    assert_int_equal(parsed.status, GRADCMP_OK);
    assert_string_equal(value_of(&parsed, GCMP_LINT_ARG, "y"), "z");
    assert_true(parsed.arena.used_bytes < 24 << 20);
    done(&parsed);
    parse_many(&parsed, "if a; then A+=(--y z); fi\n", 30000);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    assert_non_null(strstr(parsed.error.message, "variables expand to more than 32 MiB"));
    assert_true(parsed.arena.used_bytes < 64 << 20);
    done(&parsed);
    /* What a subshell appends is gone behind it, and not in the way of what comes. */
    arg("A=(--a 1)\nA+=(--b 2)\nA+=(--c 3)\n(A+=(--seed 4))\nA+=(--d 5)\ntorchrun x.py "
        "\"${A[@]}\"\n",
        "(not set)");
    arg("A=(x)\nA+=(y)\nif a; then A+=(--seed 4); fi\nB=(\"${A[@]}\")\nA+=(--seed 5)\n"
        "B+=(--seed 6)\ntorchrun x.py \"${B[@]}\"\n",
        "6");
}

static void test_script__expansion_is_bounded(void **state) {
    (void)state;
    char script[2048];
    int at = sprintf(script, "A=0123456789\n");
    for (int i = 0; i < 40; i++) {
        at += sprintf(script + at, "A=$A$A\n");
    }
    struct parsed parsed;
    parse(&parsed, script);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    done(&parsed);
    at = sprintf(script, "A=0123456789\n");
    for (int i = 0; i < 40; i++) {
        at += sprintf(script + at, "A+=$A\n");
    }
    parse(&parsed, script);
    assert_int_equal(parsed.status, GRADCMP_ERROR_LIMIT);
    done(&parsed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script__exports_reach_the_launch),
        cmocka_unit_test(test_script__what_does_not_reach_it_is_not_set),
        cmocka_unit_test(test_script__quotes_and_expansions),
        cmocka_unit_test(test_script__arguments_of_the_program),
        cmocka_unit_test(test_script__what_is_not_known_is_marked),
        cmocka_unit_test(test_script__functions_run_where_they_are_called),
        cmocka_unit_test(test_script__what_only_a_branch_sets_is_told),
        cmocka_unit_test(test_script__arguments_of_branches_are_told),
        cmocka_unit_test(test_script__calls_are_bounded),
        cmocka_unit_test(test_script__counts_assignments_and_lines),
        cmocka_unit_test(test_script__broken_ones_are_refused_with_a_line),
        cmocka_unit_test(test_script__arrays_grow_within_bounds),
        cmocka_unit_test(test_script__variables_are_counted),
        cmocka_unit_test(test_script__expansion_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
