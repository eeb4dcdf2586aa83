/* UTF-8, and which characters of it text from a file may show. In a header, so that the program,
 * which is a user of the library, can have the same rule as the library's messages. */
#ifndef GCMP_BASE_UTF8_H
#define GCMP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Length and lowest value of a sequence by its lead byte: Unicode 15, table 3-7 in one rule each.
 */
static inline size_t gcmp_utf8_length(unsigned char lead, unsigned *lowest) {
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

/* Return the bytes of the valid UTF-8 sequence at `bytes`, of which `left` may be read, and its
 * code point in *code (NULL allowed); 0 where the bytes are not UTF-8 (overlong forms, surrogates
 * and values past U+10FFFF included). */
static inline size_t gcmp_utf8_decode(const char *bytes, size_t left, unsigned *code) {
    static const unsigned char lead_mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned lowest = 0;
    size_t length = left == 0 ? 0 : gcmp_utf8_length((unsigned char)bytes[0], &lowest);
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

/* Bytes of the mark of UTF-8 (U+FEFF) that a text may begin with, which is none of it; 0 or 3. */
static inline size_t gcmp_utf8_mark_bytes(const char *bytes, size_t left) {
    static const char mark[] = "\xEF\xBB\xBF";
    return left >= sizeof mark - 1 && memcmp(bytes, mark, sizeof mark - 1) == 0 ? sizeof mark - 1
                                                                                : 0;
}

/* False for controls (C0, DEL, C1), line and paragraph separators, marks that reorder or hide text,
 * and what is no character (U+FFFE, U+FFFF, which XML 1.0 forbids, and their like). */
static inline bool gcmp_utf8_is_harmless(unsigned code) {
    bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
    bool direction = code == 0x200E || code == 0x200F || code == 0x061C ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    bool hidden = code == 0x2028 || code == 0x2029 || (code >= 0x200B && code <= 0x200D) ||
                  code == 0x2060 || code == 0xFEFF;
    bool none = (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
    return !control && !direction && !hidden && !none;
}

enum { GCMP_UTF8_SPELLED_BYTES = 4 * 4 + 1 }; /* a character of four bytes, each as \xNN */

/* Put the next character of a text, of which `left` bytes may be read, into `spelled` as it may be
 * shown, and return how many bytes that took of the text; 0 at its end. What is no UTF-8, or not
 * harmless, or (without `utf8`) no ASCII is spelled \xNN a byte. */
static inline size_t gcmp_utf8_spell(const char *text, size_t left, bool utf8,
                                     char spelled[GCMP_UTF8_SPELLED_BYTES]) {
    unsigned code = 0;
    size_t length = gcmp_utf8_decode(text, left, &code);
    spelled[0] = '\0';
    if (length > 0 && gcmp_utf8_is_harmless(code) && (utf8 || code < 0x80)) {
        memcpy(spelled, text, length);
        spelled[length] = '\0';
        return length;
    }
    length = length == 0 && left > 0 ? 1 : length;
    for (size_t i = 0; i < length; i++) {
        snprintf(spelled + 4 * i, GCMP_UTF8_SPELLED_BYTES - 4 * i, "\\x%02x",
                 (unsigned char)text[i]);
    }
    return length;
}

#endif
