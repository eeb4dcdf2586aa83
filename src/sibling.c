/* Looks from a gradient dump to the checkpoints beside it, and from these to dumps. */
#include "sibling.h"

#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/locate.h"
#include "weights_type.h"

/* Cut off the last component of a path without slashes at its end, and return it; NULL: none. */
static const char *cut_last(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    return slash + 1;
}

static bool is_dump_folder(const char *name) {
    static const char *const names[] = {"wgrads", "dgrads", "params"};
    for (size_t i = 0; name != NULL && i < 3; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

char *gcmp_sibling_folder(const char *dump) {
    char *path = realpath(dump, NULL);
    if (path != NULL && (cut_last(path) == NULL || !is_dump_folder(cut_last(path)))) {
        free(path);
        return NULL;
    }
    return path;
}

/* Find a checkpoint in the save folder that is no dump; malloced, or NULL. */
static char *find_checkpoint(const char *folder, int64_t iteration) {
    char *found = NULL;
    if ((iteration < 0 || gcmp_locate(folder, iteration, &found, NULL) != GRADCMP_OK) &&
        gcmp_locate(folder, -1, &found, NULL) != GRADCMP_OK) {
        return NULL;
    }
    char *copy = strdup(found);
    bool is_dump = copy == NULL || cut_last(copy) == NULL || is_dump_folder(cut_last(copy));
    free(copy);
    if (is_dump) {
        free(found);
        return NULL;
    }
    return found;
}

static void take_over(const struct gradcmp_catalogue *from, struct gradcmp_catalogue *to) {
    const struct gradcmp_parallel *there = &from->parallel;
    struct gradcmp_parallel *here = &to->parallel;
    to->sibling_compute = from->compute;
    if (to->sibling_compute == GRADCMP_DTYPE_NONE) {
        to->sibling_compute = gcmp_weights_dtype(from);
    }
    if (here->tp == 0 && there->pp == here->pp && there->ep == here->ep &&
        there->etp == here->etp) {
        here->tp = there->tp;
    }
}

void gcmp_sibling_look(struct gradcmp_checkpoint *checkpoint) {
    char *folder = gcmp_sibling_folder(checkpoint->path);
    char *path = folder == NULL ? NULL : find_checkpoint(folder, checkpoint->catalogue.iteration);
    struct gradcmp_checkpoint *sibling = NULL;
    if (path != NULL && gcmp_checkpoint_open_alone(path, NULL, &sibling, NULL) == GRADCMP_OK) {
        take_over(&sibling->catalogue, &checkpoint->catalogue);
    }
    gradcmp_checkpoint_free(sibling);
    free(path);
    free(folder);
}

enum gradcmp_status gcmp_sibling_note(struct gradcmp_checkpoint *checkpoint, const char *path,
                                      struct gradcmp_error *error) {
    struct gcmp_dir *dir;
    if (checkpoint->catalogue.is_dump || gcmp_dir_open(path, &dir, NULL) != GRADCMP_OK) {
        return GRADCMP_OK;
    }
    bool has_dumps =
        strcmp(gcmp_dir_path(dir), checkpoint->path) != 0 && gcmp_dir_has_dir(dir, "wgrads");
    enum gradcmp_status status = GRADCMP_OK;
    if (has_dumps) {
        status = gcmp_catalogue_note(&checkpoint->catalogue, error,
                                     "%.200s holds gradient dumps (wgrads) too; the checkpoint is "
                                     "read (a dump is named as wgrads/iter_NNNNNNN)",
                                     gcmp_dir_path(dir));
    }
    gcmp_dir_close(dir);
    return status;
}
