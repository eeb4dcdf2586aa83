/* The format "hdf5": one HDF5 file. */
#ifndef GCMP_FORMATS_HDF5_H
#define GCMP_FORMATS_HDF5_H

#include "gradcmp/sys/format.h"

extern const struct gradcmp_format gcmp_format_hdf5;

#endif
