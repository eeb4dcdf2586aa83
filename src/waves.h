/* Which pairs of a comparison are judged when: all at once, or some at a time with what is finished
 * kept for later; and which of them are finished when a call is cancelled. */
#ifndef GCMP_WAVES_H
#define GCMP_WAVES_H

#include "comparison.h"
#include "resume.h"

struct gcmp_waves {
    struct gcmp_resume *resume;       /* NULL: all at once, nothing is kept */
    struct gcmp_resume_key *keys;     /* one a pair */
    struct gradcmp_pair_report *kept; /* pairs while they are put aside */
    bool *is_aside, *is_finished;     /* one a pair */
    bool was_warned;                  /* that the file could not be written */
};

/* Measures and judges the pairs that are open, and marks them with gcmp_waves_finish. */
typedef enum gradcmp_status (*gcmp_judge_fn)(struct gcmp_comparison *comparison,
                                             struct gradcmp_error *error);

/* To be called first. Errors: USAGE for options that cannot go with `resume`; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_waves_begin(struct gcmp_comparison *comparison,
                                                      struct gcmp_resume *resume,
                                                      struct gradcmp_error *error);

/* When both sides are open and the state is chosen: make the keys. Then, before models are made:
 * put those pairs aside that can be taken over; they look as if they could not be opened. */
void gcmp_waves_make_keys(struct gcmp_comparison *comparison);
GRADCMP_MUST_USE enum gradcmp_status gcmp_waves_take_over(struct gcmp_comparison *comparison,
                                                          struct gradcmp_error *error);

/* Judge all open pairs. After CANCELLED the report has the finished pairs alone. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_waves_run(struct gcmp_comparison *comparison,
                                                    gcmp_judge_fn judge,
                                                    struct gradcmp_error *error);

/* Note that nothing more will be done for a pair. */
void gcmp_waves_finish(struct gcmp_comparison *comparison, size_t index);

#endif
