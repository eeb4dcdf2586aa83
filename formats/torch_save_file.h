/* One file that torch.save wrote, in whichever form. */
#ifndef GCMP_FORMATS_TORCH_SAVE_FILE_H
#define GCMP_FORMATS_TORCH_SAVE_FILE_H

#include "formats/torch_file.h"

enum gcmp_torch_form {
    GCMP_TORCH_OTHER,  /* none of these, or a file that cannot be read */
    GCMP_TORCH_ZIP,    /* an archive, since torch 1.6 */
    GCMP_TORCH_STREAM, /* pickles and storages one behind another */
    GCMP_TORCH_TAR     /* before torch 0.1.10 */
};

/* Tell from its first bytes what a file is; never fails. */
enum gcmp_torch_form gcmp_torch_form(struct gcmp_dir *dir, const char *name);

/* Register and open a file of any form that is read; see gcmp_torch_open. Errors: those of
 * gcmp_torch_open and gcmp_legacy_open; UNSUPPORTED for a tar archive; CORRUPT for what is none of
 * them. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_open_any(struct gcmp_dir *dir, const char *name,
                                                         struct gcmp_arena *arena,
                                                         struct gcmp_torch_file *out,
                                                         struct gradcmp_error *error);

#endif
