/* Tells by a file's name, and by what lies beside it, that it is one of several. */
#include "base/part.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DIGITS = 6 };

struct part {
    unsigned long number, of; /* 0, 0: a file for itself, or a folder */
};

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* True where the file before or behind it, or an index ("model.safetensors.index.json"), is there.
 * `name` has `base_bytes` bytes before "-K-of-N" with `width` digits, and ends with `ending`. */
static bool has_sibling(const char *name, int base_bytes, int width, const struct part *part,
                        const char *ending) {
    char other[PATH_MAX];
    unsigned long sibling = part->number > 1 ? part->number - 1 : part->number + 1;
    int length = snprintf(other, sizeof other, "%.*s-%0*lu-of-%0*lu%s", base_bytes, name, width,
                          sibling, width, part->of, ending);
    if (length > 0 && (size_t)length < sizeof other && exists(other)) {
        return true;
    }
    length = snprintf(other, sizeof other, "%.*s%s.index.json", base_bytes, name, ending);
    return length > 0 && (size_t)length < sizeof other && exists(other);
}

static struct part part_of(const char *path) {
    static const char digits[] = "0123456789";
    struct part none = {0, 0}, part;
    const char *slash = strrchr(path, '/');
    const char *of = strstr(slash == NULL ? path : slash, "-of-");
    size_t width = of == NULL ? 0 : strspn(of + 4, digits);
    if (width == 0 || width > MAX_DIGITS || of[4 + width] != '.' || of - path <= (long)width ||
        of[-(long)width - 1] != '-' || strspn(of - width, digits) != width) {
        return none;
    }
    part.number = strtoul(of - width, NULL, 10);
    part.of = strtoul(of + 4, NULL, 10);
    bool is_part =
        part.number >= 1 && part.number <= part.of && part.of > 1 &&
        has_sibling(path, (int)(of - path) - (int)width - 1, (int)width, &part, of + 4 + width);
    return is_part ? part : none;
}

enum gradcmp_status gcmp_check_parts(const char *path_a, const char *path_b,
                                     struct gradcmp_error *error) {
    struct part a = part_of(path_a), b = part_of(path_b);
    if (a.number == b.number && a.of == b.of) {
        return GRADCMP_OK;
    }
    const char *path = b.of > 0 ? path_b : path_a, *slash = strrchr(path, '/');
    const struct part *part = b.of > 0 ? &b : &a;
    GCMP_FAIL_AT(
        error, GRADCMP_ERROR_USAGE, path, GRADCMP_NO_OFFSET,
        "file %lu of %lu of a checkpoint, and the other side is not that file of one: what "
        "the others hold would be missing; name the folder, %.*s",
        part->number, part->of,
        slash == NULL   ? 1
        : slash == path ? 1
                        : (int)(slash - path),
        slash == NULL ? "." : path);
}
