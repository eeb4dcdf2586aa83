/* Ranks that are threads of one process, for tests without a launcher: a hub in which they meet. */
#ifndef GCMP_RANK_TOOLS_H
#define GCMP_RANK_TOOLS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/ranks.h"

enum { HUB_RANKS = 8, HUB_WORDS = 64 };

struct hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count, arrived, left;
    unsigned char *all; /* what has been brought to the meeting under way */
    size_t bytes;
    struct {
        unsigned sender;
        uint32_t word;
    } words[HUB_RANKS][HUB_WORDS];
    unsigned word_count[HUB_RANKS], heard[HUB_RANKS];
    size_t spread_bytes; /* so far, for tests that want to know whether anything was sent */
};

struct gradcmp_ranks_link {
    struct hub *hub;
    unsigned index;
};

/* The link that the next open of this thread gives. */
static _Thread_local struct gradcmp_ranks_link hub_link;

static inline enum gradcmp_status hub_open(struct gradcmp_ranks_link **out, unsigned *index,
                                           unsigned *count, struct gradcmp_error *error) {
    (void)error;
    *out = &hub_link;
    *index = hub_link.index;
    *count = hub_link.hub->count;
    return GRADCMP_OK;
}

static inline void hub_close(struct gradcmp_ranks_link *link, int is_orderly) {
    (void)link;
    (void)is_orderly;
}

/* All bring `bytes` bytes, and all take those of all; the last to go opens the hub again. */
static inline enum gradcmp_status hub_gather(struct gradcmp_ranks_link *link, const void *mine,
                                             size_t bytes, void *all,
                                             const struct gradcmp_ranks_patience *patience,
                                             struct gradcmp_error *error) {
    struct hub *hub = link->hub;
    (void)patience;
    (void)error;
    pthread_mutex_lock(&hub->lock);
    while (hub->left > 0) { /* the one before is not over */
        pthread_cond_wait(&hub->changed, &hub->lock);
    }
    if (hub->arrived == 0) {
        hub->all = malloc(bytes * hub->count);
        hub->bytes = bytes;
    }
    memcpy(hub->all + link->index * hub->bytes, mine, bytes);
    hub->arrived++;
    if (hub->arrived == hub->count) {
        hub->left = hub->count;
        hub->arrived = 0;
        pthread_cond_broadcast(&hub->changed);
    }
    while (hub->left == 0) {
        pthread_cond_wait(&hub->changed, &hub->lock);
    }
    memcpy(all, hub->all, bytes * hub->count);
    hub->left--;
    if (hub->left == 0) {
        free(hub->all);
    }
    pthread_cond_broadcast(&hub->changed);
    while (hub->left > 0) {
        pthread_cond_wait(&hub->changed, &hub->lock);
    }
    pthread_mutex_unlock(&hub->lock);
    return GRADCMP_OK;
}

static inline enum gradcmp_status hub_spread(struct gradcmp_ranks_link *link, unsigned root,
                                             void *bytes, size_t count,
                                             const struct gradcmp_ranks_patience *patience,
                                             struct gradcmp_error *error) {
    unsigned char *all = malloc(count * link->hub->count);
    enum gradcmp_status status = hub_gather(link, bytes, count, all, patience, error);
    if (link->index != root) {
        memcpy(bytes, all + root * count, count);
    }
    free(all);
    return status;
}

static inline enum gradcmp_status hub_tell(struct gradcmp_ranks_link *link, uint32_t word,
                                           struct gradcmp_error *error) {
    struct hub *hub = link->hub;
    (void)error;
    pthread_mutex_lock(&hub->lock);
    for (unsigned r = 0; r < hub->count; r++) {
        if (r != link->index) {
            hub->words[r][hub->word_count[r]].sender = link->index;
            hub->words[r][hub->word_count[r]++].word = word;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return GRADCMP_OK;
}

static inline int hub_hear(struct gradcmp_ranks_link *link, unsigned *sender, uint32_t *word) {
    struct hub *hub = link->hub;
    pthread_mutex_lock(&hub->lock);
    bool found = hub->heard[link->index] < hub->word_count[link->index];
    if (found) {
        *sender = hub->words[link->index][hub->heard[link->index]].sender;
        *word = hub->words[link->index][hub->heard[link->index]++].word;
    }
    pthread_mutex_unlock(&hub->lock);
    return found;
}

static const struct gradcmp_ranks_table hub_table = {.version = GRADCMP_RANKS_VERSION,
                                                     .name = "hub",
                                                     .open = hub_open,
                                                     .close = hub_close,
                                                     .gather = hub_gather,
                                                     .spread = hub_spread,
                                                     .tell = hub_tell,
                                                     .hear = hub_hear};

/* One rank's thread: what it does gets its ranks. */
struct hub_rank {
    struct hub *hub;
    unsigned index;
    void (*act)(struct hub_rank *rank);
    void *user;
    struct gradcmp_ranks ranks;
};

static inline void *hub_thread(void *user) {
    struct hub_rank *rank = user;
    struct gradcmp_error error;
    hub_link = (struct gradcmp_ranks_link){rank->hub, rank->index};
    if (gcmp_ranks_open(&rank->ranks, &hub_table, &error) != GRADCMP_OK) {
        abort();
    }
    rank->act(rank);
    gcmp_ranks_free(&rank->ranks);
    return NULL;
}

/* Run `count` ranks, each with its entry of users[], until all are done. */
static inline void hub_run(unsigned count, void (*act)(struct hub_rank *rank), void **users) {
    struct hub hub = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .count = count};
    struct hub_rank ranks[HUB_RANKS];
    pthread_t threads[HUB_RANKS];
    for (unsigned r = 0; r < count; r++) {
        ranks[r] = (struct hub_rank){.hub = &hub, .index = r, .act = act, .user = users[r]};
        if (pthread_create(&threads[r], NULL, hub_thread, &ranks[r]) != 0) {
            abort();
        }
    }
    for (unsigned r = 0; r < count; r++) {
        pthread_join(threads[r], NULL);
    }
}

#endif
