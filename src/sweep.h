/* The parts of a sweep: which checkpoints, which baseline, what the plan asks for. */
#ifndef GCMP_SWEEP_H
#define GCMP_SWEEP_H

#include "base/arena.h"
#include "base/runs.h"
#include "base/yaml_doc.h"
#include "gradcmp/sys/sweep.h"

/* One checkpoint to be swept. */
struct gcmp_entry {
    const char *label, *path;
    bool is_named; /* the label was given, not made from the path */
    bool has_expected;
    enum gradcmp_outcome expected;
    uint32_t expected_line;            /* of the plan */
    const char *key;                   /* of a recipe: the name of its configuration; NULL */
    size_t place;                      /* of a recipe: that of the configuration in it */
    uint64_t repeat;                   /* of a recipe; 0: none */
    const struct gcmp_yaml *arguments; /* of a recipe: what the run was to do; NULL */
};

/* Another name of an entry, by a link. */
struct gcmp_alias {
    const char *path, *of;
};

/* What is to be compared; texts and entries lie in the arena. */
struct gcmp_roster {
    struct gcmp_arena *arena;
    const char *root; /* paths below it are relative in labels */
    const char *plan; /* path of the plan, for messages; NULL */
    struct gcmp_entry *entries;
    size_t count, capacity;
    struct gcmp_alias *aliases;
    size_t alias_count;
    size_t baseline; /* index of the entry; SIZE_MAX: to be chosen */
    const char *baseline_reason;
    struct gradcmp_options options;  /* the caller's, and what the plan sets */
    struct gcmp_resume *resume;      /* what was judged before; NULL: nothing is kept */
    const char *golden;              /* file of golden values; NULL: none */
    const char *golden_note;         /* why there is none; or NULL */
    bool golden_was_found;           /* beside a recipe, not named by the caller */
    struct gradcmp_sweep_left *left; /* what is there and not compared */
    size_t left_count;
    struct gradcmp_sweep_absent *absent; /* configurations of a recipe without a run */
    size_t absent_count;
};

/* Add an entry; its label is its path below the root where none is given. Errors: MEMORY; LIMIT for
 * more than 65,536. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_roster_add(struct gcmp_roster *roster,
                                                     const struct gcmp_entry *entry,
                                                     struct gradcmp_error *error);

/* What is left out of a sweep for one reason. */
struct gcmp_left_out {
    const char *noun, *why; /* "checkpoint", "in no folder repeat_R_key_KEY" */
    const char *const *paths;
    size_t count;
};

/* Note what was left out, with the first of its paths; nothing where count is 0. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_roster_leave_out(struct gcmp_roster *roster,
                                                           const struct gcmp_left_out *out,
                                                           struct gradcmp_error *error);

/* The same of the paths in a list. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_roster_leave_all_out(struct gcmp_roster *roster,
                                                               const char *noun, const char *why,
                                                               const struct gcmp_name_list *paths,
                                                               struct gradcmp_error *error);

/* Bytes of a path without slashes at its end. */
size_t gcmp_path_bytes(const char *path);

/* Find all runs below a folder, of the wanted iteration where there is one: runs->found. What lies
 * there too is noted as left out. Errors: as gcmp_locate_runs. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_roster_look(struct gcmp_roster *roster,
                                                      const char *folder, struct gcmp_runs *runs,
                                                      struct gradcmp_error *error);

/* Add all runs below a folder. Errors: as gcmp_locate_runs. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_roster_find(struct gcmp_roster *roster, const char *folder, struct gradcmp_error *error);

/* Find the entry that a person names by label or path; *index is SIZE_MAX where there is none.
 * Errors: USAGE where several checkpoints are named so. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_roster_named(const struct gcmp_roster *roster,
                                                       const char *name, size_t *index,
                                                       struct gradcmp_error *error);

/* Fill the roster as a plan says, or a recipe of Megatron's functional tests; paths are below
 * `folder` (NULL: the plan's own). Options of a plan hold where the caller has set none. Errors:
 * CORRUPT with the line, IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_plan_read(struct gcmp_roster *roster, const char *folder,
                                                    struct gradcmp_error *error);
/* What patterns of a plan stand for. */
struct gcmp_matches {
    struct gcmp_name_list paths;   /* sorted; emptied by the caller after each pattern */
    struct gcmp_name_list aliases; /* links to one of them, or to what the plan named before */
    struct gcmp_name_list closed;  /* folders that may not be opened, where others may be */
};
/* Add what a pattern stands for: existing paths; none is no failure. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_match(const struct gcmp_roster *roster,
                                                const char *pattern, struct gcmp_matches *out,
                                                struct gradcmp_error *error);

/* The part of it for recipes: `root` has MODEL_ARGS. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_recipe_read(struct gcmp_roster *roster,
                                                      const struct gcmp_yaml *root,
                                                      const char *folder,
                                                      struct gradcmp_error *error);

/* Say where a checkpoint is not what the arguments of its configuration ask for, and which of them
 * make gradients incomparable. *findings (in the arena) are lines. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_recipe_check(struct gcmp_arena *arena,
                                                       const struct gcmp_yaml *arguments,
                                                       const struct gradcmp_catalogue *catalogue,
                                                       const char ***findings, size_t *count,
                                                       struct gradcmp_error *error);

/* Look for the golden values of a recipe in its folder: one file golden_values*.json. Errors:
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_golden_find(struct gcmp_roster *roster, const char *folder, struct gradcmp_error *error);

/* Hold the golden num-zeros against the zeros in each run's gradients at its step; what differs is
 * a finding of its row. Megatron-LM counts every parameter once, rows of a padded vocabulary
 * included. Errors: those of reading a file that the caller named; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_sweep_golden(struct gradcmp_sweep *sweep,
                                                       const struct gcmp_roster *roster,
                                                       struct gradcmp_error *error);

#endif
