/* One trial of a pair: its parameters judged under one bound. A pair is tried under its own bound
 * and, where its type is only assumed, under coarser ones. */
#ifndef GCMP_BOUNDS_TRIAL_H
#define GCMP_BOUNDS_TRIAL_H

#include "bounds/median.h"
#include "gradcmp/sys/result.h"

struct gcmp_trial {
    const struct gradcmp_bound *bound;
    struct gradcmp_parameter_report *parameters; /* figures filled, verdicts to be filled */
    size_t count;
    const double *votes;         /* of each parameter; see bounds/kind.h */
    const double *layer_rms;     /* of each parameter's layer; see bounds/layer.h */
    const double *floors;        /* rel that the fit's floor of each parameter allows; NULL: none */
    struct gcmp_sample *samples; /* room for `count`, used by medians */
    double common;               /* out: the common factor, NaN where none is claimed */
    double usual;                /* out: the factor that was tried; see bounds/common.h */
};

/* Fill trial->common and of every parameter: verdict, rel_common, bound, ratio, alpha_tolerance. */
void gcmp_trial_run(struct gcmp_trial *trial);

/* The bound of parameter `index`: bound(l) or, where a fit's floor is higher, that; both under the
 * cap. */
double gcmp_trial_bound(const struct gcmp_trial *trial, size_t index);

/* Count the verdicts that make a pair inconsistent: all but unjudged and pass. */
size_t gcmp_trial_findings(const struct gcmp_trial *trial);

/* True where the trial found something wrong: such a verdict, or a common factor. */
bool gcmp_trial_is_inconsistent(const struct gcmp_trial *trial);

#endif
