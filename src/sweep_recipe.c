/* Recipes of Megatron's functional tests (model_config.yaml): MODEL_ARGS, MODEL_ARGS_2 and so on
 * are the configurations, each run one or several times into repeat_R_key_KEY. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/locate.h"
#include "base/text.h"
#include "sweep.h"

static const char KEY_PREFIX[] = "MODEL_ARGS";

/* The arguments that a folder's KEY stands for: the key itself ("MODEL_ARGS_2"), or its number
 * ("2"; the first is 1, and may be left empty). NULL: none. */
static const struct gcmp_yaml *arguments_of(const struct gcmp_yaml *root, const char *key) {
    char name[sizeof KEY_PREFIX + 64];
    if (strncmp(key, KEY_PREFIX, strlen(KEY_PREFIX)) == 0) {
        return gcmp_yaml_get(root, key);
    }
    if (strcmp(key, "1") == 0 || key[0] == '\0') {
        return gcmp_yaml_get(root, KEY_PREFIX);
    }
    snprintf(name, sizeof name, "%s_%.60s", KEY_PREFIX, key);
    return gcmp_yaml_get(root, name);
}

/* Take "repeat_R_key_KEY" apart: the part of a path that begins so. False where there is none. */
static bool read_folder(struct gcmp_arena *arena, const char *path, uint64_t *repeat,
                        const char **key) {
    const char *at = strstr(path, "repeat_");
    char *end;
    if (at == NULL || !isdigit((unsigned char)at[strlen("repeat_")])) {
        return false;
    }
    *repeat = strtoull(at + strlen("repeat_"), &end, 10);
    if (strncmp(end, "_key_", strlen("_key_")) != 0) {
        return false;
    }
    end += strlen("_key_");
    *key = gcmp_arena_text(arena, end, strcspn(end, "/"));
    return *key != NULL;
}

static enum gradcmp_status add_run(struct gcmp_roster *roster, const struct gcmp_yaml *root,
                                   const char *path, struct gradcmp_error *error) {
    struct gcmp_entry entry = {.path = path};
    if (!read_folder(roster->arena, path, &entry.repeat, &entry.key)) {
        return GRADCMP_OK; /* something else that lies there */
    }
    entry.arguments = arguments_of(root, entry.key);
    if (entry.arguments == NULL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "key \"%s\": %s has no such arguments", entry.key, roster->plan);
    }
    return gcmp_roster_add(roster, &entry, error);
}

static int order_entries(const void *x, const void *y) {
    const struct gcmp_entry *p = x, *q = y;
    int order = strcmp(p->key, q->key);
    if (order != 0) {
        return order;
    }
    return p->repeat < q->repeat ? -1 : p->repeat > q->repeat ? 1 : strcmp(p->path, q->path);
}

/* A recipe has no place of its own for what is wrong in it: every configuration is a mapping. */
static enum gradcmp_status check_root(const struct gcmp_roster *roster,
                                      const struct gcmp_yaml *root, struct gradcmp_error *error) {
    for (size_t i = 0; i < root->count; i++) {
        bool is_arguments = strncmp(root->keys[i]->text, KEY_PREFIX, strlen(KEY_PREFIX)) == 0;
        if (is_arguments && root->items[i]->kind != GCMP_YAML_MAPPING) {
            GCMP_YAML_FAIL(error, roster->plan, root->items[i],
                           "%s: expected a mapping of arguments", root->keys[i]->text);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_recipe_read(struct gcmp_roster *roster, const struct gcmp_yaml *root,
                                     const char *folder, struct gradcmp_error *error) {
    struct gcmp_runs runs;
    GCMP_TRY(check_root(roster, root, error));
    GCMP_TRY(gcmp_locate_runs(folder[0] == '\0' ? "." : folder, roster->options.iteration, &runs,
                              error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < runs.count && status == GRADCMP_OK; i++) {
        status = add_run(roster, root, runs.paths[i], error);
    }
    gcmp_roster_warn_of_links(roster, &runs);
    gcmp_runs_free(&runs);
    GCMP_TRY(status);
    if (roster->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, folder[0] == '\0' ? "." : folder,
                     GRADCMP_NO_OFFSET,
                     "no checkpoint in a folder repeat_R_key_KEY; give the folder of the runs: "
                     "gradcmp sweep --plan %s DIR",
                     roster->plan);
    }
    qsort(roster->entries, roster->count, sizeof *roster->entries, order_entries);
    return GRADCMP_OK;
}

/* --- did the run do what its configuration says? --- */

/* Findings while they gather. */
struct findings {
    struct gcmp_arena *arena;
    const char **lines;
    size_t count, capacity;
    bool failed;
};

static void add_line(struct findings *findings, const char *line) {
    if (findings->count == findings->capacity) {
        size_t capacity = findings->capacity == 0 ? 8 : 2 * findings->capacity;
        const char **moved = gcmp_arena_alloc(findings->arena, capacity, sizeof *moved);
        if (moved == NULL) {
            findings->failed = true;
            return;
        }
        if (findings->count > 0) {
            memcpy(moved, findings->lines, findings->count * sizeof *moved);
        }
        findings->lines = moved;
        findings->capacity = capacity;
    }
    findings->failed = findings->failed || line == NULL;
    findings->lines[findings->count++] = line;
}

/* Find an argument as a recipe writes it: "--tensor-model-parallel-size". */
static const struct gcmp_yaml *find_argument(const struct gcmp_yaml *arguments, const char *name) {
    for (size_t i = 0; i < arguments->count; i++) {
        const char *key = arguments->keys[i]->text;
        key += strspn(key, "-");
        size_t k = 0;
        while (name[k] != '\0' && (key[k] == name[k] || (key[k] == '_' && name[k] == '-'))) {
            k++;
        }
        if (name[k] == '\0' && key[k] == '\0') {
            return arguments->items[i];
        }
    }
    return NULL;
}

/* A number, also one that stands in quotes. */
static bool read_number(const struct gcmp_yaml *node, double *out) {
    const struct gcmp_yaml plain = {.kind = GCMP_YAML_SCALAR, .is_plain = true, .text = node->text};
    return node->kind == GCMP_YAML_SCALAR && gcmp_yaml_real(&plain, out);
}

static void check_size(struct findings *findings, const struct gcmp_yaml *arguments,
                       const char *name, uint64_t found) {
    const struct gcmp_yaml *node = find_argument(arguments, name);
    double wanted;
    if (node == NULL || found == 0 || !read_number(node, &wanted) || wanted == (double)found) {
        return;
    }
    add_line(findings, gcmp_arena_format(findings->arena,
                                         "--%s is %s in the configuration, the checkpoint has %llu",
                                         name, node->text, (unsigned long long)found));
}

static const struct gradcmp_setting *find_setting(const struct gradcmp_catalogue *catalogue,
                                                  const char *name) {
    for (size_t i = 0; i < catalogue->setting_count; i++) {
        const char *have = catalogue->settings[i].name;
        size_t k = 0;
        while (name[k] != '\0' && (have[k] == name[k] || (have[k] == '_' && name[k] == '-'))) {
            k++;
        }
        if (name[k] == '\0' && have[k] == '\0') {
            return &catalogue->settings[i];
        }
    }
    return NULL;
}

static bool setting_number(const struct gradcmp_setting *setting, double *out) {
    switch (setting->kind) {
    case GRADCMP_SETTING_BOOL:
    case GRADCMP_SETTING_INT:
        *out = (double)setting->integer;
        return true;
    case GRADCMP_SETTING_FLOAT:
        *out = setting->number;
        return true;
    default:
        return false;
    }
}

/* What an argument asks for as a number: true is 1. */
static bool argument_number(const struct gcmp_yaml *node, double *out) {
    bool flag;
    if (gcmp_yaml_bool(node, &flag)) {
        *out = flag ? 1.0 : 0.0;
        return true;
    }
    return read_number(node, out);
}

static void check_setting(struct findings *findings, const struct gcmp_yaml *arguments,
                          const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gcmp_yaml *node = find_argument(arguments, name);
    const struct gradcmp_setting *setting = find_setting(catalogue, name);
    double wanted, found;
    if (node == NULL || setting == NULL || !argument_number(node, &wanted) ||
        !setting_number(setting, &found) || wanted == found) {
        return;
    }
    add_line(findings,
             gcmp_arena_format(findings->arena, "--%s is %s in the configuration, the run had %.9g",
                               name, node->text, found));
}

/* What makes the gradients of two runs different by right: value expected, and why. */
static void check_comparable(struct findings *findings, const struct gradcmp_catalogue *catalogue) {
    static const struct {
        const char *name, *why;
    } zeros[] = {{"attention-dropout", "each layout draws other elements to drop"},
                 {"hidden-dropout", "each layout draws other elements to drop"}};
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        const struct gradcmp_setting *setting = find_setting(catalogue, zeros[i].name);
        double found;
        if (setting != NULL && setting_number(setting, &found) && found != 0.0) {
            add_line(findings, gcmp_arena_format(findings->arena, "--%s was %.9g, expected 0: %s",
                                                 zeros[i].name, found, zeros[i].why));
        }
    }
}

enum gradcmp_status gcmp_recipe_check(struct gcmp_arena *arena, const struct gcmp_yaml *arguments,
                                      const struct gradcmp_catalogue *catalogue,
                                      const char ***found, size_t *count,
                                      struct gradcmp_error *error) {
    static const char *const settings[] = {"seed",
                                           "global-batch-size",
                                           "micro-batch-size",
                                           "seq-length",
                                           "hidden-size",
                                           "ffn-hidden-size",
                                           "num-experts",
                                           "adam-beta1",
                                           "adam-beta2",
                                           "clip-grad",
                                           "bf16",
                                           "fp16",
                                           "hidden-dropout",
                                           "attention-dropout",
                                           "sequence-parallel"};
    struct findings findings = {.arena = arena};
    const struct gradcmp_parallel *parallel = &catalogue->parallel;
    check_size(&findings, arguments, "num-layers", catalogue->layers);
    check_size(&findings, arguments, "tensor-model-parallel-size", parallel->tp);
    check_size(&findings, arguments, "pipeline-model-parallel-size", parallel->pp);
    check_size(&findings, arguments, "context-parallel-size", parallel->cp);
    check_size(&findings, arguments, "expert-model-parallel-size", parallel->ep);
    check_size(&findings, arguments, "expert-tensor-parallel-size", parallel->etp);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        check_setting(&findings, arguments, catalogue, settings[i]);
    }
    check_comparable(&findings, catalogue);
    if (findings.failed) {
        GCMP_FAIL_MEMORY(error);
    }
    *found = findings.lines;
    *count = findings.count;
    return GRADCMP_OK;
}
