/* What param_groups say of an optimizer, under Megatron's argument names where it has one. */
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

static enum gradcmp_status set_number(struct gradcmp_catalogue *catalogue, const char *name,
                                      const struct gcmp_node *value, struct gradcmp_error *error) {
    struct gradcmp_setting setting = {.name = name};
    if (value != NULL && value->kind == GCMP_NODE_INT && gcmp_node_int(value, &setting.integer)) {
        setting.kind = GRADCMP_SETTING_INT;
    } else if (gcmp_node_number(value, &setting.number)) {
        setting.kind = GRADCMP_SETTING_FLOAT;
    } else {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_set(catalogue, &setting, error);
}

static enum gradcmp_status set_beta(struct gradcmp_catalogue *catalogue, const char *name,
                                    const struct gcmp_node *value, struct gradcmp_error *error) {
    struct gradcmp_setting setting = {.name = name, .kind = GRADCMP_SETTING_FLOAT};
    return gcmp_node_number(value, &setting.number) ? gcmp_catalogue_set(catalogue, &setting, error)
                                                    : GRADCMP_OK;
}

static bool same_betas(const struct gcmp_node *a, const struct gcmp_node *b) {
    for (size_t i = 0; i < 2; i++) {
        double x, y;
        if (!gcmp_node_number(gcmp_node_item(a, i), &x) ||
            !gcmp_node_number(gcmp_node_item(b, i), &y) || x < y || x > y) {
            return false;
        }
    }
    return true;
}

enum gradcmp_status gcmp_pt_read_groups(struct gradcmp_catalogue *catalogue,
                                        const struct gcmp_node *groups,
                                        struct gradcmp_error *error) {
    const struct gcmp_node *first = gcmp_node_item(groups, 0);
    const struct gcmp_node *betas = gcmp_node_get(first, "betas");
    bool is_new = gcmp_catalogue_setting(catalogue, "adam_beta1") == NULL;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        GCMP_TRY(set_number(catalogue, options[i].setting, gcmp_node_get(first, options[i].option),
                            error));
    }
    if (gcmp_node_count(betas) != 2) {
        return GRADCMP_OK;
    }
    GCMP_TRY(set_beta(catalogue, "adam_beta1", gcmp_node_item(betas, 0), error));
    GCMP_TRY(set_beta(catalogue, "adam_beta2", gcmp_node_item(betas, 1), error));
    for (size_t i = 1; is_new && i < gcmp_node_count(groups) && i < MAX_GROUPS; i++) {
        const struct gcmp_node *other = gcmp_node_get(gcmp_node_item(groups, i), "betas");
        if (other != NULL && !same_betas(betas, other)) {
            return gcmp_set_mixed_betas(catalogue, error);
        }
    }
    return GRADCMP_OK;
}
