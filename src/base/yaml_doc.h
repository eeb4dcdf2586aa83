/* A YAML document as plain data: every node knows its line. Read from libyaml's events only, so
 * that nothing is constructed; aliases, depth and size have budgets, a key written twice in one
 * mapping is refused, and merge keys (`<<`) are resolved as YAML 1.1 says (a mapping's own keys
 * win). */
#ifndef GCMP_BASE_YAML_DOC_H
#define GCMP_BASE_YAML_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum gcmp_yaml_kind { GCMP_YAML_SCALAR = 1, GCMP_YAML_SEQUENCE, GCMP_YAML_MAPPING };

/* Owned by the arena of the document; an alias is the node that it names, shared. A SCALAR ends
 * behind its text, in the same memory: look at `kind` before `count`, and never copy a node. */
struct gcmp_yaml {
    enum gcmp_yaml_kind kind;
    uint32_t line;           /* from 1 */
    uint32_t expanded_nodes; /* nodes below, each alias counted as what it names */
    bool is_plain;    /* SCALAR: written without quotes, so it may be a number, bool or null */
    const char *text; /* SCALAR: NUL-terminated, no NUL inside; else NULL */
    size_t count;     /* SEQUENCE: items; MAPPING: pairs, in the order of the file */
    struct gcmp_yaml **items;
    struct gcmp_yaml **keys; /* MAPPING: scalars, or NULL for a sequence */
};

/* Read the one document in `bytes` (UTF-8; an empty one gives *out NULL). `path` is only for
 * messages. Errors: CORRUPT with "line N: ..." in the message, LIMIT past a budget, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_yaml_parse(struct gcmp_arena *arena, const char *path,
                                                     const char *bytes, size_t length_bytes,
                                                     struct gcmp_yaml **out,
                                                     struct gradcmp_error *error);

/* Read a file that the user named, of at most 16 MiB, and parse it. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_yaml_read(struct gcmp_arena *arena, const char *path,
                                                    struct gcmp_yaml **out,
                                                    struct gradcmp_error *error);

/* The value of a key, or NULL: no such key, or no mapping. */
const struct gcmp_yaml *gcmp_yaml_get(const struct gcmp_yaml *mapping, const char *key);

/* True for a plain null (~, null, Null, NULL or nothing). */
bool gcmp_yaml_is_null(const struct gcmp_yaml *node);

/* Read a scalar whole; false where it is none of the kind. A quoted scalar is text, never a number
 * or a bool. Bools are those of YAML 1.2 (true, false) and 1.1's yes, no, on, off. Counts: decimal
 * with optional underscores between digits. Reals take a decimal point whatever the locale. */
bool gcmp_yaml_bool(const struct gcmp_yaml *node, bool *out);
bool gcmp_yaml_count(const struct gcmp_yaml *node, uint64_t *out);
bool gcmp_yaml_real(const struct gcmp_yaml *node, double *out);

/* Fail at a node: "line N: ..." (CORRUPT). */
#define GCMP_YAML_FAIL(error, path, node, ...)                                                     \
    return gcmp_failure(gcmp_yaml_fill((error), (path), (node), __VA_ARGS__))
enum gradcmp_status gcmp_yaml_fill(struct gradcmp_error *error, const char *path,
                                   const struct gcmp_yaml *node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Fail unless `node` is a mapping whose keys are all in `known` (ended by NULL). The message names
 * the key that is not, and the nearest known one. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_yaml_check_keys(const struct gcmp_yaml *node,
                                                          const char *path, const char *what,
                                                          const char *const known[],
                                                          struct gradcmp_error *error);

#endif
