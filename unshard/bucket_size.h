/* How long Megatron makes a bucket. */
#ifndef GCMP_UNSHARD_BUCKET_SIZE_H
#define GCMP_UNSHARD_BUCKET_SIZE_H

#include "gradcmp/sys/catalogue.h"

/* The elements with which a bucket of the first chunk of the first stage is closed, from the run's
 * arguments; 0 where all is one bucket. Other chunks and stages have one bucket
 * (megatron/core/distributed/distributed_data_parallel.py, megatron/training/training.py). */
uint64_t gcmp_bucket_elems(const struct gradcmp_catalogue *catalogue);

#endif
