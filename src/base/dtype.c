/* Facts of element types. */
#include "base/dtype.h"

#include <string.h>

struct dtype_facts {
    const char *name, *alias;
    unsigned bytes, precision;
    double eps;
    bool is_float;
};

/* eps: the spacing above 1, 2^(1 - precision); float8 computes in bfloat16, so it takes that one.
 */
static const struct dtype_facts facts[GRADCMP_DTYPE_COUNT] = {
    [GRADCMP_DTYPE_NONE] = {"none", "none", 0, 0, 0.0, false},
    [GRADCMP_DTYPE_FLOAT64] = {"float64", "fp64", 8, 53, 0x1p-52, true},
    [GRADCMP_DTYPE_FLOAT32] = {"float32", "fp32", 4, 24, 0x1p-23, true},
    [GRADCMP_DTYPE_FLOAT16] = {"float16", "fp16", 2, 11, 0x1p-10, true},
    [GRADCMP_DTYPE_BFLOAT16] = {"bfloat16", "bf16", 2, 8, 0x1p-7, true},
    [GRADCMP_DTYPE_FLOAT8_E4M3FN] = {"float8_e4m3fn", "fp8_e4m3", 1, 4, 0x1p-7, true},
    [GRADCMP_DTYPE_FLOAT8_E5M2] = {"float8_e5m2", "fp8_e5m2", 1, 3, 0x1p-7, true},
    [GRADCMP_DTYPE_INT64] = {"int64", "i64", 8, 0, 0.0, false},
    [GRADCMP_DTYPE_INT32] = {"int32", "i32", 4, 0, 0.0, false},
    [GRADCMP_DTYPE_INT16] = {"int16", "i16", 2, 0, 0.0, false},
    [GRADCMP_DTYPE_INT8] = {"int8", "i8", 1, 0, 0.0, false},
    [GRADCMP_DTYPE_UINT64] = {"uint64", "u64", 8, 0, 0.0, false},
    [GRADCMP_DTYPE_UINT32] = {"uint32", "u32", 4, 0, 0.0, false},
    [GRADCMP_DTYPE_UINT16] = {"uint16", "u16", 2, 0, 0.0, false},
    [GRADCMP_DTYPE_UINT8] = {"uint8", "u8", 1, 0, 0.0, false},
    [GRADCMP_DTYPE_BOOL] = {"bool", "bool", 1, 0, 0.0, false},
    [GRADCMP_DTYPE_COMPLEX64] = {"complex64", "c64", 8, 0, 0.0, false},
    [GRADCMP_DTYPE_COMPLEX128] = {"complex128", "c128", 16, 0, 0.0, false},
};

static const struct dtype_facts *facts_of(enum gradcmp_dtype dtype) {
    return &facts[(unsigned)dtype < GRADCMP_DTYPE_COUNT ? dtype : GRADCMP_DTYPE_NONE];
}

const char *gradcmp_dtype_name(enum gradcmp_dtype dtype) {
    return facts_of(dtype)->name;
}

unsigned gcmp_dtype_bytes(enum gradcmp_dtype dtype) {
    return facts_of(dtype)->bytes;
}

bool gcmp_dtype_is_float(enum gradcmp_dtype dtype) {
    return facts_of(dtype)->is_float;
}

double gcmp_dtype_eps(enum gradcmp_dtype dtype) {
    return facts_of(dtype)->eps;
}

unsigned gcmp_dtype_precision(enum gradcmp_dtype dtype) {
    return facts_of(dtype)->precision;
}

bool gcmp_dtype_number(enum gradcmp_dtype dtype, uint64_t bits, double *out) {
    uint32_t word = (uint32_t)bits;
    float single;
    switch (dtype) {
    case GRADCMP_DTYPE_FLOAT32:
        memcpy(&single, &word, sizeof single);
        *out = (double)single;
        return true;
    case GRADCMP_DTYPE_FLOAT64:
        memcpy(out, &bits, sizeof *out);
        return true;
    case GRADCMP_DTYPE_INT32:
        *out = (double)(int32_t)word;
        return true;
    case GRADCMP_DTYPE_INT64:
        *out = (double)(int64_t)bits;
        return true;
    default:
        return false;
    }
}

enum gradcmp_dtype gcmp_dtype_find(const char *name) {
    for (unsigned i = 1; i < GRADCMP_DTYPE_COUNT; i++) {
        if (strcmp(facts[i].name, name) == 0 || strcmp(facts[i].alias, name) == 0) {
            return (enum gradcmp_dtype)i;
        }
    }
    return GRADCMP_DTYPE_NONE;
}
