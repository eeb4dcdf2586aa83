/* Tensors whose bytes are inside of the pickle: torch saves those of devices that it has no storage
 * for (XLA, HPU, NPU) as NumPy arrays. Source: torch/_tensor.py (Tensor._reduce_ex_internal) and
 * torch/_utils.py (_rebuild_device_tensor_from_numpy) of 1.6 to 2.15; numpy/core/multiarray
 * (_reconstruct and the state of an ndarray). */
#ifndef GCMP_FORMATS_TORCH_ARRAY_H
#define GCMP_FORMATS_TORCH_ARRAY_H

#include "formats/torch_file.h"

/* Where the bytes of an array are in the file, and what they mean. */
struct gcmp_torch_array {
    uint64_t shape[GRADCMP_MAX_NDIM];
    uint64_t offset_bytes; /* of the opcode in the file that holds the bytes or the text */
    uint64_t length_bytes; /* of the bytes, or of the text in UTF-8 */
    uint8_t ndim;
    uint8_t dtype;       /* enum gradcmp_dtype; what the tensor was */
    uint8_t array_dtype; /* of the array: bfloat16 has no NumPy type and becomes float32 */
    uint8_t big_endian, fortran;
};

/* Describe the tensor of a node for which gcmp_torch_array_args is not NULL; nothing is decoded.
 * Errors: CORRUPT where shape and bytes disagree; UNSUPPORTED; LIMIT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_array(const struct gcmp_torch_file *torch,
                                                      const struct gcmp_node *node,
                                                      struct gcmp_torch_array *out,
                                                      struct gradcmp_error *error);

/* Read the bytes of an array from its file and decode them into memory, or where they are many into
 * a file without a name (decoded.h): elements of array->dtype in the byte order of the array.
 * Errors: IO; CORRUPT where the file says something else there, or where a bfloat16's array holds a
 * value that bfloat16 has not; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_torch_array_decode(struct gcmp_dir *dir, uint32_t file,
                                                             const struct gcmp_torch_array *array,
                                                             struct gradcmp_extent *out,
                                                             struct gradcmp_error *error);

#endif
