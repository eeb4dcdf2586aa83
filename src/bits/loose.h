/* Files of tensors that lie in a checkpoint's folder and are not among those that its reader took.
 */
#ifndef GCMP_BITS_LOOSE_H
#define GCMP_BITS_LOOSE_H

#include "bits/side.h"

/* True for names of files that formats keep tensors in and that are not torch.save's. */
bool gcmp_bits_holds_tensors(const char *name);

/* Take `count` such files, by their names below the folder, which live in the side's arena. Those
 * that the checkpoint's reader took pieces from are passed over. Of the others, a safetensors file
 * is listed like a checkpoint of its own, its paths beginning with its name (weights beside an
 * optimizer that torch.save wrote): but not where safetensors are the checkpoint's format, whose
 * index or numbers say what belongs to it. What is left is named in a note. Errors: those of
 * safetensors_image.h and gcmp_bits_add_catalogue. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_add_loose(struct gcmp_bits_side *side,
                                                         const char *const *names, size_t count,
                                                         struct gradcmp_error *error);

void gcmp_bits_free_loose(struct gcmp_bits_side *side);

#endif
