/* Decimal numbers as text, and whether binary64 holds what they say. */
#ifndef GCMP_BASE_DECIMAL_H
#define GCMP_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

enum { GCMP_DECIMAL_MAX_DIGITS = 400 };

/* digits[0] . digits[1] ... times 10^exponent, without zeros before and behind; count 0 is zero. */
struct gcmp_decimal {
    char digits[GCMP_DECIMAL_MAX_DIGITS];
    size_t count;
    long exponent; /* cut to within a million */
    bool is_negative;
};

/* Take apart [+-] digits [. digits] [e [+-] digits], of which the caller knows that it is that.
 * False where it has more digits than GCMP_DECIMAL_MAX_DIGITS. */
bool gcmp_decimal_read(const char *text, size_t length_bytes, struct gcmp_decimal *out);

/* True where both are the same number. */
bool gcmp_decimal_same(const struct gcmp_decimal *a, const struct gcmp_decimal *b);

/* True where `value`, the nearest binary64, gives the number back when it is printed with as many
 * digits. False for a number that says more than its value: 9007199254740993.0, which becomes
 * ...992, 1e-400, which becomes 0, or one of twenty digits that no binary64 has. */
bool gcmp_decimal_is_held(const struct gcmp_decimal *decimal, double value);

/* Write the fewest digits, from 15 on, from which the same number is read back. */
enum { GCMP_REAL_BYTES = 40 };
void gcmp_decimal_write(double value, char out[GCMP_REAL_BYTES]);

/* Digits after "%.*g" that tell a factor from 1: 4, or where it is near to 1 enough for two of its
 * distance. */
int gcmp_factor_digits(double factor);

#endif
