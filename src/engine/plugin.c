/* Finds and loads plug-ins. */
#include "engine/plugin.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gcmp_plugin_find(const char *name, char path[PATH_MAX]) {
    static const char *const folders[] = {"", "gradcmp/", "../lib/gradcmp/"};
    Dl_info here;
    char whole[PATH_MAX];
    if (dladdr((const void *)(uintptr_t)gcmp_plugin_find, &here) == 0 || here.dli_fname == NULL ||
        realpath(here.dli_fname, whole) == NULL) {
        return false;
    }
    char *slash = strrchr(whole, '/');
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        int length = snprintf(path, PATH_MAX, "%s%s%s", whole, folders[i], name);
        if (length > 0 && length < PATH_MAX && access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

enum gradcmp_status gcmp_plugin_load(const char *path, const char *name, void **library,
                                     void **symbol, struct gradcmp_error *error) {
    *symbol = NULL;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) {
        const char *why = dlerror();
        GCMP_FAIL_AT(error, GRADCMP_ERROR_DEVICE, path, GRADCMP_NO_OFFSET, "%s",
                     why != NULL ? why : "cannot be loaded");
    }
    *symbol = dlsym(*library, name);
    return GRADCMP_OK;
}
