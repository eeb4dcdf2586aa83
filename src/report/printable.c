/* Text from files made safe to print. */
#include "report/printable.h"

#include <string.h>

void gcmp_printable_add(struct gcmp_text *text, const char *string, bool utf8) {
    char spelled[GCMP_UTF8_SPELLED_BYTES];
    size_t left = strlen(string), step;
    for (; (step = gcmp_utf8_spell(string, left, utf8, spelled)) > 0; string += step) {
        gcmp_text_add(text, spelled);
        left -= step;
    }
}

static bool starts_character(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

size_t gcmp_printable_columns(const char *string) {
    size_t columns = 0;
    for (; *string != '\0'; string++) {
        columns += starts_character(*string);
    }
    return columns;
}

const char *gcmp_printable_tail(const char *string, size_t columns) {
    size_t skip = gcmp_printable_columns(string);
    skip = skip > columns ? skip - columns : 0;
    while (skip > 0 || (*string != '\0' && !starts_character(*string))) {
        skip -= starts_character(*string);
        string++;
    }
    return string;
}
