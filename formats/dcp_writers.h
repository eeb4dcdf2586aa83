/* Which rank wrote what of a distributed checkpoint, as far as that tells an order.
 *
 * torch joins the plans of the ranks one after the other, so that the metadata lists tensors by the
 * first rank that writes any of them, and those of one rank in the order of its state dict. What
 * all ranks hold alike is dealt among them, to even out their files. So the order of the model is
 * seen within what one rank wrote first, and nowhere else. (torch.distributed.checkpoint:
 * default_planner.create_default_global_save_plan, _dedup_save_plans) */
#ifndef GCMP_FORMATS_DCP_WRITERS_H
#define GCMP_FORMATS_DCP_WRITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gradcmp/sys/catalogue.h"

/* A number for the first writer of a stored tensor: its rank, where files are named
 * "__<rank>_<file>", else one for its first file; UINT64_MAX where it has no pieces. */
uint64_t gcmp_dcp_first_writer(const struct gradcmp_catalogue *catalogue,
                               const struct gradcmp_stored *stored);

/* Whether there are weights that stand in the order of the model: one rank was the first writer of
 * them all. States alone stand in the order in which they were made. */
bool gcmp_dcp_is_ordered(const struct gradcmp_catalogue *catalogue);

#endif
