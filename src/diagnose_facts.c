/* What is known of parameters beside their figures: experts, replicas, how they are cut. */
#include "diagnose_facts.h"

#include <stdlib.h>
#include <string.h>

/* The number behind "experts." in a canonical name; -1: none. */
static int64_t expert_of(const char *name) {
    static const char word[] = "experts.";
    const char *at = strstr(name, word);
    while (at != NULL) {
        const char *digits = at + strlen(word);
        size_t length = strspn(digits, "0123456789");
        if (length > 0 && length < 10 && (digits[length] == '.' || digits[length] == '\0')) {
            return strtol(digits, NULL, 10);
        }
        at = strstr(digits, word);
    }
    return -1;
}

/* The weights of the side that has tensor-parallel ranks: what is in one piece there, every rank
 * holds. NULL where there are none. */
static enum gradcmp_status find_weights(const struct gcmp_comparison *comparison, size_t pair,
                                        const struct gradcmp_model **weights, bool *in_b,
                                        struct gradcmp_error *error) {
    const struct gcmp_participant *sides[] = {&comparison->candidates[pair], &comparison->baseline};
    *weights = NULL;
    *in_b = true;
    for (size_t i = 0; i < 2; i++) {
        struct gradcmp_checkpoint *checkpoint = sides[i]->checkpoint;
        if (checkpoint->catalogue.parallel.tp > 1) {
            *in_b = i == 0;
            if (!gcmp_checkpoint_has_state(checkpoint, "param")) {
                return GRADCMP_OK;
            }
            struct gradcmp_error unreadable = {0};
            enum gradcmp_status status =
                gcmp_checkpoint_model(checkpoint, "param", weights, &unreadable);
            if (status == GRADCMP_ERROR_MEMORY) {
                GCMP_FAIL_MEMORY(error);
            }
            return GRADCMP_OK; /* weights that cannot be read only tell less */
        }
    }
    return GRADCMP_OK;
}

/* True where several tensor-parallel ranks have written the parameter whole, each its own copy. */
static bool has_rank_copies(const struct gradcmp_parameter *parameter) {
    const struct gradcmp_slab *first = NULL;
    for (size_t i = 0; parameter != NULL && i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        if (slab->coords == NULL || slab->coords->tp < 0) {
            continue;
        }
        if (first != NULL && slab->copy != first->copy && slab->coords->tp != first->coords->tp) {
            return true;
        }
        first = first == NULL ? slab : first;
    }
    return false;
}

static void learn_class(struct gcmp_cause_facts *facts,
                        const struct gradcmp_parameter_report *report,
                        const struct gradcmp_parameter *state,
                        const struct gradcmp_model *weights) {
    const struct gradcmp_parameter *weight =
        weights == NULL ? NULL : gcmp_model_find(weights, report->name);
    facts->expert = expert_of(report->name);
    if (facts->expert >= 0) {
        return;
    }
    const struct gradcmp_parameter *told = weight != NULL ? weight : state;
    if (told != NULL && (told->copy_count > 1 || told->replicated)) {
        facts->replicated = true;
    } else if (weight != NULL) {
        facts->replicated = weight->slab_count == 1;
    } else {
        facts->replicated = report->ndim_a == 1;
    }
    facts->sharded = !facts->replicated;
}

uint64_t gcmp_facts_experts(const struct gradcmp_pair_report *pair,
                            const struct gcmp_cause_facts *facts, int64_t layer) {
    int64_t most = -1;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        if (pair->parameters[i].layer == layer && facts[i].expert > most) {
            most = facts[i].expert;
        }
    }
    return (uint64_t)(most + 1);
}

/* The axis of a two-axis parameter that is cut over `tp` ranks; -1: none, or both. Slabs of flat
 * ranges are smaller still: what counts is that none is larger than a rank's part. */
static int cut_axis(const struct gradcmp_parameter *parameter, uint32_t tp) {
    int found = -1;
    for (int axis = 0; parameter != NULL && parameter->ndim == 2 && tp > 1 && axis < 2; axis++) {
        bool cut = parameter->shape[axis] >= tp && parameter->slab_count > 1;
        for (size_t i = 0; i < parameter->slab_count && cut; i++) {
            cut = parameter->slabs[i].extent[axis] <= (parameter->shape[axis] + tp - 1) / tp;
        }
        if (cut) {
            found = found < 0 ? axis : -1;
        }
    }
    return found;
}

static enum gradcmp_class class_of(const struct gradcmp_parameter_report *report,
                                   const struct gcmp_cause_facts *facts, uint64_t experts,
                                   int axis) {
    if (facts->expert >= 0) {
        return GRADCMP_CLASS_EXPERT;
    }
    if (report->ndim_a == 1 || (!report->in_a && report->ndim_b == 1)) {
        return GRADCMP_CLASS_VECTOR;
    }
    if (facts->words || report->layer == 0) {
        return GRADCMP_CLASS_EMBEDDING;
    }
    if (experts >= 2 && report->in_a && report->ndim_a == 2 && report->shape_a[0] == experts) {
        return GRADCMP_CLASS_ROUTER;
    }
    return axis == 1 ? GRADCMP_CLASS_ROW : axis == 0 ? GRADCMP_CLASS_COLUMN : GRADCMP_CLASS_OTHER;
}

enum gradcmp_status gcmp_facts_learn(const struct gcmp_comparison *comparison, size_t index,
                                     struct gcmp_cause_facts *facts, struct gradcmp_error *error) {
    const struct gradcmp_pair_report *pair = &comparison->report->pairs[index];
    const struct gradcmp_model *weights;
    bool in_b;
    GCMP_TRY(find_weights(comparison, index, &weights, &in_b, error));
    const struct gradcmp_catalogue *side = in_b ? pair->catalogue : comparison->report->baseline;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gcmp_paired *sides = &comparison->pairings[index].sides[i];
        const struct gradcmp_parameter *state = in_b ? sides->b : sides->a;
        facts[i].words = (sides->a != NULL && sides->a->vocab_rows) ||
                         (sides->b != NULL && sides->b->vocab_rows);
        learn_class(&facts[i], &pair->parameters[i], state, weights);
        facts[i].has_copies = !pair->parameters[i].copies_conflict && has_rank_copies(state);
        const struct gradcmp_parameter *weight =
            weights == NULL ? NULL : gcmp_model_find(weights, pair->parameters[i].name);
        facts[i].axis = cut_axis(weight == NULL ? state : weight, side->parallel.tp);
    }
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *report = &pair->parameters[i];
        uint64_t experts = gcmp_facts_experts(pair, facts, report->layer);
        facts[i].sort = class_of(report, &facts[i], experts, facts[i].axis);
    }
    return GRADCMP_OK;
}
