/* A data-only pickle interpreter: protocols 0 to 5 become a graph of plain nodes. Nothing is
 * imported, called or executed; globals, calls and objects become inert nodes that keep their
 * arguments. Limits: input GCMP_PICKLE_MAX_BYTES; work and memory proportional to the input (see
 * pickle_vm.c).
 *
 * The graph is not a tree: the memo makes nodes shared, and lists, dicts and calls can hold
 * themselves. Whoever walks it needs a bound on depth and on the number of visits. The functions
 * below look at a fixed depth and never loop. */
#ifndef GCMP_FORMATS_PICKLE_H
#define GCMP_FORMATS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/error.h"

/* Longest input that is interpreted. */
#define GCMP_PICKLE_MAX_BYTES ((size_t)INT32_MAX)

enum gcmp_node_kind {
    GCMP_NODE_NONE,
    GCMP_NODE_BOOL,
    GCMP_NODE_INT,
    GCMP_NODE_BIGINT, /* an integer beyond 64 bits: little-endian two's complement in `text` */
    GCMP_NODE_FLOAT,
    GCMP_NODE_TEXT,  /* UTF-8 (surrogates as "surrogatepass" writes them), may hold NUL */
    GCMP_NODE_BYTES, /* also Python 2's str (STRING, BINSTRING, SHORT_BINSTRING): its encoding is
                        not known */
    GCMP_NODE_TUPLE,
    GCMP_NODE_LIST,
    GCMP_NODE_DICT,   /* items: key, value, key, value ..., in order of insertion; a later equal key
                         of text, bytes or integer replaces the value (True is 1, as in Python; a
                         float key is not matched with anything) */
    GCMP_NODE_SET,    /* frozensets too; members are kept as written */
    GCMP_NODE_GLOBAL, /* text: "module name" with one space, e.g. "torch FloatStorage" */
    GCMP_NODE_CALL,   /* REDUCE, NEWOBJ, NEWOBJ_EX, INST, OBJ: callee, args (a TUPLE; keyword
                         arguments of NEWOBJ_EX, where there are any, as a DICT at its end); state
                         from the last BUILD; items from APPENDS/SETITEMS on it (OrderedDict,
                         defaultdict, ...), as in DICT or LIST */
    GCMP_NODE_PERSID, /* persistent id; callee is its value */
    GCMP_NODE_RECYCLED /* what a digest took and is referred to again; only with a digest */
};

/* A node is allocated only as large as its kind needs: never copy one by value. */
struct gcmp_node {
    enum gcmp_node_kind kind;
    uint32_t at; /* for messages: opcode that made the node, from the first byte of the cursor's
                    bytes (so base_bytes + at is the byte of the file); saturating. What is
                    shared (None, True, and integers and tuples that repeat): the first such. Of
                    nodes that hold others, an opcode makes one of a kind. */
    union {
        int64_t integer; /* INT, BOOL */
        double number;   /* FLOAT */
        struct {
            const char *bytes; /* TEXT, BYTES, GLOBAL, BIGINT; NUL-terminated */
            size_t length_bytes;
        } text;
        struct {
            struct gcmp_node **items;
            size_t count;         /* nodes: a DICT of n pairs has 2 n */
            uint32_t room, index; /* private to pickle*.c; a TUPLE lacks them */
        } list;                   /* TUPLE, LIST, DICT, SET */
        struct {
            struct gcmp_node *callee, *args, *state; /* args and state may be NULL */
            struct gcmp_node *contents; /* LIST or DICT node of what was appended or set, or NULL */
        } call;
    } as;
};

/* Interpret one pickle from the cursor and leave the cursor behind its STOP. All nodes live in
 * `arena`. `path` names the file in errors; offsets are those of the opcode at fault, in the
 * file. Errors: CORRUPT; UNSUPPORTED (a protocol above 5, extension codes, out-of-band buffers);
 * LIMIT; MEMORY. On failure *root is NULL and the cursor is where it was; the arena keeps what was
 * made. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pickle_load(struct gcmp_cursor *cursor,
                                                      struct gcmp_arena *arena, const char *path,
                                                      struct gcmp_node **root,
                                                      struct gradcmp_error *error);

/* Most of a large pickle may be one container of a million small objects, of which few numbers are
 * needed. A digest is shown the items of such containers when they are added, in batches, and keeps
 * what it wants of them; the containers stay empty, and the nodes of each batch are recycled: where
 * the pickle refers to them again, there is a RECYCLED node. */
enum { GCMP_PICKLE_DIGEST_KEYS = 2 };
struct gcmp_pickle_digest {
    struct {
        const char *key;          /* containers that are the value of this key, in whatever dict, */
        enum gcmp_node_kind kind; /* and a LIST or a DICT */
    } of[GCMP_PICKLE_DIGEST_KEYS];
    /* Take the items (of a DICT: key, value, key, value ...) that are added to a container of
     * of[which]. Nodes that hold text (TEXT, BYTES, BIGINT, GLOBAL) and `container` last as long as
     * the arena; all others are gone after the call. False ends the run. */
    bool (*take)(void *user, unsigned which, const struct gcmp_node *container,
                 struct gcmp_node *const *items, size_t count);
    void *user;
};

/* gcmp_pickle_load with a digest. It fails besides, with any code, where the digest takes
 * something not, and where batches cannot be kept apart from the rest. Whoever calls it loads
 * without a digest then, and where a RECYCLED node is among what it needs, so that neither result
 * nor message depends on the digest. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_pickle_load_digested(struct gcmp_cursor *cursor, struct gcmp_arena *arena, const char *path,
                          const struct gcmp_pickle_digest *digest, struct gcmp_node **root,
                          struct gradcmp_error *error);
/* True for a container whose items the digest took. */
bool gcmp_node_is_digested(const struct gcmp_node *node);

/* Look into nodes; all accept NULL and nodes of any kind, and then say "not there". */

/* True for a GLOBAL of exactly that module and name; several spellings are the caller's business.
 */
bool gcmp_node_is_global(const struct gcmp_node *node, const char *module, const char *name);
/* True for a CALL whose callee is that global; through "copy_reg _reconstructor" and
 * "copyreg __newobj__", which name the class in their first argument (protocols 0 and 1). */
bool gcmp_node_is_call(const struct gcmp_node *node, const char *module, const char *name);
/* Argument of a CALL; NULL out of range. */
const struct gcmp_node *gcmp_node_arg(const struct gcmp_node *node, size_t index);

/* Pairs. A DICT has them; a CALL has those that were set on it (OrderedDict, defaultdict) and,
 * before these, for OrderedDict, Counter and dict, those of its first argument, a dict or a list of
 * (key, value): so older protocols wrote them. */

/* The value of a text (or bytes) key among the pairs, or, of a CALL without that key, in its state
 * (an object's attributes: a dict, or the tuple (dict, slots)); NULL when there is none. A linear
 * search: whoever needs many keys of a large dict goes through the pairs once. */
const struct gcmp_node *gcmp_node_get(const struct gcmp_node *node, const char *key);
/* The same in a state that is held elsewhere than in a CALL (an argument of a rebuild function). */
const struct gcmp_node *gcmp_node_state_get(const struct gcmp_node *state, const char *key);
/* Number of items of a TUPLE, LIST, SET, or of a CALL's appended contents; number of pairs of a
 * DICT or a CALL with pairs; 0 otherwise. */
size_t gcmp_node_count(const struct gcmp_node *node);
/* Item of a TUPLE, LIST or SET (or of a CALL's contents); NULL out of range. */
const struct gcmp_node *gcmp_node_item(const struct gcmp_node *node, size_t index);
/* Pair number `index`; false out of range. */
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
/* True for BYTES and for the calls that mean bytes: "_codecs encode" of a text as latin1 (protocol
 * 2), bytes and bytearray on any of these or without arguments. */
bool gcmp_node_is_bytes(const struct gcmp_node *node);
/* Point *bytes at those bytes, in the node or decoded into `arena`. Errors: CORRUPT where the node
 * is something else or the text holds a character over 255; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_node_bytes(const struct gcmp_node *node, struct gcmp_arena *arena, const unsigned char **bytes,
                size_t *length_bytes, struct gradcmp_error *error);
/* Where a node's opcode stands, in bytes from the first of the pickle; 0 for NULL. */
uint64_t gcmp_node_at(const struct gcmp_node *node);

/* What a node is called in messages: "a list", "an integer"; "nothing" for NULL. */
const char *gcmp_node_kind_name(const struct gcmp_node *node);
/* The name of a GLOBAL, or of the global that a CALL calls, as "module.name" is written in a
 * pickle: "module name"; NULL for others. */
const char *gcmp_node_global(const struct gcmp_node *node);

#endif
