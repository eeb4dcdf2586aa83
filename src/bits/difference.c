/* Elements as patterns. */
#include "bits/difference.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK_BYTES = 4096 };

struct gcmp_bits_difference *gcmp_bits_difference_make(struct gcmp_arena *arena, unsigned ndim,
                                                       const uint64_t *shape, unsigned elem_bytes) {
    struct gcmp_bits_difference *made;
    size_t bytes = offsetof(struct gcmp_bits_difference, box) + ndim * sizeof made->box[0];
    made = gcmp_arena_alloc(arena, 1, bytes);
    if (made != NULL) {
        made->shape = shape;
        made->ndim = ndim;
        made->elem_bytes = elem_bytes;
    }
    return made;
}

static void index_of(const struct gcmp_bits_difference *difference, uint64_t element,
                     uint64_t *index) {
    for (unsigned d = difference->ndim; d-- > 0;) {
        index[d] = element % difference->shape[d];
        element /= difference->shape[d];
    }
}

/* Take an index into the box of axis `d`. */
static void widen(struct gcmp_bits_difference *difference, unsigned d, uint64_t index,
                  bool is_first) {
    if (is_first || index < difference->box[d].low) {
        difference->box[d].low = index;
    }
    if (is_first || index > difference->box[d].high) {
        difference->box[d].high = index;
    }
}

static void note(struct gcmp_bits_difference *difference, uint64_t element, const unsigned char *a,
                 const unsigned char *b) {
    uint64_t index[GRADCMP_MAX_NDIM];
    for (unsigned i = 0; i < difference->elem_bytes; i++) {
        difference->bits += (uint64_t)__builtin_popcount((unsigned)(a[i] ^ b[i]));
    }
    index_of(difference, element, index);
    for (unsigned d = 0; d < difference->ndim; d++) {
        widen(difference, d, index[d], difference->different == 0);
    }
    if (difference->different == 0 || element < difference->first) {
        difference->first = element;
        memcpy(difference->a, a, difference->elem_bytes);
        memcpy(difference->b, b, difference->elem_bytes);
    }
    difference->different++;
}

void gcmp_bits_compare(struct gcmp_bits_difference *difference, uint64_t first, size_t elems,
                       const void *a, const void *b) {
    const unsigned char *x = a, *y = b;
    unsigned width = difference->elem_bytes;
    size_t bytes = elems * width, step = CHUNK_BYTES;
    difference->elems += elems;
    for (size_t at = 0; at < bytes; at += step) {
        size_t count = bytes - at < step ? bytes - at : step;
        if (memcmp(x + at, y + at, count) == 0) {
            continue;
        }
        for (size_t i = at; i < at + count; i += width) {
            if (memcmp(x + i, y + i, width) != 0) {
                /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): an element has bytes */
                note(difference, first + i / width, x + i, y + i);
            }
        }
    }
}

void gcmp_bits_merge(struct gcmp_bits_difference *into, const struct gcmp_bits_difference *part) {
    into->elems += part->elems;
    if (part->different == 0) {
        return;
    }
    bool is_first = into->different == 0;
    for (unsigned d = 0; d < into->ndim; d++) {
        widen(into, d, part->box[d].low, is_first);
        widen(into, d, part->box[d].high, false);
    }
    if (is_first || part->first < into->first) {
        into->first = part->first;
        memcpy(into->a, part->a, sizeof into->a);
        memcpy(into->b, part->b, sizeof into->b);
    }
    into->different += part->different;
    into->bits += part->bits;
}

static uint64_t load(const unsigned char *element, unsigned width) {
    uint64_t value = 0;
    if (width == 8) {
        memcpy(&value, element, 8);
    } else if (width == 4) {
        uint32_t narrow;
        memcpy(&narrow, element, 4);
        value = narrow;
    } else if (width == 2) {
        uint16_t narrow;
        memcpy(&narrow, element, 2);
        value = narrow;
    } else {
        value = element[0];
    }
    return value;
}

struct float_form {
    enum gradcmp_dtype dtype;
    unsigned bits;
    uint64_t infinity; /* magnitudes above are NaN */
};
static const struct float_form forms[] = {
    {GRADCMP_DTYPE_FLOAT64, 64, UINT64_C(0x7ff0000000000000)},
    {GRADCMP_DTYPE_FLOAT32, 32, 0x7f800000},
    {GRADCMP_DTYPE_FLOAT16, 16, 0x7c00},
    {GRADCMP_DTYPE_BFLOAT16, 16, 0x7f80},
    {GRADCMP_DTYPE_FLOAT8_E4M3FN, 8, 0x7e}, /* no infinity: the largest number */
    {GRADCMP_DTYPE_FLOAT8_E5M2, 8, 0x7c},
};

static bool float_ulp(const struct float_form *form, uint64_t a, uint64_t b, uint64_t *ulp) {
    uint64_t sign = UINT64_C(1) << (form->bits - 1);
    uint64_t x = a & (sign - 1), y = b & (sign - 1);
    if (x > form->infinity || y > form->infinity) {
        return false;
    }
    bool same_sign = (a & sign) == (b & sign);
    *ulp = same_sign ? (x > y ? x - y : y - x) : x + y;
    return true;
}

static bool integer_ulp(enum gradcmp_dtype dtype, const unsigned char *a, const unsigned char *b,
                        uint64_t *ulp) {
    static const struct {
        enum gradcmp_dtype dtype;
        unsigned bytes;
        bool is_signed;
    } integers[] = {
        {GRADCMP_DTYPE_INT64, 8, true},   {GRADCMP_DTYPE_INT32, 4, true},
        {GRADCMP_DTYPE_INT16, 2, true},   {GRADCMP_DTYPE_INT8, 1, true},
        {GRADCMP_DTYPE_UINT64, 8, false}, {GRADCMP_DTYPE_UINT32, 4, false},
        {GRADCMP_DTYPE_UINT16, 2, false}, {GRADCMP_DTYPE_UINT8, 1, false},
    };
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        if (integers[i].dtype == dtype) {
            /* Moving signed numbers by half of the range keeps their distance. */
            uint64_t flip = integers[i].is_signed ? UINT64_C(1) << (8 * integers[i].bytes - 1) : 0;
            uint64_t x = load(a, integers[i].bytes) ^ flip, y = load(b, integers[i].bytes) ^ flip;
            *ulp = x > y ? x - y : y - x;
            return true;
        }
    }
    return false;
}

bool gcmp_bits_ulp(enum gradcmp_dtype dtype, const unsigned char *a, const unsigned char *b,
                   uint64_t *ulp) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i].dtype == dtype) {
            return float_ulp(&forms[i], load(a, forms[i].bits / 8), load(b, forms[i].bits / 8),
                             ulp);
        }
    }
    return integer_ulp(dtype, a, b, ulp);
}

void gcmp_bits_hex(const unsigned char *element, unsigned elem_bytes, char *out) {
    const uint16_t one = 1;
    unsigned char little;
    memcpy(&little, &one, 1);
    memcpy(out, "0x", 3);
    for (unsigned i = 0; i < elem_bytes; i++) {
        snprintf(out + 2 + 2 * i, 3, "%02x", element[little ? elem_bytes - 1 - i : i]);
    }
}

/* True where one of several slabs of a copy holds the whole box. */
static bool is_in_one_slab(const struct gcmp_bits_difference *difference,
                           const struct gradcmp_parameter *parameter) {
    if (parameter == NULL || parameter->ndim != difference->ndim ||
        parameter->slab_count <= parameter->copy_count) {
        return false;
    }
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_slab *slab = &parameter->slabs[i];
        bool inside = true;
        for (unsigned d = 0; d < difference->ndim && inside; d++) {
            inside = difference->box[d].low >= slab->start[d] &&
                     difference->box[d].high - slab->start[d] < slab->extent[d];
        }
        if (inside) {
            return true;
        }
    }
    return false;
}

const char *gcmp_bits_look(const struct gcmp_bits_difference *difference,
                           const struct gradcmp_parameter *a, const struct gradcmp_parameter *b) {
    if (difference->different == 1) {
        return difference->bits == 1 ? "one flipped bit" : "one element";
    }
    if (difference->different == difference->elems) {
        return "all";
    }
    return is_in_one_slab(difference, b) || is_in_one_slab(difference, a) ? "one shard"
                                                                          : "scattered";
}
