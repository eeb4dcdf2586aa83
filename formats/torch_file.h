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
    struct gcmp_node *root;
    bool big_endian; /* record "byteorder" */
};

/* Open the archive in [offset, offset + length) of a file; nodes and records live in `arena`. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_torch_open(struct gcmp_dir *dir, uint32_t file, uint64_t offset, uint64_t length,
                struct gcmp_arena *arena, struct gcmp_torch_file *out, struct gradcmp_error *error);

/* True where the node is a tensor rebuilt by one of the known functions (Parameter and subclass
 * wrappers included); reads nothing. */
bool gcmp_torch_is_tensor(const struct gcmp_node *node);

/* Describe the tensor of a node: record range, checksum, type, shape, strides; every number is
 * checked against the record. `decoded` stays NULL. Errors: CORRUPT, UNSUPPORTED (named), LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_tensor(const struct gcmp_torch_file *torch,
                                                       const struct gcmp_node *node,
                                                       struct gradcmp_extent *out,
                                                       struct gradcmp_error *error);

/* The element type of a GLOBAL "torch float32" and the like; NONE when unknown. */
enum gradcmp_dtype gcmp_torch_dtype(const struct gcmp_node *node);

#endif
