/* Looking into JSON values, and whether two are the same data. */
#include "trace/json_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "trace/json_number.h"

enum { FEW_MEMBERS = 16 }; /* looked through one by one */

static bool is_same_bytes(const struct gcmp_jv *a, const struct gcmp_jv *b) {
    return a->count == b->count && memcmp(a->of.text, b->of.text, a->count) == 0;
}

uint32_t gcmp_jv_get(const struct gcmp_jv_text *text, uint32_t object, const char *key) {
    const struct gcmp_jv *value = &text->values[object];
    if (value->kind != GCMP_JV_OBJECT) {
        return GCMP_JV_ABSENT;
    }
    size_t length = strlen(key);
    uint32_t at = gcmp_jv_first(object);
    for (uint32_t i = 0; i < value->count; i++) {
        const struct gcmp_jv *found = &text->values[at];
        if (found->count == length && memcmp(found->of.text, key, length) == 0) {
            return at + 1;
        }
        at = gcmp_jv_next(text, at + 1);
    }
    return GCMP_JV_ABSENT;
}

/* Learn where the keys of an object stand; false without memory. */
static bool map_keys(const struct gcmp_jv_text *text, uint32_t object, struct gcmp_map *keys) {
    uint32_t at = gcmp_jv_first(object);
    for (uint32_t i = 0; i < text->values[object].count; i++) {
        const struct gcmp_jv *key = &text->values[at];
        if (gcmp_map_add(keys, key->of.text, key->count, at, NULL) == GCMP_MAP_NO_MEMORY) {
            gcmp_map_free(keys);
            *keys = (struct gcmp_map)GCMP_MAP_INIT;
            return false;
        }
        at = gcmp_jv_next(text, at + 1);
    }
    return true;
}

uint32_t gcmp_jv_find(const struct gcmp_jv_text *text, uint32_t object, const struct gcmp_jv *key,
                      uint32_t guess, struct gcmp_map *keys) {
    const struct gcmp_jv *value = &text->values[object];
    size_t at;
    if (value->kind != GCMP_JV_OBJECT) {
        return GCMP_JV_ABSENT;
    }
    if (guess > object && guess < value->next && is_same_bytes(key, &text->values[guess])) {
        return guess + 1;
    }
    if (value->count <= FEW_MEMBERS || (keys->count == 0 && !map_keys(text, object, keys))) {
        return gcmp_jv_get(text, object, key->of.text);
    }
    return gcmp_map_find(keys, key->of.text, key->count, &at) ? (uint32_t)at + 1 : GCMP_JV_ABSENT;
}

const char *gcmp_jv_string(const struct gcmp_jv_text *text, uint32_t at) {
    return gcmp_jv_is(text, at, GCMP_JV_STRING) ? text->values[at].of.text : NULL;
}

bool gcmp_jv_count(const struct gcmp_jv_text *text, uint32_t at, int64_t *out) {
    const struct gcmp_jv *value = &text->values[at];
    if (!gcmp_jv_is(text, at, GCMP_JV_INTEGER) || value->of.magnitude > INT64_MAX ||
        (value->is_negative && value->of.magnitude != 0)) {
        return false;
    }
    *out = (int64_t)value->of.magnitude;
    return true;
}

double gcmp_jv_number(const struct gcmp_jv_text *text, uint32_t at) {
    const struct gcmp_jv *value = &text->values[at];
    if (value->kind == GCMP_JV_REAL) {
        return gcmp_number_real(value->of.text, value->count, text->numeric);
    }
    return value->is_negative ? -(double)value->of.magnitude : (double)value->of.magnitude;
}

static bool is_number(const struct gcmp_jv *value) {
    return value->kind == GCMP_JV_INTEGER || value->kind == GCMP_JV_REAL;
}

/* An integer and a real are the same only where the integer has a binary64 of its own. */
static bool is_exact(const struct gcmp_jv *value) {
    return value->kind != GCMP_JV_INTEGER || value->of.magnitude <= (UINT64_C(1) << 53);
}

/* Two numbers with one nearest binary64: the same where both texts say no more than it does, or
 * both the same. */
static bool is_same_text_of(const struct gcmp_jv *x, const struct gcmp_jv *y, double nearest) {
    const struct gcmp_jv *const values[] = {x, y};
    struct gcmp_decimal decimals[2];
    bool is_held = true;
    for (int i = 0; i < 2; i++) {
        if (values[i]->kind == GCMP_JV_INTEGER) {
            decimals[i].count = 0;
        } else if (!gcmp_decimal_read(values[i]->of.text, values[i]->count, &decimals[i])) {
            return false;
        } else {
            is_held = is_held && gcmp_decimal_is_held(&decimals[i], nearest);
        }
    }
    return is_held || (x->kind == y->kind && gcmp_decimal_same(&decimals[0], &decimals[1]));
}

static bool is_same_number(const struct gcmp_jv_text *a, uint32_t at_a,
                           const struct gcmp_jv_text *b, uint32_t at_b) {
    const struct gcmp_jv *x = &a->values[at_a];
    const struct gcmp_jv *y = &b->values[at_b];
    if (x->kind == GCMP_JV_INTEGER && y->kind == GCMP_JV_INTEGER) {
        return x->of.magnitude == y->of.magnitude &&
               (x->is_negative == y->is_negative || x->of.magnitude == 0);
    }
    if (x->kind == y->kind && is_same_bytes(x, y)) {
        return true;
    }
    double p = gcmp_jv_number(a, at_a);
    double q = gcmp_jv_number(b, at_b);
    if (!is_exact(x) || !is_exact(y)) {
        return false;
    }
    if (!isfinite(p) || !isfinite(q)) {
        return p == q || (isnan(p) && isnan(q));
    }
    return p == q && is_same_text_of(x, y, p);
}

/* Compare two values without what is in them. */
static bool is_same_node(const struct gcmp_jv_text *a, uint32_t at_a, const struct gcmp_jv_text *b,
                         uint32_t at_b) {
    const struct gcmp_jv *x = &a->values[at_a];
    const struct gcmp_jv *y = &b->values[at_b];
    if (is_number(x) && is_number(y)) {
        return is_same_number(a, at_a, b, at_b);
    }
    if (x->kind != y->kind) {
        return false;
    }
    if (x->kind == GCMP_JV_STRING) {
        return is_same_bytes(x, y);
    }
    return x->kind < GCMP_JV_ARRAY || x->count == y->count;
}

/* A walk through two trees at once, without recursion: depth is bounded by the reader. */
struct level {
    uint32_t a, b;       /* the containers */
    uint32_t at_a, at_b; /* next item or key */
    uint32_t left, index;
};

struct walk {
    const struct gcmp_jv_text *a, *b;
    struct level levels[GCMP_JV_MAX_DEPTH + 1];
    unsigned depth;
    struct gcmp_map *keys; /* of the objects of b, by depth; NULL until one is needed */
};

static void enter(struct walk *walk, uint32_t a, uint32_t b) {
    if (walk->keys != NULL) {
        gcmp_map_free(&walk->keys[walk->depth]);
        walk->keys[walk->depth] = (struct gcmp_map)GCMP_MAP_INIT;
    }
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){a, b, a + 1, b + 1, walk->a->values[a].count, 0};
}

/* The value in b's object under the key where the innermost level stands in a. */
static uint32_t counterpart(struct walk *walk) {
    const struct level *level = &walk->levels[walk->depth - 1];
    const struct gcmp_jv *key = &walk->a->values[level->at_a];
    if (level->at_b < walk->b->values[level->b].next &&
        is_same_bytes(key, &walk->b->values[level->at_b])) {
        return level->at_b + 1; /* mostly */
    }
    if (walk->keys == NULL && walk->b->values[level->b].count > FEW_MEMBERS) {
        walk->keys = calloc(GCMP_JV_MAX_DEPTH + 1, sizeof *walk->keys);
    }
    struct gcmp_map none = GCMP_MAP_INIT;
    struct gcmp_map *keys = walk->keys == NULL ? &none : &walk->keys[walk->depth - 1];
    uint32_t found = gcmp_jv_find(walk->b, level->b, key, GCMP_JV_ABSENT, keys);
    gcmp_map_free(&none); /* where there was no memory to keep it */
    return found;
}

static void leave(struct walk *walk) {
    for (unsigned i = 0; walk->keys != NULL && i <= GCMP_JV_MAX_DEPTH; i++) {
        gcmp_map_free(&walk->keys[i]);
    }
    free(walk->keys);
    walk->keys = NULL;
}

/* Go to the next pair of values; false where the walk is over. *b is absent where the other object
 * has no such key. */
static bool step(struct walk *walk, uint32_t *a, uint32_t *b) {
    while (walk->depth > 0 && walk->levels[walk->depth - 1].left == 0) {
        walk->depth--;
    }
    if (walk->depth == 0) {
        return false;
    }
    struct level *level = &walk->levels[walk->depth - 1];
    bool is_object = walk->a->values[level->a].kind == GCMP_JV_OBJECT;
    *a = level->at_a + is_object;
    *b = is_object ? counterpart(walk) : level->at_b;
    level->at_a = gcmp_jv_next(walk->a, *a);
    if (*b != GCMP_JV_ABSENT) {
        level->at_b = gcmp_jv_next(walk->b, *b);
    }
    level->left--;
    level->index++;
    return true;
}

/* Walk until two values differ. True where all are equal; else the walk stands behind them. */
static bool walk_equal(struct walk *walk, uint32_t *a, uint32_t *b) {
    do {
        if (*b == GCMP_JV_ABSENT || !is_same_node(walk->a, *a, walk->b, *b)) {
            return false;
        }
        if (walk->a->values[*a].kind >= GCMP_JV_ARRAY) {
            enter(walk, *a, *b);
        }
    } while (step(walk, a, b));
    return true;
}

bool gcmp_jv_equal(const struct gcmp_jv_text *a, uint32_t at_a, const struct gcmp_jv_text *b,
                   uint32_t at_b) {
    if (at_a == GCMP_JV_ABSENT || at_b == GCMP_JV_ABSENT) {
        return at_a == at_b;
    }
    struct walk walk = {.a = a, .b = b, .depth = 0};
    bool same = walk_equal(&walk, &at_a, &at_b);
    leave(&walk);
    return same;
}

static void show(const struct gcmp_jv_text *text, uint32_t at, char *out, size_t capacity) {
    static const char *const words[] = {
        [GCMP_JV_NULL] = "null", [GCMP_JV_FALSE] = "false", [GCMP_JV_TRUE] = "true"};
    if (at == GCMP_JV_ABSENT) {
        snprintf(out, capacity, "nothing");
        return;
    }
    const struct gcmp_jv *value = &text->values[at];
    switch ((enum gcmp_jv_kind)value->kind) {
    case GCMP_JV_INTEGER:
        snprintf(out, capacity, "%s%llu", value->is_negative ? "-" : "",
                 (unsigned long long)value->of.magnitude);
        break;
    case GCMP_JV_REAL:
    case GCMP_JV_STRING:
        snprintf(out, capacity, "%.*s", value->count > 70 ? 70 : (int)value->count, value->of.text);
        break;
    case GCMP_JV_ARRAY:
        snprintf(out, capacity, "%u items", value->count);
        break;
    case GCMP_JV_OBJECT:
        snprintf(out, capacity, "%u members", value->count);
        break;
    default:
        snprintf(out, capacity, "%s", words[value->kind]);
    }
}

/* Write where the walk stands. */
static void write_path(const struct walk *walk, char *out, size_t capacity) {
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < walk->depth && used + 1 < capacity; i++) {
        const struct level *level = &walk->levels[i];
        int wrote;
        if (walk->a->values[level->a].kind == GCMP_JV_ARRAY) {
            wrote = snprintf(out + used, capacity - used, "[%u]", level->index - 1);
        } else {
            uint32_t key = gcmp_jv_first(level->a);
            for (uint32_t k = 1; k < level->index; k++) {
                key = gcmp_jv_next(walk->a, key + 1);
            }
            wrote = snprintf(out + used, capacity - used, ".%.60s", walk->a->values[key].of.text);
        }
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

void gcmp_jv_differ(const struct gcmp_jv_text *a, uint32_t at_a, const struct gcmp_jv_text *b,
                    uint32_t at_b, struct gcmp_jv_difference *out) {
    struct walk walk = {.a = a, .b = b, .depth = 0};
    out->path[0] = '\0';
    if (at_a != GCMP_JV_ABSENT && at_b != GCMP_JV_ABSENT) {
        (void)walk_equal(&walk, &at_a, &at_b);
        write_path(&walk, out->path, sizeof out->path);
        leave(&walk);
    }
    show(a, at_a, out->a, sizeof out->a);
    show(b, at_b, out->b, sizeof out->b);
}
