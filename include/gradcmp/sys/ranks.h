/* What a plug-in that joins the processes of a launcher (mpirun, srun) offers to the engine. The
 * promise is weaker than that of gradcmp.h: engine and plug-in are of one version, and `version` is
 * checked.
 *
 * Processes are counted from 0 and called ranks. All ranks call `gather` and `spread` in the same
 * order; who waits in them sleeps. One thread of a rank calls. */
#ifndef GRADCMP_SYS_RANKS_H
#define GRADCMP_SYS_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "gradcmp/gradcmp.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GRADCMP_RANKS_VERSION = 1 };

struct gradcmp_ranks_link; /* an open connection of this rank with all others */

/* Called now and then while a call waits for other ranks. Nonzero: it gives up (CANCELLED), and the
 * link is of no use any more but to be closed. NULL: it waits for as long as it takes. */
struct gradcmp_ranks_patience {
    int (*is_over)(void *user);
    void *user;
};

struct gradcmp_ranks_table {
    uint32_t version; /* GRADCMP_RANKS_VERSION */
    const char *name; /* "mpi" */

    /* Join the other ranks: which one this is, and how many they are. Once in a process. DEVICE
     * where the library beneath fails. The caller closes the link. */
    enum gradcmp_status (*open)(struct gradcmp_ranks_link **out, unsigned *index, unsigned *count,
                                struct gradcmp_error *error);
    /* Part from the others. Nonzero `is_orderly`: all ranks do so, and none has given up; else what
     * is under way is left as it is, since the process ends. */
    void (*close)(struct gradcmp_ranks_link *link, int is_orderly);

    /* Give `bytes` bytes to all ranks: *all, of `count` times as many, receives those of each, by
     * rank. `bytes` is the same on all ranks. */
    enum gradcmp_status (*gather)(struct gradcmp_ranks_link *link, const void *mine, size_t bytes,
                                  void *all, const struct gradcmp_ranks_patience *patience,
                                  struct gradcmp_error *error);
    /* Give rank `root`'s bytes to all others, into `bytes` there. */
    enum gradcmp_status (*spread)(struct gradcmp_ranks_link *link, unsigned root, void *bytes,
                                  size_t count, const struct gradcmp_ranks_patience *patience,
                                  struct gradcmp_error *error);

    /* Send a word to all others without waiting for them; at most GRADCMP_RANKS_MOST_WORDS a link.
     */
    enum gradcmp_status (*tell)(struct gradcmp_ranks_link *link, uint32_t word,
                                struct gradcmp_error *error);
    /* Receive one word that was sent here, if there is one: 1 and its sender; 0: none; -1: the
     * library beneath fails. */
    int (*hear)(struct gradcmp_ranks_link *link, unsigned *sender, uint32_t *word);
};

enum { GRADCMP_RANKS_MOST_WORDS = 16 };

/* The one symbol of a plug-in. */
#define GRADCMP_RANKS_SYMBOL "gradcmp_ranks_table"
typedef const struct gradcmp_ranks_table *(*gradcmp_ranks_table_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
