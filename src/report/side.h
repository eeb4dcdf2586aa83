/* What a checkpoint says of itself, as rows of a table: for the heads of `compare` and `ls`. */
#ifndef GCMP_REPORT_SIDE_H
#define GCMP_REPORT_SIDE_H

#include "gradcmp/sys/catalogue.h"
#include "report/page.h"

struct gcmp_side_row {
    const char *label;
    /* Add the value in plain words; nothing where it is not known. */
    void (*add)(struct gcmp_text *text, const struct gradcmp_catalogue *catalogue, bool utf8);
    bool spoils; /* where the two sides differ here, their gradients may differ by right */
};

/* Add a setting's value in plain words ("yes", "0.95"). */
void gcmp_text_add_setting(struct gcmp_text *text, const struct gradcmp_setting *setting,
                           bool utf8);

/* All rows, ended by one without a label. */
extern const struct gcmp_side_row gcmp_side_rows[];

#endif
