/* Temporary folders for tests of files, and cmocka with what it needs. */
#ifndef GCMP_TEMP_TOOLS_H
#define GCMP_TEMP_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ftw.h>

/* A test whose state is the path of an empty folder that goes away afterwards. */
#define TEMP_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static inline char *temp_dir_make(void) {
    const char *base = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/gradcmp-test-XXXXXX", base == NULL ? "/tmp" : base);
    return mkdtemp(path) == NULL ? NULL : strdup(path);
}

static inline int temp_remove_one(const char *path, const struct stat *info, int kind,
                                  struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void temp_dir_remove(char *path) {
    nftw(path, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

/* Join; the result is freed by the caller. */
static inline char *temp_path(const char *temp, const char *name) {
    char *path = malloc(strlen(temp) + strlen(name) + 2);
    sprintf(path, "%s/%s", temp, name);
    return path;
}

static inline void temp_file(const char *temp, const char *name, const void *bytes, size_t count) {
    char *path = temp_path(temp, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void temp_folder(const char *temp, const char *name) {
    char *path = temp_path(temp, name);
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

static inline void temp_link(const char *temp, const char *name, const char *target) {
    char *path = temp_path(temp, name);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

#define assert_text_contains(text, part)                                                           \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) {                                                      \
            fail_msg("\"%s\" does not hold \"%s\"", (text), (part));                               \
        }                                                                                          \
    } while (0)

#endif
