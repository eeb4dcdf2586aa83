/* Sweep plans: a YAML file that says what is compared with what, and how it is to come out. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "sweep.h"

static const char *const plan_keys[] = {"baseline", "candidates", "bounds", "options", NULL};
static const char *const candidate_keys[] = {"path", "name", "expect", NULL};
static const char *const bound_keys[] = {"k", "C", "max-bound", "dtype", NULL};
static const char *const option_keys[] = {"state",  "match",     "exclude", "vocab",
                                          "layers", "iteration", "strict",  NULL};

/* A plan while it is read. */
struct plan {
    struct gcmp_roster *roster;
    const char *folder; /* that relative paths start from */
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

static enum gradcmp_status take_bounds(const struct plan *plan, const struct gcmp_yaml *node) {
    struct gradcmp_options *options = &plan->roster->options;
    if (node == NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_yaml_check_keys(node, plan->roster->plan, "bounds", bound_keys, plan->error));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "k"), "k", &options->k));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "C"), "C", &options->C));
    GCMP_TRY(take_real(plan, gcmp_yaml_get(node, "max-bound"), "max-bound", &options->max_bound));
    return take_dtype(plan, gcmp_yaml_get(node, "dtype"), &options->dtype);
}

static enum gradcmp_status take_options(const struct plan *plan, const struct gcmp_yaml *node) {
    struct gradcmp_options *options = &plan->roster->options;
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
            return GRADCMP_OK;
        }
    }
    PLAN_FAIL(plan, node, "expect: expected consistent, inconsistent, undecided, vacuous or error");
}

/* Add what a pattern stands for: existing paths, sorted; a path without a pattern as it is, so that
 * a missing one fails its own row. The baseline is left out. */
static enum gradcmp_status add_matches(const struct plan *plan, const struct gcmp_yaml *node,
                                       const char *pattern, const struct gcmp_entry *like) {
    struct gcmp_roster *roster = plan->roster;
    const char *path = full_path(plan, pattern);
    if (path == NULL) {
        GCMP_FAIL_MEMORY(plan->error);
    }
    glob_t found;
    int code = strpbrk(pattern, "*?[") == NULL ? GLOB_NOMATCH : glob(path, 0, NULL, &found);
    if (code == GLOB_NOMATCH && strpbrk(pattern, "*?[") == NULL) {
        struct gcmp_entry entry = *like;
        entry.path = path;
        return gcmp_roster_add(roster, &entry, plan->error);
    }
    if (code == GLOB_NOSPACE) {
        GCMP_FAIL_MEMORY(plan->error);
    }
    if (code != 0) {
        PLAN_FAIL(plan, node, "\"%.200s\": nothing there", pattern);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < found.gl_pathc && status == GRADCMP_OK; i++) {
        struct gcmp_entry entry = *like;
        entry.path = found.gl_pathv[i];
        if (gcmp_roster_index(roster, entry.path) == SIZE_MAX) {
            status = gcmp_roster_add(roster, &entry, plan->error);
        }
    }
    globfree(&found);
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
    return gcmp_roster_add(plan->roster, &entry, plan->error);
}

/* The folder of a file. */
static const char *folder_of(struct gcmp_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? ""
                         : gcmp_arena_text(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

enum gradcmp_status gcmp_plan_read(struct gcmp_roster *roster, const char *folder,
                                   struct gradcmp_error *error) {
    struct gcmp_yaml *root;
    GCMP_TRY(gcmp_yaml_read(roster->arena, roster->plan, &root, error));
    struct plan plan = {roster, folder != NULL ? folder : folder_of(roster->arena, roster->plan),
                        error};
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
    GCMP_TRY(gcmp_yaml_check_keys(root, roster->plan, "plan", plan_keys, error));
    GCMP_TRY(take_bounds(&plan, gcmp_yaml_get(root, "bounds")));
    GCMP_TRY(take_options(&plan, gcmp_yaml_get(root, "options")));
    GCMP_TRY(take_baseline(&plan, root));
    return take_candidates(&plan, root);
}
