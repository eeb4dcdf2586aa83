/* Fills caller-owned error objects. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* A message is one line whatever a file put into a name: control bytes become '?'. */
static void make_one_line(char *text) {
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}

static void copy_text(char *to, size_t capacity, const char *from) {
    snprintf(to, capacity, "%s", from == NULL ? "" : from);
}

enum gradcmp_status gcmp_error_fill(struct gradcmp_error *error, enum gradcmp_status code,
                                    const char *path, uint64_t offset_bytes, const char *format,
                                    ...) {
    if (error != NULL) {
        error->code = code;
        error->offset_bytes = offset_bytes;
        copy_text(error->path, sizeof error->path, path);
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
        make_one_line(error->message);
        make_one_line(error->path);
    }
    return code;
}

void gcmp_error_add_path(struct gradcmp_error *error, const char *path) {
    if (error != NULL && error->path[0] == '\0') {
        copy_text(error->path, sizeof error->path, path);
        make_one_line(error->path);
    }
}
