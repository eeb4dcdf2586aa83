/* Layers in groups. */
#include "report/groups.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/layer_word.h"
#include "report/facts.h"

enum { INNER_GROUPS = GCMP_MAX_LAYER_GROUPS - 2 };

struct gcmp_group_cell gcmp_group_cell(const struct gradcmp_pair_report *pair,
                                       const struct gcmp_layer_group *group) {
    struct gcmp_group_cell cell = {0, 0, 0, NULL};
    size_t count = pair->outcome == GRADCMP_OUTCOME_ERROR ? 0 : pair->parameter_count;
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        if (parameter->layer < group->low || parameter->layer > group->high) {
            continue;
        }
        cell.count++;
        cell.bad += gcmp_verdict_is_bad(parameter->verdict);
        cell.unjudged += parameter->verdict == GRADCMP_VERDICT_UNJUDGED;
        if (cell.worst == NULL || gcmp_compare_badness(parameter, cell.worst) < 0) {
            cell.worst = parameter;
        }
    }
    return cell;
}

static int64_t highest_layer(const struct gradcmp_report *report) {
    uint64_t layers = 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        uint64_t own = report->pairs[i].bound.layers;
        layers = own > layers ? own : layers;
    }
    return layers < INT32_MAX ? (int64_t)layers : INT32_MAX;
}

static bool is_empty(const struct gradcmp_report *report, const struct gcmp_layer_group *group) {
    for (size_t i = 0; i < report->pair_count; i++) {
        if (gcmp_group_cell(&report->pairs[i], group).count > 0) {
            return false;
        }
    }
    return true;
}

static bool names_count_layers(const struct gradcmp_report *report) {
    for (size_t i = 0; i < report->pair_count; i++) {
        if (report->pairs[i].outcome != GRADCMP_OUTCOME_ERROR &&
            !gcmp_names_count_layers(&report->pairs[i])) {
            return false;
        }
    }
    return true;
}

/* Call a layer as a name tells it; false where none does. */
static bool name_by(const struct gradcmp_parameter_report *parameter,
                    struct gcmp_layer_group *group) {
    struct gcmp_layer_index found;
    bool is_told = parameter != NULL && gcmp_find_layer_index(parameter->name, &found) &&
                   found.bytes < sizeof group->label;
    if (is_told) {
        snprintf(group->label, sizeof group->label, "%.*s", (int)found.bytes, parameter->name);
    }
    return is_told;
}

/* Call a layer by the worst in it, else by anything in it; l where no name tells. */
static void name_layer(const struct gradcmp_report *report, struct gcmp_layer_group *group) {
    bool is_named = false;
    for (size_t i = 0; i < report->pair_count && !is_named; i++) {
        is_named = name_by(gcmp_group_cell(&report->pairs[i], group).worst, group);
    }
    for (size_t i = 0; i < report->pair_count && !is_named; i++) {
        const struct gradcmp_pair_report *pair = &report->pairs[i];
        for (size_t j = 0; j < pair->parameter_count && !is_named; j++) {
            is_named =
                pair->parameters[j].layer == group->low && name_by(&pair->parameters[j], group);
        }
    }
    if (!is_named) {
        snprintf(group->label, sizeof group->label, "l %" PRId64, group->high);
    }
}

static void name_group(const struct gradcmp_report *report, bool by_number,
                       struct gcmp_layer_group *group) {
    char *label = group->label;
    size_t room = sizeof group->label;
    int64_t high = group->high, low = group->low;
    if (!by_number && low == high) {
        name_layer(report, group);
    } else if (!by_number) {
        snprintf(label, room, "l %" PRId64 "..%" PRId64, high, low);
    } else if (low == high) {
        snprintf(label, room, "layers.%" PRId64, high - 1);
    } else {
        snprintf(label, room, "layers.%" PRId64 "..%" PRId64, high - 1, low - 1);
    }
}

size_t gcmp_layer_groups(const struct gradcmp_report *report,
                         struct gcmp_layer_group out[GCMP_MAX_LAYER_GROUPS]) {
    int64_t layers = highest_layer(report);
    int64_t size = (layers + INNER_GROUPS - 1) / INNER_GROUPS;
    bool by_number = names_count_layers(report);
    size_t count = 0;
    out[count] = (struct gcmp_layer_group){INT64_MAX, layers + 1, "head"};
    count += !is_empty(report, &out[count]);
    for (int64_t high = layers; high >= 1; high -= size) {
        struct gcmp_layer_group *group = &out[count];
        *group = (struct gcmp_layer_group){high, high - size + 1 < 1 ? 1 : high - size + 1, ""};
        name_group(report, by_number, group);
        count += !is_empty(report, group);
    }
    out[count] = (struct gcmp_layer_group){0, INT64_MIN, "embedding"};
    count += !is_empty(report, &out[count]);
    return count;
}
