/* Delivers what compare and sweep found. */
#include "cli/judged.h"

#include <stdbool.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/message.h"

static const struct gradcmp_report *report_of(const void *content) {
    return ((const struct cli_judged *)content)->report;
}

static enum gradcmp_status write_text(const void *content, const struct gradcmp_text_options *text,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    const struct cli_judged *judged = content;
    return judged->sweep != NULL
               ? gradcmp_sweep_write_text(judged->sweep, text, write, user, error)
               : gradcmp_report_write_text(judged->report, text, write, user, error);
}

static enum gradcmp_status write_json(const void *content, gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    const struct cli_judged *judged = content;
    return judged->sweep != NULL ? gradcmp_sweep_write_json(judged->sweep, write, user, error)
                                 : gradcmp_report_write_json(judged->report, write, user, error);
}

static enum gradcmp_status write_html(const void *content,
                                      const struct gradcmp_document_options *options,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_html(report_of(content), options, write, user, error);
}

static enum gradcmp_status write_junit(const void *content,
                                       const struct gradcmp_document_options *options,
                                       gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    return gradcmp_report_write_junit(report_of(content), options, write, user, error);
}

static enum gradcmp_status write_markdown(const void *content,
                                          const struct gradcmp_document_options *options,
                                          gradcmp_write_fn write, void *user,
                                          struct gradcmp_error *error) {
    return gradcmp_report_write_markdown(report_of(content), options, write, user, error);
}

static enum gradcmp_status write_annotations(const void *content,
                                             const struct gradcmp_document_options *options,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    return gradcmp_report_write_annotations(report_of(content), options, write, user, error);
}

static enum gradcmp_status write_hdf5(const void *content, int descriptor,
                                      struct gradcmp_error *error) {
    return gradcmp_report_write_hdf5(report_of(content), descriptor, error);
}

static void complain_of_candidates(const struct gradcmp_report *report) {
    size_t count = gradcmp_report_candidate_count(report);
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_error *error = gradcmp_report_error(report, i);
        if (error != NULL) {
            cli_complain_error(error);
        }
    }
}

/* Say why candidates have no answer. False where all have one. */
static bool complain_of_doubts(const struct gradcmp_report *report) {
    size_t count = gradcmp_report_candidate_count(report);
    bool is_told = false;
    for (size_t i = 0; i < count; i++) {
        const char *reason = gradcmp_report_doubt(report, i);
        if (reason != NULL) {
            cli_complain("%s: %s: %s", gradcmp_report_path(report, i),
                         gradcmp_outcome_name(gradcmp_report_outcome(report, i)), reason);
        }
        is_told = is_told || reason != NULL || gradcmp_report_error(report, i) != NULL;
    }
    return is_told;
}

/* The last line of a text, as far as there is room for it. */
struct last_line {
    char text[512];
    size_t bytes;
    bool is_whole;
};

static int keep_last_line(void *user, const char *text, size_t length_bytes) {
    struct last_line *line = user;
    for (size_t i = 0; i < length_bytes; i++) {
        line->bytes = line->is_whole ? 0 : line->bytes;
        line->is_whole = text[i] == '\n';
        if (!line->is_whole && line->bytes < sizeof line->text) {
            line->text[line->bytes++] = text[i];
        }
    }
    return 0;
}

/* What candidates do not tell (configurations without a run, repeats that could not be read) is in
 * a sweep's last line. */
static void complain_of_sweep(const struct gradcmp_sweep *sweep) {
    const struct gradcmp_text_options text = GRADCMP_TEXT_OPTIONS_INIT;
    struct last_line line = {"", 0, false};
    struct gradcmp_error error = {0};
    if (gradcmp_sweep_write_text(sweep, &text, keep_last_line, &line, &error) != GRADCMP_OK) {
        cli_complain_error(&error);
    } else {
        cli_complain("%.*s", (int)line.bytes, line.text);
    }
}

/* A single candidate that could not be read leaves nothing to print; a sweep has its matrix. */
static bool has_findings(const struct cli_judged *judged) {
    return judged->sweep != NULL || gradcmp_report_candidate_count(judged->report) > 1 ||
           gradcmp_report_error(judged->report, 0) == NULL;
}

int cli_judged_deliver(const struct cli_judged *judged, const struct cli_settings *settings,
                       int status) {
    struct cli_document document = {.content = judged,
                                    .text = has_findings(judged) ? write_text : NULL,
                                    .json = write_json,
                                    .html = write_html,
                                    .junit = write_junit,
                                    .markdown = write_markdown,
                                    .annotations = write_annotations,
                                    .hdf5 = write_hdf5};
    complain_of_candidates(judged->report);
    if (settings->quiet && status == CLI_EXIT_TROUBLE && !complain_of_doubts(judged->report) &&
        judged->sweep != NULL) {
        complain_of_sweep(judged->sweep);
    }
    return cli_deliver(&document, settings, status);
}
