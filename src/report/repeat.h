/* The command that repeats a report, to be pasted into a shell. */
#ifndef GCMP_REPORT_REPEAT_H
#define GCMP_REPORT_REPEAT_H

#include "base/arena.h"
#include "base/error.h"
#include "gradcmp/sys/result.h"
#include "report/page.h"

/* Add one word as a POSIX shell reads it back: quoted where it has to be. A byte that cannot be
 * shown is written as $'\ooo', which bash, ksh and zsh read. */
void gcmp_repeat_word(struct gcmp_text *text, const char *word);

/* Add the options that are not default, "--k 3.5 --strict"; of real numbers every digit. */
void gcmp_repeat_options(struct gcmp_text *text, const struct gradcmp_options *options);

/* Write the options as lines of a report's head behind `label`; nothing where there are none. */
void gcmp_repeat_line(struct gcmp_page *page, const char *label,
                      const struct gradcmp_options *options);

/* Add an option, "--exclude WORD", a space in front where something stands there; without a word
 * (NULL) the flag alone. */
void gcmp_repeat_option(struct gcmp_text *text, const char *flag, const char *word);

/* Keep in `arena` what was added, NULL where nothing was, and free the text. Errors: MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_repeat_keep(struct gcmp_text *text,
                                                      struct gcmp_arena *arena, const char **out,
                                                      struct gradcmp_error *error);

/* Add "gradcmp compare OPTIONS BASELINE CANDIDATE...". */
void gcmp_repeat_compare(struct gcmp_text *text, const struct gradcmp_report *report);

/* Add the same, or for a report that is of a sweep "gradcmp sweep OPTIONS DIR". */
void gcmp_repeat_command(struct gcmp_text *text, const struct gradcmp_report *report);

#endif
