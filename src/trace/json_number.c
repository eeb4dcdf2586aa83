/* Numbers of JSON. */
#include "trace/json_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NUMBER_BYTES = 400, /* longer than any number that a program writes */
    SAFE_DIGITS = 200       /* before the point: no overflow without an exponent */
};

static size_t count_digits(const char *bytes, size_t left) {
    size_t digits = 0;
    while (digits < left && bytes[digits] >= '0' && bytes[digits] <= '9') {
        digits++;
    }
    return digits;
}

double gcmp_number_real(const char *text, size_t length, locale_t numeric) {
    char copy[MAX_NUMBER_BYTES + 1];
    if (length > MAX_NUMBER_BYTES) {
        length = MAX_NUMBER_BYTES;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return strtod_l(copy, NULL, numeric);
}

static bool take_integer(const char *digits, size_t count, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(digits[i] - '0'), out)) {
            return false;
        }
    }
    return true;
}

/* Read the exponent, if any; *digits are its digits. False where none follow the letter. */
static bool take_exponent(const char *bytes, size_t left, size_t *at, size_t *digits) {
    *digits = 0;
    if (*at >= left || (bytes[*at] != 'e' && bytes[*at] != 'E')) {
        return true;
    }
    (*at)++;
    if (*at < left && (bytes[*at] == '+' || bytes[*at] == '-')) {
        (*at)++;
    }
    *digits = count_digits(bytes + *at, left - *at);
    *at += *digits;
    return *digits > 0;
}

const char *gcmp_number_scan(const char *bytes, size_t left, locale_t numeric,
                             struct gcmp_number *out) {
    memset(out, 0, sizeof *out);
    size_t at = bytes[0] == '-';
    out->is_negative = at == 1;
    size_t whole = count_digits(bytes + at, left - at);
    const char *digits = bytes + at;
    at += whole;
    out->length = at;
    if (whole == 0 || (whole > 1 && digits[0] == '0')) {
        return "a number that is no JSON";
    }
    if (at < left && bytes[at] == '.') {
        size_t fraction = count_digits(bytes + at + 1, left - at - 1);
        at += 1 + fraction;
        out->length = at;
        out->is_real = true;
        if (fraction == 0) {
            return "a number that is no JSON";
        }
    }
    size_t before = at;
    size_t exponent;
    bool is_fine = take_exponent(bytes, left, &at, &exponent);
    out->length = at;
    out->is_real |= at > before;
    if (!is_fine) {
        return "a number that is no JSON";
    }
    if (!out->is_real) {
        return take_integer(digits, whole, &out->magnitude) ? NULL : "an integer beyond 64 bits";
    }
    if (at > MAX_NUMBER_BYTES) {
        return "a number of more than 400 characters";
    }
    bool is_far = whole > SAFE_DIGITS || exponent > 2;
    return is_far && !isfinite(gcmp_number_real(bytes, at, numeric)) ? "a number beyond binary64"
                                                                     : NULL;
}
