/* How a rule's parts share an axis: from heads and groups to moves of boxes. */
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "unshard/dims.h"
#include "unshard/mapping_rules.h"
#include "unshard/reslab.h"

/* More moves make slabs in numbers that no fused parameter needs. */
enum { MAX_GROUPS = 1 << 16 };

/* A positive whole number among the settings; 0: none. */
static uint64_t setting_count(const struct gradcmp_catalogue *catalogue, const char *name) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(catalogue, name);
    bool is_count = setting != NULL && setting->kind == GRADCMP_SETTING_INT && setting->integer > 0;
    return is_count ? (uint64_t)setting->integer : 0;
}

/* Heads and query groups from the checkpoint's arguments. Megatron writes one query group into the
 * arguments of models without grouped queries, whose groups are their heads. */
static enum gradcmp_status take_arguments(const struct gcmp_rule_use *use,
                                          struct gcmp_rule_shares *shares,
                                          struct gradcmp_error *error) {
    const struct gradcmp_setting *grouped =
        gcmp_catalogue_setting(use->catalogue, "group_query_attention");
    uint64_t heads = setting_count(use->catalogue, "num_attention_heads");
    uint64_t groups = setting_count(use->catalogue, "num_query_groups");
    if (groups == 0 || (grouped != NULL && grouped->integer == 0)) {
        groups = heads;
    }
    if (heads == 0 || heads % groups != 0 || groups > MAX_GROUPS) {
        GCMP_RULE_FAIL(error, GRADCMP_ERROR_CORRUPT, use->mapping, use->rule,
                       "the checkpoint's arguments tell no heads and query groups (%llu and %llu "
                       "found); write them here: heads: N, query_groups: N",
                       (unsigned long long)heads, (unsigned long long)groups);
    }
    shares->groups = groups;
    shares->parts[0] = heads / groups;
    shares->parts[1] = shares->parts[2] = 1;
    return GRADCMP_OK;
}

static enum gradcmp_status find_shares(const struct gcmp_rule_use *use,
                                       struct gcmp_rule_shares *shares,
                                       struct gradcmp_error *error) {
    *shares = use->rule->shares;
    return shares->from_arguments ? take_arguments(use, shares, error) : GRADCMP_OK;
}

static enum gradcmp_status check_axis(const struct gcmp_rule_use *use,
                                      const struct gcmp_rule_shares *shares,
                                      const struct gradcmp_parameter *parameter,
                                      struct gradcmp_error *error) {
    if (shares->axis < parameter->ndim) {
        return GRADCMP_OK;
    }
    GCMP_RULE_FAIL(error, GRADCMP_ERROR_CORRUPT, use->mapping, use->rule,
                   "%.200s has %u axes, counted from 0: none is axis %llu", parameter->name,
                   parameter->ndim, (unsigned long long)shares->axis);
}

/* The moves of one part: in the fused shape its shares stand at `first`, `period` apart. */
struct lane {
    uint64_t axis, groups;
    uint64_t first, share, period; /* elements along the axis */
};

/* Make the moves of a lane from the fused shape, or to it. */
static bool make_moves(const struct lane *lane, const struct gradcmp_parameter *part, bool fuses,
                       struct gcmp_arena *arena, struct gradcmp_move **out) {
    unsigned ndim = part->ndim;
    struct gradcmp_move *moves = gcmp_arena_alloc(arena, (size_t)lane->groups, sizeof *moves);
    uint64_t *extent = gcmp_arena_alloc(arena, ndim, sizeof *extent);
    uint64_t *starts = gcmp_arena_alloc(arena, (size_t)lane->groups * 2, ndim * sizeof *starts);
    if (moves == NULL || extent == NULL || starts == NULL) {
        return false;
    }
    memcpy(extent, part->shape, ndim * sizeof *extent);
    extent[lane->axis] = lane->share;
    for (uint64_t g = 0; g < lane->groups; g++) {
        uint64_t *in_fused = starts + 2 * g * ndim, *in_part = in_fused + ndim;
        in_fused[lane->axis] = lane->first + g * lane->period;
        in_part[lane->axis] = g * lane->share;
        moves[g] =
            (struct gradcmp_move){fuses ? in_part : in_fused, fuses ? in_fused : in_part, extent};
    }
    *out = moves;
    return true;
}

static uint64_t sum_of(const struct gcmp_rule_shares *shares, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += shares->parts[i]; /* each was limited when it was read */
    }
    return sum;
}

enum gradcmp_status gcmp_rule_split(const struct gcmp_rule_use *use,
                                    const struct gradcmp_parameter *from,
                                    struct gradcmp_parameter **out, struct gradcmp_error *error) {
    const struct gcmp_rule *rule = use->rule;
    struct gcmp_rule_shares shares;
    GCMP_TRY(find_shares(use, &shares, error));
    GCMP_TRY(check_axis(use, &shares, from, error));
    uint64_t size = from->shape[shares.axis], sum = sum_of(&shares, rule->part_count), cut;
    if (!gcmp_mul_u64(sum, shares.groups, &cut) || size % cut != 0) {
        char shape[GCMP_DIMS_BYTES];
        GCMP_RULE_FAIL(error, GRADCMP_ERROR_CORRUPT, use->mapping, rule,
                       "%.200s %s: axis %llu cannot be cut into %llu groups of %llu shares",
                       from->name, gcmp_dims_text(shape, from->ndim, from->shape),
                       (unsigned long long)shares.axis, (unsigned long long)shares.groups,
                       (unsigned long long)sum);
    }
    struct lane lane = {shares.axis, shares.groups, 0, 0, size / shares.groups};
    for (size_t i = 0; i < rule->part_count; i++) {
        uint64_t shape[GRADCMP_MAX_NDIM];
        struct gradcmp_moves moves = {.shape = shape, .count = (size_t)shares.groups};
        lane.share = size / cut * shares.parts[i];
        memcpy(shape, from->shape, from->ndim * sizeof *shape);
        shape[shares.axis] = lane.share * shares.groups;
        if (!make_moves(&lane, from, false, use->arena, &moves.items)) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_reslab_moves(from, &moves, use->arena, &out[i], error));
        out[i]->vocab_rows = 0;
        lane.first += lane.share;
    }
    return GRADCMP_OK;
}

/* True where a part is like the first but along the axis, there divides into the groups, and has
 * the size that the rule's shares, if it has some, say. */
static bool goes_with(const struct gradcmp_parameter *part, const struct gradcmp_parameter *first,
                      const struct gcmp_rule_shares *shares, size_t index) {
    if (part->ndim != first->ndim || part->dtype != first->dtype) {
        return false;
    }
    for (unsigned d = 0; d < part->ndim; d++) {
        if (d != shares->axis && part->shape[d] != first->shape[d]) {
            return false;
        }
    }
    uint64_t size = part->shape[shares->axis], first_size = first->shape[shares->axis];
    uint64_t left, right;
    bool is_written = shares->parts[0] != 0;
    return size % shares->groups == 0 &&
           (!is_written ||
            (gcmp_mul_u64(size, shares->parts[0], &left) &&
             gcmp_mul_u64(first_size, shares->parts[index], &right) && left == right));
}

static enum gradcmp_status check_parts(const struct gcmp_rule_use *use,
                                       const struct gcmp_rule_shares *shares,
                                       const struct gradcmp_parameter *const *parts,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter *first = parts[0];
    for (size_t i = 0; i < use->rule->part_count; i++) {
        const struct gradcmp_parameter *part = parts[i];
        if (!goes_with(part, first, shares, i)) {
            char shape[GCMP_DIMS_BYTES], other[GCMP_DIMS_BYTES];
            GCMP_RULE_FAIL(error, GRADCMP_ERROR_CORRUPT, use->mapping, use->rule,
                           "%.130s, %s %s, does not go with %.130s, %s %s: axis %llu, groups %llu",
                           part->name, gradcmp_dtype_name((enum gradcmp_dtype)part->dtype),
                           gcmp_dims_text(shape, part->ndim, part->shape), first->name,
                           gradcmp_dtype_name((enum gradcmp_dtype)first->dtype),
                           gcmp_dims_text(other, first->ndim, first->shape),
                           (unsigned long long)shares->axis, (unsigned long long)shares->groups);
        }
        if (!gcmp_same_adam(part->adam, first->adam)) {
            GCMP_RULE_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, use->mapping, use->rule,
                           "%.200s was averaged over other steps, or with other betas, than %.200s",
                           part->name, first->name);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_rule_concat(const struct gcmp_rule_use *use,
                                     const struct gradcmp_parameter *const *parts,
                                     struct gradcmp_parameter **out, struct gradcmp_error *error) {
    size_t count = use->rule->part_count;
    struct gcmp_rule_shares shares;
    struct gcmp_reslab_part moved[GCMP_MAPPING_MAX_PARTS];
    uint64_t shape[GRADCMP_MAX_NDIM];
    GCMP_TRY(find_shares(use, &shares, error));
    GCMP_TRY(check_axis(use, &shares, parts[0], error));
    GCMP_TRY(check_parts(use, &shares, parts, error));
    memcpy(shape, parts[0]->shape, parts[0]->ndim * sizeof *shape);
    uint64_t *total = &shape[shares.axis];
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        if (!gcmp_add_u64(*total, parts[i]->shape[shares.axis], total)) {
            GCMP_RULE_FAIL(error, GRADCMP_ERROR_LIMIT, use->mapping, use->rule, "%.200s: too large",
                           parts[0]->name);
        }
    }
    struct lane lane = {shares.axis, shares.groups, 0, 0, *total / shares.groups};
    for (size_t i = 0; i < count; i++) {
        moved[i] = (struct gcmp_reslab_part){.from = parts[i], .count = (size_t)shares.groups};
        lane.share = parts[i]->shape[shares.axis] / shares.groups;
        if (!make_moves(&lane, parts[i], true, use->arena, &moved[i].moves)) {
            GCMP_FAIL_MEMORY(error);
        }
        lane.first += lane.share;
    }
    GCMP_TRY(gcmp_reslab_join(moved, count, shape, use->arena, out, error));
    (*out)->vocab_rows = 0;
    return GRADCMP_OK;
}
