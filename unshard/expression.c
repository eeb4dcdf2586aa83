/* Limits: MAX_BYTES of text, MAX_GROUPS within one another, MAX_STATES when every repetition is
 * written out. */
#include "unshard/expression.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_BYTES = 2048, MAX_GROUPS = 32, MAX_STATES = 10000, MAX_DIGITS = 5 };

/* States of each open group so far, and of the last item in the innermost. */
struct cost {
    uint64_t sums[MAX_GROUPS + 1];
    unsigned depth;
    uint64_t last;
};

static void add_item(struct cost *cost, uint64_t states) {
    cost->sums[cost->depth] += states;
    cost->last = states;
}

static void repeat(struct cost *cost, uint64_t times) {
    if (times > 1) {
        cost->sums[cost->depth] += cost->last * (times - 1);
        cost->last *= times;
    }
}

/* Where a bracket expression ends; `at` is behind its "[". */
static const char *skip_bracket(const char *at) {
    at += *at == '^';
    at += *at == ']';
    while (*at != '\0' && *at != ']') {
        if (*at == '[' && at[1] != '\0' && strchr(":.=", at[1]) != NULL) {
            const char ending[] = {at[1], ']', '\0'}, *end = strstr(at + 2, ending);
            at = end == NULL ? at + strlen(at) : end + 2;
        } else {
            at++;
        }
    }
    return at;
}

/* The larger number of an interval; `at` is behind its "{". */
static uint64_t most_times(const char *at) {
    uint64_t most = 0;
    for (int part = 0; part < 2; part++) {
        uint64_t number = 0;
        for (int digits = 0; isdigit((unsigned char)*at) && digits < MAX_DIGITS; digits++) {
            number = 10 * number + (uint64_t)(*at++ - '0');
        }
        most = number > most ? number : most;
        if (*at != ',') {
            break;
        }
        at++;
    }
    return most + 1;
}

static const char *close_group(struct cost *cost) {
    if (cost->depth > 0) {
        uint64_t inside = cost->sums[cost->depth--];
        add_item(cost, inside + 1);
    }
    return NULL;
}

static const char *open_group(struct cost *cost) {
    if (cost->depth == MAX_GROUPS) {
        return "groups nested too deeply (at most 32)";
    }
    cost->sums[++cost->depth] = 0;
    cost->last = 0;
    return NULL;
}

/* Take one character, or what it begins; NULL, or what is wrong. */
static const char *take(struct cost *cost, const char **at) {
    char c = *(*at)++;
    switch (c) {
    case '\\':
        if (**at >= '1' && **at <= '9') {
            return "an expression refers back to a group (\\1 belongs into the new name)";
        }
        *at += **at != '\0';
        add_item(cost, 1);
        return NULL;
    case '[':
        *at = skip_bracket(*at);
        *at += **at != '\0';
        add_item(cost, 1);
        return NULL;
    case '(':
        return open_group(cost);
    case ')':
        return close_group(cost);
    case '+':
        repeat(cost, 2);
        return NULL;
    case '{':
        repeat(cost, most_times(*at));
        return NULL;
    default:
        add_item(cost, 1);
        return NULL;
    }
}

const char *gcmp_expression_fault(const char *pattern) {
    struct cost cost = {{0}, 0, 0};
    if (strlen(pattern) > MAX_BYTES) {
        return "an expression of more than 2048 bytes";
    }
    for (const char *at = pattern; *at != '\0';) {
        const char *fault = take(&cost, &at);
        if (fault != NULL) {
            return fault;
        }
        if (cost.sums[cost.depth] > MAX_STATES) {
            return "repetitions within repetitions (more than 10000 states)";
        }
    }
    return NULL;
}
