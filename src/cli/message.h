/* What goes to standard error: one line a trouble, led by the program's name. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include "gradcmp/gradcmp.h"

/* Print "gradcmp: TEXT". Bytes that would steer a terminal are written as \xNN. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print "gradcmp: PATH: MESSAGE (byte 0x1c4)", with what of it is known. */
void cli_complain_error(const struct gradcmp_error *error);

/* From now on, tell with "out of memory" that the process may take so many bytes. */
void cli_message_memory(uint64_t bytes);

/* A gradcmp_warn_fn: the line as it is; `user` is not looked at. */
void cli_warn(void *user, const char *line);

#endif
