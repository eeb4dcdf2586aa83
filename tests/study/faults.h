/* Faults that are put on a candidate, each of any size. */
#ifndef GCMP_STUDY_FAULTS_H
#define GCMP_STUDY_FAULTS_H

#include <stdbool.h>

#include "study/noise.h"

/* `size` is the factor less one, or the share of the elements that is wrong, or how much is
 * missing. */
enum study_fault {
    STUDY_SCALE,     /* the largest tensor of a layer times 1 + size */
    STUDY_LAYER,     /* all tensors of a layer times 1 + size */
    STUDY_COMMON,    /* everything times 1 + size */
    STUDY_SIGN,      /* a share of the elements with the wrong sign */
    STUDY_ZERO,      /* a share of the elements zero */
    STUDY_SWAP,      /* a share of the elements exchanged with those half a tensor on */
    STUDY_PERMUTE,   /* a share of the elements, its four blocks in another order */
    STUDY_ROLL,      /* a share of the elements one place further */
    STUDY_SHARD,     /* a share of the elements from other gradients of the same size */
    STUDY_REDUCTION, /* a share of the sum over two ranks missing in norms */
    STUDY_ERROR,     /* an error of this relative size without any pattern */
    STUDY_FAULT_COUNT
};

const char *study_fault_name(enum study_fault fault);

/* True for the tensors of the layer that the fault is on. */
bool study_is_hit(enum study_fault fault, const struct study_tensor *tensor);

/* Change b, the noisy candidate. */
void study_apply_fault(enum study_fault fault, double size, const struct study_tensor *tensor,
                       double *b, struct study_rng *rng);

#endif
