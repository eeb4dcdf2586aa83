/* Shards of a distributed checkpoint that hold one safetensors image each instead of torch.save
 * items (serialization_format=SAFETENSORS). */
#ifndef GCMP_FORMATS_DCP_SAFETENSORS_H
#define GCMP_FORMATS_DCP_SAFETENSORS_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

/* Where the first tensor's item is such an image, read the headers of all images and turn the items
 * into ranges of the elements themselves. The metadata names the beginning of the image as the
 * place of every tensor in it, so that tensors are found by their keys, and checked against type,
 * sizes and offsets that the metadata states. Otherwise nothing is changed. Errors: CORRUPT for a
 * tensor that the image does not hold, or not so; those of gcmp_st_open. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_place_safetensors(struct gradcmp_catalogue *catalogue,
                                                                struct gradcmp_error *error);

#endif
