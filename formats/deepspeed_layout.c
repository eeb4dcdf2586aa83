/* The rules of partition. Sources: deepspeed/utils/zero_to_fp32.py, runtime/zero/stage_1_and_2.py,
 * stage3.py, runtime/bf16_optimizer.py, utils/groups.py.
 *
 * Stages 1 and 2: the parameters of a group stand one behind another (since 0.19 each perhaps with
 * a padding), the end is padded to a multiple of twice the ranks, and each rank has one of as many
 * equal parts; masters are saved without the padding. Experts' groups are shared by the ranks of
 * one expert-parallel rank only, under names that count experts from 0.
 *
 * Stage 3: each parameter of n elements is cut into parts of ceil(n / ranks), the last ones padded,
 * and a rank's parts stand one behind another through all sub-groups. */
#include "formats/deepspeed_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "formats/deepspeed_experts.h"

/* The end of a group is padded to this many elements a rank. */
enum { ALIGNMENT_PER_RANK = 2 };

/* Ranks that share a group, in the order of their parts. */
struct team {
    const struct gcmp_ds_rank **ranks;
    size_t count;
};

struct layout {
    struct gcmp_ds_wholes *wholes;
    const struct gcmp_ds_model *model;
    const struct gcmp_ds_ranks *ranks;
    const struct gcmp_ds_rank **members; /* room for a team */
    const struct gcmp_ds_flat **parts;   /* room for one flat of each member */
    struct gradcmp_error *error;
};

#define RANK_FAIL(layout, rank, code, ...)                                                         \
    GCMP_FAIL_AT((layout)->error, (code),                                                          \
                 gcmp_dir_file_path((layout)->wholes->catalogue->dir, (rank)->file),               \
                 GRADCMP_NO_OFFSET, "deepspeed: " __VA_ARGS__)

static const struct gcmp_ds_flat *find_flat(const struct gcmp_ds_rank *rank, const char *word,
                                            uint32_t group) {
    size_t first, count = gcmp_ds_find_word(rank, word, &first);
    for (size_t i = first; i < first + count; i++) {
        if (rank->flats[i].group == group) {
            return &rank->flats[i];
        }
    }
    return NULL;
}

/* --- stages 1 and 2 --- */

/* A group of the model, with the names that one team has for it. */
struct group {
    const struct gcmp_ds_param *params;
    const uint64_t *paddings; /* behind each, or NULL */
    size_t count;
    uint32_t number;
    uint64_t elem_count; /* up to the end of the last parameter */
};

static enum gradcmp_status measure_group(const struct layout *layout, struct group *group) {
    group->elem_count = 0;
    for (size_t i = 0; i < group->count; i++) {
        uint64_t padding =
            group->paddings == NULL || i + 1 == group->count ? 0 : group->paddings[i];
        if (!gcmp_add_u64(group->elem_count, group->params[i].elem_count, &group->elem_count) ||
            !gcmp_add_u64(group->elem_count, padding, &group->elem_count)) {
            RANK_FAIL(layout, layout->ranks->items, GRADCMP_ERROR_CORRUPT,
                      "group %u has 2^64 elements or more", group->number);
        }
    }
    return GRADCMP_OK;
}

/* Collect the team's parts of one state; *found is false where no rank has it. */
static enum gradcmp_status collect_parts(const struct layout *layout, const struct team *team,
                                         const struct group *group, const char *word, bool *found) {
    uint64_t total = 0, slack = ALIGNMENT_PER_RANK * (uint64_t)team->count;
    size_t there = 0;
    for (size_t k = 0; k < team->count; k++) {
        layout->parts[k] = find_flat(team->ranks[k], word, group->number);
        there += layout->parts[k] != NULL;
        total += layout->parts[k] == NULL ? 0 : layout->parts[k]->elem_count; /* below 2^60 each */
    }
    *found = there > 0;
    for (size_t k = 0; k < team->count && *found; k++) {
        if (layout->parts[k] == NULL) {
            RANK_FAIL(layout, team->ranks[k], GRADCMP_ERROR_CORRUPT,
                      "no %s of group %u, which other ranks have", word, group->number);
        }
    }
    if (*found && (total < group->elem_count || total - group->elem_count >= slack)) {
        RANK_FAIL(
            layout, team->ranks[0], GRADCMP_ERROR_CORRUPT,
            "%s of group %u: the %zu ranks' parts have %llu elements, the parameters %llu and "
            "a padding of less than %llu",
            word, group->number, team->count, (unsigned long long)total,
            (unsigned long long)group->elem_count, (unsigned long long)slack);
    }
    return GRADCMP_OK;
}

/* Add the ranges of one parameter, which begins at `at` in the group, from the parts that it
 * touches; *part and *part_at go on with it. */
static enum gradcmp_status add_ranges(const struct layout *layout, const struct team *team,
                                      const struct gcmp_ds_param *param, uint64_t at, size_t *part,
                                      uint64_t *part_at) {
    uint64_t end = at + param->elem_count, from = at;
    while (from < end) {
        const struct gcmp_ds_flat *flat = layout->parts[*part];
        uint64_t part_end = *part_at + flat->elem_count;
        if (from >= part_end) { /* the parts reach beyond the last parameter */
            *part_at = part_end;
            ++*part;
            continue;
        }
        uint64_t to = end < part_end ? end : part_end;
        struct gcmp_ds_range range = {.from = from - at,
                                      .elem_count = to - from,
                                      .flat = flat,
                                      .flat_from = from - *part_at,
                                      .dp = (int32_t)team->ranks[*part]->dp,
                                      .pp = layout->model->stage};
        GCMP_TRY(gcmp_ds_add_range(layout->wholes, param, flat->word, &range, layout->error));
        from = to;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status add_state(const struct layout *layout, const struct team *team,
                                     const struct group *group, const char *word) {
    size_t part = 0;
    uint64_t at = 0, part_at = 0;
    bool found;
    GCMP_TRY(collect_parts(layout, team, group, word, &found));
    for (size_t i = 0; i < group->count && found; i++) {
        GCMP_TRY(add_ranges(layout, team, &group->params[i], at, &part, &part_at));
        at += group->params[i].elem_count + (group->paddings == NULL ? 0 : group->paddings[i]);
    }
    return GRADCMP_OK;
}

static bool slice_agrees(const struct gcmp_ds_slice *slice, uint32_t group, const char *name,
                         uint64_t start, uint64_t elem_count) {
    return slice->group == group && strcmp(slice->name, name) == 0 && slice->start == start &&
           slice->elem_count == elem_count;
}

/* What a rank should say of the parameters, if its part is [from, to) of the group. */
static bool slices_agree(const struct gcmp_ds_rank *rank, const struct group *group, uint64_t from,
                         uint64_t to) {
    size_t next = 0;
    uint64_t at = 0;
    while (next < rank->slice_count && rank->slices[next].group != group->number) {
        next++;
    }
    for (size_t i = 0; i < group->count; i++) {
        const struct gcmp_ds_param *param = &group->params[i];
        uint64_t low = at > from ? at : from, high = at + param->elem_count;
        high = high < to ? high : to;
        at += param->elem_count + (group->paddings == NULL ? 0 : group->paddings[i]);
        if (low >= high) {
            continue;
        }
        if (next == rank->slice_count || !slice_agrees(&rank->slices[next], group->number,
                                                       param->name, low - from, high - low)) {
            return false;
        }
        next++;
    }
    return next == rank->slice_count || rank->slices[next].group != group->number;
}

/* Compare the cut with the maps that the ranks stored, where they did. `group` has the names as the
 * ranks know them. */
static bool team_agrees(const struct layout *layout, const struct team *team,
                        const struct group *group) {
    uint64_t at = 0;
    for (size_t k = 0; k < team->count; k++) {
        const struct gcmp_ds_rank *rank = team->ranks[k];
        uint64_t length = layout->parts[k] == NULL ? 0 : layout->parts[k]->elem_count;
        if (rank->has_slices && !slices_agree(rank, group, at, at + length)) {
            return false;
        }
        at += length;
    }
    return true;
}

/* Compare the maps for one state that a stepped group has. With round_robin_gradients DeepSpeed
 * makes the maps of the order before the shuffle (seen in 0.19.8: masters cut by param_shapes are
 * the weights, those cut by the maps are not), so they prove nothing. */
static enum gradcmp_status check_slices(const struct layout *layout, const struct team *team,
                                        const struct group *group, bool *agrees) {
    static const char *const words[] = {"exp_avg", "momentum_buffer", "exp_avg_sq"};
    bool found = false;
    *agrees = true;
    for (size_t i = 0; i < sizeof words / sizeof *words && !found; i++) {
        GCMP_TRY(collect_parts(layout, team, group, words[i], &found));
    }
    *agrees = !found || layout->model->is_round_robin || team_agrees(layout, team, group);
    return GRADCMP_OK;
}

/* The states of a team's first rank are those that are laid out: fail where another has one that
 * it lacks. */
static enum gradcmp_status check_first(const struct layout *layout, const struct team *team,
                                       uint32_t group) {
    for (size_t k = 1; k < team->count; k++) {
        for (size_t i = 0; i < team->ranks[k]->flat_count; i++) {
            const struct gcmp_ds_flat *flat = &team->ranks[k]->flats[i];
            if (flat->group == group && find_flat(team->ranks[0], flat->word, group) == NULL) {
                RANK_FAIL(layout, team->ranks[0], GRADCMP_ERROR_CORRUPT,
                          "no %s of group %u, which other ranks have", flat->word, group);
            }
        }
    }
    return GRADCMP_OK;
}

/* Add all states of a group; `named` is the group under its final names. */
static enum gradcmp_status add_states(const struct layout *layout, const struct team *team,
                                      const struct group *named) {
    const struct gcmp_ds_rank *rank = team->ranks[0];
    GCMP_TRY(check_first(layout, team, named->number));
    for (size_t i = 0; i < rank->flat_count; i++) {
        if (i == 0 || strcmp(rank->flats[i].word, rank->flats[i - 1].word) != 0) {
            GCMP_TRY(add_state(layout, team, named, rank->flats[i].word));
        }
    }
    return GRADCMP_OK;
}

/* A group that all ranks share. */
static enum gradcmp_status lay_out_dense(const struct layout *layout, const struct group *group) {
    bool agrees;
    struct team team = {layout->members, layout->ranks->count};
    for (size_t k = 0; k < team.count; k++) {
        layout->members[k] = &layout->ranks->items[k];
    }
    GCMP_TRY(check_slices(layout, &team, group, &agrees));
    if (!agrees) {
        RANK_FAIL(layout, team.ranks[0], GRADCMP_ERROR_CORRUPT,
                  "group %u: param_slice_mappings do not agree with param_shapes and the ranks' "
                  "parts",
                  group->number);
    }
    return add_states(layout, &team, group);
}

/* Pick the ranks of one expert-parallel rank: every teams-th one (DeepSpeed's default), or side by
 * side (use_data_before_expert_parallelism). */
static struct team pick_team(const struct layout *layout, size_t teams, size_t expert_rank,
                             bool side_by_side) {
    struct team team = {layout->members, layout->ranks->count / teams};
    for (size_t k = 0; k < team.count; k++) {
        size_t rank = side_by_side ? expert_rank * team.count + k : k * teams + expert_rank;
        layout->members[k] = &layout->ranks->items[rank];
    }
    return team;
}

/* Decide which ranks are a team: what their maps say of their parts must be so. */
static enum gradcmp_status choose_order(const struct layout *layout, const struct group *group,
                                        size_t teams, bool *side_by_side) {
    for (int order = 0; order < 2; order++) {
        bool all_agree = true;
        for (size_t e = 0; e < teams && all_agree; e++) {
            struct team team = pick_team(layout, teams, e, order == 1);
            GCMP_TRY(check_slices(layout, &team, group, &all_agree));
        }
        if (all_agree) {
            *side_by_side = order == 1;
            return GRADCMP_OK;
        }
    }
    RANK_FAIL(layout, layout->ranks->items, GRADCMP_ERROR_UNSUPPORTED,
              "group %u of experts: which of the %zu ranks share it is not clear", group->number,
              layout->ranks->count);
}

/* A group of experts, shared by teams of ranks. */
static enum gradcmp_status lay_out_experts(const struct layout *layout, const struct group *group,
                                           size_t teams) {
    bool side_by_side = false;
    GCMP_TRY(choose_order(layout, group, teams, &side_by_side));
    struct gcmp_ds_param *named = calloc(group->count + 1, sizeof *named);
    if (named == NULL) {
        GCMP_FAIL_MEMORY(layout->error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t e = 0; e < teams && status == GRADCMP_OK; e++) {
        struct team team = pick_team(layout, teams, e, side_by_side);
        struct group global = *group;
        global.params = named;
        status = gcmp_ds_name_experts(layout->wholes->catalogue->arena, group->params, group->count,
                                      e, named, layout->error);
        if (status == GRADCMP_OK) {
            status = add_states(layout, &team, &global);
        }
    }
    free(named);
    return status;
}

/* Ranks that share a group, from the first rank's list; all where none is stated. */
static uint64_t ranks_of_group(const struct layout *layout, size_t group) {
    const struct gcmp_ds_rank *rank = layout->ranks->items;
    return rank->partition_count > 1 ||
                   (rank->partition_count == 1 && layout->model->group_count == 1)
               ? (group < rank->partition_count ? rank->partition_counts[group] : 0)
               : layout->ranks->count;
}

static enum gradcmp_status lay_out_groups(const struct layout *layout) {
    const struct gcmp_ds_model *model = layout->model;
    const struct gcmp_ds_rank *rank = layout->ranks->items;
    size_t first = 0;
    if (rank->padding_count != 0 && rank->padding_count != model->param_count) {
        RANK_FAIL(layout, rank, GRADCMP_ERROR_CORRUPT,
                  "%zu param_alignment_paddings of %zu parameters", rank->padding_count,
                  model->param_count);
    }
    for (size_t g = 0; g < model->group_count; first = model->group_ends[g], g++) {
        struct group group = {.params = model->params + first,
                              .paddings = rank->padding_count == 0 ? NULL : rank->paddings + first,
                              .count = model->group_ends[g] - first,
                              .number = (uint32_t)g};
        uint64_t shared = ranks_of_group(layout, g);
        if (shared == 0 || layout->ranks->count % shared != 0) {
            RANK_FAIL(layout, rank, GRADCMP_ERROR_CORRUPT,
                      "group %zu is shared by %llu of %zu ranks", g, (unsigned long long)shared,
                      layout->ranks->count);
        }
        size_t teams = layout->ranks->count / (size_t)shared;
        GCMP_TRY(measure_group(layout, &group));
        GCMP_TRY(teams == 1 && !gcmp_ds_has_experts(group.params, group.count)
                     ? lay_out_dense(layout, &group)
                     : lay_out_experts(layout, &group, teams));
    }
    return GRADCMP_OK;
}

/* --- stage 3 --- */

/* The sub-groups' flats of one state of one rank, one behind another. */
struct run {
    const struct gcmp_ds_rank *rank;
    size_t first, count; /* flats */
    size_t now;          /* flat under way */
    uint64_t now_at;     /* where it begins */
};

static enum gradcmp_status start_run(const struct layout *layout, const struct gcmp_ds_rank *rank,
                                     const char *word, uint64_t expected, struct run *run) {
    uint64_t total = 0;
    *run = (struct run){.rank = rank};
    run->count = gcmp_ds_find_word(rank, word, &run->first);
    for (size_t i = 0; i < run->count; i++) {
        const struct gcmp_ds_flat *flat = &rank->flats[run->first + i];
        total += flat->elem_count;
        if (flat->group != i) {
            RANK_FAIL(layout, rank, GRADCMP_ERROR_CORRUPT, "no %s of sub-group %zu", word, i);
        }
    }
    run->now = run->first;
    if (total != expected) {
        RANK_FAIL(layout, rank, GRADCMP_ERROR_CORRUPT,
                  "%s: expected %llu elements, the rank's parts of all parameters, found %llu",
                  word, (unsigned long long)expected, (unsigned long long)total);
    }
    return GRADCMP_OK;
}

/* Add [at, at + count) of a rank's run, which is the part of the parameter that begins at `from`.
 */
static enum gradcmp_status add_part(const struct layout *layout, const struct gcmp_ds_param *param,
                                    struct run *run, uint64_t at, uint64_t from, uint64_t count) {
    while (count > 0) {
        const struct gcmp_ds_flat *flat = &run->rank->flats[run->now];
        uint64_t end = run->now_at + flat->elem_count;
        if (at >= end) {
            run->now_at = end;
            run->now++;
            continue;
        }
        uint64_t here = end - at < count ? end - at : count;
        struct gcmp_ds_range range = {.from = from,
                                      .elem_count = here,
                                      .flat = flat,
                                      .flat_from = at - run->now_at,
                                      .dp = (int32_t)run->rank->dp,
                                      .pp = layout->model->stage};
        GCMP_TRY(gcmp_ds_add_range(layout->wholes, param, flat->word, &range, layout->error));
        at += here;
        from += here;
        count -= here;
    }
    return GRADCMP_OK;
}

static uint64_t part_of(uint64_t elem_count, uint64_t ranks) {
    return elem_count / ranks + (elem_count % ranks != 0);
}

static enum gradcmp_status add_stage3_state(const struct layout *layout, const char *word,
                                            struct run *runs) {
    const struct gcmp_ds_model *model = layout->model;
    uint64_t ranks = layout->ranks->count, total = 0, at = 0;
    for (size_t i = 0; i < model->param_count; i++) {
        if (!gcmp_add_u64(total, part_of(model->params[i].elem_count, ranks), &total)) {
            RANK_FAIL(layout, layout->ranks->items, GRADCMP_ERROR_CORRUPT,
                      "param_shapes of 2^64 elements or more");
        }
    }
    for (size_t k = 0; k < ranks; k++) {
        GCMP_TRY(start_run(layout, &layout->ranks->items[k], word, total, &runs[k]));
    }
    for (size_t i = 0; i < model->param_count; i++) {
        const struct gcmp_ds_param *param = &model->params[i];
        uint64_t part = part_of(param->elem_count, ranks);
        for (size_t k = 0; k < ranks; k++) {
            uint64_t from = part * k < param->elem_count ? part * k : param->elem_count;
            uint64_t left = param->elem_count - from, count = left < part ? left : part;
            GCMP_TRY(add_part(layout, param, &runs[k], at, from, count));
        }
        at += part;
    }
    return GRADCMP_OK;
}

/* The same for stage 3, whose states are whole or not there. */
static enum gradcmp_status check_first_of_stage3(const struct layout *layout) {
    const struct gcmp_ds_rank *ranks = layout->ranks->items;
    size_t at;
    for (size_t k = 1; k < layout->ranks->count; k++) {
        for (size_t i = 0; i < ranks[k].flat_count; i++) {
            const char *word = ranks[k].flats[i].word;
            if ((i == 0 || strcmp(word, ranks[k].flats[i - 1].word) != 0) &&
                gcmp_ds_find_word(&ranks[0], word, &at) == 0) {
                RANK_FAIL(layout, &ranks[0], GRADCMP_ERROR_CORRUPT, "no %s, which other ranks have",
                          word);
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status lay_out_stage3(const struct layout *layout) {
    const struct gcmp_ds_rank *rank = layout->ranks->items;
    GCMP_TRY(check_first_of_stage3(layout));
    struct run *runs = calloc(layout->ranks->count, sizeof *runs);
    enum gradcmp_status status = GRADCMP_OK;
    if (runs == NULL) {
        GCMP_FAIL_MEMORY(layout->error);
    }
    for (size_t i = 0; i < rank->flat_count && status == GRADCMP_OK; i++) {
        if (i == 0 || strcmp(rank->flats[i].word, rank->flats[i - 1].word) != 0) {
            status = add_stage3_state(layout, rank->flats[i].word, runs);
        }
    }
    free(runs);
    return status;
}

enum gradcmp_status gcmp_ds_lay_out(struct gcmp_ds_wholes *wholes,
                                    const struct gcmp_ds_model *model,
                                    const struct gcmp_ds_ranks *ranks,
                                    struct gradcmp_error *error) {
    struct layout layout = {.wholes = wholes, .model = model, .ranks = ranks, .error = error};
    layout.members = calloc(ranks->count, sizeof *layout.members);
    layout.parts = calloc(ranks->count, sizeof *layout.parts);
    enum gradcmp_status status;
    if (layout.members == NULL || layout.parts == NULL) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else {
        status = ranks->items[0].is_stage3 ? lay_out_stage3(&layout) : lay_out_groups(&layout);
    }
    free(layout.members);
    free(layout.parts);
    return status;
}
