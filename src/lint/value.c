/* Values that are written in several ways: numbers, and lists. */
#include "lint/value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A number as it is written: 0.DIGITS times ten to the place, without zeros on either end. */
struct decimal {
    char digits[64];
    size_t count;
    long place;
    bool is_negative;
};

static bool read_exponent(const char *at, long *out) {
    bool is_negative = *at == '-';
    at += *at == '-' || *at == '+';
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 6 || at[digits] != '\0') {
        return false;
    }
    *out = 0;
    for (; *at != '\0'; at++) {
        *out = *out * 10 + (*at - '0');
    }
    *out = is_negative ? -*out : *out;
    return true;
}

/* Read a whole text as a decimal number; false for anything else, and for more digits than fit. */
static bool read_decimal(const char *text, struct decimal *out) {
    bool has_point = false, has_digit = false;
    long exponent = 0;
    *out = (struct decimal){.is_negative = *text == '-'};
    text += *text == '-' || *text == '+';
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); text++) {
        if (*text == '.') {
            has_point = true;
            continue;
        }
        bool is_leading = out->count == 0 && *text == '0';
        has_digit = true;
        out->place += is_leading ? -(long)has_point : !has_point;
        if (!is_leading && out->count == sizeof out->digits) {
            return false;
        }
        if (!is_leading) {
            out->digits[out->count++] = *text;
        }
    }
    if (!has_digit || (*text != '\0' &&
                       ((*text != 'e' && *text != 'E') || !read_exponent(text + 1, &exponent)))) {
        return false;
    }
    while (out->count > 0 && out->digits[out->count - 1] == '0') {
        out->count--;
    }
    out->place = out->count == 0 ? 0 : out->place + exponent;
    out->is_negative = out->is_negative && out->count > 0;
    return true;
}

/* Also 0x10 and 1_000, as YAML and Python have them. */
static bool read_number(const char *text, struct decimal *out) {
    enum { MOST = 60 };
    char plain[MOST + 1];
    size_t count = 0, hex = strlen(text) > 2 && text[0] == '0' && text[1] == 'x'
                                ? strspn(text + 2, "0123456789abcdefABCDEF")
                                : 0;
    if (hex > 0 && hex <= 15 && text[2 + hex] == '\0') {
        snprintf(plain, sizeof plain, "%llu", strtoull(text + 2, NULL, 16));
        return read_decimal(plain, out);
    }
    if (strchr(text, '_') == NULL || strlen(text) > MOST) {
        return read_decimal(text, out);
    }
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool is_between = i > 0 && isdigit((unsigned char)text[i - 1]) != 0 &&
                          isdigit((unsigned char)text[i + 1]) != 0;
        if (text[i] == '_' && !is_between) {
            return false;
        }
        plain[count] = text[i];
        count += text[i] != '_';
    }
    plain[count] = '\0';
    return read_decimal(plain, out);
}

bool gcmp_lint_is_same_number(const char *a, const char *b) {
    struct decimal x, y;
    return read_number(a, &x) && read_number(b, &y) && x.is_negative == y.is_negative &&
           x.count == y.count && x.place == y.place && memcmp(x.digits, y.digits, x.count) == 0;
}

/* --- lists --- */

enum { MAX_WORD_BYTES = 4096, MAX_REPEATED = 100000 };

/* A list that is read word by word. Two of them that come from documents keep their nesting and the
 * blanks within texts; a command line has neither. */
struct list {
    const char *at, *next; /* `next`: what follows when `at` ends; NULL: nothing */
    bool is_flat, by_blanks;
};

/* What a text in quotes or a bare word ends at. */
static size_t word_bytes(const struct list *list, const char **from) {
    static const char flat_ends[] = " \t\",'[]()";
    char quote = **from;
    if (list->by_blanks) {
        return strcspn(*from, " \t");
    }
    if (list->is_flat || (quote != '"' && quote != '\'')) {
        return strcspn(*from, list->is_flat ? flat_ends : " \t\",'[](){}:");
    }
    size_t count = 0;
    for (++*from; (*from)[count] != '\0' && (*from)[count] != quote; count++) {
        count += (*from)[count] == '\\' && (*from)[count + 1] != '\0';
    }
    return count;
}

/* Read the next word, or sign, into `word`; false at the end. Sets *fits false where it is longer
 * than the room. */
static bool next_word(struct list *list, char word[MAX_WORD_BYTES], bool *fits) {
    const char *skipped = list->by_blanks ? " \t" : list->is_flat ? " \t\",'[]()" : " \t,";
    list->at += strspn(list->at, skipped);
    while (*list->at == '\0' && list->next != NULL) {
        list->at = list->next + strspn(list->next, skipped);
        list->next = NULL;
    }
    if (*list->at == '\0') {
        return false;
    }
    const char *from = list->at;
    size_t count = word_bytes(list, &from);
    bool is_quoted = from > list->at, is_sign = count == 0 && !is_quoted;
    count += is_sign;
    if (count >= MAX_WORD_BYTES) {
        *fits = false;
        return false;
    }
    memcpy(word, from, count);
    word[count] = '\0';
    if (is_sign && (*word == '(' || *word == ')')) {
        *word = *word == '(' ? '[' : ']';
    }
    list->at = from + count + (is_quoted && from[count] != '\0');
    return true;
}

/* A word that Python, YAML and JSON each write in their own way. */
static const char *plain_word(const char *word) {
    static const char *const words[] = {"true", "false", "null"};
    if (strcasecmp(word, "none") == 0 || strcmp(word, "~") == 0) {
        return "null";
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(word, words[i]) == 0) {
            return words[i];
        }
    }
    return word;
}

static bool is_same_words(struct list a, struct list b) {
    char one[MAX_WORD_BYTES], other[MAX_WORD_BYTES];
    bool fits = true;
    for (;;) {
        bool has_one = next_word(&a, one, &fits), has_other = next_word(&b, other, &fits);
        if (!has_one || !has_other || !fits) {
            return fits && has_one == has_other;
        }
        if (strcmp(plain_word(one), plain_word(other)) != 0 &&
            !gcmp_lint_is_same_number(one, other)) {
            return false;
        }
    }
}

/* Write out a sum of lists, "([0]*1+[1]*3)" as Megatron's --moe-layer-freq has it, for `out`;
 * false for anything else. */
static bool write_sum(const char *text, struct gcmp_text *out) {
    bool is_in_parentheses = *text == '(', is_first = true;
    text += is_in_parentheses;
    gcmp_text_add(out, "[");
    do {
        size_t count = *text == '[' ? strcspn(text, "]") : 0;
        if (count == 0 || text[count] == '\0' || memchr(text + 1, '[', count - 1) != NULL) {
            return false;
        }
        const char *items = text + 1, *end = text + count + 1;
        bool is_repeated = *end == '*' && isdigit((unsigned char)end[1]) != 0;
        char *behind = (char *)end;
        unsigned long times = is_repeated ? strtoul(end + 1, &behind, 10) : 1;
        if (times > MAX_REPEATED || out->length_bytes + times * count > MAX_REPEATED) {
            return false;
        }
        for (unsigned long i = 0; i < times && count > 1; i++) {
            gcmp_text_add(out, is_first ? "" : ",");
            gcmp_text_add_bytes(out, items, count - 1);
            is_first = false;
        }
        text = behind;
    } while (*text++ == '+');
    text--;
    gcmp_text_add(out, "]");
    return strcmp(text, is_in_parentheses ? ")" : "") == 0 && !out->failed;
}

static bool is_list(const struct gcmp_lint_setting *setting) {
    return setting->more == NULL && (setting->text[0] == '[' || setting->text[0] == '(');
}

/* The value as words; `sum` holds it where it had to be written out. */
static struct list list_of(const struct gcmp_lint_setting *setting, struct gcmp_text *sum) {
    struct list list = {.at = setting->text, .next = setting->more};
    if (is_list(setting) && strpbrk(setting->text, "+*") != NULL && write_sum(setting->text, sum)) {
        list.at = sum->bytes;
    }
    return list;
}

bool gcmp_lint_is_same_list(const struct gcmp_lint_setting *a, const struct gcmp_lint_setting *b) {
    bool has_one = is_list(a), has_other = is_list(b);
    if (!has_one && !has_other && (a->more == NULL || b->more == NULL)) {
        return false;
    }
    struct gcmp_text sums[2] = {GCMP_TEXT_INIT, GCMP_TEXT_INIT};
    struct list one = list_of(a, &sums[0]), other = list_of(b, &sums[1]);
    one.is_flat = other.is_flat = has_one != has_other;
    one.by_blanks = other.by_blanks = !has_one && !has_other;
    bool is_same = is_same_words(one, other);
    gcmp_text_free(&sums[0]);
    gcmp_text_free(&sums[1]);
    return is_same;
}

bool gcmp_lint_is_unevaluated(const struct gcmp_lint_setting *setting) {
    if (setting == NULL || setting->text == NULL || !is_list(setting) ||
        strstr(setting->text, "]*") == NULL) {
        return false;
    }
    struct gcmp_text sum = GCMP_TEXT_INIT;
    bool is_read = write_sum(setting->text, &sum);
    gcmp_text_free(&sum);
    return !is_read;
}
