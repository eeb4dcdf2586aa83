/* Reads version 2 B-trees of chunks (BTHD, BTIN, BTLF): records of type 10 (not filtered) and 11.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "h5helper/newer_index.h"

/* Limits: levels of a tree; a node's size. Signature, version and type begin a node. */
enum { MAX_DEPTH = 16, MAX_NODE_BYTES = 1 << 20, HEAD_BYTES = 6, PLAIN_TYPE = 10, FILTERED_TYPE };

/* A node still to be read. */
struct node {
    uint64_t address, records;
    unsigned level; /* 0: a leaf */
};

struct tree {
    struct elements *elements;
    size_t node_bytes, record_bytes;
    unsigned type, depth;
    size_t count_bytes;                /* of a child's number of records */
    size_t total_bytes[MAX_DEPTH + 1]; /* of the number below a child at a level; 0 for leaves */
    uint64_t left;                     /* nodes that the tree can have */
    struct node stack[MAX_DEPTH * 4096];
    size_t height;
};

static bool fail(const struct elements *elements) {
    return helper_has_failed() ? false
                               : newer_fail(elements->object, elements->object->header_bytes,
                                            "index of chunks: a damaged tree");
}

/* Bytes in which numbers up to a limit are stored. */
static size_t bytes_for(uint64_t limit) {
    size_t bits = 0;
    while (limit > 1) {
        limit >>= 1;
        bits++;
    }
    return bits / 8 + 1;
}

/* Work out the sizes of the fields in nodes, which follow from how many records a tree of each
 * height can hold. */
static bool measure(struct tree *tree) {
    if (tree->node_bytes < HEAD_BYTES + CHECKSUM_BYTES + tree->record_bytes) {
        return false;
    }
    uint64_t most =
        (tree->node_bytes - HEAD_BYTES - CHECKSUM_BYTES) / tree->record_bytes; /* of a leaf */
    uint64_t total = most;
    tree->count_bytes = bytes_for(most);
    tree->total_bytes[0] = 0;
    for (unsigned level = 1; level <= tree->depth; level++) {
        size_t pointer = ADDRESS_BYTES + tree->count_bytes + tree->total_bytes[level - 1];
        if (tree->node_bytes < HEAD_BYTES + CHECKSUM_BYTES + pointer) {
            return false;
        }
        most = (tree->node_bytes - HEAD_BYTES - CHECKSUM_BYTES - pointer) /
               (tree->record_bytes + pointer);
        if (!gcmp_mul_u64(most + 1, total, &total) || !gcmp_add_u64(total, most, &total)) {
            total = UINT64_MAX;
        }
        tree->total_bytes[level] = bytes_for(total);
    }
    return true;
}

/* Take a record: where a chunk lies, and its place in the grid. */
static bool take_record(struct tree *tree, struct gcmp_cursor *cursor) {
    struct elements *elements = tree->elements;
    const struct chunks *chunks = &elements->object->chunks;
    struct element element;
    uint64_t index = 0;
    bool inside = true;
    if (!read_element(elements, cursor, &element)) {
        return false;
    }
    for (int d = 0; d < chunks->ndim; d++) {
        uint64_t at,
            grid = chunks->sizes[d] / chunks->chunk[d] + (chunks->sizes[d] % chunks->chunk[d] != 0);
        if (!gcmp_read_u64le(cursor, &at)) {
            return false;
        }
        inside = inside && at < grid;
        index = inside ? index * grid + at : 0;
    }
    if (inside && index < elements->count) {
        elements->at[index] = element;
    }
    return true;
}

static bool push(struct tree *tree, struct node node) {
    if (tree->height == sizeof tree->stack / sizeof *tree->stack || tree->left == 0) {
        return false;
    }
    tree->left--;
    tree->stack[tree->height++] = node;
    return true;
}

static bool push_children(struct tree *tree, const struct node *node, struct gcmp_cursor *cursor) {
    for (uint64_t i = 0; i <= node->records; i++) {
        struct node child = {.level = node->level - 1};
        uint64_t ignored;
        if (!gcmp_read_u64le(cursor, &child.address) ||
            !gcmp_read_le(cursor, (unsigned)tree->count_bytes, &child.records) ||
            (node->level > 1 &&
             !gcmp_read_le(cursor, (unsigned)tree->total_bytes[node->level - 1], &ignored)) ||
            !push(tree, child)) {
            return false;
        }
    }
    return true;
}

/* A node's checksum stands behind what is used of it. */
static bool read_node(struct tree *tree, const struct node *node) {
    size_t pointer = ADDRESS_BYTES + tree->count_bytes +
                     (node->level > 1 ? tree->total_bytes[node->level - 1] : 0);
    if (node->records > tree->node_bytes) {
        return false;
    }
    size_t bytes = HEAD_BYTES + (size_t)node->records * tree->record_bytes + CHECKSUM_BYTES +
                   (node->level > 0 ? ((size_t)node->records + 1) * pointer : 0);
    if (bytes > tree->node_bytes) {
        return false;
    }
    unsigned char *read = newer_read_block(tree->elements->object, node->address, bytes,
                                           node->level > 0 ? "BTIN" : "BTLF");
    if (read == NULL) {
        return false;
    }
    struct gcmp_cursor cursor =
        gcmp_cursor_make(read + HEAD_BYTES, bytes - HEAD_BYTES - CHECKSUM_BYTES, 0);
    bool good = read[4] == 0 && read[5] == tree->type;
    for (uint64_t i = 0; i < node->records && good; i++) {
        good = take_record(tree, &cursor);
    }
    good = good && (node->level == 0 || push_children(tree, node, &cursor));
    free(read);
    return good;
}

/* Read the tree's header; the root is then on the stack. */
static bool read_header(struct tree *tree) {
    enum { BYTES = HEAD_BYTES + 4 + 2 + 2 + 2 + ADDRESS_BYTES + 2 + LENGTH_BYTES + CHECKSUM_BYTES };
    const struct object *object = tree->elements->object;
    unsigned char *read = newer_read_block(object, object->data_address, BYTES, "BTHD");
    if (read == NULL) {
        return false;
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(read + HEAD_BYTES, BYTES - HEAD_BYTES, 0);
    uint32_t node_bytes = 0;
    uint16_t record_bytes = 0, depth = 0, records = 0;
    struct node root = {0};
    bool good = read[4] == 0 && read[5] == tree->type && gcmp_read_u32le(&cursor, &node_bytes) &&
                gcmp_read_u16le(&cursor, &record_bytes) && gcmp_read_u16le(&cursor, &depth) &&
                gcmp_skip(&cursor, 2) && gcmp_read_u64le(&cursor, &root.address) &&
                gcmp_read_u16le(&cursor, &records);
    free(read);
    tree->node_bytes = node_bytes;
    tree->depth = depth;
    root.level = depth;
    root.records = records;
    good = good && record_bytes == tree->record_bytes && depth <= MAX_DEPTH &&
           node_bytes <= MAX_NODE_BYTES && measure(tree);
    if (good && root.address == UINT64_MAX) {
        return true;
    }
    return good && push(tree, root);
}

bool read_tree(struct elements *elements) {
    const struct object *object = elements->object;
    struct tree *tree = calloc(1, sizeof *tree);
    if (tree == NULL) {
        helper_fail(GRADCMP_ERROR_MEMORY, "out of memory");
        return false;
    }
    tree->elements = elements;
    tree->type = elements->filtered ? FILTERED_TYPE : PLAIN_TYPE;
    tree->record_bytes = element_bytes(elements) + (size_t)object->chunks.ndim * 8;
    tree->left = driver_file_bytes() / HEAD_BYTES; /* no node lies within another */
    bool good = make_elements(elements, object->chunks.count) && read_header(tree);
    while (good && tree->height > 0) {
        struct node node = tree->stack[--tree->height];
        good = read_node(tree, &node);
    }
    free(tree);
    return good || fail(elements);
}
