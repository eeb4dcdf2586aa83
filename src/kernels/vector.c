/* Cuts a block into runs and gives them to an instruction set's operations. */
#include "kernels/vector.h"

#include "base/dtype.h"

/* One side of a run. */
struct run_side {
    enum gradcmp_dtype dtype;
    struct gcmp_float_format format;
    unsigned log2_bytes;
    uint64_t special;       /* least magnitude that is not finite */
    uint64_t max_magnitude; /* of the runs that were not left to the scalar code */
    const void *elems;      /* as stored */
    const void *wide;       /* as float64 or float32 */
};

/* A block's state, and the buffers of the run at hand. */
struct frame {
    const struct gcmp_vector_ops *ops;
    const struct gcmp_block *block;
    struct run_side a, b;
    struct gradcmp_tally counts; /* all but the sums; max_d of the runs left to the scalar code */
    struct gcmp_lane_sums sums;
    double max_d;                     /* of the other runs */
    size_t max_d_first, max_d_end;    /* the run where it was found */
    double lane_max_d[GRADCMP_LANES]; /* of that run */
    _Alignas(64) unsigned char wide_a[4 * GCMP_RUN_ELEMS];
    _Alignas(64) unsigned char wide_b[4 * GCMP_RUN_ELEMS];
    _Alignas(64) unsigned char coarse[4 * GCMP_RUN_ELEMS];
};

static struct run_side make_side(enum gradcmp_dtype dtype) {
    struct run_side side = {.dtype = dtype, .format = gcmp_float_format(dtype)};
    side.special = gcmp_lane_special(side.format);
    while (1u << side.log2_bytes < gcmp_dtype_bytes(dtype)) {
        side.log2_bytes++;
    }
    return side;
}

/* Point a side at elements [first, first + n); types under 32 bits are widened into `buffer`. */
static void set_run(const struct frame *frame, struct run_side *side, const void *elems,
                    size_t first, size_t n, void *buffer) {
    side->elems = (const unsigned char *)elems + (first << side->log2_bytes);
    side->wide = side->elems;
    if (side->log2_bytes < 2) {
        frame->ops->widen[side->dtype](side->elems, n, buffer);
        side->wide = buffer;
    }
}

/* Round the finer side to the coarser type, into frame->coarse. */
static void narrow_run(struct frame *frame, const struct run_side *fine, enum gradcmp_dtype coarse,
                       size_t n) {
    const struct gcmp_vector_ops *ops = frame->ops;
    _Alignas(64) unsigned char odd[4 * GCMP_RUN_ELEMS];
    const void *wide = fine->wide;
    if (fine->dtype == GRADCMP_DTYPE_FLOAT64 && coarse == GRADCMP_DTYPE_FLOAT32) {
        ops->float64_to_float32(wide, n, frame->coarse);
        return;
    }
    if (fine->dtype == GRADCMP_DTYPE_FLOAT64) {
        ops->float64_to_odd32(wide, n, odd);
        wide = odd;
    }
    ops->narrow[coarse](wide, n, frame->coarse);
}

/* Scan sides of different types: equality and distance in the coarser one, maxima and zeros in each
 * side's own. */
static void scan_mixed(struct frame *frame, size_t n, struct gcmp_scan *out) {
    bool a_is_fine = frame->a.format.fraction_bits > frame->b.format.fraction_bits;
    struct run_side *fine = a_is_fine ? &frame->a : &frame->b;
    struct run_side *coarse = a_is_fine ? &frame->b : &frame->a;
    struct gcmp_extent own;
    narrow_run(frame, fine, coarse->dtype, n);
    frame->ops->extent[fine->log2_bytes](fine->elems, n, &own);
    frame->ops->scan[coarse->log2_bytes](a_is_fine ? frame->coarse : coarse->elems,
                                         a_is_fine ? coarse->elems : frame->coarse, n, out);
    if (a_is_fine) {
        out->max_a = own.max;
        out->min_a = own.min;
    } else {
        out->max_b = own.max;
        out->min_b = own.min;
    }
}

/* Take over what a scan found of a run of finite elements. */
static void add_scan(struct frame *frame, const struct gcmp_scan *scan, size_t n) {
    struct gradcmp_tally *counts = &frame->counts;
    struct run_side *a = &frame->a, *b = &frame->b;
    counts->elems += n;
    counts->equal_bits += scan->equal;
    counts->max_ulp = scan->max_ulp > counts->max_ulp ? scan->max_ulp : counts->max_ulp;
    a->max_magnitude = scan->max_a > a->max_magnitude ? scan->max_a : a->max_magnitude;
    b->max_magnitude = scan->max_b > b->max_magnitude ? scan->max_b : b->max_magnitude;
    if (scan->min_a == 0) {
        counts->zeros_a += frame->ops->zeros[a->log2_bytes](a->elems, n);
    }
    if (scan->min_b == 0) {
        counts->zeros_b += frame->ops->zeros[b->log2_bytes](b->elems, n);
    }
}

/* Add [first, end) with the scalar code, going on from the lanes' sums so far. */
static void add_scalar(struct frame *frame, size_t first, size_t end) {
    struct gradcmp_tally lanes[GRADCMP_LANES];
    struct gcmp_lane_sums *sums = &frame->sums;
    memset(lanes, 0, sizeof lanes);
    for (size_t j = 0; j < GRADCMP_LANES; j++) {
        lanes[j].d2 = sums->d2[j];
        lanes[j].ad = sums->ad[j];
        lanes[j].a2 = sums->a2[j];
        lanes[j].b2 = sums->b2[j];
    }
    frame->ops->scalar_add(lanes, frame->block, first, end);
    for (size_t j = 0; j < GRADCMP_LANES; j++) {
        sums->d2[j] = lanes[j].d2;
        sums->ad[j] = lanes[j].ad;
        sums->a2[j] = lanes[j].a2;
        sums->b2[j] = lanes[j].b2;
        gcmp_lane_fold(&frame->counts, &lanes[j]); /* its sums are not used */
    }
}

static void add_run(struct frame *frame, size_t first, size_t n) {
    struct gcmp_scan scan;
    double lane_max_d[GRADCMP_LANES];
    set_run(frame, &frame->a, frame->block->a, first, n, frame->wide_a);
    set_run(frame, &frame->b, frame->block->b, first, n, frame->wide_b);
    if (frame->a.dtype == frame->b.dtype) {
        frame->ops->scan[frame->a.log2_bytes](frame->a.elems, frame->b.elems, n, &scan);
    } else {
        scan_mixed(frame, n, &scan);
    }
    if (scan.max_a >= frame->a.special || scan.max_b >= frame->b.special) {
        add_scalar(frame, first, first + n);
        return;
    }
    add_scan(frame, &scan, n);
    gcmp_sums_fn sums = frame->ops->sums[frame->a.log2_bytes == 3][frame->b.log2_bytes == 3];
    double max_d = sums(frame->a.wide, frame->b.wide, n, &frame->sums, lane_max_d);
    if (max_d > frame->max_d) {
        frame->max_d = max_d;
        frame->max_d_first = first;
        frame->max_d_end = first + n;
        memcpy(frame->lane_max_d, lane_max_d, sizeof lane_max_d);
    }
}

static double side_value(const struct run_side *side, const void *elems, size_t index) {
    uint64_t bits = gcmp_load_bits(elems, 1u << side->log2_bytes, index);
    return gcmp_lane_from_bits(gcmp_lane_widen(side->format, bits));
}

/* Find the first element of the remembered run with |d| = max_d; only lanes that reached it are
 * looked at. */
static size_t find_max_d(const struct frame *frame) {
    size_t found = frame->max_d_end;
    for (size_t j = 0; j < GRADCMP_LANES; j++) {
        if (frame->lane_max_d[j] != frame->max_d) {
            continue;
        }
        for (size_t i = frame->max_d_first + j; i < found; i += GRADCMP_LANES) {
            double a = side_value(&frame->a, frame->block->a, i);
            double b = side_value(&frame->b, frame->block->b, i);
            if (fabs(b - a) == frame->max_d) {
                found = i;
            }
        }
    }
    return found;
}

/* Fold one of the sums of all lanes, as gcmp_scalar_fold_lanes does. */
static double fold_lanes(const double lanes[GRADCMP_LANES]) {
    double sums[GRADCMP_LANES];
    memcpy(sums, lanes, sizeof sums);
    for (size_t step = GRADCMP_LANES / 2; step > 0; step /= 2) {
        for (size_t j = 0; j < step; j++) {
            sums[j] = GCMP_LANE_ADD(sums[j], sums[j + step]);
        }
    }
    return sums[0];
}

static double largest_value(const struct run_side *side) {
    return gcmp_lane_from_bits(gcmp_lane_widen(side->format, side->max_magnitude));
}

/* Join the lanes' sums, the counts and the maxima into the block's tally. */
static void finish(struct frame *frame, struct gradcmp_tally *out) {
    struct gradcmp_tally maxima;
    memset(&maxima, 0, sizeof maxima);
    if (frame->max_d > 0) {
        maxima.max_d = frame->max_d;
        maxima.max_d_index = find_max_d(frame);
    }
    maxima.max_a = largest_value(&frame->a);
    maxima.max_b = largest_value(&frame->b);
    *out = frame->counts;
    gcmp_lane_fold(out, &maxima);
    out->d2 = fold_lanes(frame->sums.d2);
    out->ad = fold_lanes(frame->sums.ad);
    out->a2 = fold_lanes(frame->sums.a2);
    out->b2 = fold_lanes(frame->sums.b2);
}

void gcmp_vector_tally(const struct gcmp_vector_ops *ops, const struct gcmp_block *block,
                       struct gradcmp_tally *out) {
    struct frame frame;
    frame.ops = ops;
    frame.block = block;
    frame.a = make_side(block->dtype_a);
    frame.b = make_side(block->dtype_b);
    frame.max_d = 0.0;
    frame.max_d_first = frame.max_d_end = 0;
    memset(&frame.counts, 0, sizeof frame.counts);
    memset(&frame.sums, 0, sizeof frame.sums);
    memset(frame.lane_max_d, 0, sizeof frame.lane_max_d);
    size_t whole = block->elems - block->elems % GCMP_RUN_STEP;
    for (size_t first = 0; first < whole; first += GCMP_RUN_ELEMS) {
        add_run(&frame, first, whole - first < GCMP_RUN_ELEMS ? whole - first : GCMP_RUN_ELEMS);
    }
    if (whole < block->elems) {
        add_scalar(&frame, whole, block->elems);
    }
    finish(&frame, out);
}
