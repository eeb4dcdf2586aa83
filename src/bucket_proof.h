/* How the flat buffers of an optimizer are laid out, proved by the float32 masters in them. */
#ifndef GCMP_BUCKET_PROOF_H
#define GCMP_BUCKET_PROOF_H

#include "checkpoint.h"

/* True where a state lies in flat buffers, whose layout was rebuilt from the weights. */
bool gcmp_is_flat_state(const struct gradcmp_catalogue *catalogue, const char *state,
                        enum gradcmp_layout layout);

/* Compare samples of the float32 masters with the weights, where the checkpoint holds both and the
 * masters lie in flat buffers: masters that were cut out of the right places round to the weights.
 * Sets checkpoint->bucket_layout where several layouts are possible, and adds a note that says what
 * was looked at. Without masters, nothing: then sizes, edges and arguments have to decide.
 * UNSUPPORTED where the masters contradict every layout, or cannot tell several apart; the errors
 * of reading besides. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_prove_buckets(struct gradcmp_checkpoint *checkpoint,
                                                        struct gradcmp_error *error);

#endif
