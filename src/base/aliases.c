/* Finds checkpoints that several names lead to. */
#include "base/aliases.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/locate.h"

enum gradcmp_status gcmp_link_find(const char *path, size_t folder_bytes, size_t *link_bytes,
                                   struct gradcmp_error *error) {
    char *copy = strdup(path);
    size_t length = strlen(path), end = folder_bytes + strspn(path + folder_bytes, "/");
    *link_bytes = 0;
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    while (end < length && *link_bytes == 0) {
        struct stat info;
        end += strcspn(path + end, "/");
        copy[end] = '\0';
        *link_bytes = lstat(copy, &info) == 0 && S_ISLNK(info.st_mode) ? end : 0;
        copy[end] = path[end];
        end += strspn(path + end, "/");
    }
    free(copy);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_place_find(const char *path, int64_t iteration,
                                    struct gcmp_dir_place *place, bool *is_placed,
                                    struct gradcmp_error *error) {
    struct stat info;
    char *found = NULL;
    enum gradcmp_status status = gcmp_locate(path, iteration, &found, NULL);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    *is_placed = stat(status == GRADCMP_OK ? found : path, &info) == 0;
    if (*is_placed) {
        *place = (struct gcmp_dir_place){info.st_dev, info.st_ino};
    }
    free(found);
    return GRADCMP_OK;
}

/* A hit, and what it is however it is named. */
struct hit {
    size_t index, link_bytes; /* of the path */
    char *path;               /* malloced */
    struct gcmp_dir_place place;
    bool is_placed; /* else nothing is known of it */
};

static bool is_same(const struct hit *a, const struct hit *b) {
    return a->is_placed && b->is_placed && gcmp_dir_place_is(&a->place, &b->place);
}

/* Those of one place together, without links first, then by name. */
static int order_hits(const void *x, const void *y) {
    const struct hit *p = x, *q = y;
    if (!is_same(p, q)) {
        if (p->is_placed != q->is_placed) {
            return p->is_placed ? -1 : 1;
        }
        if (p->is_placed && p->place.device != q->place.device) {
            return p->place.device < q->place.device ? -1 : 1;
        }
        if (p->is_placed) {
            return p->place.inode < q->place.inode ? -1 : 1;
        }
    }
    if ((p->link_bytes > 0) != (q->link_bytes > 0)) {
        return p->link_bytes > 0 ? 1 : -1;
    }
    return strcmp(p->path, q->path);
}

/* Note the link in a path, once. */
static enum gradcmp_status note_link(const struct hit *hit, struct gcmp_name_list *links,
                                     struct gradcmp_error *error) {
    for (size_t i = 0; i < links->count; i++) {
        if (strncmp(links->names[i], hit->path, hit->link_bytes) == 0 &&
            links->names[i][hit->link_bytes] == '\0') {
            return GRADCMP_OK;
        }
    }
    return gcmp_name_list_add(links, strndup(hit->path, hit->link_bytes), error);
}

/* Note a hit that is another one. */
static enum gradcmp_status note_alias(const struct hit *hit, const struct hit *kept,
                                      struct gcmp_runs *runs, struct gradcmp_error *error) {
    GCMP_TRY(note_link(hit, &runs->alias_links, error));
    GCMP_TRY(gcmp_name_list_add(&runs->aliases, strdup(hit->path), error));
    return gcmp_name_list_add(&runs->alias_of, strdup(kept->path), error);
}

/* Take the names of aliases out of the hits, which are sorted by place. */
static enum gradcmp_status take_out(struct gcmp_search *search, const struct hit *hits,
                                    struct gcmp_runs *runs, struct gradcmp_error *error) {
    size_t count = search->hits.count, kept = 0, left = 0;
    for (size_t i = 1; i < count; i++) {
        kept = is_same(&hits[kept], &hits[i]) ? kept : i;
        if (kept < i && hits[i].link_bytes > 0) {
            GCMP_TRY(note_alias(&hits[i], &hits[kept], runs, error));
            free(search->hits.names[hits[i].index]);
            search->hits.names[hits[i].index] = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (search->hits.names[i] != NULL) {
            search->hits.names[left++] = search->hits.names[i];
        }
    }
    search->hits.count = left;
    gcmp_name_list_sort(&runs->alias_links);
    return GRADCMP_OK;
}

/* Find the links in the paths of the hits, and only where there are some what they all are. */
static enum gradcmp_status place_hits(const struct gcmp_search *search, struct hit *hits,
                                      bool *has_links, struct gradcmp_error *error) {
    const char *root = gcmp_dir_path(search->dir);
    size_t count = search->hits.count;
    for (size_t i = 0; i < count; i++) {
        hits[i].index = i;
        hits[i].path = gcmp_join_names(root, search->hits.names[i]);
        if (hits[i].path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_link_find(hits[i].path, strlen(root), &hits[i].link_bytes, error));
        *has_links = *has_links || hits[i].link_bytes > 0;
    }
    for (size_t i = 0; i < count && *has_links; i++) {
        GCMP_TRY(gcmp_place_find(hits[i].path, search->iteration, &hits[i].place,
                                 &hits[i].is_placed, error));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_aliases_take(struct gcmp_search *search, struct gcmp_runs *runs,
                                      struct gradcmp_error *error) {
    size_t count = search->hits.count;
    bool has_links = false;
    struct hit *hits = calloc(count + 1, sizeof *hits);
    if (hits == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = place_hits(search, hits, &has_links, error);
    if (has_links && status == GRADCMP_OK) {
        qsort(hits, count, sizeof *hits, order_hits);
        status = take_out(search, hits, runs, error);
    }
    for (size_t i = 0; i < count; i++) {
        free(hits[i].path);
    }
    free(hits);
    return status;
}
