/* A growing list of names. */
#include "base/name_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/grow.h"

enum gradcmp_status gcmp_name_list_add(struct gcmp_name_list *list, char *name,
                                       struct gradcmp_error *error) {
    if (name == NULL ||
        !gcmp_grow(&list->names, list->count, &list->capacity, sizeof *list->names)) {
        free(name);
        GCMP_FAIL_MEMORY(error);
    }
    list->names[list->count++] = name;
    return GRADCMP_OK;
}

static int order_names(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

void gcmp_name_list_sort(struct gcmp_name_list *list) {
    if (list->count > 0) {
        qsort(list->names, list->count, sizeof *list->names, order_names);
    }
}

void gcmp_name_list_free(struct gcmp_name_list *list) {
    gcmp_dir_free_names(list->names, list->count);
    *list = (struct gcmp_name_list){0};
}
