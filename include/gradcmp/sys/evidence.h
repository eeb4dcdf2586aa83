/* What bits, trace, metrics and lint found, in a form that every report can be made from. Each of
 * them fills one; src/report writes it. */
#ifndef GRADCMP_SYS_EVIDENCE_H
#define GRADCMP_SYS_EVIDENCE_H

#include <stdbool.h>

#include "gradcmp/gradcmp.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gcmp_arena;
struct gcmp_emitter; /* report/json.h */
struct gcmp_page;    /* report/page.h */
struct gcmp_text;    /* base/text.h */

/* How the parts that are each command's own are written. `content` is the evidence's. */
struct gradcmp_evidence_writers {
    /* The terminal report, up to and with its last line, which stands alone. */
    void (*text)(const struct gradcmp_evidence *evidence, struct gcmp_page *page);
    /* The fields of the JSON object behind schema, tool, version, subcommand and verdict. */
    void (*json)(const struct gradcmp_evidence *evidence, struct gcmp_emitter *json);
    /* HTML (escaped by the callee) between the verdict and the table of cases, such as plots; NULL:
     * nothing. */
    void (*html)(const struct gradcmp_evidence *evidence, struct gcmp_text *html);
};

struct gradcmp_evidence {
    struct gcmp_arena *arena; /* owns everything here; freed with it */
    const char *subcommand;   /* "bits", "trace", "metrics", "lint" */
    const char *verdict;      /* the word of the JSON: "identical", "diverged", ... */
    const char *summary;      /* one line that stands alone: the last of the terminal report */
    int exit_status;          /* 0, 1 or 2 */
    const char **paths;       /* what was looked at, as given; A first */
    size_t path_count;
    struct gradcmp_case *cases; /* one a thing looked at, in the order of the report */
    size_t case_count;
    const char **notes;
    size_t note_count;
    const char *options; /* that change what is judged, as they are typed; NULL: none */
    void *content;       /* the command's own figures */
    const struct gradcmp_evidence_writers *writers;
    void (*release)(struct gradcmp_evidence *evidence); /* what the arena does not own; or NULL */
};

#ifdef __cplusplus
}
#endif

#endif
