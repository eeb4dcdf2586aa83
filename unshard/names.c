/* Reads all names of a catalogue together: whether a prefix can go, which two tensors are halves of
 * one, and which of two spellings a layer uses, is seen only beside the other names. */
#include "unshard/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "unshard/name_parse.h"

/* Two spellings of one parameter: of a norm that is a module of its own, and of the same norm fused
 * into the matrix behind it, as distributed checkpoints and Transformer Engine name it. The fused
 * spelling is canonical, in layers that have such a matrix (or, of a mixture of experts, a router,
 * whose norm some writers name either way). */
struct alias {
    const char *from, *to, *companion, *other_companion;
};
static const struct alias ALIASES[] = {
    {"input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight",
     "self_attention.linear_qkv.weight", NULL},
    {"input_layernorm.bias", "self_attention.linear_qkv.layer_norm_bias",
     "self_attention.linear_qkv.weight", NULL},
    {"pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight", "mlp.linear_fc1.weight",
     "mlp.router.weight"},
    {"pre_mlp_layernorm.bias", "mlp.linear_fc1.layer_norm_bias", "mlp.linear_fc1.weight",
     "mlp.router.weight"},
};

bool gcmp_is_parameter_state(const char *state) {
    return state != NULL && strcmp(state, "step") != 0;
}

bool gcmp_is_weight_state(const char *state) {
    return strcmp(state, "param") == 0 || strcmp(state, "fp32_param") == 0 ||
           strcmp(state, "master") == 0;
}

bool gcmp_is_of_state(const struct gradcmp_stored *stored, const char *state) {
    return stored->layout == GRADCMP_LAYOUT_MODEL && stored->state != NULL &&
           strcmp(stored->state, state) == 0;
}

/* A name that some tensor of any state has: the first of them, and a bit for each state. */
struct neighbour {
    const char *stored_name;
    uint64_t states;
    bool was_unwrapped;
};

/* All names of the catalogue's parameters; made only where a name needs to see the others. */
struct neighbours {
    struct gcmp_map by_text; /* text -> index; halves with their suffixes */
    struct neighbour *list;
    const char *states[64]; /* one bit each; with more, the last is shared */
    size_t state_count;
    bool is_ambiguous; /* taking prefixes off gave two tensors of one state the same name */
};

static uint64_t state_bit(struct neighbours *all, const char *state) {
    size_t i = 0;
    while (i < all->state_count && strcmp(all->states[i], state) != 0) {
        i++;
    }
    if (i == all->state_count && i < 64) {
        all->states[all->state_count++] = state;
    }
    return (uint64_t)1 << (i < 64 ? i : 63);
}

static enum gradcmp_status add_neighbour(struct neighbours *all,
                                         const struct gradcmp_stored *stored,
                                         const struct gcmp_name *name,
                                         struct gradcmp_error *error) {
    size_t index;
    uint64_t bit = state_bit(all, stored->state);
    enum gcmp_map_result result =
        gcmp_map_add(&all->by_text, name->text, strlen(name->text), all->by_text.count, &index);
    struct neighbour *first = &all->list[index];
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    if (result == GCMP_MAP_ADDED) {
        *first = (struct neighbour){stored->name, 0, name->was_unwrapped};
    } else if (strcmp(first->stored_name, stored->name) != 0 && (first->states & bit) != 0 &&
               (first->was_unwrapped || name->was_unwrapped)) {
        all->is_ambiguous = true;
    }
    first->states |= bit;
    return GRADCMP_OK;
}

/* Parse all names; all->is_ambiguous tells whether prefixes may go. Freed by free_neighbours. */
static enum gradcmp_status meet_neighbours(const struct gradcmp_catalogue *catalogue, bool unwrap,
                                           struct gcmp_arena *arena, struct neighbours *all,
                                           struct gradcmp_error *error) {
    *all = (struct neighbours){.by_text = GCMP_MAP_INIT};
    all->list = calloc(catalogue->stored_count + 1, sizeof *all->list);
    if (all->list == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->layout != GRADCMP_LAYOUT_BUCKET && gcmp_is_parameter_state(stored->state)) {
            struct gcmp_name name;
            GCMP_TRY(gcmp_name_parse(stored->name, unwrap, arena, &name, error));
            GCMP_TRY(add_neighbour(all, stored, &name, error));
        }
    }
    return GRADCMP_OK;
}

static void free_neighbours(struct neighbours *all) {
    free(all->list);
    gcmp_map_free(&all->by_text);
}

/* Room for any text: longer spellings and a tail of the table add less than twice the name. */
enum { COMPOSED_BYTES = 2 * GCMP_MAX_NAME_BYTES + 128 };

static bool is_there(const struct neighbours *all, const char *text) {
    size_t ignored;
    return gcmp_map_find(&all->by_text, text, strlen(text), &ignored);
}

/* Tell whether a name of that prefix and tail is there, whole or as halves. */
static bool has_sibling(const struct neighbours *all, const char *text, size_t prefix_bytes,
                        const char *tail) {
    static const char *const suffixes[] = {"", "_w"};
    for (size_t i = 0; tail != NULL && i < 2; i++) {
        char composed[COMPOSED_BYTES];
        snprintf(composed, sizeof composed, "%.*s%s%s", (int)prefix_bytes, text, tail, suffixes[i]);
        if (is_there(all, composed)) {
            return true;
        }
    }
    return false;
}

/* Find the alias that a text ends with, as whole components; *prefix_bytes is what precedes it. */
static const struct alias *find_alias(const char *text, size_t *prefix_bytes) {
    size_t text_bytes = strlen(text);
    for (size_t i = 0; i < sizeof ALIASES / sizeof ALIASES[0]; i++) {
        size_t tail_bytes = strlen(ALIASES[i].from);
        if (tail_bytes < text_bytes && text[text_bytes - tail_bytes - 1] == '.' &&
            strcmp(text + text_bytes - tail_bytes, ALIASES[i].from) == 0) {
            *prefix_bytes = text_bytes - tail_bytes;
            return &ALIASES[i];
        }
    }
    return NULL;
}

static enum gradcmp_status apply_alias(const struct neighbours *all, struct gcmp_name *name,
                                       struct gcmp_arena *arena, struct gradcmp_error *error) {
    size_t prefix;
    const struct alias *alias = find_alias(name->text, &prefix);
    if (alias == NULL || has_sibling(all, name->text, prefix, alias->to) ||
        !(has_sibling(all, name->text, prefix, alias->companion) ||
          has_sibling(all, name->text, prefix, alias->other_companion))) {
        return GRADCMP_OK;
    }
    name->text = gcmp_arena_format(arena, "%.*s%s", (int)prefix, name->text, alias->to);
    if (name->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Two tensors are halves only where both are there: a weight norm also stores a "weight_v". */
static enum gradcmp_status join_halves(const struct neighbours *all, struct gcmp_name *name,
                                       struct gcmp_arena *arena, struct gradcmp_error *error) {
    if (name->half == GCMP_HALF_NONE) {
        return GRADCMP_OK;
    }
    char other[COMPOSED_BYTES];
    size_t bytes = strlen(name->text);
    snprintf(other, sizeof other, "%s", name->text);
    other[bytes - 1] = name->half == GCMP_HALF_FIRST ? 'v' : 'w';
    if (!is_there(all, other)) {
        name->half = GCMP_HALF_NONE;
        return GRADCMP_OK;
    }
    name->text = gcmp_arena_text(arena, name->text, bytes - 2);
    if (name->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* The names of one state under way. */
struct reading {
    const struct gradcmp_catalogue *catalogue;
    const char *state;
    struct gcmp_arena *arena;
    struct gcmp_name *names;
    size_t count;
    bool needs_neighbours; /* some name has to see the others */
};

static enum gradcmp_status parse_state(struct reading *reading, bool unwrap,
                                       struct gradcmp_error *error) {
    reading->count = 0;
    for (size_t i = 0; i < reading->catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &reading->catalogue->stored[i];
        if (gcmp_is_of_state(stored, reading->state)) {
            struct gcmp_name *name = &reading->names[reading->count++];
            size_t ignored;
            GCMP_TRY(gcmp_name_parse(stored->name, unwrap, reading->arena, name, error));
            reading->needs_neighbours = reading->needs_neighbours || name->was_unwrapped ||
                                        name->half != GCMP_HALF_NONE ||
                                        find_alias(name->text, &ignored) != NULL;
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status see_neighbours(struct reading *reading, struct neighbours *all,
                                          struct gradcmp_error *error) {
    GCMP_TRY(meet_neighbours(reading->catalogue, true, reading->arena, all, error));
    if (all->is_ambiguous) { /* then the prefix means something: keep it everywhere */
        free_neighbours(all);
        GCMP_TRY(meet_neighbours(reading->catalogue, false, reading->arena, all, error));
        GCMP_TRY(parse_state(reading, false, error));
    }
    for (size_t i = 0; i < reading->count; i++) {
        GCMP_TRY(apply_alias(all, &reading->names[i], reading->arena, error));
        GCMP_TRY(join_halves(all, &reading->names[i], reading->arena, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_names_read(const struct gradcmp_catalogue *catalogue, const char *state,
                                    struct gcmp_arena *arena, struct gcmp_name **names,
                                    struct gradcmp_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        count += gcmp_is_of_state(&catalogue->stored[i], state);
    }
    struct reading reading = {.catalogue = catalogue, .state = state, .arena = arena};
    reading.names = calloc(count + 1, sizeof *reading.names);
    *names = reading.names;
    if (reading.names == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = parse_state(&reading, true, error);
    if (status == GRADCMP_OK && reading.needs_neighbours) {
        struct neighbours all;
        status = see_neighbours(&reading, &all, error);
        free_neighbours(&all);
    }
    if (status != GRADCMP_OK) {
        free(reading.names);
        *names = NULL;
    }
    return status;
}

/* Write "<number>." and return its length. */
static size_t write_index(char *to, int64_t number) {
    char digits[24];
    size_t bytes = 0;
    do {
        digits[bytes++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < bytes; i++) {
        to[i] = digits[bytes - 1 - i];
    }
    to[bytes] = '.';
    return bytes + 1;
}

const char *gcmp_name_compose(const struct gcmp_name *name, int64_t layer, int64_t expert,
                              struct gcmp_arena *arena) {
    char composed[COMPOSED_BYTES + 48];
    size_t at = 0, taken = 0, text_bytes = strlen(name->text);
    if (layer >= 0) {
        memcpy(composed, name->text, name->layer_at);
        at = taken = name->layer_at;
        at += write_index(composed + at, layer);
    }
    if (expert >= 0) {
        memcpy(composed + at, name->text + taken, name->expert_at - taken);
        at += name->expert_at - taken;
        taken = name->expert_at;
        at += write_index(composed + at, expert);
    }
    memcpy(composed + at, name->text + taken, text_bytes - taken);
    return gcmp_arena_text(arena, composed, at + text_bytes - taken);
}
