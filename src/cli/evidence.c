/* Brings evidence to where it is wanted. */
#include "cli/evidence.h"

#include <string.h>

#include "cli/command.h"
#include "cli/deliver.h"
#include "cli/message.h"

static enum gradcmp_status write_text(const void *evidence, const struct gradcmp_text_options *text,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_evidence_write_text(evidence, text, write, user, error);
}

static enum gradcmp_status write_json(const void *evidence, gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_evidence_write_json(evidence, write, user, error);
}

static enum gradcmp_status write_html(const void *evidence,
                                      const struct gradcmp_document_options *options,
                                      gradcmp_write_fn write, void *user,
                                      struct gradcmp_error *error) {
    return gradcmp_evidence_write_html(evidence, options, write, user, error);
}

static enum gradcmp_status write_junit(const void *evidence,
                                       const struct gradcmp_document_options *options,
                                       gradcmp_write_fn write, void *user,
                                       struct gradcmp_error *error) {
    return gradcmp_evidence_write_junit(evidence, options, write, user, error);
}

static enum gradcmp_status write_markdown(const void *evidence,
                                          const struct gradcmp_document_options *options,
                                          gradcmp_write_fn write, void *user,
                                          struct gradcmp_error *error) {
    return gradcmp_evidence_write_markdown(evidence, options, write, user, error);
}

static enum gradcmp_status write_annotations(const void *evidence,
                                             const struct gradcmp_document_options *options,
                                             gradcmp_write_fn write, void *user,
                                             struct gradcmp_error *error) {
    return gradcmp_evidence_write_annotations(evidence, options, write, user, error);
}

/* Say why there is no answer, without the word for that. */
static void complain_of(const struct gradcmp_evidence *evidence) {
    static const char *const words[] = {"INVALID: ", "error: "};
    const char *text = gradcmp_evidence_summary(evidence);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t bytes = strlen(words[i]);
        text += strncmp(text, words[i], bytes) == 0 ? bytes : 0;
    }
    cli_complain("%s", text);
}

int cli_deliver_evidence(struct gradcmp_evidence *evidence, const struct cli_settings *settings,
                         bool is_told) {
    struct cli_document document = {.content = evidence,
                                    .text = write_text,
                                    .json = write_json,
                                    .html = write_html,
                                    .junit = write_junit,
                                    .markdown = write_markdown,
                                    .annotations = write_annotations};
    int status = gradcmp_evidence_exit_status(evidence);
    if (settings->quiet && status == CLI_EXIT_TROUBLE && !is_told) {
        complain_of(evidence); /* else the text says it */
    }
    status = cli_deliver(&document, settings, status);
    gradcmp_evidence_free(evidence);
    return status;
}
