/* Reads the lists of parameters of groups. Source: torch/optim/optimizer.py (state_dict), torch 1.6
 * to 2.15: "params" holds numbers, and "param_names" names since 2.6 (None without).
 *
 * Limits: MAX_GROUPS; MAX_PARAMS of them all, and MAX_BYTES of all lists. */
#include "formats/dcp_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/grow.h"
#include "base/map.h"
#include "formats/dcp_item.h"

enum { MAX_GROUPS = 1 << 16, MAX_PARAMS = 1 << 18, MAX_BYTES = 1 << 27 };

struct reader {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_dcp_lists *lists;
    struct gcmp_map names; /* keys of lists of names, without the last word -> stored */
    uint64_t bytes_left;   /* budget of bytes to look at: many keys may share an item */
    struct gradcmp_error *error;
};

/* Take "<path>.param_groups.<group>.<word>" apart; false for other keys. */
static bool split_key(const char *key, const char *word, struct gcmp_dcp_group *out) {
    static const char mark[] = "param_groups.";
    const char *last = strrchr(key, '.');
    if (last == NULL || strcmp(last + 1, word) != 0) {
        return false;
    }
    const char *digits = last;
    while (digits > key && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    size_t mark_bytes = sizeof mark - 1, front = (size_t)(digits - key);
    if (digits == last || last - digits > 9 || front < mark_bytes ||
        memcmp(digits - mark_bytes, mark, mark_bytes) != 0 ||
        (front > mark_bytes && digits[-(ptrdiff_t)mark_bytes - 1] != '.')) {
        return false;
    }
    *out = (struct gcmp_dcp_group){
        .path = key,
        .path_bytes = front == mark_bytes ? 0 : front - mark_bytes - 1,
        .number = strtoul(digits, NULL, 10),
    };
    return true;
}

static bool is_object(const struct gradcmp_stored *stored) {
    return stored->dtype == (uint8_t)GRADCMP_DTYPE_NONE && stored->piece_count > 0;
}

/* Find the lists of names. */
static enum gradcmp_status gather_names(struct reader *reader) {
    for (size_t i = 0; i < reader->catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &reader->catalogue->stored[i];
        struct gcmp_dcp_group group;
        if (is_object(stored) && split_key(stored->key, "param_names", &group) &&
            gcmp_map_add(&reader->names, stored->key, strlen(stored->key) - strlen("param_names"),
                         i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(reader->error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_number(struct reader *reader, const struct gcmp_node *node,
                                      struct gcmp_dcp_group *group) {
    struct gcmp_dcp_lists *lists = reader->lists;
    int64_t number;
    if (!gcmp_node_int(node, &number) || number < 0 || number > 999999999) {
        group->is_read = false;
        return GRADCMP_OK;
    }
    if (lists->param_count == MAX_PARAMS) {
        GCMP_FAIL(reader->error, GRADCMP_ERROR_LIMIT, "optimizers of more than %d parameters",
                  MAX_PARAMS);
    }
    if (!gcmp_grow(&lists->params, lists->param_count, &lists->param_capacity,
                   sizeof *lists->params)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    lists->params[lists->param_count++] = (struct gcmp_dcp_param){(size_t)number, NULL};
    group->count++;
    return GRADCMP_OK;
}

static enum gradcmp_status take_numbers(struct reader *reader, const struct gcmp_node *list,
                                        struct gcmp_dcp_group *group) {
    group->is_read =
        list != NULL && (list->kind == GCMP_NODE_LIST || list->kind == GCMP_NODE_TUPLE);
    for (size_t i = 0; i < gcmp_node_count(list) && group->is_read; i++) {
        GCMP_TRY(add_number(reader, gcmp_node_item(list, i), group));
    }
    return GRADCMP_OK;
}

/* Names go with the numbers; a list of none may be None. */
static enum gradcmp_status take_names(struct reader *reader, const struct gcmp_node *list,
                                      struct gcmp_dcp_group *group) {
    if (list == NULL || list->kind == GCMP_NODE_NONE) {
        return GRADCMP_OK;
    }
    if (gcmp_node_count(list) != group->count) {
        GCMP_FAIL(reader->error, GRADCMP_ERROR_CORRUPT,
                  "group %zu of the optimizer \"%.*s\" has %zu parameters and %zu names",
                  group->number, (int)(group->path_bytes < 200 ? group->path_bytes : 200),
                  group->path, group->count, gcmp_node_count(list));
    }
    for (size_t i = 0; i < group->count; i++) {
        const char *name = gcmp_node_text(gcmp_node_item(list, i));
        struct gcmp_dcp_param *param = &reader->lists->params[group->first + i];
        param->name = name == NULL ? NULL : gcmp_arena_dup(reader->catalogue->arena, name);
        if (name != NULL && param->name == NULL) {
            GCMP_FAIL_MEMORY(reader->error);
        }
    }
    return GRADCMP_OK;
}

/* Take the bytes of an item from the budget. */
static void spend(struct reader *reader, const struct gradcmp_source *source,
                  const struct gcmp_dcp_item *item) {
    uint64_t bytes = item->decoded.length_bytes > source->length_bytes ? item->decoded.length_bytes
                                                                       : source->length_bytes;
    reader->bytes_left -= bytes < reader->bytes_left ? bytes : reader->bytes_left;
}

typedef enum gradcmp_status (*taker)(struct reader *, const struct gcmp_node *,
                                     struct gcmp_dcp_group *);

/* Open a list and let it be taken. */
static enum gradcmp_status read_list(struct reader *reader, const struct gradcmp_stored *stored,
                                     struct gcmp_dcp_group *group, taker take,
                                     struct gradcmp_error *error) {
    const struct gradcmp_source *source = &reader->catalogue->sources[stored->pieces[0].source];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    if (source->length_bytes > reader->bytes_left) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                  "lists of an optimizer's parameters of more than %d bytes", MAX_BYTES);
    }
    enum gradcmp_status status =
        gcmp_dcp_open_item(reader->catalogue, source, reader->bytes_left, &arena, &item, error);
    spend(reader, source, &item);
    if (status == GRADCMP_OK) {
        status = take(reader, item.torch.root, group);
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

/* A damaged list of numbers is left; but where names are listed, nothing takes their place. */
static enum gradcmp_status read_numbers(struct reader *reader, const struct gradcmp_stored *stored,
                                        struct gcmp_dcp_group *group, bool has_names) {
    struct gradcmp_error error = {0};
    enum gradcmp_status status = read_list(reader, stored, group, take_numbers, &error);
    if (status == GRADCMP_ERROR_CORRUPT && !has_names) {
        group->is_read = false;
        return GRADCMP_OK;
    }
    if (status != GRADCMP_OK && error.code != GRADCMP_OK && reader->error != NULL) {
        *reader->error = error;
    }
    return status;
}

static enum gradcmp_status read_group(struct reader *reader, const struct gradcmp_stored *stored,
                                      struct gcmp_dcp_group *group) {
    struct gcmp_dcp_lists *lists = reader->lists;
    size_t names, front_bytes = strlen(stored->key) - strlen("params");
    bool has_names = gcmp_map_find(&reader->names, stored->key, front_bytes, &names);
    if (lists->group_count == MAX_GROUPS) {
        GCMP_FAIL(reader->error, GRADCMP_ERROR_LIMIT, "optimizers of more than %d groups",
                  MAX_GROUPS);
    }
    group->first = lists->param_count;
    GCMP_TRY(read_numbers(reader, stored, group, has_names));
    if (group->is_read && has_names) {
        GCMP_TRY(
            read_list(reader, &reader->catalogue->stored[names], group, take_names, reader->error));
    }
    if (!gcmp_grow(&lists->groups, lists->group_count, &lists->group_capacity,
                   sizeof *lists->groups)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    lists->groups[lists->group_count++] = *group;
    return GRADCMP_OK;
}

static enum gradcmp_status read_groups(struct reader *reader) {
    for (size_t i = 0; i < reader->catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &reader->catalogue->stored[i];
        struct gcmp_dcp_group group;
        if (is_object(stored) && split_key(stored->key, "params", &group)) {
            GCMP_TRY(read_group(reader, stored, &group));
        }
    }
    return GRADCMP_OK;
}

static int compare_groups(const void *left, const void *right) {
    const struct gcmp_dcp_group *a = left, *b = right;
    size_t bytes = a->path_bytes < b->path_bytes ? a->path_bytes : b->path_bytes;
    int order = memcmp(a->path, b->path, bytes);
    if (order == 0) {
        order = a->path_bytes < b->path_bytes ? -1 : a->path_bytes > b->path_bytes;
    }
    return order != 0 ? order : a->number < b->number ? -1 : a->number > b->number;
}

enum gradcmp_status gcmp_dcp_read_lists(struct gradcmp_catalogue *catalogue,
                                        struct gcmp_dcp_lists *out, struct gradcmp_error *error) {
    struct reader reader = {
        .catalogue = catalogue, .lists = out, .bytes_left = MAX_BYTES, .error = error};
    *out = (struct gcmp_dcp_lists){0};
    enum gradcmp_status status = gather_names(&reader);
    status = status == GRADCMP_OK ? read_groups(&reader) : status;
    if (out->group_count > 0) {
        qsort(out->groups, out->group_count, sizeof *out->groups, compare_groups);
    }
    gcmp_map_free(&reader.names);
    return status;
}

void gcmp_dcp_free_lists(struct gcmp_dcp_lists *lists) {
    free(lists->groups);
    free(lists->params);
}
