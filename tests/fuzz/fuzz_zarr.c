/* Fuzz target: the metadata of a zarr array, as both versions read it, and a decoded chunk's
 * strides. */
#include "formats/zarr_array.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is promised of an array that was read. */
static void check_array(const struct gcmp_zarr_array *array) {
    uint64_t bytes = gcmp_dtype_bytes(array->dtype);
    unsigned seen = 0;
    if (array->dtype == GRADCMP_DTYPE_NONE) {
        return;
    }
    for (unsigned d = 0; d < array->ndim; d++) {
        if (array->chunk[d] == 0 || array->axes[d] >= array->ndim ||
            __builtin_mul_overflow(bytes, array->chunk[d], &bytes)) {
            abort();
        }
        seen |= 1u << array->axes[d];
    }
    if (bytes != array->chunk_bytes || seen != (1u << array->ndim) - 1 ||
        (array->separator != '.' && array->separator != '/')) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_json_file file = {.text = {(const char *)data, size, "fuzz", 0}};
    struct gcmp_zarr_array array;
    struct gradcmp_error error = {0};
    bool is_array = false;
    if (gcmp_json_parse(&file.text, &file.root, &error) != GRADCMP_OK) {
        return 0;
    }
    if (gcmp_zarr_read_v2(&file, &array, &error) == GRADCMP_OK) {
        check_array(&array);
    }
    if (gcmp_zarr_read_v3(&file, &array, &is_array, &error) == GRADCMP_OK && is_array) {
        check_array(&array);
    } else if (error.message[0] == '\0' && is_array) {
        abort();
    }
    json_decref(file.root);
    return 0;
}
