/* The type that a checkpoint's weights are stored in, which decides the bound. */
#include "weights_type.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "engine/records.h"

static bool is_weight(const struct gradcmp_stored *stored) {
    return stored->state != NULL && strcmp(stored->state, "param") == 0 &&
           stored->layout != GRADCMP_LAYOUT_BUCKET &&
           stored->layout != GRADCMP_LAYOUT_LOCAL_BUFFER && gcmp_dtype_is_float(stored->dtype);
}

enum gradcmp_dtype gcmp_weights_dtype(const struct gradcmp_catalogue *catalogue) {
    uint64_t elems[GRADCMP_DTYPE_COUNT] = {0};
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        uint64_t count;
        if (is_weight(stored) && gcmp_product(stored->shape, stored->ndim, &count) &&
            !gcmp_add_u64(elems[stored->dtype], count, &elems[stored->dtype])) {
            elems[stored->dtype] = UINT64_MAX;
        }
    }
    enum gradcmp_dtype most = GRADCMP_DTYPE_NONE;
    for (unsigned dtype = 1; dtype < GRADCMP_DTYPE_COUNT; dtype++) {
        if (elems[dtype] > elems[most]) {
            most = (enum gradcmp_dtype)dtype;
        }
    }
    return most;
}

/* The smallest weight of a type that is stored anywhere; NULL: none. */
static const struct gradcmp_stored *find_smallest(const struct gradcmp_catalogue *catalogue,
                                                  enum gradcmp_dtype dtype) {
    const struct gradcmp_stored *found = NULL;
    uint64_t least = UINT64_MAX, count;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (is_weight(stored) && stored->dtype == dtype && stored->piece_count > 0 &&
            gcmp_product(stored->shape, stored->ndim, &count) && count > 0 && count < least) {
            found = stored;
            least = count;
        }
    }
    return found;
}

enum gradcmp_status gcmp_prove_weights_dtype(const struct gradcmp_catalogue *catalogue,
                                             enum gradcmp_dtype dtype,
                                             struct gradcmp_error *error) {
    const struct gradcmp_stored *weight = find_smallest(catalogue, dtype);
    if (weight == NULL) {
        return GRADCMP_OK;
    }
    struct gcmp_records *records = gcmp_records_make(catalogue, 0, 0);
    if (records == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_record *record = NULL;
    enum gradcmp_status status =
        gcmp_records_hold(records, weight->pieces[0].source, &record, error);
    if (status == GRADCMP_OK) {
        if (record->dtype != GRADCMP_DTYPE_NONE && record->dtype != dtype) {
            char message[80];
            snprintf(message, sizeof message, "elements: expected %s, found %s",
                     gradcmp_dtype_name(dtype),
                     gradcmp_dtype_name((enum gradcmp_dtype)record->dtype));
            status = gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error, message);
        }
        gcmp_record_release(record);
    }
    gcmp_records_free(records);
    return status;
}
