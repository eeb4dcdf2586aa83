/* Readers of the texts in which settings stand. Each fills a source; a failure names the line. */
#ifndef GCMP_LINT_TEXT_H
#define GCMP_LINT_TEXT_H

#include "lint/facts.h"

/* Find out by content what a text is (with one NUL behind its end), and read it. Errors:
 * UNSUPPORTED where it is none of the forms, CORRUPT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_text(const char *bytes, size_t length_bytes,
                                                         struct gcmp_lint_source *source,
                                                         struct gradcmp_error *error);

/* What `env -0` or /proc/PID/environ gives: entries ended by NUL. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_nul(const char *bytes, size_t length_bytes,
                                                        struct gcmp_lint_source *source,
                                                        struct gradcmp_error *error);
/* Lines KEY=value, as `env` prints them or a .env file has them (export, quotes, comments). */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_env(const char *bytes, size_t length_bytes,
                                                        struct gcmp_lint_source *source,
                                                        struct gradcmp_error *error);
/* A training log: arguments as Megatron-LM prints them, seeds, what was applied. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_log(const char *bytes, size_t length_bytes,
                                                        struct gcmp_lint_source *source,
                                                        struct gradcmp_error *error);
/* pip freeze. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_pip(const char *bytes, size_t length_bytes,
                                                        struct gcmp_lint_source *source,
                                                        struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_json(const char *bytes, size_t length_bytes,
                                                         struct gcmp_lint_source *source,
                                                         struct gradcmp_error *error);
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_yaml(const char *bytes, size_t length_bytes,
                                                         struct gcmp_lint_source *source,
                                                         struct gradcmp_error *error);
/* A launch script: what is exported when the training starts, and its arguments. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_read_script(const char *bytes, size_t length_bytes,
                                                           struct gcmp_lint_source *source,
                                                           struct gradcmp_error *error);

#endif
