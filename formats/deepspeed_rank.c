/* Reads `*_optim_states.pt`. Sources: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py and
 * runtime/bf16_optimizer.py (state_dict), checkpoint/constants.py; versions 0.3 to 0.19. Stages 1
 * and 2 hold {"base_optimizer_state": torch's state with a number for each group (or, with
 * elastic_checkpoint, a list of groups), "single_partition_of_fp32_groups": [masters],
 * "param_slice_mappings": [{name: (start, numel)}], "partition_count"}; stage 3
 * {"optimizer_state_dict": torch's state with a number for each sub-group, "fp32_flat_groups":
 * [masters]}.
 *
 * Limits: MAX_GROUPS groups; as many entries as the pickle has bytes. */
#include "formats/deepspeed_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "formats/torch_save_file.h"
#include "formats/torch_save_set.h"

enum { MAX_GROUPS = 1 << 20 };

/* One file under way. */
struct reader {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_torch_file torch;
    struct gcmp_ds_rank *rank;
    const struct gcmp_node *optimizer; /* the dict "optimizer_state_dict" */
    uint64_t visits_left;
    struct gradcmp_error *error;
};

#define READER_FAIL(reader, code, node, ...)                                                       \
    GCMP_FAIL_AT((reader)->error, (code),                                                          \
                 gcmp_dir_file_path((reader)->catalogue->dir, (reader)->rank->file),               \
                 (reader)->torch.pickle->offset_bytes + gcmp_node_at(node),                        \
                 "deepspeed: " __VA_ARGS__)

static enum gradcmp_status visit(struct reader *reader, const struct gcmp_node *node) {
    if (reader->visits_left == 0) {
        READER_FAIL(reader, GRADCMP_ERROR_LIMIT, node,
                    "more entries than a pickle of %llu bytes can hold",
                    (unsigned long long)reader->torch.pickle->length_bytes);
    }
    reader->visits_left--;
    return GRADCMP_OK;
}

static bool is_list(const struct gcmp_node *node) {
    return node != NULL && (node->kind == GCMP_NODE_LIST || node->kind == GCMP_NODE_TUPLE);
}

/* --- flat tensors --- */

/* Take a tensor of one axis without gaps; others (of other lengths, of several axes) are states of
 * the optimizer's own, and those of a name that is compared are damage. */
static enum gradcmp_status add_flat(struct reader *reader, const struct gcmp_node *node,
                                    const char *word, uint32_t group) {
    struct gcmp_ds_rank *rank = reader->rank;
    struct gcmp_ds_flat flat = {.group = group, .file = rank->file};
    GCMP_TRY(gcmp_torch_tensor(&reader->torch, node, &flat.view, reader->error));
    bool is_flat = flat.view.ndim == 1 && (flat.view.stride[0] == 1 || flat.view.shape[0] <= 1);
    bool is_float = gcmp_dtype_is_float((enum gradcmp_dtype)flat.view.dtype);
    if (!is_flat || !is_float) {
        if (strcmp(word, "exp_avg") == 0 || strcmp(word, "exp_avg_sq") == 0 ||
            strcmp(word, "fp32_param") == 0) {
            READER_FAIL(reader, GRADCMP_ERROR_UNSUPPORTED, node,
                        "%s of group %u: expected a flat tensor of real numbers", word, group);
        }
        return GRADCMP_OK;
    }
    flat.elem_count = flat.view.shape[0];
    flat.word = gcmp_pt_state_word(reader->catalogue->arena, word);
    if (flat.word == NULL ||
        !gcmp_grow(&rank->flats, rank->flat_count, &rank->flat_capacity, sizeof *rank->flats)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    rank->flats[rank->flat_count++] = flat;
    return GRADCMP_OK;
}

/* What a group says of its step: a number, or a tensor of one. */
static enum gradcmp_status see_step(struct reader *reader, const struct gcmp_node *value) {
    struct gcmp_ds_rank *rank = reader->rank;
    struct gradcmp_extent view;
    double step;
    bool found = gcmp_node_number(value, &step);
    if (!found && gcmp_torch_is_tensor(value)) {
        struct gradcmp_error own = {0};
        enum gradcmp_status status = gcmp_torch_tensor(&reader->torch, value, &view, &own);
        if (status == GRADCMP_ERROR_UNSUPPORTED) { /* it is in no other way needed */
            return GRADCMP_OK;
        }
        if (status != GRADCMP_OK) {
            return gcmp_error_set(reader->error, status, own.path, own.offset_bytes, "%s",
                                  own.message);
        }
        if (view.ndim == 0) {
            GCMP_TRY(gcmp_torch_read_scalar(&reader->torch, &view, &found, &step, reader->error));
        }
    }
    rank->step = found ? fmax(rank->step, step) : rank->step;
    return GRADCMP_OK;
}

/* The states of one group: {word: tensor or number}. */
static enum gradcmp_status read_group(struct reader *reader, const struct gcmp_node *states,
                                      uint32_t group) {
    for (size_t i = 0; i < gcmp_node_count(states); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        GCMP_TRY(visit(reader, states));
        const char *word = gcmp_node_pair(states, i, &key, &value) ? gcmp_node_text(key) : NULL;
        if (word != NULL && strcmp(word, "step") == 0) {
            GCMP_TRY(see_step(reader, value));
        } else if (word != NULL && strlen(word) < 200 && gcmp_torch_is_tensor(value)) {
            GCMP_TRY(add_flat(reader, value, word, group));
        }
    }
    return GRADCMP_OK;
}

/* torch's state, with numbers of groups as keys. */
static enum gradcmp_status read_state(struct reader *reader, const struct gcmp_node *state) {
    for (size_t i = 0; i < gcmp_node_count(state); i++) {
        const struct gcmp_node *key = NULL, *value = NULL;
        int64_t group;
        GCMP_TRY(visit(reader, state));
        if (!gcmp_node_pair(state, i, &key, &value) || !gcmp_node_int(key, &group) || group < 0 ||
            group >= MAX_GROUPS) {
            READER_FAIL(reader, GRADCMP_ERROR_CORRUPT, key,
                        "expected a number of a group as key of a state, found %s",
                        gcmp_node_kind_name(key));
        }
        GCMP_TRY(read_group(reader, value, (uint32_t)group));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_groups(struct reader *reader, const struct gcmp_node *base) {
    if (is_list(base)) { /* elastic_checkpoint: [states of a group] */
        for (size_t i = 0; i < gcmp_node_count(base) && i < MAX_GROUPS; i++) {
            GCMP_TRY(read_group(reader, gcmp_node_item(base, i), (uint32_t)i));
        }
        return GRADCMP_OK;
    }
    const struct gcmp_node *state = gcmp_node_get(base, "state");
    if (state == NULL) {
        READER_FAIL(reader, GRADCMP_ERROR_UNSUPPORTED, base,
                    "no state of the optimizer in the file (was it swapped out?)");
    }
    GCMP_TRY(read_state(reader, state));
    return gcmp_pt_read_groups(reader->catalogue, gcmp_node_get(base, "param_groups"),
                               reader->error);
}

static enum gradcmp_status read_masters(struct reader *reader, const struct gcmp_node *masters) {
    for (size_t i = 0; i < gcmp_node_count(masters) && i < MAX_GROUPS; i++) {
        const struct gcmp_node *item = gcmp_node_item(masters, i);
        GCMP_TRY(visit(reader, masters));
        if (gcmp_torch_is_tensor(item)) {
            GCMP_TRY(add_flat(reader, item, "fp32_param", (uint32_t)i));
        }
    }
    return GRADCMP_OK;
}

static int compare_flats(const void *left, const void *right) {
    const struct gcmp_ds_flat *a = left, *b = right;
    int order = strcmp(a->word, b->word);
    return order != 0 ? order : (a->group > b->group) - (a->group < b->group);
}

/* --- what it says of parameters --- */

static enum gradcmp_status add_slice(struct reader *reader, const struct gcmp_node *key,
                                     const struct gcmp_node *value, uint32_t group) {
    struct gcmp_ds_rank *rank = reader->rank;
    int64_t start, count;
    const char *name = gcmp_node_text(key);
    if (name == NULL || !gcmp_node_int(gcmp_node_get(value, "start"), &start) || start < 0 ||
        !gcmp_node_int(gcmp_node_get(value, "numel"), &count) || count < 0) {
        READER_FAIL(reader, GRADCMP_ERROR_CORRUPT, key,
                    "param_slice_mappings: expected a name with start and numel of 0 or more");
    }
    const char *copy = gcmp_arena_dup(reader->catalogue->arena, name);
    if (copy == NULL ||
        !gcmp_grow(&rank->slices, rank->slice_count, &rank->slice_capacity, sizeof *rank->slices)) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    rank->slices[rank->slice_count++] =
        (struct gcmp_ds_slice){copy, group, (uint64_t)start, (uint64_t)count};
    return GRADCMP_OK;
}

static enum gradcmp_status read_slices(struct reader *reader) {
    const struct gcmp_node *mappings = gcmp_node_get(reader->optimizer, "param_slice_mappings");
    reader->rank->has_slices = is_list(mappings);
    for (size_t g = 0; reader->rank->has_slices && g < gcmp_node_count(mappings); g++) {
        const struct gcmp_node *mapping = gcmp_node_item(mappings, g);
        for (size_t i = 0; i < gcmp_node_count(mapping); i++) {
            const struct gcmp_node *key = NULL, *value = NULL;
            GCMP_TRY(visit(reader, mapping));
            if (gcmp_node_pair(mapping, i, &key, &value)) {
                GCMP_TRY(add_slice(reader, key, value, (uint32_t)g));
            }
        }
    }
    return GRADCMP_OK;
}

/* Append integers to an array that has room for them. */
static enum gradcmp_status take_integers(struct reader *reader, const struct gcmp_node *list,
                                         uint64_t *out) {
    for (size_t i = 0; i < gcmp_node_count(list); i++) {
        int64_t value;
        GCMP_TRY(visit(reader, list));
        if (!gcmp_node_int(gcmp_node_item(list, i), &value) || value < 0) {
            READER_FAIL(reader, GRADCMP_ERROR_CORRUPT, list,
                        "expected integers of 0 or more in a list");
        }
        out[i] = (uint64_t)value;
    }
    return GRADCMP_OK;
}

/* "partition_count": a number, or a list of one for each group. */
static enum gradcmp_status read_partitions(struct reader *reader) {
    const struct gcmp_node *node = gcmp_node_get(reader->optimizer, "partition_count");
    struct gcmp_ds_rank *rank = reader->rank;
    int64_t single;
    size_t count = is_list(node) ? gcmp_node_count(node) : 1;
    rank->partition_counts = calloc(count + 1, sizeof *rank->partition_counts);
    if (rank->partition_counts == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    if (is_list(node)) {
        rank->partition_count = count;
        GCMP_TRY(take_integers(reader, node, rank->partition_counts));
    } else if (gcmp_node_int(node, &single) && single > 0) {
        rank->partition_count = 1;
        rank->partition_counts[0] = (uint64_t)single;
    }
    for (size_t i = 0; i < rank->partition_count; i++) {
        rank->most_ranks = rank->partition_counts[i] > rank->most_ranks ? rank->partition_counts[i]
                                                                        : rank->most_ranks;
    }
    return GRADCMP_OK;
}

/* "param_alignment_paddings" (since 0.19): a list for each group. */
static enum gradcmp_status read_paddings(struct reader *reader) {
    const struct gcmp_node *node = gcmp_node_get(reader->optimizer, "param_alignment_paddings");
    struct gcmp_ds_rank *rank = reader->rank;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < gcmp_node_count(node); i++) {
        GCMP_TRY(visit(reader, node));
        total += gcmp_node_count(gcmp_node_item(node, i));
    }
    if (total > reader->torch.pickle->length_bytes) {
        READER_FAIL(reader, GRADCMP_ERROR_LIMIT, node, "more paddings than the pickle can hold");
    }
    rank->paddings = calloc(total + 1, sizeof *rank->paddings);
    if (rank->paddings == NULL) {
        GCMP_FAIL_MEMORY(reader->error);
    }
    for (size_t i = 0; i < gcmp_node_count(node); i++) {
        const struct gcmp_node *group = gcmp_node_item(node, i);
        GCMP_TRY(take_integers(reader, group, rank->paddings + at));
        at += gcmp_node_count(group);
    }
    rank->padding_count = total;
    return GRADCMP_OK;
}

/* Since 0.19 sub-groups of experts may be shared by fewer ranks than the others. */
static enum gradcmp_status check_partition_groups(struct reader *reader) {
    const struct gcmp_node *groups = gcmp_node_get(reader->optimizer, "ds_zero_partition_groups");
    for (size_t i = 0; i < gcmp_node_count(groups); i++) {
        const struct gcmp_node *group = gcmp_node_item(groups, i);
        int64_t count;
        if (gcmp_node_int(gcmp_node_get(group, "partition_count"), &count) &&
            (uint64_t)count != reader->rank->most_ranks) {
            READER_FAIL(reader, GRADCMP_ERROR_UNSUPPORTED, group,
                        "ZeRO stage 3 with experts of their own partitions (AutoEP) is not read; "
                        "convert with ds_to_universal");
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_optimizer(struct reader *reader) {
    const struct gcmp_node *optimizer = reader->optimizer;
    const struct gcmp_node *inner = gcmp_node_get(optimizer, "optimizer_state_dict");
    const struct gcmp_node *base = gcmp_node_get(optimizer, "base_optimizer_state");
    reader->rank->is_stage3 = inner != NULL;
    if (optimizer == NULL || (inner == NULL && base == NULL)) {
        READER_FAIL(reader, GRADCMP_ERROR_UNSUPPORTED, reader->torch.root,
                    "expected the optimizer's state of ZeRO stage 1, 2 or 3, found neither "
                    "base_optimizer_state nor optimizer_state_dict");
    }
    GCMP_TRY(read_groups(reader, inner != NULL ? inner : base));
    GCMP_TRY(read_masters(
        reader, gcmp_node_get(optimizer, inner != NULL ? "fp32_flat_groups"
                                                       : "single_partition_of_fp32_groups")));
    if (reader->rank->flat_count > 0) {
        qsort(reader->rank->flats, reader->rank->flat_count, sizeof *reader->rank->flats,
              compare_flats);
    }
    GCMP_TRY(read_partitions(reader));
    GCMP_TRY(read_paddings(reader));
    GCMP_TRY(check_partition_groups(reader));
    return read_slices(reader);
}

enum gradcmp_status gcmp_ds_read_rank(struct gradcmp_catalogue *catalogue, const char *name,
                                      uint32_t dp, struct gcmp_ds_rank *out,
                                      struct gradcmp_error *error) {
    struct reader reader = {.catalogue = catalogue, .rank = out, .error = error};
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    *out = (struct gcmp_ds_rank){.dp = dp, .step = (double)NAN};
    enum gradcmp_status status =
        gcmp_torch_open_any(catalogue->dir, name, &scratch, &reader.torch, error);
    if (status == GRADCMP_OK) {
        out->file = reader.torch.file;
        reader.visits_left = reader.torch.pickle->length_bytes + 64;
        reader.optimizer = gcmp_node_get(reader.torch.root, "optimizer_state_dict");
        status = read_optimizer(&reader);
    }
    gcmp_arena_free(&scratch);
    return status;
}

void gcmp_ds_free_rank(struct gcmp_ds_rank *rank) {
    free(rank->flats);
    free(rank->slices);
    free(rank->partition_counts);
    free(rank->paddings);
    *rank = (struct gcmp_ds_rank){.flats = NULL};
}

size_t gcmp_ds_find_word(const struct gcmp_ds_rank *rank, const char *word, size_t *first) {
    size_t count = 0;
    *first = 0;
    for (size_t i = 0; i < rank->flat_count; i++) {
        if (strcmp(rank->flats[i].word, word) == 0) {
            *first = count++ == 0 ? i : *first;
        }
    }
    return count;
}
