/* What param_groups say of an optimizer, under Megatron's argument names where it has one. */
#include <math.h>
#include <string.h>

#include "base/catalogue.h"
#include "formats/mixed_betas.h"
#include "formats/torch_save_set.h"

enum { MAX_GROUPS = 256 };

/* Options of groups, and what they are called among the settings. */
static const struct {
    const char *option, *setting;
} options[] = {
    {"lr", "lr"},
    {"weight_decay", "weight_decay"},
    {"eps", "adam_eps"},
    {"step", "optimizer.step"},
    {"momentum", "sgd_momentum"},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

static enum gradcmp_status set_float(struct gradcmp_catalogue *catalogue, const char *name,
                                     double value, struct gradcmp_error *error) {
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_FLOAT, .number = value};
    return gcmp_catalogue_set(catalogue, &setting, error);
}

/* The betas that a group states: true for a pair of numbers. What is none is NaN. */
static bool read_betas(const struct gcmp_node *group, double *first, double *second) {
    const struct gcmp_node *betas = gcmp_node_get(group, "betas");
    *first = *second = (double)NAN;
    return gcmp_node_count(betas) == 2 && gcmp_node_number(gcmp_node_item(betas, 0), first) &&
           gcmp_node_number(gcmp_node_item(betas, 1), second);
}

struct gradcmp_adam gcmp_pt_group_adam(const struct gcmp_node *group) {
    struct gradcmp_adam adam = {(double)NAN, (double)NAN, (double)NAN};
    double number;
    (void)read_betas(group, &adam.beta1, &adam.beta2);
    adam.step = gcmp_node_number(gcmp_node_get(group, "step"), &number) ? number : adam.step;
    return adam;
}

/* The decay that a group's optimizer adds to the gradient before anything else; 0: none, as of
 * AdamW, and of groups that do not say it. Adam says it since torch 2.7, SGD has never another. */
static double added_decay(const struct gcmp_node *group) {
    const struct gcmp_node *decoupled = gcmp_node_get(group, "decoupled_weight_decay");
    double decay = 0.0, ignored;
    int64_t says;
    bool is_sgd = gcmp_node_number(gcmp_node_get(group, "dampening"), &ignored);
    bool is_added = gcmp_node_int(decoupled, &says) ? says == 0 : is_sgd;
    return is_added && gcmp_node_number(gcmp_node_get(group, "weight_decay"), &decay) ? fabs(decay)
                                                                                      : 0.0;
}

static bool is_empty(const struct gcmp_node *group) {
    const struct gcmp_node *params = gcmp_node_get(group, "params");
    return params != NULL && gcmp_node_count(params) == 0;
}

enum gradcmp_status gcmp_pt_read_groups(struct gradcmp_catalogue *catalogue,
                                        const struct gcmp_node *groups,
                                        struct gradcmp_error *error) {
    const struct gcmp_node *first = gcmp_node_item(groups, 0);
    struct gcmp_seen betas = {.count = 0}, steps = {.count = 0};
    double decay = 0.0;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        GCMP_TRY(gcmp_pt_set_number(catalogue, options[i].setting,
                                    gcmp_node_get(first, options[i].option), error));
    }
    for (size_t i = 0; i < gcmp_node_count(groups) && i < MAX_GROUPS; i++) {
        const struct gcmp_node *group = gcmp_node_item(groups, i);
        struct gradcmp_adam adam = gcmp_pt_group_adam(group);
        double first, second;
        if (!is_empty(group)) {
            if (read_betas(group, &first, &second)) {
                gcmp_see_stated(&betas, first, second);
            }
            gcmp_see(&steps, adam.step, 0.0);
            decay = fmax(decay, added_decay(group));
        }
    }
    if (decay > 0.0) {
        GCMP_TRY(set_float(catalogue, "optimizer.added_decay", decay, error));
    }
    const double *stated = gcmp_seen_first(&betas);
    if (stated != NULL) {
        GCMP_TRY(set_float(catalogue, "adam_beta1", stated[0], error));
        GCMP_TRY(set_float(catalogue, "adam_beta2", stated[1], error));
    }
    GCMP_TRY(gcmp_set_mixed_betas(catalogue, &betas, error));
    return gcmp_set_mixed_steps(catalogue, &steps, error);
}
