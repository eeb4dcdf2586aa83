/* Applies rules to the parameters of a model. */
#include "unshard/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/expression.h"
#include "base/grow.h"
#include "base/map.h"
#include "unshard/mapping_rules.h"
#include "unshard/name_parse.h"
#include "unshard/reslab.h"
#include "unshard/stack.h"
#include "unshard/towers.h"

/* A parameter under way. */
struct item {
    struct gradcmp_parameter parameter;
    const struct gcmp_rule *touched; /* the last rule that gave it its name; NULL: none */
    int64_t stated_layer;            /* l by a layer rule; -1: none */
    int64_t before;  /* layers of other stacks in front of its own, by its old name */
    bool wants_head; /* l = L + 1 by a layer rule */
    bool is_gone;    /* it became part of another */
};

struct work {
    struct gcmp_mapping *mapping;
    struct gcmp_rule *rule; /* at hand */
    struct gcmp_rule_use use;
    struct gradcmp_model *model;
    struct item *items;
    size_t count, capacity;
    struct gradcmp_error *error;
};

bool gcmp_rule_matches(const struct gcmp_rule *rule, const char *name, struct gcmp_match *match,
                       bool *lacks_memory) {
    match->name = name;
    return strncmp(name, rule->prefix, rule->prefix_bytes) == 0 &&
           gcmp_expression_matches(&rule->regex, name, GCMP_MAPPING_CAPTURES, match->captures,
                                   lacks_memory) &&
           match->captures[0].rm_so == 0 && name[match->captures[0].rm_eo] == '\0';
}

const char *gcmp_rule_expand(const char *template, const struct gcmp_match *match,
                             struct gcmp_arena *arena) {
    size_t bytes = strlen(template), room = bytes + 1;
    for (const char *at = template; *at != '\0'; at++) {
        room += *at == '\\' ? strlen(match->name) : 0;
    }
    char *text = gcmp_arena_alloc(arena, room, 1), *end = text;
    for (const char *at = template; text != NULL && *at != '\0'; at++) {
        if (*at != '\\') {
            *end++ = *at;
            continue;
        }
        at++;
        const regmatch_t *capture = *at == '\\' ? NULL : &match->captures[*at - '0'];
        if (capture == NULL) {
            *end++ = '\\';
        } else if (capture->rm_so >= 0) {
            size_t length = (size_t)(capture->rm_eo - capture->rm_so);
            memcpy(end, match->name + capture->rm_so, length);
            end += length;
        }
    }
    return text; /* the arena's memory is zeroed */
}

static enum gradcmp_status add_item(struct work *work, const struct gradcmp_parameter *parameter,
                                    const struct gcmp_rule *touched, int64_t before) {
    if (!gcmp_grow(&work->items, work->count, &work->capacity, sizeof *work->items)) {
        GCMP_FAIL_MEMORY(work->error);
    }
    work->items[work->count++] = (struct item){
        .parameter = *parameter, .touched = touched, .stated_layer = -1, .before = before};
    return GRADCMP_OK;
}

static enum gradcmp_status expand(const struct work *work, const char *template,
                                  const struct gcmp_match *match, const char **out) {
    *out = gcmp_rule_expand(template, match, work->model->arena);
    if (*out == NULL) {
        GCMP_FAIL_MEMORY(work->error);
    }
    if (**out == '\0') {
        GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, work->rule,
                       "\"%.200s\" makes an empty name of \"%.200s\"", template, match->name);
    }
    return GRADCMP_OK;
}

/* --- what rules do with one parameter (an index: the array may move) --- */

static enum gradcmp_status rename_item(struct work *work, size_t index,
                                       const struct gcmp_match *match) {
    const char *name;
    GCMP_TRY(expand(work, work->rule->to, match, &name));
    work->items[index].parameter.name = name;
    work->items[index].touched = work->rule;
    return GRADCMP_OK;
}

static enum gradcmp_status split_item(struct work *work, size_t index,
                                      const struct gcmp_match *match) {
    struct gradcmp_parameter *parts[GCMP_MAPPING_MAX_PARTS];
    struct gradcmp_parameter from = work->items[index].parameter;
    int64_t before = work->items[index].before;
    work->items[index].is_gone = true;
    GCMP_TRY(gcmp_rule_split(&work->use, &from, parts, work->error));
    for (size_t i = 0; i < work->rule->part_count; i++) {
        GCMP_TRY(expand(work, work->rule->names[i], match, &parts[i]->name));
        GCMP_TRY(add_item(work, parts[i], work->rule, before));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status transpose_item(struct work *work, size_t index,
                                          const struct gcmp_match *match) {
    struct gradcmp_parameter *turned;
    struct item *item = &work->items[index];
    if (item->parameter.ndim != 2) {
        GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, work->rule,
                       "%.200s has %u axes; two can be transposed", item->parameter.name,
                       item->parameter.ndim);
    }
    GCMP_TRY(gcmp_reslab_transpose(&item->parameter, work->model->arena, &turned, work->error));
    item->parameter = *turned;
    return work->rule->to == NULL ? GRADCMP_OK : rename_item(work, index, match);
}

static enum gradcmp_status place_item(struct work *work, size_t index,
                                      const struct gcmp_match *match) {
    const struct gcmp_rule *rule = work->rule;
    struct item *item = &work->items[index];
    item->wants_head = rule->place == GCMP_PLACE_HEAD;
    item->stated_layer = (int64_t)rule->number;
    if (rule->place == GCMP_PLACE_INDEX) {
        const char *digits;
        GCMP_TRY(expand(work, rule->to, match, &digits));
        if (strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 6 ||
            strtoul(digits, NULL, 10) >= GCMP_MAX_LAYERS) {
            GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, rule,
                           "%.200s: \"%.100s\" is no number of a layer", item->parameter.name,
                           digits);
        }
        item->stated_layer = (int64_t)strtoul(digits, NULL, 10) + 1;
    }
    return GRADCMP_OK;
}

/* Find the parameter of a name among those that are left; SIZE_MAX: none. */
static size_t find_item(const struct work *work, const struct gcmp_map *by_name, const char *name) {
    size_t index;
    return gcmp_map_find(by_name, name, strlen(name), &index) && !work->items[index].is_gone
               ? index
               : SIZE_MAX;
}

static enum gradcmp_status concat_item(struct work *work, const struct gcmp_map *by_name,
                                       size_t index, const struct gcmp_match *match) {
    const struct gradcmp_parameter *parts[GCMP_MAPPING_MAX_PARTS] = {NULL};
    size_t indices[GCMP_MAPPING_MAX_PARTS] = {index};
    struct gradcmp_parameter *made;
    for (size_t i = 0; i < work->rule->part_count; i++) {
        const char *name;
        if (i > 0) {
            GCMP_TRY(expand(work, work->rule->names[i - 1], match, &name));
            indices[i] = find_item(work, by_name, name);
            if (indices[i] == SIZE_MAX) {
                GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, work->rule,
                               "%.200s is there, but not %.200s", match->name, name);
            }
        }
        parts[i] = &work->items[indices[i]].parameter;
        for (size_t j = 0; j < i; j++) {
            if (indices[j] == indices[i]) {
                GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, work->rule,
                               "%.200s would be in it twice", parts[i]->name);
            }
        }
    }
    GCMP_TRY(gcmp_rule_concat(&work->use, parts, &made, work->error));
    for (size_t i = 0; i < work->rule->part_count; i++) {
        work->items[indices[i]].is_gone = true;
    }
    GCMP_TRY(expand(work, work->rule->to, match, &made->name));
    return add_item(work, made, work->rule, work->items[index].before);
}

/* --- rules, one after another --- */

static enum gradcmp_status index_names(const struct work *work, struct gcmp_map *by_name) {
    for (size_t i = 0; i < work->count; i++) {
        const char *name = work->items[i].parameter.name;
        if (!work->items[i].is_gone &&
            gcmp_map_add(by_name, name, strlen(name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(work->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status use_rule(struct work *work, const struct gcmp_map *by_name, size_t index,
                                    const struct gcmp_match *match) {
    switch (work->rule->kind) {
    case GCMP_RULE_RENAME:
        return rename_item(work, index, match);
    case GCMP_RULE_SPLIT:
        return split_item(work, index, match);
    case GCMP_RULE_CONCAT:
        return concat_item(work, by_name, index, match);
    case GCMP_RULE_TRANSPOSE:
        return transpose_item(work, index, match);
    default:
        return place_item(work, index, match);
    }
}

/* Apply the rule at hand to what was there before it. */
static enum gradcmp_status run_rule(struct work *work) {
    struct gcmp_map by_name = GCMP_MAP_INIT;
    size_t count = work->count;
    bool lacks_memory = false;
    enum gradcmp_status status =
        work->rule->kind == GCMP_RULE_CONCAT ? index_names(work, &by_name) : GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        struct gcmp_match match;
        if (!work->items[i].is_gone &&
            gcmp_rule_matches(work->rule, work->items[i].parameter.name, &match, &lacks_memory)) {
            work->rule->has_matched = true;
            status = use_rule(work, &by_name, i, &match);
        }
    }
    gcmp_map_free(&by_name);
    if (status == GRADCMP_OK && lacks_memory) {
        GCMP_FAIL_MEMORY(work->error);
    }
    return status;
}

static enum gradcmp_status run_rules(struct work *work, enum gcmp_mapping_side side) {
    struct gcmp_mapping *mapping = work->mapping;
    for (size_t i = 0; i < mapping->rule_count; i++) {
        struct gcmp_rule *rule = &mapping->rules[i];
        if (side == GCMP_MAPPING_ALONE && (rule->sides & GCMP_MAPPING_ALONE) == 0) {
            GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_UNSUPPORTED, mapping, rule,
                           "the rule is for one side of a comparison: say which this is (%s)",
                           "--side baseline or --side candidate");
        }
        work->rule = rule;
        work->use.rule = rule;
        if ((rule->sides & side) != 0) {
            GCMP_TRY(run_rule(work));
        }
    }
    return GRADCMP_OK;
}

/* --- layers, and the end --- */

static int64_t greater(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Of a stack that other stacks feed, what is in front of it; weights alone may show that. */
static enum gradcmp_status find_before(const struct work *work,
                                       const struct gradcmp_parameter *parameter, int64_t *before) {
    struct gcmp_name name;
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    *before = 0;
    if (!work->model->chained) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status =
        gcmp_name_parse(parameter->name, false, &scratch, &name, work->error);
    gcmp_arena_free(&scratch);
    if (status == GRADCMP_OK && name.layer >= 0 && !name.is_mtp) {
        *before = greater(parameter->layer - (name.layer + 1), 0);
    }
    return status;
}

/* Names of all parameters that there are now, and the stacks that they show. */
struct placing {
    struct gcmp_name *names; /* one an item */
    struct gcmp_arena scratch;
    struct gcmp_towers towers;
    int64_t old_head;
};

static enum gradcmp_status read_names(const struct work *work, struct placing *placing) {
    placing->names = calloc(work->count + 1, sizeof *placing->names);
    if (placing->names == NULL) {
        GCMP_FAIL_MEMORY(work->error);
    }
    for (size_t i = 0; i < work->count; i++) {
        const struct item *item = &work->items[i];
        struct gcmp_name *name = &placing->names[i];
        if (item->is_gone) {
            continue;
        }
        GCMP_TRY(
            gcmp_name_parse(item->parameter.name, false, &placing->scratch, name, work->error));
        if (name->layer >= GCMP_MAX_LAYERS && item->touched != NULL) {
            GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_LIMIT, work->mapping, item->touched,
                           "%.200s: at most %d layers are read", item->parameter.name,
                           GCMP_MAX_LAYERS);
        }
        GCMP_TRY(gcmp_towers_add(&placing->towers, name, (uint64_t)(name->layer + 1), work->error));
    }
    work->model->chained = gcmp_towers_number(&placing->towers) || work->model->chained;
    return GRADCMP_OK;
}

static void raise_layers(const struct work *work, const struct item *item) {
    if (!item->wants_head && (uint64_t)item->stated_layer > work->model->layers) {
        work->model->layers = (uint64_t)item->stated_layer;
    }
}

/* l by a new name: the index in it, else what its words mean; in terms of the model's old L, which
 * a larger index replaces. */
static void place_by_name(const struct work *work, const struct placing *placing,
                          const struct gcmp_name *name, struct item *item) {
    struct gradcmp_parameter *parameter = &item->parameter;
    bool is_table = name->has_vocab_rows && name->layer < 0 &&
                    parameter->ndim == (name->is_vector ? 1 : 2) &&
                    parameter->shape[0] >= work->use.catalogue->vocab;
    parameter->vocab_rows = is_table ? (uint8_t)gcmp_name_vocab_rows(name) : parameter->vocab_rows;
    if (item->stated_layer >= 0 || item->wants_head) {
        return;
    }
    int64_t before = greater(item->before, (int64_t)gcmp_towers_before(&placing->towers, name));
    int64_t place = gcmp_towers_place(&placing->towers, name);
    bool was_inner = parameter->layer > 0 && parameter->layer < placing->old_head;
    if (place >= 0 && was_inner) {
        place = greater(place, parameter->layer);
    }
    item->wants_head = name->is_mtp || (name->layer < 0 && !name->is_embedding && place < 0);
    item->stated_layer = name->layer >= 0 ? before + name->layer + 1 : greater(place, 0);
    raise_layers(work, item);
}

/* Other names may have got new neighbours that feed their stack, or that it feeds. */
static void place_beside(const struct work *work, const struct placing *placing,
                         const struct gcmp_name *name, struct item *item) {
    int64_t before = (int64_t)gcmp_towers_before(&placing->towers, name);
    int64_t place = name->layer < 0 ? gcmp_towers_place(&placing->towers, name)
                    : before > 0    ? before + name->layer + 1
                                    : -1;
    bool is_head = item->parameter.layer == placing->old_head;
    bool is_loose = name->layer < 0 && !name->is_embedding;
    bool is_better = is_loose ? is_head : !is_head && place > item->parameter.layer;
    if (item->stated_layer < 0 && !item->wants_head && place >= 0 && is_better) {
        item->stated_layer = place;
        raise_layers(work, item);
    }
}

/* Hand l over to the parameters. */
static enum gradcmp_status place_items(struct work *work, uint64_t old_head) {
    struct gradcmp_model *model = work->model;
    for (size_t i = 0; i < work->count; i++) {
        struct item *item = &work->items[i];
        bool is_stated = item->wants_head || item->stated_layer >= 0;
        bool is_head = is_stated ? item->wants_head : (uint64_t)item->parameter.layer == old_head;
        if (is_head) {
            item->parameter.layer = (int64_t)model->layers + 1;
        } else if (is_stated) {
            item->parameter.layer = item->stated_layer;
            bool is_new = !item->is_gone && (uint64_t)item->stated_layer > model->shown;
            model->shown = is_new ? (uint64_t)item->stated_layer : model->shown;
        }
        if (!item->is_gone && (uint64_t)item->parameter.layer > model->layers + 1) {
            GCMP_FAIL_AT(work->error, GRADCMP_ERROR_CORRUPT, work->mapping->path, GRADCMP_NO_OFFSET,
                         "%.200s: l = %lld, the model has %llu layers and the head is %llu "
                         "(\"layers: N\" in the map says how many)",
                         item->parameter.name, (long long)item->parameter.layer,
                         (unsigned long long)model->layers, (unsigned long long)model->layers + 1);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status place_all(struct work *work) {
    struct placing placing = {.scratch = GCMP_ARENA_INIT,
                              .old_head = (int64_t)work->model->layers + 1};
    enum gradcmp_status status = read_names(work, &placing);
    for (size_t i = 0; i < work->count && status == GRADCMP_OK; i++) {
        struct item *item = &work->items[i];
        if (!item->is_gone) {
            (item->touched != NULL ? place_by_name : place_beside)(work, &placing,
                                                                   &placing.names[i], item);
        }
    }
    free(placing.names);
    gcmp_arena_free(&placing.scratch);
    gcmp_towers_free(&placing.towers);
    return status == GRADCMP_OK ? place_items(work, (uint64_t)placing.old_head) : status;
}

static int compare_items(const void *left, const void *right) {
    const struct item *a = left, *b = right;
    return a->is_gone != b->is_gone ? (a->is_gone ? 1 : -1)
                                    : strcmp(a->parameter.name, b->parameter.name);
}

/* Hand what is left to the model, sorted, each name once. */
static enum gradcmp_status finish(struct work *work) {
    struct gradcmp_model *model = work->model;
    size_t count = 0;
    if (work->count > 1) {
        qsort(work->items, work->count, sizeof *work->items, compare_items);
    }
    while (count < work->count && !work->items[count].is_gone) {
        count++;
    }
    struct gradcmp_parameter *parameters =
        gcmp_arena_alloc(model->arena, count, sizeof *parameters);
    if (parameters == NULL) {
        GCMP_FAIL_MEMORY(work->error);
    }
    for (size_t i = 0; i < count; i++) {
        const struct item *item = &work->items[i];
        parameters[i] = item->parameter;
        if (i > 0 && strcmp(parameters[i - 1].name, parameters[i].name) == 0) {
            const struct gcmp_rule *rule = item->touched;
            const struct gcmp_rule *other = work->items[i - 1].touched;
            rule = rule == NULL || (other != NULL && other->line > rule->line) ? other : rule;
            GCMP_RULE_FAIL(work->error, GRADCMP_ERROR_CORRUPT, work->mapping, rule,
                           "two parameters would be called %.300s", parameters[i].name);
        }
    }
    model->parameters = parameters;
    model->count = count;
    model->frozen = 0; /* their names would not be mapped */
    return GRADCMP_OK;
}

static enum gradcmp_status apply(struct work *work, enum gcmp_mapping_side side) {
    for (size_t i = 0; i < work->model->count; i++) {
        const struct gradcmp_parameter *parameter = &work->model->parameters[i];
        int64_t before;
        GCMP_TRY(find_before(work, parameter, &before));
        GCMP_TRY(add_item(work, parameter, NULL, before));
    }
    GCMP_TRY(run_rules(work, side));
    GCMP_TRY(place_all(work));
    return finish(work);
}

enum gradcmp_status gcmp_mapping_apply(struct gcmp_mapping *mapping,
                                       const struct gradcmp_catalogue *catalogue,
                                       enum gcmp_mapping_side side, struct gradcmp_model *model,
                                       struct gradcmp_error *error) {
    struct work work = {.mapping = mapping,
                        .use = {.mapping = mapping, .catalogue = catalogue, .arena = model->arena},
                        .model = model,
                        .error = error};
    enum gradcmp_status status = apply(&work, side);
    free(work.items);
    return status;
}

enum gradcmp_status gcmp_mapping_check_used(const struct gcmp_mapping *mapping, unsigned sides,
                                            struct gradcmp_error *error) {
    for (size_t i = 0; i < mapping->rule_count; i++) {
        const struct gcmp_rule *rule = &mapping->rules[i];
        if (!rule->has_matched && (rule->sides & sides) != 0) {
            GCMP_RULE_FAIL(error, GRADCMP_ERROR_CORRUPT, mapping, rule,
                           "no parameter matches \"%.300s\" (names are as gradcmp ls shows them, "
                           "and the whole of one must match)",
                           rule->pattern);
        }
    }
    return GRADCMP_OK;
}
