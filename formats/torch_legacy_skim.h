/* Finding the end of a pickle in a file without interpreting it: opcodes are stepped over by the
 * lengths of their arguments. In the older stream of torch.save, pickles stand one behind another
 * with no word of their sizes, and gigabytes of elements follow. */
#ifndef GCMP_FORMATS_TORCH_LEGACY_SKIM_H
#define GCMP_FORMATS_TORCH_LEGACY_SKIM_H

#include "base/dir.h"
#include "base/error.h"

/* Set *length to the bytes of the pickle that begins at `offset`, its STOP included. The file is
 * read once, in small parts. Errors: CORRUPT at an opcode that is not known, or whose argument does
 * not end in the file; LIMIT for more than `limit` bytes; IO. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_skim(struct gcmp_dir *dir, uint32_t file,
                                                      uint64_t offset, uint64_t limit,
                                                      uint64_t *length,
                                                      struct gradcmp_error *error);

#endif
