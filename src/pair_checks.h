/* What must hold of two sides before they are judged, and what their report has to say first. */
#ifndef GCMP_PAIR_CHECKS_H
#define GCMP_PAIR_CHECKS_H

#include "comparison.h"

/* Refuse a side whose compared state is no gradient (the update of Adafactor and its like), or no
 * values (codes of quantised weights). Errors: UNSUPPORTED, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_check_state(const struct gcmp_comparison *comparison,
                                                      const struct gradcmp_checkpoint *checkpoint,
                                                      struct gradcmp_error *error);

/* The same for a candidate, and refuse one that proves nothing beside the baseline: the same files,
 * another step, a part of several files. Errors: USAGE, UNSUPPORTED, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_check_comparable(const struct gcmp_comparison *comparison,
                                                           const struct gcmp_participant *candidate,
                                                           struct gradcmp_error *error);

/* Words of the vocabulary, without padding: as asked for, else the larger of both sides; 0: not
 * known. */
uint64_t gcmp_true_vocab(const struct gcmp_comparison *comparison,
                         const struct gcmp_participant *candidate);

/* Refuse a pair, once its parameters are paired, where --vocab contradicts the run, where types
 * cannot be judged, or where a side's last file may be missing. Errors: USAGE, UNSUPPORTED. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_check_pair(const struct gcmp_comparison *comparison,
                                                     size_t index, struct gradcmp_error *error);

/* Note what of the models the verdict says nothing about: layers, names without a layer, what has
 * no part in the comparison, rows of the vocabulary. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_note_pair(struct gcmp_comparison *comparison,
                                                    size_t index, struct gcmp_name_filter *filter,
                                                    struct gradcmp_error *error);

#endif
