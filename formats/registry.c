/* The formats that are read. One line each; the more specific first. */
#include "gradcmp/sys/format.h"

#include "formats/dcp.h"
#include "formats/safetensors.h"
#include "formats/torch_save.h"
#include "formats/zarr.h"

static const struct gradcmp_format *const formats[] = {
    &gcmp_format_torch_dist,
    &gcmp_format_zarr,
    &gcmp_format_torch_save,
    &gcmp_format_safetensors,
    NULL,
};

const struct gradcmp_format *const *gcmp_formats(void) {
    return formats;
}
