/* Commands that start programs: which of them starts the training, with what arguments, and what is
 * passed on to it. */
#include "lint/script.h"

#include <stdlib.h>
#include <string.h>

#include "lint/rules.h"

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool is_launcher(const char *word) {
    static const char *const words[] = {"torchrun", "deepspeed", "accelerate", "msrun", NULL};
    const char *name = base_name(word);
    return gcmp_script_is_one_of(name, words) || strncmp(name, "python", 6) == 0;
}

bool gcmp_script_ends_in(const char *word, const char *ending) {
    size_t count = strlen(word), end = strlen(ending);
    return count > end && strcmp(word + count - end, ending) == 0;
}

/* What is printed or looked for is not started. */
static bool is_talk(const char *head) {
    static const char *const words[] = {"echo", "printf", "which", "type", "cat",  "grep", "alias",
                                        "pip",  "pip3",   "conda", "for",  "case", "kill", "pkill",
                                        "test", "[",      "[[",    "ls",   "cd",   NULL};
    return gcmp_script_is_one_of(head, words);
}

/* Find the training program among the words: a .py file, or the module behind -m that is no
 * launcher itself. Returns its index, or the count. */
static size_t find_program(const struct gcmp_shell_words *words, size_t from) {
    for (size_t i = from; i < words->count; i++) {
        const char *word = words->items[i].value;
        bool is_module = i > from && strcmp(words->items[i - 1].value, "-m") == 0;
        if (is_module && (strncmp(word, "torch.distributed", 17) == 0 ||
                          strcmp(word, "accelerate.commands.launch") == 0)) {
            continue;
        }
        if (gcmp_script_ends_in(word, ".py") || is_module) {
            return i;
        }
        if (i > from && strcmp(words->items[i - 1].value, "-c") == 0) {
            return words->count; /* a program in a word */
        }
    }
    return words->count;
}

static unsigned score_of(const struct gcmp_shell_words *words, size_t program) {
    const char *name = base_name(words->items[program].value);
    unsigned score = 1;
    for (size_t i = program + 1; i < words->count; i++) {
        score += strncmp(words->items[i].value, "--", 2) == 0;
    }
    for (size_t i = 0; i < program; i++) {
        const char *word = base_name(words->items[i].value);
        score += strcmp(word, "torchrun") == 0 || strcmp(word, "deepspeed") == 0 ||
                         strncmp(word, "torch.distributed", 17) == 0
                     ? 2000
                     : 0;
    }
    return score + (strstr(name, "train") != NULL || strstr(name, "finetune") != NULL ? 4000 : 0);
}

void gcmp_script_fill_setting(struct gcmp_shell *shell, const char *value, uint64_t line,
                              struct gcmp_lint_setting *out) {
    out->text = gcmp_shell_text_of(shell, value);
    out->is_unresolved = strchr(value, GCMP_SHELL_UNKNOWN) != NULL;
    out->is_defaulted = strchr(value, GCMP_SHELL_DEFAULT) != NULL;
    out->is_conditional = out->is_conditional || strchr(value, GCMP_SHELL_CONDITIONAL) != NULL;
    out->raw = out->is_unresolved || out->is_defaulted ? gcmp_shell_raw_of(shell, value) : NULL;
    out->line = line;
}

/* Remember the environment at this moment: what is exported, then what holds for this command. */
enum gradcmp_status gcmp_script_keep_env(struct gcmp_script *script,
                                         struct gcmp_script_launch *launch) {
    struct gcmp_shell *shell = &script->shell;
    size_t most = shell->variable_count + script->prefix.count;
    launch->env = gcmp_arena_alloc(shell->arena, most, sizeof *launch->env);
    if (launch->env == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < shell->variable_count; i++) {
        const struct gcmp_shell_variable *variable = &shell->variables[i];
        if (variable->is_set && variable->is_exported && variable->count > 0) {
            struct gcmp_lint_setting *setting = &launch->env[launch->env_count++];
            *setting = (struct gcmp_lint_setting){.kind = GCMP_LINT_ENV, .name = variable->name};
            setting->is_conditional = variable->is_export_conditional;
            gcmp_script_fill_setting(shell, variable->values[0], variable->line, setting);
            setting->times = variable->times;
        }
    }
    for (size_t i = 0; i < script->prefix.count; i++) {
        const struct gcmp_shell_word *word = &script->prefix.items[i];
        struct gcmp_lint_setting *setting = &launch->env[launch->env_count++];
        *setting =
            (struct gcmp_lint_setting){.kind = GCMP_LINT_ENV, .name = word->name, .times = 1};
        setting->is_unset = word->value == NULL;
        gcmp_script_fill_setting(shell, word->value == NULL ? "" : word->value, word->line,
                                 setting);
    }
    return GRADCMP_OK;
}

/* What a training program scores, at least. */
enum { SCORE_RANK = 2000 };

static bool is_same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* The last that a launch says of a variable that matters; NULL: nothing. */
static const struct gcmp_lint_setting *find_env(const struct gcmp_script_launch *launch,
                                                const char *name) {
    const struct gcmp_lint_setting *found = NULL;
    for (size_t i = 0; i < launch->env_count; i++) {
        found = strcmp(launch->env[i].name, name) == 0 ? &launch->env[i] : found;
    }
    return found == NULL || found->is_unset ? NULL : found;
}

/* True where all variables that a launch is judged by are the same in another. */
static bool has_env_of(const struct gcmp_script_launch *a, const struct gcmp_script_launch *b) {
    for (size_t i = 0; i < a->env_count; i++) {
        const char *name = a->env[i].name;
        if (!gcmp_lint_is_relevant(GCMP_LINT_ENV, name)) {
            continue;
        }
        const struct gcmp_lint_setting *one = find_env(a, name), *other = find_env(b, name);
        if ((one == NULL) != (other == NULL) ||
            (one != NULL && !is_same_text(one->text, other->text))) {
            return false;
        }
    }
    return true;
}

static bool is_same_launch(const struct gcmp_script_launch *a, const struct gcmp_script_launch *b) {
    bool same = is_same_text(a->program, b->program) && a->argument_count == b->argument_count;
    for (size_t i = 0; same && i < a->argument_count; i++) {
        same = strcmp(a->arguments[i].value, b->arguments[i].value) == 0;
    }
    return same && has_env_of(a, b) && has_env_of(b, a);
}

/* Tell of a launch that is as good as the one that is judged, and is not. */
static void doubt_launch(struct gcmp_script *script, const struct gcmp_script_launch *dropped,
                         const struct gcmp_script_launch *kept) {
    unsigned rank = dropped->score / SCORE_RANK;
    if (rank > 0 && rank >= kept->score / SCORE_RANK && !is_same_launch(dropped, kept)) {
        struct gcmp_shell_word word = {.value = dropped->program, .line = dropped->line};
        gcmp_script_doubt(script, "launch", &word,
                          "the script starts another training with other arguments or variables, "
                          "and this one is not judged");
    }
}

static enum gradcmp_status make_launch(struct gcmp_script *script, size_t program,
                                       struct gcmp_script_launch *launch) {
    struct gcmp_shell *shell = &script->shell;
    const struct gcmp_shell_word *words = script->words.items;
    *launch = (struct gcmp_script_launch){.is_there = true};
    launch->score = score_of(&script->words, program);
    launch->line = words[program].line;
    launch->program = base_name(gcmp_shell_text_of(shell, words[program].value));
    launch->argument_count = script->words.count - program - 1;
    launch->arguments =
        gcmp_arena_alloc(shell->arena, launch->argument_count, sizeof *launch->arguments);
    if (launch->arguments == NULL) {
        GCMP_FAIL_MEMORY(shell->error);
    }
    for (size_t i = 0; i < launch->argument_count; i++) {
        launch->arguments[i] = words[program + 1 + i];
    }
    return gcmp_script_keep_env(script, launch);
}

/* Of several launches the first of those that look most like a training is judged. */
static enum gradcmp_status keep_launch(struct gcmp_script *script, size_t program) {
    struct gcmp_script_launch launch, dropped = script->launch;
    size_t copied = script->shell.variable_count * sizeof(struct gcmp_lint_setting);
    unsigned rank = score_of(&script->words, program) / SCORE_RANK;
    if (dropped.is_there && rank < dropped.score / SCORE_RANK) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_shell_charge(&script->shell, copied, script->words.items[program].line));
    GCMP_TRY(make_launch(script, program, &launch));
    if (dropped.is_there && dropped.score >= launch.score) {
        doubt_launch(script, &launch, &dropped);
        return GRADCMP_OK;
    }
    script->launch = launch;
    if (dropped.is_there) {
        doubt_launch(script, &dropped, &launch);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_script_add_prefix(struct gcmp_script *script,
                                           const struct gcmp_shell_word *word) {
    return gcmp_shell_add_word(&script->shell, &script->prefix, *word);
}

/* NAME=value, or several of them with `comma` between; true where ALL is among them. */
static enum gradcmp_status pass_list(struct gcmp_script *script, const struct gcmp_shell_word *from,
                                     const char *list, char comma, bool *has_all) {
    struct gcmp_shell_word field = *from, word;
    for (char *at = gcmp_arena_dup(script->shell.arena, list); at != NULL;) {
        char *end = comma == '\0' ? NULL : strchr(at, comma);
        if (end != NULL) {
            *end = '\0';
        }
        field.value = at;
        *has_all = *has_all || strcasecmp(at, "ALL") == 0;
        if (gcmp_script_split_field(&script->shell, &field, &word)) {
            GCMP_TRY(gcmp_script_add_prefix(script, &word));
        }
        at = end == NULL ? NULL : end + 1;
    }
    return GRADCMP_OK;
}

/* True where `name` is one of a list with commas. */
static bool is_listed(const char *list, const char *name) {
    size_t count = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, count) == 0 && (at[count] == ',' || at[count] == '\0')) {
            return true;
        }
    }
    return false;
}

/* True for a word that passes the script's own variable on by its name: docker run -e NAME, --env
 * NAME, --env=NAME; srun --export=NAME,OTHER. */
static bool passes_name(const struct gcmp_shell_word *words, size_t i, const char *name) {
    static const char *const options[] = {"-e", "-x", "--env", "--export", NULL};
    static const char *const starts[] = {"--export=", "--env=", NULL};
    for (size_t k = 0; starts[k] != NULL; k++) {
        if (strncmp(words[i].value, starts[k], strlen(starts[k])) == 0) {
            return is_listed(words[i].value + strlen(starts[k]), name);
        }
    }
    return i > 0 && gcmp_script_is_one_of(words[i - 1].value, options) &&
           is_listed(words[i].value, name);
}

/* Count the exported variables that matter, and those of them that no word from words[from] to
 * words[to - 1] passes on by name. */
static size_t count_exported(const struct gcmp_script *script, size_t from, size_t to,
                             size_t *unnamed) {
    size_t count = 0;
    *unnamed = 0;
    for (size_t i = 0; i < script->shell.variable_count; i++) {
        const struct gcmp_shell_variable *variable = &script->shell.variables[i];
        bool is_named = false;
        if (!variable->is_set || !variable->is_exported ||
            !gcmp_lint_is_relevant(GCMP_LINT_ENV, variable->name)) {
            continue;
        }
        for (size_t k = from; k < to && !is_named; k++) {
            is_named = passes_name(script->words.items, k, variable->name);
        }
        count++;
        *unnamed += !is_named;
    }
    return count;
}

/* srun --export=A=b: without ALL, nothing else is passed on. */
static enum gradcmp_status pass_export(struct gcmp_script *script,
                                       const struct gcmp_shell_word *word, const char *list) {
    bool has_all = false;
    size_t unnamed, i = (size_t)(word - script->words.items);
    GCMP_TRY(pass_list(script, word, list, ',', &has_all));
    bool has_named = count_exported(script, i, i + 1, &unnamed) > 0 && unnamed == 0;
    if (!has_all && !has_named) {
        gcmp_script_doubt(script, "--export", word,
                          "without ALL the script's other variables are not passed on");
    }
    return GRADCMP_OK;
}

/* The option at words[i], with what follows it, passes variables on: mpirun -x A=b, -genv A b,
 * docker run -e A=b, --env A=b, srun --export ALL,A=b, bsub -env "all, A=b". `has_commas`: --env
 * takes several, as apptainer's does. */
static enum gradcmp_status take_option(struct gcmp_script *script, size_t i, bool has_commas) {
    static const char *const one[] = {"-x", "-e", "--env", NULL};
    static const char *const pair[] = {"-env", "-genv", "--genv", NULL};
    static const char *const files[] = {"--env-file", "-env-file", "--envfile", NULL};
    const struct gcmp_shell_word *word = &script->words.items[i];
    const char *next = i + 1 < script->words.count ? word[1].value : "";
    const char *equals = strchr(word->value, '=');
    const char comma = has_commas ? ',' : '\0';
    bool unused = false, has_equals = strchr(next, '=') != NULL;
    if (strncmp(word->value, "--export=", 9) == 0) {
        return pass_export(script, word, word->value + 9);
    }
    if (strcmp(word->value, "--export") == 0) {
        return pass_export(script, word + 1, next);
    }
    if (strncmp(word->value, "--env=", 6) == 0) {
        return pass_list(script, word, word->value + 6, comma, &unused);
    }
    if (gcmp_script_is_one_of(word->value, one)) {
        return pass_list(script, word, next, comma, &unused);
    }
    if (strcmp(word->value, "mca_base_env_list") == 0) {
        return pass_list(script, word, next, ';', &unused);
    }
    if (gcmp_script_is_one_of(word->value, pair) && has_equals) {
        return pass_list(script, word, next, ',', &unused);
    }
    if (gcmp_script_is_one_of(word->value, pair) && i + 2 < script->words.count) {
        struct gcmp_shell_word passed = {.name = next, .value = word[2].value, .line = word->line};
        return gcmp_script_add_prefix(script, &passed);
    }
    if (gcmp_script_is_one_of(word->value, files) ||
        (equals != NULL && strncmp(word->value, "--env-file=", 11) == 0)) {
        gcmp_script_doubt(script, "--env-file", equals == NULL ? word + 1 : word,
                          "the variables of that file are not known");
    }
    return GRADCMP_OK;
}

/* Commands behind which a program has other variables than the script's. */
static bool is_elsewhere(const char *head) {
    static const char *const words[] = {"ssh",          "pdsh",   "clush",  "pssh",
                                        "parallel-ssh", "docker", "podman", "nvidia-docker",
                                        "kubectl",      NULL};
    return gcmp_script_is_one_of(base_name(head), words);
}

/* What a launcher of words[from] passes on to words[to], if it is another machine or container. */
static enum gradcmp_status take_passed(struct gcmp_script *script, size_t from, size_t to) {
    struct gcmp_shell *shell = &script->shell;
    const struct gcmp_shell_word *head = &script->words.items[from];
    bool is_elsewhere_too = is_elsewhere(head->value);
    size_t unnamed;
    (void)count_exported(script, from, to, &unnamed);
    if (is_elsewhere_too && unnamed > 0) {
        gcmp_script_doubt(script, "variables", head,
                          "it passes no variables on but those that it is told, and the script "
                          "exports others that matter");
    }
    bool has_commas = false;
    for (size_t i = from; i < to; i++) {
        static const char *const takers[] = {"apptainer", "singularity", NULL};
        has_commas =
            has_commas || gcmp_script_is_one_of(base_name(script->words.items[i].value), takers);
        struct gcmp_shell_word word = script->words.items[i], assigned;
        if (is_elsewhere_too && (i == from || script->words.items[i - 1].value[0] != '-') &&
            gcmp_script_split_field(shell, &word, &assigned)) {
            GCMP_TRY(gcmp_script_add_prefix(script, &assigned));
        }
        GCMP_TRY(take_option(script, i, has_commas));
    }
    return GRADCMP_OK;
}

/* A script in one word behind ssh and its like, and behind what takes one: "cd x; torchrun ...". */
static bool is_script_word(const char *head, const char *word) {
    static const char *const starts[] = {"torchrun", "python", "deepspeed", "accelerate", "msrun"};
    static const char *const takers[] = {"parallel", "tmux", "screen", "sbatch", "qsub", NULL};
    bool runs = is_elsewhere(head) || gcmp_script_is_one_of(base_name(head), takers);
    bool found = false;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        found = found || strstr(word, starts[i]) != NULL;
    }
    return runs && found && word[0] != '-' && strpbrk(word, " \t\n;") != NULL;
}

/* The command that what stands before it only repeats or times: ssh of "xargs -I{} ssh {} ...". */
static size_t skip_wrappers(const struct gcmp_shell_words *words, size_t head) {
    static const char *const wrappers[] = {"xargs", "parallel", "timeout", "time",
                                           "nice",  "stdbuf",   "setsid",  NULL};
    if (!gcmp_script_is_one_of(base_name(words->items[head].value), wrappers)) {
        return head;
    }
    for (size_t i = head + 1; i < words->count; i++) {
        if (is_elsewhere(words->items[i].value)) {
            return i;
        }
    }
    return head;
}

static bool is_relevant_name(const struct gcmp_script *script, const char *at, size_t count) {
    const char *name = gcmp_arena_text(script->shell.arena, at, count);
    return name == NULL || gcmp_lint_is_relevant(GCMP_LINT_ENV, name);
}

/* Doubt texts of commands for elsewhere that are not followed and set a variable that matters. */
static void doubt_texts(struct gcmp_script *script, size_t head) {
    static const char *const options[] = {"-e", "--env", "-o", NULL};
    const struct gcmp_shell_words *words = &script->words;
    for (size_t i = head + 1; is_elsewhere(words->items[head].value) && i < words->count; i++) {
        const char *at = words->items[i].value, *end = at + strlen(at);
        bool is_text = *at != '-' && strpbrk(at, " \t\n;") != NULL &&
                       !gcmp_script_is_one_of(words->items[i - 1].value, options);
        while (is_text && at < end) {
            size_t name_bytes = gcmp_shell_name_bytes(at, end);
            if (name_bytes > 0 && at[name_bytes] == '=' &&
                is_relevant_name(script, at, name_bytes)) {
                gcmp_script_doubt(script, "commands", &words->items[i],
                                  "they run elsewhere, set a variable that matters, and start "
                                  "what is not followed");
                return;
            }
            at += name_bytes > 0 ? name_bytes : 1;
        }
    }
}

enum gradcmp_status gcmp_script_run_program(struct gcmp_script *script, size_t head) {
    const struct gcmp_shell_words *words = &script->words;
    head = skip_wrappers(words, head);
    if (is_talk(base_name(words->items[head].value))) {
        return GRADCMP_OK;
    }
    for (size_t i = head; i < words->count; i++) {
        const char *name = base_name(words->items[i].value);
        bool is_shell = strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0;
        if (is_shell && i + 2 < words->count && words->items[i + 1].value[0] == '-' &&
            strchr(words->items[i + 1].value, 'c') != NULL) {
            GCMP_TRY(take_passed(script, head, i));
            struct gcmp_shell_word inner = words->items[i + 2];
            return gcmp_script_run_nested(script, &inner);
        }
        if (i > head && is_script_word(words->items[head].value, words->items[i].value)) {
            struct gcmp_shell_word inner = words->items[i];
            GCMP_TRY(take_passed(script, head, i));
            return gcmp_script_run_nested(script, &inner);
        }
        if (is_launcher(words->items[i].value) || (i == head && gcmp_script_ends_in(name, ".py"))) {
            size_t program =
                find_program(words, i == head && gcmp_script_ends_in(name, ".py") ? i : i + 1);
            GCMP_TRY(take_passed(script, head, i));
            return program < words->count ? keep_launch(script, program) : GRADCMP_OK;
        }
    }
    doubt_texts(script, head);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_script_run_env(struct gcmp_script *script, size_t head) {
    size_t i = head + 1;
    for (; i < script->words.count; i++) {
        struct gcmp_shell_word word = script->words.items[i];
        if (word.name == NULL && strcmp(word.value, "-u") == 0 && i + 1 < script->words.count) {
            struct gcmp_shell_word gone = {.name = script->words.items[++i].value,
                                           .line = word.line};
            GCMP_TRY(gcmp_script_add_prefix(script, &gone));
        } else if (word.name != NULL || gcmp_script_split_field(&script->shell, &word, &word)) {
            GCMP_TRY(gcmp_script_add_prefix(script, &word));
        } else if (word.value[0] != '-') {
            break;
        }
    }
    return i < script->words.count ? gcmp_script_run_program(script, i) : GRADCMP_OK;
}
