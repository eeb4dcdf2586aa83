/* Ctrl-C, SIGTERM, SIGHUP: the first one asks the work to stop, a second of the same ends the
 * program. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

/* Catch SIGINT, SIGTERM and SIGHUP, unless they are ignored. */
void cli_interrupt_catch(void);

/* Have a file removed should a signal end the program; the name is copied, and one that is too long
 * or one too many is left out. With NULL, no file is removed any more. */
void cli_interrupt_remove(const char *path);

/* Let a closed pipe and a file at its limit be errors of the write that meets them. */
void cli_interrupt_not_by_writes(void);

/* Return the signal that came, or 0. */
int cli_interrupt_signal(void);

/* Say "interrupted", and what `more` adds, unless that is left to be told when all ranks have left.
 */
void cli_interrupt_complain(const char *more);
void cli_interrupt_leave_untold(void);

#endif
