/* Optimizers whose groups of parameters have betas or steps of their own. */
#ifndef GCMP_FORMATS_MIXED_BETAS_H
#define GCMP_FORMATS_MIXED_BETAS_H

#include "base/error.h"
#include "gradcmp/sys/catalogue.h"

enum { GCMP_SEEN_MOST = 32 };

/* Different values of an option over groups or parameters; zero to begin. */
struct gcmp_seen {
    double values[GCMP_SEEN_MOST][2]; /* of one number, the second is 0 */
    size_t count;
    bool is_cut; /* there are more */
    bool has_nan;
    double nan[2]; /* the first that was stated and has a NaN */
};

/* Take note of one value; NaN is none. */
void gcmp_see(struct gcmp_seen *seen, double first, double second);
/* The same for one that is stated: NaN is kept, since it is wrong and not unknown. */
void gcmp_see_stated(struct gcmp_seen *seen, double first, double second);

/* The value that stands for all: one with a NaN, else the first; NULL where none was seen. */
const double *gcmp_seen_first(const struct gcmp_seen *seen);

/* Where betas differ among the parameters, note it and set "optimizer.mixed_betas" to a text that
 * is equal for equal sets of pairs: no one factor makes gradients of the averages. The same for
 * steps, as "optimizer.mixed_steps". Nothing where at most one was seen. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_set_mixed_betas(struct gradcmp_catalogue *catalogue,
                                                          const struct gcmp_seen *seen,
                                                          struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_set_mixed_steps(struct gradcmp_catalogue *catalogue,
                                                          const struct gcmp_seen *seen,
                                                          struct gradcmp_error *error);

/* Given what is known of each moment (stored->adam), keep it where parameters differ in it, with
 * the settings and notes as above, and forget it where they do not. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_settle_adam(struct gradcmp_catalogue *catalogue,
                                                      struct gradcmp_error *error);

#endif
