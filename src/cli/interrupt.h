/* Ctrl-C, SIGTERM, SIGHUP: the first one asks the work to stop, the second one ends the program. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

/* Catch SIGINT, SIGTERM and SIGHUP once each, unless they are ignored. */
void cli_interrupt_catch(void);

/* Let a closed pipe and a file at its limit be errors of the write that meets them. */
void cli_interrupt_not_by_writes(void);

/* Return the signal that came, or 0. */
int cli_interrupt_signal(void);

/* Say "interrupted", and what `more` adds, unless that is left to be told when all ranks have left.
 */
void cli_interrupt_complain(const char *more);
void cli_interrupt_leave_untold(void);

#endif
