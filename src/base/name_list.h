/* A growing list of names, each malloced and owned by the list. */
#ifndef GCMP_BASE_NAME_LIST_H
#define GCMP_BASE_NAME_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct gcmp_name_list {
    char **names;
    size_t count, capacity;
};

/* Append a malloced name, which the list then owns, also on failure; NULL stands for want of
 * memory. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_list_add(struct gcmp_name_list *list, char *name,
                                                        struct gradcmp_error *error);

/* Sort bytewise. */
void gcmp_name_list_sort(struct gcmp_name_list *list);

/* In a sorted list: true where a name is in it; true where one begins with the first bytes of
 * `path` and a slash. */
bool gcmp_name_list_has(const struct gcmp_name_list *list, const char *name);
bool gcmp_name_list_has_below(const struct gcmp_name_list *list, const char *path, size_t length);

/* Free the names; the list is empty then. */
void gcmp_name_list_free(struct gcmp_name_list *list);

#endif
