/* Three ways to read a run of a box: as one piece where the record has it in the same order; window
 * by window where it has strides; element by element where its item has to be taken apart. */
#include "engine/strided.h"

#include <string.h>

#include "base/dtype.h"
#include "engine/bytes.h"
#include "engine/file_read.h"

/* What a read costs beside its bytes, as a number of bytes read at the same cost: a system call is
 * about half a microsecond, in which 4 KiB are copied from the page cache. Reading a gap is worth
 * it up to there. */
enum { READ_COST_BYTES = 4096 };
/* Bytes that are read around an element of an indirect box. */
enum { INDIRECT_WINDOW_BYTES = 16384 };

static unsigned char *place_of(const struct gcmp_destination *to, uint64_t parameter_index) {
    return to->out + (size_t)(parameter_index - to->first) * to->elem_bytes;
}

/* --- one piece --- */

/* Indices of element `rank` of a box; returns the parameter's index of it. */
static uint64_t box_index(const struct gcmp_box *box, uint64_t rank,
                          uint64_t index[GRADCMP_MAX_NDIM]) {
    uint64_t parameter_index = box->first;
    for (unsigned d = 0; d < box->ndim; d++) {
        index[d] = rank / box->inner[d];
        rank %= box->inner[d];
        parameter_index += index[d] * box->step[d];
    }
    return parameter_index;
}

/* Advance to the next row: the last index to 0, with a carry. Returns the parameter's index. */
static uint64_t next_row(const struct gcmp_box *box, uint64_t index[GRADCMP_MAX_NDIM]) {
    unsigned d = box->ndim - 1;
    index[d] = 0;
    while (d-- > 0) {
        if (++index[d] < box->extent[d]) {
            break;
        }
        index[d] = 0;
    }
    uint64_t parameter_index = box->first;
    for (d = 0; d < box->ndim; d++) {
        parameter_index += index[d] * box->step[d];
    }
    return parameter_index;
}

/* Bring elements [rank, end) of the box, which lie one after another at `from`, to their places. */
static void scatter(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                    const unsigned char *from) {
    const struct gcmp_box *box = to->box;
    uint64_t index[GRADCMP_MAX_NDIM];
    uint64_t at = box_index(box, rank, index);
    unsigned last = box->ndim - 1;
    while (rank < end) {
        /* NOLINTNEXTLINE(clang-analyzer-core.*): a box has an axis */
        uint64_t count = box->extent[last] - index[last];
        count = count < end - rank ? count : end - rank;
        struct gcmp_row row = {place_of(to, at), (ptrdiff_t)box->step[last]};
        gcmp_copy_row(row, from, 1, (size_t)count, to->elem_bytes);
        from += (size_t)count * to->elem_bytes;
        rank += count;
        at = rank < end ? next_row(box, index) : at;
    }
}

/* Make bytes that were read native, in their buffer. */
static void make_native(const struct gcmp_destination *to, struct gcmp_record_bytes *read) {
    if (to->swap_bytes != 0) {
        if (read->bytes != read->buffer) {
            memcpy(read->buffer, read->bytes, read->count);
            read->bytes = read->buffer;
        }
        gcmp_swap_bytes(read->buffer, read->count, to->swap_bytes);
    }
}

/* Tell whether elements [rank, end) lie one after another in the parameter; *first is the
 * parameter's index of the first. */
static bool is_in_place(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                        uint64_t *first) {
    uint64_t index[GRADCMP_MAX_NDIM];
    *first = box_index(to->box, rank, index);
    return box_index(to->box, end - 1, index) - *first == end - 1 - rank;
}

void gcmp_piece_want(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                     unsigned char *staging, struct gcmp_record_bytes *read) {
    uint64_t first;
    bool in_place = is_in_place(to, rank, end, &first);
    *read = (struct gcmp_record_bytes){.at = ((uint64_t)to->box->origin + rank) * to->elem_bytes,
                                       .count = (size_t)(end - rank) * to->elem_bytes,
                                       .buffer = in_place ? place_of(to, first) : staging};
}

void gcmp_piece_put(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                    struct gcmp_record_bytes *read) {
    uint64_t first;
    gcmp_record_note_read(to->record, read);
    make_native(to, read);
    if (!is_in_place(to, rank, end, &first)) {
        scatter(to, rank, end, read->bytes);
    } else if (read->bytes != read->buffer) {
        memcpy(read->buffer, read->bytes, read->count);
    }
}

/* Read past the page cache, into staging. *read_it is false where that is not done. */
static enum gradcmp_status read_direct(const struct gcmp_destination *to,
                                       struct gcmp_record_bytes *read, bool *read_it,
                                       struct gradcmp_error *error) {
    struct gcmp_pages_at at;
    struct gcmp_file_read direct;
    size_t skip;
    *read_it = gcmp_record_is_direct(to->record) &&
               gcmp_record_in_file(to->record, read->at, &at) &&
               gcmp_file_read_align(&direct, at, read->count, to->staging->bytes,
                                    to->staging->capacity_bytes, &skip);
    if (!*read_it) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_file_read_now(&direct, error));
    read->bytes = to->staging->bytes + skip;
    read->buffer = read->buffer == to->staging->bytes ? to->staging->bytes + skip : read->buffer;
    return GRADCMP_OK;
}

static enum gradcmp_status read_piece(const struct gcmp_destination *to, uint64_t rank,
                                      uint64_t end, struct gradcmp_error *error) {
    struct gcmp_record_bytes read;
    bool read_it;
    gcmp_piece_want(to, rank, end, to->staging->bytes, &read);
    GCMP_TRY(read_direct(to, &read, &read_it, error));
    if (!read_it) {
        GCMP_TRY(gcmp_record_read(to->record, &read, error));
    }
    gcmp_piece_put(to, rank, end, &read);
    return GRADCMP_OK;
}

/* --- windows --- */

/* An axis of a part: `count` indices, each `stride` >= 0 elements further in the record and `step`
 * elements further in the parameter. */
struct axis {
    uint64_t count;
    int64_t step, stride;
};

/* A part with its axes by rising stride; the first `inside` of them lie within one window. */
struct windows {
    const struct gcmp_destination *to;
    unsigned ndim, inside;
    struct axis axes[GRADCMP_MAX_NDIM];
    uint64_t first; /* parameter's index of index 0 on all axes */
    int64_t origin; /* record's element of it */
    uint64_t span;  /* record elements of a window */
};

/* Lay out the axes of a part; those that run backwards are turned round. */
static void set_axes(struct windows *windows, const struct gcmp_part *part) {
    const struct gcmp_box *box = windows->to->box;
    windows->ndim = 0;
    windows->first = part->first;
    windows->origin = part->origin;
    for (unsigned d = 0; d < box->ndim; d++) {
        struct axis axis = {part->extent[d], (int64_t)box->step[d], box->stride[d]};
        if (axis.count == 1) {
            continue;
        }
        if (axis.stride < 0) {
            windows->first += (axis.count - 1) * box->step[d];
            windows->origin += (int64_t)(axis.count - 1) * axis.stride;
            axis.step = -axis.step;
            axis.stride = -axis.stride;
        }
        unsigned k = windows->ndim++;
        for (; k > 0 && windows->axes[k - 1].stride > axis.stride; k--) {
            windows->axes[k] = windows->axes[k - 1];
        }
        windows->axes[k] = axis;
    }
}

/* Choose how many axes a window spans: one more as long as it fits and costs no more than the reads
 * that it saves. */
static void set_window(struct windows *windows) {
    unsigned elem_bytes = windows->to->elem_bytes;
    uint64_t room = windows->to->staging->capacity_bytes / elem_bytes;
    windows->span = 1;
    windows->inside = 0;
    while (windows->inside < windows->ndim) {
        const struct axis *axis = &windows->axes[windows->inside];
        uint64_t longer = windows->span + (axis->count - 1) * (uint64_t)axis->stride;
        uint64_t apart = axis->count * (windows->span * elem_bytes + READ_COST_BYTES);
        if (longer > room || longer * elem_bytes > apart) {
            break;
        }
        windows->span = longer;
        windows->inside++;
    }
}

/* Step through indices 0 .. count - 1 of axes [from, to), the first one fastest; false at the end.
 */
static bool next_index(const struct windows *windows, unsigned from, unsigned to,
                       uint64_t index[GRADCMP_MAX_NDIM]) {
    for (unsigned k = from; k < to; k++) {
        if (++index[k] < windows->axes[k].count) {
            return true;
        }
        index[k] = 0;
    }
    return false;
}

/* Copy what a window holds, from `bytes`, to its places, from parameter's element `first` on. */
static void copy_window(const struct windows *windows, const unsigned char *bytes, uint64_t first) {
    const struct gcmp_destination *to = windows->to;
    uint64_t index[GRADCMP_MAX_NDIM] = {0};
    struct axis row = {1, 1, 1};
    if (windows->inside > 0) {
        row = windows->axes[0];
    }
    do {
        uint64_t at = first, from = 0;
        for (unsigned k = 1; k < windows->inside; k++) {
            at += index[k] * (uint64_t)windows->axes[k].step; /* modulo 2^64, as steps may be < 0 */
            from += index[k] * (uint64_t)windows->axes[k].stride;
        }
        struct gcmp_row place = {place_of(to, at), (ptrdiff_t)row.step};
        gcmp_copy_row(place, bytes + (size_t)from * to->elem_bytes, (ptrdiff_t)row.stride,
                      (size_t)row.count, to->elem_bytes);
    } while (next_index(windows, 1, windows->inside, index));
}

static enum gradcmp_status read_windows(const struct windows *windows,
                                        struct gradcmp_error *error) {
    const struct gcmp_destination *to = windows->to;
    uint64_t index[GRADCMP_MAX_NDIM] = {0};
    struct gcmp_record_bytes read = {.count = (size_t)windows->span * to->elem_bytes,
                                     .buffer = to->staging->bytes};
    do {
        uint64_t first = windows->first, origin = (uint64_t)windows->origin;
        for (unsigned k = windows->inside; k < windows->ndim; k++) {
            first += index[k] * (uint64_t)windows->axes[k].step;
            origin += index[k] * (uint64_t)windows->axes[k].stride;
        }
        read.at = origin * to->elem_bytes;
        GCMP_TRY(gcmp_record_read(to->record, &read, error));
        make_native(to, &read);
        copy_window(windows, read.bytes, first);
    } while (next_index(windows, windows->inside, windows->ndim, index));
    return GRADCMP_OK;
}

/* Read a part. Where its densest axis is too long for a window, that axis is cut. */
static enum gradcmp_status read_part(const struct gcmp_destination *to,
                                     const struct gcmp_part *part, struct gradcmp_error *error) {
    struct windows windows = {.to = to};
    set_axes(&windows, part);
    uint64_t count = windows.ndim == 0 ? 1 : windows.axes[0].count, fit = count;
    if (windows.ndim > 0 && windows.axes[0].stride > 0) {
        uint64_t room = to->staging->capacity_bytes / to->elem_bytes;
        fit = 1 + (room - 1) / (uint64_t)windows.axes[0].stride;
    }
    for (uint64_t i = 0; i < count; i += fit) {
        struct windows cut = windows;
        if (cut.ndim > 0) {
            cut.axes[0].count = fit < count - i ? fit : count - i;
            cut.first += i * (uint64_t)cut.axes[0].step;
            cut.origin += (int64_t)i * cut.axes[0].stride;
        }
        set_window(&cut);
        GCMP_TRY(read_windows(&cut, error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_parts(const struct gcmp_destination *to, uint64_t rank,
                                      uint64_t end, struct gradcmp_error *error) {
    while (rank < end) {
        struct gcmp_part part;
        rank += gcmp_box_cut(to->box, rank, end, &part);
        GCMP_TRY(read_part(to, &part, error));
    }
    return GRADCMP_OK;
}

/* --- element by element --- */

/* Read a window of the record around an element. */
static enum gradcmp_status read_around(const struct gcmp_destination *to, uint64_t element,
                                       struct gcmp_record_bytes *read,
                                       struct gradcmp_error *error) {
    size_t window = to->staging->capacity_bytes < INDIRECT_WINDOW_BYTES
                        ? to->staging->capacity_bytes
                        : INDIRECT_WINDOW_BYTES;
    window -= window % to->elem_bytes;
    read->at = element * to->elem_bytes / window * window;
    uint64_t left = to->record->length_bytes - read->at;
    read->count = left < window ? (size_t)left : window;
    GCMP_TRY(gcmp_record_read(to->record, read, error));
    make_native(to, read);
    return GRADCMP_OK;
}

static enum gradcmp_status read_elements(const struct gcmp_destination *to, uint64_t rank,
                                         uint64_t end, struct gradcmp_error *error) {
    struct gcmp_record_bytes view = {.buffer = to->staging->bytes};
    for (; rank < end; rank++) {
        uint64_t index[GRADCMP_MAX_NDIM];
        uint64_t at = box_index(to->box, rank, index);
        int64_t source = to->box->origin, element;
        for (unsigned d = 0; d < to->box->ndim; d++) {
            source += (int64_t)index[d] * to->box->stride[d];
        }
        if (!gcmp_record_element(to->record, (uint64_t)source, &element)) {
            return gcmp_record_fail(to->record, GRADCMP_ERROR_CORRUPT, error,
                                    "slab reaches outside of the stored tensor");
        }
        uint64_t byte = (uint64_t)element * to->elem_bytes;
        if (byte < view.at || byte - view.at + to->elem_bytes > view.count) {
            GCMP_TRY(read_around(to, (uint64_t)element, &view, error));
        }
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an empty view holds no byte */
        memcpy(place_of(to, at), view.bytes + (size_t)(byte - view.at), to->elem_bytes);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_read_run(const struct gcmp_destination *to, uint64_t rank, uint64_t end,
                                  struct gradcmp_error *error) {
    gcmp_record_note_used(to->record, (end - rank) * to->elem_bytes);
    if (to->box->contiguous) {
        return read_piece(to, rank, end, error);
    }
    return to->box->indirect ? read_elements(to, rank, end, error)
                             : read_parts(to, rank, end, error);
}
