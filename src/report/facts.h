/* What several reports derive from a result: nothing here judges, it only looks up and sorts. */
#ifndef GCMP_REPORT_FACTS_H
#define GCMP_REPORT_FACTS_H

#include "gradcmp/sys/result.h"

/* Outcome of all candidates together: trouble before a difference before agreement, and VACUOUS
 * where there is no candidate; ERROR after an interrupt, which leaves some unjudged. */
enum gradcmp_outcome gcmp_overall_outcome(const struct gradcmp_report *report);

/* Exit status of a pair: 0 consistent, 1 inconsistent, 2 trouble. */
int gcmp_outcome_status(enum gradcmp_outcome outcome);

/* True for the verdicts that make a pair inconsistent by themselves. */
bool gcmp_verdict_is_bad(enum gradcmp_verdict verdict);
/* True for the verdicts of which the deepest (highest l) makes the onset. */
bool gcmp_verdict_makes_onset(enum gradcmp_verdict verdict);

/* True where indices in names are l - 1, as those of a single stack of layers: else a layer has to
 * be called by its name. */
bool gcmp_names_count_layers(const struct gradcmp_pair_report *pair);

/* Relative error that was judged: rel_common where a common factor was divided out, else rel. */
double gcmp_judged_rel(const struct gradcmp_parameter_report *parameter);

/* Parameters that failed in any way. */
size_t gcmp_bad_count(const struct gradcmp_pair_report *pair);

/* Write the shape that was compared (rows of the vocabulary cut) or, where nothing was, the shape
 * on the side that has the parameter, to shape[GRADCMP_MAX_NDIM]; return the number of axes. */
unsigned gcmp_compared_shape(const struct gradcmp_parameter_report *parameter, uint64_t *shape);

/* Write the index of element number `elem` in row-major order; shape has ndim entries. */
void gcmp_unravel(uint64_t elem, unsigned ndim, const uint64_t *shape, uint64_t *index);

/* True where a tally was made: both sides have the parameter, and their shapes agree. */
bool gcmp_is_compared(const struct gradcmp_parameter_report *parameter);

/* Largest |d| in the values' own scale; NaN where no finite element was compared. */
double gcmp_max_abs(const struct gradcmp_parameter_report *parameter);

/* Elements of a shape; saturates at UINT64_MAX. */
uint64_t gcmp_shape_elems(unsigned ndim, const uint64_t *shape);

/* Compare for sorting: the worse parameter first. Nonfinite, conflict, fail by ratio, scale, shape,
 * missing, extra, then the rest by ratio; equal ones from the loss down, then by name. */
int gcmp_compare_badness(const struct gradcmp_parameter_report *a,
                         const struct gradcmp_parameter_report *b);

enum gcmp_option_kind { GCMP_OPTION_SWITCH, GCMP_OPTION_TEXT, GCMP_OPTION_REAL, GCMP_OPTION_COUNT };

/* One option that is not default. */
struct gcmp_option_value {
    const char *flag; /* "--max-bound" */
    const char *key;  /* "max_bound" */
    enum gcmp_option_kind kind;
    const char *text;
    double real;
    uint64_t count; /* COUNT; SWITCH: 0 or 1 */
};
enum { GCMP_MAX_OPTION_VALUES = 24 };

/* List the options that are not default and change what is judged or read; threads and buffers do
 * not, so the same report results from any number. Returns how many. */
size_t gcmp_options_listed(const struct gradcmp_options *options,
                           struct gcmp_option_value out[GCMP_MAX_OPTION_VALUES]);

#endif
