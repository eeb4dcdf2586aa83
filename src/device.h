/* Which accelerator a call works with. */
#ifndef GCMP_DEVICE_H
#define GCMP_DEVICE_H

#include "engine/engine.h"

struct gcmp_device {
    struct gcmp_accelerator accelerator; /* backend NULL: none */
    struct gradcmp_error lost;           /* why it was given up; code 0: it was not */
};

/* Open what options->device asks for: with AUTO, a GPU where one is at hand and `bytes` of elements
 * are many enough to gain by it. DEVICE where one that was asked for cannot be had. The caller
 * releases it, also after a failure. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_device_choose(struct gcmp_device *device,
                                                        const struct gradcmp_options *options,
                                                        uint64_t bytes,
                                                        struct gradcmp_error *error);

/* Have a run of the engine use it. */
void gcmp_device_use(struct gcmp_device *device, const struct gradcmp_options *options,
                     struct gcmp_engine_options *engine);

/* Close it; where it was given up, tell in one line. */
void gcmp_device_release(struct gcmp_device *device, const struct gradcmp_options *options);

#endif
