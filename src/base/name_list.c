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

bool gcmp_name_list_has(const struct gcmp_name_list *list, const char *name) {
    return list->count > 0 &&
           bsearch(&name, list->names, list->count, sizeof *list->names, order_names) != NULL;
}

bool gcmp_name_list_has_below(const struct gcmp_name_list *list, const char *path, size_t length) {
    size_t low = 0, high = list->count;
    while (low < high) { /* the first that is not before "path/" */
        size_t middle = low + (high - low) / 2;
        const char *name = list->names[middle];
        int order = strncmp(name, path, length);
        if (order < 0 || (order == 0 && (unsigned char)name[length] < '/')) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < list->count && strncmp(list->names[low], path, length) == 0 &&
           list->names[low][length] == '/';
}

void gcmp_name_list_free(struct gcmp_name_list *list) {
    gcmp_dir_free_names(list->names, list->count);
    *list = (struct gcmp_name_list){0};
}
