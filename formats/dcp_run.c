/* What a run says of itself in a distributed checkpoint without common.pt. */
#include "formats/dcp_run.h"

#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "formats/dcp_item.h"
#include "formats/megatron_args.h"

enum { MAX_ITEM_BYTES = 1 << 24 };

static enum gradcmp_status take(struct gradcmp_catalogue *catalogue, const char *key,
                                const struct gcmp_node *root, struct gradcmp_error *error) {
    int64_t iteration;
    if (strcmp(key, "args") == 0) {
        return gcmp_megatron_read_args(catalogue, root, error);
    }
    if (catalogue->iteration < 0 && gcmp_node_int(root, &iteration) && iteration >= 0) {
        catalogue->iteration = iteration;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_object(struct gradcmp_catalogue *catalogue,
                                       const struct gradcmp_stored *stored,
                                       struct gradcmp_error *error) {
    const struct gradcmp_source *source = &catalogue->sources[stored->pieces[0].source];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_dcp_item item;
    struct gradcmp_error item_error = {0};
    enum gradcmp_status status =
        gcmp_dcp_open_item(catalogue, source, MAX_ITEM_BYTES, &arena, &item, &item_error);
    if (status == GRADCMP_OK) {
        status = take(catalogue, stored->key, item.torch.root, error);
    } else if (status == GRADCMP_ERROR_IO || status == GRADCMP_ERROR_MEMORY) {
        if (error != NULL) {
            *error = item_error;
        }
    } else {
        status = gcmp_catalogue_note(catalogue, error,
                                     "what the run says of itself (\"%s\") cannot be "
                                     "read: %s",
                                     stored->key, item_error.message);
    }
    gcmp_dcp_close_item(&item);
    gcmp_arena_free(&arena);
    return status;
}

enum gradcmp_status gcmp_dcp_read_run(struct gradcmp_catalogue *catalogue,
                                      struct gradcmp_error *error) {
    static const char *const keys[] = {"iteration", "args"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        for (size_t i = 0; i < catalogue->stored_count; i++) {
            const struct gradcmp_stored *stored = &catalogue->stored[i];
            if (stored->dtype == (uint8_t)GRADCMP_DTYPE_NONE && stored->piece_count > 0 &&
                strcmp(stored->key, keys[k]) == 0) {
                GCMP_TRY(read_object(catalogue, stored, error));
                break;
            }
        }
    }
    return GRADCMP_OK;
}
