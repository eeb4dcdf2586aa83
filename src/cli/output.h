/* Where results go: standard output, or a file that is there whole or not at all. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* A gradcmp_write_fn for standard output; `user` is not looked at. */
int cli_stdout_write(void *user, const char *bytes, size_t length_bytes);

/* True after a write to standard output failed; cli_stdout_close tells of it. */
bool cli_stdout_failed(void);

/* Flush standard output. Returns `status`, or CLI_EXIT_TROUBLE after one line where something could
 * not be written. A reader that closed the pipe has seen enough: no line, and `status` stays. */
int cli_stdout_close(int status);

/* The same for a document of which a part is of no use: a closed pipe is trouble too. */
int cli_stdout_close_document(int status);

/* A file being written beside its final name. */
struct cli_file {
    const char *path;                  /* as given, for messages */
    char *final_path, *temporary_path; /* malloced; temporary_path NULL: written in place */
    int descriptor;
    bool failed; /* a write failed, and a line told of it */
};

/* How files that gradcmp wrote are known: how they start, and what stands in their first 4 KiB. */
struct cli_file_kind {
    const char *name; /* "JSON report" */
    const char *start, *mark;
};

/* Tell, before long work, whether `path` can be written: it is no directory, its folder is there
 * and may be written, and a file that is there already is of this kind or empty (a mistyped command
 * must not overwrite a checkpoint). Prints one line and returns false otherwise. */
bool cli_file_check(const char *path, const struct cli_file_kind *kind);

/* The same for a file that must not be there yet, whatever it holds. */
bool cli_file_check_new(const char *path);

/* Open a new file of a temporary name in the folder of `path`; a pipe or device is opened as it is.
 * Prints one line and returns false on failure. */
bool cli_file_open(struct cli_file *file, const char *path);

/* The same for one that is read again while it is written. */
bool cli_file_open_readable(struct cli_file *file, const char *path);

/* A gradcmp_write_fn; `user` is a struct cli_file. */
int cli_file_write(void *user, const char *bytes, size_t length_bytes);

/* Flush to disk and give the file its name; with `keep` false, or on failure, remove it. Returns
 * false, after one line, on failure. Releases everything. */
bool cli_file_close(struct cli_file *file, bool keep);

#endif
