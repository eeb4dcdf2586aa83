/* The two filters of a sandbox; both hold for the calling thread and those that it starts. */
#ifndef GCMP_SANDBOX_H
#define GCMP_SANDBOX_H

#include "base/error.h"
#include "gradcmp/gradcmp.h"

/* Files, by Landlock: what may be opened from now on. `temporary` is a folder for files without
 * names. What is missing in the lists is left out: opening it fails as it would without this. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_sandbox_files(const struct gradcmp_sandbox_options *sandbox, const char *temporary,
                   struct gradcmp_error *error);

/* System calls, by seccomp: no program is started, no network or other process is spoken to, no
 * memory becomes executable. What is refused fails with EPERM. `broker` is the one socket on which
 * messages may be sent. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_sandbox_calls(int broker, struct gradcmp_error *error);

#endif
