/* Output of a report on its way to the caller's write function: buffered, with a decimal point
 * whatever the locale, and a failure remembered until the end. */
#ifndef GCMP_REPORT_OUT_H
#define GCMP_REPORT_OUT_H

#include <locale.h>

#include "base/error.h"
#include "base/text.h"

struct gcmp_out {
    struct gcmp_text text; /* what was not yet written; add to it freely */
    gradcmp_write_fn write;
    void *user;
    locale_t numeric, before; /* of the calling thread */
    bool write_failed;
};

/* Start. From here to gcmp_out_end the calling thread formats numbers as in the C locale (the write
 * function still runs under the caller's). Must be paired with gcmp_out_end. */
void gcmp_out_begin(struct gcmp_out *out, gradcmp_write_fn write, void *user);

/* Pass on what has gathered when it is much; call it after each line or so. */
void gcmp_out_drain(struct gcmp_out *out);

/* Pass on the rest and release all. IO where the write function failed, MEMORY without memory. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_out_end(struct gcmp_out *out,
                                                  struct gradcmp_error *error);

#endif
