/* The table of rules: what is looked at, what is accepted, why, and what to write instead. */
#ifndef GCMP_LINT_RULES_H
#define GCMP_LINT_RULES_H

#include "lint/facts.h"

enum gcmp_lint_set_bit {
    GCMP_LINT_MEGATRON = 1,
    GCMP_LINT_ASCEND = 2,
    GCMP_LINT_GRADIENTS = 4,
    GCMP_LINT_GENERAL = 8, /* of how settings are written: always */
    GCMP_LINT_PAIR = 16    /* of two runs */
};

enum gcmp_lint_severity { GCMP_LINT_INFO = 1, GCMP_LINT_WARNING, GCMP_LINT_ERROR };

/* A run: the sources in the order given; the first that knows a setting tells it. */
struct gcmp_lint_run {
    struct gcmp_lint_source *sources;
    size_t source_count;
};

struct gcmp_lint_rule;

struct gcmp_lint_finding {
    const struct gcmp_lint_rule *rule;
    enum gcmp_lint_severity severity;
    const char *subject, *value; /* value NULL: not set, or null */
    bool is_bool;                /* value is "true" or "false" */
    const char *file;
    uint64_t line;
    const char *fix, *accepted;
    const char *text; /* beside the rule's own words; or NULL */
};

/* Look at one subject; true where it is a finding, with `severity`, `value` and place filled. */
typedef bool (*gcmp_lint_check)(const struct gcmp_lint_run *run, const struct gcmp_lint_rule *rule,
                                struct gcmp_lint_finding *finding);

struct gcmp_lint_rule {
    const char *id;
    unsigned sets;
    enum gcmp_lint_kind kind; /* evidence of this kind must be there; 0: none in particular */
    enum gcmp_lint_severity severity;
    const char *subject;
    const char *accepted; /* values */
    const char *why, *fix, *source;
    gcmp_lint_check check; /* NULL: found elsewhere (GN.., PR..) */
};

/* All rules, ended by one without an id. A rule with several subjects has several entries. */
extern const struct gcmp_lint_rule gcmp_lint_rules[];

/* The first entry of an id, or NULL. */
const struct gcmp_lint_rule *gcmp_lint_rule_find(const char *id);

/* A setting of a run: the first source that has it. *source (NULL allowed) is that one. */
const struct gcmp_lint_setting *gcmp_lint_run_find(const struct gcmp_lint_run *run,
                                                   enum gcmp_lint_kind kind, const char *name,
                                                   const struct gcmp_lint_source **source);

/* True where a source is evidence of that kind. */
bool gcmp_lint_run_has(const struct gcmp_lint_run *run, enum gcmp_lint_kind kind);

/* True for settings that a rule of the sets looks at, or that decide what the run computes. */
bool gcmp_lint_is_relevant(enum gcmp_lint_kind kind, const char *name);

const char *gcmp_lint_severity_name(enum gcmp_lint_severity severity);
const char *gcmp_lint_kind_name(enum gcmp_lint_kind kind);

#endif
