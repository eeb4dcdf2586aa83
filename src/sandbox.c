/* Entering the sandbox, in an order in which every step still has the rights that it needs. */
#include "sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "formats/hdf5_broker.h"

/* Make a folder of its own for what is decoded: another's TMPDIR would be open to reading. */
static char *make_temporary(void) {
    const char *folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *path = NULL;
        if (folders[i] == NULL || folders[i][0] != '/' ||
            asprintf(&path, "%s/gradcmp-XXXXXX", folders[i]) < 0) {
            continue;
        }
        if (mkdtemp(path) != NULL) {
            return path;
        }
        free(path);
    }
    return NULL;
}

static enum gradcmp_status enter(const struct gradcmp_sandbox_options *sandbox,
                                 const char *temporary, struct gradcmp_error *error) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "sandbox: privileges cannot be given up (%s)",
                  strerror(errno));
    }
    if (setenv("TMPDIR", temporary, 1) != 0) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_h5_broker_start(temporary, error)); /* from here on it removes the folder */
    GCMP_TRY(gcmp_sandbox_files(sandbox, temporary, error));
    return gcmp_sandbox_calls(gcmp_h5_broker(), error);
}

enum gradcmp_status gradcmp_sandbox_enter(const struct gradcmp_sandbox_options *sandbox,
                                          struct gradcmp_error *error) {
    struct gradcmp_sandbox_options given = GRADCMP_SANDBOX_OPTIONS_INIT;
    if (gcmp_h5_broker() >= 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "sandbox: this process is in one already");
    }
    if (sandbox != NULL) {
        memcpy(&given, sandbox,
               sandbox->struct_size < sizeof given ? sandbox->struct_size : sizeof given);
    }
    char *temporary = make_temporary();
    if (temporary == NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_IO,
                  "sandbox: no folder for decoded bytes can be made (set TMPDIR)");
    }
    enum gradcmp_status status = enter(&given, temporary, error);
    if (status != GRADCMP_OK && gcmp_h5_broker() < 0) {
        (void)rmdir(temporary);
    }
    free(temporary);
    return status;
}
