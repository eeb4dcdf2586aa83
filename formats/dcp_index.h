/* One metadata file of a distributed checkpoint with its indexes: what is listed, and which entry
 * of storage_data belongs to a chunk. */
#ifndef GCMP_FORMATS_DCP_INDEX_H
#define GCMP_FORMATS_DCP_INDEX_H

#include "base/dir.h"
#include "base/map.h"
#include "formats/pickle.h"
#include "gradcmp/sys/catalogue.h"

/* An entry of storage_data. */
struct gcmp_dcp_entry {
    const struct gcmp_node *info;   /* _StorageInfo */
    const struct gcmp_node *offset; /* sizes; NULL or None for byte objects */
    uint32_t tensor;                /* number of its pair in `tensors` */
    uint32_t hash;                  /* of the tensor and the offsets */
    bool listed;                    /* false: its tensor is not in `tensors` */
    bool used;                      /* for the user of the index; false at first */
};

/* Several attributes at once, for objects that number millions. Pickles write an attribute's name
 * once and refer to it from then on, so the node that bore a name is remembered. */
enum { GCMP_DCP_MAX_FIELDS = 4 };
struct gcmp_dcp_fields {
    const char *names[GCMP_DCP_MAX_FIELDS];
    const struct gcmp_node *seen[GCMP_DCP_MAX_FIELDS]; /* NULL at first */
    const struct gcmp_node *values[GCMP_DCP_MAX_FIELDS];
};

struct gcmp_dcp_index {
    char *path; /* for messages */
    uint64_t bytes;
    struct gcmp_arena arena;         /* owns nodes, keys and arrays */
    const struct gcmp_node *tensors; /* state_dict_metadata: {key: metadata}, keys without NUL */
    struct gcmp_map tensor_index;    /* key -> pair number in `tensors` */
    struct gcmp_dcp_entry *entries;
    struct gcmp_dcp_slot **regions; /* of each tensor: hash table of its entries by their chunks */
    uint64_t seed;
    struct gcmp_dcp_fields key_fields; /* fqn, offset */
    /* One item for each pair of `tensors`: */
    uint32_t *entry_counts;               /* how many entries it has */
    const struct gcmp_node **paths;       /* planner_data, or NULL */
    const struct gcmp_node **model_sizes; /* Megatron's shape before it was cut up, or NULL */
    bool megatron;                        /* Megatron-Core's attributes are there */
};

/* Read one metadata file. `out` must be freed in any case. Errors: IO; CORRUPT at the file's byte;
 * LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_index_load(struct gcmp_dir *dir, const char *name,
                                                         struct gcmp_dcp_index *out,
                                                         struct gradcmp_error *error);
void gcmp_dcp_index_free(struct gcmp_dcp_index *index);

/* Find the entry of a chunk of pair `tensor`; a byte object is a chunk without offsets. NULL: none.
 */
struct gcmp_dcp_entry *gcmp_dcp_index_find(const struct gcmp_dcp_index *index, size_t tensor,
                                           unsigned ndim, const uint64_t *offsets);

/* An attribute of an object that was made by NEWOBJ and BUILD of a dict; NULL when absent. */
const struct gcmp_node *gcmp_dcp_attribute(const struct gcmp_node *object, const char *name);

/* Set values[i] to the attribute names[i], or NULL. */
void gcmp_dcp_read_fields(struct gcmp_dcp_fields *fields, const struct gcmp_node *object);

/* What a node is an object of, for messages. */
const char *gcmp_dcp_class_name(const struct gcmp_node *node);

/* The module of the classes that metadata is made of. */
#define GCMP_DCP_METADATA_MODULE "torch.distributed.checkpoint.metadata"

/* Return a failure at a node of the file. */
#define GCMP_DCP_FAIL_NODE(index, node, error, code, ...)                                          \
    return gcmp_error_set((error), (code), (index)->path,                                          \
                          (node) == NULL ? GRADCMP_NO_OFFSET : (node)->at, __VA_ARGS__)

#endif
