/* Faults of any size. */
#include "study/faults.h"

#include <math.h>
#include <string.h>

const char *study_fault_name(enum study_fault fault) {
    static const char *const names[] = {"scale one tensor",
                                        "scale one layer",
                                        "scale everything",
                                        "wrong sign",
                                        "zero",
                                        "halves swapped",
                                        "blocks permuted",
                                        "roll",
                                        "one foreign shard",
                                        "missing reduction",
                                        "error without pattern"};
    return names[fault];
}

bool study_is_hit(enum study_fault fault, const struct study_tensor *tensor) {
    switch (fault) {
    case STUDY_LAYER:
    case STUDY_COMMON:
        return true;
    case STUDY_REDUCTION:
        return strstr(tensor->name, "norm") != NULL;
    default:
        return strstr(tensor->name, "linear_fc1.weight") != NULL;
    }
}

/* How many elements a share is: at least the two that can change places. */
static size_t share_of(const struct study_tensor *tensor, double size) {
    size_t count = (size_t)(size * (double)tensor->elems + 0.5);
    return count < 2 ? 2 : count > tensor->elems ? tensor->elems : count;
}

static void scale(size_t count, double factor, double *b) {
    for (size_t i = 0; i < count; i++) {
        b[i] *= factor;
    }
}

/* Exchange two runs of elements. */
static void exchange(double *one, double *two, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double kept = one[i];
        one[i] = two[i];
        two[i] = kept;
    }
}

/* Four blocks 0 1 2 3 become 1 0 3 2; of under four elements two are exchanged. */
static void permute_blocks(size_t count, double *b) {
    size_t block = count < 4 ? 1 : count / 4;
    exchange(b, b + block, block);
    if (count >= 4) {
        exchange(b + 2 * block, b + 3 * block, block);
    }
}

static void roll(size_t count, double *b) {
    double last = b[count - 1];
    memmove(b + 1, b, (count - 1) * sizeof *b);
    b[0] = last;
}

/* Other gradients of the same size: the tensor's own read backwards. */
static void replace(const struct study_tensor *tensor, size_t count, double *b) {
    for (size_t i = 0; i < count; i++) {
        b[i] = tensor->values[tensor->elems - 1 - i];
    }
}

static void add_error(const struct study_tensor *tensor, double size, double *b,
                      struct study_rng *rng) {
    double squares = 0.0;
    for (size_t i = 0; i < tensor->elems; i++) {
        squares += tensor->values[i] * tensor->values[i];
    }
    double rms = sqrt(squares / (double)tensor->elems);
    for (size_t i = 0; i < tensor->elems; i++) {
        b[i] += size * rms * study_normal(rng);
    }
}

/* Of two ranks' parts one is not added: a part of `size` of it. */
static void drop_part(const struct study_tensor *tensor, double size, double *b,
                      struct study_rng *rng) {
    for (size_t i = 0; i < tensor->elems; i++) {
        b[i] -= size * (0.5 + 0.3 * study_normal(rng)) * tensor->values[i];
    }
}

void study_apply_fault(enum study_fault fault, double size, const struct study_tensor *tensor,
                       double *b, struct study_rng *rng) {
    size_t count = share_of(tensor, size);
    switch (fault) {
    case STUDY_SCALE:
    case STUDY_LAYER:
    case STUDY_COMMON:
        scale(tensor->elems, 1.0 + size, b);
        break;
    case STUDY_SIGN:
        scale(count, -1.0, b);
        break;
    case STUDY_ZERO:
        scale(count, 0.0, b);
        break;
    case STUDY_SWAP:
        exchange(b, b + tensor->elems / 2, count / 2);
        break;
    case STUDY_PERMUTE:
        permute_blocks(count, b);
        break;
    case STUDY_ROLL:
        roll(count, b);
        break;
    case STUDY_SHARD:
        replace(tensor, count, b);
        break;
    case STUDY_REDUCTION:
        drop_part(tensor, size, b, rng);
        break;
    case STUDY_ERROR:
        add_error(tensor, size, b, rng);
        break;
    case STUDY_FAULT_COUNT:
        break;
    }
}
