/* A torch.save archive: its pickle as nodes, and tensors in it as views of records. */
#ifndef GCMP_FORMATS_TORCH_FILE_H
#define GCMP_FORMATS_TORCH_FILE_H

#include "formats/pickle.h"
#include "formats/zip.h"
#include "gradcmp/sys/format.h"

struct gcmp_torch_file {
    struct gcmp_dir *dir;
    uint32_t file;
    struct gcmp_zip zip;
    const struct gcmp_zip_record *pickle; /* data.pkl: node->at counts from its first byte */
    struct gcmp_node *root;
    bool big_endian; /* record "byteorder" */
};

/* Open the archive in [offset, offset + length) of a file; nodes and records live in `arena`, the
 * bytes of the pickle do not stay. A TorchScript archive is UNSUPPORTED; the errors of zip.h and
 * pickle.h besides. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_torch_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t length,
                struct gcmp_arena *arena, struct gcmp_torch_file *out, struct gradcmp_error *error);

/* True where the node is a call of a function that rebuilds a tensor (Parameter and subclass
 * wrappers included), or of any function on a storage: a tensor that gcmp_torch_tensor may have to
 * refuse, but that must not be passed over. Reads nothing. */
bool gcmp_torch_is_tensor(const struct gcmp_node *node);

/* The local tensor of a DTensor, as stored; NULL for other nodes. */
const struct gcmp_node *gcmp_torch_local_tensor(const struct gcmp_node *node);

/* The shape of a tensor that gcmp_torch_tensor does not read, or of a NumPy array, as far as its
 * call states one: at most GRADCMP_MAX_NDIM axes. False, and 0 axes, where it does not. */
bool gcmp_torch_stated_shape(const struct gcmp_node *node, uint64_t *shape, unsigned *ndim);

/* True for a NumPy array that stands by itself. */
bool gcmp_torch_is_array(const struct gcmp_node *node);

/* The arguments (array, dtype, device, requires_grad) of the call that makes a tensor of an array
 * inside the pickle, wrappers taken off; NULL for other nodes. See torch_array.h. */
const struct gcmp_node *gcmp_torch_array_args(const struct gcmp_node *node);

/* Describe the tensor of a node: record range, checksum, type, shape, strides; every number is
 * checked against the record. The record holds exactly the elements that the storage states, and
 * the view lies inside; strides are 0 or more, those of axes of at most one element are row-major,
 * whatever the file says. The shape is not bounded by the record where a stride is 0. `decoded`
 * stays NULL. Errors: CORRUPT; UNSUPPORTED, with the global that is not known; LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_tensor(const struct gcmp_torch_file *torch,
                                                       const struct gcmp_node *node,
                                                       struct gradcmp_extent *out,
                                                       struct gradcmp_error *error);

/* Read the value of a tensor of one element, as gcmp_torch_tensor described it; *found is false
 * where its type is not one of numbers. Errors: IO. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_read_scalar(const struct gcmp_torch_file *torch,
                                                            const struct gradcmp_extent *view,
                                                            bool *found, double *out,
                                                            struct gradcmp_error *error);

/* The element type of a GLOBAL "torch float32" and the like; NONE when unknown. */
enum gradcmp_dtype gcmp_torch_dtype(const struct gcmp_node *node);

/* The element type of a storage class ("torch FloatStorage"); NONE when unknown. An untyped storage
 * counts bytes: UINT8. */
enum gradcmp_dtype gcmp_torch_storage_dtype(const struct gcmp_node *node);

#endif
