/* The list of a checkpoint as JSON. */
#include "base/dtype.h"
#include "report/json_parts.h"
#include "report/ls.h"

/* Only floating types have one; where NaN is among the elements, the norm is NaN too. */
static void write_norm(struct gcmp_emitter *json, const struct gcmp_ls_tensor *tensor) {
    if (gcmp_dtype_is_float((enum gradcmp_dtype)tensor->dtype)) {
        gcmp_emit_real(json, "norm", tensor->norm);
    } else {
        gcmp_emit_null(json, "norm");
    }
}

static void write_tensor(struct gcmp_emitter *json, const struct gcmp_ls_tensor *tensor) {
    gcmp_emit_open_object(json, NULL, false);
    gcmp_emit_text(json, "name", tensor->name);
    gcmp_emit_integer(json, "layer", tensor->layer);
    gcmp_emit_text(json, "state", tensor->state);
    gcmp_emit_sizes(json, "shape", tensor->shape, tensor->ndim);
    gcmp_emit_text(json, "dtype", gradcmp_dtype_name((enum gradcmp_dtype)tensor->dtype));
    gcmp_emit_count(json, "pieces", tensor->pieces);
    if (tensor->has_stats) {
        write_norm(json, tensor);
        gcmp_emit_figure(json, "max_abs", tensor->max_abs);
        gcmp_emit_text(json, "sha256", tensor->sha256[0] == '\0' ? NULL : tensor->sha256);
    } else {
        gcmp_emit_null(json, "norm");
        gcmp_emit_null(json, "max_abs");
        gcmp_emit_null(json, "sha256");
    }
    gcmp_emit_close(json);
}

enum gradcmp_status gcmp_ls_write_json(const struct gcmp_ls *ls, gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    struct gcmp_out out;
    gcmp_out_begin(&out, write, user);
    struct gcmp_emitter json = {.out = &out};
    gcmp_emit_open_object(&json, NULL, true);
    gcmp_emit_integer(&json, "schema", 1);
    gcmp_emit_text(&json, "path", ls->path);
    gcmp_emit_format(&json, "format", ls->catalogue);
    gcmp_emit_parallel(&json, "parallel", &ls->catalogue->parallel);
    gcmp_emit_known(&json, "layers", ls->layers);
    gcmp_emit_settings(&json, "settings", ls->catalogue);
    gcmp_emit_open_array(&json, "states", false);
    for (size_t i = 0; i < ls->state_count; i++) {
        gcmp_emit_text(&json, NULL, ls->states[i]);
    }
    gcmp_emit_close(&json);
    gcmp_emit_open_array(&json, "tensors", true);
    for (size_t i = 0; i < ls->tensor_count; i++) {
        write_tensor(&json, &ls->tensors[i]);
    }
    gcmp_emit_close(&json);
    gcmp_emit_close(&json);
    return gcmp_out_end(&out, error);
}
