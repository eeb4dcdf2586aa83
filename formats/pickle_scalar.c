/* Opcodes of the pickle interpreter that make numbers, texts and bytes from binary arguments, and
 * numbers from decimal text. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "formats/pickle_vm.h"

/* Decimal digits of an integer; CPython's own default limit. Conversion is quadratic, in steps of
 * STEP_DIGITS digits. */
enum { MAX_DIGITS = 4300, STEP_DIGITS = 18, LIMBS = MAX_DIGITS * 10 / 3 / 64 + 2 };

/* Push a little-endian two's complement number of any length. */
static enum gradcmp_status push_long(struct gcmp_pickle_vm *vm, const unsigned char *bytes,
                                     size_t count) {
    while (count > 1 && ((bytes[count - 1] == 0 && bytes[count - 2] < 0x80) ||
                         (bytes[count - 1] == 0xff && bytes[count - 2] >= 0x80))) {
        count--; /* a byte that only repeats the sign */
    }
    if (count > 8) {
        return gcmp_pickle_push(
            vm, gcmp_pickle_new_text(vm, GCMP_NODE_BIGINT, (const char *)bytes, count));
    }
    uint64_t value = count > 0 && bytes[count - 1] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = count; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return gcmp_pickle_push(vm, gcmp_pickle_new_int(vm, (int64_t)value));
}

/* BININT1, BININT2 (unsigned) and BININT (signed, 4 bytes). */
enum gradcmp_status gcmp_pickle_op_binint(struct gcmp_pickle_vm *vm) {
    uint64_t value;
    GCMP_TRY(gcmp_pickle_take_number(vm, vm->op->width, &value));
    int64_t number = vm->op->width == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
    return gcmp_pickle_push(vm, gcmp_pickle_new_int(vm, number));
}

/* LONG1 and LONG4: the length of LONG4 is signed. */
enum gradcmp_status gcmp_pickle_op_binlong(struct gcmp_pickle_vm *vm) {
    uint64_t count;
    const char *bytes;
    GCMP_TRY(gcmp_pickle_take_number(vm, vm->op->width, &count));
    if (vm->op->width == 4 && count > INT32_MAX) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a length of 0 or more, found %d", (int)(uint32_t)count);
    }
    GCMP_TRY(gcmp_pickle_take(vm, count, &bytes));
    return push_long(vm, (const unsigned char *)bytes, (size_t)count);
}

/* limbs = limbs * factor + carry, the lowest first; returns how many are used then. */
static size_t multiply_add(uint64_t *limbs, size_t used, uint64_t factor, uint64_t carry) {
    for (size_t k = 0; k < used || carry != 0; k++) {
        unsigned __int128 wide = (unsigned __int128)limbs[k] * factor + carry;
        limbs[k] = (uint64_t)wide;
        carry = (uint64_t)(wide >> 64);
        used = k < used ? used : k + 1;
    }
    return used;
}

/* Convert digits that are more than one step: schoolbook multiplication. */
static enum gradcmp_status push_big_decimal(struct gcmp_pickle_vm *vm, const char *digits,
                                            size_t count, bool negative) {
    uint64_t limbs[LIMBS] = {0};
    size_t used = 0;
    for (size_t i = 0; i < count;) {
        uint64_t factor = 1, step = 0;
        for (size_t end = i + STEP_DIGITS; i < end && i < count; i++) {
            factor *= 10;
            step = step * 10 + (uint64_t)(digits[i] - '0');
        }
        used = multiply_add(limbs, used, factor, step);
    }
    unsigned char bytes[8 * LIMBS];
    unsigned borrow = negative ? 1 : 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        unsigned byte = limbs[i / 8] >> (8 * (i % 8)) & 0xff;
        byte = negative ? (byte ^ 0xff) + borrow : byte;
        borrow = byte > 0xff ? 1 : 0;
        bytes[i] = (unsigned char)byte;
    }
    return push_long(vm, bytes, sizeof bytes);
}

static enum gradcmp_status push_decimal(struct gcmp_pickle_vm *vm, const char *text, size_t count) {
    bool negative = count > 0 && text[0] == '-';
    if (count > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') {
            count = 0;
        }
    }
    if (count == 0) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a decimal integer");
    }
    if (count > MAX_DIGITS) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_LIMIT,
                                "an integer of %zu digits, at most %d are read", count, MAX_DIGITS);
    }
    uint64_t value;
    if (count > STEP_DIGITS || !gcmp_pickle_parse_u64(text, count, &value)) {
        return push_big_decimal(vm, text, count, negative);
    }
    return gcmp_pickle_push(vm,
                            gcmp_pickle_new_int(vm, negative ? -(int64_t)value : (int64_t)value));
}

/* INT: a decimal line; "00" and "01" are the bools of protocol 1 and before. */
enum gradcmp_status gcmp_pickle_op_int(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    if (count == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1')) {
        return gcmp_pickle_push(vm, text[1] == '1' ? vm->yes : vm->no);
    }
    return push_decimal(vm, text, count);
}

/* LONG: a decimal line that ends with 'L'; Python 3 may leave it out. */
enum gradcmp_status gcmp_pickle_op_long(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    if (count > 0 && text[count - 1] == 'L') {
        count--;
    }
    return push_decimal(vm, text, count);
}

static enum gradcmp_status push_float(struct gcmp_pickle_vm *vm, double number) {
    struct gcmp_node *node = gcmp_pickle_new(vm, GCMP_NODE_FLOAT);
    if (node != NULL) {
        node->as.number = number;
    }
    return gcmp_pickle_push(vm, node);
}

/* True where all of a NUL-terminated text is a number as Python's repr writes it. The C locale
 * keeps the decimal point a point. */
static bool parse_float(const char *text, double *number) {
    if (strspn(text, "+-.0123456789einfa") != strlen(text) || text[0] == '\0') {
        return false; /* no space, no hexadecimal */
    }
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return false;
    }
    char *end;
    *number = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    return *end == '\0' && end != text;
}

enum gradcmp_status gcmp_pickle_op_float(struct gcmp_pickle_vm *vm) {
    const char *text;
    size_t count;
    char copy[64];
    double number;
    GCMP_TRY(gcmp_pickle_take_line(vm, &text, &count));
    bool fits = count < sizeof copy;
    if (fits) {
        memcpy(copy, text, count);
        copy[count] = '\0';
    }
    if (!fits || strlen(copy) != count || !parse_float(copy, &number)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "expected a decimal number");
    }
    return push_float(vm, number);
}

/* BINFLOAT: binary64, big-endian. */
enum gradcmp_status gcmp_pickle_op_binfloat(struct gcmp_pickle_vm *vm) {
    const char *bytes;
    GCMP_TRY(gcmp_pickle_take(vm, 8, &bytes));
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | (unsigned char)bytes[i];
    }
    double number;
    memcpy(&number, &bits, sizeof number);
    return push_float(vm, number);
}

/* Length of the UTF-8 sequence at `bytes`, 0 where there is none. Lone surrogates (ED A0..BF xx)
 * are let through, as torch and pickle write them. Table 3-7 of the Unicode standard otherwise. */
static size_t sequence_bytes(const unsigned char *bytes, size_t left) {
    unsigned char lead = bytes[0];
    size_t count = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (count == 0 || lead > 0xf4 || count > left) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (lead == 0xe0 && bytes[1] < 0xa0) || (lead == 0xf0 && bytes[1] < 0x90) ||
               (lead == 0xf4 && bytes[1] > 0x8f);
    return bad ? 0 : count;
}

bool gcmp_pickle_is_utf8(const char *text, size_t count) {
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t at = 0; at < count;) {
        uint64_t word = 0;
        if (count - at >= sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof word;
                continue;
            }
        }
        size_t step = sequence_bytes(bytes + at, count - at);
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

/* SHORT_BINUNICODE, BINUNICODE, BINUNICODE8. */
enum gradcmp_status gcmp_pickle_op_binunicode(struct gcmp_pickle_vm *vm) {
    uint64_t count;
    const char *bytes;
    GCMP_TRY(gcmp_pickle_take_number(vm, vm->op->width, &count));
    GCMP_TRY(gcmp_pickle_take(vm, count, &bytes));
    if (!gcmp_pickle_is_utf8(bytes, (size_t)count)) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT, "a text that is not UTF-8");
    }
    return gcmp_pickle_push(vm, gcmp_pickle_new_text(vm, GCMP_NODE_TEXT, bytes, (size_t)count));
}

/* SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8, SHORT_BINSTRING. */
enum gradcmp_status gcmp_pickle_op_binbytes(struct gcmp_pickle_vm *vm) {
    uint64_t count;
    const char *bytes;
    GCMP_TRY(gcmp_pickle_take_number(vm, vm->op->width, &count));
    GCMP_TRY(gcmp_pickle_take(vm, count, &bytes));
    return gcmp_pickle_push(vm, gcmp_pickle_new_text(vm, GCMP_NODE_BYTES, bytes, (size_t)count));
}

/* BINSTRING: as BINBYTES, but the length is signed. */
enum gradcmp_status gcmp_pickle_op_binstring(struct gcmp_pickle_vm *vm) {
    struct gcmp_cursor before = vm->in;
    uint64_t count;
    GCMP_TRY(gcmp_pickle_take_number(vm, 4, &count));
    if (count > INT32_MAX) {
        return gcmp_pickle_fail(vm, GRADCMP_ERROR_CORRUPT,
                                "expected a length of 0 or more, found %d", (int)(uint32_t)count);
    }
    vm->in = before;
    return gcmp_pickle_op_binbytes(vm);
}
