/* Text from files made safe to print. */
#include "report/printable.h"

#include <string.h>

/* Lengths and lowest values by lead byte: Unicode 15, table 3-7 in one rule each. */
static size_t sequence_length(unsigned char lead, unsigned *lowest) {
    if (lead < 0x80) {
        *lowest = 0;
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        *lowest = 0x80;
        return 2;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        *lowest = 0x800;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *lowest = 0x10000;
        return 4;
    }
    return 0;
}

size_t gcmp_utf8_decode(const char *bytes, size_t left, unsigned *code) {
    static const unsigned char lead_mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned lowest = 0;
    size_t length = left == 0 ? 0 : sequence_length((unsigned char)bytes[0], &lowest);
    if (length == 0 || length > left) {
        return 0;
    }
    unsigned value = (unsigned char)bytes[0] & lead_mask[length];
    for (size_t i = 1; i < length; i++) {
        unsigned byte = (unsigned char)bytes[i];
        if ((byte & 0xC0) != 0x80) {
            return 0;
        }
        value = value << 6 | (byte & 0x3F);
    }
    if (value < lowest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        return 0;
    }
    if (code != NULL) {
        *code = value;
    }
    return length;
}

/* Controls (C0, DEL, C1), line and paragraph separators, and marks that reorder or hide text. */
static bool is_harmless(unsigned code) {
    bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
    bool direction = code == 0x200E || code == 0x200F || code == 0x061C ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    bool hidden = code == 0x2028 || code == 0x2029 || (code >= 0x200B && code <= 0x200D) ||
                  code == 0x2060 || code == 0xFEFF;
    return !control && !direction && !hidden;
}

void gcmp_printable_add(struct gcmp_text *text, const char *string, bool utf8) {
    size_t left = strlen(string);
    while (left > 0) {
        unsigned code = 0;
        size_t length = gcmp_utf8_decode(string, left, &code);
        if (length > 0 && is_harmless(code) && (utf8 || code < 0x80)) {
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
