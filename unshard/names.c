/* Reads all names of a catalogue together: whether a prefix can go, which two tensors are halves of
 * one, and which of two spellings a layer uses, is seen only beside the other names. */
#include "unshard/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Room for any text: longer spellings and a tail of the table add less than twice the name. */
enum { COMPOSED_BYTES = 2 * GCMP_MAX_NAME_BYTES + 128 };

static bool is_text(const struct gcmp_names *names, const char *text) {
    size_t ignored;
    return gcmp_map_find(&names->by_text, text, strlen(text), &ignored);
}

/* Tell whether a name of that prefix and tail is there, whole or as halves. */
static bool has_sibling(const struct gcmp_names *names, const char *text, size_t prefix_bytes,
                        const char *tail) {
    static const char *const suffixes[] = {"", "_w"};
    for (size_t i = 0; tail != NULL && i < 2; i++) {
        char composed[COMPOSED_BYTES];
        snprintf(composed, sizeof composed, "%.*s%s%s", (int)prefix_bytes, text, tail, suffixes[i]);
        if (is_text(names, composed)) {
            return true;
        }
    }
    return false;
}

/* Bytes of `text` before `tail`; SIZE_MAX where it does not end so at a component. */
static size_t before_tail(const char *text, const char *tail) {
    size_t text_bytes = strlen(text), tail_bytes = strlen(tail);
    if (tail_bytes >= text_bytes || strcmp(text + text_bytes - tail_bytes, tail) != 0 ||
        text[text_bytes - tail_bytes - 1] != '.') {
        return SIZE_MAX;
    }
    return text_bytes - tail_bytes;
}

static enum gradcmp_status apply_aliases(const struct gcmp_names *names, struct gcmp_name *name,
                                         struct gcmp_arena *arena, struct gradcmp_error *error) {
    for (size_t i = 0; i < sizeof ALIASES / sizeof ALIASES[0]; i++) {
        const struct alias *alias = &ALIASES[i];
        size_t prefix = before_tail(name->text, alias->from);
        if (prefix == SIZE_MAX || has_sibling(names, name->text, prefix, alias->to) ||
            !(has_sibling(names, name->text, prefix, alias->companion) ||
              has_sibling(names, name->text, prefix, alias->other_companion))) {
            continue;
        }
        name->text = gcmp_arena_format(arena, "%.*s%s", (int)prefix, name->text, alias->to);
        if (name->text == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        return GRADCMP_OK;
    }
    return GRADCMP_OK;
}

/* Two tensors are halves only where both are there: a weight norm also stores a "weight_v". */
static enum gradcmp_status join_halves(const struct gcmp_names *names, struct gcmp_name *name,
                                       struct gcmp_arena *arena, struct gradcmp_error *error) {
    if (name->half == GCMP_HALF_NONE) {
        return GRADCMP_OK;
    }
    char other[COMPOSED_BYTES];
    size_t bytes = strlen(name->text);
    snprintf(other, sizeof other, "%s", name->text);
    other[bytes - 1] = name->half == GCMP_HALF_FIRST ? 'v' : 'w';
    if (!is_text(names, other)) {
        name->half = GCMP_HALF_NONE;
        return GRADCMP_OK;
    }
    name->text = gcmp_arena_text(arena, name->text, bytes - 2);
    if (name->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* One bit for each distinct state; with more than 64, the last is shared. */
struct state_bits {
    const char *states[64];
    size_t count;
};

static uint64_t state_bit(struct state_bits *bits, const char *state) {
    size_t i = 0;
    while (i < bits->count && strcmp(bits->states[i], state) != 0) {
        i++;
    }
    if (i == bits->count && i < 64) {
        bits->states[bits->count++] = state;
    }
    return (uint64_t)1 << (i < 64 ? i : 63);
}

/* Parse one stored tensor's name, unless it was met before, and note its state. */
static enum gradcmp_status add_name(struct gcmp_names *names, const char *stored_name,
                                    uint64_t state, bool unwrap, struct gcmp_arena *arena,
                                    struct gradcmp_error *error) {
    size_t index;
    enum gcmp_map_result result =
        gcmp_map_add(&names->by_stored, stored_name, strlen(stored_name), names->count, &index);
    if (result == GCMP_MAP_PRESENT) {
        names->list[index].states |= state;
        return GRADCMP_OK;
    }
    struct gcmp_name *name = &names->list[names->count];
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_name_parse(stored_name, unwrap, arena, name, error));
    name->states = state;
    names->count++;
    result = gcmp_map_add(&names->by_text, name->text, strlen(name->text), index, NULL);
    if (result == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status parse_all(const struct gradcmp_catalogue *catalogue, bool unwrap,
                                     struct gcmp_arena *arena, struct gcmp_names *names,
                                     struct gradcmp_error *error) {
    struct state_bits bits = {.count = 0};
    *names = (struct gcmp_names){.by_stored = GCMP_MAP_INIT, .by_text = GCMP_MAP_INIT};
    names->list = calloc(catalogue->stored_count + 1, sizeof *names->list);
    if (names->list == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->layout != GRADCMP_LAYOUT_BUCKET && gcmp_is_parameter_state(stored->state)) {
            uint64_t bit = state_bit(&bits, stored->state);
            GCMP_TRY(add_name(names, stored->name, bit, unwrap, arena, error));
        }
    }
    return GRADCMP_OK;
}

/* True where a prefix that was taken off gave two tensors of one state the same name. */
static bool is_ambiguous(struct gcmp_names *names) {
    for (size_t i = 0; i < names->count; i++) {
        struct gcmp_name *name = &names->list[i];
        size_t index;
        gcmp_map_find(&names->by_text, name->text, strlen(name->text), &index);
        struct gcmp_name *first = &names->list[index];
        if (first != name && (first->states & name->states) != 0 &&
            (first->was_unwrapped || name->was_unwrapped)) {
            return true;
        }
        first->states |= name->states;
    }
    return false;
}

enum gradcmp_status gcmp_names_read(const struct gradcmp_catalogue *catalogue,
                                    struct gcmp_arena *arena, struct gcmp_names *names,
                                    struct gradcmp_error *error) {
    GCMP_TRY(parse_all(catalogue, true, arena, names, error));
    if (is_ambiguous(names)) { /* then the prefix means something: keep it everywhere */
        gcmp_names_free(names);
        GCMP_TRY(parse_all(catalogue, false, arena, names, error));
    }
    for (size_t i = 0; i < names->count; i++) {
        GCMP_TRY(apply_aliases(names, &names->list[i], arena, error));
        GCMP_TRY(join_halves(names, &names->list[i], arena, error));
    }
    return GRADCMP_OK;
}

void gcmp_names_free(struct gcmp_names *names) {
    free(names->list);
    names->list = NULL;
    names->count = 0;
    gcmp_map_free(&names->by_stored);
    gcmp_map_free(&names->by_text);
}

const struct gcmp_name *gcmp_names_find(const struct gcmp_names *names, const char *stored_name) {
    size_t index;
    bool found = gcmp_map_find(&names->by_stored, stored_name, strlen(stored_name), &index);
    return found ? &names->list[index] : NULL;
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

char *gcmp_name_compose(const struct gcmp_name *name, int64_t layer, int64_t expert,
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
