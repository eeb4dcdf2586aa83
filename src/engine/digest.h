/* Digests by which ranks notice where they differ: of anything, and of the work of a run. */
#ifndef GCMP_ENGINE_DIGEST_H
#define GCMP_ENGINE_DIGEST_H

#include "engine/engine.h"

struct gcmp_digest {
    void *state; /* owned; NULL: no memory, which the end tells */
};

/* Begin; add numbers one by one, since structs have gaps. NULL is a text of its own. */
void gcmp_digest_begin(struct gcmp_digest *digest);
void gcmp_digest_number(struct gcmp_digest *digest, uint64_t number);
void gcmp_digest_text(struct gcmp_digest *digest, const char *text);
void gcmp_digest_bytes(struct gcmp_digest *digest, const void *bytes, size_t count);
/* End, and free what is owned. MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_digest_end(struct gcmp_digest *digest, uint64_t out[2],
                                                     struct gradcmp_error *error);

/* Digest jobs: their sides, shapes and slabs, and how records are verified. MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_digest_jobs(const struct gcmp_job *jobs, size_t job_count,
                                                      int verify, uint64_t out[2],
                                                      struct gradcmp_error *error);

#endif
