/* Chooses between the processor and an accelerator. */
#include "device.h"

#include <stdio.h>
#include <string.h>

/* Opening a device and its driver takes about a second; in that time two threads tally some 50 GB
 * that lie in memory (27 GB/s a thread), and storage is slower still. */
static const uint64_t least_auto_bytes = (uint64_t)64 << 30;

enum gradcmp_status gcmp_device_choose(struct gcmp_device *device,
                                       const struct gradcmp_options *options, uint64_t bytes,
                                       struct gradcmp_error *error) {
    memset(device, 0, sizeof *device);
    if (options->device == GRADCMP_DEVICE_CUDA) {
        return gcmp_accelerator_open(&device->accelerator, NULL, (int)options->device_index, error);
    }
    if (options->device == GRADCMP_DEVICE_AUTO && bytes >= least_auto_bytes &&
        gcmp_accelerator_is_installed()) {
        (void)!gcmp_accelerator_open(&device->accelerator, NULL, -1, &device->lost);
    }
    return GRADCMP_OK;
}

void gcmp_device_use(struct gcmp_device *device, const struct gradcmp_options *options,
                     struct gcmp_engine_options *engine) {
    if (device->accelerator.backend != NULL && device->lost.code == GRADCMP_OK) {
        engine->accelerator = &device->accelerator;
        engine->accelerator_error = options->device == GRADCMP_DEVICE_AUTO ? &device->lost : NULL;
    }
}

void gcmp_device_release(struct gcmp_device *device, const struct gradcmp_options *options) {
    if (device->lost.code != GRADCMP_OK && options->warn != NULL) {
        char line[sizeof device->lost.message + 80];
        snprintf(line, sizeof line, "%s; went on with the processor (--device cpu says so at once)",
                 device->lost.message);
        options->warn(options->warn_user, line);
    }
    gcmp_accelerator_close(&device->accelerator);
}
