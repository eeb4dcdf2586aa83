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
    const struct gcmp_node *fqn; /* a text */
    const uint64_t *offsets;     /* ndim of them; none for byte objects */
    union {
        const struct gcmp_node *info; /* _StorageInfo */
        const struct gcmp_node *path; /* is_read: the relative_path in it, a text */
    } as;
    uint64_t offset_bytes, length_bytes; /* is_read: where the item lies */
    uint32_t key_at, info_at;            /* for messages: bytes of the file */
    uint32_t tensor;                     /* number of its pair in `tensors` */
    uint32_t hash;                       /* of the tensor and the offsets */
    uint8_t ndim;
    uint8_t encoding; /* is_read: enum gcmp_dcp_encoding */
    bool is_read : 1;
    bool listed : 1; /* false: its tensor is not in `tensors` */
    bool used : 1;   /* for the user of the index; false at first */
};

/* A ChunkStorageMetadata whose node is gone. */
struct gcmp_dcp_chunk {
    const uint64_t *offsets, *sizes;
    uint32_t at; /* for messages: byte of the file */
    uint8_t offset_ndim, size_ndim;
};

/* The chunks of one tensor among those of all. */
struct gcmp_dcp_chunk_list {
    const struct gcmp_node *list; /* what held them, now empty */
    size_t first, count;
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
    struct gcmp_dcp_entry *entries;  /* malloced */
    size_t entry_count, entry_capacity;
    /* What was taken while the pickle was read (dcp_digest.h): */
    struct gcmp_dcp_chunk *chunks; /* malloced */
    size_t chunk_count, chunk_capacity;
    struct gcmp_dcp_chunk_list *lists; /* malloced; in the order of `tensors` */
    size_t list_count, list_capacity;
    const struct gcmp_node *storage; /* the dict whose pairs are the entries; NULL: none were */

    struct gcmp_dcp_slot **regions; /* of each tensor: hash table of its entries by their chunks */
    uint64_t seed;
    /* One item for each pair of `tensors`: */
    uint32_t *entry_counts;               /* how many entries it has */
    const struct gcmp_node **paths;       /* planner_data, or NULL */
    const struct gcmp_node **model_sizes; /* Megatron's shape before it was cut up, or NULL */
    const struct gcmp_dcp_chunk_list **chunk_lists; /* NULL: its list holds its chunks */
    bool megatron;                                  /* Megatron-Core's attributes are there */
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

/* The fields of a MetadataIndex, of a _StorageInfo and of a ChunkStorageMetadata, in the order of
 * these names. */
enum { GCMP_DCP_KEY_FQN, GCMP_DCP_KEY_OFFSET };
#define GCMP_DCP_KEY_FIELDS                                                                        \
    {                                                                                              \
        .names = { "fqn", "offset" }                                                               \
    }
enum { GCMP_DCP_INFO_PATH, GCMP_DCP_INFO_OFFSET, GCMP_DCP_INFO_LENGTH, GCMP_DCP_INFO_TRANSFORMS };
#define GCMP_DCP_INFO_FIELDS                                                                       \
    {                                                                                              \
        .names = { "relative_path", "offset", "length", "transform_descriptors" }                  \
    }
enum { GCMP_DCP_CHUNK_OFFSETS, GCMP_DCP_CHUNK_SIZES };
#define GCMP_DCP_CHUNK_FIELDS                                                                      \
    {                                                                                              \
        .names = { "offsets", "sizes" }                                                            \
    }

/* A key of the metadata: a text without NUL of bounded length; NULL for anything else. */
const char *gcmp_dcp_key_text(const struct gcmp_node *node, size_t *bytes);

/* The offset of a MetadataIndex; false where it is no sizes. Objects of bytes have none. */
bool gcmp_dcp_read_offset(const struct gcmp_node *offset, uint64_t *sizes, unsigned *ndim);

/* Copy sizes into the index; NULL without memory. */
uint64_t *gcmp_dcp_keep_sizes(struct gcmp_dcp_index *index, const uint64_t *sizes, unsigned ndim);

/* What a node is an object of, for messages. */
const char *gcmp_dcp_class_name(const struct gcmp_node *node);

/* The module of the classes that metadata is made of. */
#define GCMP_DCP_METADATA_MODULE "torch.distributed.checkpoint.metadata"

/* Return a failure at a byte of the file, or at a node of it. */
#define GCMP_DCP_FAIL_AT(index, at, error, code, ...)                                              \
    return gcmp_error_set((error), (code), (index)->path, (at), __VA_ARGS__)
#define GCMP_DCP_FAIL_NODE(index, node, error, code, ...)                                          \
    GCMP_DCP_FAIL_AT(index, (node) == NULL ? GRADCMP_NO_OFFSET : (node)->at, error, code,          \
                     __VA_ARGS__)

#endif
