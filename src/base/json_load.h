/* JSON by jansson, with a lack of memory told apart from a text that is wrong. */
#ifndef GCMP_BASE_JSON_LOAD_H
#define GCMP_BASE_JSON_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* json_loadb. jansson's lexer leaves out the characters that it has no memory for, or aborts; here
 * the load ends at the first allocation that fails, with NULL, nothing leaked, and a fault that
 * gcmp_json_lacked_memory knows. The caller owns the value (json_decref). */
json_t *gcmp_json_load(const char *bytes, size_t count, size_t flags, json_error_t *fault);

/* Behind a gcmp_json_load that gave NULL: tell whether memory ran out. */
bool gcmp_json_lacked_memory(const json_error_t *fault);

#endif
