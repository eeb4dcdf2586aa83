/* What earlier sweeps judged: pairs in a file, each under a key of everything that it depends on.
 * A pair that is found under its key needs no reading of tensors. */
#ifndef GCMP_RESUME_H
#define GCMP_RESUME_H

#include "base/cursor.h"
#include "base/text.h"
#include "comparison.h"

struct gcmp_resume;

/* What a pair depends on, as a digest. */
struct gcmp_resume_key {
    unsigned char bytes[16];
    bool is_known; /* false: it cannot be told whether something changed; nothing is taken over */
};

/* Read the file at `path`, or begin an empty one where there is none. Errors: CORRUPT for a file
 * that is damaged or no such file; LIMIT; IO, also where it could not be written later. On success
 * *out is owned by the caller (gcmp_resume_free); on failure it is NULL. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_resume_open(const char *path, struct gcmp_resume **out,
                                                      struct gradcmp_error *error);
void gcmp_resume_free(struct gcmp_resume *resume);
const char *gcmp_resume_path(const struct gcmp_resume *resume);

/* The key of a pair: version of the program, options that judge (with the contents of their files),
 * the state and whether it was named, and both sides' paths, files (sizes, times, inodes) and what
 * is known of them, also from their folders' neighbours. Nothing that it covers may have changed,
 * or the pair is judged anew. */
struct gcmp_resume_key gcmp_resume_key_of(const struct gcmp_comparison *comparison, size_t index);

/* Fill `pair` with what is kept under `key`, in `arena`; path, catalogue and fit are left to the
 * caller. *found tells whether there was one. Errors: CORRUPT, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_resume_find(const struct gcmp_resume *resume,
                                                      const struct gcmp_resume_key *key,
                                                      struct gcmp_arena *arena,
                                                      struct gradcmp_pair_report *pair, bool *found,
                                                      struct gradcmp_error *error);

/* Keep a judged pair under its key, in place of an earlier one of the same two checkpoints. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_resume_put(struct gcmp_resume *resume, const struct gcmp_resume_key *key, const char *baseline,
                const struct gradcmp_pair_report *pair, struct gradcmp_error *error);

/* Write the file, whole or not at all. Errors: IO, MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_resume_save(const struct gcmp_resume *resume,
                                                      struct gradcmp_error *error);

/* A pair as bytes and back (src/resume_pair.c). Reading: false where the bytes are no pair;
 * *no_memory tells whether memory was what lacked. */
void gcmp_resume_write_pair(struct gcmp_text *out, const struct gradcmp_pair_report *pair);
bool gcmp_resume_read_pair(struct gcmp_cursor *in, struct gcmp_arena *arena,
                           struct gradcmp_pair_report *pair, bool *no_memory);

#endif
