/* From ranks' own shards under local names to tensors of the model.
 *
 * Megatron's legacy checkpoints and gradient dumps hold, in a file for each model-parallel rank,
 * that rank's shards under the names of its own modules: layers and experts count from 0 on each
 * rank (FORMATS of the dumps; megatron/core/transformer/transformer_layer.py,
 * get_transformer_layer_offset). Here they become stored tensors under global names with boxes in
 * the model's tensors, so that everything behind treats them as any other checkpoint. */
#ifndef GCMP_UNSHARD_LOCAL_H
#define GCMP_UNSHARD_LOCAL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/catalogue.h"
#include "unshard/names.h"

/* True where a catalogue holds ranks' own shards of that state, or flat buffers of them. */
bool gcmp_local_has(const struct gradcmp_catalogue *catalogue, const char *state);

/* Make *merged a copy of the catalogue whose stored tensors are those of one state, in the model's
 * space: LOCAL tensors joined by name, flat buffers cut first. Shards that ranks hold several times
 * become pieces that overlap. merged->stored and everything in it live in `arena` (names and keys
 * may be the catalogue's), the rest is the catalogue's own. Errors: CORRUPT where shards disagree
 * or are missing; UNSUPPORTED, with the parameter, where it cannot be told how one is split; LIMIT;
 * MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_local_merge(const struct gradcmp_catalogue *catalogue,
                                                      const char *state, struct gcmp_arena *arena,
                                                      struct gradcmp_catalogue *merged,
                                                      struct gradcmp_error *error);

#endif
