/* The format "zarr": a folder of arrays, each a folder of chunks. */
#ifndef GCMP_FORMATS_ZARR_H
#define GCMP_FORMATS_ZARR_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_zarr;

#endif
