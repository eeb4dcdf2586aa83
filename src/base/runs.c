/* Finds all runs below a folder. */
#include "base/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/search.h"

/* Limits: levels below the given folder that are looked into whole, and those that are while there
 * are not too many folders. */
enum { MAX_LEVEL = 8, MAX_FAR_LEVEL = 32 };

/* Names of which one is enough for all such files of a folder to be one checkpoint: the optimizer
 * beside weights, the first of parts, the file of rank 0. */
static const char *const together[] = {
    "optimizer.*",   "optim.*",      "*-00001-of-*.bin", "*rank0.*",     "*rank_0.*",
    "*rank-0.*",     "*rank00.*",    "*rank_00.*",       "*rank-00.*",   "*rank000.*",
    "*rank_000.*",   "*rank-000.*",  "*rank0000.*",      "*rank_0000.*", "*rank-0000.*",
    "*rank_00000.*", "*rank00000.*",
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

/* A folder is a run, or holds files that are; below it there may be others, unless what marks it as
 * a run owns what is below. */
static enum gradcmp_status examine_run(struct gcmp_search *search, const char *name,
                                       struct gradcmp_error *error) {
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
    bool more = !folder.fixed && !tracked;
    if (status == GRADCMP_OK && more) {
        status = gcmp_search_queue(search, name, &folder, error);
    }
    gcmp_dir_free_names(folder.names, folder.count);
    return status;
}

/* Look into the folders of one level; those from `first` on are left where there are too many. */
static enum gradcmp_status search_level(struct gcmp_search *search,
                                        const struct gcmp_name_list *level, size_t *first,
                                        struct gradcmp_error *error) {
    for (*first = 0; *first < level->count; ++*first) {
        bool is_free = gcmp_search_is_inside(search, level->names[*first]);
        if (search->visited == GCMP_SEARCH_MAX_FOLDERS && !is_free) {
            return GRADCMP_OK;
        }
        GCMP_TRY(examine_run(search, level->names[*first], error));
    }
    return GRADCMP_OK;
}

/* Search level by level. Far down, where runs seldom are, links are not followed, so that one which
 * leads upwards ends, and folders that are too many are left. */
static enum gradcmp_status search_runs(struct gcmp_search *search, struct gcmp_name_list *left,
                                       struct gradcmp_error *error) {
    enum gradcmp_status status = gcmp_name_list_add(&search->next, strdup(""), error);
    for (int level = 0; status == GRADCMP_OK && search->next.count > 0; level++) {
        struct gcmp_name_list now = search->next;
        size_t done = 0;
        search->next = (struct gcmp_name_list){0};
        search->only_real = level >= MAX_LEVEL;
        if (level <= MAX_FAR_LEVEL) {
            status = search_level(search, &now, &done, error);
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
}

enum gradcmp_status gcmp_locate_runs(const char *folder, int64_t iteration, struct gcmp_runs *runs,
                                     struct gradcmp_error *error) {
    *runs = (struct gcmp_runs){0};
    struct gcmp_search search = {.iteration = iteration};
    struct gcmp_name_list deep = {0};
    GCMP_TRY(gcmp_dir_open(folder, &search.dir, error));
    enum gradcmp_status status = gcmp_dir_is_file(search.dir, NULL)
                                     ? gcmp_name_list_add(&search.hits, strdup(""), error)
                                     : search_runs(&search, &deep, error);
    if (status == GRADCMP_OK) {
        status = gcmp_dir_check(search.dir, error);
    }
    if (status == GRADCMP_OK) {
        status = take_runs(&search, &deep, runs, error);
    }
    if (status == GRADCMP_OK) { /* these are paths already */
        runs->links = search.links;
        runs->closed = search.closed;
        search.links = search.closed = (struct gcmp_name_list){0};
        gcmp_name_list_sort(&runs->closed);
    } else {
        gcmp_runs_free(runs);
    }
    gcmp_name_list_free(&deep);
    gcmp_search_end(&search);
    return status;
}
