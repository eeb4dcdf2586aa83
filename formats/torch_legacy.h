/* The stream that torch.save wrote until 1.6, and writes on request: pickles and raw storages one
 * behind another. */
#ifndef GCMP_FORMATS_TORCH_LEGACY_H
#define GCMP_FORMATS_TORCH_LEGACY_H

#include "formats/torch_file.h"

/* Bytes of a file's beginning that gcmp_legacy_probe needs. */
enum { GCMP_LEGACY_PROBE_BYTES = 32 };

/* Tell whether a file that begins with these bytes is such a stream. */
bool gcmp_legacy_probe(const unsigned char *bytes, size_t count);

/* Open the stream that a whole file is, as if it were an archive: its storages are the records
 * "data/<key>" of out->zip (without checksums: there are none), with exact byte ranges; node->at
 * counts from out->pickle. So gcmp_torch_tensor reads its tensors. Everything lives in `arena`.
 * Errors: CORRUPT where a pickle or storage is cut off, or where a storage's size, its key and what
 * the object says of it do not agree; UNSUPPORTED for an element type whose size is not known, and
 * for bytes behind the last storage (a second object); those of pickle.h. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_legacy_open(struct gcmp_dir *dir, uint32_t file,
                                                      struct gcmp_arena *arena,
                                                      struct gcmp_torch_file *out,
                                                      struct gradcmp_error *error);

#endif
