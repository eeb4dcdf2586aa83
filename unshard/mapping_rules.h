/* Rules of a map file as they were read; private to mapping*.c. */
#ifndef GCMP_UNSHARD_MAPPING_RULES_H
#define GCMP_UNSHARD_MAPPING_RULES_H

#include <regex.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/yaml_doc.h"
#include "unshard/mapping.h"

enum { GCMP_MAPPING_MAX_PARTS = 64, GCMP_MAPPING_CAPTURES = 10 };

enum gcmp_rule_kind {
    GCMP_RULE_RENAME,
    GCMP_RULE_SPLIT,
    GCMP_RULE_CONCAT,
    GCMP_RULE_TRANSPOSE,
    GCMP_RULE_LAYER
};

/* How an axis is shared out: `groups` times, each part's share in a row. */
struct gcmp_rule_shares {
    uint64_t axis;
    uint64_t groups;
    uint64_t parts[GCMP_MAPPING_MAX_PARTS]; /* CONCAT: 0 where the parts' own sizes tell */
    bool from_arguments; /* groups and parts: heads and query groups of the checkpoint */
};

enum gcmp_rule_place {
    GCMP_PLACE_NUMBER, /* l */
    GCMP_PLACE_EMBEDDING,
    GCMP_PLACE_HEAD,
    GCMP_PLACE_INDEX /* a template that gives the layer's number from 0 */
};

struct gcmp_rule {
    enum gcmp_rule_kind kind;
    uint64_t line;
    unsigned sides; /* bits of those it is for */
    const char *pattern;
    char *prefix; /* that all it matches begin with: most names are none of them */
    size_t prefix_bytes;
    regex_t regex;
    bool is_compiled;
    const char *to;     /* RENAME, CONCAT, TRANSPOSE (NULL: the name stays), INDEX */
    const char **names; /* SPLIT: of the parts; CONCAT: of the second part and on */
    size_t part_count;  /* SPLIT, CONCAT */
    struct gcmp_rule_shares shares;
    enum gcmp_rule_place place; /* LAYER */
    uint64_t number;
    bool has_matched;
};

struct gcmp_mapping {
    struct gcmp_arena arena; /* owns everything but the compiled expressions */
    const char *path;
    struct gcmp_rule *rules;
    size_t rule_count;
    uint64_t layers;
};

/* Fail at a rule. */
#define GCMP_RULE_FAIL(error, code, mapping, rule, format, ...)                                    \
    GCMP_FAIL_AT((error), (code), (mapping)->path, GRADCMP_NO_OFFSET, "line %llu: " format,        \
                 (unsigned long long)(rule)->line, __VA_ARGS__)

/* What an expression matched of a name. */
struct gcmp_match {
    const char *name;
    regmatch_t captures[GCMP_MAPPING_CAPTURES];
};

/* True where the rule's expression matches the whole name; *lacks_memory becomes true where that
 * could not be found out. */
bool gcmp_rule_matches(const struct gcmp_rule *rule, const char *name, struct gcmp_match *match,
                       bool *lacks_memory);

/* Put a match into a template; NULL without memory. */
const char *gcmp_rule_expand(const char *template, const struct gcmp_match *match,
                             struct gcmp_arena *arena);

/* One application of a rule to one parameter. */
struct gcmp_rule_use {
    const struct gcmp_mapping *mapping;
    const struct gcmp_rule *rule;
    const struct gradcmp_catalogue *catalogue;
    struct gcmp_arena *arena; /* for what is made */
};

/* Cut a parameter into the rule's parts: out has part_count entries. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rule_split(const struct gcmp_rule_use *use,
                                                     const struct gradcmp_parameter *from,
                                                     struct gradcmp_parameter **out,
                                                     struct gradcmp_error *error);

/* Put the rule's parts (part_count of them) together. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rule_concat(const struct gcmp_rule_use *use,
                                                      const struct gradcmp_parameter *const *parts,
                                                      struct gradcmp_parameter **out,
                                                      struct gradcmp_error *error);

#endif
