/* Recognises quantised weights: codes are not the values, and must not be compared as if they were.
 */
#include "formats/quantised.h"

#include <stdio.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/map.h"

enum { MAX_SUFFIX_BYTES = 32 };

/* How the keys of codes and of their scales end, and who writes them so. */
static const struct pair_of_keys {
    const char *codes, *scales;
} pairs[] = {
    {"_blocks", "_scales"},            /* MXFP4 of gpt-oss */
    {"", "_scale_inv"},                /* FP8 of DeepSeek */
    {"", "_scale"},                    /* FP8, int8 and NVFP4 of compressed-tensors, ModelOpt */
    {"weight_packed", "weight_scale"}, /* compressed-tensors, several codes a word */
    {"qweight", "scales"},             /* GPTQ, AWQ */
    {"weight", "SCB"},                 /* bitsandbytes, int8 */
    {"", ".absmax"},                   /* bitsandbytes, 4 bits */
};

/* Codes are of eight bits, integers, or of a type that is not read. */
static bool may_be_codes(const struct gradcmp_stored *stored) {
    enum gradcmp_dtype dtype = (enum gradcmp_dtype)stored->dtype;
    return !gcmp_dtype_is_float(dtype) || gcmp_dtype_bytes(dtype) == 1;
}

static bool has_scales(const struct gcmp_map *keys, const char *key,
                       const struct pair_of_keys *pair) {
    char scales[1024];
    size_t bytes = strlen(key), ending = strlen(pair->codes), index;
    if (bytes <= ending || bytes + MAX_SUFFIX_BYTES > sizeof scales ||
        strcmp(key + bytes - ending, pair->codes) != 0) {
        return false;
    }
    bytes -= ending;
    int length = snprintf(scales, sizeof scales, "%.*s%s", (int)bytes, key, pair->scales);
    bytes = (size_t)length;
    return gcmp_map_find(keys, scales, bytes, &index);
}

static const char *first_quantised(const struct gradcmp_catalogue *catalogue,
                                   const struct gcmp_map *keys) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const char *key = catalogue->stored[i].key;
        for (size_t j = 0; j < sizeof pairs / sizeof *pairs && may_be_codes(&catalogue->stored[i]);
             j++) {
            if (has_scales(keys, key, &pairs[j])) {
                return key;
            }
        }
    }
    return NULL;
}

enum gradcmp_status gcmp_find_quantised(const struct gradcmp_catalogue *catalogue, const char **key,
                                        struct gradcmp_error *error) {
    struct gcmp_map keys = GCMP_MAP_INIT;
    bool has_memory = true;
    for (size_t i = 0; i < catalogue->stored_count && has_memory; i++) {
        const char *text = catalogue->stored[i].key;
        has_memory = gcmp_map_add(&keys, text, strlen(text), i, NULL) != GCMP_MAP_NO_MEMORY;
    }
    *key = has_memory ? first_quantised(catalogue, &keys) : NULL;
    gcmp_map_free(&keys);
    if (!has_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_note_quantised(struct gradcmp_catalogue *catalogue,
                                        struct gradcmp_error *error) {
    const char *key;
    GCMP_TRY(gcmp_find_quantised(catalogue, &key, error));
    return key == NULL
               ? GRADCMP_OK
               : gcmp_catalogue_note(catalogue, error,
                                     "weights are quantised (\"%.160s\" has scales beside it): "
                                     "they are neither dequantised nor judged",
                                     key);
}
