/* Brings the shares of all ranks together. */
#include "engine/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/digest.h"
#include "engine/run.h"

enum { HALF_BLOCK_ELEMS = GRADCMP_BLOCK_ELEMS / 2 };

void gcmp_share_free(struct gcmp_share *share) {
    free(share->nodes);
    free(share->parts);
    *share = (struct gcmp_share){0};
}

/* --- keeping --- */

static bool keep_node(struct gcmp_share *share, const struct gcmp_share_node *node) {
    bool ok =
        gcmp_grow(&share->nodes, share->node_count, &share->node_capacity, sizeof *share->nodes);
    if (ok) {
        share->nodes[share->node_count++] = *node;
    }
    return ok;
}

bool gcmp_share_keep_part(struct gcmp_run *run, const struct gcmp_share_part *part) {
    struct gcmp_share *share = &run->share;
    pthread_mutex_lock(&run->lock);
    bool ok =
        gcmp_grow(&share->parts, share->part_count, &share->part_capacity, sizeof *share->parts);
    if (ok) {
        share->parts[share->part_count++] = *part;
    }
    pthread_mutex_unlock(&run->lock);
    return ok;
}

static unsigned level_of(uint64_t unit_elems) {
    unsigned level = 0;
    while ((uint64_t)HALF_BLOCK_ELEMS << level < unit_elems) {
        level++;
    }
    return level;
}

bool gcmp_share_keep_task(struct gcmp_run *run, const struct gcmp_task *task) {
    bool ok = true;
    unsigned level = level_of(task->unit_elems);
    size_t tallies = task->job->b_count == 0 ? 1 : task->job->b_count;
    pthread_mutex_lock(&run->lock);
    for (size_t t = 0; t < tallies; t++) {
        const struct gcmp_fold *fold = &task->folds[t];
        for (size_t i = 0; i < fold->node_count && ok; i++) {
            const struct gcmp_fold_node *from = &fold->nodes[i];
            struct gcmp_share_node node = {task->index, (uint32_t)t, level + from->level,
                                           from->index, from->tally};
            ok = keep_node(&run->share, &node);
        }
    }
    pthread_mutex_unlock(&run->lock);
    return ok;
}

/* Keep the tallies of jobs that this rank has done alone. */
static enum gradcmp_status keep_whole_jobs(struct gcmp_run *run, struct gradcmp_error *error) {
    const struct gcmp_deal *deal = &run->deal;
    for (size_t j = deal->cuts[deal->index].job; j < run->job_count; j++) {
        const struct gcmp_job *job = &run->jobs[j];
        struct gcmp_stretch share = gcmp_deal_share(deal, j, job->elems);
        if (share.first != 0 || share.end != job->elems || job->elems == 0) {
            continue;
        }
        for (size_t t = 0; t < (job->b_count == 0 ? 1 : job->b_count); t++) {
            struct gcmp_share_node node = {j, (uint32_t)t, UINT32_MAX, 0, job->tallies[t]};
            if (!keep_node(&run->share, &node)) {
                GCMP_FAIL_MEMORY(error);
            }
        }
    }
    return GRADCMP_OK;
}

/* --- what is sent --- */

/* The first fault of an owner. */
struct share_fault {
    uint64_t owner;
    struct gcmp_fault fault;
};

struct share_counts {
    uint64_t faults, nodes, parts;
};

/* A share as it is sent: counts, then faults, nodes and parts. Ranks are of one program. */
struct parcel {
    struct share_counts counts;
    struct share_fault *faults;
    struct gcmp_share_node *nodes;
    struct gcmp_share_part *parts;
    unsigned char *bytes; /* owned; the others point into it */
    size_t byte_count;
};

static size_t parcel_bytes(const struct share_counts *counts) {
    return sizeof *counts + counts->faults * sizeof(struct share_fault) +
           counts->nodes * sizeof(struct gcmp_share_node) +
           counts->parts * sizeof(struct gcmp_share_part);
}

/* Find the arrays in a parcel's bytes. False where counts and size contradict each other. */
static bool open_parcel(struct parcel *parcel) {
    if (parcel->byte_count < sizeof parcel->counts) {
        return false;
    }
    memcpy(&parcel->counts, parcel->bytes, sizeof parcel->counts);
    const struct share_counts *counts = &parcel->counts;
    uint64_t most = parcel->byte_count; /* each item has more than a byte */
    if (counts->faults > most || counts->nodes > most || counts->parts > most ||
        parcel_bytes(counts) != parcel->byte_count) {
        return false;
    }
    unsigned char *at = parcel->bytes + sizeof *counts;
    parcel->faults = (struct share_fault *)(void *)at;
    parcel->nodes = (struct gcmp_share_node *)(void *)(parcel->faults + counts->faults);
    parcel->parts = (struct gcmp_share_part *)(void *)(parcel->nodes + counts->nodes);
    return true;
}

/* Pack this rank's faults and, with a share, what it found. */
static enum gradcmp_status pack(const struct gcmp_run *run, const struct gcmp_share *share,
                                struct parcel *parcel, struct gradcmp_error *error) {
    struct share_counts counts = {0};
    for (size_t o = 0; o < run->faults.owner_count; o++) {
        counts.faults += run->faults.by_owner[o].set;
    }
    counts.nodes = share == NULL ? 0 : share->node_count;
    counts.parts = share == NULL ? 0 : share->part_count;
    parcel->byte_count = parcel_bytes(&counts);
    parcel->bytes = calloc(1, parcel->byte_count);
    if (parcel->bytes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(parcel->bytes, &counts, sizeof counts);
    if (!open_parcel(parcel)) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "a share does not fit its own size");
    }
    struct share_fault *fault = parcel->faults;
    for (size_t o = 0; o < run->faults.owner_count; o++) {
        if (run->faults.by_owner[o].set) {
            fault->owner = o;
            fault->fault = run->faults.by_owner[o];
            fault++;
        }
    }
    if (counts.nodes > 0) {
        memcpy(parcel->nodes, share->nodes, counts.nodes * sizeof *share->nodes);
    }
    if (counts.parts > 0) {
        memcpy(parcel->parts, share->parts, counts.parts * sizeof *share->parts);
    }
    return GRADCMP_OK;
}

/* --- all parcels --- */

struct parcels {
    struct parcel *list; /* by rank; owned */
    unsigned count;
};

static void free_parcels(struct parcels *parcels) {
    for (unsigned r = 0; parcels->list != NULL && r < parcels->count; r++) {
        free(parcels->list[r].bytes);
    }
    free(parcels->list);
}

static enum gradcmp_status refuse_parcel(unsigned rank, struct gradcmp_error *error) {
    GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "rank %u sent results of other work than was dealt to it",
              rank);
}

/* Tell whether a parcel speaks of this run's jobs, owners and tables only. */
static bool is_of_run(const struct gcmp_run *run, const struct parcel *parcel) {
    bool good = true;
    for (uint64_t i = 0; good && i < parcel->counts.faults; i++) {
        good = parcel->faults[i].owner < run->faults.owner_count;
    }
    for (uint64_t i = 0; good && i < parcel->counts.nodes; i++) {
        const struct gcmp_share_node *node = &parcel->nodes[i];
        size_t tallies = node->job < run->job_count ? run->jobs[node->job].b_count : 0;
        good = node->job < run->job_count && node->tally < (tallies == 0 ? 1 : tallies) &&
               (node->level < 64 || node->level == UINT32_MAX);
    }
    for (uint64_t i = 0; good && i < parcel->counts.parts; i++) {
        good = parcel->parts[i].table < run->table_count &&
               parcel->parts[i].owner < run->faults.owner_count;
    }
    return good;
}

/* Give all ranks' parcels to all. The meeting told their sizes. */
static enum gradcmp_status spread_parcels(struct gcmp_run *run, struct parcel *mine,
                                          struct parcels *parcels,
                                          struct gcmp_ranks_waiting *waiting,
                                          struct gradcmp_error *error) {
    struct gradcmp_ranks *ranks = run->ranks;
    parcels->list = calloc(ranks->count, sizeof *parcels->list);
    parcels->count = ranks->count;
    if (parcels->list == NULL) {
        ranks->is_broken = true; /* the others wait for this rank */
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned r = 0; r < ranks->count; r++) {
        struct parcel *parcel = &parcels->list[r];
        parcel->byte_count = ranks->cards[r].bytes;
        if (r == ranks->index) {
            parcel->bytes = mine->bytes;
            mine->bytes = NULL;
        } else {
            parcel->bytes = malloc(parcel->byte_count + 1);
        }
        if (parcel->bytes == NULL) {
            ranks->is_broken = true;
            GCMP_FAIL_MEMORY(error);
        }
        GCMP_TRY(gcmp_ranks_spread(ranks, r, parcel->bytes, parcel->byte_count, waiting, error));
    }
    for (unsigned r = 0; r < ranks->count; r++) { /* on all ranks alike, after the last spread */
        if (!open_parcel(&parcels->list[r]) || !is_of_run(run, &parcels->list[r])) {
            return refuse_parcel(r, error);
        }
    }
    return GRADCMP_OK;
}

static void merge_faults(struct gcmp_run *run, const struct parcels *parcels) {
    for (unsigned r = 0; r < parcels->count; r++) {
        const struct parcel *parcel = &parcels->list[r];
        for (uint64_t i = 0; i < parcel->counts.faults; i++) {
            gcmp_faults_add(&run->faults, parcel->faults[i].owner, &parcel->faults[i].fault);
        }
    }
}

/* --- sums --- */

/* By job and tally, then by where the subtree begins: a fold then keeps few nodes waiting. */
static int compare_nodes(const void *left, const void *right) {
    const struct gcmp_share_node *a = left, *b = right;
    if (a->job != b->job) {
        return a->job < b->job ? -1 : 1;
    }
    if (a->tally != b->tally) {
        return a->tally < b->tally ? -1 : 1;
    }
    if (a->level > 63 || b->level > 63) {
        return 0; /* a whole job is alone */
    }
    uint64_t first_a = a->index << a->level, first_b = b->index << b->level;
    return first_a < first_b ? -1 : first_a > first_b;
}

static bool is_blamed(const struct gcmp_run *run, const struct gcmp_job *job, size_t tally) {
    bool by_a = run->faults.owner_count > 0 && run->faults.by_owner[job->a.owner].set;
    return by_a || (job->b_count > 0 && run->faults.by_owner[job->b[tally].owner].set);
}

/* A tally that lacks elements although nothing failed must not be taken for a result. */
static enum gradcmp_status check_complete(const struct gcmp_run *run, struct gradcmp_error *error) {
    for (size_t j = 0; j < run->job_count; j++) {
        const struct gcmp_job *job = &run->jobs[j];
        for (size_t t = 0; t < (job->b_count == 0 ? 1 : job->b_count); t++) {
            if (job->tallies[t].elems != job->elems && !is_blamed(run, job, t)) {
                GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                          "%s: ranks read %llu elements of %llu, and none reported a fault",
                          job->a.parameter->name, (unsigned long long)job->tallies[t].elems,
                          (unsigned long long)job->elems);
            }
        }
    }
    return GRADCMP_OK;
}

/* Fold the nodes of one tally, nodes[0 .. count). */
static bool fold_nodes(struct gcmp_run *run, const struct gcmp_share_node *nodes, size_t count) {
    struct gcmp_job *job = &run->jobs[nodes[0].job];
    struct gradcmp_tally *out = &job->tallies[nodes[0].tally];
    uint64_t units = job->elems / HALF_BLOCK_ELEMS + (job->elems % HALF_BLOCK_ELEMS != 0);
    struct gcmp_fold fold = {.unit_count = units};
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        if (nodes[i].level == UINT32_MAX) {
            *out = nodes[i].root;
            continue;
        }
        struct gcmp_fold_node node = {nodes[i].level, nodes[i].index, nodes[i].root};
        ok = gcmp_fold_add_node(&fold, &node, out);
    }
    gcmp_fold_free(&fold);
    return ok;
}

static enum gradcmp_status merge_nodes(struct gcmp_run *run, const struct parcels *parcels,
                                       struct gradcmp_error *error) {
    size_t total = 0, at = 0;
    for (unsigned r = 0; r < parcels->count; r++) {
        total += parcels->list[r].counts.nodes;
    }
    struct gcmp_share_node *all = malloc(total * sizeof *all + 1);
    if (all == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned r = 0; r < parcels->count; r++) {
        const struct parcel *parcel = &parcels->list[r];
        if (parcel->counts.nodes > 0) {
            memcpy(all + at, parcel->nodes, parcel->counts.nodes * sizeof *all);
            at += parcel->counts.nodes;
        }
    }
    qsort(all, total, sizeof *all, compare_nodes);
    bool ok = true;
    for (size_t first = 0, end; first < total && ok; first = end) {
        end = first + 1;
        while (end < total && all[end].job == all[first].job &&
               all[end].tally == all[first].tally) {
            end++;
        }
        ok = fold_nodes(run, all + first, end - first);
    }
    free(all);
    if (!ok) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* --- checksums --- */

/* A record that several ranks read, put together. */
struct joint {
    struct gcmp_share_part whole;
    unsigned reader; /* the lowest rank that read of it */
};

struct joints {
    struct joint *list; /* owned */
    size_t count;
};

static int compare_joints(const void *left, const void *right) {
    const struct joint *a = left, *b = right;
    if (a->whole.table != b->whole.table) {
        return a->whole.table < b->whole.table ? -1 : 1;
    }
    if (a->whole.source != b->whole.source) {
        return a->whole.source < b->whole.source ? -1 : 1;
    }
    return a->reader < b->reader ? -1 : a->reader > b->reader;
}

/* Add what another rank knows of the same record. */
static void add_part(struct gcmp_record_part *whole, const struct gcmp_record_part *part) {
    whole->used_bytes += part->used_bytes;
    whole->checked_bytes += part->checked_bytes;
    whole->checked_crc32 ^= part->checked_crc32;
}

static enum gradcmp_status join_parts(const struct parcels *parcels, struct joints *joints,
                                      struct gradcmp_error *error) {
    size_t total = 0, count = 0;
    for (unsigned r = 0; r < parcels->count; r++) {
        total += parcels->list[r].counts.parts;
    }
    joints->list = calloc(total + 1, sizeof *joints->list);
    if (joints->list == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (unsigned r = 0; r < parcels->count; r++) {
        for (uint64_t i = 0; i < parcels->list[r].counts.parts; i++) {
            joints->list[count++] = (struct joint){parcels->list[r].parts[i], r};
        }
    }
    qsort(joints->list, total, sizeof *joints->list, compare_joints);
    for (size_t i = 0; i < total; i++) {
        struct joint *last = joints->count == 0 ? NULL : &joints->list[joints->count - 1];
        const struct joint *next = &joints->list[i];
        if (last != NULL && last->whole.table == next->whole.table &&
            last->whole.source == next->whole.source) {
            add_part(&last->whole.part, &next->whole.part);
        } else {
            joints->list[joints->count++] = *next;
        }
    }
    return GRADCMP_OK;
}

/* Where a wrong checksum is a fault, as in a run of one rank. */
static struct gcmp_fault fault_of(const struct gcmp_run *run, const struct gcmp_share_part *part) {
    struct gcmp_fault fault = {.side = SIZE_MAX};
    const struct gcmp_record_span *span = gcmp_records_span(run->tables[part->table], part->source);
    fault.place.job = span == NULL ? run->job_count - 1 : span->last_job;
    fault.place.elem = run->jobs[fault.place.job].elems;
    fault.tie = gcmp_run_tie(part->table, part->source);
    return fault;
}

/* Tell whether a record is to be read once more, which all ranks tell alike. */
static bool is_doubted(struct gcmp_run *run, const struct joint *joint) {
    const struct gcmp_share_part *whole = &joint->whole;
    struct gcmp_fault fault = fault_of(run, whole);
    return gcmp_records_judge(run->tables[whole->table], &whole->part) == GCMP_RECORD_DOUBTED &&
           !gcmp_faults_block(&run->faults, whole->owner, fault.place);
}

/* Read once more what falls to this rank. *count: how many records there are for all. */
static enum gradcmp_status check_doubted(struct gcmp_run *run, const struct joints *joints,
                                         size_t *count, struct gradcmp_error *error) {
    enum gradcmp_status status = GRADCMP_OK;
    *count = 0;
    /* First all are counted: a fault that is found here must not change what is doubted. */
    for (size_t i = 0; i < joints->count; i++) {
        *count += is_doubted(run, &joints->list[i]);
    }
    for (size_t i = 0; i<joints->count && * count> 0 && status != GRADCMP_ERROR_MEMORY; i++) {
        const struct joint *joint = &joints->list[i];
        if (joint->reader != run->ranks->index || !is_doubted(run, joint)) {
            continue;
        }
        struct gcmp_fault fault = fault_of(run, &joint->whole);
        status = gcmp_records_check_again(run->tables[joint->whole.table], joint->whole.source,
                                          &fault.error);
        if (status == GRADCMP_ERROR_MEMORY && error != NULL) {
            *error = fault.error;
        } else if (status != GRADCMP_OK) {
            gcmp_faults_add(&run->faults, joint->whole.owner, &fault);
        }
    }
    return status == GRADCMP_ERROR_MEMORY ? status : GRADCMP_OK;
}

/* --- the meeting --- */

/* Meet, and give each other what was found; `share` NULL: faults alone. */
static enum gradcmp_status trade(struct gcmp_run *run, const struct gcmp_share *share,
                                 struct gcmp_ranks_waiting *waiting, struct parcels *parcels,
                                 struct gradcmp_error *error) {
    struct parcel mine = {0};
    struct gcmp_ranks_card card;
    memset(&card, 0, sizeof card);
    card.step = share == NULL ? GCMP_STEP_CHECK : GCMP_STEP_RUN;
    enum gradcmp_status status;
    GCMP_TRY_OUT(pack(run, share, &mine, error));
    card.bytes = mine.byte_count;
    GCMP_TRY_OUT(gcmp_digest_jobs(run->jobs, run->job_count, run->verify, card.digest, error));
    GCMP_TRY_OUT(gcmp_ranks_meet(run->ranks, &card, waiting, error));
    unsigned other = gcmp_ranks_dissenter(run->ranks);
    if (other != 0) {
        status = gcmp_error_set(error, GRADCMP_ERROR_USAGE, NULL, GRADCMP_NO_OFFSET,
                                "rank %u does other work than rank 0: all must be given the same "
                                "checkpoints and options",
                                other);
        goto out;
    }
    GCMP_TRY_OUT(spread_parcels(run, &mine, parcels, waiting, error));
    merge_faults(run, parcels);
out:
    free(mine.bytes);
    return status;
}

static enum gradcmp_status check_records(struct gcmp_run *run, const struct parcels *parcels,
                                         struct gcmp_ranks_waiting *waiting,
                                         struct gradcmp_error *error) {
    struct joints joints = {0};
    struct parcels found = {0};
    size_t doubted = 0;
    enum gradcmp_status status = join_parts(parcels, &joints, error);
    if (status == GRADCMP_OK) {
        status = check_doubted(run, &joints, &doubted, error);
    }
    if (status == GRADCMP_OK && doubted > 0) {
        status = trade(run, NULL, waiting, &found, error);
    }
    free_parcels(&found);
    free(joints.list);
    return status;
}

enum gradcmp_status gcmp_share_exchange(struct gcmp_run *run, struct gcmp_ranks_waiting *waiting,
                                        struct gradcmp_error *error) {
    struct parcels parcels = {0};
    enum gradcmp_status status;
    GCMP_TRY_OUT(keep_whole_jobs(run, error));
    GCMP_TRY_OUT(trade(run, &run->share, waiting, &parcels, error));
    GCMP_TRY_OUT(check_records(run, &parcels, waiting, error));
    GCMP_TRY_OUT(merge_nodes(run, &parcels, error));
    if (run->faults.owner_count == 0 || !run->faults.by_owner[0].set) {
        status = check_complete(run, error);
    }
out:
    free_parcels(&parcels);
    return status;
}
