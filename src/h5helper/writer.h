/* The other half of gradcmp-h5: writing. */
#ifndef GRADCMP_H5HELPER_WRITER_H
#define GRADCMP_H5HELPER_WRITER_H

/* Write an HDF5 file; returns the process's exit status. */
int writer_main(void);

#endif
