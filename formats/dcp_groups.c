/* Options and counters of torch's optimizers. Flattened, each parameter has all options of its
 * group (torch.distributed.checkpoint.state_dict, flatten_optimizer_state_dict; Megatron-FSDP's
 * param_to_group_meta); else each group has. `step` is a tensor of each parameter (torch 1.12 and
 * later), an integer, or an option of the group (Apex, Transformer Engine).
 *
 * Limits: MAX_READ items of one option, evenly spread, are looked at; MAX_ITEM_BYTES of a
 * compressed one, and of a list of parameters; MAX_LISTS of these. */
#include "formats/dcp_groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/catalogue.h"
#include "base/dir.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "base/map.h"
#include "formats/dcp_item.h"
#include "formats/mixed_betas.h"

enum { MAX_READ = 1 << 16, MAX_ITEM_BYTES = 1 << 24, MAX_LISTS = 1024 };

/* What one item says. */
struct reading {
    const struct gradcmp_stored *stored;
    double values[2];
};

/* One number, or a pair of them; values that were found so far. */
struct option {
    const char *word;         /* the last one of the key */
    bool of_state;            /* also as a state of a parameter */
    const char *settings[2];  /* the second one: of a pair; else NULL */
    size_t seen, read;        /* items there are, and those looked at */
    size_t unread;            /* of those looked at, damaged or in a form that is not known */
    struct reading *readings; /* `read` entries */
    struct gcmp_seen values;
};

static bool ends_with(const char *text, const char *word) {
    size_t bytes = strlen(text), word_bytes = strlen(word);
    return bytes > word_bytes && text[bytes - word_bytes - 1] == '.' &&
           strcmp(text + bytes - word_bytes, word) == 0;
}

/* The first place where words of a key are `mark`, which ends with a dot; NULL: nowhere. */
static const char *find_mark(const char *key, const char *mark) {
    for (const char *at = strstr(key, mark); at != NULL; at = strstr(at + 1, mark)) {
        if (at == key || at[-1] == '.') {
            return at;
        }
    }
    return NULL;
}

/* The word before the group, or before the parameter that the options are of; NULL in other keys.
 * Megatron-FSDP repeats the options of a group for each of its parameters. */
static const char *group_mark(const char *key) {
    return find_mark(key, "param_groups.") != NULL          ? "param_groups."
           : find_mark(key, "param_to_group_meta.") != NULL ? "param_to_group_meta."
                                                            : NULL;
}

static bool is_item_of(const struct gradcmp_stored *stored, const struct option *option) {
    bool is_weight = stored->state != NULL && strcmp(stored->state, "param") == 0;
    bool in_group = group_mark(stored->key) != NULL;
    bool in_state = option->of_state && find_mark(stored->key, "state.") != NULL;
    return (in_group || in_state) && !is_weight && stored->piece_count > 0 &&
           ends_with(stored->key, option->word);
}

/* A number of up to 8 bytes, the lowest first. */
static bool read_number(const unsigned char *bytes, enum gradcmp_dtype dtype, double *out) {
    unsigned width = gcmp_dtype_bytes(dtype);
    uint64_t bits = 0;
    for (unsigned i = width; i-- > 0;) {
        bits = bits << 8 | bytes[i];
    }
    return gcmp_dtype_number(dtype, bits, out);
}

/* Copy the bytes of element `elem` of a record. */
static enum gradcmp_status copy_element(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_source *source,
                                        const struct gradcmp_extent *extent, unsigned char *out,
                                        struct gradcmp_error *error) {
    unsigned width = gcmp_dtype_bytes((enum gradcmp_dtype)extent->dtype);
    uint64_t at = extent->offset_bytes + (uint64_t)extent->offset_elems * width;
    if (extent->decoded != NULL) {
        memcpy(out, (const unsigned char *)extent->decoded + at, width);
        return GRADCMP_OK;
    }
    if (extent->decoded_in_file != 0) {
        return pread(extent->decoded_fd, out, width, (off_t)at) == (ssize_t)width
                   ? GRADCMP_OK
                   : gcmp_error_set(error, GRADCMP_ERROR_IO, NULL, GRADCMP_NO_OFFSET,
                                    "a decoded item could not be read again");
    }
    return gcmp_dir_read(catalogue->dir, source->file, at, out, width, error);
}

/* Read the only element of a tensor; *found tells whether it is a number of a known type. */
static enum gradcmp_status read_scalar(const struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_stored *stored, double *value,
                                       bool *found, struct gradcmp_error *error) {
    const struct gradcmp_piece *piece = stored->pieces;
    const struct gradcmp_source *source = &catalogue->sources[piece->source];
    struct gradcmp_extent extent = {.offset_bytes = source->offset_bytes,
                                    .offset_elems = piece->offset_elems,
                                    .big_endian = source->big_endian,
                                    .dtype = stored->dtype};
    unsigned char bytes[8];
    for (unsigned d = 0; d < stored->ndim; d++) {
        if (stored->shape[d] != 1) {
            return GRADCMP_OK;
        }
    }
    if (gcmp_dtype_bytes((enum gradcmp_dtype)stored->dtype) > sizeof bytes) {
        return GRADCMP_OK;
    }
    if (source->kind == GRADCMP_SOURCE_ITEM) {
        GCMP_TRY(catalogue->format->resolve(catalogue, piece->source, &extent, error));
    }
    enum gradcmp_status status = copy_element(catalogue, source, &extent, bytes, error);
    *found = status == GRADCMP_OK && extent.big_endian == 0 &&
             read_number(bytes, (enum gradcmp_dtype)extent.dtype, value);
    free(extent.decoded);
    if (extent.decoded_in_file != 0) {
        close(extent.decoded_fd);
    }
    return status;
}

static bool read_bool(const struct gcmp_node *node, double *out) {
    int64_t value = 0;
    bool is_bool = node->kind == GCMP_NODE_BOOL && gcmp_node_int(node, &value);
    *out = is_bool ? (double)value : *out;
    return is_bool;
}

/* Read the number or the pair of an object. */
static enum gradcmp_status read_object(const struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_stored *stored, size_t count,
                                       double *values, bool *found, struct gradcmp_error *error) {
    const struct gradcmp_source *source = &catalogue->sources[stored->pieces[0].source];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    enum gradcmp_status status =
        gcmp_dcp_open_item(catalogue, source, MAX_ITEM_BYTES, &arena, &item, error);
    if (status == GRADCMP_OK) {
        const struct gcmp_node *root = item.torch.root;
        *found = count == 1 ? gcmp_node_number(root, &values[0]) || read_bool(root, &values[0])
                            : gcmp_node_count(root) == 2 &&
                                  gcmp_node_number(gcmp_node_item(root, 0), &values[0]) &&
                                  gcmp_node_number(gcmp_node_item(root, 1), &values[1]);
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

/* Read one item of an option and compare it with those before. */
static enum gradcmp_status look_at(const struct gradcmp_catalogue *catalogue, size_t index,
                                   struct option *option, struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[index];
    size_t count = option->settings[1] == NULL ? 1 : 2;
    double values[2] = {0, 0};
    bool found = false;
    struct gradcmp_error item_error = {0};
    enum gradcmp_status status =
        stored->dtype != (uint8_t)GRADCMP_DTYPE_NONE
            ? count == 1 ? read_scalar(catalogue, stored, values, &found, &item_error) : GRADCMP_OK
            : read_object(catalogue, stored, count, values, &found, &item_error);
    if (status == GRADCMP_ERROR_IO || status == GRADCMP_ERROR_MEMORY) {
        if (error != NULL) {
            *error = item_error;
        }
        return status;
    }
    option->unread += status != GRADCMP_OK; /* noted: no gradient is read from it */
    if (found) {
        option->readings[option->read++] = (struct reading){stored, {values[0], values[1]}};
        gcmp_see_stated(&option->values, values[0], values[1]);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_option(struct gradcmp_catalogue *catalogue, struct option *option,
                                       struct gradcmp_error *error) {
    size_t total = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        total += is_item_of(&catalogue->stored[i], option);
    }
    size_t each = total / MAX_READ + 1;
    option->readings = calloc(total / each + 1, sizeof *option->readings);
    if (option->readings == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (is_item_of(&catalogue->stored[i], option) && option->seen++ % each == 0) {
            GCMP_TRY(look_at(catalogue, i, option, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status record(struct gradcmp_catalogue *catalogue, const struct option *option,
                                  struct gradcmp_error *error) {
    if (option->unread > 0) {
        return gcmp_catalogue_note(catalogue, error,
                                   "%zu items that state the optimizer's %s cannot be read",
                                   option->unread, option->word);
    }
    bool is_mixed = option->values.count > 1;
    if (is_mixed && strcmp(option->word, "momentum") == 0) {
        return gcmp_catalogue_note(catalogue, error,
                                   "the optimizer's parameters differ in their %s", option->word);
    }
    const double *first = gcmp_seen_first(&option->values);
    for (size_t i = 0; i < 2 && first != NULL && !is_mixed && option->settings[i] != NULL; i++) {
        struct gradcmp_setting setting = {
            .name = option->settings[i], .kind = GRADCMP_SETTING_FLOAT, .number = first[i]};
        GCMP_TRY(gcmp_catalogue_set(catalogue, &setting, error));
    }
    return GRADCMP_OK;
}

/* --- where parameters differ --- */

/* What is known of parameters; the keys are an optimizer's path and what stands for them in it. */
struct adams {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_map by_name;
    struct gcmp_map optimizers; /* paths of those that have groups */
    struct gradcmp_adam **items;
    size_t capacity;
    size_t lists; /* that were looked for */
    struct gradcmp_error *error;
};

/* The key under which a parameter is known: what the optimizer at `path` calls it. NULL without
 * memory. */
static char *parameter_key(const struct adams *adams, const char *path, size_t path_bytes,
                           const char *name, size_t name_bytes) {
    struct gcmp_arena *arena = adams->catalogue->arena;
    char *text = gcmp_arena_alloc(arena, path_bytes + name_bytes + 2, 1);
    if (text != NULL) {
        memcpy(text, path, path_bytes);
        text[path_bytes] = '\n';
        memcpy(text + path_bytes + 1, name, name_bytes);
        text[path_bytes + 1 + name_bytes] = '\0';
    }
    return text;
}

/* The bytes of an optimizer's path in a key, whose mark is at `at`. */
static size_t path_bytes_of(const char *key, const char *at) {
    return at == key ? 0 : (size_t)(at - key) - 1;
}

/* Where "state." of an optimizer stands in a key: behind the path of one that has groups, or else
 * the first. The state of a trainer may hold it all. NULL: nowhere. */
static const char *find_state(const struct adams *adams, const char *key) {
    const char *first = find_mark(key, "state.");
    for (const char *at = first; at != NULL; at = find_mark(at + 1, "state.")) {
        size_t ignored;
        if (gcmp_map_find(&adams->optimizers, key, path_bytes_of(key, at), &ignored)) {
            return at;
        }
    }
    return first;
}

/* What stands for a parameter in a key, between `mark` and the last dot; false where nothing. */
static bool find_middle(const struct adams *adams, const char *key, const char *mark,
                        const char **at, const char **name, size_t *name_bytes) {
    const char *last = strrchr(key, '.');
    *at = strcmp(mark, "state.") == 0 ? find_state(adams, key) : find_mark(key, mark);
    *name = *at == NULL ? NULL : *at + strlen(mark);
    *name_bytes = *name == NULL || last == NULL || last <= *name ? 0 : (size_t)(last - *name);
    return *name_bytes > 0;
}

static enum gradcmp_status gather_optimizers(struct adams *adams) {
    for (size_t i = 0; i < adams->catalogue->stored_count; i++) {
        const char *key = adams->catalogue->stored[i].key, *mark = group_mark(key);
        if (mark != NULL &&
            gcmp_map_add(&adams->optimizers, key, path_bytes_of(key, find_mark(key, mark)), 0,
                         NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(adams->error);
        }
    }
    return GRADCMP_OK;
}

/* Find or make what is known of a parameter; NULL without memory, or a key. */
static struct gradcmp_adam *adam_of(struct adams *adams, const char *name) {
    size_t index;
    if (name == NULL) {
        return NULL;
    }
    enum gcmp_map_result result =
        gcmp_map_add(&adams->by_name, name, strlen(name), adams->by_name.count, &index);
    if (result == GCMP_MAP_PRESENT) {
        return adams->items[index];
    }
    if (result == GCMP_MAP_NO_MEMORY) {
        return NULL;
    }
    if (!gcmp_grow(&adams->items, index, &adams->capacity, sizeof *adams->items)) {
        return NULL;
    }
    struct gradcmp_adam *adam = gcmp_arena_alloc(adams->catalogue->arena, 1, sizeof *adam);
    adams->items[index] = adam;
    if (adam != NULL) {
        *adam = (struct gradcmp_adam){(double)NAN, (double)NAN, (double)NAN};
    }
    return adam;
}

static enum gradcmp_status note_value(struct adams *adams, const char *name, const char *word,
                                      const double *values) {
    struct gradcmp_adam *adam = adam_of(adams, name);
    if (adam == NULL) {
        GCMP_FAIL_MEMORY(adams->error);
    }
    if (strcmp(word, "step") == 0) {
        adam->step = values[0];
    } else {
        adam->beta1 = values[0];
        adam->beta2 = values[1];
    }
    return GRADCMP_OK;
}

/* What a group says holds for all that its list "params" names. */
static enum gradcmp_status note_list(struct adams *adams, const struct gcmp_node *list,
                                     const struct reading *reading, const char *word) {
    const char *key = reading->stored->key;
    size_t path_bytes = path_bytes_of(key, find_mark(key, group_mark(key)));
    for (size_t i = 0; i < gcmp_node_count(list); i++) {
        const struct gcmp_node *param = gcmp_node_item(list, i);
        const char *text = gcmp_node_text(param);
        char number[24] = "";
        int64_t id;
        if (text == NULL && gcmp_node_int(param, &id)) {
            snprintf(number, sizeof number, "%lld", (long long)id);
        }
        const char *name = text != NULL ? text : number;
        GCMP_TRY(note_value(adams, parameter_key(adams, key, path_bytes, name, strlen(name)), word,
                            reading->values));
    }
    return GRADCMP_OK;
}

/* Find "...param_groups.<group>.params" beside "...param_groups.<group>.<word>". */
static const struct gradcmp_stored *find_list(const struct gradcmp_catalogue *catalogue,
                                              const char *key) {
    size_t bytes = (size_t)(strrchr(key, '.') + 1 - key);
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (strncmp(stored->key, key, bytes) == 0 && strcmp(stored->key + bytes, "params") == 0 &&
            stored->dtype == (uint8_t)GRADCMP_DTYPE_NONE && stored->piece_count > 0) {
            return stored;
        }
    }
    return NULL;
}

static enum gradcmp_status note_group(struct adams *adams, const struct reading *reading,
                                      const char *word) {
    const struct gradcmp_stored *list =
        adams->lists++ < MAX_LISTS ? find_list(adams->catalogue, reading->stored->key) : NULL;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    if (list == NULL) {
        return GRADCMP_OK;
    }
    const struct gradcmp_source *source = &adams->catalogue->sources[list->pieces[0].source];
    enum gradcmp_status status =
        gcmp_dcp_open_item(adams->catalogue, source, MAX_ITEM_BYTES, &arena, &item, adams->error);
    if (status == GRADCMP_OK) {
        status = note_list(adams, item.torch.root, reading, word);
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

static enum gradcmp_status note_readings(struct adams *adams, const struct option *option) {
    for (size_t i = 0; i < option->read; i++) {
        const struct reading *reading = &option->readings[i];
        const char *key = reading->stored->key, *mark = group_mark(key), *at, *name;
        size_t name_bytes;
        if (!find_middle(adams, key, mark != NULL ? mark : "state.", &at, &name, &name_bytes)) {
            continue;
        }
        bool is_number = strspn(name, "0123456789") == name_bytes;
        GCMP_TRY(
            mark != NULL && is_number
                ? note_group(adams, reading, option->word)
                : note_value(adams,
                             parameter_key(adams, key, path_bytes_of(key, at), name, name_bytes),
                             option->word, reading->values));
    }
    return GRADCMP_OK;
}

/* The halves of a gated weight ("...weight_w", "...weight_v") have the options of the whole. */
static bool find_adam(const struct adams *adams, const char *name, size_t *index) {
    size_t bytes = strlen(name);
    bool is_half =
        bytes > 2 && (strcmp(name + bytes - 2, "_w") == 0 || strcmp(name + bytes - 2, "_v") == 0);
    return gcmp_map_find(&adams->by_name, name, bytes, index) ||
           (is_half && gcmp_map_find(&adams->by_name, name, bytes - 2, index));
}

static enum gradcmp_status give(struct adams *adams) {
    struct gradcmp_catalogue *catalogue = adams->catalogue;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        struct gradcmp_stored *stored = &catalogue->stored[i];
        size_t index;
        if (stored->state == NULL || strncmp(stored->state, "exp_avg", 7) != 0) {
            continue;
        }
        const char *at, *name;
        size_t name_bytes;
        if (!find_middle(adams, stored->key, "state.", &at, &name, &name_bytes)) {
            continue;
        }
        const char *key =
            parameter_key(adams, stored->key, path_bytes_of(stored->key, at), name, name_bytes);
        if (key == NULL) {
            GCMP_FAIL_MEMORY(adams->error);
        }
        if (adams->items != NULL && find_adam(adams, key, &index)) {
            stored->adam = adams->items[index];
        }
    }
    return gcmp_settle_adam(catalogue, adams->error);
}

/* Tell each moment what holds for it, where parameters differ in that. */
static enum gradcmp_status tell_apart(struct gradcmp_catalogue *catalogue,
                                      const struct option *betas, const struct option *steps,
                                      struct gradcmp_error *error) {
    struct adams adams = {.catalogue = catalogue, .error = error};
    if (betas->values.count < 2 && steps->values.count < 2) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gather_optimizers(&adams);
    status = status == GRADCMP_OK ? note_readings(&adams, betas) : status;
    status = status == GRADCMP_OK ? note_readings(&adams, steps) : status;
    status = status == GRADCMP_OK ? give(&adams) : status;
    gcmp_map_free(&adams.by_name);
    gcmp_map_free(&adams.optimizers);
    free(adams.items);
    /* What is not known of each parameter is known of the whole. */
    status = status == GRADCMP_OK ? gcmp_set_mixed_betas(catalogue, &betas->values, error) : status;
    return status == GRADCMP_OK ? gcmp_set_mixed_steps(catalogue, &steps->values, error) : status;
}

/* Weight decay is part of the gradient, for an optimizer that says that it does not decouple it. */
static enum gradcmp_status record_decay(struct gradcmp_catalogue *catalogue,
                                        const struct option *decay, const struct option *decoupled,
                                        struct gradcmp_error *error) {
    struct gradcmp_setting setting = {.name = "optimizer.added_decay",
                                      .kind = GRADCMP_SETTING_FLOAT};
    bool is_added = false;
    for (size_t i = 0; i < decoupled->values.count; i++) {
        is_added = is_added || decoupled->values.values[i][0] == 0.0;
    }
    for (size_t i = 0; i < decay->values.count; i++) {
        setting.number = fmax(setting.number, fabs(decay->values.values[i][0]));
    }
    return is_added && setting.number > 0.0 ? gcmp_catalogue_set(catalogue, &setting, error)
                                            : GRADCMP_OK;
}

enum gradcmp_status gcmp_dcp_read_groups(struct gradcmp_catalogue *catalogue,
                                         struct gradcmp_error *error) {
    struct option options[] = {
        {.word = "betas", .settings = {"adam_beta1", "adam_beta2"}},
        {.word = "step", .of_state = true, .settings = {"optimizer.step", NULL}},
        {.word = "momentum", .settings = {"sgd_momentum", NULL}},
        {.word = "weight_decay", .settings = {NULL, NULL}},
        {.word = "decoupled_weight_decay", .settings = {NULL, NULL}},
    };
    enum { COUNT = sizeof options / sizeof *options };
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < COUNT && status == GRADCMP_OK; i++) {
        status = read_option(catalogue, &options[i], error);
        status = status == GRADCMP_OK ? record(catalogue, &options[i], error) : status;
    }
    status = status == GRADCMP_OK ? tell_apart(catalogue, &options[0], &options[1], error) : status;
    status =
        status == GRADCMP_OK ? record_decay(catalogue, &options[3], &options[4], error) : status;
    for (size_t i = 0; i < COUNT; i++) {
        free(options[i].readings);
    }
    return status;
}
