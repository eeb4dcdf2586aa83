/* Judges the sources of a run by the table of rules, and writes what was found. */
#ifndef GCMP_LINT_LINT_H
#define GCMP_LINT_LINT_H

#include "gradcmp/sys/evidence.h"
#include "lint/rules.h"

/* What `gradcmp lint` found; the content of its evidence. */
struct gcmp_lint_content {
    struct gcmp_lint_run run;
    unsigned sets; /* of rules that were applied */
    bool is_strict, is_pair;
    struct gcmp_lint_finding *findings;
    size_t count, capacity;     /* findings: malloced */
    size_t evaluated;           /* rules that there was evidence for */
    struct gradcmp_error error; /* of a source that could not be read; code GRADCMP_OK: none */
};

/* Read "megatron", "ascend", "gradients", "auto", or several with commas into bits; 0 for auto.
 * USAGE for other words. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_parse_sets(const char *text, unsigned *out,
                                                          struct gradcmp_error *error);

/* The set that the sources ask for. */
unsigned gcmp_lint_choose_sets(const struct gcmp_lint_run *run);

/* Note where arguments are known and none of them is one of Megatron-LM's, whose rules are chosen.
 */
void gcmp_lint_note_trainer(const struct gcmp_lint_run *run);

/* Apply all rules of content->sets. Strings live in `arena`. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_judge(struct gcmp_lint_content *content,
                                                     struct gcmp_arena *arena,
                                                     struct gradcmp_error *error);

/* Compare the two sources of content->run. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_judge_pair(struct gcmp_lint_content *content,
                                                          struct gcmp_arena *arena,
                                                          struct gradcmp_error *error);

/* Add a finding of a rule by its id; what is not given comes from the rule. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_add(struct gcmp_lint_content *content,
                                                   const char *id, struct gcmp_lint_finding finding,
                                                   struct gradcmp_error *error);

/* Tell of a setting that what it is set to, or whether, is known only when the run starts. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_judge_known(struct gcmp_lint_content *content,
                                                           const struct gcmp_lint_source *source,
                                                           const struct gcmp_lint_setting *setting,
                                                           struct gradcmp_error *error);
/* Tell what of a source may hide settings: arguments that are not known, lines without a meaning.
 */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_judge_hidden(struct gcmp_lint_content *content,
                                                            const struct gcmp_lint_source *source,
                                                            struct gradcmp_error *error);

void gcmp_lint_write_text(const struct gradcmp_evidence *evidence, struct gcmp_page *page);
void gcmp_lint_write_json(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json);

#endif
