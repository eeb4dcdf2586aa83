/* Which paths a command reads and writes, and the limit on memory. */
#include "cli/contain.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/command.h"
#include "cli/message.h"

/* Below MIN_BYTES the program itself does not run; a thread needs no more than STACK_BYTES; buffers
 * take a quarter. */
#define MIN_BYTES      ((uint64_t)8 << 20)
#define STACK_BYTES    ((size_t)1 << 20)
#define DEFAULT_BUFFER ((uint64_t)48 << 20)
enum { BUFFER_SHARE = 4, PATHS_BESIDE_OPERANDS = 24, FOLDERS = 3 };

/* --- memory --- */

static bool limit_memory(struct cli_settings *settings) {
    struct rlimit limit;
    pthread_attr_t threads;
    uint64_t bytes = settings->memory_limit_bytes;
    if (bytes < MIN_BYTES) {
        cli_complain("--memory-limit: expected at least 8MiB, found %llu bytes",
                     (unsigned long long)bytes);
        return false;
    }
    if (getrlimit(RLIMIT_DATA, &limit) != 0) {
        cli_complain("--memory-limit: %s", strerror(errno));
        return false;
    }
    if (limit.rlim_max > bytes) {
        limit.rlim_max = (rlim_t)bytes;
    }
    if (limit.rlim_cur > limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
    }
    if (pthread_attr_init(&threads) == 0) {
        (void)pthread_attr_setstacksize(&threads, STACK_BYTES);
        (void)pthread_setattr_default_np(&threads);
        pthread_attr_destroy(&threads);
    }
    if (setrlimit(RLIMIT_DATA, &limit) != 0) {
        cli_complain("--memory-limit: %s", strerror(errno));
        return false;
    }
    if (settings->options.buffer_bytes == 0) {
        uint64_t share = bytes / BUFFER_SHARE;
        settings->options.buffer_bytes = share < DEFAULT_BUFFER ? share : DEFAULT_BUFFER;
    }
    cli_message_memory(bytes);
    return true;
}

/* --- files --- */

/* Paths, with room for all that settings can name. */
struct paths {
    const char **items;
    size_t count;
};

static void add(struct paths *paths, const char *path) {
    if (path != NULL && path[0] != '\0' && strcmp(path, "-") != 0) {
        paths->items[paths->count++] = path;
    }
}

/* The folder that a file lies in; malloced. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return strdup(".");
    }
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Make the names of the folders that are read, besides what options name, for the caller to free:
 * what a plan names by relative paths lies beside it, and HDF5 is read again while it is written.
 * False without memory. */
static bool name_folders(const struct cli_settings *settings, char *folders[FOLDERS]) {
    bool is_hdf5 = settings->output != NULL && cli_extract_format(settings) == CLI_FORMAT_HDF5;
    const char *const beside[FOLDERS] = {settings->sweep.plan, is_hdf5 ? settings->output : NULL,
                                         settings->hdf5};
    bool is_done = true;
    for (size_t i = 0; i < FOLDERS; i++) {
        folders[i] = beside[i] == NULL ? NULL : folder_of(beside[i]);
        is_done = is_done && (beside[i] == NULL) == (folders[i] == NULL);
    }
    return is_done;
}

static void add_inputs(const struct cli_settings *settings, char *const folders[FOLDERS],
                       struct paths *inputs) {
    const struct gradcmp_options *options = &settings->options;
    const char *const named[] = {
        options->map,           options->fit,           options->previous_a,
        options->previous_b,    settings->sweep.plan,   settings->sweep.baseline,
        settings->sweep.golden, settings->sweep.resume, settings->hash};
    for (size_t i = 0; i < settings->operand_count; i++) {
        add(inputs, settings->operands[i]);
    }
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        add(inputs, named[i]);
    }
    for (size_t i = 0; i < FOLDERS; i++) {
        add(inputs, folders[i]);
    }
}

static void add_outputs(const struct cli_settings *settings, struct paths *outputs) {
    const char *const named[] = {settings->json,     settings->html,        settings->junit,
                                 settings->markdown, settings->hdf5,        settings->output,
                                 settings->hash,     settings->sweep.resume};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        add(outputs, named[i]);
    }
}

static bool enter(const struct cli_settings *settings, const char **room,
                  char *const folders[FOLDERS]) {
    struct paths inputs = {room, 0}, outputs = {NULL, 0};
    struct gradcmp_error error = {0};
    add_inputs(settings, folders, &inputs);
    outputs.items = room + inputs.count;
    add_outputs(settings, &outputs);
    struct gradcmp_sandbox_options sandbox = GRADCMP_SANDBOX_OPTIONS_INIT;
    sandbox.inputs = inputs.items;
    sandbox.input_count = inputs.count;
    sandbox.outputs = outputs.items;
    sandbox.output_count = outputs.count;
    if (gradcmp_sandbox_enter(&sandbox, &error) != GRADCMP_OK) {
        cli_complain_error(&error);
        return false;
    }
    return true;
}

static bool give_up_rights(struct cli_settings *settings) {
    if (settings->options.device == GRADCMP_DEVICE_CUDA) {
        cli_complain("--sandbox and --device cuda: a GPU takes more rights than a sandbox leaves");
        return false;
    }
    if (settings->options.ranks != NULL) {
        cli_complain(
            "--sandbox with several processes: MPI takes more rights than a sandbox leaves");
        return false;
    }
    settings->options.device = GRADCMP_DEVICE_CPU;
    fflush(NULL);
    char *folders[FOLDERS];
    bool are_named = name_folders(settings, folders);
    const char **room = calloc(settings->operand_count + PATHS_BESIDE_OPERANDS, sizeof *room);
    bool is_done = false;
    if (room == NULL || !are_named) {
        cli_complain("out of memory");
    } else {
        is_done = enter(settings, room, folders);
    }
    free(room);
    for (size_t i = 0; i < FOLDERS; i++) {
        free(folders[i]);
    }
    return is_done;
}

bool cli_contain(struct cli_settings *settings) {
    return (settings->memory_limit_bytes == 0 || limit_memory(settings)) &&
           (!settings->sandbox || give_up_rights(settings));
}
