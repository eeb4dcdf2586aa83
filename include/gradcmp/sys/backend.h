/* What a plug-in that tallies on an accelerator offers to the engine. The promise is weaker than
 * that of gradcmp.h: engine and plug-in are of one version, and `version` is checked.
 *
 * The engine gathers elements into the host buffers of a lane of work, starts the tally of a pair
 * of them, and gathers the next pair while the accelerator copies and adds. Each lane is used by
 * one thread; lanes of one device are used at the same time. Results are those of the specification
 * in src/kernels, bit for bit. */
#ifndef GRADCMP_SYS_BACKEND_H
#define GRADCMP_SYS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "gradcmp/gradcmp.h"
#include "gradcmp/sys/tally.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GRADCMP_BACKEND_VERSION = 1,
    GRADCMP_BACKEND_SLOTS = 2 /* host buffers of each side in a lane */
};

struct gradcmp_backend_device; /* an open device */
struct gradcmp_backend_lane;   /* its buffers and streams for one thread */

/* One tally: elements [0, elems) of a's buffer against b's. */
struct gradcmp_backend_work {
    unsigned slot_a, slot_b; /* which buffers; results are kept by slot_b */
    int a_is_new;            /* nonzero: a's buffer was written since its last use */
    int alone;               /* nonzero: a against itself; b's buffer is not looked at */
    enum gradcmp_dtype dtype_a, dtype_b; /* floating; native byte order */
    uint64_t elems;                      /* each side fits its buffer */
};

struct gradcmp_backend {
    uint32_t version; /* GRADCMP_BACKEND_VERSION */
    const char *name; /* "cuda" */

    /* Open device `index` (-1: the first). DEVICE where there is none or the driver fails. The
     * caller closes it, after all of its lanes. */
    enum gradcmp_status (*open)(int index, struct gradcmp_backend_device **out,
                                struct gradcmp_error *error);
    void (*close)(struct gradcmp_backend_device *device);
    /* Its name, for people; as long as it is open. */
    const char *(*describe)(const struct gradcmp_backend_device *device);

    /* Make a lane with host buffers of `buffer_bytes`, a multiple of 8 * GRADCMP_BLOCK_ELEMS. */
    enum gradcmp_status (*lane_open)(struct gradcmp_backend_device *device, size_t buffer_bytes,
                                     struct gradcmp_backend_lane **out,
                                     struct gradcmp_error *error);
    void (*lane_close)(struct gradcmp_backend_lane *lane);
    /* The host buffer of a side (0 a, 1 b) and slot, aligned to 64 bytes. */
    void *(*buffer)(const struct gradcmp_backend_lane *lane, unsigned side, unsigned slot);

    /* Start; the two buffers must not be written until `wait` for slot_b. A slot_b has one tally at
     * a time; a's buffer may take part in several. */
    enum gradcmp_status (*start)(struct gradcmp_backend_lane *lane,
                                 const struct gradcmp_backend_work *work,
                                 struct gradcmp_error *error);
    /* Wait for the tally of slot_b. *blocks has one entry for each block of GRADCMP_BLOCK_ELEMS
     * elements (the last may be shorter), indices counted from the block's start; valid until the
     * slot's next start. */
    enum gradcmp_status (*wait)(struct gradcmp_backend_lane *lane, unsigned slot_b,
                                const struct gradcmp_tally **blocks, struct gradcmp_error *error);
};

/* The one symbol of a plug-in. */
#define GRADCMP_BACKEND_SYMBOL "gradcmp_backend_table"
typedef const struct gradcmp_backend *(*gradcmp_backend_table_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
