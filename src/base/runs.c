/* Finds all runs below a folder. */
#include "base/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/aliases.h"
#include "base/dir.h"
#include "base/search.h"

/* Limits: levels below the given folder that are looked into whole, and those that are while there
 * are not too many folders. */
enum { MAX_LEVEL = 8, MAX_FAR_LEVEL = 32 };

/* Limit: folders below a hidden one that are looked into for a checkpoint to tell of. */
enum { MAX_HIDDEN_FOLDERS = 256 };

/* Names of which one is enough for all such files of a folder to be one checkpoint: the optimizer
 * beside weights, the first of parts, the file of rank 0. */
static const char *const together[] = {
    "optimizer.*",   "optim.*",      "*-00001-of-*.bin", "*rank0.*",     "*rank_0.*",
    "*rank-0.*",     "*rank00.*",    "*rank_00.*",       "*rank-00.*",   "*rank000.*",
    "*rank_000.*",   "*rank-000.*",  "*rank0000.*",      "*rank_0000.*", "*rank-0000.*",
    "*rank_00000.*", "*rank00000.*",
};

/* Names beside a checkpoint's own, and those of its parts while they are written. */
static const char *const traces[] = {
    "trainer_state.json", "random_states_*", "*.distcp.*",          "*.pt.*", "*.pth.*",
    "*.ckpt.*",           "*.safetensors.*", "pytorch_model.bin.*",
};

/* A search for runs, and what it came by. */
struct finder {
    struct gcmp_search search;
    struct gcmp_name_list looked; /* folders that were looked into */
    struct gcmp_name_list likely; /* those of them that look like a run's */
    struct gcmp_name_list hidden; /* folders that were not looked into */
};

/* Whether the files of a folder are parts of one checkpoint, by their names. */
static bool is_together(const struct gcmp_search_folder *folder) {
    for (size_t i = 0; i < folder->count; i++) {
        if (gcmp_is_weak_mark(folder->names[i]) &&
            gcmp_name_matches(folder->names[i], together, sizeof together / sizeof *together)) {
            return true;
        }
    }
    return false;
}

/* Add the files of a folder that may be one checkpoint each, or the folder where they are one. */
static enum gradcmp_status add_files(struct gcmp_search *search, const char *name,
                                     const struct gcmp_search_folder *folder,
                                     struct gradcmp_error *error) {
    if (is_together(folder)) {
        return gcmp_name_list_add(&search->hits, strdup(name), error);
    }
    for (size_t i = 0; i < folder->count; i++) {
        const char *entry = folder->names[i];
        if (!gcmp_is_weak_mark(entry)) {
            continue;
        }
        char *file = gcmp_join_names(name, entry);
        if (file == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        if (gcmp_dir_kind(search->dir, file) != GCMP_DIR_FILE) { /* told when folders are queued */
            free(file);
            continue;
        }
        GCMP_TRY(gcmp_name_list_add(&search->hits, file, error));
    }
    return GRADCMP_OK;
}

/* True for the name of one point of a run: a number behind a word that says so. */
static bool is_point(const char *name) {
    const char *slash = strrchr(name, '/'), *last = slash == NULL ? name : slash + 1;
    bool is_sure;
    return gcmp_iteration_of(name, &is_sure) >= 0 && is_sure &&
           last[strspn(last, "0123456789")] != '\0';
}

/* True for what looks like a folder of a run, whether there is a checkpoint in it or not. */
static bool is_likely(const char *name, const struct gcmp_search_folder *folder) {
    bool is_it = is_point(name) || folder->megatron_tracker || folder->deepspeed_tracker;
    for (size_t i = 0; i < folder->count && !is_it; i++) {
        is_it = gcmp_name_matches(folder->names[i], traces, sizeof traces / sizeof *traces);
    }
    return is_it;
}

/* Keep the names of a folder that is looked into and of the hidden ones in it, but for those that
 * links lead to: they have other names. Errors: MEMORY. */
static enum gradcmp_status note_folder(struct finder *finder, const char *name,
                                       const struct gcmp_search_folder *folder,
                                       struct gradcmp_error *error) {
    const char *root = gcmp_dir_path(finder->search.dir);
    char *path = gcmp_join_names(root, name);
    size_t link = 0;
    enum gradcmp_status status = path == NULL ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                               GRADCMP_NO_OFFSET, "out of memory")
                                              : gcmp_link_find(path, strlen(root), &link, error);
    free(path);
    if (status != GRADCMP_OK || link > 0) {
        return status;
    }
    GCMP_TRY(gcmp_name_list_add(&finder->looked, strdup(name), error));
    if (name[0] != '\0' && is_likely(name, folder)) {
        GCMP_TRY(gcmp_name_list_add(&finder->likely, strdup(name), error));
    }
    for (size_t i = 0; i < folder->count && !folder->fixed; i++) {
        if (folder->names[i][0] == '.') {
            char *child = gcmp_join_names(name, folder->names[i]);
            if (child != NULL && !gcmp_dir_has_dir(finder->search.dir, child)) {
                free(child);
                continue;
            }
            GCMP_TRY(gcmp_name_list_add(&finder->hidden, child, error));
        }
    }
    return GRADCMP_OK;
}

/* A folder is a run, or holds files that are; below it there may be others, unless what marks it as
 * a run owns what is below. */
static enum gradcmp_status examine_run(struct finder *finder, const char *name,
                                       struct gradcmp_error *error) {
    struct gcmp_search *search = &finder->search;
    struct gcmp_search_folder folder;
    if (gcmp_search_is_inside(search, name)) {
        return GRADCMP_OK;
    }
    search->visited++;
    GCMP_TRY(gcmp_search_look(search, name, &folder, error));
    enum gradcmp_status status;
    bool tracked = search->iteration < 0 && (folder.megatron_tracker || folder.deepspeed_tracker);
    if (folder.array && name[0] != '\0') {
        status = gcmp_search_add_array(search, name, error);
    } else if (folder.marked || tracked) {
        search->array = false;
        status = gcmp_name_list_add(&search->hits, strdup(name), error);
    } else {
        status = add_files(search, name, &folder, error);
    }
    if (status == GRADCMP_OK) {
        status = note_folder(finder, name, &folder, error);
    }
    bool more = !folder.fixed && !tracked;
    if (status == GRADCMP_OK && more) {
        status = gcmp_search_queue(search, name, &folder, error);
    }
    gcmp_dir_free_names(folder.names, folder.count);
    return status;
}

/* Look into the folders of one level; those from `first` on are left where there are too many. */
static enum gradcmp_status search_level(struct finder *finder, const struct gcmp_name_list *level,
                                        size_t *first, struct gradcmp_error *error) {
    struct gcmp_search *search = &finder->search;
    for (*first = 0; *first < level->count; ++*first) {
        bool is_free = gcmp_search_is_inside(search, level->names[*first]);
        if (search->visited == GCMP_SEARCH_MAX_FOLDERS && !is_free) {
            return GRADCMP_OK;
        }
        GCMP_TRY(examine_run(finder, level->names[*first], error));
    }
    return GRADCMP_OK;
}

/* Search level by level. Far down, where runs seldom are, links are not followed, so that one which
 * leads upwards ends, and folders that are too many are left. */
static enum gradcmp_status search_runs(struct finder *finder, struct gcmp_name_list *left,
                                       struct gradcmp_error *error) {
    struct gcmp_search *search = &finder->search;
    enum gradcmp_status status = gcmp_name_list_add(&search->next, strdup(""), error);
    for (int level = 0; status == GRADCMP_OK && search->next.count > 0; level++) {
        struct gcmp_name_list now = search->next;
        size_t done = 0;
        search->next = (struct gcmp_name_list){0};
        search->only_real = level >= MAX_LEVEL;
        if (level <= MAX_FAR_LEVEL) {
            status = search_level(finder, &now, &done, error);
        }
        if (status == GRADCMP_OK && done < now.count && level <= MAX_LEVEL) {
            status = gcmp_search_fail(search, "", GRADCMP_ERROR_LIMIT,
                                      "more than 4096 folders to search", error);
        }
        for (size_t i = done; status == GRADCMP_OK && i < now.count; i++) {
            status = gcmp_name_list_add(left, strdup(now.names[i]), error);
        }
        gcmp_name_list_free(&now);
    }
    return status;
}

/* Turn names into sorted paths below the folder. */
static enum gradcmp_status take_paths(const struct gcmp_search *search,
                                      const struct gcmp_name_list *names,
                                      struct gcmp_name_list *paths, struct gradcmp_error *error) {
    for (size_t i = 0; i < names->count; i++) {
        GCMP_TRY(gcmp_name_list_add(
            paths, gcmp_join_names(gcmp_dir_path(search->dir), names->names[i]), error));
    }
    gcmp_name_list_sort(paths);
    return GRADCMP_OK;
}

/* --- folders in which nothing was found --- */

/* True for a folder that holds files of a checkpoint, or files that name an iteration. */
static bool has_checkpoint(const struct gcmp_search_folder *folder) {
    bool has_it = folder->marked || folder->megatron_tracker || is_together(folder);
    for (size_t i = 0; i < folder->count && !has_it; i++) {
        has_it = gcmp_is_weak_mark(folder->names[i]) && is_point(folder->names[i]);
    }
    return has_it;
}

/* Tell whether a checkpoint lies in a hidden folder, as far as it is looked into; what cannot be is
 * passed over. Errors: MEMORY. */
static enum gradcmp_status look_into_hidden(const struct finder *finder, const char *name,
                                            bool *has_it, struct gradcmp_error *error) {
    struct gcmp_search search = {.dir = finder->search.dir, .only_real = true};
    enum gradcmp_status status = gcmp_name_list_add(&search.next, strdup(name), error);
    *has_it = false;
    for (size_t i = 0; status == GRADCMP_OK && !*has_it && i < search.next.count; i++) {
        struct gcmp_search_folder folder;
        if (i == MAX_HIDDEN_FOLDERS) {
            break;
        }
        status = gcmp_search_look(&search, search.next.names[i], &folder, error);
        if (status != GRADCMP_OK) {
            status = status == GRADCMP_ERROR_MEMORY ? status : GRADCMP_OK;
            continue;
        }
        *has_it = has_checkpoint(&folder);
        status = gcmp_search_queue(&search, search.next.names[i], &folder, error);
        gcmp_dir_free_names(folder.names, folder.count);
    }
    search.dir = NULL; /* the finder's */
    gcmp_search_end(&search);
    return status;
}

/* Leave those of the hidden folders that have a checkpoint. Errors: MEMORY. */
static enum gradcmp_status sift_hidden(struct finder *finder, struct gradcmp_error *error) {
    struct gcmp_name_list all = finder->hidden;
    enum gradcmp_status status = GRADCMP_OK;
    finder->hidden = (struct gcmp_name_list){0};
    for (size_t i = 0; status == GRADCMP_OK && i < all.count; i++) {
        bool has_it;
        status = look_into_hidden(finder, all.names[i], &has_it, error);
        if (status == GRADCMP_OK && has_it) {
            status = gcmp_name_list_add(&finder->hidden, strdup(all.names[i]), error);
        }
    }
    gcmp_name_list_free(&all);
    return status;
}

/* True where something of a sorted list is a folder, or lies in it. */
static bool is_in(const struct gcmp_name_list *list, const char *folder) {
    return gcmp_name_list_has(list, folder) ||
           gcmp_name_list_has_below(list, folder, strlen(folder));
}

/* Add the path of each folder in which none of the things lies, nor what is in the list already:
 * of folders within one another the outer one is enough. Errors: MEMORY. */
static enum gradcmp_status add_empty(const struct finder *finder,
                                     const struct gcmp_name_list *folders,
                                     const struct gcmp_name_list *things,
                                     struct gcmp_name_list *empty, struct gradcmp_error *error) {
    for (size_t i = 0; i < folders->count; i++) {
        char *path = gcmp_join_names(gcmp_dir_path(finder->search.dir), folders->names[i]);
        bool is_empty = path == NULL || !is_in(things, path);
        for (size_t k = 0; k < empty->count && is_empty && path != NULL; k++) {
            size_t length = strlen(empty->names[k]);
            is_empty = strncmp(path, empty->names[k], length) != 0 || path[length] != '/';
        }
        if (!is_empty) {
            free(path);
            continue;
        }
        GCMP_TRY(gcmp_name_list_add(empty, path, error));
    }
    return GRADCMP_OK;
}

/* Put copies of names into another list. Errors: MEMORY. */
static enum gradcmp_status add_all(struct gcmp_name_list *list, const struct gcmp_name_list *more,
                                   struct gradcmp_error *error) {
    for (size_t i = 0; i < more->count; i++) {
        GCMP_TRY(gcmp_name_list_add(list, strdup(more->names[i]), error));
    }
    return GRADCMP_OK;
}

/* Note the folders in which nothing was found, of all that the lists of the runs hold. Errors:
 * MEMORY. */
static enum gradcmp_status note_empty(const struct finder *finder, struct gcmp_runs *runs,
                                      struct gradcmp_error *error) {
    const struct gcmp_name_list *lists[] = {&runs->found,  &runs->unsure,     &runs->others,
                                            &runs->links,  &runs->closed,     &runs->deep,
                                            &runs->hidden, &runs->alias_links};
    struct gcmp_name_list things = {0}, beside = {0};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        GCMP_TRY_OUT(add_all(&things, lists[i], error));
    }
    gcmp_name_list_sort(&things);
    GCMP_TRY_OUT(add_empty(finder, &finder->likely, &things, &runs->empty, error));
    gcmp_name_list_sort(&runs->empty);
    GCMP_TRY_OUT(add_all(&things, &runs->empty, error));
    gcmp_name_list_sort(&things);
    for (size_t i = 0; i < finder->looked.count; i++) {
        const char *name = finder->looked.names[i];
        if (name[0] != '\0' && strchr(name, '/') == NULL) {
            GCMP_TRY_OUT(gcmp_name_list_add(&beside, strdup(name), error));
        }
    }
    GCMP_TRY_OUT(add_empty(finder, &beside, &things, &runs->plain, error));
out:
    gcmp_name_list_free(&things);
    gcmp_name_list_free(&beside);
    return status;
}

/* Put a hit where its name says: any, of the wanted iteration, of another, or perhaps of that. */
static struct gcmp_name_list *list_of(struct gcmp_runs *runs, const struct gcmp_search *search,
                                      const char *path) {
    bool is_sure;
    int64_t iteration = gcmp_iteration_of(path, &is_sure);
    if (search->iteration < 0 || iteration == search->iteration) {
        return &runs->found;
    }
    return is_sure ? &runs->others : &runs->unsure;
}

static enum gradcmp_status take_runs(const struct gcmp_search *search,
                                     const struct gcmp_name_list *deep, struct gcmp_runs *runs,
                                     struct gradcmp_error *error) {
    struct gcmp_name_list paths = {0};
    enum gradcmp_status status = take_paths(search, &search->hits, &paths, error);
    for (size_t i = 0; status == GRADCMP_OK && i < paths.count; i++) {
        struct gcmp_name_list *list = list_of(runs, search, paths.names[i]);
        status = gcmp_name_list_add(list, strdup(paths.names[i]), error);
    }
    gcmp_name_list_free(&paths);
    return status == GRADCMP_OK ? take_paths(search, deep, &runs->deep, error) : status;
}

void gcmp_runs_free(struct gcmp_runs *runs) {
    gcmp_name_list_free(&runs->found);
    gcmp_name_list_free(&runs->unsure);
    gcmp_name_list_free(&runs->others);
    gcmp_name_list_free(&runs->links);
    gcmp_name_list_free(&runs->closed);
    gcmp_name_list_free(&runs->deep);
    gcmp_name_list_free(&runs->alias_links);
    gcmp_name_list_free(&runs->aliases);
    gcmp_name_list_free(&runs->alias_of);
    gcmp_name_list_free(&runs->hidden);
    gcmp_name_list_free(&runs->empty);
    gcmp_name_list_free(&runs->plain);
}

/* Search the folder, or take the file that it is. */
static enum gradcmp_status search_all(struct finder *finder, struct gcmp_name_list *deep,
                                      struct gradcmp_error *error) {
    struct gcmp_search *search = &finder->search;
    if (gcmp_dir_is_file(search->dir, NULL)) {
        return gcmp_name_list_add(&search->hits, strdup(""), error);
    }
    GCMP_TRY(search_runs(finder, deep, error));
    return sift_hidden(finder, error);
}

/* Give the caller all that the search came by. */
static enum gradcmp_status take_all(struct finder *finder, const struct gcmp_name_list *deep,
                                    struct gcmp_runs *runs, struct gradcmp_error *error) {
    struct gcmp_search *search = &finder->search;
    GCMP_TRY(gcmp_aliases_take(search, runs, error));
    GCMP_TRY(gcmp_dir_check(search->dir, error));
    GCMP_TRY(take_runs(search, deep, runs, error));
    GCMP_TRY(take_paths(search, &finder->hidden, &runs->hidden, error));
    runs->links = search->links; /* these are paths already */
    runs->closed = search->closed;
    search->links = search->closed = (struct gcmp_name_list){0};
    gcmp_name_list_sort(&runs->closed);
    return note_empty(finder, runs, error);
}

enum gradcmp_status gcmp_locate_runs(const char *folder, int64_t iteration, struct gcmp_runs *runs,
                                     struct gradcmp_error *error) {
    *runs = (struct gcmp_runs){0};
    struct finder finder = {.search = {.iteration = iteration}};
    struct gcmp_name_list deep = {0};
    GCMP_TRY(gcmp_dir_open(folder, &finder.search.dir, error));
    enum gradcmp_status status = search_all(&finder, &deep, error);
    if (status == GRADCMP_OK) {
        status = take_all(&finder, &deep, runs, error);
    }
    if (status != GRADCMP_OK) {
        gcmp_runs_free(runs);
    }
    gcmp_name_list_free(&finder.looked);
    gcmp_name_list_free(&finder.likely);
    gcmp_name_list_free(&finder.hidden);
    gcmp_name_list_free(&deep);
    gcmp_search_end(&finder.search);
    return status;
}
