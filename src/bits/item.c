/* Lists of items, and how a value looks to people. */
#include "bits/item.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/decimal.h"

enum { SHOWN_BYTES = 60 };

enum gradcmp_status gcmp_bits_add(struct gcmp_bits_items *items, const struct gcmp_bits_item *item,
                                  struct gradcmp_error *error) {
    if (!gcmp_grow(&items->list, items->count, &items->capacity, sizeof *items->list)) {
        GCMP_FAIL_MEMORY(error);
    }
    items->list[items->count++] = *item;
    return GRADCMP_OK;
}

/* Of one path (files a.pt and a.bin, or several ranks), the type and then the bytes decide. */
static int compare_items(const void *left, const void *right) {
    const struct gcmp_bits_item *a = left, *b = right;
    int order = strcmp(a->path, b->path);
    if (order == 0) {
        order = strcmp(a->type, b->type);
    }
    if (order == 0 && a->bytes != NULL && b->bytes != NULL) {
        size_t least = a->length_bytes < b->length_bytes ? a->length_bytes : b->length_bytes;
        order = memcmp(a->bytes, b->bytes, least);
    }
    if (order == 0 && a->whole != NULL && b->whole != NULL) {
        order = strcmp(a->whole, b->whole);
    }
    return order;
}

void gcmp_bits_sort(struct gcmp_bits_items *items) {
    if (items->count > 0) {
        qsort(items->list, items->count, sizeof *items->list, compare_items);
    }
}

bool gcmp_bits_has_type(const struct gcmp_bits_item *item, const char *type) {
    size_t bytes = strlen(type);
    return strncmp(item->type, type, bytes) == 0 &&
           (item->type[bytes] == '\0' || item->type[bytes] == ' ');
}

size_t gcmp_bits_lower(const struct gcmp_bits_items *items, const char *path) {
    size_t low = 0, high = items->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(items->list[middle].path, path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The fewest digits from which the same number is read back. */
static void show_float(struct gcmp_text *text, const unsigned char *bytes) {
    double value;
    char digits[GCMP_REAL_BYTES];
    memcpy(&value, bytes, sizeof value);
    if (isnan(value)) {
        uint64_t pattern;
        memcpy(&pattern, bytes, sizeof pattern);
        gcmp_text_addf(text, "nan (0x%016llx)", (unsigned long long)pattern);
        return;
    }
    gcmp_decimal_write(value, digits);
    gcmp_text_add(text, digits);
    if (strpbrk(digits, ".einf") == NULL) {
        gcmp_text_add(text, ".0");
    }
}

static void show_shape(struct gcmp_text *text, const struct gcmp_bits_item *item) {
    gcmp_text_addf(text, "%s [", item->type);
    for (unsigned d = 0; d < item->ndim; d++) {
        gcmp_text_addf(text, "%s%llu", d == 0 ? "" : ", ", (unsigned long long)item->shape[d]);
    }
    gcmp_text_add(text, "]");
}

void gcmp_bits_show(struct gcmp_text *text, const struct gcmp_bits_item *item) {
    if (item->kind != GCMP_BITS_VALUE) {
        show_shape(text, item);
    } else if (strcmp(item->type, "float") == 0) {
        show_float(text, item->bytes);
    } else if (strcmp(item->type, "str") == 0 || strcmp(item->type, "bytes") == 0) {
        bool is_text = item->type[0] == 's';
        size_t count = item->length_bytes < SHOWN_BYTES ? item->length_bytes : SHOWN_BYTES;
        gcmp_text_add(text, is_text ? "\"" : "bytes ");
        for (size_t i = 0; i < count && !is_text; i++) {
            gcmp_text_addf(text, "%02x", item->bytes[i]);
        }
        gcmp_text_add_bytes(text, (const char *)item->bytes, is_text ? count : 0);
        gcmp_text_add(text, count < item->length_bytes ? "..." : "");
        gcmp_text_add(text, is_text ? "\"" : "");
        if (!is_text || count < item->length_bytes) {
            gcmp_text_addf(text, " (%zu bytes)", item->length_bytes);
        }
    } else if (strcmp(item->type, "long int") == 0) {
        gcmp_text_add(text, "long int 0x");
        for (size_t i = item->length_bytes; i-- > 0;) {
            gcmp_text_addf(text, "%02x", item->bytes[i]);
        }
    } else if (item->length_bytes == 0) {
        gcmp_text_add(text, item->type);
    } else {
        bool is_plain = strcmp(item->type, "int") == 0 || strcmp(item->type, "bool") == 0;
        gcmp_text_addf(text, "%s%s", is_plain ? "" : item->type, is_plain ? "" : " ");
        gcmp_text_add_bytes(text, (const char *)item->bytes,
                            item->length_bytes < SHOWN_BYTES ? item->length_bytes : SHOWN_BYTES);
    }
}
