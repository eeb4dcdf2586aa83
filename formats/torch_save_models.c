/* Decides which dicts of tensors in an object of torch.save are weights. A dict under a word for a
 * model is one, with all that is in it; without such a word, what stands at the top is, with all
 * beside it, as trainers keep several models. Outside of models, words tell averaged weights,
 * generators and the like apart; sizes decide where a word names only a small part. */
#include "formats/torch_save_models.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/word.h"
#include "formats/dcp_keys.h"
#include "formats/plain_names.h"

/* How the dicts of one object are read. */
struct reading {
    struct gcmp_pt_place *place;
    struct gcmp_pt_dict *dicts;
    size_t count;
    bool takes_others; /* nothing else is there */
    bool takes_small;  /* no dict has several real numbers in one tensor */
    /* Where a model begins: at no word, at the word of a model, at its own tensors. */
    enum { ANYWHERE, AT_WORD, AT_TENSORS } begin;
    size_t models; /* that names tell apart; 0 until they are counted */
};

void gcmp_pt_enter(struct gcmp_pt_where *where, const char *word, size_t path_bytes) {
    size_t bytes = strlen(word);
    where->top_bytes = where->top_bytes == 0 ? path_bytes : where->top_bytes;
    where->is_extra = where->is_extra || gcmp_dcp_is_extra_state(word, bytes);
    if (where->model_bytes > 0) {
        return; /* modules have any names */
    }
    where->is_averaged = where->is_averaged || gcmp_dcp_is_average(word, bytes);
    if (gcmp_dcp_is_model(word)) {
        where->model_bytes = path_bytes;
        where->is_other = where->is_never = false;
    } else if (gcmp_dcp_is_beside_weights(word, bytes)) {
        where->is_other = true;
        where->is_never = where->is_never || !gcmp_dcp_may_be_module(word, bytes);
    }
}

/* States that whole dicts of tensors are called after; NULL for other words. */
static const char *state_of_word(const char *word) {
    static const char *const gradients[] = {"grad",      "grads",      "gradient", "gradients",
                                            "main_grad", "main_grads", NULL};
    static const char *const states[] = {"exp_avg", "exp_avg_sq", "momentum_buffer", NULL};
    return gcmp_find_word(word, strlen(word), gradients) != NULL
               ? "main_grad"
               : gcmp_find_word(word, strlen(word), states);
}

/* --- walking --- */

/* The elements of the tensors of several real numbers. */
static uint64_t count_elems(const struct gcmp_pt_set *set, size_t first, size_t end) {
    uint64_t sum = 0, elems = 0;
    for (size_t i = first; i < end; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        bool known = gcmp_pt_is_float(tensor) && gcmp_product(tensor->shape, tensor->ndim, &elems);
        sum = gcmp_add_saturated(sum, known && elems > 1 ? elems : 0);
    }
    return sum;
}

/* True where the names of a dict's tensors are those of a module: joined by dots, or of a layer. */
static bool has_module_name(const struct gcmp_pt_set *set, const struct gcmp_pt_dict *dict) {
    size_t path_bytes = strlen(dict->path);
    for (size_t i = dict->first; i < dict->end; i++) {
        const char *name = set->tensors[i].key + path_bytes + (path_bytes > 0);
        if (gcmp_dcp_is_of_module(name)) {
            return true;
        }
    }
    return false;
}

/* Add the tensors of all dicts, as others where no word tells a state. */
static enum gradcmp_status walk_all(struct reading *reading) {
    struct gcmp_pt_place *place = reading->place;
    for (size_t i = 0; i < reading->count; i++) {
        struct gcmp_pt_dict *dict = &reading->dicts[i];
        const char *state = state_of_word(dict->word);
        dict->first = place->set->tensor_count;
        GCMP_TRY(gcmp_pt_walk_tensors(place, dict->node, dict->path,
                                      state != NULL ? GCMP_PT_STATE : GCMP_PT_OTHER,
                                      state != NULL ? state : "param"));
        dict->end = place->set->tensor_count;
        dict->elems = count_elems(place->set, dict->first, dict->end);
        dict->is_module = has_module_name(place->set, dict);
    }
    return GRADCMP_OK;
}

/* --- deciding --- */

/* True for a dict under a word for what is no model, unless its names are those of a module. */
static bool is_beside(const struct gcmp_pt_dict *dict) {
    const struct gcmp_pt_where *where = &dict->where;
    return where->is_averaged || where->is_never || (where->is_other && !dict->is_module);
}

/* True for a dict of tensors that are neither states nor what a module keeps beside them. */
static bool is_plain(const struct gcmp_pt_dict *dict) {
    return !dict->has_states && !dict->where.is_extra && state_of_word(dict->word) == NULL;
}

/* True for a dict that may be a model's. */
static bool may_be_model(const struct reading *reading, const struct gcmp_pt_dict *dict) {
    return is_plain(dict) && (reading->takes_others || !is_beside(dict)) &&
           (reading->takes_small || dict->elems > 0 || dict->where.model_bytes > 0);
}

/* How much of the path leads to the model that a dict is of; 0: no word does. */
static size_t model_bytes(const struct reading *reading, const struct gcmp_pt_dict *dict) {
    return reading->begin == AT_TENSORS ? dict->where.root_bytes
           : reading->begin == AT_WORD  ? dict->where.model_bytes
                                        : 0;
}

static bool is_top(const struct gcmp_pt_dict *dict) {
    return dict->path[0] == '\0';
}

/* True for dicts under the same start of their paths. */
static bool share_start(const struct gcmp_pt_dict *a, size_t a_bytes, const struct gcmp_pt_dict *b,
                        size_t b_bytes) {
    return a_bytes == b_bytes && memcmp(a->path, b->path, a_bytes) == 0;
}

/* Choose what is looked at, and where models begin as words tell it. */
static void choose_begin(struct reading *reading) {
    bool has_own = false, has_large = false, has_tensors = false, has_word = false;
    for (size_t i = 0; i < reading->count; i++) {
        const struct gcmp_pt_dict *dict = &reading->dicts[i];
        bool is_any = dict->elems > 0 || dict->where.model_bytes > 0;
        has_own = has_own || (is_plain(dict) && is_any && !is_beside(dict));
        has_large = has_large || (is_plain(dict) && dict->elems > 0);
    }
    reading->takes_others = !has_own;
    reading->takes_small = !has_large;
    for (size_t i = 0; i < reading->count; i++) {
        const struct gcmp_pt_dict *dict = &reading->dicts[i];
        has_tensors = has_tensors || (may_be_model(reading, dict) && dict->where.root_bytes > 0);
        has_word = has_word || (may_be_model(reading, dict) && dict->where.model_bytes > 0);
    }
    reading->begin = has_tensors ? AT_TENSORS : has_word ? AT_WORD : ANYWHERE;
}

/* True where an optimizer stands in the same entry of the whole object as the dict. */
static bool is_trained(const struct reading *reading, const struct gcmp_pt_dict *dict) {
    const struct gcmp_pt_set *set = reading->place->set;
    size_t bytes = dict->where.top_bytes;
    bool found = false;
    for (size_t i = 0; i < reading->count && !found; i++) {
        const struct gcmp_pt_dict *other = &reading->dicts[i];
        found = other->has_states && share_start(dict, bytes, other, other->where.top_bytes);
    }
    for (size_t i = 0; i < set->tensor_count && !found; i++) {
        const struct gcmp_pt_tensor *tensor = &set->tensors[i];
        found = tensor->kind == GCMP_PT_STATE && strncmp(tensor->key, dict->path, bytes) == 0 &&
                tensor->key[bytes] == '.';
    }
    return found;
}

/* True where what words call models is the smaller part: beside the tensors at the top, or beside
 * the entries of the whole object that hold no such model, unless one is an entry itself, or is
 * trained in one. */
static bool is_outweighed(const struct reading *reading) {
    uint64_t models = 0, top = 0, outside = 0, entry = 0;
    bool has_model = false, claims_all = false;
    const struct gcmp_pt_dict *last = NULL, *first = NULL;
    for (size_t i = 0; i < reading->count; i++) {
        const struct gcmp_pt_dict *dict = &reading->dicts[i];
        if (!may_be_model(reading, dict)) {
            continue;
        }
        size_t bytes = model_bytes(reading, dict);
        first = first == NULL && bytes > 0 ? dict : first;
        if (last != NULL &&
            !share_start(last, last->where.top_bytes, dict, dict->where.top_bytes)) {
            outside = gcmp_add_saturated(outside, has_model ? 0 : entry);
            has_model = false;
            entry = 0;
        }
        last = is_top(dict) ? last : dict;
        has_model = has_model || bytes > 0;
        claims_all = claims_all || (bytes > 0 && bytes == dict->where.top_bytes);
        models = gcmp_add_saturated(models, bytes > 0 ? dict->elems : 0);
        top = is_top(dict) ? dict->elems : top;
        entry = gcmp_add_saturated(entry, is_top(dict) ? 0 : dict->elems);
    }
    outside = gcmp_add_saturated(outside, has_model ? 0 : entry);
    return top > models || (!claims_all && outside > 0 && outside >= models &&
                            !(first != NULL && is_trained(reading, first)));
}

static bool is_model(const struct reading *reading, const struct gcmp_pt_dict *dict) {
    if (!may_be_model(reading, dict)) {
        return false;
    }
    /* Single numbers at the top of a file tell of the run, where there is anything else. */
    bool is_told = !reading->takes_small || reading->models <= 1 || !is_top(dict);
    return reading->begin != ANYWHERE ? model_bytes(reading, dict) > 0
                                      : is_told && (reading->takes_small || dict->elems > 0);
}

static void count_models(struct reading *reading) {
    const struct gcmp_pt_dict *last = NULL;
    size_t count = 0;
    for (size_t i = 0; i < reading->count; i++) {
        const struct gcmp_pt_dict *dict = &reading->dicts[i];
        if (is_model(reading, dict)) {
            size_t bytes = model_bytes(reading, dict);
            count += last == NULL || bytes == 0 ||
                     !share_start(last, model_bytes(reading, last), dict, bytes);
            last = dict;
        }
    }
    reading->models = count;
}

/* --- naming --- */

/* Take a tensor's name apart; `key->state` is NULL where it tells no state. */
static enum gradcmp_status parse_name(const struct gcmp_pt_place *place,
                                      const struct gcmp_pt_dict *dict,
                                      const struct gcmp_pt_tensor *tensor,
                                      struct gcmp_dcp_key *key) {
    size_t path_bytes = strlen(dict->path);
    const char *name = tensor->key + path_bytes + (path_bytes > 0);
    if (!gcmp_plain_parse_name(place->set->catalogue->arena, name, GCMP_DCP_TORCH, key)) {
        GCMP_FAIL_MEMORY(place->error);
    }
    key->state = key->kind == GCMP_DCP_STATE ? key->state : NULL;
    return GRADCMP_OK;
}

static void take_state(struct gcmp_pt_tensor *tensor, const struct gcmp_dcp_key *key) {
    tensor->kind = GCMP_PT_STATE;
    tensor->name = key->name;
    tensor->state = key->state;
}

/* Make states of what names tell clearly; `known` becomes the names of their parameters. */
static enum gradcmp_status name_clear_states(const struct gcmp_pt_place *place,
                                             const struct gcmp_pt_dict *dict,
                                             struct gcmp_map *known) {
    for (size_t i = dict->first; i < dict->end; i++) {
        struct gcmp_pt_tensor *tensor = &place->set->tensors[i];
        struct gcmp_dcp_key key;
        GCMP_TRY(parse_name(place, dict, tensor, &key));
        if (key.state == NULL ||
            !(dict->has_states || gcmp_dcp_is_clear_state(key.state, strlen(key.state)))) {
            continue;
        }
        take_state(tensor, &key);
        if (gcmp_map_add(known, key.name, strlen(key.name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(place->error);
        }
    }
    return GRADCMP_OK;
}

/* Names of a dict's tensors may tell a state ("exp_avg.<name>", "grad.<name>"); in an optimizer, or
 * of a parameter that has such a state, "state.<name>.step" too. */
static enum gradcmp_status name_states(const struct gcmp_pt_place *place,
                                       const struct gcmp_pt_dict *dict) {
    struct gcmp_map known = GCMP_MAP_INIT;
    enum gradcmp_status status = name_clear_states(place, dict, &known);
    for (size_t i = dict->first; i < dict->end && status == GRADCMP_OK; i++) {
        struct gcmp_pt_tensor *tensor = &place->set->tensors[i];
        struct gcmp_dcp_key key = {.kind = GCMP_DCP_OTHER};
        size_t ignored;
        status = tensor->kind == GCMP_PT_WEIGHT ? parse_name(place, dict, tensor, &key) : status;
        if (key.state != NULL && gcmp_map_find(&known, key.name, strlen(key.name), &ignored)) {
            take_state(tensor, &key);
        }
    }
    gcmp_map_free(&known);
    return status;
}

/* Names begin where the model does; those of several models with the path. */
static void name_weights(const struct reading *reading, const struct gcmp_pt_dict *dict) {
    size_t bytes = reading->begin == ANYWHERE ? strlen(dict->path) : model_bytes(reading, dict);
    size_t skipped = reading->models > 1 || bytes == 0 ? 0 : bytes + 1;
    for (size_t i = dict->first; i < dict->end; i++) {
        struct gcmp_pt_tensor *tensor = &reading->place->set->tensors[i];
        tensor->kind = GCMP_PT_WEIGHT;
        tensor->name = tensor->key + skipped;
    }
}

static enum gradcmp_status name_all(const struct reading *reading) {
    size_t taken = 0, plain = 0;
    for (size_t i = 0; i < reading->count; i++) {
        taken += is_model(reading, &reading->dicts[i]);
        plain += !reading->dicts[i].has_states && state_of_word(reading->dicts[i].word) == NULL;
    }
    if (taken > 1) {
        /* dicts stand in the order of the file, not the model's */
        reading->place->set->is_ordered = false;
    }
    for (size_t i = 0; i < reading->count; i++) {
        const struct gcmp_pt_dict *dict = &reading->dicts[i];
        bool is_states = dict->has_states && is_top(dict) && plain == 0;
        bool is_weights = is_states || is_model(reading, dict);
        if (is_weights) {
            name_weights(reading, dict);
        }
        if (dict->has_states || (is_weights && is_top(dict))) {
            GCMP_TRY(name_states(reading->place, dict));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_walk_dicts(struct gcmp_pt_place *place, struct gcmp_pt_dict *dicts,
                                       size_t count) {
    struct reading reading = {.place = place, .dicts = dicts, .count = count};
    GCMP_TRY(walk_all(&reading));
    choose_begin(&reading);
    if (reading.begin != ANYWHERE && is_outweighed(&reading)) {
        reading.begin = ANYWHERE;
    }
    count_models(&reading);
    return name_all(&reading);
}
