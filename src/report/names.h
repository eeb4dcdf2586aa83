/* The words that reports use. */
#ifndef GCMP_REPORT_NAMES_H
#define GCMP_REPORT_NAMES_H

#include "gradcmp/sys/result.h"

/* Where a compute type came from: a word for JSON ("args"; NULL where nothing is known) and a
 * phrase for people ("from the arguments in the checkpoint"). */
const char *gcmp_dtype_source_key(enum gradcmp_dtype_source source);
const char *gcmp_dtype_source_text(enum gradcmp_dtype_source source);

#endif
