/* What `gradcmp bits` found, as evidence: terminal text and JSON. */
#ifndef GCMP_BITS_REPORT_H
#define GCMP_BITS_REPORT_H

#include "bits/compare.h"
#include "gradcmp/sys/evidence.h"

/* The content of the evidence. */
struct gcmp_bits_findings {
    struct gcmp_bits_result
        *results; /* by candidate; of runs' folders by candidate and iteration */
    size_t count;
    bool by_iteration;
    const char *hash_file; /* NULL: none */
    bool hash_written;
    uint64_t hash_entries;
    const char *const *ignores; /* asked for, ignore_count of them */
    size_t ignore_count;
    bool no_default_ignores;
};

extern const struct gradcmp_evidence_writers gcmp_bits_writers;

/* Fill verdict, summary, exit status and cases from the content. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_bits_conclude(struct gradcmp_evidence *evidence,
                                                        struct gradcmp_error *error);

/* "path[2, 1]: a != b", for people. NULL without memory. */
char *gcmp_bits_sentence(struct gcmp_arena *arena, const struct gcmp_bits_finding *finding);

#endif
