/* Kinds of parameters and their votes. */
#include "bounds/kind.h"

#include <string.h>

#include "base/map.h"
#include "bounds/figures.h"

/* The end of a run of digits that fills a whole part of the name, or NULL where there is none. */
static const char *index_end(const char *name, const char *at) {
    const char *end = at + strspn(at, "0123456789");
    bool whole = end > at && (at == name || at[-1] == '.') && (*end == '.' || *end == '\0');
    return whole ? end : NULL;
}

/* The name with '#' for every part that is a number. */
static char *kind_of(const char *name, struct gcmp_arena *scratch) {
    char *kind = gcmp_arena_dup(scratch, name);
    if (kind == NULL) {
        return NULL;
    }
    char *to = kind;
    for (const char *at = name; *at != '\0';) {
        const char *end = index_end(name, at);
        *to++ = end == NULL ? *at : '#';
        at = end == NULL ? at + 1 : end;
    }
    *to = '\0';
    return kind;
}

/* Number the kinds from 0, in the order in which they are met, and count what has a share. */
static enum gradcmp_status number_kinds(const struct gradcmp_parameter_report *parameters,
                                        size_t count, size_t *kinds, size_t *sizes,
                                        struct gcmp_map *map, struct gcmp_arena *scratch) {
    for (size_t i = 0; i < count; i++) {
        char *kind = kind_of(parameters[i].name, scratch);
        if (kind == NULL ||
            gcmp_map_add(map, kind, strlen(kind), map->count, &kinds[i]) == GCMP_MAP_NO_MEMORY) {
            return GRADCMP_ERROR_MEMORY;
        }
        sizes[kinds[i]] += gcmp_has_alpha(&parameters[i]) ? 1 : 0;
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_kind_votes(const struct gradcmp_parameter_report *parameters, size_t count,
                                    double *votes, struct gcmp_arena *scratch,
                                    struct gradcmp_error *error) {
    size_t *kinds = gcmp_arena_alloc(scratch, count, sizeof *kinds);
    size_t *sizes = gcmp_arena_alloc(scratch, count, sizeof *sizes);
    if (kinds == NULL || sizes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_map map = GCMP_MAP_INIT;
    enum gradcmp_status status = number_kinds(parameters, count, kinds, sizes, &map, scratch);
    gcmp_map_free(&map);
    if (status != GRADCMP_OK) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        votes[i] = gcmp_has_alpha(&parameters[i]) ? 1.0 / (double)sizes[kinds[i]] : 0.0;
    }
    return GRADCMP_OK;
}
