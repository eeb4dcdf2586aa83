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

/* Hold a run against the arguments of a recipe; each finding is a line. */
static void check_recipe(const char *path) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_setting settings[] = {
        {.name = "seed", .kind = GRADCMP_SETTING_INT, .integer = 1234},
        {.name = "bf16", .kind = GRADCMP_SETTING_BOOL, .integer = 1},
        {.name = "clip_grad", .kind = GRADCMP_SETTING_FLOAT, .number = 1.0},
        {.name = "hidden_dropout", .kind = GRADCMP_SETTING_FLOAT, .number = 0.1}};
    struct gradcmp_catalogue catalogue = {.arena = &arena,
                                          .layers = 4,
                                          .parallel = {.tp = 2, .pp = 2, .cp = 1, .ep = 1},
                                          .settings = settings,
                                          .setting_count = sizeof settings / sizeof settings[0]};
    struct gradcmp_error error = {0};
    struct gcmp_yaml *root;
    const char **lines;
    size_t count = 0;
    enum gradcmp_status status = gcmp_yaml_read(&arena, path, &root, &error);
    check_error(status, &error);
    const struct gcmp_yaml *arguments =
        status == GRADCMP_OK ? gcmp_yaml_get(root, "MODEL_ARGS") : NULL;
    if (arguments != NULL && arguments->kind == GCMP_YAML_MAPPING) {
        demand(gcmp_recipe_check(&arena, arguments, &catalogue, &lines, &count, &error) ==
                   GRADCMP_OK,
               "a recipe is checked");
        demand(count > 0, "what drops elements is told");
    }
    for (size_t i = 0; i < count; i++) {
        demand(lines[i][0] != '\0', "a finding is a line");
    }
    gcmp_arena_free(&arena);
}

/* Patterns are looked for below a folder that is not there; one with a slash might not be. */
static bool looks_elsewhere(const uint8_t *data, size_t size) {
    return size > 0 && memchr(data, '/', size) != NULL &&
           (memchr(data, '*', size) != NULL || memchr(data, '?', size) != NULL ||
            memchr(data, '[', size) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int fd = memfd_create("input", MFD_CLOEXEC);
    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size, "the input can be stored");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_fit(path);
    read_options(path);
    check_recipe(path);
    if (!looks_elsewhere(data, size)) {
        read_plan(path);
    }
    close(fd);
    return 0;
}
