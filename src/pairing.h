/* Pairs the parameters of two sides by canonical name and decides which elements are compared. */
#ifndef GCMP_PAIRING_H
#define GCMP_PAIRING_H

#include <regex.h>

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/parameter.h"
#include "gradcmp/sys/result.h"

/* The two sides of one parameter report; either may be NULL. */
struct gcmp_paired {
    const struct gradcmp_parameter *a, *b;
    uint64_t vocab; /* true rows of the vocabulary that both are padded tables of; 0: not known */
};

/* True for an embedding and an output layer of one shape, which a model may tie. */
bool gcmp_may_be_tied(const struct gradcmp_parameter *embedding,
                      const struct gradcmp_parameter *output);

/* An output layer that only one side stores, tied to that side's embedding: a replica of it. */
struct gcmp_tied {
    const struct gradcmp_parameter *embedding, *output; /* of one side; NULL: none */
    bool in_b;
};

/* What pairing finds beside the reports. */
struct gcmp_pairing {
    struct gcmp_paired *sides; /* one a parameter report, in the arena */
    struct gcmp_tied tied;
    uint64_t vocab;          /* as it was given */
    uint64_t rows_a, rows_b; /* of a side's tables of the run's vocabulary; 0: not known */
};

/* Which names count; see --match and --exclude. */
struct gcmp_name_filter {
    regex_t match, exclude;
    bool has_match, has_exclude;
    bool lacks_memory; /* a name was not looked at for want of it */
};

/* Compile the options' expressions; USAGE with the library's words when one is wrong. Free with
 * gcmp_name_filter_free, also after failure. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_filter_init(struct gcmp_name_filter *filter,
                                                           const struct gradcmp_options *options,
                                                           struct gradcmp_error *error);
/* True where a name matches and is not excluded. */
bool gcmp_name_filter_takes(struct gcmp_name_filter *filter, const char *name);
/* MEMORY where the answer to one of the names was none: to be asked behind the last. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_name_filter_check(const struct gcmp_name_filter *filter,
                                                            struct gradcmp_error *error);
void gcmp_name_filter_free(struct gcmp_name_filter *filter);

/* What pairing reads. */
struct gcmp_pairing_input {
    const struct gradcmp_model *a, *b;
    struct gcmp_name_filter *filter;
    uint64_t vocab; /* true rows of the vocabulary; 0: not known, the shorter side decides */
    uint64_t padded_a, padded_b; /* rows that each side says it is padded to; 0: not known */
    bool is_untied;              /* a run says that its output layer has weights of its own */
};

/* Fill pair->parameters (first part, sorted by name) and the sides behind them,
 * pair->parameter_count entries each, both in the arena. Fails as UNSUPPORTED when no name is on
 * both sides. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_pair_parameters(const struct gcmp_pairing_input *input,
                                                          struct gcmp_arena *arena,
                                                          struct gradcmp_pair_report *pair,
                                                          struct gcmp_pairing *out,
                                                          struct gradcmp_error *error);

#endif
