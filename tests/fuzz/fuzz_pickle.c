/* Fuzz target: the pickle interpreter and everything that looks into its nodes. The input is one
 * pickle, or several behind each other. */
#include <stdlib.h>

#include "formats/pickle.h"

enum { MAX_VISITS = 2000, STACK_NODES = 1000, MAX_PICKLES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Call every accessor; what they return is not of interest, only that they return. */
static void look_at(const struct gcmp_node *node, struct gcmp_arena *arena) {
    const struct gcmp_node *key, *value;
    const unsigned char *bytes;
    uint64_t sizes[8];
    int64_t integer;
    double number;
    size_t length;
    unsigned count;
    bool seen = gcmp_node_is_call(node, "collections", "OrderedDict");
    seen |= gcmp_node_get(node, "state") != NULL;
    seen |= gcmp_node_text(node) != NULL;
    seen |= gcmp_node_int(node, &integer);
    seen |= gcmp_node_number(node, &number);
    seen |= gcmp_node_sizes(node, sizes, 8, &count);
    seen |= gcmp_node_global(node) != NULL;
    seen |= gcmp_node_arg(node, 1) != NULL;
    seen |= gcmp_node_is_bytes(node) &&
            gcmp_node_bytes(node, arena, &bytes, &length, NULL) == GRADCMP_OK;
    for (size_t i = 0; i < gcmp_node_count(node) && i < 64; i++) {
        seen |= gcmp_node_pair(node, i, &key, &value);
        seen |= gcmp_node_item(node, i) != NULL;
    }
    (void)seen;
}

/* Visit nodes with a stack of fixed size and a bound on visits, since the graph has cycles. */
static void visit(const struct gcmp_node *root, struct gcmp_arena *arena) {
    const struct gcmp_node *stack[STACK_NODES] = {root};
    size_t height = 1;
    for (int visits = 0; height > 0 && visits < MAX_VISITS; visits++) {
        const struct gcmp_node *node = stack[--height];
        look_at(node, arena);
        const struct gcmp_node *next[4] = {NULL};
        if (node->kind == GCMP_NODE_CALL || node->kind == GCMP_NODE_PERSID) {
            next[0] = node->as.call.callee;
            next[1] = node->as.call.args;
            next[2] = node->as.call.state;
            next[3] = node->as.call.contents;
        }
        for (size_t i = 0; i < 4; i++) {
            if (next[i] != NULL && height < STACK_NODES) {
                stack[height++] = next[i];
            }
        }
        bool holds = node->kind == GCMP_NODE_TUPLE || node->kind == GCMP_NODE_LIST ||
                     node->kind == GCMP_NODE_DICT || node->kind == GCMP_NODE_SET;
        for (size_t i = 0; holds && i < node->as.list.count && height < STACK_NODES; i++) {
            stack[height++] = node->as.list.items[i];
        }
    }
}

static bool take(void *user, unsigned which, const struct gcmp_node *container,
                 struct gcmp_node *const *items, size_t count) {
    visit(container, user);
    for (size_t i = 0; i < count && i < 64; i++) {
        visit(items[i], user);
    }
    return which < GCMP_PICKLE_DIGEST_KEYS;
}

/* The same pickle with a digest: it may give up, but must not read what a plain run refuses. What
 * it recycled must not be seen again, which a memory checker tells. */
static void load_digested(struct gcmp_cursor cursor, enum gradcmp_status plain) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    const struct gcmp_pickle_digest digest = {
        .of = {{"storage_data", GCMP_NODE_DICT}, {"chunks", GCMP_NODE_LIST}},
        .take = take,
        .user = &arena};
    struct gcmp_node *root;
    if (gcmp_pickle_load_digested(&cursor, &arena, "fuzz", &digest, &root, NULL) == GRADCMP_OK) {
        if (plain != GRADCMP_OK) {
            abort();
        }
        visit(root, &arena);
    }
    gcmp_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_cursor cursor = gcmp_cursor_make(data, size, 0);
    enum gradcmp_status status = GRADCMP_OK;
    for (int i = 0; i < MAX_PICKLES && status == GRADCMP_OK && gcmp_cursor_left(&cursor) > 0; i++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gradcmp_error error = {0};
        struct gcmp_node *root;
        struct gcmp_cursor again = cursor;
        size_t before = cursor.at_bytes;
        status = gcmp_pickle_load(&cursor, &arena, "fuzz", &root, &error);
        if (status == GRADCMP_OK) {
            visit(root, &arena);
        } else if (root != NULL || cursor.at_bytes != before || error.message[0] == '\0' ||
                   error.offset_bytes > size) {
            abort(); /* a failure that does not keep to the header */
        }
        gcmp_arena_free(&arena);
        load_digested(again, status);
    }
    return 0;
}
