/* Plans the parameters of a state: shapes, stacks, names, layers. */
#include "unshard/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/catalogue.h"
#include "base/map.h"
#include "unshard/layer_axis.h"
#include "unshard/name_parse.h"

/* Stacked tensors make many parameters of little metadata: what their names and records take is
 * bounded by this, and by so much for each piece. */
enum { PLAN_BYTES = 128 << 20, PLAN_PIECE_BYTES = 4096, ENTRY_BYTES = 256 };

/* Index the model's own tensors by name. */
static enum gradcmp_status map_model(const struct gradcmp_catalogue *catalogue,
                                     struct gcmp_map *map, struct gradcmp_error *error) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (gcmp_is_of_state(stored, "param") &&
            gcmp_map_add(map, stored->name, strlen(stored->name), i, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status make_item(const struct gradcmp_catalogue *catalogue,
                                     const struct gradcmp_stored *stored,
                                     const struct gcmp_map *model, struct gcmp_plan *plan,
                                     struct gradcmp_error *error) {
    struct gcmp_item *item = &plan->items[plan->item_count];
    size_t index;
    item->stored = stored;
    item->name = &plan->names[plan->item_count++];
    if (gcmp_map_find(model, stored->name, strlen(stored->name), &index)) {
        item->model = &catalogue->stored[index];
    }
    struct gcmp_grid grid;
    GCMP_TRY(gcmp_grid_make(stored, item->model, &grid, error));
    item->shape = grid.shape;
    item->ndim = (uint8_t)grid.ndim;
    plan->pieces += stored->piece_count;
    return GRADCMP_OK;
}

static enum gradcmp_status collect(const struct gradcmp_catalogue *catalogue, const char *state,
                                   const struct gcmp_map *model, struct gcmp_plan *plan,
                                   struct gradcmp_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        count += gcmp_is_of_state(&catalogue->stored[i], state);
    }
    if (count > UINT32_MAX) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %u tensors", UINT32_MAX);
    }
    plan->items = calloc(count + 1, sizeof *plan->items);
    if (plan->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (gcmp_is_of_state(stored, state)) {
            GCMP_TRY(make_item(catalogue, stored, model, plan, error));
        }
    }
    return GRADCMP_OK;
}

/* The names of the weights, and which `layers` of theirs are stacks. */
struct weights {
    struct gcmp_name *names;
    struct gcmp_layer_axis axis;
    uint64_t layers; /* as the run states it; 0: it does not */
};

static void weights_free(struct weights *weights) {
    free(weights->names);
    gcmp_layer_axis_free(&weights->axis);
}

static struct gcmp_layer_member weight_member(const struct gradcmp_stored *stored,
                                              const struct gcmp_name *name) {
    struct gcmp_layer_member member = {name, stored->key, 0, NULL};
    member.shape = gcmp_stored_shape(stored, &member.ndim);
    return member;
}

/* To be freed, after a failure too. */
static enum gradcmp_status read_weights(const struct gcmp_plan_input *input,
                                        struct weights *weights, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = input->catalogue;
    size_t at = 0;
    *weights = (struct weights){NULL, GCMP_LAYER_AXIS_INIT, catalogue->layers};
    GCMP_TRY(gcmp_names_read(catalogue, "param", input->scratch, &weights->names, error));
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (gcmp_is_of_state(&catalogue->stored[i], "param")) {
            struct gcmp_layer_member member =
                weight_member(&catalogue->stored[i], &weights->names[at++]);
            GCMP_TRY(gcmp_layer_axis_add(&weights->axis, &member, error));
        }
    }
    return GRADCMP_OK;
}

/* The number of layers that a weight shows; 0: none, or more than are read. */
static uint64_t weight_layers(const struct weights *weights, const struct gradcmp_stored *stored,
                              const struct gcmp_name *name) {
    struct gcmp_layer_member member = weight_member(stored, name);
    bool is_stack = stored->layout == GRADCMP_LAYOUT_MODEL && member.ndim > 0 &&
                    gcmp_layer_axis_holds(&weights->axis, name, weights->layers);
    uint64_t here = is_stack ? member.shape[0] : (uint64_t)(name->layer + 1);
    return here <= GCMP_MAX_LAYERS && !name->is_mtp ? here : 0;
}

/* A weight as ranks keep it, named as the model's. */
static bool is_of_rank(const struct gradcmp_stored *stored) {
    return stored->layout == GRADCMP_LAYOUT_LOCAL && stored->state != NULL &&
           strcmp(stored->state, "param") == 0;
}

/* Weights show stacks, too, that have no tensor of the state, such as a frozen tower. */
static enum gradcmp_status add_weights(const struct gcmp_plan_input *input, struct gcmp_plan *plan,
                                       struct gradcmp_error *error) {
    struct weights weights;
    struct gcmp_name local;
    size_t at = 0;
    enum gradcmp_status status = read_weights(input, &weights, error);
    for (size_t i = 0; i < input->catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &input->catalogue->stored[i];
        const struct gcmp_name *name = NULL;
        if (gcmp_is_of_state(stored, "param")) {
            name = &weights.names[at++];
        } else if (is_of_rank(stored)) {
            status = gcmp_name_parse(stored->name, false, input->scratch, &local, error);
            name = &local;
        }
        if (name != NULL && status == GRADCMP_OK) {
            status =
                gcmp_towers_add(&plan->towers, name, weight_layers(&weights, stored, name), error);
        }
    }
    weights_free(&weights);
    return status;
}

/* Whether any name of the state or of a weight is of a stack that may feed another. */
static bool may_feed(const struct gcmp_plan_input *input) {
    bool found = false;
    for (size_t i = 0; i < input->catalogue->stored_count && !found; i++) {
        const struct gradcmp_stored *stored = &input->catalogue->stored[i];
        bool is_known = gcmp_is_of_state(stored, input->state) ||
                        gcmp_is_of_state(stored, "param") || is_of_rank(stored);
        found = is_known && gcmp_towers_may_feed(stored->name);
    }
    return found;
}

/* Find the stacks that feed one another, and number their layers. */
static enum gradcmp_status meet_towers(const struct gcmp_plan_input *input, struct gcmp_plan *plan,
                                       struct gradcmp_error *error) {
    if (!may_feed(input)) {
        return GRADCMP_OK;
    }
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct gcmp_item *item = &plan->items[i];
        uint64_t here = item->has_layers ? item->layers : (uint64_t)(item->name->layer + 1);
        GCMP_TRY(gcmp_towers_add(&plan->towers, item->name, here, error));
    }
    if (strcmp(input->state, "param") != 0) {
        GCMP_TRY(add_weights(input, plan, error));
    }
    plan->has_towers = gcmp_towers_number(&plan->towers);
    return GRADCMP_OK;
}

/* The number of layers that the names and stacks of the items show. */
static enum gradcmp_status count_layers(const struct gcmp_plan *plan, uint64_t *layers,
                                        struct gradcmp_error *error) {
    *layers = 0;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct gcmp_item *item = &plan->items[i];
        uint64_t here = item->has_layers ? item->layers : (uint64_t)(item->name->layer + 1);
        if (here > GCMP_MAX_LAYERS) {
            GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%s: layer %" PRIu64 ", at most %d are read",
                      item->stored->key, here - 1, GCMP_MAX_LAYERS);
        }
        if (!item->name->is_mtp && here > *layers) {
            *layers = here;
        }
    }
    uint64_t total = plan->has_towers ? gcmp_towers_total(&plan->towers) : 0;
    if (total > GCMP_MAX_LAYERS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%" PRIu64 " layers, at most %d are read", total,
                  GCMP_MAX_LAYERS);
    }
    *layers = total > *layers ? total : *layers;
    return GRADCMP_OK;
}

static void show(uint64_t here, uint64_t *shown) {
    *shown = here > *shown ? here : *shown;
}

/* The highest layer of any of the state's tensors, or of the weights', which may be more. */
static enum gradcmp_status find_shown(const struct gcmp_plan_input *input, struct gcmp_plan *plan,
                                      struct gradcmp_error *error) {
    struct weights weights;
    size_t at = 0;
    enum gradcmp_status status = read_weights(input, &weights, error);
    for (size_t i = 0; i < input->catalogue->stored_count && status == GRADCMP_OK; i++) {
        const struct gradcmp_stored *stored = &input->catalogue->stored[i];
        if (gcmp_is_of_state(stored, "param")) {
            show(weight_layers(&weights, stored, &weights.names[at++]), &plan->shown);
        }
    }
    weights_free(&weights);
    GCMP_TRY(status);
    bool has_names = plan->shown > 0; /* else the reader counted modules */
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct gcmp_item *item = &plan->items[i];
        uint32_t stated = item->stored->stated_layer; /* 1 + l; the head's is L + 1 */
        bool counts = !has_names || (item->name->layer >= 0 && !item->name->is_mtp);
        show(counts && stated > 0 && stated <= plan->layers + 1 ? stated - 1 : 0, &plan->shown);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status choose_layers(const struct gradcmp_catalogue *catalogue,
                                         const struct gcmp_unshard_options *options,
                                         struct gcmp_plan *plan, struct gradcmp_error *error) {
    uint64_t found, asked = options == NULL ? 0 : options->layers;
    GCMP_TRY(count_layers(plan, &found, error));
    if (asked != 0 && asked < found) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "%" PRIu64 " layers were asked for, but the checkpoint has %" PRIu64 "%s", asked,
                  found, plan->has_towers ? " (stacks that feed one another count together)" : "");
    }
    uint64_t known = asked != 0 ? asked : catalogue->layers;
    if (known > GCMP_MAX_LAYERS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "%" PRIu64 " layers, at most %d are read", known,
                  GCMP_MAX_LAYERS);
    }
    plan->layers = known > found ? known : found;
    plan->shown = asked != 0 ? asked : found;
    return GRADCMP_OK;
}

/* Number the slots, and refuse more parameters than the metadata can be about. */
static enum gradcmp_status place_slots(struct gcmp_plan *plan, struct gradcmp_error *error) {
    uint64_t bytes = 0, limit = PLAN_BYTES + PLAN_PIECE_BYTES * plan->pieces;
    for (size_t i = 0; i < plan->item_count; i++) {
        struct gcmp_item *item = &plan->items[i];
        uint64_t each = strlen(item->name->text) + ENTRY_BYTES; /* slots: 2^32 at most */
        if (!gcmp_add_u64(bytes, each * item->slot_count, &bytes) || bytes > limit) {
            GCMP_FAIL(error, GRADCMP_ERROR_LIMIT,
                      "%s: %" PRIu64 " layers of %" PRIu64 " experts make more parameters than %zu "
                      "pieces can be about",
                      item->stored->key, item->layers, item->experts, item->stored->piece_count);
        }
        item->first_slot = plan->entry_count;
        plan->entry_count += item->slot_count;
    }
    return GRADCMP_OK;
}

static int compare_entries(const void *left, const void *right) {
    const struct gcmp_entry *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->item < b->item ? -1 : a->item > b->item;
}

/* A name that no index is added to is used as it is, where the catalogue owns it. */
static const char *entry_name(const struct gcmp_item *item, size_t slot, struct gcmp_arena *arena) {
    if (item->lead == 0 && item->name->text == item->stored->name) {
        return item->stored->name;
    }
    int64_t layer = item->has_layers ? (int64_t)(slot / item->experts) : -1;
    int64_t expert = item->has_experts ? (int64_t)(slot % item->experts) : -1;
    return gcmp_name_compose(item->name, layer, expert, arena);
}

static enum gradcmp_status name_entries(struct gcmp_plan *plan, struct gcmp_arena *arena,
                                        struct gradcmp_error *error) {
    plan->entries = calloc(plan->entry_count + 1, sizeof *plan->entries);
    if (plan->entries == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_entry *entry = plan->entries;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct gcmp_item *item = &plan->items[i];
        for (size_t slot = 0; slot < item->slot_count; slot++, entry++) {
            *entry =
                (struct gcmp_entry){entry_name(item, slot, arena), (uint32_t)i, (uint32_t)slot};
            if (entry->name == NULL) {
                GCMP_FAIL_MEMORY(error);
            }
        }
    }
    qsort(plan->entries, plan->entry_count, sizeof *plan->entries, compare_entries);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_plan_make(const struct gcmp_plan_input *input, struct gcmp_plan *plan,
                                   struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = input->catalogue;
    *plan = (struct gcmp_plan){.items = NULL};
    GCMP_TRY(gcmp_names_read(catalogue, input->state, input->scratch, &plan->names, error));
    struct gcmp_map model = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    if (strcmp(input->state, "param") != 0) {
        status = map_model(catalogue, &model, error);
    }
    if (status == GRADCMP_OK) {
        status = collect(catalogue, input->state, &model, plan, error);
    }
    gcmp_map_free(&model);
    GCMP_TRY(status);
    GCMP_TRY(gcmp_stack_decide(catalogue, plan->items, plan->item_count, error));
    GCMP_TRY(meet_towers(input, plan, error));
    GCMP_TRY(choose_layers(catalogue, input->options, plan, error));
    if (plan->layers > plan->shown) {
        GCMP_TRY(find_shown(input, plan, error));
    }
    GCMP_TRY(place_slots(plan, error));
    return name_entries(plan, input->arena, error);
}

void gcmp_plan_free(struct gcmp_plan *plan) {
    free(plan->items);
    free(plan->entries);
    free(plan->names);
    gcmp_towers_free(&plan->towers);
    *plan = (struct gcmp_plan){.items = NULL};
}

int64_t gcmp_plan_layer(const struct gcmp_plan *plan, const struct gcmp_entry *entry) {
    const struct gcmp_item *item = &plan->items[entry->item];
    int64_t head = (int64_t)plan->layers + 1;
    if (item->stored->stated_layer != 0 && !item->has_layers) {
        int64_t stated = (int64_t)item->stored->stated_layer - 1;
        return stated < head ? stated : head;
    }
    if (item->name->is_mtp) {
        return head;
    }
    int64_t before = plan->has_towers ? (int64_t)gcmp_towers_before(&plan->towers, item->name) : 0;
    if (item->has_layers) {
        return before + (int64_t)(entry->slot / item->experts) + 1;
    }
    if (item->name->layer >= 0) {
        return before + item->name->layer + 1;
    }
    int64_t place = plan->has_towers ? gcmp_towers_place(&plan->towers, item->name) : -1;
    return place >= 0 ? place : item->name->is_embedding ? 0 : head;
}
