/* Why jansson gave no document. */
#ifndef GCMP_BASE_JSON_FAULT_H
#define GCMP_BASE_JSON_FAULT_H

#include <stdbool.h>

#include <jansson.h>

/* Tell whether it had no memory: in most places it then leaves without a word. */
static inline bool gcmp_json_lacked_memory(const json_error_t *fault) {
    return fault->text[0] == '\0' || json_error_code(fault) == json_error_out_of_memory;
}

#endif
