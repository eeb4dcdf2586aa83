/* Brings what a command found to where it is wanted: documents to files or standard output, text to
 * standard output. */
#ifndef CLI_DELIVER_H
#define CLI_DELIVER_H

#include <stdbool.h>

#include "cli/settings.h"

typedef enum gradcmp_status (*cli_document_writer)(const void *content,
                                                   const struct gradcmp_document_options *options,
                                                   gradcmp_write_fn write, void *user,
                                                   struct gradcmp_error *error);

/* What can be written of one result; text NULL: there is none. */
struct cli_document {
    const void *content;
    enum gradcmp_status (*text)(const void *content, const struct gradcmp_text_options *options,
                                gradcmp_write_fn write, void *user, struct gradcmp_error *error);
    enum gradcmp_status (*json)(const void *content, gradcmp_write_fn write, void *user,
                                struct gradcmp_error *error);
    /* NULL where the command does not take the option. */
    cli_document_writer html, junit, markdown, annotations;
    enum gradcmp_status (*hdf5)(const void *content, int descriptor, struct gradcmp_error *error);
};

/* Return the exit status that the outcome of a call of the library means, and tell a failure in one
 * line: CLI_EXIT_TROUBLE, or 129, 130, 143 after an interrupt. With `output_failed` the failure is
 * the output's, which is told where the output is closed: CLI_EXIT_CONSISTENT, as for success. */
int cli_conclude(enum gradcmp_status status, bool output_failed, const struct gradcmp_error *error);

/* Tell, before long work, whether all documents can be written: each to a file of its own that is
 * new or such a document already, at most one to standard output. One line and false otherwise. */
bool cli_deliver_check(const struct cli_settings *settings);

/* Write the document as the settings ask. Returns `status`, or CLI_EXIT_TROUBLE after one line
 * where something could not be written. */
int cli_deliver(const struct cli_document *document, const struct cli_settings *settings,
                int status);

#endif
