/* Records that no one pair of betas holds for all parameters. */
#include "formats/mixed_betas.h"

#include "base/catalogue.h"

enum gradcmp_status gcmp_set_mixed_betas(struct gradcmp_catalogue *catalogue,
                                         struct gradcmp_error *error) {
    struct gradcmp_setting setting = {
        .name = "optimizer.mixed_betas", .kind = GRADCMP_SETTING_BOOL, .integer = 1};
    GCMP_TRY(gcmp_catalogue_set(catalogue, &setting, error));
    return gcmp_catalogue_note(catalogue, error,
                               "the optimizer's groups of parameters differ in their betas");
}
