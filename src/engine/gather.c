/* Finds the slabs of a run and has each put its elements into place. */
#include "engine/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/dtype.h"
#include "engine/strided.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { HOST_IS_BIG_ENDIAN = 1 };
#else
enum { HOST_IS_BIG_ENDIAN = 0 };
#endif

/* Slabs of the side's copy: they are sorted by copy. */
static void find_copy(const struct gcmp_side *side, size_t *first, size_t *count) {
    const struct gradcmp_parameter *parameter = side->parameter;
    size_t low = 0, high = parameter->slab_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (parameter->slabs[middle].copy < side->copy) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *first = low;
    while (high < parameter->slab_count && parameter->slabs[high].copy == side->copy) {
        high++;
    }
    *count = high - low;
}

void gcmp_side_each_source(const struct gcmp_side *side, uint64_t elems,
                           void (*visit)(void *user, uint32_t source), void *user) {
    size_t first, count;
    find_copy(side, &first, &count);
    for (size_t i = first; i < first + count; i++) {
        struct gcmp_box box;
        const struct gradcmp_slab *slab = &side->parameter->slabs[i];
        if (gcmp_box_place(side->parameter, slab, &box) && box.elems > 0 &&
            box.first < side->first_elem + elems && gcmp_box_last(&box) >= side->first_elem) {
            visit(user, slab->source);
        }
    }
}

/* --- the plan of a side --- */

enum gradcmp_status gcmp_side_plan_make(struct gcmp_side_plan *plan, const struct gcmp_side *side,
                                        uint64_t elems, struct gcmp_records *records,
                                        struct gradcmp_error *error) {
    uint64_t end = 0, spans = 0;
    plan->side = side;
    plan->records = records;
    plan->elem_bytes = gcmp_dtype_bytes((enum gradcmp_dtype)side->parameter->dtype);
    find_copy(side, &plan->first_slab, &plan->slab_count);
    plan->reaches = calloc(plan->slab_count + 1, sizeof *plan->reaches);
    if (plan->reaches == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < plan->slab_count; i++) {
        struct gcmp_box box;
        const struct gradcmp_slab *slab = &side->parameter->slabs[plan->first_slab + i];
        if (!gcmp_box_place(side->parameter, slab, &box)) {
            GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "slab lies outside of \"%.200s\"",
                      side->parameter->name);
        }
        uint64_t slab_end = box.elems == 0 ? box.first : gcmp_box_last(&box) + 1;
        end = slab_end > end ? slab_end : end;
        plan->reaches[i] = (struct gcmp_reach){box.first, end};
        spans += slab_end - box.first;
    }
    plan->depth = elems == 0 ? 1 : spans / side->parameter->elem_count;
    return GRADCMP_OK;
}

void gcmp_side_plan_free(struct gcmp_side_plan *plan) {
    free(plan->reaches);
    plan->reaches = NULL;
}

/* --- gathering --- */

/* First slab that may hold element `first` or a later one. */
static size_t first_candidate(const struct gcmp_side_plan *plan, uint64_t first) {
    size_t low = 0, high = plan->slab_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->reaches[middle].end_so_far <= first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Bytes that are reversed together: a complex number's parts each for itself. */
static unsigned swap_bytes(const struct gcmp_record *record, const struct gcmp_side_plan *plan) {
    if (record->big_endian == HOST_IS_BIG_ENDIAN || plan->elem_bytes == 1) {
        return 0;
    }
    uint8_t dtype = plan->side->parameter->dtype;
    bool complex = dtype == GRADCMP_DTYPE_COMPLEX64 || dtype == GRADCMP_DTYPE_COMPLEX128;
    return complex ? plan->elem_bytes / 2 : plan->elem_bytes;
}

static enum gradcmp_status check_dtype(const struct gcmp_record *record,
                                       const struct gradcmp_parameter *parameter,
                                       struct gradcmp_error *error) {
    char message[160];
    if (record->dtype == GRADCMP_DTYPE_NONE || record->dtype == parameter->dtype) {
        return GRADCMP_OK;
    }
    snprintf(message, sizeof message, "elements: expected %s, found %s",
             gradcmp_dtype_name((enum gradcmp_dtype)parameter->dtype),
             gradcmp_dtype_name((enum gradcmp_dtype)record->dtype));
    return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error, message);
}

/* A slab that may hold wanted elements, and its box. */
struct candidate {
    const struct gradcmp_slab *slab;
    struct gcmp_box box;
};

/* What a record is to put into place of a slab: elements [rank, end) of its box. */
struct bound {
    struct gcmp_destination to;
    uint64_t rank, end;
};

/* Look at what a record has of a slab. */
static enum gradcmp_status bind_slab(const struct gcmp_want *want, struct candidate *candidate,
                                     struct gcmp_record *record, struct bound *out,
                                     struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = want->plan->side->parameter;
    struct gcmp_box *box = &candidate->box;
    memset(out, 0, sizeof *out);
    GCMP_TRY(check_dtype(record, parameter, error));
    if (!gcmp_box_bind(parameter, candidate->slab, record, box)) {
        return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error,
                                "slab reaches outside of its record");
    }
    out->to = (struct gcmp_destination){.record = record,
                                        .box = box,
                                        .staging = want->staging,
                                        .out = want->out,
                                        .first = want->plan->side->first_elem + want->first,
                                        .elem_bytes = want->plan->elem_bytes,
                                        .swap_bytes = swap_bytes(record, want->plan)};
    out->rank = gcmp_box_rank(box, out->to.first);
    out->end = gcmp_box_rank(box, out->to.first + want->elems);
    return GRADCMP_OK;
}

/* Place a slab; false where it has nothing of what is wanted, by its outline. */
static bool place_slab(const struct gcmp_want *want, size_t index, struct candidate *candidate) {
    const struct gcmp_side_plan *plan = want->plan;
    candidate->slab = &plan->side->parameter->slabs[plan->first_slab + index];
    return gcmp_box_place(plan->side->parameter, candidate->slab, &candidate->box) &&
           candidate->box.elems > 0 &&
           gcmp_box_last(&candidate->box) >= plan->side->first_elem + want->first;
}

/* Gather from one slab what it has; *elems is 0 where it has nothing. */
static enum gradcmp_status gather_slab(const struct gcmp_want *want, size_t index, uint64_t *elems,
                                       struct gradcmp_error *error) {
    struct candidate candidate;
    struct bound bound;
    *elems = 0;
    if (!place_slab(want, index, &candidate)) {
        return GRADCMP_OK;
    }
    struct gcmp_record *record;
    GCMP_TRY(gcmp_records_hold(want->plan->records, candidate.slab->source, &record, error));
    enum gradcmp_status status = bind_slab(want, &candidate, record, &bound, error);
    if (status == GRADCMP_OK && bound.rank < bound.end) {
        *elems = bound.end - bound.rank;
        status = gcmp_read_run(&bound.to, bound.rank, bound.end, error);
    }
    gcmp_record_release(record);
    return status;
}

/* Gather from the slabs from `index` on; what they had is added to *covered, and must then be all
 * that is wanted. */
static enum gradcmp_status gather_rest(const struct gcmp_want *want, size_t index,
                                       uint64_t *covered, struct gradcmp_error *error) {
    const struct gcmp_side_plan *plan = want->plan;
    uint64_t first = plan->side->first_elem + want->first, end = first + want->elems;
    for (size_t i = index; i < plan->slab_count && plan->reaches[i].first < end; i++) {
        uint64_t found;
        GCMP_TRY(gather_slab(want, i, &found, error));
        *covered += found;
    }
    if (*covered != want->elems) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "\"%.200s\": %llu of %zu elements from element %llu on are stored",
                  plan->side->parameter->name, (unsigned long long)*covered, want->elems,
                  (unsigned long long)first);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_gather(const struct gcmp_want *want, struct gradcmp_error *error) {
    uint64_t covered = 0;
    size_t first = first_candidate(want->plan, want->plan->side->first_elem + want->first);
    return gather_rest(want, first, &covered, error);
}

/* --- loads --- */

/* Room in the load's staging; NULL where it is full. */
static unsigned char *reserve(struct gcmp_load *load, size_t bytes) {
    const struct gcmp_staging *staging = load->want.staging;
    if (bytes > staging->capacity_bytes - load->staged_bytes) {
        return NULL;
    }
    unsigned char *at = staging->bytes + load->staged_bytes;
    load->staged_bytes += bytes;
    return at;
}

/* Say how a piece is to be read; false where there is no room for it. */
static bool plan_piece(struct gcmp_load *load, const struct bound *bound,
                       struct gcmp_load_piece *piece) {
    const struct gcmp_staging *staging = load->want.staging;
    unsigned char *next = staging->bytes + load->staged_bytes;
    struct gcmp_pages_at at;
    size_t skip;
    gcmp_piece_want(&bound->to, bound->rank, bound->end, next, &piece->bytes);
    if (!gcmp_record_in_file(piece->record, piece->bytes.at, &at)) {
        return false;
    }
    piece->bytes.bytes = piece->bytes.buffer;
    if (gcmp_record_is_direct(piece->record)) {
        bool in_place = piece->bytes.buffer != next;
        if (!gcmp_file_read_align(&piece->read, at, piece->bytes.count, next,
                                  staging->capacity_bytes - load->staged_bytes, &skip) ||
            reserve(load, piece->read.count) == NULL) {
            return false;
        }
        piece->bytes.bytes = next + skip;
        piece->bytes.buffer = in_place ? piece->bytes.buffer : next + skip;
        return true;
    }
    piece->read = (struct gcmp_file_read){.at = at,
                                          .buffer = piece->bytes.buffer,
                                          .count = piece->bytes.count,
                                          .needed = piece->bytes.count};
    return piece->bytes.buffer != next || reserve(load, piece->bytes.count) != NULL;
}

/* Start to read what a slab has, if it has something and this can be started; false where the slabs
 * from this one on are better left to the end. */
static bool start_slab(struct gcmp_load *load, size_t index,
                       const struct gcmp_under_way *under_way) {
    const struct gcmp_want *want = &load->want;
    struct candidate candidate;
    struct bound bound;
    if (!place_slab(want, index, &candidate)) {
        return true;
    }
    if (load->piece_count == GCMP_LOAD_PIECES) {
        return false;
    }
    struct gcmp_load_piece *piece = &load->pieces[load->piece_count];
    piece->slab = index;
    if (gcmp_records_hold(want->plan->records, candidate.slab->source, &piece->record, NULL) !=
        GRADCMP_OK) {
        return false;
    }
    bool is_bound = bind_slab(want, &candidate, piece->record, &bound, NULL) == GRADCMP_OK;
    bool is_needed = is_bound && bound.rank < bound.end;
    if (!is_needed || !candidate.box.contiguous || !plan_piece(load, &bound, piece) ||
        !gcmp_file_read_start(&piece->read, under_way->way, under_way->ring)) {
        gcmp_record_release(piece->record);
        piece->record = NULL;
    }
    load->piece_count += is_needed;
    return is_bound;
}

void gcmp_load_start(struct gcmp_load *load, const struct gcmp_under_way *under_way) {
    const struct gcmp_side_plan *plan = load->want.plan;
    uint64_t first = plan->side->first_elem + load->want.first;
    load->piece_count = 0;
    load->staged_bytes = 0;
    load->next_slab = first_candidate(plan, first);
    while (under_way->ring != NULL && load->next_slab < plan->slab_count &&
           plan->reaches[load->next_slab].first < first + load->want.elems &&
           start_slab(load, load->next_slab, under_way)) {
        load->next_slab++;
    }
}

bool gcmp_load_is_here(const struct gcmp_load *load, const struct gcmp_under_way *under_way) {
    bool is_here = true;
    for (size_t i = 0; i < load->piece_count && is_here; i++) {
        const struct gcmp_load_piece *piece = &load->pieces[i];
        if (piece->record != NULL && !piece->read.ring.is_done) {
            under_way->way->reap(under_way->ring, false);
            is_here = piece->read.ring.is_done;
        }
    }
    return is_here;
}

/* Bring a piece that was read into place. */
static enum gradcmp_status put_piece(const struct gcmp_load *load, struct gcmp_load_piece *piece,
                                     uint64_t *elems, struct gradcmp_error *error) {
    struct candidate candidate;
    struct bound bound;
    (void)place_slab(&load->want, piece->slab, &candidate); /* it did before */
    GCMP_TRY(bind_slab(&load->want, &candidate, piece->record, &bound, error));
    gcmp_record_note_used(piece->record, piece->bytes.count);
    gcmp_piece_put(&bound.to, bound.rank, bound.end, &piece->bytes);
    *elems = bound.end - bound.rank;
    return GRADCMP_OK;
}

/* A load that is being ended. */
struct ending {
    struct gcmp_load *load;
    const struct gcmp_under_way *under_way;
    struct gcmp_want late; /* as load->want, with the staging of what is read now */
    bool goes_on;          /* false: what is under way is only waited for */
    uint64_t covered;
};

/* End one piece: wait, and have its elements in place. */
static enum gradcmp_status end_piece(struct ending *ending, struct gcmp_load_piece *piece,
                                     struct gradcmp_error *error) {
    uint64_t elems = 0;
    enum gradcmp_status status = GRADCMP_OK;
    if (piece->record == NULL) {
        status = ending->goes_on ? gather_slab(&ending->late, piece->slab, &elems, error) : status;
        ending->covered += elems;
        return status;
    }
    status =
        gcmp_file_read_end(&piece->read, ending->under_way->way, ending->under_way->ring, error);
    if (status == GRADCMP_OK && ending->goes_on) {
        status = put_piece(ending->load, piece, &elems, error);
    }
    ending->covered += elems;
    gcmp_record_release(piece->record);
    piece->record = NULL;
    return status;
}

enum gradcmp_status gcmp_load_end(struct gcmp_load *load, const struct gcmp_under_way *under_way,
                                  const struct gcmp_staging *staging, bool is_wanted,
                                  struct gradcmp_error *error) {
    struct ending ending = {
        .load = load, .under_way = under_way, .late = load->want, .goes_on = is_wanted};
    enum gradcmp_status status = GRADCMP_OK;
    ending.late.staging = staging;
    for (size_t i = 0; i < load->piece_count; i++) {
        bool went_on = ending.goes_on;
        enum gradcmp_status ended = end_piece(&ending, &load->pieces[i], went_on ? error : NULL);
        if (went_on && ended != GRADCMP_OK) { /* the others only end */
            status = ended;
            ending.goes_on = false;
        }
    }
    load->piece_count = 0;
    return ending.goes_on ? gather_rest(&ending.late, load->next_slab, &ending.covered, error)
                          : status;
}
