/* Brings evidence to where it is wanted. */
#include "cli/evidence.h"

#include "cli/deliver.h"

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

int cli_deliver_evidence(struct gradcmp_evidence *evidence, const struct cli_settings *settings) {
    struct cli_document document = {.content = evidence,
                                    .text = write_text,
                                    .json = write_json,
                                    .html = write_html,
                                    .junit = write_junit,
                                    .markdown = write_markdown,
                                    .annotations = write_annotations};
    int status = cli_deliver(&document, settings, gradcmp_evidence_exit_status(evidence));
    gradcmp_evidence_free(evidence);
    return status;
}
