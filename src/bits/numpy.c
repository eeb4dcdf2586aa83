/* NumPy's arrays inside of pickles. Source: numpy/core/multiarray (_reconstruct, scalar, the states
 * of ndarray and dtype) and numpy/core/numeric (_frombuffer), NumPy 1.16 to 2.3; the package is
 * called numpy._core since 2.0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "bits/walk.h"
#include "engine/bytes.h"

/* What a dtype says of an element. */
struct form {
    const char *name;
    enum gradcmp_dtype dtype;
    unsigned bytes, swapped; /* width of the groups whose bytes are reversed; 0: none */
};

struct array {
    const struct gcmp_node *shape, *data;
    bool fortran;
};

static bool is_numpy_call(const struct gcmp_node *node, const char *module, const char *name) {
    char full[64];
    static const char *const packages[] = {"numpy.core", "numpy._core"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(full, sizeof full, "%s.%s", packages[i], module);
        if (gcmp_node_is_call(node, full, name)) {
            return true;
        }
    }
    return false;
}

static bool read_form(const struct gcmp_node *node, struct form *out) {
    static const struct {
        const char *code, *name;
        enum gradcmp_dtype dtype;
        unsigned bytes, group;
    } codes[] = {
        {"f8", "float64", GRADCMP_DTYPE_FLOAT64, 8, 8},
        {"f4", "float32", GRADCMP_DTYPE_FLOAT32, 4, 4},
        {"f2", "float16", GRADCMP_DTYPE_FLOAT16, 2, 2},
        {"i8", "int64", GRADCMP_DTYPE_INT64, 8, 8},
        {"i4", "int32", GRADCMP_DTYPE_INT32, 4, 4},
        {"i2", "int16", GRADCMP_DTYPE_INT16, 2, 2},
        {"i1", "int8", GRADCMP_DTYPE_INT8, 1, 0},
        {"u8", "uint64", GRADCMP_DTYPE_UINT64, 8, 8},
        {"u4", "uint32", GRADCMP_DTYPE_UINT32, 4, 4},
        {"u2", "uint16", GRADCMP_DTYPE_UINT16, 2, 2},
        {"u1", "uint8", GRADCMP_DTYPE_UINT8, 1, 0},
        {"b1", "bool", GRADCMP_DTYPE_BOOL, 1, 0},
        {"c8", "complex64", GRADCMP_DTYPE_COMPLEX64, 8, 4},
        {"c16", "complex128", GRADCMP_DTYPE_COMPLEX128, 16, 8},
    };
    const uint16_t one = 1;
    unsigned char host_little;
    memcpy(&host_little, &one, 1);
    const char *code =
        gcmp_node_is_call(node, "numpy", "dtype") ? gcmp_node_text(gcmp_node_arg(node, 0)) : NULL;
    if (code == NULL) {
        return false;
    }
    const char *order = gcmp_node_text(gcmp_node_item(node->as.call.state, 1));
    char written = order == NULL || order[0] == '=' || order[0] == '|' ? '<' : order[0];
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(code, codes[i].code) == 0) {
            *out = (struct form){codes[i].name, codes[i].dtype, codes[i].bytes,
                                 (written == '<') == (host_little == 1) ? 0 : codes[i].group};
            return true;
        }
    }
    return false;
}

/* Find the parts of a call that makes an array; false for other nodes. */
static bool find_parts(const struct gcmp_node *node, struct array *array, struct form *form) {
    *array = (struct array){NULL, NULL, false};
    if (is_numpy_call(node, "multiarray", "_reconstruct")) {
        const struct gcmp_node *state = node->as.call.state;
        const struct gcmp_node *fortran = gcmp_node_item(state, 3);
        array->shape = gcmp_node_item(state, 1);
        array->data = gcmp_node_item(state, 4);
        array->fortran =
            fortran != NULL && fortran->kind == GCMP_NODE_BOOL && fortran->as.integer != 0;
        return gcmp_node_is_bytes(array->data) && read_form(gcmp_node_item(state, 2), form);
    }
    if (is_numpy_call(node, "numeric", "_frombuffer")) {
        const char *order = gcmp_node_text(gcmp_node_arg(node, 3));
        array->data = gcmp_node_arg(node, 0);
        array->shape = gcmp_node_arg(node, 2);
        array->fortran = order != NULL && order[0] == 'F';
        return gcmp_node_is_bytes(array->data) && read_form(gcmp_node_arg(node, 1), form);
    }
    if (is_numpy_call(node, "multiarray", "scalar")) {
        array->data = gcmp_node_arg(node, 1);
        return gcmp_node_is_bytes(array->data) && read_form(gcmp_node_arg(node, 0), form);
    }
    return false;
}

/* Bring column-major elements into row-major order. */
static void transpose(unsigned char *to, const unsigned char *from, const uint64_t *shape,
                      unsigned ndim, unsigned width) {
    uint64_t index[GRADCMP_MAX_NDIM] = {0}, count = 1;
    for (unsigned d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = 0;
        for (unsigned d = ndim; d-- > 0;) {
            at = at * shape[d] + index[d];
        }
        memcpy(to + i * width, from + at * width, width);
        for (unsigned d = ndim; d-- > 0 && ++index[d] == shape[d];) {
            index[d] = 0;
        }
    }
}

static enum gradcmp_status copy_elements(const unsigned char *bytes, const struct array *array,
                                         const struct form *form, struct gcmp_arena *arena,
                                         struct gcmp_bits_item *out, struct gradcmp_error *error) {
    unsigned char *copy = gcmp_arena_alloc(arena, out->length_bytes + 1, 1);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (array->fortran && out->ndim > 1) {
        transpose(copy, bytes, out->shape, out->ndim, form->bytes);
    } else {
        memcpy(copy, bytes, out->length_bytes);
    }
    if (form->swapped > 1) {
        gcmp_swap_bytes(copy, out->length_bytes, form->swapped);
    }
    out->bytes = copy;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_numpy(const struct gcmp_node *node, struct gcmp_arena *arena,
                                    struct gcmp_bits_item *out, bool *is_array,
                                    struct gradcmp_error *error) {
    struct array array;
    struct form form;
    uint64_t shape[GRADCMP_MAX_NDIM], bytes = 1;
    unsigned ndim = 0;
    *is_array =
        find_parts(node, &array, &form) &&
        (array.shape == NULL || gcmp_node_sizes(array.shape, shape, GRADCMP_MAX_NDIM, &ndim));
    if (!*is_array) {
        return GRADCMP_OK;
    }
    const unsigned char *data;
    size_t length;
    GCMP_TRY(gcmp_node_bytes(array.data, arena, &data, &length, error));
    if (!gcmp_product(shape, ndim, &bytes) || !gcmp_mul_u64(bytes, form.bytes, &bytes) ||
        bytes != length) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "pickle: an array of %s takes %llu bytes, found %zu", form.name,
                  (unsigned long long)bytes, length);
    }
    uint64_t *sizes = gcmp_arena_alloc(arena, ndim + 1, sizeof *sizes);
    const char *type = gcmp_arena_format(arena, "ndarray %s", form.name);
    if (sizes == NULL || type == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(sizes, shape, ndim * sizeof *sizes);
    out->kind = GCMP_BITS_ARRAY;
    out->type = type;
    out->shape = sizes;
    out->ndim = (uint8_t)ndim;
    out->dtype = (uint8_t)form.dtype;
    out->elem_bytes = (uint8_t)form.bytes;
    out->length_bytes = length;
    return copy_elements(data, &array, &form, arena, out, error);
}
