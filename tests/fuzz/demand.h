/* What a fuzz target that checks meaning says of the program, and stops at where it does not hold.
 */
#ifndef GCMP_FUZZ_DEMAND_H
#define GCMP_FUZZ_DEMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void demand(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

#endif
