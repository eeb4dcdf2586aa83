/* Text from files made safe to print. */
#include "report/printable.h"

#include <string.h>

void gcmp_printable_add(struct gcmp_text *text, const char *string, bool utf8) {
    size_t left = strlen(string);
    while (left > 0) {
        unsigned code = 0;
        size_t length = gcmp_utf8_decode(string, left, &code);
        if (length > 0 && gcmp_utf8_is_harmless(code) && (utf8 || code < 0x80)) {
            gcmp_text_add_bytes(text, string, length);
        } else {
            length = length == 0 ? 1 : length;
            for (size_t i = 0; i < length; i++) {
                gcmp_text_addf(text, "\\x%02x", (unsigned char)string[i]);
            }
        }
        string += length;
        left -= length;
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
