/* What lies beside a checkpoint in its save folder: gradient dumps, or beside a dump a checkpoint.
 */
#ifndef GCMP_SIBLING_H
#define GCMP_SIBLING_H

#include "checkpoint.h"

/* Beside a gradient dump, <save>/wgrads/iter_NNNNNNN, look for a checkpoint of the same run, best
 * of the same iteration: the type of its arithmetic becomes catalogue.sibling_compute, and where
 * the dump leaves the number of tensor-parallel ranks open, that is taken over too. What is not
 * found or cannot be read changes nothing. */
void gcmp_sibling_look(struct gradcmp_checkpoint *checkpoint);

/* The save folder of a gradient dump at `dump`; malloced, NULL where it does not lie in one. */
char *gcmp_sibling_folder(const char *dump);

/* Where `path` holds gradient dumps beside the checkpoint that was found below it, note which of
 * them is read. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_sibling_note(struct gradcmp_checkpoint *checkpoint,
                                                       const char *path,
                                                       struct gradcmp_error *error);

#endif
