/* Numbers of JSON: their grammar and range. */
#ifndef GCMP_TRACE_JSON_NUMBER_H
#define GCMP_TRACE_JSON_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gcmp_number {
    bool is_negative, is_real;
    uint64_t magnitude; /* of an integer */
    size_t length;      /* bytes read; to the fault where there is one */
};

/* Read the number that starts at `bytes`. Returns NULL, or what is wrong with it: no JSON, an
 * integer beyond 64 bits, a real beyond binary64. `numeric` is the C locale. */
const char *gcmp_number_scan(const char *bytes, size_t left, locale_t numeric,
                             struct gcmp_number *out);

/* The value of a real's text (also NaN, Infinity, -Infinity), nearest binary64. */
double gcmp_number_real(const char *text, size_t length, locale_t numeric);

#endif
