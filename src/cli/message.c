/* What goes to standard error. */
#include "cli/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MAX_LINE_BYTES = 4096 };

static uint64_t memory_limit_bytes;

void cli_message_memory(uint64_t bytes) {
    memory_limit_bytes = bytes;
}

/* C0, DEL, and C1 in UTF-8 (0xC2 0x80 .. 0xC2 0x9F). */
static int is_control(const unsigned char *at) {
    return at[0] < 0x20 || at[0] == 0x7F || (at[0] == 0xC2 && at[1] >= 0x80 && at[1] <= 0x9F);
}

static void print_safe(const char *line) {
    for (const unsigned char *at = (const unsigned char *)line; *at != '\0'; at++) {
        if (is_control(at)) {
            fprintf(stderr, "\\x%02x", *at);
        } else {
            putc(*at, stderr);
        }
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
