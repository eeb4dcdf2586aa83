/* Tensors in the nodes of a torch.save pickle: which calls mean one, and what part of which record
 * it is. Source: torch/_utils.py and torch/_tensor.py of torch 1.6 to 2.15 (the functions named
 * below and their arguments), torch/serialization.py (persistent ids), torch_npu/utils/storage.py.
 *
 * Limits: GRADCMP_MAX_NDIM axes; MAX_WRAPPERS calls around a tensor. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/dtype.h"
#include "formats/torch_file.h"

enum { MAX_WRAPPERS = 8, MAX_KEY_BYTES = 200 };

enum rebuild_kind {
    REBUILD_TENSOR,  /* (storage, offset, size, stride, ...) in the storage's type */
    REBUILD_TYPED,   /* the same with a dtype as argument 6 */
    REBUILD_WRAP,    /* (tensor, ...) */
    REBUILD_DEVICE,  /* (tensor, dtype, ...) */
    REBUILD_CALL,    /* (function, type, arguments, state): function called on the arguments */
    REBUILD_CLASS,   /* (class, ...): a tensor that wraps others, such as a DTensor */
    REBUILD_NOT_READ /* a tensor, but not a strided view of one record */
};

struct rebuild {
    const char *module, *name;
    enum rebuild_kind kind;
    unsigned min_args, max_args;
    const char *what; /* NOT_READ: what it is */
};

/* Where calls that are not read state the shape: an argument, or an item of an argument. */
static const struct {
    const char *module, *name;
    unsigned argument;
    int item; /* -1: the argument itself */
} stated_shapes[] = {
    {"torch._utils", "_rebuild_tensor", 2, -1},
    {"torch._utils", "_rebuild_tensor_v2", 2, -1},
    {"torch._utils", "_rebuild_tensor_v3", 2, -1},
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", 2, -1},
    {"torch._utils", "_rebuild_wrapper_subclass", 2, -1},
    {"torch._utils", "_rebuild_sparse_tensor", 1, 2},
    {"torch._utils", "_rebuild_sparse_csr_tensor", 1, 3},
    {"torch._utils", "_rebuild_qtensor", 2, -1},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", 1, -1},
};

static const struct rebuild rebuilds[] = {
    {"torch._utils", "_rebuild_tensor", REBUILD_TENSOR, 4, 4, NULL},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, 6, 7, NULL},
    {"torch._utils", "_rebuild_tensor_v3", REBUILD_TYPED, 7, 8, NULL},
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", REBUILD_TENSOR, 7, 7, NULL},
    {"torch._utils", "_rebuild_parameter", REBUILD_WRAP, 3, 3, NULL},
    {"torch._utils", "_rebuild_parameter_with_state", REBUILD_WRAP, 4, 4, NULL},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", REBUILD_DEVICE, 4, 4, NULL},
    {"torch._tensor", "_rebuild_from_type_v2", REBUILD_CALL, 4, 4, NULL},
    {"torch._tensor", "_rebuild_from_type", REBUILD_CALL, 4, 4, NULL},
    {"torch._utils", "_rebuild_wrapper_subclass", REBUILD_CLASS, 1, 64, NULL},
    {"torch._utils", "_rebuild_sparse_tensor", REBUILD_NOT_READ, 0, 0, "a sparse tensor"},
    {"torch._utils", "_rebuild_sparse_csr_tensor", REBUILD_NOT_READ, 0, 0, "a sparse tensor"},
    {"torch._utils", "_rebuild_qtensor", REBUILD_NOT_READ, 0, 0, "a quantized tensor"},
    {"torch._utils", "_rebuild_nested_tensor", REBUILD_NOT_READ, 0, 0, "a nested tensor"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", REBUILD_NOT_READ, 0, 0,
     "a tensor without values"},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", REBUILD_NOT_READ, 0, 0,
     "a tensor inside the pickle"},
};

/* A call that makes a tensor, once the wrappers around it are taken off. */
struct tensor_call {
    const struct gcmp_torch_file *torch;
    struct gradcmp_error *error;
    const struct gcmp_node *node; /* the outermost call not yet taken off, for messages */
    const struct gcmp_node *function, *args;
    const struct rebuild *how;          /* NULL: the function is not known */
    const struct gcmp_node *true_dtype; /* the dtype that a REBUILD_DEVICE states, or NULL */
};

static uint64_t offset_of(const struct tensor_call *call) {
    return call->torch->pickle->offset_bytes + (call->node == NULL ? 0 : call->node->at);
}

#define TENSOR_FAIL(call, code, ...)                                                               \
    return gcmp_error_set((call)->error, (code),                                                   \
                          gcmp_dir_file_path((call)->torch->dir, (call)->torch->file),             \
                          offset_of(call), "torch: " __VA_ARGS__)

static const struct rebuild *find_rebuild(const struct gcmp_node *function) {
    for (size_t i = 0; i < sizeof rebuilds / sizeof rebuilds[0]; i++) {
        if (gcmp_node_is_global(function, rebuilds[i].module, rebuilds[i].name)) {
            return &rebuilds[i];
        }
    }
    return NULL;
}

static struct tensor_call begin_call(const struct gcmp_node *node) {
    struct tensor_call call = {.node = node};
    if (node != NULL && node->kind == GCMP_NODE_CALL) {
        call.function = node->as.call.callee;
        call.args = node->as.call.args;
        call.how = find_rebuild(call.function);
    }
    return call;
}

/* Take one wrapper off. Where what it holds is no call, function is NULL afterwards. */
static void unwrap_once(struct tensor_call *call) {
    if (call->how->kind == REBUILD_CALL) {
        call->function = gcmp_node_item(call->args, 0);
        call->args = gcmp_node_item(call->args, 2);
        call->how = find_rebuild(call->function);
        return;
    }
    struct tensor_call inner = begin_call(gcmp_node_item(call->args, 0));
    inner.torch = call->torch;
    inner.error = call->error;
    inner.true_dtype =
        call->how->kind == REBUILD_DEVICE ? gcmp_node_item(call->args, 1) : call->true_dtype;
    *call = inner;
}

static bool is_storage(const struct gcmp_node *node) {
    if (node == NULL || node->kind != GCMP_NODE_PERSID) {
        return false;
    }
    const char *tag = gcmp_node_text(gcmp_node_item(node->as.call.callee, 0));
    return tag != NULL && strcmp(tag, "storage") == 0;
}

bool gcmp_torch_is_tensor(const struct gcmp_node *node) {
    struct tensor_call call = begin_call(node);
    return call.how != NULL || is_storage(gcmp_node_item(call.args, 0));
}

const struct gcmp_node *gcmp_torch_local_tensor(const struct gcmp_node *node) {
    struct tensor_call call = begin_call(node);
    for (int i = 0; i < MAX_WRAPPERS && call.how != NULL && call.how->kind == REBUILD_WRAP; i++) {
        unwrap_once(&call);
    }
    if (call.how == NULL || call.how->kind != REBUILD_CALL ||
        !gcmp_node_is_global(gcmp_node_item(call.args, 0), "torch._utils",
                             "_rebuild_wrapper_subclass")) {
        return NULL;
    }
    return gcmp_node_state_get(gcmp_node_item(call.args, 3), "_local_tensor");
}

const struct gcmp_node *gcmp_torch_array_args(const struct gcmp_node *node) {
    struct tensor_call call = begin_call(node);
    for (int i = 0; i < MAX_WRAPPERS && call.how != NULL &&
                    (call.how->kind == REBUILD_WRAP || call.how->kind == REBUILD_CALL);
         i++) {
        unwrap_once(&call);
    }
    return gcmp_node_is_global(call.function, "torch._utils", "_rebuild_device_tensor_from_numpy")
               ? call.args
               : NULL;
}

bool gcmp_torch_is_array(const struct gcmp_node *node) {
    return gcmp_node_is_call(node, "numpy.core.multiarray", "_reconstruct") ||
           gcmp_node_is_call(node, "numpy._core.multiarray", "_reconstruct");
}

/* The node that states a shape; NULL where none does. */
static const struct gcmp_node *find_stated_shape(const struct tensor_call *call) {
    for (size_t i = 0; i < sizeof stated_shapes / sizeof *stated_shapes; i++) {
        if (gcmp_node_is_global(call->function, stated_shapes[i].module, stated_shapes[i].name)) {
            const struct gcmp_node *found = gcmp_node_item(call->args, stated_shapes[i].argument);
            return stated_shapes[i].item < 0 ? found
                                             : gcmp_node_item(found, (size_t)stated_shapes[i].item);
        }
    }
    return NULL;
}

bool gcmp_torch_stated_shape(const struct gcmp_node *node, uint64_t *shape, unsigned *ndim) {
    uint64_t elems;
    struct tensor_call call = begin_call(node);
    for (int i = 0; i < MAX_WRAPPERS && call.how != NULL && call.how->kind >= REBUILD_WRAP &&
                    call.how->kind <= REBUILD_CALL;
         i++) {
        unwrap_once(&call);
    }
    const struct gcmp_node *size =
        gcmp_torch_is_array(node)
            ? gcmp_node_item(node->as.call.state, 1) /* of (version, shape, ...) */
            : find_stated_shape(&call);
    bool is_stated = size != NULL && gcmp_node_sizes(size, shape, GRADCMP_MAX_NDIM, ndim) &&
                     gcmp_product(shape, *ndim, &elems);
    *ndim = is_stated ? *ndim : 0;
    return is_stated;
}

enum gradcmp_dtype gcmp_torch_dtype(const struct gcmp_node *node) {
    static const char prefix[] = "torch ";
    const char *name = node != NULL && node->kind == GCMP_NODE_GLOBAL ? gcmp_node_global(node) : "";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return GRADCMP_DTYPE_NONE;
    }
    name += sizeof prefix - 1;
    enum gradcmp_dtype dtype = gcmp_dtype_find(name);
    /* gcmp_dtype_find also knows short names, which are no attributes of torch. */
    return strcmp(gradcmp_dtype_name(dtype), name) == 0 ? dtype : GRADCMP_DTYPE_NONE;
}

/* The element type of a storage class; UntypedStorage counts bytes, and is uint8 to torch too. */
enum gradcmp_dtype gcmp_torch_storage_dtype(const struct gcmp_node *node) {
    static const char *const modules[] = {"torch", "torch.cuda", "torch.npu", "torch.storage"};
    static const struct {
        const char *name;
        enum gradcmp_dtype dtype;
    } classes[] = {
        {"FloatStorage", GRADCMP_DTYPE_FLOAT32},
        {"BFloat16Storage", GRADCMP_DTYPE_BFLOAT16},
        {"HalfStorage", GRADCMP_DTYPE_FLOAT16},
        {"DoubleStorage", GRADCMP_DTYPE_FLOAT64},
        {"LongStorage", GRADCMP_DTYPE_INT64},
        {"IntStorage", GRADCMP_DTYPE_INT32},
        {"ShortStorage", GRADCMP_DTYPE_INT16},
        {"CharStorage", GRADCMP_DTYPE_INT8},
        {"ByteStorage", GRADCMP_DTYPE_UINT8},
        {"BoolStorage", GRADCMP_DTYPE_BOOL},
        {"ComplexFloatStorage", GRADCMP_DTYPE_COMPLEX64},
        {"ComplexDoubleStorage", GRADCMP_DTYPE_COMPLEX128},
        {"UntypedStorage", GRADCMP_DTYPE_UINT8},
        {"_UntypedStorage", GRADCMP_DTYPE_UINT8},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        for (size_t k = 0; k < sizeof modules / sizeof modules[0]; k++) {
            if (gcmp_node_is_global(node, modules[k], classes[i].name)) {
                return classes[i].dtype;
            }
        }
    }
    return GRADCMP_DTYPE_NONE;
}

/* What the persistent id of a storage says: ("storage", class, key, location, count). */
struct storage {
    enum gradcmp_dtype dtype;
    uint64_t elem_count;
    const struct gcmp_zip_record *record;
};

static enum gradcmp_status find_record(const struct tensor_call *call, const struct gcmp_node *key,
                                       struct storage *out) {
    char name[MAX_KEY_BYTES + 8];
    const char *text = gcmp_node_text(key);
    if (text == NULL || strlen(text) > MAX_KEY_BYTES) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected a short text as storage key, found %s",
                    gcmp_node_kind_name(key));
    }
    snprintf(name, sizeof name, "data/%s", text);
    out->record = gcmp_zip_find(&call->torch->zip, name);
    if (out->record == NULL) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected a record %s, found none", name);
    }
    return GRADCMP_OK;
}

/* CVE-2026-24747 was a count of elements that the record does not have. */
static enum gradcmp_status check_record(const struct tensor_call *call,
                                        const struct storage *storage) {
    uint64_t bytes;
    if (!gcmp_mul_u64(storage->elem_count, gcmp_dtype_bytes(storage->dtype), &bytes) ||
        bytes != storage->record->length_bytes) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT,
                    "expected %llu elements of %s, found a record %s of %llu bytes",
                    (unsigned long long)storage->elem_count, gradcmp_dtype_name(storage->dtype),
                    storage->record->name, (unsigned long long)storage->record->length_bytes);
    }
    return GRADCMP_OK;
}

/* Five items; six, with None for a view, as the legacy stream has them. */
static bool is_storage_id(const struct gcmp_node *id) {
    const struct gcmp_node *class = gcmp_node_item(id, 1), *count = gcmp_node_item(id, 4);
    const struct gcmp_node *view = gcmp_node_item(id, 5);
    return id->kind == GCMP_NODE_TUPLE && gcmp_node_count(id) <= 6 && count != NULL &&
           class->kind == GCMP_NODE_GLOBAL && count->kind == GCMP_NODE_INT &&
           count->as.integer >= 0 && (view == NULL || view->kind == GCMP_NODE_NONE);
}

static enum gradcmp_status read_storage(const struct tensor_call *call, struct storage *out) {
    const struct gcmp_node *node = gcmp_node_item(call->args, 0);
    if (!is_storage(node)) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected a storage as first argument, found %s",
                    gcmp_node_kind_name(node));
    }
    const struct gcmp_node *id = node->as.call.callee, *class = gcmp_node_item(id, 1);
    if (!is_storage_id(id)) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT,
                    "expected (\"storage\", class, key, location, count) as persistent id");
    }
    out->elem_count = (uint64_t)gcmp_node_item(id, 4)->as.integer;
    out->dtype = gcmp_torch_storage_dtype(class);
    if (out->dtype == GRADCMP_DTYPE_NONE) {
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "storage class \"%.200s\" is not read",
                    gcmp_node_global(class));
    }
    GCMP_TRY(find_record(call, gcmp_node_item(id, 2), out));
    return check_record(call, out);
}

static enum gradcmp_status read_shape(const struct tensor_call *call, struct gradcmp_extent *out) {
    const struct gcmp_node *size = gcmp_node_item(call->args, 2),
                           *stride = gcmp_node_item(call->args, 3);
    unsigned ndim;
    if (gcmp_node_count(size) > GRADCMP_MAX_NDIM) {
        TENSOR_FAIL(call, GRADCMP_ERROR_LIMIT, "a tensor of %zu axes, at most %d are read",
                    gcmp_node_count(size), GRADCMP_MAX_NDIM);
    }
    if (!gcmp_node_sizes(size, out->shape, GRADCMP_MAX_NDIM, &ndim)) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected the size as integers of 0 or more");
    }
    out->ndim = (uint8_t)ndim;
    if (gcmp_node_count(stride) != ndim) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected %u strides, found %zu", ndim,
                    gcmp_node_count(stride));
    }
    for (unsigned d = 0; d < ndim; d++) {
        if (!gcmp_node_int(gcmp_node_item(stride, d), &out->stride[d])) {
            TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected integers as strides, found %s",
                        gcmp_node_kind_name(gcmp_node_item(stride, d)));
        }
    }
    return GRADCMP_OK;
}

/* Axes of one element may have any stride, and so may all axes of a tensor without elements; such
 * strides are made row-major, so that nobody multiplies with them. */
static void tame_strides(struct gradcmp_extent *extent, bool empty) {
    uint64_t next = 1;
    for (unsigned d = extent->ndim; d-- > 0;) {
        if (extent->shape[d] <= 1 || empty) {
            extent->stride[d] = (int64_t)next;
        }
        next *= extent->shape[d] > 0 ? extent->shape[d] : 1;
    }
    if (empty) {
        extent->offset_elems = 0;
    }
}

/* Check that the last element lies in the storage. Strides of 0 (expand) are legal, so the number
 * of elements is not bounded by the storage; torch has no negative strides. */
static enum gradcmp_status check_view(const struct tensor_call *call, uint64_t elem_count,
                                      struct gradcmp_extent *out) {
    uint64_t elems, reach = (uint64_t)out->offset_elems;
    if (!gcmp_product(out->shape, out->ndim, &elems)) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "a size whose product is over 2^63 - 1");
    }
    bool inside = true;
    for (unsigned d = 0; d < out->ndim && elems > 0; d++) {
        uint64_t step = 0;
        if (out->shape[d] > 1 && out->stride[d] < 0) {
            TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected strides of 0 or more, found %lld",
                        (long long)out->stride[d]);
        }
        inside = inside && (out->shape[d] == 1 ||
                            (gcmp_mul_u64(out->shape[d] - 1, (uint64_t)out->stride[d], &step) &&
                             gcmp_add_u64(reach, step, &reach)));
    }
    if (elems > 0 && (!inside || reach >= elem_count)) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT,
                    "a view that reaches past the %llu elements of its storage (offset %lld)",
                    (unsigned long long)elem_count, (long long)out->offset_elems);
    }
    tame_strides(out, elems == 0);
    return GRADCMP_OK;
}

static enum gradcmp_status read_dtype(const struct tensor_call *call, const struct gcmp_node *node,
                                      enum gradcmp_dtype *out) {
    *out = gcmp_torch_dtype(node);
    if (*out == GRADCMP_DTYPE_NONE) {
        const char *name = gcmp_node_global(node);
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "element type \"%.200s\" is not read",
                    name == NULL ? gcmp_node_kind_name(node) : name);
    }
    return GRADCMP_OK;
}

/* The element type: the storage's, or the one that the call states. */
static enum gradcmp_status find_dtype(const struct tensor_call *call, enum gradcmp_dtype stored,
                                      enum gradcmp_dtype *out) {
    enum gradcmp_dtype stated = GRADCMP_DTYPE_NONE;
    *out = stored;
    if (call->how->kind == REBUILD_TYPED) {
        GCMP_TRY(read_dtype(call, gcmp_node_item(call->args, 6), out));
    }
    if (call->true_dtype != NULL) {
        GCMP_TRY(read_dtype(call, call->true_dtype, &stated));
        if (stated != *out) {
            TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED,
                        "a tensor stored as %s that stands for one of %s is not read",
                        gradcmp_dtype_name(*out), gradcmp_dtype_name(stated));
        }
    }
    return GRADCMP_OK;
}

/* The last argument may say that the elements stand for others: {"neg": True} for -x, {"conj":
 * True} for the conjugate (torch.save keeps such lazy views as they are). */
static enum gradcmp_status check_lazy_view(const struct tensor_call *call) {
    static const char *const marks[] = {"neg", "conj"};
    const struct gcmp_node *metadata =
        gcmp_node_item(call->args, call->how->kind == REBUILD_TYPED ? 7 : 6);
    for (size_t i = 0; i < 2; i++) {
        const struct gcmp_node *mark = gcmp_node_get(metadata, marks[i]);
        int64_t is_set = 0;
        if (mark != NULL && (!gcmp_node_int(mark, &is_set) || is_set != 0)) {
            TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED,
                        "a lazy view (%s) of other values is not read; save a clone of the tensor",
                        marks[i]);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status describe(const struct tensor_call *call, struct gradcmp_extent *out) {
    GCMP_TRY(check_lazy_view(call));
    struct storage storage = {0};
    enum gradcmp_dtype dtype = GRADCMP_DTYPE_NONE;
    GCMP_TRY(read_storage(call, &storage));
    GCMP_TRY(find_dtype(call, storage.dtype, &dtype));
    const struct gcmp_node *offset = gcmp_node_item(call->args, 1);
    if (!gcmp_node_int(offset, &out->offset_elems) || out->offset_elems < 0) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "expected an offset of 0 or more");
    }
    out->offset_bytes = storage.record->offset_bytes;
    out->length_bytes = storage.record->length_bytes;
    out->crc32 = storage.record->crc32;
    out->dtype = (uint8_t)dtype;
    out->big_endian = call->torch->big_endian;
    GCMP_TRY(read_shape(call, out));
    return check_view(call, storage.record->length_bytes / gcmp_dtype_bytes(dtype), out);
}

/* Nothing may have been done to a tensor after it was rebuilt: SETITEM on one is how CVE-2026-24747
 * wrote outside of it, and BUILD can give it another storage. */
static enum gradcmp_status check_untouched(const struct tensor_call *call) {
    if (call->node->as.call.contents != NULL) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT, "items were set on a tensor");
    }
    if (call->node->as.call.state != NULL) {
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "a tensor with a state is not read");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status check_known(const struct tensor_call *call) {
    const char *name = gcmp_node_global(call->function);
    if (call->how == NULL) {
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "a tensor made by \"%.200s\" is not read",
                    name == NULL ? gcmp_node_kind_name(call->function) : name);
    }
    if (call->how->kind == REBUILD_NOT_READ) {
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "%s (\"%s\") is not read", call->how->what,
                    name);
    }
    size_t count = gcmp_node_count(call->args);
    if (call->args == NULL || call->args->kind != GCMP_NODE_TUPLE || count < call->how->min_args ||
        count > call->how->max_args) {
        TENSOR_FAIL(call, GRADCMP_ERROR_CORRUPT,
                    "\"%s\": expected %u to %u arguments in a tuple, found %zu", name,
                    call->how->min_args, call->how->max_args, count);
    }
    if (call->how->kind == REBUILD_CLASS) {
        const char *class = gcmp_node_global(gcmp_node_item(call->args, 0));
        TENSOR_FAIL(call, GRADCMP_ERROR_UNSUPPORTED, "a tensor of class \"%.200s\" is not read",
                    class == NULL ? "?" : class);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_torch_tensor(const struct gcmp_torch_file *torch,
                                      const struct gcmp_node *node, struct gradcmp_extent *out,
                                      struct gradcmp_error *error) {
    *out = (struct gradcmp_extent){0};
    struct tensor_call call = begin_call(node);
    call.torch = torch;
    call.error = error;
    for (int wrappers = 0;; wrappers++) {
        if (call.function == NULL) {
            TENSOR_FAIL(&call, GRADCMP_ERROR_CORRUPT, "expected a tensor, found %s",
                        gcmp_node_kind_name(call.node));
        }
        GCMP_TRY(check_untouched(&call));
        GCMP_TRY(check_known(&call));
        if (call.how->kind == REBUILD_TENSOR || call.how->kind == REBUILD_TYPED) {
            return describe(&call, out);
        }
        if (wrappers == MAX_WRAPPERS) {
            TENSOR_FAIL(&call, GRADCMP_ERROR_LIMIT, "a tensor inside more than %d wrappers",
                        MAX_WRAPPERS);
        }
        unwrap_once(&call);
    }
}

enum gradcmp_status gcmp_torch_read_scalar(const struct gcmp_torch_file *torch,
                                           const struct gradcmp_extent *view, bool *found,
                                           double *out, struct gradcmp_error *error) {
    unsigned char bytes[8] = {0}, swapped[8];
    unsigned count = gcmp_dtype_bytes((enum gradcmp_dtype)view->dtype);
    uint64_t bits = 0;
    *found = false;
    if (count > sizeof bytes) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_dir_read(torch->dir, torch->file,
                           view->offset_bytes + (uint64_t)view->offset_elems * count, bytes, count,
                           error));
    for (unsigned i = 0; i < count; i++) {
        swapped[i] = view->big_endian ? bytes[count - 1 - i] : bytes[i];
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(swapped, count, 0);
    (void)gcmp_read_le(&cursor, count, &bits);
    *found = gcmp_dtype_number((enum gradcmp_dtype)view->dtype, bits, out);
    return GRADCMP_OK;
}
