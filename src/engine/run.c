/* The queue of units over all jobs, and the life of jobs under way. */
#include "engine/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

/* Bytes that a slab should contribute to a unit; where many slabs are interleaved, units are
 * larger, so that reads are not too small. */
enum { PIECE_BYTES = 64 * 1024 };
/* Jobs whose sources are read ahead, and how much there must be to read for that. */
enum { HINTED_JOBS = 16, LEAST_HINTED_BYTES = 32 * 1024 * 1024 };
/* Decoded records that are kept for the next unit. */
enum { DECODED_BYTES = 64 * 1024 * 1024 };

/* --- making --- */

struct gcmp_records *gcmp_run_records(const struct gcmp_run *run,
                                      const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; i < run->table_count; i++) {
        if (run->catalogues[i] == catalogue) {
            return run->tables[i];
        }
    }
    return NULL;
}

static enum gradcmp_status add_table(struct gcmp_run *run,
                                     const struct gradcmp_catalogue *catalogue, int verify,
                                     struct gradcmp_error *error) {
    size_t count = run->table_count + 1;
    void *tables = realloc(run->tables, count * sizeof *run->tables);
    if (tables != NULL) {
        run->tables = tables;
    }
    void *catalogues = realloc(run->catalogues, count * sizeof *run->catalogues);
    if (catalogues != NULL) {
        run->catalogues = catalogues;
    }
    struct gcmp_records *table = gcmp_records_make(catalogue, DECODED_BYTES, verify);
    if (tables == NULL || catalogues == NULL || table == NULL) {
        gcmp_records_free(table);
        GCMP_FAIL_MEMORY(error);
    }
    gcmp_records_use_pages(table, run->pages);
    if (run->direct) {
        gcmp_records_use_direct(table);
    }
    run->tables[run->table_count] = table;
    run->catalogues[run->table_count++] = catalogue;
    return GRADCMP_OK;
}

/* A use of sources by a job that is to come, for gcmp_side_each_source. */
struct coming_use {
    struct gcmp_records *records;
    size_t job;
    bool out_of_memory;
};

static void announce(void *user, uint32_t source) {
    struct coming_use *use = user;
    use->out_of_memory =
        !gcmp_records_announce(use->records, source, use->job) || use->out_of_memory;
}

/* A use of sources by ranks. */
struct ranks_use {
    struct gcmp_records *records;
    struct gcmp_record_span span;
    bool out_of_memory;
};

static void note_ranks(void *user, uint32_t source) {
    struct ranks_use *use = user;
    use->out_of_memory =
        !gcmp_records_note_ranks(use->records, source, &use->span) || use->out_of_memory;
}

/* Take note of the ranks that a side is dealt to. */
static enum gradcmp_status note_side(const struct gcmp_run *run, size_t job,
                                     const struct gcmp_side *at, struct gradcmp_error *error) {
    uint64_t elems = run->jobs[job].elems;
    if (run->ranks == NULL || elems == 0) {
        return GRADCMP_OK;
    }
    struct ranks_use use = {.records = gcmp_run_records(run, at->catalogue)};
    use.span.lowest = gcmp_deal_rank(&run->deal, (struct gcmp_place){job, 0});
    use.span.highest = gcmp_deal_rank(&run->deal, (struct gcmp_place){job, elems - 1});
    use.span.last_job = job;
    gcmp_side_each_source(at, elems, note_ranks, &use);
    if (use.out_of_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* The same run of the former parameter; parameter NULL where there is none. A copy that the former
 * lacks is its first. */
static struct gcmp_side former_side(const struct gcmp_side *side) {
    const struct gradcmp_former *former = side->parameter->former;
    struct gcmp_side out = *side;
    out.parameter = former == NULL ? NULL : former->parameter;
    if (former != NULL) {
        out.catalogue = former->catalogue;
        out.copy = side->copy < former->parameter->copy_count ? side->copy : 0;
    }
    return out;
}

/* Check a side and announce its sources. */
static enum gradcmp_status prepare_side(struct gcmp_run *run, size_t job,
                                        const struct gcmp_side *at, int verify,
                                        struct gradcmp_error *error) {
    uint64_t count = at->parameter->elem_count, elems = run->jobs[job].elems;
    if (at->first_elem > count || elems > count - at->first_elem ||
        at->owner >= run->faults.owner_count ||
        gcmp_dtype_bytes((enum gradcmp_dtype)at->parameter->dtype) == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "job %zu is not inside of its parameter", job);
    }
    if (gcmp_run_records(run, at->catalogue) == NULL) {
        GCMP_TRY(add_table(run, at->catalogue, verify, error));
    }
    struct gcmp_stretch share = gcmp_deal_share(&run->deal, job, elems);
    if (share.first < share.end) {
        struct coming_use use = {.records = gcmp_run_records(run, at->catalogue), .job = job};
        gcmp_side_each_source(at, elems, announce, &use);
        if (use.out_of_memory) {
            GCMP_FAIL_MEMORY(error);
        }
        run->bytes_total +=
            (share.end - share.first) * gcmp_dtype_bytes((enum gradcmp_dtype)at->parameter->dtype);
    }
    return note_side(run, job, at, error);
}

/* Deal the jobs; what is received in order stays on one rank. */
static enum gradcmp_status deal(struct gcmp_run *run, struct gradcmp_error *error) {
    for (size_t i = 0; i < run->job_count; i++) {
        if (gcmp_job_has_turns(&run->jobs[i]) || run->jobs[i].face != NULL) {
            GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "job %zu cannot be dealt over ranks", i);
        }
    }
    return gcmp_deal_make(&run->deal, run->ranks, run->jobs, run->job_count, error);
}

enum gradcmp_status gcmp_run_make(struct gcmp_run *run, const struct gcmp_engine_options *options,
                                  size_t owner_count, struct gradcmp_error *error) {
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    run->kernel = gcmp_kernel_choose();
    run->progress = options->progress;
    run->progress_user = options->progress_user;
    run->verify = options->verify;
    if (!gcmp_faults_make(&run->faults, owner_count)) {
        GCMP_FAIL_MEMORY(error);
    }
    if (run->ranks != NULL) {
        GCMP_TRY(deal(run, error));
    }
    for (size_t i = 0; i < run->job_count; i++) {
        struct gcmp_job *job = &run->jobs[i];
        memset(job->tallies, 0, (job->b_count == 0 ? 1 : job->b_count) * sizeof *job->tallies);
        for (size_t side = 0; side <= job->b_count; side++) {
            const struct gcmp_side *at = gcmp_job_side(job, side);
            struct gcmp_side former = former_side(at);
            GCMP_TRY(prepare_side(run, i, at, options->verify, error));
            if (former.parameter != NULL) {
                run->has_formers = true;
                GCMP_TRY(prepare_side(run, i, &former, options->verify, error));
            }
        }
    }
    return GRADCMP_OK;
}

/* --- tasks --- */

static void free_task(struct gcmp_task *task) {
    for (size_t i = 0; task->plans != NULL && i < task->side_count; i++) {
        gcmp_side_plan_free(&task->plans[i]);
    }
    for (size_t i = 0; task->formers != NULL && i < task->side_count; i++) {
        gcmp_side_plan_free(&task->formers[i].plan);
    }
    for (size_t i = 0; task->folds != NULL && i < task->side_count; i++) {
        gcmp_fold_free(&task->folds[i]);
    }
    free(task->plans);
    free(task->folds);
    free(task->formers);
    pthread_mutex_destroy(&task->lock);
    free(task);
}

void gcmp_run_free(struct gcmp_run *run) {
    while (run->tasks != NULL) {
        struct gcmp_task *task = run->tasks;
        run->tasks = task->next;
        free_task(task);
    }
    for (size_t i = 0; i < run->table_count; i++) {
        gcmp_records_free(run->tables[i]);
    }
    free(run->tables);
    free(run->catalogues);
    gcmp_faults_free(&run->faults);
    gcmp_share_free(&run->share);
    gcmp_deal_free(&run->deal);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
}

bool gcmp_job_computes(const struct gcmp_job *job, size_t side) {
    const struct gcmp_side *own = gcmp_job_side(job, side);
    return job->scale_log2 != 0 || own->parameter->former != NULL || own->divisor != 0.0 ||
           own->rounding != GRADCMP_DTYPE_NONE;
}

enum gradcmp_dtype gcmp_job_dtype(const struct gcmp_job *job, size_t side) {
    return gcmp_job_computes(job, side)
               ? GRADCMP_DTYPE_FLOAT64
               : (enum gradcmp_dtype)gcmp_job_side(job, side)->parameter->dtype;
}

unsigned gcmp_job_elem_bytes(const struct gcmp_job *job, size_t side) {
    return gcmp_dtype_bytes(gcmp_job_dtype(job, side));
}

/* Units up to an element. */
static uint64_t units_to(uint64_t end, uint64_t unit_elems) {
    return end / unit_elems + (end % unit_elems != 0);
}

/* Choose how many elements a unit has: 2^k blocks. This changes no result. */
static void size_units(const struct gcmp_run *run, struct gcmp_task *task) {
    unsigned widest = 1;
    uint64_t depth = 1;
    for (size_t side = 0; side < task->side_count; side++) {
        unsigned elem_bytes = gcmp_job_elem_bytes(task->job, side);
        widest = elem_bytes > widest ? elem_bytes : widest;
        uint64_t former_depth = task->formers[side].plan.depth; /* 0 where there is none */
        depth = task->plans[side].depth > depth ? task->plans[side].depth : depth;
        depth = former_depth > depth ? former_depth : depth;
    }
    uint64_t bytes = depth > run->unit_bytes / PIECE_BYTES ? depth * PIECE_BYTES : run->unit_bytes;
    bytes = bytes < run->most_unit_bytes ? bytes : run->most_unit_bytes;
    uint64_t most = bytes / widest, elems = GRADCMP_BLOCK_ELEMS;
    while (elems * 2 <= most) {
        elems *= 2;
    }
    while (elems * widest > run->buffer_bytes) {
        elems /= 2; /* only types over 64 bits, which are not tallied */
    }
    if (run->ranks != NULL && elems > run->deal.chunk_elems) {
        elems = run->deal.chunk_elems;
    }
    struct gcmp_stretch share = gcmp_deal_share(&run->deal, task->index, task->job->elems);
    task->unit_elems = elems;
    task->unit_count = units_to(task->job->elems, elems);
    task->first_unit = share.first / elems; /* shares begin and end with units */
    task->end_unit = units_to(share.end, elems);
    task->units_left = task->end_unit - task->first_unit;
}

/* A side that contradicts itself is its owner's fault, from the job's first element on. */
static enum gradcmp_status plan_one(struct gcmp_run *run, const struct gcmp_task *task,
                                    const struct gcmp_side *at, struct gcmp_side_plan *plan) {
    struct gcmp_fault fault = {.place = {task->index, 0}, .side = SIZE_MAX};
    enum gradcmp_status status = gcmp_side_plan_make(
        plan, at, task->job->elems, gcmp_run_records(run, at->catalogue), &fault.error);
    if (status != GRADCMP_OK && status != GRADCMP_ERROR_MEMORY) {
        gcmp_faults_add(&run->faults, at->owner, &fault);
        status = GRADCMP_OK;
    }
    return status;
}

static enum gradcmp_status plan_side(struct gcmp_run *run, struct gcmp_task *task, size_t side) {
    const struct gcmp_side *at = gcmp_job_side(task->job, side);
    struct gcmp_former_plan *former = &task->formers[side];
    former->side = former_side(at);
    GCMP_TRY(plan_one(run, task, at, &task->plans[side]));
    return former->side.parameter == NULL ? GRADCMP_OK
                                          : plan_one(run, task, &former->side, &former->plan);
}

/* Begin a job; NULL without memory. */
static struct gcmp_task *begin_task(struct gcmp_run *run, size_t index) {
    struct gcmp_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        return NULL;
    }
    pthread_mutex_init(&task->lock, NULL);
    task->job = &run->jobs[index];
    task->index = index;
    task->side_count = 1 + task->job->b_count;
    task->plans = calloc(task->side_count, sizeof *task->plans);
    task->folds = calloc(task->side_count, sizeof *task->folds);
    task->formers = calloc(task->side_count, sizeof *task->formers);
    bool ok = task->plans != NULL && task->folds != NULL && task->formers != NULL;
    for (size_t side = 0; ok && side < task->side_count; side++) {
        ok = plan_side(run, task, side) == GRADCMP_OK;
    }
    if (!ok) {
        free_task(task);
        return NULL;
    }
    size_units(run, task);
    for (size_t i = 0; i < task->side_count; i++) {
        task->folds[i].unit_count = task->unit_count;
    }
    task->next = run->tasks;
    task->link = &run->tasks;
    if (task->next != NULL) {
        task->next->link = &task->next;
    }
    run->tasks = task;
    return task;
}

/* --- the queue --- */

static void stop_locked(struct gcmp_run *run, const struct gradcmp_error *error) {
    if (!run->stop) {
        run->stop = true;
        run->fatal = *error;
    }
}

void gcmp_run_stop(struct gcmp_run *run, const struct gradcmp_error *error) {
    pthread_mutex_lock(&run->lock);
    stop_locked(run, error);
    pthread_mutex_unlock(&run->lock);
}

/* Make run->front a task with a unit to take; false when there is none. Lock held. */
static bool advance(struct gcmp_run *run) {
    while (run->front == NULL) {
        if (run->next_job == run->job_count) {
            return false;
        }
        size_t index = run->next_job++;
        struct gcmp_stretch share = gcmp_deal_share(&run->deal, index, run->jobs[index].elems);
        if (share.first == share.end) {
            continue;
        }
        run->front = begin_task(run, index);
        if (run->front != NULL) {
            run->next_unit = run->front->first_unit;
        } else {
            struct gradcmp_error error;
            gcmp_error_set(&error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
            stop_locked(run, &error);
            return false;
        }
    }
    return true;
}

static void hint(void *user, uint32_t source) {
    gcmp_records_hint(user, source);
}

/* Have what describes the tensors of jobs to come read ahead: small reads far apart, for which
 * threads would wait one by one where files are not in memory. */
static void hint_jobs(struct gcmp_run *run, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        for (size_t side = 0; side <= run->jobs[i].b_count; side++) {
            const struct gcmp_side *at = gcmp_job_side(&run->jobs[i], side);
            gcmp_side_each_source(at, run->jobs[i].elems, hint,
                                  gcmp_run_records(run, at->catalogue));
        }
    }
}

/* Take the jobs whose turn it is to be hinted at. Lock held. */
static size_t take_hints(struct gcmp_run *run, size_t *first) {
    size_t end = run->next_job + HINTED_JOBS;
    end = end < run->job_count ? end : run->job_count;
    *first = run->hinted_jobs;
    if (run->bytes_total < LEAST_HINTED_BYTES || run->pages != NULL || end <= *first) {
        return *first;
    }
    run->hinted_jobs = end;
    return end;
}

bool gcmp_run_take(struct gcmp_run *run, struct gcmp_unit *unit) {
    size_t hint_first = 0;
    pthread_mutex_lock(&run->lock);
    /* Without the baseline nothing can be concluded: what follows its first fault is not needed. */
    bool taken = !run->stop && !run->is_superseded &&
                 !gcmp_faults_block(&run->faults, 0, (struct gcmp_place){SIZE_MAX, UINT64_MAX}) &&
                 advance(run);
    if (taken) {
        struct gcmp_task *task = run->front;
        unit->task = task;
        unit->index = run->next_unit++;
        unit->first = unit->index * task->unit_elems;
        uint64_t left = task->job->elems - unit->first;
        unit->elems = left < task->unit_elems ? left : task->unit_elems;
        unit->ticket = gcmp_job_has_turns(task->job) ? run->next_ticket++ : 0;
        if (run->next_unit == task->end_unit) {
            run->front = NULL;
        }
    }
    size_t hint_end = taken ? take_hints(run, &hint_first) : 0;
    pthread_mutex_unlock(&run->lock);
    if (taken) {
        hint_jobs(run, hint_first, hint_end);
    }
    return taken;
}

void gcmp_run_await_turn(struct gcmp_run *run, const struct gcmp_unit *unit) {
    pthread_mutex_lock(&run->lock);
    while (run->turn != unit->ticket) {
        pthread_cond_wait(&run->changed, &run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

void gcmp_run_end_turn(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    run->turn++;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

void gcmp_run_begin_tally(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    while (run->tallying >= run->threads) {
        pthread_cond_wait(&run->changed, &run->lock);
    }
    run->tallying++;
    pthread_mutex_unlock(&run->lock);
}

void gcmp_run_end_tally(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    if (run->tallying-- == run->threads) {
        pthread_cond_broadcast(&run->changed);
    }
    pthread_mutex_unlock(&run->lock);
}

void gcmp_run_say_reads_block(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    run->reads_block = true;
    pthread_mutex_unlock(&run->lock);
}

bool gcmp_run_reads_block(struct gcmp_run *run) {
    pthread_mutex_lock(&run->lock);
    bool said = run->reads_block;
    run->reads_block = false;
    pthread_mutex_unlock(&run->lock);
    return said;
}

static size_t table_index(const struct gcmp_run *run, const struct gcmp_records *records) {
    size_t i = 0;
    while (run->tables[i] != records) {
        i++;
    }
    return i;
}

static void stop_without_memory(struct gcmp_run *run) {
    struct gradcmp_error error;
    gcmp_error_set(&error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    gcmp_run_stop(run, &error);
}

/* True where other ranks use a source too. */
static bool is_shared(const struct gcmp_records *records, uint32_t source) {
    const struct gcmp_record_span *span = gcmp_records_span(records, source);
    return span != NULL && span->lowest != span->highest;
}

/* A use of sources that ends, for gcmp_side_each_source. */
struct use {
    struct gcmp_run *run;
    struct gcmp_records *records;
    const struct gcmp_side *side;
};

/* Keep what is known of a record that other ranks read too. */
static void keep_part(const struct use *use, uint32_t source, const struct gcmp_record *record) {
    struct gcmp_share_part part;
    memset(&part, 0, sizeof part);
    part.table = (uint32_t)table_index(use->run, use->records);
    part.source = source;
    part.owner = use->side->owner;
    if (gcmp_record_part(record, &part.part) && !gcmp_share_keep_part(use->run, &part)) {
        stop_without_memory(use->run);
    }
}

/* End a use; a record that is not used any more is checked, in the name of the last job that was to
 * use it, whichever ends last. */
static void end_use(void *user, uint32_t source) {
    struct use *use = user;
    struct gcmp_run *run = use->run;
    struct gcmp_record *record;
    size_t last_job;
    if (!gcmp_records_end_use(use->records, source, &record, &last_job) || record == NULL) {
        return;
    }
    if (is_shared(use->records, source)) {
        keep_part(use, source, record);
        gcmp_record_free(record);
        return;
    }
    struct gcmp_fault fault = {.place = {last_job, run->jobs[last_job].elems},
                               .tie = gcmp_run_tie(table_index(run, use->records), source),
                               .side = SIZE_MAX};
    if (!gcmp_faults_block(&run->faults, use->side->owner, fault.place)) {
        enum gradcmp_status status = gcmp_record_check(record, &fault.error);
        if (status == GRADCMP_ERROR_MEMORY) {
            gcmp_run_stop(run, &fault.error);
        } else if (status != GRADCMP_OK) {
            gcmp_faults_add(&run->faults, use->side->owner, &fault);
        }
    }
    gcmp_record_free(record);
}

static void end_uses(struct gcmp_run *run, const struct gcmp_task *task,
                     const struct gcmp_side *side) {
    struct use use = {run, gcmp_run_records(run, side->catalogue), side};
    gcmp_side_each_source(side, task->job->elems, end_use, &use);
}

static void end_task(struct gcmp_run *run, struct gcmp_task *task) {
    for (size_t side = 0; side < task->side_count; side++) {
        end_uses(run, task, gcmp_job_side(task->job, side));
        if (task->formers[side].side.parameter != NULL) {
            end_uses(run, task, &task->formers[side].side);
        }
    }
    bool is_whole = task->end_unit - task->first_unit == task->unit_count;
    if (!is_whole && !gcmp_share_keep_task(run, task)) {
        stop_without_memory(run);
    }
    pthread_mutex_lock(&run->lock);
    *task->link = task->next;
    if (task->next != NULL) {
        task->next->link = task->link;
    }
    pthread_mutex_unlock(&run->lock);
    free_task(task);
}

void gcmp_run_done(struct gcmp_run *run, const struct gcmp_unit *unit) {
    struct gcmp_task *task = unit->task;
    uint64_t bytes = 0;
    for (size_t side = 0; side < task->side_count; side++) {
        bytes += unit->elems * task->plans[side].elem_bytes;
        bytes += unit->elems * task->formers[side].plan.elem_bytes; /* 0 without a former */
    }
    pthread_mutex_lock(&run->lock);
    run->bytes_done += bytes;
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_lock(&task->lock);
    bool last = --task->units_left == 0;
    pthread_mutex_unlock(&task->lock);
    if (last) {
        end_task(run, task);
    }
}
