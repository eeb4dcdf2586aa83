/* What a pattern of a plan stands for, and what it does not reach. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aliases.h"
#include "sweep.h"

static const char wild[] = "*?[";

/* True for a folder that the system does not let us look into: list, where a pattern asks for it,
 * or pass through. */
static bool is_closed(const char *path, bool is_listed) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        return false;
    }
    int folder = open(path, O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (is_listed ? O_RDONLY : O_PATH));
    bool is_open = folder >= 0 && fstatat(folder, ".", &info, 0) == 0;
    int code = errno;
    if (folder >= 0) {
        close(folder);
    }
    return !is_open && (code == EACCES || code == EPERM);
}

static enum gradcmp_status glob_all(const char *pattern, glob_t *found, bool *has_some,
                                    struct gradcmp_error *error) {
    int code = glob(pattern, 0, NULL, found);
    *has_some = code == 0;
    if (code == GLOB_NOSPACE) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Add the folders that the first bytes of a pattern stand for and that are closed. */
static enum gradcmp_status add_closed(const char *start, bool is_listed,
                                      struct gcmp_name_list *closed, struct gradcmp_error *error) {
    glob_t found;
    bool has_some;
    GCMP_TRY(glob_all(start, &found, &has_some, error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; has_some && i < found.gl_pathc && status == GRADCMP_OK; i++) {
        bool is_new = is_closed(found.gl_pathv[i], is_listed);
        for (size_t k = 0; k < closed->count && is_new; k++) {
            is_new = strcmp(closed->names[k], found.gl_pathv[i]) != 0;
        }
        if (is_new) {
            status = gcmp_name_list_add(closed, strdup(found.gl_pathv[i]), error);
        }
    }
    if (has_some) {
        globfree(&found);
    }
    return status;
}

/* Look for closed folders at each slash of a pattern: glob takes what is in them for absent. */
static enum gradcmp_status find_closed(const char *pattern, struct gcmp_name_list *closed,
                                       struct gradcmp_error *error) {
    char *start = strdup(pattern);
    if (start == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t at = 1; pattern[0] != '\0' && pattern[at] != '\0' && status == GRADCMP_OK; at++) {
        if (pattern[at] == '/' && pattern[at - 1] != '/') {
            size_t next = at + strspn(pattern + at, "/"), end = strcspn(pattern + next, "/");
            size_t plain = strcspn(pattern + next, wild);
            start[at] = '\0';
            status = add_closed(start, plain < end, closed, error);
            start[at] = '/';
        }
    }
    free(start);
    return status;
}

/* A match, and what it is however it is named. */
struct match {
    const char *path;
    size_t link_bytes;
    struct gcmp_dir_place place;
    bool is_placed;
};

static enum gradcmp_status place_match(const struct gcmp_roster *roster, struct match *match,
                                       struct gradcmp_error *error) {
    return gcmp_place_find(match->path, roster->options.iteration, &match->place, &match->is_placed,
                           error);
}

static bool is_same(const struct match *a, const struct match *b) {
    return a->is_placed && b->is_placed && gcmp_dir_place_is(&a->place, &b->place);
}

/* Matches of a pattern, and behind them what the plan named before. */
struct match_list {
    struct match *items;
    size_t count, entry_count;
};

/* True where a link is one of the other matches, or of what the plan named before. */
static bool is_alias(const struct match_list *list, size_t index) {
    const struct match *link = &list->items[index];
    bool is_it = false;
    for (size_t i = 0; i < list->count && !is_it; i++) {
        bool goes_first = list->items[i].link_bytes == 0 || i < index;
        is_it = i != index && goes_first && is_same(&list->items[i], link);
    }
    for (size_t i = list->count; i < list->count + list->entry_count && !is_it; i++) {
        const struct match *entry = &list->items[i];
        is_it = is_same(entry, link) && strcmp(entry->path, link->path) != 0;
    }
    return is_it;
}

/* Find the links among the matches, and only where there are some what they all are. */
static enum gradcmp_status place_matches(const struct gcmp_roster *roster,
                                         const struct match_list *list,
                                         struct gradcmp_error *error) {
    struct match *items = list->items;
    size_t root =
        strncmp(items[0].path, roster->root, strlen(roster->root)) == 0 ? strlen(roster->root) : 0;
    bool has_links = false;
    for (size_t i = 0; i < list->count; i++) {
        GCMP_TRY(gcmp_link_find(items[i].path, root, &items[i].link_bytes, error));
        has_links = has_links || items[i].link_bytes > 0;
    }
    for (size_t i = 0; i < list->count + list->entry_count && has_links; i++) {
        GCMP_TRY(place_match(roster, &items[i], error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status sift(const struct gcmp_roster *roster, const struct match_list *list,
                                const glob_t *found, struct gcmp_matches *out,
                                struct gradcmp_error *error) {
    for (size_t i = 0; i < list->count; i++) {
        list->items[i].path = found->gl_pathv[i];
    }
    for (size_t i = 0; i < list->entry_count; i++) {
        list->items[list->count + i].path = roster->entries[i].path;
    }
    GCMP_TRY(place_matches(roster, list, error));
    for (size_t i = 0; i < list->count; i++) {
        bool is_other_name = list->items[i].link_bytes > 0 && is_alias(list, i);
        GCMP_TRY(gcmp_name_list_add(is_other_name ? &out->aliases : &out->paths,
                                    strdup(list->items[i].path), error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_match(const struct gcmp_roster *roster, const char *pattern,
                               struct gcmp_matches *out, struct gradcmp_error *error) {
    glob_t found;
    bool has_some;
    GCMP_TRY(find_closed(pattern, &out->closed, error));
    GCMP_TRY(glob_all(pattern, &found, &has_some, error));
    if (!has_some) {
        return GRADCMP_OK;
    }
    struct match_list list = {.count = found.gl_pathc, .entry_count = roster->count};
    list.items = calloc(list.count + list.entry_count, sizeof *list.items);
    enum gradcmp_status status =
        list.items == NULL
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : sift(roster, &list, &found, out, error);
    free(list.items);
    globfree(&found);
    return status;
}
