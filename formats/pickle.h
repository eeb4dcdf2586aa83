/* A data-only pickle interpreter: protocols 0 to 5 become a graph of plain nodes. Nothing is
 * imported, called or executed; globals, calls and objects become inert nodes that keep their
 * arguments. Limits: input MAX_PICKLE_BYTES; work and memory proportional to the input (see
 * pickle.c). */
#ifndef GCMP_FORMATS_PICKLE_H
#define GCMP_FORMATS_PICKLE_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error.h"

enum gcmp_node_kind {
    GCMP_NODE_NONE,
    GCMP_NODE_BOOL,
    GCMP_NODE_INT,
    GCMP_NODE_BIGINT, /* an integer beyond 64 bits: little-endian two's complement in `text` */
    GCMP_NODE_FLOAT,
    GCMP_NODE_TEXT, /* UTF-8 (surrogates as "surrogatepass" writes them), may hold NUL */
    GCMP_NODE_BYTES,
    GCMP_NODE_TUPLE,
    GCMP_NODE_LIST,
    GCMP_NODE_DICT, /* items: key, value, key, value ..., in order of insertion; a later equal key
                       of text or integer replaces the value */
    GCMP_NODE_SET,
    GCMP_NODE_GLOBAL, /* text: "module name" with one space, e.g. "torch FloatStorage" */
    GCMP_NODE_CALL,   /* REDUCE, NEWOBJ, NEWOBJ_EX, INST, OBJ: callee, args; state from BUILD; items
                         from   APPENDS/SETITEMS on it (OrderedDict, defaultdict, ...), as in DICT or
                         LIST */
    GCMP_NODE_PERSID  /* persistent id; callee is its value */
};

struct gcmp_node {
    enum gcmp_node_kind kind;
    uint32_t at; /* byte in the pickle where the node was made (saturating), for messages */
    union {
        int64_t integer; /* INT, BOOL */
        double number;   /* FLOAT */
        struct {
            const char *bytes; /* TEXT, BYTES, GLOBAL, BIGINT; NUL-terminated */
            size_t length_bytes;
        } text;
        struct {
            struct gcmp_node **items;
            size_t count; /* nodes: a DICT of n pairs has 2 n */
        } list;           /* TUPLE, LIST, DICT, SET */
        struct {
            struct gcmp_node *callee, *args, *state; /* args and state may be NULL */
            struct gcmp_node *contents; /* LIST or DICT node of what was appended or set, or NULL */
        } call;
    } as;
};

/* Interpret one pickle from the cursor and leave the cursor behind its STOP. All nodes live in
 * `arena`. `path` names the file in errors; offsets are the cursor's. Errors: CORRUPT, LIMIT,
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_load(struct gcmp_cursor *cursor,
                                                      struct gcmp_arena *arena, const char *path,
                                                      struct gcmp_node **root,
                                                      struct gradcmp_error *error);

/* Look into nodes; all accept NULL and nodes of any kind, and then say "not there". */

/* True for a GLOBAL of exactly that module and name; several spellings are the caller's business.
 */
bool gcmp_node_is_global(const struct gcmp_node *node, const char *module, const char *name);
/* True for a CALL whose callee is that global. */
bool gcmp_node_is_call(const struct gcmp_node *node, const char *module, const char *name);
/* The value of a text key in a DICT, in the contents of a CALL (OrderedDict), or in the dict state
 * of a CALL (an object's attributes); NULL when there is none. */
const struct gcmp_node *gcmp_node_get(const struct gcmp_node *node, const char *key);
/* Number of items of a TUPLE, LIST, SET (pairs of a DICT, or of a CALL with contents); 0 otherwise.
 */
size_t gcmp_node_count(const struct gcmp_node *node);
/* Item of a TUPLE, LIST or SET (or of a CALL's contents); NULL out of range. */
const struct gcmp_node *gcmp_node_item(const struct gcmp_node *node, size_t index);
/* Key and value number `index` of a DICT or of a CALL with DICT contents. */
bool gcmp_node_pair(const struct gcmp_node *node, size_t index, const struct gcmp_node **key,
                    const struct gcmp_node **value);
/* The text of a TEXT node (a BYTES node too: Python 2 wrote names so), without NUL inside; else
 * NULL. */
const char *gcmp_node_text(const struct gcmp_node *node);
/* The value of an INT (or BOOL) node. */
bool gcmp_node_int(const struct gcmp_node *node, int64_t *out);
/* The value of a FLOAT or INT node. */
bool gcmp_node_number(const struct gcmp_node *node, double *out);
/* Sizes from a TUPLE or LIST, or a CALL of "torch Size" on one: non-negative integers, at most
 * `limit`. */
bool gcmp_node_sizes(const struct gcmp_node *node, uint64_t *sizes, unsigned limit,
                     unsigned *count);

#endif
