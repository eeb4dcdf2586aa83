/* The checkpoints below a folder that a sweep is about, and what lies there too. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/runs.h"
#include "base/search.h"
#include "checkpoint.h"
#include "sweep.h"

/* --- checkpoints of which the name does not say the iteration --- */

/* Bytes of the path of the folder around. */
static size_t bytes_around(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path);
}

/* True where the run that a checkpoint belongs to has one of the wanted iteration: in it, or beside
 * it in a folder of their own. */
static bool has_wanted(const struct gcmp_roster *roster, const struct gcmp_name_list *found,
                       const char *path) {
    size_t around = bytes_around(path);
    bool is_of_root = around <= strlen(roster->root);
    return gcmp_name_list_has_below(found, path, strlen(path)) ||
           (!is_of_root && gcmp_name_list_has_below(found, path, around));
}

/* What is known of a path of which the name does not say the iteration. */
enum kind {
    WANTED,
    OTHER,
    UNREADABLE,
    STATELESS,
    COUNTED,    /* an optimizer counted the wanted number */
    MISCOUNTED, /* an optimizer counted another, which skipped updates may have made less */
    KIND_COUNT
};

struct unsure {
    struct gcmp_name_list of[KIND_COUNT];
};

/* The iteration that a folder around a path says, the nearest first, below the root; -1: none.
 * Errors: MEMORY. */
static enum gradcmp_status iteration_around(const struct gcmp_roster *roster, const char *path,
                                            int64_t *iteration, struct gradcmp_error *error) {
    char *folder = gcmp_arena_dup(roster->arena, path);
    if (folder == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    bool is_sure = false;
    for (size_t around = bytes_around(folder); !is_sure && around > strlen(roster->root);
         around = bytes_around(folder)) {
        folder[around] = '\0';
        *iteration = gcmp_iteration_of(folder, &is_sure);
    }
    *iteration = is_sure ? *iteration : -1;
    return GRADCMP_OK;
}

static bool has_state(const struct gcmp_roster *roster,
                      const struct gradcmp_checkpoint *checkpoint) {
    const char *state = roster->options.state;
    return state != NULL ? gcmp_checkpoint_has_state(checkpoint, state)
                         : gcmp_checkpoint_has_state(checkpoint, "exp_avg") ||
                               gcmp_checkpoint_has_state(checkpoint, "main_grad");
}

/* Guess the iteration of a checkpoint that does not state it: by what a folder around it says; by
 * what an optimizer counted, where that is the wanted one; by whether its run has the wanted one.
 * Errors: MEMORY. */
static enum gradcmp_status guess(const struct gcmp_roster *roster,
                                 const struct gcmp_name_list *found,
                                 const struct gradcmp_checkpoint *checkpoint, const char *path,
                                 enum kind *kind, struct gradcmp_error *error) {
    int64_t wanted = roster->options.iteration, around;
    int64_t counted = checkpoint->catalogue.iteration;
    GCMP_TRY(iteration_around(roster, path, &around, error));
    bool is_known = around == wanted, is_counted = around < 0 && counted == wanted;
    if (is_counted) {
        *kind = COUNTED;
    } else if (around >= 0 ? !is_known : has_wanted(roster, found, path)) {
        *kind = OTHER;
    } else if (!has_state(roster, checkpoint)) {
        *kind = STATELESS;
    } else {
        *kind = counted >= 0 && !is_known ? MISCOUNTED : WANTED;
    }
    return GRADCMP_OK;
}

/* Tell whether a checkpoint is of the wanted iteration: what it says itself counts. Where it says
 * nothing, it is judged if it can be, unless it is one more of a run, or of a folder that says
 * another. What the system does not let one read may be wanted, and fails its own row. Errors:
 * MEMORY. */
static enum gradcmp_status look_at(const struct gcmp_roster *roster,
                                   const struct gcmp_name_list *found, const char *path,
                                   enum kind *kind, struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_options options = roster->options;
    options.iteration = -1;
    enum gradcmp_status status = gcmp_checkpoint_open_alone(path, &options, &checkpoint, NULL);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    if (status != GRADCMP_OK) {
        *kind = status == GRADCMP_ERROR_IO ? WANTED : UNREADABLE;
        return GRADCMP_OK;
    }
    int64_t iteration = checkpoint->catalogue.iteration;
    if (iteration >= 0 && !checkpoint->catalogue.iteration_is_count) {
        *kind = iteration == roster->options.iteration ? WANTED : OTHER;
    } else {
        status = guess(roster, found, checkpoint, path, kind, error);
    }
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

static enum gradcmp_status move(struct gcmp_name_list *from, struct gcmp_name_list *to,
                                struct gradcmp_error *error) {
    for (size_t i = 0; i < from->count; i++) {
        GCMP_TRY(gcmp_name_list_add(to, strdup(from->names[i]), error));
    }
    gcmp_name_list_sort(to);
    return GRADCMP_OK;
}

/* Sort the unsure by kind, and move them to the found or to the others where they are of these. */
static enum gradcmp_status settle(const struct gcmp_roster *roster, struct gcmp_runs *runs,
                                  struct unsure *unsure, struct gradcmp_error *error) {
    for (size_t i = 0; i < runs->unsure.count; i++) {
        const char *path = runs->unsure.names[i];
        enum kind kind = OTHER;
        GCMP_TRY(look_at(roster, &runs->found, path, &kind, error));
        GCMP_TRY(gcmp_name_list_add(&unsure->of[kind], strdup(path), error));
    }
    GCMP_TRY(move(&unsure->of[WANTED], &runs->found, error));
    GCMP_TRY(move(&unsure->of[COUNTED], &runs->found, error));
    bool counts = unsure->of[COUNTED].count > 0; /* iterations, here */
    GCMP_TRY(move(&unsure->of[MISCOUNTED], counts ? &runs->others : &runs->found, error));
    return move(&unsure->of[OTHER], &runs->others, error);
}

/* --- what is left out --- */

/* Those are named first of whose runs nothing is compared. */
static enum gradcmp_status leave_others(struct gcmp_roster *roster, const struct gcmp_runs *runs,
                                        struct gradcmp_error *error) {
    size_t count = runs->others.count, at = 0;
    const char **paths = gcmp_arena_alloc(roster->arena, count, sizeof *paths);
    const char *why = gcmp_arena_format(roster->arena, "not of iteration %lld (--iteration)",
                                        (long long)roster->options.iteration);
    if (paths == NULL || why == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (int lone = 1; lone >= 0; lone--) {
        for (size_t i = 0; i < count; i++) {
            const char *path = runs->others.names[i];
            if (has_wanted(roster, &runs->found, path) == !lone) {
                paths[at++] = path;
            }
        }
    }
    return gcmp_roster_leave_out(roster, &(struct gcmp_left_out){"checkpoint", why, paths, count},
                                 error);
}

/* What says no iteration, and could not be judged if it were of the wanted one. */
static enum gradcmp_status leave_unsure(struct gcmp_roster *roster, const struct unsure *unsure,
                                        struct gradcmp_error *error) {
    const char *state = roster->options.state == NULL ? "exp_avg" : roster->options.state;
    const char *why = gcmp_arena_format(
        roster->arena, "of no known iteration that has no %.200s (--iteration)", state);
    if (why == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(gcmp_roster_leave_all_out(roster, "path",
                                       "of no known iteration that cannot be opened (--iteration)",
                                       &unsure->of[UNREADABLE], error));
    return gcmp_roster_leave_all_out(roster, "checkpoint", why, &unsure->of[STATELESS], error);
}

/* Keep other names of what is found, which a baseline may be named by. */
static enum gradcmp_status keep_aliases(struct gcmp_roster *roster, const struct gcmp_runs *runs,
                                        struct gradcmp_error *error) {
    roster->aliases = gcmp_arena_alloc(roster->arena, runs->aliases.count, sizeof *roster->aliases);
    if (roster->aliases == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < runs->aliases.count; i++) {
        struct gcmp_alias *alias = &roster->aliases[i];
        alias->path = gcmp_arena_dup(roster->arena, runs->aliases.names[i]);
        alias->of = gcmp_arena_dup(roster->arena, runs->alias_of.names[i]);
        if (alias->path == NULL || alias->of == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
    }
    roster->alias_count = runs->aliases.count;
    return GRADCMP_OK;
}

static void warn_of_links(const struct gcmp_roster *roster, const struct gcmp_name_list *links) {
    char line[512];
    for (size_t i = 0; i < links->count && roster->options.warn != NULL; i++) {
        snprintf(line, sizeof line,
                 "%.300s: a link that leads out of the swept folder is not followed, and nothing "
                 "there is compared; a plan (--plan) can name it",
                 links->names[i]);
        roster->options.warn(roster->options.warn_user, line);
    }
}

enum gradcmp_status gcmp_roster_look(struct gcmp_roster *roster, const char *folder,
                                     struct gcmp_runs *runs, struct gradcmp_error *error) {
    enum gradcmp_status status;
    struct unsure unsure = {0};
    GCMP_TRY(gcmp_locate_runs(folder, roster->options.iteration, runs, error));
    warn_of_links(roster, &runs->links);
    GCMP_TRY_OUT(settle(roster, runs, &unsure, error));
    GCMP_TRY_OUT(leave_others(roster, runs, error));
    GCMP_TRY_OUT(leave_unsure(roster, &unsure, error));
    GCMP_TRY_OUT(keep_aliases(roster, runs, error));
    GCMP_TRY_OUT(gcmp_roster_leave_all_out(roster, "link", "to what is found under another name",
                                           &runs->alias_links, error));
    GCMP_TRY_OUT(
        gcmp_roster_leave_all_out(roster, "link", "out of the folder", &runs->links, error));
    GCMP_TRY_OUT(gcmp_roster_leave_all_out(roster, "folder", "that may not be opened",
                                           &runs->closed, error));
    GCMP_TRY_OUT(gcmp_roster_leave_all_out(roster, "hidden folder", "with a checkpoint",
                                           &runs->hidden, error));
    status = gcmp_roster_leave_all_out(roster, "folder", "too far down to be looked into",
                                       &runs->deep, error);
out:
    for (size_t i = 0; i < KIND_COUNT; i++) {
        gcmp_name_list_free(&unsure.of[i]);
    }
    if (status != GRADCMP_OK) {
        gcmp_runs_free(runs);
    }
    return status;
}

enum gradcmp_status gcmp_roster_find(struct gcmp_roster *roster, const char *folder,
                                     struct gradcmp_error *error) {
    struct gcmp_runs runs;
    GCMP_TRY(gcmp_roster_look(roster, folder, &runs, error));
    enum gradcmp_status status = gcmp_roster_leave_all_out(
        roster, "folder", "of a run without a checkpoint", &runs.empty, error);
    if (status == GRADCMP_OK) {
        status =
            gcmp_roster_leave_all_out(roster, "folder", "without a checkpoint", &runs.plain, error);
    }
    for (size_t i = 0; i < runs.found.count && status == GRADCMP_OK; i++) {
        status = gcmp_roster_add(roster, &(struct gcmp_entry){.path = runs.found.names[i]}, error);
    }
    gcmp_runs_free(&runs);
    return status;
}
