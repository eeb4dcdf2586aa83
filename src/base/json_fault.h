/* JSON by jansson, with a lack of memory told apart from a text that is wrong. */
#ifndef GCMP_BASE_JSON_FAULT_H
#define GCMP_BASE_JSON_FAULT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* json_loadb, refusing keys written twice. */
static inline json_t *gcmp_json_load(const char *bytes, size_t count, json_error_t *fault) {
    errno = 0;
    return json_loadb(bytes, count, JSON_REJECT_DUPLICATES, fault);
}

/* Behind a gcmp_json_load that gave nothing: tell whether it had no memory. jansson then leaves
 * without a word, or blames the token that it could not keep. */
static inline bool gcmp_json_lacked_memory(const json_error_t *fault) {
    return errno == ENOMEM || fault->text[0] == '\0' ||
           json_error_code(fault) == json_error_out_of_memory;
}

#endif
