/* What goes to standard error. */
#include "cli/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { MAX_LINE_BYTES = 4096 };

static uint64_t memory_limit_bytes;

void cli_message_memory(uint64_t bytes) {
    memory_limit_bytes = bytes;
}

/* Spell every byte of what is no UTF-8, or could steer or mislead a terminal, as \xNN. */
static void print_safe(const char *line) {
    char spelled[GCMP_UTF8_SPELLED_BYTES];
    size_t left = strlen(line), step;
    for (; (step = gcmp_utf8_spell(line, left, true, spelled)) > 0; line += step, left -= step) {
        fputs(spelled, stderr);
    }
}

void cli_complain(const char *format, ...) {
    char line[MAX_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fputs("gradcmp: ", stderr);
    print_safe(line);
    putc('\n', stderr);
}

void cli_complain_error(const struct gradcmp_error *error) {
    char byte[40] = "";
    if (error->offset_bytes != GRADCMP_NO_OFFSET) {
        snprintf(byte, sizeof byte, " (byte 0x%" PRIx64 ")", error->offset_bytes);
    }
    const char *message =
        error->message[0] == '\0' ? "failed for an unknown reason" : error->message;
    char limit[80] = "";
    if (error->code == GRADCMP_ERROR_MEMORY && memory_limit_bytes != 0) {
        snprintf(limit, sizeof limit, "; --memory-limit allows %" PRIu64 " bytes",
                 memory_limit_bytes);
    }
    if (error->path[0] == '\0') {
        cli_complain("%s%s%s", message, byte, limit);
    } else {
        cli_complain("%s: %s%s%s", error->path, message, byte, limit);
    }
}

void cli_warn(void *user, const char *line) {
    (void)user;
    cli_complain("%s", line);
}
