/* Numbers from the command line. */
#include "cli/number.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parse leading digits; *end is behind them. */
static bool parse_digits(const char *text, uint64_t *out, const char **end) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    *out = value;
    *end = at;
    return at > text;
}

bool cli_parse_count(const char *text, uint64_t *out) {
    uint64_t value;
    const char *end;
    if (!parse_digits(text, &value, &end) || *end != '\0') {
        return false;
    }
    *out = value;
    return true;
}

bool cli_parse_positive(const char *text, double *out) {
    if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0') {
        return false;
    }
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value) || !(value > 0.0)) {
        return false;
    }
    *out = value;
    return true;
}

static bool unit_bytes(const char *unit, uint64_t *bytes) {
    static const char letters[] = "kmgt";
    uint64_t binary = 1, decimal = 1;
    if (unit[0] == '\0' || strcasecmp(unit, "b") == 0) {
        *bytes = 1;
        return true;
    }
    for (size_t i = 0; letters[i] != '\0'; i++) {
        binary *= 1024;
        decimal *= 1000;
        if ((unit[0] | 0x20) == letters[i]) {
            bool is_binary = unit[1] == '\0' || strcasecmp(unit + 1, "ib") == 0;
            *bytes = is_binary ? binary : decimal;
            return is_binary || strcasecmp(unit + 1, "b") == 0;
        }
    }
    return false;
}

bool cli_parse_size(const char *text, uint64_t *out) {
    uint64_t value, unit;
    const char *end;
    if (!parse_digits(text, &value, &end) || !unit_bytes(end, &unit) ||
        __builtin_mul_overflow(value, unit, &value)) {
        return false;
    }
    *out = value;
    return true;
}
