/* An accelerator that tallies in place of the processor: finding and opening the plug-in, and what
 * a thread does with its lane of work. */
#ifndef GCMP_ENGINE_ACCELERATOR_H
#define GCMP_ENGINE_ACCELERATOR_H

#include <stdbool.h>

#include "base/error.h"
#include "gradcmp/sys/backend.h"

struct gcmp_accelerator {
    void *library; /* of dlopen */
    const struct gradcmp_backend *backend;
    struct gradcmp_backend_device *device;
};

/* Open device `index` (-1: the first) of the CUDA plug-in: libgradcmp_cuda.so in the folder of this
 * library, or in its subfolder gradcmp; or of the plug-in at `path` (NULL normally). On success the
 * caller closes it, after the engine's last run with it. DEVICE where there is no plug-in, no
 * device, or the driver fails. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_accelerator_open(struct gcmp_accelerator *out,
                                                           const char *path, int index,
                                                           struct gradcmp_error *error);
/* True where the plug-in lies where it is looked for. */
bool gcmp_accelerator_is_installed(void);
void gcmp_accelerator_close(struct gcmp_accelerator *accelerator);

#endif
