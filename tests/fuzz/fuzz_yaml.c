/* Fuzz target: the YAML files that a user names and others may have written: sweep plans, recipes
 * of Megatron's functional tests, fits, option files. */
#include "base/yaml_doc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demand.h"
#include "fit_file.h"
#include "memory_file.h"
#include "sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A failure says what and is one line. */
static void check_error(enum gradcmp_status status, const struct gradcmp_error *error) {
    demand(status == GRADCMP_OK || (error->code == status && error->message[0] != '\0' &&
                                    strchr(error->message, '\n') == NULL),
           "a failure is told in one line");
}

static void read_fit(const char *path) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_fit fit;
    struct gradcmp_error error = {0};
    memset(&fit, 0, sizeof fit);
    enum gradcmp_status status = gcmp_fit_read(&arena, path, &fit, &error);
    check_error(status, &error);
    demand(status != GRADCMP_OK || (isfinite(fit.k) && fit.k > 0 && isfinite(fit.C)),
           "a fit has a bound");
    gcmp_arena_free(&arena);
}

static void read_plan(const char *path) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_roster roster = {
        .arena = &arena, .plan = path, .options = GRADCMP_OPTIONS_INIT, .baseline = SIZE_MAX};
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gcmp_plan_read(&roster, "/nonexistent", &error);
    check_error(status, &error);
    for (size_t i = 0; status == GRADCMP_OK && i < roster.count; i++) {
        demand(roster.entries[i].label != NULL && roster.entries[i].path != NULL,
               "an entry is whole");
    }
    demand(status != GRADCMP_OK || roster.baseline == SIZE_MAX || roster.baseline < roster.count,
           "the baseline is an entry");
    gcmp_arena_free(&arena);
}

static void read_options(const char *path) {
    struct gradcmp_config *config = NULL;
    struct gradcmp_error error = {0};
    enum gradcmp_status status = gradcmp_config_open(path, &config, &error);
    check_error(status, &error);
    size_t count = status == GRADCMP_OK ? gradcmp_config_count(config) : 0;
    for (size_t i = 0; i < count; i++) {
        struct gradcmp_config_entry entry;
        gradcmp_config_entry(config, i, &entry);
        demand(entry.name != NULL && entry.value != NULL && entry.line > 0, "an option is whole");
    }
    gradcmp_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int fd = memfd_create("input", MFD_CLOEXEC);
    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size, "the input can be stored");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_fit(path);
    read_options(path);
    /* A pattern would look for what it fits in the file system at hand. */
    if (size == 0 || (memchr(data, '*', size) == NULL && memchr(data, '?', size) == NULL &&
                      memchr(data, '[', size) == NULL)) {
        read_plan(path);
    }
    close(fd);
    return 0;
}
