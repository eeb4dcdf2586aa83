/* Ctrl-C and SIGTERM: the first one asks the work to stop, the second one ends the program. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

/* Catch SIGINT and SIGTERM once each, unless they are ignored; ignore SIGPIPE and SIGXFSZ, whose
 * error codes are looked at where they arise. */
void cli_interrupt_catch(void);

/* Return the signal that came, or 0. */
int cli_interrupt_signal(void);

#endif
