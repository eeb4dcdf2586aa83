/* Whether an identity comes twice in a file, in memory that grows with the names of an iteration,
 * not with the records: occurrences that come in order are counted, others are kept. */
#ifndef GCMP_TRACE_REPEATS_H
#define GCMP_TRACE_REPEATS_H

#include "base/error.h"
#include "trace/counter.h"

enum { GCMP_REPEATS_MAX_ODD = 1 << 20 };

struct gcmp_repeats_of {
    int64_t iteration;
    struct gcmp_counter next; /* name -> occurrence that is to come */
    struct gcmp_counter odd;  /* occurrences that came before their turn */
};

/* The newest iteration, the one before it, and what belongs to none. What comes of an older one is
 * not looked at. */
struct gcmp_repeats {
    struct gcmp_repeats_of now, before, timeless;
    bool is_started;
};

/* Take note of a record; *repeated: it came before. LIMIT where too many come out of turn. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_repeats_add(struct gcmp_repeats *repeats, uint64_t key,
                                                      int64_t iteration, int64_t occurrence,
                                                      bool *repeated, struct gradcmp_error *error);
/* Forget everything: another file begins. */
void gcmp_repeats_clear(struct gcmp_repeats *repeats);
void gcmp_repeats_free(struct gcmp_repeats *repeats);

#endif
