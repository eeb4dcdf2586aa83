/* Finds and opens the plug-in of an accelerator. */
#include "engine/accelerator.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN "libgradcmp_cuda.so"

/* Nothing but where this code lies decides which file is loaded: no working directory, no search
 * path, no environment. */
static bool find_plugin(char path[PATH_MAX]) {
    static const char *const folders[] = {"", "gradcmp/", "../lib/gradcmp/"};
    Dl_info here;
    char whole[PATH_MAX];
    if (dladdr((const void *)(uintptr_t)gcmp_accelerator_open, &here) == 0 ||
        here.dli_fname == NULL || realpath(here.dli_fname, whole) == NULL) {
        return false;
    }
    char *slash = strrchr(whole, '/');
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        int length = snprintf(path, PATH_MAX, "%s%s%s", whole, folders[i], PLUGIN);
        if (length > 0 && length < PATH_MAX && access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool gcmp_accelerator_is_installed(void) {
    char path[PATH_MAX];
    return find_plugin(path);
}

static enum gradcmp_status load(struct gcmp_accelerator *out, const char *path,
                                struct gradcmp_error *error) {
    out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (out->library == NULL) {
        const char *why = dlerror();
        GCMP_FAIL_AT(error, GRADCMP_ERROR_DEVICE, path, GRADCMP_NO_OFFSET, "%s",
                     why != NULL ? why : "cannot be loaded");
    }
    void *symbol = dlsym(out->library, GRADCMP_BACKEND_SYMBOL);
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
    if (path == NULL && !find_plugin(found)) {
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
