/* Decimal numbers as text. */
#include "base/decimal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EXPONENT 1000000

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* Read the exponent behind its letter; beyond a million it is a million. */
static long read_exponent(const char *text, size_t length_bytes) {
    long exponent = 0;
    bool is_negative = length_bytes > 0 && text[0] == '-';
    for (size_t i = 0; i < length_bytes; i++) {
        if (is_digit(text[i]) && exponent < MAX_EXPONENT) {
            exponent = 10 * exponent + (text[i] - '0');
        }
    }
    exponent = exponent > MAX_EXPONENT ? MAX_EXPONENT : exponent;
    return is_negative ? -exponent : exponent;
}

bool gcmp_decimal_read(const char *text, size_t length_bytes, struct gcmp_decimal *out) {
    bool is_behind_point = false;
    long exponent = -1; /* of the first digit that counts, so far */
    out->count = 0;
    out->is_negative = length_bytes > 0 && text[0] == '-';
    size_t i = 0;
    for (; i < length_bytes && text[i] != 'e' && text[i] != 'E'; i++) {
        if (!is_digit(text[i])) {
            is_behind_point = is_behind_point || text[i] == '.';
            continue;
        }
        if (out->count > 0 || text[i] != '0') {
            if (out->count >= GCMP_DECIMAL_MAX_DIGITS) {
                return false;
            }
            out->digits[out->count++] = text[i];
            exponent += !is_behind_point;
        } else {
            exponent -= is_behind_point;
        }
    }
    while (out->count > 0 && out->digits[out->count - 1] == '0') {
        out->count--;
    }
    exponent += i < length_bytes ? read_exponent(text + i + 1, length_bytes - i - 1) : 0;
    out->exponent = out->count == 0 ? 0 : exponent;
    return true;
}

bool gcmp_decimal_same(const struct gcmp_decimal *a, const struct gcmp_decimal *b) {
    return a->count == b->count && a->exponent == b->exponent &&
           (a->is_negative == b->is_negative || a->count == 0) &&
           memcmp(a->digits, b->digits, a->count) == 0;
}

bool gcmp_decimal_is_held(const struct gcmp_decimal *decimal, double value) {
    char printed[GCMP_DECIMAL_MAX_DIGITS + 32];
    double size = fabs(value);
    if (decimal->count == 0) {
        return size == 0;
    }
    if (decimal->count <= DBL_DIG && size >= DBL_MIN && size <= DBL_MAX) {
        return true; /* so many digits always come back */
    }
    int length =
        snprintf(printed, sizeof printed, "%.*e", (int)(decimal->count - 1), size); /* exact */
    const char *letter = memchr(printed, 'e', (size_t)length);
    if (letter == NULL) {
        return false; /* no number */
    }
    size_t same = 0;
    for (const char *at = printed; at < letter; at++) { /* whatever the locale's point is */
        if (is_digit(*at)) {
            if (*at != decimal->digits[same]) {
                return false;
            }
            same++;
        }
    }
    return same == decimal->count && strtol(letter + 1, NULL, 10) == decimal->exponent;
}

void gcmp_decimal_write(double value, char out[GCMP_REAL_BYTES]) {
    for (int precision = DBL_DIG; precision <= DBL_DECIMAL_DIG; precision++) {
        snprintf(out, GCMP_REAL_BYTES, "%.*g", precision, value);
        if (strtod(out, NULL) == value) {
            break;
        }
    }
}

int gcmp_factor_digits(double factor) {
    double off = fabs(fabs(factor) - 1.0);
    if (!(off > 0.0 && off < 0.01)) {
        return 4;
    }
    int digits = 3 - (int)floor(log10(off));
    return digits < 17 ? digits : 17;
}
