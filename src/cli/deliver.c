/* Brings results to where they are wanted. */
#include "cli/deliver.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/terminal.h"

/* The documents that an option asks for. */
struct document_kind {
    const char *option;
    size_t setting; /* offset of the path in the settings */
    size_t writer;  /* offset of the writer in a document; JSON: not looked at */
    struct cli_file_kind file;
};

#define SETTING(member) offsetof(struct cli_settings, member)
#define WRITER(member)  offsetof(struct cli_document, member)

static const struct document_kind kinds[] = {
    {"--json", SETTING(json), 0, {"JSON report", "{", "\"schema\""}},
    {"--html",
     SETTING(html),
     WRITER(html),
     {"HTML report", "<!DOCTYPE html>", "name=\"generator\" content=\"gradcmp\""}},
    {"--junit",
     SETTING(junit),
     WRITER(junit),
     {"JUnit report", "<?xml", "<testsuites name=\"gradcmp"}},
    {"--markdown",
     SETTING(markdown),
     WRITER(markdown),
     {"Markdown report", "<!-- gradcmp -->", "gradcmp"}},
    {"--hdf5", SETTING(hdf5), WRITER(hdf5), {"HDF5 report", "\x89HDF", "gradcmp.report"}}};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

/* Where a document is wanted, or NULL. */
static const char *path_of(const struct cli_settings *settings, size_t kind) {
    return *(const char *const *)((const char *)settings + kinds[kind].setting);
}

static bool is_hdf5(size_t kind) {
    return kinds[kind].setting == SETTING(hdf5);
}

static bool goes_to_stdout(const char *path) {
    return path != NULL && strcmp(path, "-") == 0;
}

/* True where any document takes standard output, where else the text would go. */
static bool stdout_is_taken(const struct cli_settings *settings) {
    bool is_taken = false;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        is_taken = is_taken || goes_to_stdout(path_of(settings, i));
    }
    return is_taken;
}

/* The folder that a file lies in: true where it is there, with its facts in *status and the file's
 * own name in *name. */
static bool find_folder(const char *path, struct stat *status, const char **name) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = slash == NULL ? path : slash + 1;
    int length = slash == NULL
                     ? snprintf(folder, sizeof folder, ".")
                     : snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    return length > 0 && (size_t)length < sizeof folder && stat(folder, status) == 0;
}

/* By the files that are there, else by their places: "x" and "./x" are one. */
static bool is_same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    const char *name_a, *name_b;
    if (strcmp(a, b) == 0) {
        return true;
    }
    if (find_folder(a, &of_a, &name_a) && find_folder(b, &of_b, &name_b) &&
        of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino && strcmp(name_a, name_b) == 0) {
        return true;
    }
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Two documents in one file would leave one of them. Devices take any number. */
static bool check_apart(const struct cli_settings *settings, size_t kind) {
    struct stat status;
    const char *path = path_of(settings, kind);
    for (size_t i = 0; i < kind; i++) {
        const char *other = path_of(settings, i);
        if (other == NULL || !is_same_file(path, other)) {
            continue;
        }
        if (goes_to_stdout(path)) {
            cli_complain("%s and %s: only one can go to standard output", kinds[i].option,
                         kinds[kind].option);
            return false;
        }
        if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) {
            cli_complain("%s and %s: both would be %s", kinds[i].option, kinds[kind].option, path);
            return false;
        }
    }
    return true;
}

/* One process of several reports. */
static bool is_told_elsewhere(const struct cli_settings *settings) {
    return gradcmp_ranks_index(settings->options.ranks) > 0;
}

bool cli_deliver_check(const struct cli_settings *settings) {
    if (is_told_elsewhere(settings)) {
        return true;
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const char *path = path_of(settings, i);
        if (path != NULL && is_hdf5(i) && goes_to_stdout(path)) {
            cli_complain("--hdf5: expected the name of a file; HDF5 cannot be streamed");
            return false;
        }
        if (path != NULL && (!check_apart(settings, i) ||
                             (!goes_to_stdout(path) && !cli_file_check(path, &kinds[i].file)))) {
            return false;
        }
    }
    return true;
}

int cli_conclude(enum gradcmp_status status, bool output_failed,
                 const struct gradcmp_error *error) {
    if (status == GRADCMP_OK || output_failed) {
        return CLI_EXIT_CONSISTENT;
    }
    if (status == GRADCMP_ERROR_CANCELLED) {
        cli_interrupt_complain("");
        return 128 + cli_interrupt_signal();
    }
    cli_complain_error(error);
    return CLI_EXIT_TROUBLE;
}

static int higher(int a, int b) {
    return a > b ? a : b;
}

static int deliver_text(const struct cli_document *document, const struct cli_settings *settings,
                        int status) {
    struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
    struct gradcmp_error error = {0};
    text.color = cli_terminal_color((enum cli_color)settings->color);
    text.utf8 = cli_terminal_utf8();
    text.verbose = settings->verbose;
    text.top = settings->top;
    text.width = cli_terminal_width();
    enum gradcmp_status written =
        document->text(document->content, &text, cli_stdout_write, NULL, &error);
    return cli_stdout_close(higher(status, cli_conclude(written, cli_stdout_failed(), &error)));
}

static struct gradcmp_document_options document_options(const struct cli_settings *settings) {
    struct gradcmp_document_options options = GRADCMP_DOCUMENT_OPTIONS_INIT;
    options.junit_level = (enum gradcmp_junit_level)settings->junit_level;
    options.top = settings->top;
    return options;
}

/* What is to be written and where it goes. */
struct job {
    const struct cli_document *document;
    const struct cli_settings *settings;
    size_t kind;
};

static enum gradcmp_status write_document(const struct job *job, gradcmp_write_fn write, void *user,
                                          struct gradcmp_error *error) {
    const struct cli_document *document = job->document;
    if (kinds[job->kind].writer == 0) {
        return document->json(document->content, write, user, error);
    }
    struct gradcmp_document_options options = document_options(job->settings);
    const cli_document_writer *writer =
        (const cli_document_writer *)((const char *)document + kinds[job->kind].writer);
    return (*writer)(document->content, &options, write, user, error);
}

static int deliver_document(const struct job *job, const char *path, int status) {
    struct gradcmp_error error = {0};
    struct cli_file file;
    if (goes_to_stdout(path)) {
        enum gradcmp_status written = write_document(job, cli_stdout_write, NULL, &error);
        return cli_stdout_close_document(
            higher(status, cli_conclude(written, cli_stdout_failed(), &error)));
    }
    if (!cli_file_open(&file, path)) {
        return CLI_EXIT_TROUBLE;
    }
    enum gradcmp_status written =
        is_hdf5(job->kind) ? job->document->hdf5(job->document->content, file.descriptor, &error)
                           : write_document(job, cli_file_write, &file, &error);
    if (written == GRADCMP_ERROR_IO && error.path[0] == '\0') { /* of what is written */
        snprintf(error.path, sizeof error.path, "%s", path);
    }
    cli_conclude(written, file.failed, &error);
    return cli_file_close(&file, written == GRADCMP_OK) ? status : CLI_EXIT_TROUBLE;
}

static int write_stderr(void *user, const char *bytes, size_t length_bytes) {
    (void)user;
    return fwrite(bytes, 1, length_bytes, stderr) != length_bytes;
}

/* GitHub reads both streams; on standard error they stand in no report's way. */
static int deliver_annotations(const struct cli_document *document,
                               const struct cli_settings *settings, int status) {
    struct gradcmp_error error = {0};
    struct gradcmp_document_options options = document_options(settings);
    enum gradcmp_status written =
        document->annotations(document->content, &options, write_stderr, NULL, &error);
    return higher(status, cli_conclude(written, false, &error));
}

int cli_deliver(const struct cli_document *document, const struct cli_settings *settings,
                int status) {
    int worst = status;
    if (is_told_elsewhere(settings)) {
        return CLI_EXIT_CONSISTENT;
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const char *path = path_of(settings, i);
        struct job job = {document, settings, i};
        if (path != NULL) {
            worst = higher(worst, deliver_document(&job, path, status));
        }
    }
    if (settings->annotations) {
        worst = higher(worst, deliver_annotations(document, settings, status));
    }
    if (!settings->quiet && !stdout_is_taken(settings) && document->text != NULL) {
        worst = higher(worst, deliver_text(document, settings, status));
    }
    return worst;
}
