/* Numbers from the command line, parsed whole: "4x" is none. All return false, and leave *out,
 * where the text is no such number or does not fit. */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits only. */
bool cli_parse_count(const char *text, uint64_t *out);

/* A finite number above 0, in decimal notation ("4", "1.03", "2e-3"). */
bool cli_parse_positive(const char *text, double *out);

/* Bytes: a count with an optional unit. K, M, G, T, with or without iB, are powers of 1024; kB, MB,
 * GB, TB powers of 1000; letters of either case. */
bool cli_parse_size(const char *text, uint64_t *out);

#endif
