/* A growing list of names, each malloced and owned by the list. */
#ifndef GCMP_BASE_NAME_LIST_H
#define GCMP_BASE_NAME_LIST_H

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

/* Free the names; the list is empty then. */
void gcmp_name_list_free(struct gcmp_name_list *list);

#endif
