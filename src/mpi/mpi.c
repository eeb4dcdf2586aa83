/* The plug-in of MPI: joins the processes that a launcher started. */
#include <mpi.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "gradcmp/sys/ranks.h"

enum {
    WORD_TAG = 1,
    LEAST_NAP_NS = 20 * 1000, /* waiting starts with short naps and goes on with longer ones */
    MOST_NAP_NS = 2 * 1000 * 1000,
    MOST_SPREAD_BYTES = 1 << 30 /* of one call of the library, whose counts are int */
};

struct gradcmp_ranks_link {
    MPI_Comm comm; /* ours alone */
    int index, count;
    unsigned word_count;
    uint32_t words[GRADCMP_RANKS_MOST_WORDS];
    MPI_Request *sends;  /* GRADCMP_RANKS_MOST_WORDS times `count` */
    MPI_Request request; /* of what is waited for */
    void *own, *all;     /* of a gather under way; left to the library where one was given up */
};

/* Turn what MPI returned into a status. */
static enum gradcmp_status check(int code, const char *call, struct gradcmp_error *error) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (code == MPI_SUCCESS) {
        return GRADCMP_OK;
    }
    MPI_Error_string(code, text, &length);
    GCMP_FAIL(error, GRADCMP_ERROR_DEVICE, "MPI: %s: %.200s", call, text);
}

static void free_link(struct gradcmp_ranks_link *link) {
    free(link->sends);
    free(link->own);
    free(link->all);
    free(link);
}

/* --- joining and parting --- */

/* A communicator of our own, that returns errors. */
static enum gradcmp_status connect_all(struct gradcmp_ranks_link *link,
                                       struct gradcmp_error *error) {
    GCMP_TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                   "MPI_Comm_set_errhandler", error));
    GCMP_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &link->comm), "MPI_Comm_dup", error));
    GCMP_TRY(check(MPI_Comm_set_errhandler(link->comm, MPI_ERRORS_RETURN),
                   "MPI_Comm_set_errhandler", error));
    GCMP_TRY(check(MPI_Comm_rank(link->comm, &link->index), "MPI_Comm_rank", error));
    GCMP_TRY(check(MPI_Comm_size(link->comm, &link->count), "MPI_Comm_size", error));
    link->sends = malloc((size_t)link->count * GRADCMP_RANKS_MOST_WORDS * sizeof *link->sends);
    if (link->sends == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status open_link(struct gradcmp_ranks_link **out, unsigned *index,
                                     unsigned *count, struct gradcmp_error *error) {
    int provided;
    *out = NULL;
    struct gradcmp_ranks_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status =
        check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init", error);
    if (status == GRADCMP_OK && provided < MPI_THREAD_FUNNELED) {
        status = gcmp_error_set(error, GRADCMP_ERROR_DEVICE, NULL, GRADCMP_NO_OFFSET,
                                "this MPI cannot be used in a program with threads");
    }
    if (status == GRADCMP_OK) {
        status = connect_all(link, error);
    }
    if (status != GRADCMP_OK) {
        free_link(link);
        return status;
    }
    *out = link;
    *index = (unsigned)link->index;
    *count = (unsigned)link->count;
    return GRADCMP_OK;
}

static void close_link(struct gradcmp_ranks_link *link, int is_orderly) {
    if (!is_orderly) {
        return; /* what MPI may still write to stays */
    }
    MPI_Waitall((int)link->word_count * (link->count - 1), link->sends, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&link->comm);
    MPI_Finalize();
    free_link(link);
}

/* --- waiting --- */

/* The checker of MPI calls knows MPI_Wait alone, and nobody who gives up.
 * NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

/* Wait without keeping a processor busy, which MPI_Wait would. */
static enum gradcmp_status await(struct gradcmp_ranks_link *link, const char *call,
                                 const struct gradcmp_ranks_patience *patience,
                                 struct gradcmp_error *error) {
    struct timespec nap = {0, LEAST_NAP_NS};
    int is_done = 0;
    for (;;) {
        GCMP_TRY(check(MPI_Test(&link->request, &is_done, MPI_STATUS_IGNORE), call, error));
        if (is_done) {
            return GRADCMP_OK;
        }
        if (patience != NULL && patience->is_over != NULL && patience->is_over(patience->user)) {
            GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "gave up waiting for other ranks");
        }
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec * 2 < MOST_NAP_NS ? nap.tv_nsec * 2 : MOST_NAP_NS;
    }
}

static enum gradcmp_status gather(struct gradcmp_ranks_link *link, const void *mine, size_t bytes,
                                  void *all, const struct gradcmp_ranks_patience *patience,
                                  struct gradcmp_error *error) {
    size_t all_bytes = bytes * (size_t)link->count;
    link->own = malloc(bytes);
    link->all = malloc(all_bytes);
    if (link->own == NULL || link->all == NULL || bytes > MOST_SPREAD_BYTES) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(link->own, mine, bytes);
    GCMP_TRY(check(MPI_Iallgather(link->own, (int)bytes, MPI_BYTE, link->all, (int)bytes, MPI_BYTE,
                                  link->comm, &link->request),
                   "MPI_Iallgather", error));
    GCMP_TRY(await(link, "MPI_Iallgather", patience, error));
    memcpy(all, link->all, all_bytes);
    free(link->own);
    free(link->all);
    link->own = link->all = NULL;
    return GRADCMP_OK;
}

/* Through a buffer of the link's own: where waiting is given up, MPI may still write to it. */
static enum gradcmp_status spread_piece(struct gradcmp_ranks_link *link, unsigned root,
                                        unsigned char *bytes, size_t count,
                                        const struct gradcmp_ranks_patience *patience,
                                        struct gradcmp_error *error) {
    bool is_mine = root == (unsigned)link->index;
    link->own = malloc(count);
    if (link->own == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (is_mine) {
        memcpy(link->own, bytes, count);
    }
    GCMP_TRY(
        check(MPI_Ibcast(link->own, (int)count, MPI_BYTE, (int)root, link->comm, &link->request),
              "MPI_Ibcast", error));
    GCMP_TRY(await(link, "MPI_Ibcast", patience, error));
    if (!is_mine) {
        memcpy(bytes, link->own, count);
    }
    free(link->own);
    link->own = NULL;
    return GRADCMP_OK;
}

static enum gradcmp_status spread(struct gradcmp_ranks_link *link, unsigned root, void *bytes,
                                  size_t count, const struct gradcmp_ranks_patience *patience,
                                  struct gradcmp_error *error) {
    unsigned char *at = bytes;
    for (size_t done = 0; done < count;) {
        size_t left = count - done;
        size_t piece = left < MOST_SPREAD_BYTES ? left : MOST_SPREAD_BYTES;
        GCMP_TRY(spread_piece(link, root, at + done, piece, patience, error));
        done += piece;
    }
    return GRADCMP_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* --- words --- */

static enum gradcmp_status tell(struct gradcmp_ranks_link *link, uint32_t word,
                                struct gradcmp_error *error) {
    if (link->word_count == GRADCMP_RANKS_MOST_WORDS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %d words to other ranks",
                  GRADCMP_RANKS_MOST_WORDS);
    }
    uint32_t *kept = &link->words[link->word_count];
    MPI_Request *sends = link->sends + (size_t)link->word_count * (size_t)(link->count - 1);
    *kept = word;
    link->word_count++;
    for (int to = 0, i = 0; to < link->count; to++) {
        if (to != link->index) {
            GCMP_TRY(check(MPI_Isend(kept, 1, MPI_UINT32_T, to, WORD_TAG, link->comm, &sends[i++]),
                           "MPI_Isend", error));
        }
    }
    return GRADCMP_OK;
}

static int hear(struct gradcmp_ranks_link *link, unsigned *sender, uint32_t *word) {
    int is_there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, WORD_TAG, link->comm, &is_there, &status) != MPI_SUCCESS) {
        return -1;
    }
    if (!is_there) {
        return 0;
    }
    *sender = (unsigned)status.MPI_SOURCE;
    return MPI_Recv(word, 1, MPI_UINT32_T, status.MPI_SOURCE, WORD_TAG, link->comm,
                    MPI_STATUS_IGNORE) == MPI_SUCCESS
               ? 1
               : -1;
}

static const struct gradcmp_ranks_table table = {.version = GRADCMP_RANKS_VERSION,
                                                 .name = "mpi",
                                                 .open = open_link,
                                                 .close = close_link,
                                                 .gather = gather,
                                                 .spread = spread,
                                                 .tell = tell,
                                                 .hear = hear};

__attribute__((visibility("default"))) const struct gradcmp_ranks_table *gradcmp_ranks_table(void);
const struct gradcmp_ranks_table *gradcmp_ranks_table(void) {
    return &table;
}
