/* Sweep plans: a YAML file that says what is compared with what, and how it is to come out. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/map.h"
#include "base/text.h"
#include "sweep.h"

static const char *const plan_keys[] = {"baseline", "candidates", "bounds", "options", NULL};
static const char *const candidate_keys[] = {"path", "name", "expect", NULL};
static const char *const bound_keys[] = {"k", "C", "max-bound", "dtype", NULL};
static const char *const option_keys[] = {"state",  "match",     "exclude", "vocab",
                                          "layers", "iteration", "strict",  NULL};

/* A plan while it is read. */
struct plan {
    struct gcmp_roster *roster;
    struct gradcmp_options options; /* those that it sets */
    struct gcmp_map *paths;         /* of entries, without slashes at their ends -> the first */
    const char *folder;             /* that relative paths start from */
    struct gcmp_matches *matches;   /* of its patterns */
    struct gradcmp_error *error;
};

#define PLAN_FAIL(plan, node, ...)                                                                 \
    GCMP_YAML_FAIL((plan)->error, (plan)->roster->plan, (node), __VA_ARGS__)

static enum gradcmp_status take_text(const struct plan *plan, const struct gcmp_yaml *node,
                                     const char *what, const char **out) {
    if (node == NULL) {
        return GRADCMP_OK;
    }
    if (node->kind != GCMP_YAML_SCALAR || node->text[0] == '\0' || gcmp_yaml_is_null(node)) {
        PLAN_FAIL(plan, node, "%s: expected text", what);
    }
    *out = node->text;
    return GRADCMP_OK;
}

static enum gradcmp_status take_real(const struct plan *plan, const struct gcmp_yaml *node,
                                     const char *what, double *out) {
    if (node != NULL && (!gcmp_yaml_real(node, out) || !(*out > 0))) {
        PLAN_FAIL(plan, node, "%s: expected a number above 0", what);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_count(const struct plan *plan, const struct gcmp_yaml *node,
                                      const char *what, uint64_t least, uint64_t *out) {
    if (node != NULL && (!gcmp_yaml_count(node, out) || *out < least || *out > INT64_MAX)) {
        PLAN_FAIL(plan, node, "%s: expected a whole number of at least %llu", what,
                  (unsigned long long)least);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_flag(const struct plan *plan, const struct gcmp_yaml *node,
                                     const char *what, int *out) {
    bool flag = false;
    if (node != NULL && !gcmp_yaml_bool(node, &flag)) {
        PLAN_FAIL(plan, node, "%s: expected true or false", what);
    }
    *out = node != NULL ? flag : *out;
    return GRADCMP_OK;
}

static enum gradcmp_status take_dtype(const struct plan *plan, const struct gcmp_yaml *node,
                                      enum gradcmp_dtype *out) {
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
    } names[] = {{"bf16", GRADCMP_DTYPE_BFLOAT16},
                 {"fp16", GRADCMP_DTYPE_FLOAT16},
                 {"fp32", GRADCMP_DTYPE_FLOAT32},
                 {"fp64", GRADCMP_DTYPE_FLOAT64},
                 {"fp8", GRADCMP_DTYPE_FLOAT8_E4M3FN}};
    if (node == NULL) {
        return GRADCMP_OK;
    }
    for (size_t i = 0; node->kind == GCMP_YAML_SCALAR && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(node->text, names[i].name) == 0 ||
            strcmp(node->text, gradcmp_dtype_name(names[i].dtype)) == 0) {
            *out = names[i].dtype;
            return GRADCMP_OK;
        }
    }
    PLAN_FAIL(plan, node, "dtype: expected bf16, fp16, fp32, fp64 or fp8");
}

static enum gradcmp_status take_bounds(struct plan *plan, const struct gcmp_yaml *node) {
    struct gradcmp_options *options = &plan->options;
    if (node == NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_yaml_check_keys(node, plan->roster->plan, "bounds", bound_keys, plan->error));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "k"), "k", &options->k));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "C"), "C", &options->C));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "max-bound"), "max-bound", &options->max_bound));
    return take_dtype(plan, gcmp_yaml_get(node, "dtype"), &options->dtype);
}

static enum gradcmp_status take_options(struct plan *plan, const struct gcmp_yaml *node) {
    struct gradcmp_options *options = &plan->options;
    uint64_t iteration = 0;
    if (node == NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_yaml_check_keys(node, plan->roster->plan, "options", option_keys, plan->error));
    GCMP_TRY(take_text(plan, gcmp_yaml_get(node, "state"), "state", &options->state));
    GCMP_TRY(take_text(plan, gcmp_yaml_get(node, "match"), "match", &options->match));
    GCMP_TRY(take_text(plan, gcmp_yaml_get(node, "exclude"), "exclude", &options->exclude));
    GCMP_TRY(take_count(plan, gcmp_yaml_get(node, "vocab"), "vocab", 1, &options->vocab));
    GCMP_TRY(take_count(plan, gcmp_yaml_get(node, "layers"), "layers", 1, &options->layers));
    GCMP_TRY(take_count(plan, gcmp_yaml_get(node, "iteration"), "iteration", 0, &iteration));
    if (gcmp_yaml_get(node, "iteration") != NULL) {
        options->iteration = (int64_t)iteration;
    }
    return take_flag(plan, gcmp_yaml_get(node, "strict"), "strict", &options->strict);
}

/* What the caller has set wins over the plan, as over a --config: a bound of its own, by a fit or
 * the constant rule, as a whole. */
static void merge_options(struct gradcmp_options *own, const struct gradcmp_options *plan) {
    bool has_bound = own->fit != NULL || own->compat_megatron != 0;
    own->k = own->k != 0.0 || has_bound ? own->k : plan->k;
    own->C = own->C != 0.0 || has_bound ? own->C : plan->C;
    own->max_bound = own->max_bound != 0.0 ? own->max_bound : plan->max_bound;
    own->dtype = own->dtype != GRADCMP_DTYPE_NONE ? own->dtype : plan->dtype;
    own->state = own->state != NULL ? own->state : plan->state;
    own->match = own->match != NULL ? own->match : plan->match;
    own->exclude = own->exclude != NULL ? own->exclude : plan->exclude;
    own->vocab = own->vocab != 0 ? own->vocab : plan->vocab;
    own->layers = own->layers != 0 ? own->layers : plan->layers;
    own->iteration = own->iteration >= 0 ? own->iteration : plan->iteration;
    own->strict = own->strict != 0 ? own->strict : plan->strict;
}

static const char *full_path(const struct plan *plan, const char *path) {
    return path[0] == '/' || plan->folder[0] == '\0'
               ? path
               : gcmp_arena_format(plan->roster->arena, "%s/%s", plan->folder, path);
}

static enum gradcmp_status take_expected(const struct plan *plan, const struct gcmp_yaml *node,
                                         struct gcmp_entry *entry) {
    if (node == NULL) {
        return GRADCMP_OK;
    }
    for (int outcome = GRADCMP_OUTCOME_CONSISTENT; outcome <= GRADCMP_OUTCOME_ERROR; outcome++) {
        const char *name = gradcmp_outcome_name((enum gradcmp_outcome)outcome);
        if (node->kind == GCMP_YAML_SCALAR && strcmp(node->text, name) == 0) {
            entry->has_expected = true;
            entry->expected = (enum gradcmp_outcome)outcome;
            entry->expected_line = node->line;
            return GRADCMP_OK;
        }
    }
    PLAN_FAIL(plan, node, "expect: expected consistent, inconsistent, undecided, vacuous or error");
}

static enum gradcmp_status add_entry(const struct plan *plan, const struct gcmp_entry *entry) {
    struct gcmp_roster *roster = plan->roster;
    GCMP_TRY(gcmp_roster_add(roster, entry, plan->error));
    const char *path = roster->entries[roster->count - 1].path;
    if (gcmp_map_add(plan->paths, path, gcmp_path_bytes(path), roster->count - 1, NULL) ==
        GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(plan->error);
    }
    return GRADCMP_OK;
}

/* Have the plan say more of a checkpoint that it named before; two expectations have to agree. */
static enum gradcmp_status say_more(const struct plan *plan, const struct gcmp_yaml *node,
                                    struct gcmp_entry *entry, const struct gcmp_entry *more) {
    if (more->has_expected && entry->has_expected && more->expected != entry->expected) {
        PLAN_FAIL(plan, node, "%.200s: expected to be %s here, and %s in line %u", entry->path,
                  gradcmp_outcome_name(more->expected), gradcmp_outcome_name(entry->expected),
                  (unsigned)entry->expected_line);
    }
    if (more->has_expected) {
        entry->has_expected = true;
        entry->expected = more->expected;
        entry->expected_line = more->expected_line;
    }
    if (more->label != NULL && !entry->is_named) {
        entry->label = more->label;
        entry->is_named = true;
    }
    return GRADCMP_OK;
}

/* Add one checkpoint, or what the plan says more of it. A path that is named outright is a row of
 * its own under each of its names; what a pattern finds once more is not, and the baseline is none.
 */
static enum gradcmp_status add_path(const struct plan *plan, const struct gcmp_yaml *node,
                                    const struct gcmp_entry *entry, bool is_match) {
    struct gcmp_roster *roster = plan->roster;
    size_t index;
    if (!gcmp_map_find(plan->paths, entry->path, gcmp_path_bytes(entry->path), &index)) {
        return add_entry(plan, entry);
    }
    if (index == roster->baseline) {
        return is_match ? GRADCMP_OK : add_entry(plan, entry);
    }
    struct gcmp_entry *before = &roster->entries[index], other = *entry;
    bool is_other = !is_match && entry->label != NULL && before->is_named &&
                    strcmp(entry->label, before->label) != 0;
    GCMP_TRY(say_more(plan, node, before, entry));
    other.has_expected = before->has_expected;
    other.expected = before->expected;
    other.expected_line = before->expected_line;
    return is_other ? add_entry(plan, &other) : GRADCMP_OK;
}

/* The pattern below the plan's folder, in whose own name nothing is a pattern. */
static const char *full_pattern(const struct plan *plan, const char *pattern) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    bool is_absolute = pattern[0] == '/' || plan->folder[0] == '\0';
    for (const char *c = plan->folder; !is_absolute && *c != '\0'; c++) {
        gcmp_text_addf(&text, strchr("*?[\\", *c) != NULL ? "\\%c" : "%c", *c);
    }
    gcmp_text_add(&text, is_absolute ? "" : "/");
    gcmp_text_add(&text, pattern);
    const char *full = text.failed ? NULL : gcmp_arena_dup(plan->roster->arena, text.bytes);
    gcmp_text_free(&text);
    return full;
}

/* Add what a pattern stands for: existing paths, sorted; a path without a pattern as it is, so that
 * a missing one fails its own row. */
static enum gradcmp_status add_matches(const struct plan *plan, const struct gcmp_yaml *node,
                                       const char *pattern, const struct gcmp_entry *like) {
    bool is_pattern = strpbrk(pattern, "*?[") != NULL;
    const char *path = is_pattern ? full_pattern(plan, pattern) : full_path(plan, pattern);
    if (path == NULL) {
        GCMP_FAIL_MEMORY(plan->error);
    }
    if (!is_pattern) {
        struct gcmp_entry entry = *like;
        entry.path = path;
        return add_path(plan, node, &entry, false);
    }
    struct gcmp_name_list *found = &plan->matches->paths;
    const struct gcmp_name_list *closed = &plan->matches->closed;
    size_t aliases = plan->matches->aliases.count, unopened = closed->count;
    GCMP_TRY(gcmp_match(plan->roster, path, plan->matches, plan->error));
    if (found->count == 0 && plan->matches->aliases.count == aliases) {
        PLAN_FAIL(plan, node, "\"%.200s\": nothing there%s%.200s", pattern,
                  closed->count > unopened ? "; may not be opened: " : "",
                  closed->count > unopened ? closed->names[unopened] : "");
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < found->count && status == GRADCMP_OK; i++) {
        struct gcmp_entry entry = *like;
        entry.path = found->names[i];
        status = add_path(plan, node, &entry, true);
    }
    gcmp_name_list_free(found);
    return status;
}

static enum gradcmp_status take_candidate(const struct plan *plan, const struct gcmp_yaml *node) {
    struct gcmp_entry entry = {0};
    if (node->kind == GCMP_YAML_SCALAR) {
        const char *path = NULL;
        GCMP_TRY(take_text(plan, node, "candidate", &path));
        return add_matches(plan, node, path, &entry);
    }
    const char *path = NULL;
    GCMP_TRY(
        gcmp_yaml_check_keys(node, plan->roster->plan, "candidate", candidate_keys, plan->error));
    GCMP_TRY(take_text(plan, gcmp_yaml_get(node, "path"), "path", &path));
    GCMP_TRY(take_text(plan, gcmp_yaml_get(node, "name"), "name", &entry.label));
    GCMP_TRY(take_expected(plan, gcmp_yaml_get(node, "expect"), &entry));
    if (path == NULL) {
        PLAN_FAIL(plan, node, "candidate: expected a path");
    }
    return add_matches(plan, node, path, &entry);
}

static enum gradcmp_status take_candidates(const struct plan *plan, const struct gcmp_yaml *root) {
    const struct gcmp_yaml *node = gcmp_yaml_get(root, "candidates");
    if (node == NULL || node->kind != GCMP_YAML_SEQUENCE || node->count == 0) {
        PLAN_FAIL(plan, node != NULL ? node : root, "candidates: expected a list of paths");
    }
    for (size_t i = 0; i < node->count; i++) {
        GCMP_TRY(take_candidate(plan, node->items[i]));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status take_baseline(const struct plan *plan, const struct gcmp_yaml *root) {
    const char *path = NULL;
    GCMP_TRY(take_text(plan, gcmp_yaml_get(root, "baseline"), "baseline", &path));
    if (path == NULL) {
        return GRADCMP_OK; /* the one with the least parallelism */
    }
    struct gcmp_entry entry = {.path = full_path(plan, path)};
    if (entry.path == NULL) {
        GCMP_FAIL_MEMORY(plan->error);
    }
    plan->roster->baseline = plan->roster->count;
    plan->roster->baseline_reason = "named by the plan";
    return add_entry(plan, &entry);
}

/* The folder of a file. */
static const char *folder_of(struct gcmp_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? ""
                         : gcmp_arena_text(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

static enum gradcmp_status take_plan(struct plan *plan, const struct gcmp_yaml *root) {
    GCMP_TRY(gcmp_yaml_check_keys(root, plan->roster->plan, "plan", plan_keys, plan->error));
    GCMP_TRY(take_bounds(plan, gcmp_yaml_get(root, "bounds")));
    GCMP_TRY(take_options(plan, gcmp_yaml_get(root, "options")));
    merge_options(&plan->roster->options, &plan->options);
    GCMP_TRY(take_baseline(plan, root));
    GCMP_TRY(take_candidates(plan, root));
    GCMP_TRY(gcmp_roster_leave_all_out(plan->roster, "link", "to what is found under another name",
                                       &plan->matches->aliases, plan->error));
    return gcmp_roster_leave_all_out(plan->roster, "folder", "that may not be opened",
                                     &plan->matches->closed, plan->error);
}

enum gradcmp_status gcmp_plan_read(struct gcmp_roster *roster, const char *folder,
                                   struct gradcmp_error *error) {
    struct gcmp_yaml *root;
    GCMP_TRY(gcmp_yaml_read(roster->arena, roster->plan, &root, error));
    struct plan plan = {.roster = roster,
                        .options = GRADCMP_OPTIONS_INIT,
                        .folder = folder != NULL ? folder : folder_of(roster->arena, roster->plan),
                        .error = error};
    if (plan.folder == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    roster->root = plan.folder[0] == '\0' ? "." : plan.folder;
    if (gcmp_yaml_get(root, "MODEL_ARGS") != NULL) {
        if (roster->golden == NULL) {
            GCMP_TRY(gcmp_golden_find(roster, folder_of(roster->arena, roster->plan), error));
        }
        return gcmp_recipe_read(roster, root, plan.folder, error);
    }
    struct gcmp_map paths = GCMP_MAP_INIT;
    struct gcmp_matches matches = {0};
    plan.paths = &paths;
    plan.matches = &matches;
    enum gradcmp_status status = take_plan(&plan, root);
    gcmp_map_free(&paths);
    gcmp_name_list_free(&matches.paths);
    gcmp_name_list_free(&matches.aliases);
    gcmp_name_list_free(&matches.closed);
    return status;
}
