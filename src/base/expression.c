/* Limits: MAX_BYTES of text, MAX_GROUPS within one another, MAX_REPEATED states more when every
 * repetition is written out (as "(a?){1250}" that takes some 3 s on a name of 4096 bytes). */
#include "base/expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { MAX_BYTES = 8192, MAX_GROUPS = 32, MAX_REPEATED = 2500, MAX_DIGITS = 5 };

/* States of each open group so far, and of the last item in the innermost; what repetitions added
 * to them, those of repetitions within repetitions once. */
struct cost {
    uint64_t sums[MAX_GROUPS + 1];
    unsigned depth;
    uint64_t last, repeated;
};

static void add_item(struct cost *cost, uint64_t states) {
    cost->sums[cost->depth] += states;
    cost->last = states;
}

static void repeat(struct cost *cost, uint64_t times) {
    if (times > 1) {
        cost->repeated += cost->last * (times - 1);
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

/* The larger number of an interval; `*text` is behind its "{", and afterwards behind what was read.
 */
static uint64_t most_times(const char **text) {
    const char *at = *text;
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
    at += strspn(at, "0123456789");
    *text = at + (*at == '}');
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
            return "an expression refers back to a group (\\1 belongs into a new name of --map)";
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
    case '?':
    case '*': /* they repeat what is before them, which a sign behind them repeats again */
        cost->repeated++;
        cost->sums[cost->depth]++;
        cost->last++;
        return NULL;
    case '+':
        repeat(cost, 2);
        return NULL;
    case '{':
        repeat(cost, most_times(at));
        return NULL;
    default:
        add_item(cost, 1);
        return NULL;
    }
}

const char *gcmp_expression_fault(const char *pattern) {
    struct cost cost = {{0}, 0, 0, 0};
    if (strlen(pattern) > MAX_BYTES) {
        return "an expression of more than 8192 bytes";
    }
    for (const char *at = pattern; *at != '\0';) {
        const char *fault = take(&cost, &at);
        if (fault != NULL) {
            return fault;
        }
        if (cost.repeated > MAX_REPEATED) {
            return "too much is repeated (more than 2500 states)";
        }
    }
    return NULL;
}

/* True where the expression is a choice of several, at its outermost. */
static bool is_choice(const char *pattern) {
    size_t depth = 0;
    for (const char *at = pattern; *at != '\0';) {
        char c = *at++;
        if (c == '\\') {
            at += *at != '\0';
        } else if (c == '[') {
            at = skip_bracket(at);
        } else if (c == '|' && depth == 0) {
            return true;
        }
        depth += c == '(';
        depth -= c == ')' && depth > 0;
    }
    return false;
}

void gcmp_expression_prefix(const char *pattern, char *prefix) {
    static const char special[] = ".[]()*+?{}|^$\\";
    char *end = prefix, *last = prefix; /* where the last character begins */
    const char *at = is_choice(pattern) ? "" : pattern;
    for (; *at > ' ' && *at <= '~'; at++) {
        bool is_escaped = *at == '\\' && at[1] != '\0' && strchr(special, at[1]) != NULL;
        if (!is_escaped && strchr(special, *at) != NULL) {
            break;
        }
        at += is_escaped;
        last = end;
        *end++ = *at;
    }
    end =
        *at != '\0' && strchr("*+?{", *at) != NULL ? last : end; /* it may be repeated, or not be */
    *end = '\0';
}

enum gradcmp_status gcmp_expression_compile(regex_t *expression, int flags, const char *label,
                                            const char *pattern, struct gradcmp_error *error) {
    char words[128];
    const char *fault = gcmp_expression_fault(pattern);
    int code = fault != NULL ? 0 : regcomp(expression, pattern, REG_EXTENDED | flags);
    if (code == REG_ESPACE) {
        GCMP_FAIL_MEMORY(error);
    }
    if (code != 0) {
        regerror(code, NULL, words, sizeof words); /* what failed to compile is undefined */
        fault = words;
    }
    if (fault != NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "%s\"%.100s\": %s", label, pattern, fault);
    }
    return GRADCMP_OK;
}

bool gcmp_expression_matches(const regex_t *expression, const char *text, size_t capture_count,
                             regmatch_t *captures, bool *lacks_memory) {
    errno = 0;
    int code = regexec(expression, text, capture_count, captures, 0);
    *lacks_memory = *lacks_memory || code == REG_ESPACE || errno == ENOMEM;
    return code == 0;
}
