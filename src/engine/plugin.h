/* Plug-ins of the library: where they lie, and how one is loaded. */
#ifndef GCMP_ENGINE_PLUGIN_H
#define GCMP_ENGINE_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* Find a plug-in by its file's name: in the folder of this library, in its subfolder gradcmp, or in
 * ../lib/gradcmp. Nothing but where this code lies decides which file is loaded: no working
 * directory, no search path, no environment. */
bool gcmp_plugin_find(const char *name, char path[PATH_MAX]);

/* Load the plug-in at `path` for the life of the process, and look for its one symbol: *library,
 * and *symbol, which is NULL where the file has none of that name. DEVICE where it cannot be
 * loaded. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_plugin_load(const char *path, const char *name,
                                                      void **library, void **symbol,
                                                      struct gradcmp_error *error);

#endif
