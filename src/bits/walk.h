/* From the nodes of a pickle to items: dicts, lists and objects are taken apart, tensors become
 * views of their records. Nothing is imported or called; an object of an unknown class is compared
 * by its structure. */
#ifndef GCMP_BITS_WALK_H
#define GCMP_BITS_WALK_H

#include "bits/item.h"
#include "formats/torch_file.h"

struct gcmp_bits_side;

/* An archive whose nodes are walked. */
struct gcmp_bits_archive {
    struct gcmp_torch_file *torch;
    struct gcmp_arena *arena; /* of its nodes */
    const char *prefix;       /* path of its root; "": the root's own parts */
    bool passing;   /* its file goes away: elements are taken into memory, within a limit */
    unsigned depth; /* archives around it */
};

/* Add all that an archive's object holds to side->items. Errors: CORRUPT and IO for records that
 * cannot be read; LIMIT for objects nested too deeply, or with so many shared parts that they grow
 * out of proportion; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_walk(struct gcmp_bits_side *side,
                                                    const struct gcmp_bits_archive *archive,
                                                    struct gradcmp_error *error);

/* --- parts, for tests and for each other --- */

/* Add a node as text that tells it apart from every other: keys of dicts, members of sets. False
 * where it is nested too deeply. */
bool gcmp_bits_node_text(struct gcmp_text *text, const struct gcmp_node *node);

/* Add a key as a part of a path, so that no other key, and no part that has no key, reads the same:
 * texts as they are, or in quotes, '\\' before '\'' and '\\', where they hold '/', a quote, a
 * backslash or a control, are empty, or read as something else ("0", "None", "(1, 2)"); a NUL is
 * shown as \0. False where it is nested too deeply. */
bool gcmp_bits_key_text(struct gcmp_text *text, const struct gcmp_node *key);

/* The name of a class or function as Python 3 spells it ("builtins.set"), into the arena. */
const char *gcmp_bits_class_name(struct gcmp_arena *arena, const struct gcmp_node *global);

/* Make an item of a node that is a NumPy array or scalar of plain numbers: elements row-major in
 * the host's byte order, in `arena`. *is_array tells whether it is one; others are left to the
 * structure. Errors: CORRUPT where shape and bytes disagree; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_numpy(const struct gcmp_node *node,
                                                     struct gcmp_arena *arena,
                                                     struct gcmp_bits_item *out, bool *is_array,
                                                     struct gradcmp_error *error);

#endif
