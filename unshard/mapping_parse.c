/* Reads a file of rules.
 *
 * Limits: MAX_RULES; GCMP_MAPPING_MAX_PARTS of a fused parameter; MAX_SHARE in any count. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/expression.h"
#include "unshard/mapping_rules.h"

enum { MAX_RULES = 4096, MAX_SHARE = 1 << 16 };

/* What is read, and where to. */
struct reader {
    struct gcmp_mapping *mapping;
    struct gcmp_rule *rule;       /* at hand */
    const struct gcmp_yaml *node; /* of the rule */
    struct gradcmp_error *error;
};

#define FAIL(reader, at, ...)                                                                      \
    GCMP_YAML_FAIL((reader)->error, (reader)->mapping->path, (at), __VA_ARGS__)

/* A rule's first key names what it does; other keys that it may have. */
static const struct {
    const char *key;
    const char *known[10];
} kinds[] = {
    [GCMP_RULE_RENAME] = {"rename", {"rename", "to", "apply"}},
    [GCMP_RULE_SPLIT] = {"split",
                         {"split", "into", "parts", "groups", "axis", "heads", "query_groups",
                          "apply"}},
    [GCMP_RULE_CONCAT] = {"concat",
                          {"concat", "to", "parts", "groups", "axis", "heads", "query_groups",
                           "apply"}},
    [GCMP_RULE_TRANSPOSE] = {"transpose", {"transpose", "to", "apply"}},
    [GCMP_RULE_LAYER] = {"layer", {"layer", "l", "index", "apply"}},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* --- texts --- */

static const struct gcmp_yaml *find(const struct reader *reader, const char *key) {
    return gcmp_yaml_get(reader->node, key);
}

/* A text that is not empty. */
static enum gradcmp_status read_text(const struct reader *reader, const struct gcmp_yaml *value,
                                     const char *key, const char **out) {
    if (value == NULL) {
        FAIL(reader, reader->node, "\"%s\" is missing", key);
    }
    if (value->kind != GCMP_YAML_SCALAR || gcmp_yaml_is_null(value) || value->text[0] == '\0') {
        FAIL(reader, value, "%s: expected a name, found %s", key,
             value->kind == GCMP_YAML_SCALAR     ? "nothing"
             : value->kind == GCMP_YAML_SEQUENCE ? "a list"
                                                 : "a mapping");
    }
    *out = value->text;
    return GRADCMP_OK;
}

/* A backslash is followed by the number of a group that the expression has, or by another. */
static enum gradcmp_status check_template(const struct reader *reader,
                                          const struct gcmp_yaml *value) {
    for (const char *at = strchr(value->text, '\\'); at != NULL; at = strchr(at + 2, '\\')) {
        bool is_group = at[1] >= '0' && at[1] <= '9';
        if (!is_group && at[1] != '\\') {
            FAIL(reader, value, "\"%.100s\": a backslash is followed by 0 to 9 or another one",
                 value->text);
        }
        if (is_group && (size_t)(at[1] - '0') > reader->rule->regex.re_nsub) {
            FAIL(reader, value, "\"%.100s\": \\%c, but \"%.100s\" has %zu groups", value->text,
                 at[1], reader->rule->pattern, reader->rule->regex.re_nsub);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_template(const struct reader *reader, const struct gcmp_yaml *value,
                                         const char *key, const char **out) {
    GCMP_TRY(read_text(reader, value, key, out));
    return check_template(reader, value);
}

static enum gradcmp_status read_pattern(const struct reader *reader,
                                        const struct gcmp_yaml *value) {
    struct gcmp_rule *rule = reader->rule;
    struct gradcmp_error own = {0};
    GCMP_TRY(read_text(reader, value, kinds[rule->kind].key, &rule->pattern));
    enum gradcmp_status status = gcmp_expression_compile(&rule->regex, 0, "", rule->pattern, &own);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    if (status != GRADCMP_OK) {
        FAIL(reader, value, "%s", own.message);
    }
    rule->is_compiled = true;
    rule->prefix = gcmp_arena_dup(&reader->mapping->arena, rule->pattern);
    if (rule->prefix == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    gcmp_expression_prefix(rule->pattern, rule->prefix);
    rule->prefix_bytes = strlen(rule->prefix);
    return GRADCMP_OK;
}

/* Names from item `from` of a list on. */
static enum gradcmp_status read_names(const struct reader *reader, const struct gcmp_yaml *list,
                                      const char *key, size_t from) {
    struct gcmp_rule *rule = reader->rule;
    if (list == NULL || list->kind != GCMP_YAML_SEQUENCE || list->count < 2) {
        FAIL(reader, list != NULL ? list : reader->node, "%s: expected a list of at least 2 names",
             key);
    }
    if (list->count > GCMP_MAPPING_MAX_PARTS) {
        FAIL(reader, list, "%s: %zu names, at most %d are read", key, list->count,
             GCMP_MAPPING_MAX_PARTS);
    }
    rule->part_count = list->count;
    rule->names = gcmp_arena_alloc(&reader->mapping->arena, list->count, sizeof *rule->names);
    if (rule->names == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    for (size_t i = from; i < list->count; i++) {
        GCMP_TRY(read_template(reader, list->items[i], key, &rule->names[i - from]));
    }
    return GRADCMP_OK;
}

/* --- shares of an axis --- */

/* A count from 1 (axes: 0) to MAX_SHARE; left as it is where the key is not there. */
static enum gradcmp_status read_count(const struct reader *reader, const struct gcmp_yaml *value,
                                      const char *key, uint64_t *out) {
    uint64_t least = strcmp(key, "axis") == 0 ? 0 : 1;
    if (value != NULL && (!gcmp_yaml_count(value, out) || *out < least || *out > MAX_SHARE)) {
        FAIL(reader, value, "%s: expected a whole number from %" PRIu64 " to %d", key, least,
             MAX_SHARE);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_parts(const struct reader *reader) {
    struct gcmp_rule *rule = reader->rule;
    const struct gcmp_yaml *list = find(reader, "parts");
    for (size_t i = 0; i < rule->part_count; i++) {
        rule->shares.parts[i] = rule->kind == GCMP_RULE_SPLIT ? 1 : 0;
    }
    if (list == NULL) {
        return GRADCMP_OK;
    }
    if (list->kind != GCMP_YAML_SEQUENCE || list->count != rule->part_count) {
        FAIL(reader, list, "parts: expected a list of %zu shares, one for each name",
             rule->part_count);
    }
    for (size_t i = 0; i < list->count; i++) {
        GCMP_TRY(read_count(reader, list->items[i], "parts", &rule->shares.parts[i]));
    }
    return GRADCMP_OK;
}

/* Megatron's fused attention: query heads of a group, its key, its value. */
static enum gradcmp_status read_heads(const struct reader *reader, const struct gcmp_yaml *heads) {
    struct gcmp_rule *rule = reader->rule;
    const struct gcmp_yaml *groups = find(reader, "query_groups");
    if (rule->part_count != 3 || find(reader, "parts") != NULL || find(reader, "groups") != NULL) {
        FAIL(reader, heads,
             "heads are for three names (queries, keys, values), without parts and "
             "groups");
    }
    if (heads->kind == GCMP_YAML_SCALAR && strcmp(heads->text, "arguments") == 0) {
        if (groups != NULL) {
            FAIL(reader, groups,
                 "query_groups: \"heads: arguments\" takes both from the checkpoint");
        }
        rule->shares.from_arguments = true;
        return GRADCMP_OK;
    }
    uint64_t count = 0, group_count;
    GCMP_TRY(read_count(reader, heads, "heads", &count));
    group_count = count;
    GCMP_TRY(read_count(reader, groups, "query_groups", &group_count));
    if (count % group_count != 0) {
        FAIL(reader, groups, "query_groups: %" PRIu64 " heads cannot be shared by %" PRIu64, count,
             group_count);
    }
    rule->shares.groups = group_count;
    rule->shares.parts[0] = count / group_count;
    rule->shares.parts[1] = rule->shares.parts[2] = 1;
    return GRADCMP_OK;
}

static enum gradcmp_status read_shares(const struct reader *reader) {
    struct gcmp_rule_shares *shares = &reader->rule->shares;
    const struct gcmp_yaml *heads = find(reader, "heads"), *groups = find(reader, "query_groups");
    shares->groups = 1;
    GCMP_TRY(read_count(reader, find(reader, "axis"), "axis", &shares->axis));
    if (heads != NULL) {
        return read_heads(reader, heads);
    }
    if (groups != NULL) {
        FAIL(reader, groups, "query_groups: \"heads\" is missing");
    }
    GCMP_TRY(read_count(reader, find(reader, "groups"), "groups", &shares->groups));
    return read_parts(reader);
}

/* --- rules --- */

static enum gradcmp_status read_place(const struct reader *reader) {
    struct gcmp_rule *rule = reader->rule;
    const struct gcmp_yaml *l = find(reader, "l"), *index = find(reader, "index");
    if ((l == NULL) == (index == NULL)) {
        FAIL(reader, reader->node, "layer: expected either \"l\" or \"index\"");
    }
    if (index != NULL) {
        rule->place = GCMP_PLACE_INDEX;
        return read_template(reader, index, "index", &rule->to);
    }
    bool is_word = l->kind == GCMP_YAML_SCALAR;
    if (is_word && strcmp(l->text, "embedding") == 0) {
        rule->place = GCMP_PLACE_EMBEDDING;
    } else if (is_word && strcmp(l->text, "head") == 0) {
        rule->place = GCMP_PLACE_HEAD;
    } else if (!gcmp_yaml_count(l, &rule->number) || rule->number > MAX_SHARE) {
        FAIL(reader, l, "l: expected embedding, head or a whole number up to %d", MAX_SHARE);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_side(const struct reader *reader) {
    const struct gcmp_yaml *apply = find(reader, "apply");
    struct gcmp_rule *rule = reader->rule;
    bool is_word = apply != NULL && apply->kind == GCMP_YAML_SCALAR;
    if (apply == NULL) {
        rule->sides = GCMP_MAPPING_BASELINE | GCMP_MAPPING_CANDIDATE | GCMP_MAPPING_ALONE;
    } else if (is_word && strcmp(apply->text, "baseline") == 0) {
        rule->sides = GCMP_MAPPING_BASELINE;
    } else if (is_word && strcmp(apply->text, "candidate") == 0) {
        rule->sides = GCMP_MAPPING_CANDIDATE;
    } else {
        FAIL(reader, apply, "apply: expected baseline or candidate (left out: both)");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_action(const struct reader *reader) {
    struct gcmp_rule *rule = reader->rule;
    const struct gcmp_yaml *first = find(reader, kinds[rule->kind].key), *to = find(reader, "to");
    if (rule->kind == GCMP_RULE_CONCAT) {
        bool is_list = first->kind == GCMP_YAML_SEQUENCE && first->count > 0;
        GCMP_TRY(is_list ? read_pattern(reader, first->items[0]) : GRADCMP_OK);
        GCMP_TRY(read_names(reader, first, "concat", 1));
        GCMP_TRY(read_template(reader, to, "to", &rule->to));
        return read_shares(reader);
    }
    GCMP_TRY(read_pattern(reader, first));
    switch (rule->kind) {
    case GCMP_RULE_SPLIT:
        GCMP_TRY(read_names(reader, find(reader, "into"), "into", 0));
        return read_shares(reader);
    case GCMP_RULE_LAYER:
        return read_place(reader);
    case GCMP_RULE_TRANSPOSE:
        return to == NULL ? GRADCMP_OK : read_template(reader, to, "to", &rule->to);
    default:
        return read_template(reader, to, "to", &rule->to);
    }
}

/* The same expression of the same kind for the same side would find nothing left to do. */
static enum gradcmp_status check_new(const struct reader *reader) {
    const struct gcmp_rule *rule = reader->rule;
    for (const struct gcmp_rule *other = reader->mapping->rules; other < rule; other++) {
        if (other->kind == rule->kind && (other->sides & rule->sides) != 0 &&
            strcmp(other->pattern, rule->pattern) == 0) {
            FAIL(reader, reader->node, "%s \"%.200s\" is there already, in line %" PRIu64,
                 kinds[rule->kind].key, rule->pattern, other->line);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_rule(struct reader *reader) {
    struct gcmp_rule *rule = reader->rule;
    size_t kind = 0, found = 0;
    if (reader->node->kind != GCMP_YAML_MAPPING) {
        FAIL(reader, reader->node, "expected a rule: rename, split, concat, transpose or layer");
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (find(reader, kinds[i].key) != NULL) {
            kind = i;
            found++;
        }
    }
    if (found != 1) {
        FAIL(reader, reader->node,
             "a rule is one of rename, split, concat, transpose, layer; this "
             "has %zu of them",
             found);
    }
    rule->kind = (enum gcmp_rule_kind)kind;
    rule->line = reader->node->line;
    GCMP_TRY(gcmp_yaml_check_keys(reader->node, reader->mapping->path, kinds[kind].key,
                                  kinds[kind].known, reader->error));
    GCMP_TRY(read_action(reader));
    GCMP_TRY(read_side(reader));
    return check_new(reader);
}

static enum gradcmp_status read_rules(struct reader *reader, const struct gcmp_yaml *list,
                                      const struct gcmp_yaml *document) {
    struct gcmp_mapping *mapping = reader->mapping;
    if (list == NULL || list->kind != GCMP_YAML_SEQUENCE || list->count == 0) {
        FAIL(reader, list != NULL ? list : document, "rules: expected a list of rules");
    }
    if (list->count > MAX_RULES) {
        FAIL(reader, list, "%zu rules, at most %d are read", list->count, MAX_RULES);
    }
    mapping->rules = gcmp_arena_alloc(&mapping->arena, list->count, sizeof *mapping->rules);
    if (mapping->rules == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    while (mapping->rule_count < list->count) {
        reader->node = list->items[mapping->rule_count];
        reader->rule = &mapping->rules[mapping->rule_count++];
        GCMP_TRY(read_rule(reader));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_document(struct gcmp_mapping *mapping,
                                         const struct gcmp_yaml *document,
                                         struct gradcmp_error *error) {
    static const char *const known[] = {"layers", "rules", NULL};
    struct reader reader = {.mapping = mapping, .error = error};
    if (document == NULL || document->kind != GCMP_YAML_MAPPING) {
        FAIL(&reader, document, "expected a mapping with \"rules\"");
    }
    GCMP_TRY(gcmp_yaml_check_keys(document, mapping->path, "the map", known, error));
    GCMP_TRY(read_count(&reader, gcmp_yaml_get(document, "layers"), "layers", &mapping->layers));
    return read_rules(&reader, gcmp_yaml_get(document, "rules"), document);
}

static enum gradcmp_status new_mapping(const char *path, struct gcmp_mapping **out,
                                       struct gradcmp_error *error) {
    *out = calloc(1, sizeof **out);
    if (*out != NULL) {
        (*out)->path = gcmp_arena_dup(&(*out)->arena, path);
    }
    if (*out == NULL || (*out)->path == NULL) {
        gcmp_mapping_free(*out);
        *out = NULL;
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status finish(struct gcmp_mapping **out, enum gradcmp_status status,
                                  const struct gcmp_yaml *document, struct gradcmp_error *error) {
    status = status == GRADCMP_OK ? read_document(*out, document, error) : status;
    if (status != GRADCMP_OK) {
        gcmp_mapping_free(*out);
        *out = NULL;
    }
    return status;
}

enum gradcmp_status gcmp_mapping_parse(const char *path, const char *bytes, size_t length_bytes,
                                       struct gcmp_mapping **out, struct gradcmp_error *error) {
    struct gcmp_yaml *document = NULL;
    GCMP_TRY(new_mapping(path, out, error));
    enum gradcmp_status status =
        gcmp_yaml_parse(&(*out)->arena, path, bytes, length_bytes, &document, error);
    return finish(out, status, document, error);
}

enum gradcmp_status gcmp_mapping_read(const char *path, struct gcmp_mapping **out,
                                      struct gradcmp_error *error) {
    struct gcmp_yaml *document = NULL;
    GCMP_TRY(new_mapping(path, out, error));
    enum gradcmp_status status = gcmp_yaml_read(&(*out)->arena, path, &document, error);
    return finish(out, status, document, error);
}

void gcmp_mapping_free(struct gcmp_mapping *mapping) {
    if (mapping == NULL) {
        return;
    }
    for (size_t i = 0; i < mapping->rule_count; i++) {
        if (mapping->rules[i].is_compiled) {
            regfree(&mapping->rules[i].regex);
        }
    }
    gcmp_arena_free(&mapping->arena);
    free(mapping);
}

uint64_t gcmp_mapping_layers(const struct gcmp_mapping *mapping) {
    return mapping->layers;
}
