/* The list of checkpoints of a sweep.
 *
 * Limit: MAX_ENTRIES checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/text.h"
#include "sweep.h"

enum { MAX_ENTRIES = 1 << 16 };

/* The path below the root; the last part of the path where it is not below. */
static const char *label_of(const struct gcmp_roster *roster, const char *path) {
    size_t length = roster->root == NULL ? 0 : strlen(roster->root);
    if (length > 0 && strncmp(path, roster->root, length) == 0 && path[length] != '\0') {
        const char *below = path + length + strspn(path + length, "/");
        bool is_below = path[length] == '/' || roster->root[length - 1] == '/';
        if (is_below && below[0] != '\0') {
            return below;
        }
    }
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

enum gradcmp_status gcmp_roster_add(struct gcmp_roster *roster, const struct gcmp_entry *entry,
                                    struct gradcmp_error *error) {
    if (roster->count == MAX_ENTRIES) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, roster->plan != NULL ? roster->plan : roster->root,
                     GRADCMP_NO_OFFSET,
                     "more than %d checkpoints in one sweep: sweep them in parts", MAX_ENTRIES);
    }
    if (!gcmp_arena_grow(roster->arena, &roster->entries, roster->count, &roster->capacity,
                         sizeof *roster->entries)) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_entry *added = &roster->entries[roster->count];
    *added = *entry;
    added->path = gcmp_arena_dup(roster->arena, entry->path);
    const char *label = added->path == NULL    ? NULL
                        : entry->label != NULL ? entry->label
                                               : label_of(roster, added->path);
    added->is_named = entry->label != NULL;
    added->label = label == NULL ? NULL : gcmp_arena_dup(roster->arena, label);
    if (added->label == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    roster->count++;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_roster_leave_out(struct gcmp_roster *roster,
                                          const struct gcmp_left_out *out,
                                          struct gradcmp_error *error) {
    enum { MAX_NAMED = 3 };
    struct gcmp_text text = GCMP_TEXT_INIT;
    if (out->count == 0) {
        return GRADCMP_OK;
    }
    gcmp_text_addf(&text, "%zu %s%s %s%s", out->count, out->noun, out->count == 1 ? "" : "s",
                   out->why, out->count > MAX_NAMED ? ", such as " : ": ");
    for (size_t i = 0; i < out->count && i < MAX_NAMED; i++) {
        gcmp_text_add(&text, i > 0 ? ", " : "");
        gcmp_text_add(&text, label_of(roster, out->paths[i]));
    }
    struct gradcmp_sweep_left *left =
        gcmp_arena_alloc(roster->arena, roster->left_count + 1, sizeof *left);
    const char *line = text.failed ? NULL : gcmp_arena_dup(roster->arena, text.bytes);
    gcmp_text_free(&text);
    if (left == NULL || line == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (roster->left_count > 0) {
        memcpy(left, roster->left, roster->left_count * sizeof *left);
    }
    left[roster->left_count++] = (struct gradcmp_sweep_left){out->count, line};
    roster->left = left;
    return GRADCMP_OK;
}

size_t gcmp_path_bytes(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    return length;
}

/* True where two paths are the same but for slashes at the end of the second. */
static bool is_path(const char *path, const char *name) {
    size_t length = gcmp_path_bytes(name);
    return strncmp(path, name, length) == 0 && path[length] == '\0';
}

enum gradcmp_status gcmp_roster_leave_all_out(struct gcmp_roster *roster, const char *noun,
                                              const char *why, const struct gcmp_name_list *paths,
                                              struct gradcmp_error *error) {
    return gcmp_roster_leave_out(
        roster, &(struct gcmp_left_out){noun, why, (const char *const *)paths->names, paths->count},
        error);
}

/* The path of what a person may mean by another name of it; the name itself where it is none. */
static const char *real_name(const struct gcmp_roster *roster, const char *name) {
    for (size_t i = 0; i < roster->alias_count; i++) {
        const struct gcmp_alias *alias = &roster->aliases[i];
        if (is_path(alias->path, name) || is_path(label_of(roster, alias->path), name)) {
            return alias->of;
        }
    }
    return name;
}

enum gradcmp_status gcmp_roster_named(const struct gcmp_roster *roster, const char *name,
                                      size_t *index, struct gradcmp_error *error) {
    *index = SIZE_MAX;
    name = real_name(roster, name);
    for (size_t i = 0; i < roster->count; i++) {
        const struct gcmp_entry *entry = &roster->entries[i];
        if (!is_path(entry->label, name) && !is_path(entry->path, name)) {
            continue;
        }
        if (*index == SIZE_MAX) {
            *index = i;
        } else if (!is_path(entry->path, roster->entries[*index].path)) {
            GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                      "\"%.200s\" is the name or path of two checkpoints, %.200s and %.200s", name,
                      roster->entries[*index].path, entry->path);
        }
    }
    return GRADCMP_OK;
}
