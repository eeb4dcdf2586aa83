/* Kinds of parameters: the same parameter of every layer, of every expert, is one kind. */
#ifndef GCMP_BOUNDS_KIND_H
#define GCMP_BOUNDS_KIND_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"

/* Fill votes[count]: each kind has one vote, shared by its parameters. A model of experts is nearly
 * all expert weights; with a vote each, a factor on the experts alone would pass for a factor
 * common to all, and the parameters that are right for wrong ones. Two names are of one kind when
 * they differ only in parts between dots that are numbers (layers.3, experts.2; not fc1). Only
 * parameters with gcmp_has_alpha() share the vote; the others get 0. Texts live in `scratch`.
 * Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_kind_votes(const struct gradcmp_parameter_report *parameters, size_t count, double *votes,
                struct gcmp_arena *scratch, struct gradcmp_error *error);

#endif
