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

/* Have a record put what is wanted of a slab into place; *elems is their number. */
static enum gradcmp_status gather_from(const struct gcmp_want *want, struct candidate *candidate,
                                       struct gcmp_record *record, uint64_t *elems,
                                       struct gradcmp_error *error) {
    const struct gradcmp_parameter *parameter = want->plan->side->parameter;
    struct gcmp_box *box = &candidate->box;
    GCMP_TRY(check_dtype(record, parameter, error));
    if (!gcmp_box_bind(parameter, candidate->slab, record, box)) {
        return gcmp_record_fail(record, GRADCMP_ERROR_CORRUPT, error,
                                "slab reaches outside of its record");
    }
    struct gcmp_destination to = {.record = record,
                                  .box = box,
                                  .staging = want->staging,
                                  .out = want->out,
                                  .first = want->plan->side->first_elem + want->first,
                                  .elem_bytes = want->plan->elem_bytes,
                                  .swap_bytes = swap_bytes(record, want->plan)};
    uint64_t rank = gcmp_box_rank(box, to.first), end = gcmp_box_rank(box, to.first + want->elems);
    *elems = end - rank;
    return rank < end ? gcmp_read_run(&to, rank, end, error) : GRADCMP_OK;
}

/* Gather from one slab what it has; *elems is 0 where it has nothing. */
static enum gradcmp_status gather_slab(const struct gcmp_want *want, size_t index, uint64_t *elems,
                                       struct gradcmp_error *error) {
    const struct gcmp_side_plan *plan = want->plan;
    struct candidate candidate = {.slab = &plan->side->parameter->slabs[plan->first_slab + index]};
    *elems = 0;
    if (!gcmp_box_place(plan->side->parameter, candidate.slab, &candidate.box) ||
        candidate.box.elems == 0 ||
        gcmp_box_last(&candidate.box) < plan->side->first_elem + want->first) {
        return GRADCMP_OK;
    }
    struct gcmp_record *record;
    GCMP_TRY(gcmp_records_hold(plan->records, candidate.slab->source, &record, error));
    enum gradcmp_status status = gather_from(want, &candidate, record, elems, error);
    gcmp_record_release(record);
    return status;
}

enum gradcmp_status gcmp_gather(const struct gcmp_want *want, struct gradcmp_error *error) {
    const struct gcmp_side_plan *plan = want->plan;
    uint64_t first = plan->side->first_elem + want->first, end = first + want->elems;
    uint64_t covered = 0;
    for (size_t i = first_candidate(plan, first);
         i < plan->slab_count && plan->reaches[i].first < end; i++) {
        uint64_t found;
        GCMP_TRY(gather_slab(want, i, &found, error));
        covered += found;
    }
    if (covered != want->elems) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT,
                  "\"%.200s\": %llu of %zu elements from element %llu on are stored",
                  plan->side->parameter->name, (unsigned long long)covered, want->elems,
                  (unsigned long long)first);
    }
    return GRADCMP_OK;
}
