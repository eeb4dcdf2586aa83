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
    struct gcmp_map dicts;      /* paths of dicts that are models for want of one that says so */
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

static void list_only(struct gcmp_dcp_key *key) {
    key->kind = GCMP_DCP_OTHER;
    key->name = key->text;
    key->state = NULL;
}

/* A weight, or a state that is none: the value is of that kind of weight, or listed only. */
static void take_as_weight(struct gcmp_dcp_key *key) {
    if (key->weight_kind == GCMP_DCP_OTHER) {
        list_only(key);
        return;
    }
    key->kind = key->weight_kind;
    key->name = key->weight;
    key->state = "param";
}

static void settle_state(const struct roles *roles, size_t index) {
    struct gcmp_dcp_key *key = &roles->keys[index];
    bool is_weight = key->weight != NULL && has(&roles->names, key->weight, strlen(key->weight));
    if (is_weight || !has(&roles->optimizers, key->text, key->optimizer_bytes)) {
        take_as_weight(key);
    }
    key->is_doubtful = false;
}

/* Counters and losses are single numbers. */
static bool is_real(const struct gradcmp_stored *stored) {
    uint64_t elems = 0;
    return gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) &&
           (!gcmp_product(stored->shape, stored->ndim, &elems) || elems > 1);
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
    const char *last = strrchr(text, '.');
    if (!gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype) || last == NULL ||
        strncmp(text, "param_groups", strlen("param_groups")) == 0) {
        return false;
    }
    return is_optimizer_root(text) ? gcmp_dcp_is_of_module(last + 1) : is_real(stored);
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

/* --- models of any name --- */

static bool is_weight(const struct gcmp_dcp_key *key) {
    return key->kind == GCMP_DCP_BARE || key->kind == GCMP_DCP_MODEL;
}

/* True for a tensor at top level whose name alone does not show that it is of a model: a curve of
 * losses may stand beside a model of any name. */
static bool is_loose(const struct roles *roles, size_t index) {
    const struct gcmp_dcp_key *key = &roles->keys[index];
    return key->dict_bytes == 0 && !gcmp_dcp_is_of_module(key->text) &&
           !has(&roles->names, key->text, strlen(key->text));
}

/* True for several real numbers that are weights, loose ones or others. */
static bool has_weights(const struct roles *roles, bool loose) {
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        if (is_weight(&roles->keys[i]) && is_real(&roles->catalogue->stored[i]) &&
            is_loose(roles, i) == loose) {
            return true;
        }
    }
    return false;
}

/* True for what stands in the dict of an optimizer, of a generator and the like, or in one, unless
 * its name is a module's; and for averages of weights, unless there is nothing else. */
static bool is_other(const struct roles *roles, const struct gcmp_dcp_key *key,
                     bool with_averages) {
    bool is_of_module = gcmp_dcp_is_of_module(key->text + key->dict_bytes + 1);
    for (size_t at = 0; at < key->dict_bytes;) {
        const char *word = key->text + at;
        size_t bytes = strcspn(word, ".");
        bool is_beside = gcmp_dcp_is_beside_weights(word, bytes);
        bool is_average = gcmp_dcp_is_average(word, bytes);
        if ((is_beside && !(is_of_module && gcmp_dcp_may_be_module(word, bytes))) ||
            (is_average && !with_averages) ||
            (gcmp_is_word(word, bytes, "state") &&
             has(&roles->optimizers, key->text, at == 0 ? 0 : at - 1))) {
            return true;
        }
        at += bytes + 1;
    }
    return false;
}

/* True for a value in a dict that may be a model's. */
static bool is_candidate(const struct roles *roles, size_t index) {
    const struct gcmp_dcp_key *key = &roles->keys[index];
    return key->kind == GCMP_DCP_OTHER && key->dict_bytes > 0 &&
           gcmp_dtype_is_float((enum gradcmp_dtype)roles->catalogue->stored[index].dtype);
}

static enum gradcmp_status gather_dicts(struct roles *roles, bool with_averages) {
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        const struct gcmp_dcp_key *key = &roles->keys[i];
        if (is_candidate(roles, i) && is_real(&roles->catalogue->stored[i]) &&
            !is_other(roles, key, with_averages)) {
            GCMP_TRY(add(roles, &roles->dicts, key->text, key->dict_bytes));
        }
    }
    return GRADCMP_OK;
}

/* Of several dicts, and beside loose tensors, names begin with the path; a place in a list alone is
 * no name. */
static void take_dicts(const struct roles *roles, bool has_loose) {
    bool is_one = roles->dicts.count == 1 && !has_loose;
    for (size_t i = 0; i < roles->catalogue->stored_count; i++) {
        struct gcmp_dcp_key *key = &roles->keys[i];
        if (is_weight(key) && !is_real(&roles->catalogue->stored[i])) {
            list_only(key); /* objects, and a single number beside them */
        } else if (is_candidate(roles, i) && has(&roles->dicts, key->text, key->dict_bytes)) {
            const char *name = key->text + key->dict_bytes + 1;
            bool is_short = is_one && name[strspn(name, "0123456789")] != '\0';
            key->kind = GCMP_DCP_MODEL;
            key->name = is_short ? name : key->text;
            key->state = "param";
        }
    }
}

/* Where no dict is called a model, and none of the top level's tensors shows to be a weight, all
 * dicts of tensors are models, with the loose tensors, as in files of torch.save. */
static enum gradcmp_status take_any_model(struct roles *roles) {
    if (has_weights(roles, false)) {
        return GRADCMP_OK;
    }
    bool has_loose = has_weights(roles, true), with_averages = false;
    GCMP_TRY(gather_dicts(roles, with_averages));
    if (roles->dicts.count == 0 && !has_loose) {
        with_averages = true;
        GCMP_TRY(gather_dicts(roles, with_averages));
    }
    if (roles->dicts.count > 0) {
        take_dicts(roles, has_loose);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_dcp_settle_roles(struct gradcmp_catalogue *catalogue,
                                          struct gcmp_dcp_key *keys, struct gradcmp_error *error) {
    struct roles roles = {.catalogue = catalogue, .keys = keys, .error = error};
    enum gradcmp_status status = gather_optimizers(&roles);
    status = status == GRADCMP_OK ? gather_modules(&roles) : status;
    if (status == GRADCMP_OK) {
        settle(&roles);
        status = take_any_model(&roles);
    }
    gcmp_map_free(&roles.optimizers);
    gcmp_map_free(&roles.names);
    gcmp_map_free(&roles.modules);
    gcmp_map_free(&roles.dicts);
    return status;
}
