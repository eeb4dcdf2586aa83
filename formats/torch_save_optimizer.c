/* Optimizers in torch's own form: {"state": {number or name: {word: value}}, "param_groups": [{...,
 * "params": [numbers or names][, "param_names": [names]]}]}. Source: torch/optim/optimizer.py
 * (state_dict) of torch 1.0 to 2.15. Numbers count parameters over the groups since 1.6; before,
 * they were addresses, so that their order is all they tell. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "formats/optimizer_ids.h"
#include "formats/torch_save_set.h"

enum { MAX_GROUPS = 1 << 20, MAX_NAME_BYTES = 2048 };

#define PLACE_FAIL(place, code, node, ...)                                                         \
    GCMP_FAIL_AT((place)->error, (code),                                                           \
                 gcmp_dir_file_path((place)->torch->dir, (place)->torch->file),                    \
                 (place)->torch->pickle->offset_bytes + gcmp_node_at(node), "torch: " __VA_ARGS__)

/* One optimizer under way. */
struct walk {
    struct gcmp_pt_place *place;
    const char *path;
    uint32_t optimizer;
    bool is_known; /* another rank's file has listed its parameters */
    bool is_own;   /* the rank lists others than the ranks before */
    /* What groups say of their parameters; texts of their numbers, or their names, are the keys. */
    struct gcmp_map group_of;
    struct gradcmp_adam *adams; /* one a group */
    int64_t last_text_id;       /* the last number that stood as a text; -1: none yet */
};

/* How entries are found: bytes of this are the key. */
struct entry_key {
    int64_t id;
    uint64_t optimizer;
};

static struct gcmp_arena *arena_of(const struct walk *walk) {
    return walk->place->set->catalogue->arena;
}

const char *gcmp_pt_state_word(struct gcmp_arena *arena, const char *word) {
    static const char *const masters[] = {"fp32_param", "param", "fp32", "master_param"};
    for (size_t i = 0; i < sizeof masters / sizeof *masters; i++) {
        if (strcmp(masters[i], word) == 0) {
            return masters[0]; /* so that "param" is always the model's weight */
        }
    }
    return gcmp_arena_dup(arena, word);
}

/* --- groups --- */

static enum gradcmp_status add_entry(struct walk *walk, const struct gcmp_node *node, int64_t id,
                                     const struct gcmp_node *name) {
    struct gcmp_pt_set *set = walk->place->set;
    struct entry_key *key = gcmp_arena_alloc(arena_of(walk), 1, sizeof *key);
    const char *copy = name == NULL ? NULL : gcmp_arena_dup(arena_of(walk), gcmp_node_text(name));
    if (key == NULL ||
        !gcmp_grow(&set->entries, set->entry_count, &set->entry_capacity, sizeof *set->entries) ||
        (name != NULL && copy == NULL)) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    *key = (struct entry_key){id, walk->optimizer};
    enum gcmp_map_result result =
        gcmp_map_add(&set->entry_index, key, sizeof *key, set->entry_count, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    if (result == GCMP_MAP_PRESENT) {
        PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, node,
                   "param_groups list parameter %lld twice", (long long)id);
    }
    set->entries[set->entry_count++] =
        (struct gcmp_pt_entry){.optimizer = walk->optimizer,
                               .group = set->group_count,
                               .rank = walk->is_own ? walk->place->rank : -1,
                               .id = id,
                               .name = copy};
    set->optimizers[walk->optimizer].count++;
    return GRADCMP_OK;
}

static const char *write_number(int64_t id, char text[32]) {
    snprintf(text, 32, "#%lld", (long long)id); /* no name of a parameter starts so */
    return text;
}

/* The key under which a parameter's group is found; NULL where it is neither number nor name. */
static const char *group_key(const struct gcmp_node *param, char text[32]) {
    int64_t id;
    if (!gcmp_node_int(param, &id)) {
        return gcmp_node_text(param);
    }
    return write_number(id, text);
}

/* Remember which group a parameter is of. */
static enum gradcmp_status note_group(struct walk *walk, const struct gcmp_node *param,
                                      size_t group) {
    char text[32];
    const char *key = group_key(param, text);
    const char *copy = key == NULL ? NULL : gcmp_arena_dup(arena_of(walk), key);
    if (key != NULL && (copy == NULL || gcmp_map_add(&walk->group_of, copy, strlen(copy), group,
                                                     NULL) == GCMP_MAP_NO_MEMORY)) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    return GRADCMP_OK;
}

/* Names may stand in place of numbers; they are not entries, for they need no name. */
static enum gradcmp_status walk_group(struct walk *walk, const struct gcmp_node *group,
                                      size_t number) {
    const struct gcmp_node *params = gcmp_node_get(group, "params");
    const struct gcmp_node *names = gcmp_node_get(group, "param_names");
    size_t count = gcmp_node_count(params);
    if (params == NULL || (params->kind != GCMP_NODE_LIST && params->kind != GCMP_NODE_TUPLE)) {
        PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, group,
                   "expected a list \"params\" in a group of parameters, found %s",
                   gcmp_node_kind_name(params));
    }
    bool is_named = names != NULL && names->kind != GCMP_NODE_NONE;
    if (is_named && gcmp_node_count(names) != count) {
        PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, names,
                   "a group of %zu parameters with %zu names", count, gcmp_node_count(names));
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *param = gcmp_node_item(params, i);
        const struct gcmp_node *name = is_named ? gcmp_node_item(names, i) : NULL;
        int64_t id;
        GCMP_TRY(gcmp_pt_visit(walk->place, params, 0));
        GCMP_TRY(note_group(walk, param, number));
        if (gcmp_node_text(param) != NULL) {
            continue;
        }
        if (!gcmp_node_int(param, &id)) {
            PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, param,
                       "expected a number or a name of a parameter, found %s",
                       gcmp_node_kind_name(param));
        }
        if (name != NULL && gcmp_node_text(name) == NULL) {
            PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, name,
                       "param_names: expected the name of parameter %lld, found %s", (long long)id,
                       gcmp_node_kind_name(name));
        }
        if (!walk->is_known) {
            GCMP_TRY(add_entry(walk, param, id, name));
        }
    }
    return GRADCMP_OK;
}

/* --- steps --- */

/* Take note of one step count: all parameters' must agree to tell the iteration. */
static void note_step(struct gcmp_pt_set *set, double value) {
    bool is_count = value >= 0.0 && value <= 9007199254740992.0 && floor(value) >= value;
    int64_t step = is_count ? (int64_t)value : -2;
    set->step = set->step == -1 || set->step == step ? step : -2;
}

/* --- state --- */

/* Add one value of a parameter's state: tensors, and what "step" says in any form. */
static enum gradcmp_status walk_value(struct walk *walk, const struct gcmp_node *key,
                                      const struct gcmp_node *value, struct gcmp_pt_tensor about,
                                      double *step) {
    const char *word = gcmp_node_text(key);
    struct gcmp_pt_set *set = walk->place->set;
    double number;
    if (word == NULL || strlen(word) > MAX_NAME_BYTES) {
        return GRADCMP_OK;
    }
    bool is_step = strcmp(word, "step") == 0;
    if (!gcmp_pt_is_tensor(value)) {
        if (is_step && gcmp_node_number(value, &number)) {
            note_step(set, number);
            *step = number;
        }
        return GRADCMP_OK;
    }
    GCMP_TRY(
        gcmp_pt_visit(walk->place, key, GCMP_PT_TENSOR_BYTES + strlen(about.key) + strlen(word)));
    about.key = gcmp_arena_format(arena_of(walk), "%s.%s", about.key, word);
    about.state = gcmp_pt_state_word(arena_of(walk), word);
    if (about.key == NULL || about.state == NULL) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    size_t before = set->tensor_count;
    GCMP_TRY(gcmp_pt_add_tensor(walk->place, value, &about));
    const struct gcmp_pt_tensor *added = &set->tensors[before];
    if (is_step && set->tensor_count > before && added->unread == NULL && added->ndim == 0) {
        bool found;
        GCMP_TRY(gcmp_torch_read_scalar(walk->place->torch, &added->view, &found, &number,
                                        walk->place->error));
        if (found) {
            note_step(set, number);
            *step = number;
        }
    }
    return GRADCMP_OK;
}

/* The number that a text is, as torch's converter from distributed checkpoints writes them, where a
 * group lists it; else -1. */
static int64_t number_of_text(const struct walk *walk, const char *text) {
    struct entry_key entry = {0, walk->optimizer};
    size_t index, digits = text == NULL ? 0 : strspn(text, "0123456789");
    bool is_decimal =
        digits > 0 && digits < 19 && text[digits] == '\0' && (text[0] != '0' || digits == 1);
    entry.id = is_decimal ? strtoll(text, NULL, 10) : -1;
    return is_decimal && gcmp_map_find(&walk->place->set->entry_index, &entry, sizeof entry, &index)
               ? entry.id
               : -1;
}

/* The converter takes the order of all keys from one list: where numbers are not in their order,
 * weights need not be in the model's. */
static void note_text_number(struct walk *walk, int64_t id) {
    struct gcmp_pt_set *set = walk->place->set;
    set->is_ordered = set->is_ordered && id > walk->last_text_id;
    walk->last_text_id = id;
}

/* Say whose state it is: a name, or a number that a group lists. */
static enum gradcmp_status identify(struct walk *walk, const struct gcmp_node *key,
                                    struct gcmp_pt_tensor *about) {
    const char *prefix = walk->path[0] == '\0' ? "" : walk->path, *dot = prefix[0] ? "." : "";
    const char *name = gcmp_node_text(key);
    struct entry_key entry = {number_of_text(walk, name), walk->optimizer};
    bool is_text_number = entry.id >= 0;
    if (is_text_number) {
        note_text_number(walk, entry.id);
    }
    if (name != NULL && !is_text_number && strlen(name) <= MAX_NAME_BYTES) {
        about->key = gcmp_arena_format(arena_of(walk), "%s%sstate.%s", prefix, dot, name);
        about->name = gcmp_arena_dup(arena_of(walk), name);
        if (about->name == NULL) {
            GCMP_FAIL_MEMORY(walk->place->error);
        }
    } else if (is_text_number || gcmp_node_int(key, &entry.id)) {
        about->key =
            gcmp_arena_format(arena_of(walk), "%s%sstate.%lld", prefix, dot, (long long)entry.id);
        if (!gcmp_map_find(&walk->place->set->entry_index, &entry, sizeof entry, &about->entry)) {
            PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, key,
                       "a state of parameter %lld, which no group lists", (long long)entry.id);
        }
    } else {
        PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, key,
                   "expected a number or a name of a parameter, found %s",
                   gcmp_node_kind_name(key));
    }
    if (about->key == NULL) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    return GRADCMP_OK;
}

/* What the group of a parameter says; NaN where it is of none. */
static struct gradcmp_adam adam_of_group(const struct walk *walk, const struct gcmp_node *key) {
    char text[32];
    int64_t id = number_of_text(walk, gcmp_node_text(key));
    const char *name = group_key(key, text);
    size_t group;
    if (id >= 0) {
        name = write_number(id, text);
    }
    if (name == NULL || !gcmp_map_find(&walk->group_of, name, strlen(name), &group)) {
        return (struct gradcmp_adam){(double)NAN, (double)NAN, (double)NAN};
    }
    return walk->adams[group];
}

/* Walk over one parameter's values; *step is left where they tell none. */
static enum gradcmp_status walk_values(struct walk *walk, const struct gcmp_node *values,
                                       struct gcmp_pt_tensor about, double *step) {
    for (size_t i = 0; i < gcmp_node_count(values); i++) {
        const struct gcmp_node *word = NULL, *value = NULL;
        GCMP_TRY(gcmp_pt_visit(walk->place, values, 0));
        if (gcmp_node_pair(values, i, &word, &value)) {
            GCMP_TRY(walk_value(walk, word, value, about, step));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status walk_parameter(struct walk *walk, const struct gcmp_node *key,
                                          const struct gcmp_node *values) {
    struct gcmp_pt_tensor about = {.kind = GCMP_PT_STATE, .entry = SIZE_MAX};
    bool is_dict = values != NULL && !gcmp_pt_is_tensor(values) &&
                   (values->kind == GCMP_NODE_DICT || values->kind == GCMP_NODE_CALL);
    if (!is_dict) { /* some optimizers keep other things there, under names */
        if (gcmp_node_text(key) != NULL && !gcmp_pt_is_tensor(values)) {
            return GRADCMP_OK;
        }
        PLACE_FAIL(walk->place, GRADCMP_ERROR_CORRUPT, values,
                   "expected a dict as state of a parameter, found %s",
                   gcmp_node_kind_name(values));
    }
    GCMP_TRY(identify(walk, key, &about));
    struct gradcmp_adam *adam = gcmp_arena_alloc(arena_of(walk), 1, sizeof *adam);
    if (adam == NULL) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    *adam = adam_of_group(walk, key);
    about.adam = adam;
    return walk_values(walk, values, about, &adam->step);
}

static enum gradcmp_status walk_groups(struct walk *walk, const struct gcmp_node *groups) {
    struct gcmp_pt_set *set = walk->place->set;
    walk->adams = gcmp_arena_alloc(arena_of(walk), gcmp_node_count(groups), sizeof *walk->adams);
    if (walk->adams == NULL) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    for (size_t i = 0; i < gcmp_node_count(groups); i++) {
        const struct gcmp_node *group = gcmp_node_item(groups, i);
        double step;
        GCMP_TRY(gcmp_pt_visit(walk->place, groups, 0));
        GCMP_TRY(walk_group(walk, group, i));
        walk->adams[i] = gcmp_pt_group_adam(group);
        if (gcmp_node_number(gcmp_node_get(group, "step"), &step)) {
            note_step(set, step);
        }
        if (!walk->is_known) {
            set->group_count++;
        }
    }
    return gcmp_pt_read_groups(set->catalogue, groups, walk->place->error);
}

/* --- optimizers that ranks have in common --- */

/* Whether a group lists what entries of a group are, in their order; *at is the next entry.
 * Parameters that are named are none. */
static bool is_group_listed(const struct gcmp_pt_set *set, size_t end,
                            const struct gcmp_node *group, size_t *at) {
    const struct gcmp_node *params = gcmp_node_get(group, "params");
    const struct gcmp_node *names = gcmp_node_get(group, "param_names");
    size_t count = gcmp_node_count(params);
    if (count == 0 || gcmp_node_text(gcmp_node_item(params, 0)) != NULL) {
        return true;
    }
    for (size_t i = 0; i < count; i++, (*at)++) {
        const struct gcmp_pt_entry *entry = *at == end ? NULL : &set->entries[*at];
        int64_t id;
        if (entry == NULL || !gcmp_node_int(gcmp_node_item(params, i), &id) || id != entry->id ||
            entry->group != set->entries[*at - i].group) {
            return false;
        }
        const char *name =
            i < gcmp_node_count(names) ? gcmp_node_text(gcmp_node_item(names, i)) : NULL;
        if (name == NULL || entry->name == NULL ? name != entry->name
                                                : strcmp(name, entry->name) != 0) {
            return false;
        }
    }
    return *at == end || set->entries[*at].group != set->entries[*at - 1].group;
}

/* Whether groups list the parameters of an optimizer as it does. */
static bool is_listed(const struct gcmp_pt_set *set, uint32_t number,
                      const struct gcmp_node *groups) {
    const struct gcmp_pt_optimizer *optimizer = &set->optimizers[number];
    size_t at = optimizer->first, end = optimizer->first + optimizer->count;
    for (size_t i = 0; i < gcmp_node_count(groups); i++) {
        if (!is_group_listed(set, end, gcmp_node_item(groups, i), &at)) {
            return false;
        }
    }
    return at == end;
}

/* The optimizer's number: files of further ranks hold the same ones, in the same order, or list
 * parameters of their own. */
static enum gradcmp_status number_optimizer(struct walk *walk, const struct gcmp_node *groups) {
    struct gcmp_pt_set *set = walk->place->set;
    size_t position = walk->place->optimizer++;
    walk->is_known = walk->place->rank > 0 && position < set->shared_count &&
                     is_listed(set, set->shared[position], groups);
    walk->is_own = walk->place->rank > 0 && !walk->is_known;
    if (walk->is_known) {
        walk->optimizer = set->shared[position];
        return GRADCMP_OK;
    }
    if (!gcmp_grow(&set->optimizers, set->optimizer_count, &set->optimizer_capacity,
                   sizeof *set->optimizers) ||
        !gcmp_grow(&set->shared, set->shared_count, &set->shared_capacity, sizeof *set->shared)) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    walk->optimizer = (uint32_t)set->optimizer_count++;
    set->optimizers[walk->optimizer] = (struct gcmp_pt_optimizer){
        .first = set->entry_count, .path = gcmp_arena_dup(arena_of(walk), walk->path)};
    if (set->optimizers[walk->optimizer].path == NULL) {
        GCMP_FAIL_MEMORY(walk->place->error);
    }
    if (!walk->is_own) {
        set->shared[set->shared_count++] = walk->optimizer;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status walk_optimizer(struct walk *walk, const struct gcmp_node *optimizer) {
    const struct gcmp_node *state = gcmp_node_get(optimizer, "state");
    const struct gcmp_node *groups = gcmp_node_get(optimizer, "param_groups");
    GCMP_TRY(number_optimizer(walk, groups));
    GCMP_TRY(walk_groups(walk, groups));
    for (size_t i = 0; i < gcmp_node_count(state); i++) {
        const struct gcmp_node *key = NULL, *values = NULL;
        GCMP_TRY(gcmp_pt_visit(walk->place, state, strlen(walk->path)));
        if (gcmp_node_pair(state, i, &key, &values)) {
            GCMP_TRY(walk_parameter(walk, key, values));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_walk_optimizer(struct gcmp_pt_place *place,
                                           const struct gcmp_node *optimizer, const char *path) {
    struct walk walk = {
        .place = place, .path = path, .group_of = GCMP_MAP_INIT, .last_text_id = -1};
    enum gradcmp_status status = walk_optimizer(&walk, optimizer);
    gcmp_map_free(&walk.group_of);
    return status;
}

enum gradcmp_status gcmp_pt_walk_state(struct gcmp_pt_place *place, const struct gcmp_node *key,
                                       const struct gcmp_node *values, const char *path) {
    const char *name = gcmp_node_text(key);
    if (name == NULL || strspn(name, "0123456789") == strlen(name)) {
        PLACE_FAIL(place, GRADCMP_ERROR_UNSUPPORTED, values,
                   "\"%s\" is the state of a parameter that has a number, and no list param_groups "
                   "beside it tells what numbers count" GCMP_IDS_WAY_OUT,
                   path);
    }
    struct walk walk = {.place = place, .path = path, .group_of = GCMP_MAP_INIT};
    struct gcmp_pt_tensor about = {.kind = GCMP_PT_STATE, .key = path, .entry = SIZE_MAX};
    struct gradcmp_adam *adam = gcmp_arena_alloc(arena_of(&walk), 1, sizeof *adam);
    about.name = gcmp_arena_dup(arena_of(&walk), name);
    if (adam == NULL || about.name == NULL) {
        GCMP_FAIL_MEMORY(place->error);
    }
    *adam = (struct gradcmp_adam){(double)NAN, (double)NAN, (double)NAN};
    about.adam = adam;
    return walk_values(&walk, values, about, &adam->step);
}
