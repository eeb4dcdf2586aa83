/* Rules of a file that the user names (--map): they bring parameters of one framework to the names
 * and shapes of another. Everything is done on slabs; no tensor is read.
 *
 * The file is YAML:
 *
 *     layers: 4                       # L, where the names do not tell it; optional
 *     rules:                          # applied in this order, each to what those before it left
 *       - rename: REGEX               # POSIX extended, matches the whole name
 *         to: NAME                    # \1 .. \9 are what its groups matched, \0 the whole name
 *       - split: REGEX                # one parameter becomes several, along an axis
 *         into: [NAME, NAME, ...]
 *         parts: [2, 1, 1]            # their shares; equal ones by default
 *         groups: 8                   # how often these shares repeat along the axis; once
 *         axis: 0                     # 0 by default
 *       - concat: [REGEX, NAME, ...]  # several become one: the first one's match names the others
 *         to: NAME                    # parts, groups, axis as in split
 *       - transpose: REGEX            # of two axes
 *         to: NAME                    # optional
 *       - layer: REGEX                # which layer it is of, last of all
 *         l: embedding                # or head, or l itself (1 is the first layer)
 *         index: \1                   # in place of l: the layer's number, from 0
 *
 * In place of `parts` and `groups`, `heads: 32` and `query_groups: 8` say that a split or concat of
 * three is Megatron's fused attention: for each query group the rows of its query heads, of its
 * key, of its value. `heads: arguments` takes both from the checkpoint. Every rule may have
 * `apply: baseline` or `apply: candidate`. */
#ifndef GCMP_UNSHARD_MAPPING_H
#define GCMP_UNSHARD_MAPPING_H

#include "base/error.h"
#include "gradcmp/sys/parameter.h"

/* What a checkpoint is to the command; a bit each. ALONE: the only one. */
enum gcmp_mapping_side {
    GCMP_MAPPING_BASELINE = 1,
    GCMP_MAPPING_CANDIDATE = 2,
    GCMP_MAPPING_ALONE = 4
};

struct gcmp_mapping;

/* Read a file of rules, or the text of one (path: for messages). *out is the caller's
 * (gcmp_mapping_free). Errors, all with path and "line N": CORRUPT for what is no such file, an
 * unknown key, a value of the wrong kind, a rule that is there twice; LIMIT; IO; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_mapping_read(const char *path, struct gcmp_mapping **out,
                                                       struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_mapping_parse(const char *path, const char *bytes,
                                                        size_t length_bytes,
                                                        struct gcmp_mapping **out,
                                                        struct gradcmp_error *error);
void gcmp_mapping_free(struct gcmp_mapping *mapping);

/* L as the file says; 0: it does not. */
uint64_t gcmp_mapping_layers(const struct gcmp_mapping *mapping);

/* Change the parameters of a model as the rules for a checkpoint of that side say. Errors, with the
 * file and the line of the rule: CORRUPT where a shape cannot be cut so, a part is not there, or
 * two parameters get one name; UNSUPPORTED for a rule that is restricted to one side of a
 * comparison, with ALONE; those of reslab.h. The mapping remembers which rules had something to do.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_mapping_apply(struct gcmp_mapping *mapping,
                                                        const struct gradcmp_catalogue *catalogue,
                                                        enum gcmp_mapping_side side,
                                                        struct gradcmp_model *model,
                                                        struct gradcmp_error *error);

/* Fail (CORRUPT, at the first such rule's line) for a rule of one of these sides (bits) that has
 * matched nothing yet. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_mapping_check_used(const struct gcmp_mapping *mapping,
                                                             unsigned sides,
                                                             struct gradcmp_error *error);

#endif
