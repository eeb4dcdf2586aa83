/* Finds checkpoints that several names lead to. */
#include "base/aliases.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/locate.h"

size_t gcmp_link_bytes(const struct gcmp_search *search, const char *name) {
    size_t link = 0;
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), name);
    size_t around = path == NULL ? 0 : strlen(path) - strlen(name);
    for (size_t end = 0; path != NULL && link == 0 && name[end] != '\0';) {
        struct stat info;
        end += end > 0; /* the slash */
        end += strcspn(name + end, "/");
        path[around + end] = '\0';
        link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode) ? end : 0;
        path[around + end] = name[end];
    }
    if (path == NULL) {
        gcmp_dir_note_memory(search->dir);
    }
    free(path);
    return link;
}

/* A hit, and what it is however it is named. */
struct hit {
    size_t index, link_bytes;
    const char *name;
    struct gcmp_dir_place place;
    bool is_placed; /* else nothing is known of it */
};

/* Find what a hit is: the checkpoint that its tracker leads to, where it has one. Errors: MEMORY.
 */
static enum gradcmp_status place_hit(const struct gcmp_search *search, struct hit *hit,
                                     struct gradcmp_error *error) {
    struct stat info;
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), hit->name), *found = NULL;
    if (path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_locate(path, search->iteration, &found, NULL);
    const char *real = status == GRADCMP_OK ? found : path;
    hit->is_placed = status != GRADCMP_ERROR_MEMORY && stat(real, &info) == 0;
    if (hit->is_placed) {
        hit->place = (struct gcmp_dir_place){info.st_dev, info.st_ino};
    }
    free(found);
    free(path);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static bool is_same(const struct hit *a, const struct hit *b) {
    return a->is_placed && b->is_placed && a->place.device == b->place.device &&
           a->place.inode == b->place.inode;
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
    return strcmp(p->name, q->name);
}

static enum gradcmp_status add_path(const struct gcmp_search *search, const char *name,
                                    struct gcmp_name_list *list, struct gradcmp_error *error) {
    return gcmp_name_list_add(list, gcmp_join_names(gcmp_dir_path(search->dir), name), error);
}

/* Note the link in a name, once. */
static enum gradcmp_status note_link(const struct gcmp_search *search, const struct hit *hit,
                                     struct gcmp_name_list *links, struct gradcmp_error *error) {
    char *path = gcmp_join_names(gcmp_dir_path(search->dir), hit->name);
    if (path != NULL) {
        path[strlen(path) - strlen(hit->name) + hit->link_bytes] = '\0';
    }
    for (size_t i = 0; path != NULL && i < links->count; i++) {
        if (strcmp(links->names[i], path) == 0) {
            free(path);
            return GRADCMP_OK;
        }
    }
    return gcmp_name_list_add(links, path, error);
}

/* Note a hit that is another one. */
static enum gradcmp_status note_alias(const struct gcmp_search *search, const struct hit *hit,
                                      const struct hit *kept, struct gcmp_runs *runs,
                                      struct gradcmp_error *error) {
    GCMP_TRY(note_link(search, hit, &runs->alias_links, error));
    GCMP_TRY(add_path(search, hit->name, &runs->aliases, error));
    return add_path(search, kept->name, &runs->alias_of, error);
}

/* Take the names of aliases out of the hits, which are sorted by place. */
static enum gradcmp_status take_out(struct gcmp_search *search, const struct hit *hits,
                                    struct gcmp_runs *runs, struct gradcmp_error *error) {
    size_t count = search->hits.count, kept = 0, left = 0;
    for (size_t i = 1; i < count; i++) {
        kept = is_same(&hits[kept], &hits[i]) ? kept : i;
        if (kept < i && hits[i].link_bytes > 0) {
            GCMP_TRY(note_alias(search, &hits[i], &hits[kept], runs, error));
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

enum gradcmp_status gcmp_aliases_take(struct gcmp_search *search, struct gcmp_runs *runs,
                                      struct gradcmp_error *error) {
    size_t count = search->hits.count;
    bool has_links = false;
    struct hit *hits = calloc(count + 1, sizeof *hits);
    if (hits == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = search->hits.names[i];
        hits[i] =
            (struct hit){.index = i, .name = name, .link_bytes = gcmp_link_bytes(search, name)};
        has_links = has_links || hits[i].link_bytes > 0;
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && has_links && status == GRADCMP_OK; i++) {
        status = place_hit(search, &hits[i], error);
    }
    if (has_links && status == GRADCMP_OK) {
        qsort(hits, count, sizeof *hits, order_hits);
        status = take_out(search, hits, runs, error);
    }
    free(hits);
    return status;
}
