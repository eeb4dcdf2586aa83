/* Opens the plug-in of an accelerator. */
#include "engine/accelerator.h"

#include <string.h>

#include "engine/plugin.h"

#define PLUGIN "libgradcmp_cuda.so"

bool gcmp_accelerator_is_installed(void) {
    char path[PATH_MAX];
    return gcmp_plugin_find(PLUGIN, path);
}

static enum gradcmp_status load(struct gcmp_accelerator *out, const char *path,
                                struct gradcmp_error *error) {
    void *symbol;
    GCMP_TRY(gcmp_plugin_load(path, GRADCMP_BACKEND_SYMBOL, &out->library, &symbol, error));
    gradcmp_backend_table_fn table;
    memcpy(&table, &symbol, sizeof table); /* how POSIX makes a function of a symbol */
    if (symbol == NULL || table()->version != GRADCMP_BACKEND_VERSION) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_DEVICE, path, GRADCMP_NO_OFFSET,
                     "expected the plug-in of version %d of the interface, found another",
                     GRADCMP_BACKEND_VERSION);
    }
    out->backend = table();
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_accelerator_open(struct gcmp_accelerator *out, const char *path, int index,
                                          struct gradcmp_error *error) {
    char found[PATH_MAX];
    memset(out, 0, sizeof *out);
    if (path == NULL && !gcmp_plugin_find(PLUGIN, found)) {
        GCMP_FAIL(error, GRADCMP_ERROR_DEVICE,
                  "no CUDA plug-in (" PLUGIN ") beside the library: build with nvcc, or say "
                  "--device cpu");
    }
    enum gradcmp_status status = load(out, path != NULL ? path : found, error);
    if (status == GRADCMP_OK) {
        status = out->backend->open(index, &out->device, error);
    }
    if (status != GRADCMP_OK) {
        gcmp_accelerator_close(out);
    }
    return status;
}

/* The library stays loaded: what a driver leaves behind (threads, handlers) may still run. */
void gcmp_accelerator_close(struct gcmp_accelerator *accelerator) {
    if (accelerator->device != NULL) {
        accelerator->backend->close(accelerator->device);
    }
    memset(accelerator, 0, sizeof *accelerator);
}
