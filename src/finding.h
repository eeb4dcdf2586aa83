/* Adding what `check` finds to what it returns. */
#ifndef GCMP_FINDING_H
#define GCMP_FINDING_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/parameter.h"
#include "gradcmp/sys/result.h"

/* Findings of one sort that are told one by one; more are counted. */
enum { GCMP_MAX_LISTED = 64 };

/* What is being written into; the texts live in the arena. */
struct gcmp_finding_sink {
    struct gcmp_arena *arena;
    struct gradcmp_checked *checked;
};

/* Add a finding of `kind` about a parameter (NULL: none) and return it in *out, valid until the
 * next one, for its figures. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_finding_add(const struct gcmp_finding_sink *sink,
                                                      const char *kind,
                                                      const struct gradcmp_parameter *parameter,
                                                      struct gradcmp_finding **out,
                                                      struct gradcmp_error *error);

/* Add a number to a finding; it has room for four. */
void gcmp_finding_figure(struct gradcmp_finding *finding, const char *name, double value);

/* Give a finding its line. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_finding_say(const struct gcmp_finding_sink *sink, struct gradcmp_finding *finding,
                 struct gradcmp_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
