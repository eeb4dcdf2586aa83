/* The list of a checkpoint as JSON. */
#include "report/json_parts.h"
#include "report/ls.h"

static void write_tensor(struct gcmp_json *json, const struct gcmp_ls_tensor *tensor) {
    gcmp_json_open_object(json, NULL, false);
    gcmp_json_text(json, "name", tensor->name);
    gcmp_json_integer(json, "layer", tensor->layer);
    gcmp_json_text(json, "state", tensor->state);
    gcmp_json_sizes(json, "shape", tensor->shape, tensor->ndim);
    gcmp_json_text(json, "dtype", gradcmp_dtype_name((enum gradcmp_dtype)tensor->dtype));
    gcmp_json_count(json, "pieces", tensor->pieces);
    if (tensor->has_stats) {
        gcmp_json_real(json, "norm", tensor->norm);
        gcmp_json_figure(json, "max_abs", tensor->max_abs);
        gcmp_json_text(json, "sha256", tensor->sha256[0] == '\0' ? NULL : tensor->sha256);
    } else {
        gcmp_json_null(json, "norm");
        gcmp_json_null(json, "max_abs");
        gcmp_json_null(json, "sha256");
    }
    gcmp_json_close(json);
}

enum gradcmp_status gcmp_ls_write_json(const struct gcmp_ls *ls, gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_json json = {.out = &out};
    gcmp_json_open_object(&json, NULL, true);
    gcmp_json_integer(&json, "schema", 1);
    gcmp_json_text(&json, "path", ls->path);
    gcmp_json_format(&json, "format", ls->catalogue);
    gcmp_json_parallel(&json, "parallel", &ls->catalogue->parallel);
    gcmp_json_known(&json, "layers", ls->layers);
    gcmp_json_settings(&json, "settings", ls->catalogue);
    gcmp_json_open_array(&json, "states", false);
    for (size_t i = 0; i < ls->state_count; i++) {
        gcmp_json_text(&json, NULL, ls->states[i]);
    }
    gcmp_json_close(&json);
    gcmp_json_open_array(&json, "tensors", true);
    for (size_t i = 0; i < ls->tensor_count; i++) {
        write_tensor(&json, &ls->tensors[i]);
    }
    gcmp_json_close(&json);
    gcmp_json_close(&json);
    return gcmp_out_end(&out, error);
}
