/* Takes the chunks of all tensors and the entries of storage_data while the metadata is read, so
 * that the objects which a large run has millions of never exist all at once. */
#ifndef GCMP_FORMATS_DCP_DIGEST_H
#define GCMP_FORMATS_DCP_DIGEST_H

#include "formats/dcp_index.h"

/* Interpret the metadata, whose size index->bytes tells, and fill the index's entries, chunks and
 * lists as far as they are not left in nodes. Errors: MEMORY; every other means only that it is to
 * be read without this (gcmp_pickle_load_digested). */
GRADCMP_MUST_USE enum gradcmp_status gcmp_dcp_digest(struct gcmp_cursor *cursor,
                                                     struct gcmp_dcp_index *index,
                                                     struct gcmp_node **root,
                                                     struct gradcmp_error *error);

#endif
