/* Meetings of ranks. */
#include "engine/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOOK_NS = 50 * 1000 * 1000, /* a waiting rank looks for an interrupt this often */
    NAP_NS = 100 * 1000,
    WORD_BITS = 2 /* of a word; the others count meetings */
};

enum gradcmp_status gcmp_ranks_open(struct gradcmp_ranks *ranks,
                                    const struct gradcmp_ranks_table *table,
                                    struct gradcmp_error *error) {
    *ranks = (struct gradcmp_ranks){.table = table};
    GCMP_TRY(table->open(&ranks->link, &ranks->index, &ranks->count, error));
    ranks->heard = calloc(ranks->count, sizeof *ranks->heard);
    ranks->cards = calloc(ranks->count, sizeof *ranks->cards);
    if (ranks->heard == NULL || ranks->cards == NULL) {
        ranks->is_broken = true;
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

void gcmp_ranks_free(struct gradcmp_ranks *ranks) {
    if (ranks->link != NULL) {
        ranks->table->close(ranks->link, !ranks->is_broken);
    }
    free(ranks->heard);
    free(ranks->cards);
    *ranks = (struct gradcmp_ranks){0};
}

/* --- words --- */

void gcmp_ranks_tell(struct gradcmp_ranks *ranks, enum gcmp_ranks_word word) {
    uint32_t whole = ranks->meetings << WORD_BITS | (uint32_t)word;
    if (ranks->is_broken || ranks->told == GRADCMP_RANKS_MOST_WORDS) {
        return; /* the others learn of it at the next meeting */
    }
    if (ranks->table->tell(ranks->link, whole, NULL) != GRADCMP_OK) {
        ranks->is_broken = true;
        return;
    }
    ranks->told++;
}

/* Take one word; false where there is none. */
static bool hear_one(struct gradcmp_ranks *ranks) {
    unsigned sender;
    uint32_t whole;
    int found = ranks->is_broken ? 0 : ranks->table->hear(ranks->link, &sender, &whole);
    ranks->is_broken = ranks->is_broken || found < 0 || (found > 0 && sender >= ranks->count);
    if (found <= 0 || ranks->is_broken) {
        return false;
    }
    uint32_t word = whole & ((1u << WORD_BITS) - 1);
    ranks->heard[sender]++;
    if (word == GCMP_WORD_STOP) {
        ranks->is_stopped = true;
    } else if (whole >> WORD_BITS == (ranks->meetings & (UINT32_MAX >> WORD_BITS)) &&
               sender < ranks->index) {
        ranks->is_superseded = true;
    }
    return true;
}

void gcmp_ranks_listen(struct gradcmp_ranks *ranks) {
    while (hear_one(ranks)) {
    }
}

/* --- waiting --- */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* After an interrupt the others are told, and waited for a little longer: they were interrupted
 * too, or come as soon as they hear of it; one that was killed never comes. */
static int is_over(void *user) {
    struct gcmp_ranks_waiting *waiting = user;
    uint64_t now = now_ns();
    if (waiting->progress == NULL || now < waiting->next_ns) {
        return 0;
    }
    waiting->next_ns = now + LOOK_NS;
    if (waiting->over_ns == 0 &&
        waiting->progress(waiting->user, waiting->done, waiting->total) != 0) {
        gcmp_ranks_tell(waiting->ranks, GCMP_WORD_STOP);
        waiting->over_ns = now + (uint64_t)waiting->patience_ms * 1000000u;
    }
    return waiting->over_ns != 0 && now >= waiting->over_ns;
}

static struct gradcmp_ranks_patience patience_of(struct gradcmp_ranks *ranks,
                                                 struct gcmp_ranks_waiting *waiting) {
    waiting->ranks = ranks;
    return (struct gradcmp_ranks_patience){is_over, waiting};
}

/* --- meeting --- */

/* Take all words that the others sent before they came, so that none is left on the way. */
static enum gradcmp_status drain(struct gradcmp_ranks *ranks,
                                 const struct gradcmp_ranks_patience *patience,
                                 struct gradcmp_error *error) {
    static const struct timespec nap = {0, NAP_NS};
    for (unsigned r = 0; r < ranks->count; r++) {
        while (r != ranks->index && ranks->heard[r] < ranks->cards[r].told) {
            if (hear_one(ranks)) {
                continue;
            }
            if (ranks->is_broken || patience->is_over(patience->user)) {
                ranks->is_broken = true;
                GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "gave up waiting for rank %u", r);
            }
            nanosleep(&nap, NULL);
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status show_cards(struct gradcmp_ranks *ranks,
                                      const struct gcmp_ranks_card *mine,
                                      struct gcmp_ranks_waiting *waiting,
                                      struct gradcmp_error *error) {
    struct gradcmp_ranks_patience patience = patience_of(ranks, waiting);
    struct gcmp_ranks_card card = *mine;
    if (ranks->is_broken) {
        GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "other ranks cannot be reached any more");
    }
    card.told = ranks->told;
    enum gradcmp_status status =
        ranks->table->gather(ranks->link, &card, sizeof card, ranks->cards, &patience, error);
    if (status != GRADCMP_OK) {
        ranks->is_broken = true;
        return status;
    }
    GCMP_TRY(drain(ranks, &patience, error));
    ranks->meetings++;
    ranks->is_superseded = false;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ranks_meet(struct gradcmp_ranks *ranks, const struct gcmp_ranks_card *mine,
                                    struct gcmp_ranks_waiting *waiting,
                                    struct gradcmp_error *error) {
    if (ranks->is_stopped) {
        GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "another rank ended");
    }
    GCMP_TRY(show_cards(ranks, mine, waiting, error));
    for (unsigned r = 0; r < ranks->count; r++) {
        if (ranks->cards[r].step != mine->step) {
            ranks->is_stopped = true;
            GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "rank %u is on its way out", r);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_ranks_meet_last(struct gradcmp_ranks *ranks,
                                         const struct gcmp_ranks_card *mine,
                                         struct gcmp_ranks_waiting *waiting,
                                         struct gradcmp_error *error) {
    bool all_here = false;
    while (!all_here) {
        GCMP_TRY(show_cards(ranks, mine, waiting, error));
        all_here = true;
        for (unsigned r = 0; r < ranks->count; r++) {
            all_here = all_here && ranks->cards[r].step == GCMP_STEP_LEAVE;
        }
    }
    return GRADCMP_OK;
}

unsigned gcmp_ranks_dissenter(const struct gradcmp_ranks *ranks) {
    const struct gcmp_ranks_card *first = &ranks->cards[0];
    for (unsigned r = 1; r < ranks->count; r++) {
        const struct gcmp_ranks_card *card = &ranks->cards[r];
        bool sampled = first->has_sample && card->has_sample;
        if (memcmp(card->digest, first->digest, sizeof card->digest) != 0 ||
            (sampled && memcmp(card->sample, first->sample, sizeof card->sample) != 0)) {
            return r;
        }
    }
    return 0;
}

enum gradcmp_status gcmp_ranks_spread(struct gradcmp_ranks *ranks, unsigned root, void *bytes,
                                      size_t count, struct gcmp_ranks_waiting *waiting,
                                      struct gradcmp_error *error) {
    struct gradcmp_ranks_patience patience = patience_of(ranks, waiting);
    if (count == 0) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status =
        ranks->table->spread(ranks->link, root, bytes, count, &patience, error);
    ranks->is_broken = ranks->is_broken || status != GRADCMP_OK;
    return status;
}
