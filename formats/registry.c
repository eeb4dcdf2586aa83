/* The formats that are read. One line each; the more specific first. */
#include "gradcmp/sys/format.h"

#include "formats/dcp.h"

static const struct gradcmp_format *const formats[] = {
    &gcmp_format_torch_dist,
    NULL,
};

const struct gradcmp_format *const *gcmp_formats(void) {
    return formats;
}
