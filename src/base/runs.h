/* All runs below a folder, for sweeps. */
#ifndef GCMP_BASE_RUNS_H
#define GCMP_BASE_RUNS_H

#include <stdint.h>

#include "base/name_list.h"

/* Paths; all begin with the folder and are sorted. */
struct gcmp_runs {
    struct gcmp_name_list found;
    struct gcmp_name_list unsure;      /* whose names do not tell of which iteration they are */
    struct gcmp_name_list others;      /* of other iterations than the wanted one, by their names */
    struct gcmp_name_list links;       /* that lead elsewhere, and were not followed */
    struct gcmp_name_list closed;      /* folders that the system does not let us look into */
    struct gcmp_name_list deep;        /* folders too far down, which were not looked into */
    struct gcmp_name_list alias_links; /* to what is found under another name, within the folder */
    struct gcmp_name_list aliases;     /* what lies there, and in the same order */
    struct gcmp_name_list alias_of;    /* the names under which it is found; not sorted */
    struct gcmp_name_list hidden; /* folders with a checkpoint that were not looked into further */
    struct gcmp_name_list empty;  /* folders that look like a run's, without anything found */
    struct gcmp_name_list plain;  /* other folders right below the given one without anything */
};

/* Find every run below a folder: folders with the marks of a checkpoint or a tracker, and single
 * files that may be checkpoints where a folder has nothing better; what is inside of a run is not
 * looked at, unless only safetensors mark it. With `iteration` >= 0 trackers are not asked, and
 * only checkpoints whose names say that iteration are found. Links that lead out of the folder are
 * not followed, and further than eight folders down none is. On success *runs is the caller's
 * (gcmp_runs_free); on failure it is empty. Errors: IO, LIMIT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_locate_runs(const char *folder, int64_t iteration,
                                                      struct gcmp_runs *runs,
                                                      struct gradcmp_error *error);
void gcmp_runs_free(struct gcmp_runs *runs);

#endif
