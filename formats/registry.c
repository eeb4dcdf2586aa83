/* The formats that are read. One line each; the more specific first. */
#include "gradcmp/sys/format.h"

#include "formats/dcp.h"
#include "formats/deepspeed.h"
#include "formats/hdf5.h"
#include "formats/megatron_legacy.h"
#include "formats/megatron_wgrads.h"
#include "formats/safetensors.h"
#include "formats/torch_save.h"
#include "formats/zarr.h"

static const struct gradcmp_format *const formats[] = {
    &gcmp_format_torch_dist,      &gcmp_format_deepspeed, &gcmp_format_megatron_legacy,
    &gcmp_format_megatron_wgrads, &gcmp_format_zarr,      &gcmp_format_torch_save,
    &gcmp_format_safetensors,     &gcmp_format_hdf5,      NULL,
};

const struct gradcmp_format *const *gcmp_formats(void) {
    return formats;
}
