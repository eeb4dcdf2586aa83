/* The safetensors files of one checkpoint, and how they are put together. */
#ifndef GCMP_FORMATS_SAFETENSORS_SET_H
#define GCMP_FORMATS_SAFETENSORS_SET_H

#include "formats/safetensors_image.h"
#include "gradcmp/sys/catalogue.h"

struct gcmp_st_set {
    struct gcmp_st_image *images;
    size_t count, capacity;
};

void gcmp_st_set_close(struct gcmp_st_set *set);

/* Open one more file by its name below the checkpoint. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_st_set_add(struct gradcmp_catalogue *catalogue,
                                                     struct gcmp_st_set *set, const char *name,
                                                     struct gradcmp_error *error);

/* Open the files that an index (`*.safetensors.index.json`) names. The index and the files must
 * list the same tensors. Errors: CORRUPT at the index's byte, or for a tensor that only one side
 * lists; IO for a file that is not there; those of gcmp_st_open. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_st_read_index(struct gradcmp_catalogue *catalogue,
                                                        const char *name, struct gcmp_st_set *set,
                                                        struct gradcmp_error *error);

/* Set `start` of every tensor of files that ranks wrote, with "rank" and "world_size" in their
 * metadata and nothing of offsets: shards of axis 0, in order of rank. Only where the headers prove
 * that it is so, else UNSUPPORTED: see safetensors_ranks.c. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_st_place_ranks(struct gradcmp_catalogue *catalogue,
                                                         struct gcmp_st_set *set,
                                                         struct gradcmp_error *error);

/* Add the tensors of all files to the catalogue, those of one name as pieces of one. Errors:
 * CORRUPT where pieces differ in type or axes, or a name occurs twice without `start`. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_st_join(struct gradcmp_catalogue *catalogue,
                                                  const struct gcmp_st_set *set,
                                                  struct gradcmp_error *error);

#endif
