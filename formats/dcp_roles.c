/* Settles what keys mean by looking at all keys of a checkpoint. */
#include "formats/dcp_roles.h"

#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/word.h"

struct roles {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_dcp_key *keys;
    struct gcmp_map optimizers; /* paths of those that some key shows to be one */
    struct gcmp_map names;      /* that they have states of */
    struct gcmp_map modules;    /* first words of keys that are modules */
    struct gradcmp_error *error;
};

static enum gradcmp_status add(const struct roles *roles, struct gcmp_map *map, const char *text,
                               size_t bytes) {
    if (gcmp_map_add(map, text, bytes, 0, NULL) == GCMP_MAP_NO_MEMORY) {
        GCMP_FAIL_MEMORY(roles->error);
    }
    return GRADCMP_OK;
}

static bool has(const struct gcmp_map *map, const char *text, size_t bytes) {
    size_t ignored;
    return gcmp_map_find(map, text, bytes, &ignored);
}

/* "<optimizer>.param_groups.<group>.<option>" shows an optimizer. */
static enum gradcmp_status add_groups(struct roles *roles, const char *key) {
    static const char mark[] = "param_groups.";
    for (const char *at = strstr(key, mark); at != NULL; at = strstr(at + 1, mark)) {
        if (at == key || at[-1] == '.') {
            GCMP_TRY(add(roles, &roles->optimizers, key, at == key ? 0 : (size_t)(at - key) - 1));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status gather_optimizers(struct roles *roles) {
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        const struct gcmp_dcp_key *key = &roles->keys[i];
        if (key->kind == GCMP_DCP_STATE && !key->is_doubtful) {
            GCMP_TRY(add(roles, &roles->optimizers, key->text, key->optimizer_bytes));
            GCMP_TRY(add(roles, &roles->names, key->name, strlen(key->name)));
        } else if (key->kind == GCMP_DCP_OTHER) {
            GCMP_TRY(add_groups(roles, key->text));
        }
    }
    return GRADCMP_OK;
}

/* A weight, or a state that is none: the value is of that kind of weight, or listed only. */
static void take_as_weight(struct gcmp_dcp_key *key) {
    key->kind = key->weight_kind;
    key->name = key->kind == GCMP_DCP_OTHER ? key->text : key->weight;
    key->state = key->kind == GCMP_DCP_OTHER ? NULL : "param";
    key->is_doubtful = false;
}

static void settle_state(const struct roles *roles, size_t index) {
    struct gcmp_dcp_key *key = &roles->keys[index];
    bool is_weight = key->weight != NULL && has(&roles->names, key->weight, strlen(key->weight));
    if (is_weight || !has(&roles->optimizers, key->text, key->optimizer_bytes)) {
        take_as_weight(key);
    }
    key->is_doubtful = false;
}

/* The first word of a key, dots and slashes being what ends it. */
static size_t root_bytes(const char *key) {
    return strcspn(key, "./");
}

static bool is_optimizer_root(const char *key) {
    return strncmp(key, "optim", strlen("optim")) == 0;
}

/* True for what shows that a key below "sampler" or the like is of a module. What an optimizer
 * keeps in a form that is not known is none. */
static bool shows_module(const struct gradcmp_stored *stored, const char *text) {
    static const char *const ends[] = {"weight", "bias", NULL};
    const char *last = strrchr(text, '.');
    uint64_t elems = 0;
    if (!gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) || last == NULL ||
        strncmp(text, "param_groups", strlen("param_groups")) == 0) {
        return false;
    }
    return is_optimizer_root(text)
               ? gcmp_find_word(last + 1, strlen(last + 1), ends) != NULL
               : !gcmp_product(stored->shape, stored->ndim, &elems) || elems > 1;
}

static enum gradcmp_status gather_modules(struct roles *roles) {
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        const struct gcmp_dcp_key *key = &roles->keys[i];
        if (key->kind == GCMP_DCP_OTHER && key->is_doubtful &&
            shows_module(&roles->catalogue->stored[i], key->text)) {
            GCMP_TRY(add(roles, &roles->modules, key->text, root_bytes(key->text)));
        }
    }
    return GRADCMP_OK;
}

/* An optimizer's options and flat buffers are no weights, even beside a module of its name. */
static bool is_of_optimizer(const char *text) {
    const char *last = strrchr(text, '.');
    return last == NULL ||
           (is_optimizer_root(text) && (strstr(text, ".param_groups.") != NULL ||
                                        gcmp_dcp_is_state(last + 1, strlen(last + 1))));
}

static void settle_other(const struct roles *roles, size_t index) {
    struct gcmp_dcp_key *key = &roles->keys[index];
    if (has(&roles->modules, key->text, root_bytes(key->text)) && !is_of_optimizer(key->text)) {
        take_as_weight(key);
    }
    key->is_doubtful = false;
}

static void settle(const struct roles *roles) {
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        if (roles->keys[i].is_doubtful && roles->keys[i].kind == GCMP_DCP_STATE) {
            settle_state(roles, i);
        } else if (roles->keys[i].is_doubtful) {
            settle_other(roles, i);
        }
    }
}

enum gradcmp_status gcmp_dcp_settle_roles(struct gradcmp_catalogue *catalogue,
                                          struct gcmp_dcp_key *keys, struct gradcmp_error *error) {
    struct roles roles = {.catalogue = catalogue, .keys = keys, .error = error};
    enum gradcmp_status status = gather_optimizers(&roles);
    status = status == GRADCMP_OK ? gather_modules(&roles) : status;
    if (status == GRADCMP_OK) {
        settle(&roles);
    }
    gcmp_map_free(&roles.optimizers);
    gcmp_map_free(&roles.names);
    gcmp_map_free(&roles.modules);
    return status;
}
