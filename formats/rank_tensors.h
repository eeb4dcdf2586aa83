/* Tensors in one rank's torch.save file, as stored tensors of a catalogue. */
#ifndef GCMP_FORMATS_RANK_TENSORS_H
#define GCMP_FORMATS_RANK_TENSORS_H

#include "base/map.h"
#include "formats/torch_array.h"

/* Arrays inside of pickles, by the source that each became: the catalogue's format_data. */
struct gcmp_rank_arrays {
    struct gcmp_rank_array {
        uint32_t source;
        struct gcmp_torch_array array;
    } * list; /* sorted by source; in the catalogue's arena */
    size_t count, capacity;
};

/* One file under way. */
struct gcmp_rank_reader {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_rank_arrays *arrays; /* of the whole catalogue */
    struct gcmp_arena arena;         /* nodes and records of the file */
    struct gcmp_torch_file torch;
    struct gcmp_map sources; /* record and element type -> source */
};

/* What a tensor is called; texts live in the catalogue's arena or are literals. */
struct gcmp_rank_tensor {
    const char *key, *name, *state;
    const struct gradcmp_coords *coords; /* in the catalogue's arena */
    uint8_t layout;                      /* enum gradcmp_layout */
};

/* Make the empty list of arrays and set catalogue->format_data. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_arrays_make(struct gradcmp_catalogue *catalogue,
                                                           struct gcmp_rank_arrays **out,
                                                           struct gradcmp_error *error);

/* Open a file by its relative name. After use, also after failure: gcmp_rank_reader_close. Errors
 * of gcmp_dir_add and gcmp_torch_open. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_reader_open(struct gcmp_rank_reader *reader,
                                                           struct gradcmp_catalogue *catalogue,
                                                           struct gcmp_rank_arrays *arrays,
                                                           const char *name,
                                                           struct gradcmp_error *error);
/* The same for an archive in a range of a file; arrays inside of its pickle cannot be added. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_rank_reader_open_range(struct gcmp_rank_reader *reader, struct gradcmp_catalogue *catalogue,
                            const struct gradcmp_source *range, struct gradcmp_error *error);
void gcmp_rank_reader_close(struct gcmp_rank_reader *reader);

/* Append the tensor of a node: one piece, the whole tensor. Tensors that share a record share a
 * source. A node that is no tensor, or one that cannot be read, is an error that names the key.
 * *out (NULL allowed) is valid until the next addition. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_reader_add(struct gcmp_rank_reader *reader,
                                                          const struct gcmp_rank_tensor *tensor,
                                                          const struct gcmp_node *node,
                                                          struct gradcmp_stored **out,
                                                          struct gradcmp_error *error);

/* resolve() of the formats that are read so. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_resolve(const struct gradcmp_catalogue *catalogue,
                                                       uint32_t source, struct gradcmp_extent *out,
                                                       struct gradcmp_error *error);

/* Receives a value that is no dict, under its dotted name, which lives in the catalogue's arena. */
typedef enum gradcmp_status (*gcmp_rank_visit_fn)(void *user, const char *name,
                                                  const struct gcmp_node *node,
                                                  struct gradcmp_error *error);

/* Go through a state dict in its order; dicts in it are entered, and their keys joined with dots.
 * LIMIT for dicts nested too deeply, names that are too long, or too many for the pickle. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_rank_walk(struct gcmp_rank_reader *reader,
                                                    const struct gcmp_node *dict,
                                                    gcmp_rank_visit_fn visit, void *user,
                                                    struct gradcmp_error *error);

/* Fail at a node of the reader's file. */
#define GCMP_RANK_FAIL(reader, node, error, code, ...)                                             \
    return gcmp_error_set((error), (code),                                                         \
                          gcmp_dir_file_path((reader)->torch.dir, (reader)->torch.file),           \
                          (reader)->torch.pickle->offset_bytes + gcmp_node_at(node), __VA_ARGS__)

#endif
