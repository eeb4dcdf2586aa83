/* Recipes of Megatron's functional tests (model_config.yaml): MODEL_ARGS, MODEL_ARGS_2 and so on
 * are the configurations, each run one or several times into repeat_R_key_KEY. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/runs.h"
#include "base/search.h"
#include "base/text.h"
#include "sweep.h"

static const char KEY_PREFIX[] = "MODEL_ARGS";

/* A recipe while its runs are looked for. */
struct recipe {
    struct gcmp_roster *roster;
    const struct gcmp_yaml *root;
    const char *folder;  /* of the runs */
    const char **others; /* paths of checkpoints that are no runs of it */
    size_t other_count;
};

static bool is_configuration(const char *name) {
    return strncmp(name, KEY_PREFIX, strlen(KEY_PREFIX)) == 0;
}

/* The place of the configuration that a folder's KEY stands for: the key itself ("MODEL_ARGS_2"),
 * or its number ("2"; the first is 1, and may be left empty). SIZE_MAX: none. */
static size_t place_of(const struct gcmp_yaml *root, const char *key) {
    char numbered[sizeof KEY_PREFIX + 64];
    bool is_first = strcmp(key, "1") == 0 || key[0] == '\0';
    snprintf(numbered, sizeof numbered, "%s%s%.60s", KEY_PREFIX, is_first ? "" : "_",
             is_first ? "" : key);
    const char *name = is_configuration(key) ? key : numbered;
    for (size_t i = 0; i < root->count; i++) {
        if (strcmp(root->keys[i]->text, name) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Take a part of a path apart that is "repeat_R_key_KEY" as a whole; false for any other. */
static bool read_part(struct gcmp_arena *arena, const char *part, uint64_t *repeat,
                      const char **key) {
    char *end;
    if (strncmp(part, "repeat_", strlen("repeat_")) != 0 ||
        !isdigit((unsigned char)part[strlen("repeat_")])) {
        return false;
    }
    *repeat = strtoull(part + strlen("repeat_"), &end, 10);
    if (strncmp(end, "_key_", strlen("_key_")) != 0) {
        return false;
    }
    end += strlen("_key_");
    *key = gcmp_arena_text(arena, end, strcspn(end, "/"));
    return *key != NULL;
}

/* Read the innermost folder "repeat_R_key_KEY" around a checkpoint, up to that of all runs, which
 * may be one itself. False where there is none. */
static bool read_folder(const struct recipe *recipe, const char *path, uint64_t *repeat,
                        const char **key) {
    size_t around = strlen(recipe->folder);
    bool is_below = strncmp(path, recipe->folder, around) == 0;
    size_t least = is_below ? around : 0, at = strlen(path);
    while (at > 0) {
        bool was_below = at > least;
        while (at > 0 && path[at - 1] != '/') {
            at--;
        }
        if (read_part(recipe->roster->arena, path + at, repeat, key)) {
            return true;
        }
        if (!was_below) {
            return false;
        }
        while (at > 0 && path[at - 1] == '/') {
            at--;
        }
    }
    return false;
}

static enum gradcmp_status add_run(struct recipe *recipe, const char *path,
                                   struct gradcmp_error *error) {
    struct gcmp_entry entry = {.path = path};
    if (!read_folder(recipe, path, &entry.repeat, &entry.key)) {
        recipe->others[recipe->other_count++] = path;
        return GRADCMP_OK;
    }
    entry.place = place_of(recipe->root, entry.key);
    if (entry.place == SIZE_MAX) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "key \"%s\": %s has no such arguments", entry.key, recipe->roster->plan);
    }
    entry.key = recipe->root->keys[entry.place]->text;
    entry.arguments = recipe->root->items[entry.place];
    return gcmp_roster_add(recipe->roster, &entry, error);
}

static bool has_run(const struct gcmp_roster *roster, size_t place) {
    for (size_t i = 0; i < roster->count; i++) {
        if (roster->entries[i].place == place) {
            return true;
        }
    }
    return false;
}

/* Note each configuration that has no run: nothing is known of it. */
static enum gradcmp_status note_absent(const struct recipe *recipe, struct gradcmp_error *error) {
    struct gcmp_roster *roster = recipe->roster;
    const struct gcmp_yaml *root = recipe->root;
    roster->absent = gcmp_arena_alloc(roster->arena, root->count, sizeof *roster->absent);
    if (roster->absent == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < root->count; i++) {
        const char *name = root->keys[i]->text;
        if (!is_configuration(name) || has_run(roster, i)) {
            continue;
        }
        const char *rest = name + strlen(KEY_PREFIX);
        const char *text = gcmp_arena_format(
            roster->arena,
            "no run: nothing is known of this configuration; expected a checkpoint in a folder "
            "repeat_R_key_%s%s%s",
            name, rest[0] == '\0' || rest[0] == '_' ? " or repeat_R_key_" : "",
            rest[0] == '\0'  ? "1"
            : rest[0] == '_' ? rest + 1
                             : "");
        if (text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        roster->absent[roster->absent_count++] = (struct gradcmp_sweep_absent){name, text};
    }
    return GRADCMP_OK;
}

static int order_entries(const void *x, const void *y) {
    const struct gcmp_entry *p = x, *q = y;
    if (p->place != q->place) {
        return p->place < q->place ? -1 : 1;
    }
    return p->repeat < q->repeat ? -1 : p->repeat > q->repeat ? 1 : strcmp(p->path, q->path);
}

/* A recipe has no place of its own for what is wrong in it: every configuration is a mapping. */
static enum gradcmp_status check_root(const struct gcmp_roster *roster,
                                      const struct gcmp_yaml *root, struct gradcmp_error *error) {
    for (size_t i = 0; i < root->count; i++) {
        if (is_configuration(root->keys[i]->text) && root->items[i]->kind != GCMP_YAML_MAPPING) {
            GCMP_YAML_FAIL(error, roster->plan, root->items[i],
                           "%s: expected a mapping of arguments", root->keys[i]->text);
        }
    }
    return GRADCMP_OK;
}

/* True where a path is that of a folder, or lies in it. */
static bool is_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* True for the path of a folder of a run in which no checkpoint was found. */
static bool is_empty_run(const struct recipe *recipe, const char *path) {
    const struct gcmp_roster *roster = recipe->roster;
    uint64_t repeat;
    const char *key;
    bool has_one = !read_part(roster->arena, strrchr(path, '/') + 1, &repeat, &key) ||
                   place_of(recipe->root, key) == SIZE_MAX;
    for (size_t i = 0; i < roster->alias_count && !has_one; i++) {
        has_one = is_in(roster->aliases[i].path, path);
    }
    for (size_t i = 0; i < roster->count && !has_one; i++) {
        has_one = is_in(roster->entries[i].path, path);
    }
    return !has_one;
}

/* Note runs that saved nothing, of configurations that have others. */
static enum gradcmp_status note_empty(const struct recipe *recipe, struct gradcmp_error *error) {
    struct gcmp_dir *dir = NULL;
    struct gcmp_name_list empty = {0};
    char **names = NULL;
    size_t count = 0;
    GCMP_TRY(gcmp_dir_open(recipe->folder, &dir, error));
    enum gradcmp_status status = GRADCMP_OK;
    if (!gcmp_dir_is_file(dir, NULL)) {
        status = gcmp_dir_list(dir, "", GCMP_SEARCH_MAX_NAMES, &names, &count, error);
    }
    for (size_t i = 0; status == GRADCMP_OK && i < count; i++) {
        char *path = gcmp_join_names(gcmp_dir_path(dir), names[i]);
        if (path != NULL && !(gcmp_dir_has_dir(dir, names[i]) && is_empty_run(recipe, path))) {
            free(path);
            continue;
        }
        status = gcmp_name_list_add(&empty, path, error);
    }
    if (status == GRADCMP_OK) {
        status =
            gcmp_roster_leave_all_out(recipe->roster, "run", "without a checkpoint", &empty, error);
    }
    gcmp_dir_free_names(names, count);
    gcmp_name_list_free(&empty);
    gcmp_dir_close(dir);
    return status;
}

/* Add the runs among what was found, and note what is none. */
static enum gradcmp_status add_runs(struct recipe *recipe, const struct gcmp_runs *runs,
                                    struct gradcmp_error *error) {
    struct gcmp_roster *roster = recipe->roster;
    recipe->others = gcmp_arena_alloc(roster->arena, runs->found.count, sizeof *recipe->others);
    if (recipe->others == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < runs->found.count; i++) {
        GCMP_TRY(add_run(recipe, runs->found.names[i], error));
    }
    return gcmp_roster_leave_out(roster,
                                 &(struct gcmp_left_out){"checkpoint",
                                                         "in no folder repeat_R_key_KEY",
                                                         recipe->others, recipe->other_count},
                                 error);
}

enum gradcmp_status gcmp_recipe_read(struct gcmp_roster *roster, const struct gcmp_yaml *root,
                                     const char *folder, struct gradcmp_error *error) {
    struct gcmp_runs runs;
    struct recipe recipe = {
        .roster = roster, .root = root, .folder = folder[0] == '\0' ? "." : folder};
    GCMP_TRY(check_root(roster, root, error));
    GCMP_TRY(gcmp_roster_look(roster, recipe.folder, &runs, error));
    enum gradcmp_status status = add_runs(&recipe, &runs, error);
    gcmp_runs_free(&runs);
    GCMP_TRY(status);
    if (roster->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, recipe.folder, GRADCMP_NO_OFFSET,
                     "no checkpoint in a folder repeat_R_key_KEY; give the folder of the runs: "
                     "gradcmp sweep --plan %s DIR",
                     roster->plan);
    }
    GCMP_TRY(note_absent(&recipe, error));
    GCMP_TRY(note_empty(&recipe, error));
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
    if (!gcmp_arena_grow(findings->arena, &findings->lines, findings->count, &findings->capacity,
                         sizeof *findings->lines)) {
        findings->failed = true;
        return;
    }
    findings->failed = findings->failed || line == NULL;
    findings->lines[findings->count++] = line;
}

/* True for a key that is the name of an argument, whose words a dash or an underscore joins. */
static bool is_argument(const char *key, const char *name) {
    size_t k = 0;
    while (name[k] != '\0' && (key[k] == name[k] || (key[k] == '_' && name[k] == '-'))) {
        k++;
    }
    return name[k] == '\0' && key[k] == '\0';
}

/* Find an argument as a recipe writes it: "--tensor-model-parallel-size". */
static const struct gcmp_yaml *find_argument(const struct gcmp_yaml *arguments, const char *name) {
    for (size_t i = 0; i < arguments->count; i++) {
        const char *key = arguments->keys[i]->text;
        if (is_argument(key + strspn(key, "-"), name)) {
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
        if (is_argument(catalogue->settings[i].name, name)) {
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
