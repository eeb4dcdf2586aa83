/* What a run's files say of its settings: environment variables, arguments and packages, each with
 * where it stands. */
#ifndef GCMP_LINT_FACTS_H
#define GCMP_LINT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"

enum { GCMP_LINT_MAX_SETTINGS = 1 << 16 };

enum gcmp_lint_kind { GCMP_LINT_ENV = 1, GCMP_LINT_ARG, GCMP_LINT_PACKAGE };

struct gcmp_lint_setting {
    enum gcmp_lint_kind kind;
    const char *name; /* arguments: with underscores and without dashes, "tp_comm_overlap" */
    const char *text; /* the value, shell defaults taken; NULL: none (null, None) */
    const char *more; /* further words of an argument: "b c" of "--name a b c"; NULL: none */
    const char *raw;  /* as written, where it depends on a variable that is not known; else NULL */
    bool is_switch;   /* an argument without a value, or a bool: `text` is "true" or "false" */
    bool is_unset;    /* known to be taken away again */
    bool is_unresolved;  /* the value is not known */
    bool is_defaulted;   /* the default of ${X:-default} is taken */
    bool is_conditional; /* only a branch sets it */
    bool is_partial;     /* `text` does not tell all of it */
    unsigned times;      /* assigned in this source */
    const char *path;    /* of an argument in a document: \1, which no name has, then "data.seed" */
    size_t section_bytes; /* of `path`, before the name */
    bool is_repeated;     /* other sections have that name too; each is there under its path */
    bool is_by_path;      /* such a one: `name` is `path` */
    uint64_t line;        /* 0: none */
};

/* Something that may set variables or start a training in a way that is not followed. */
struct gcmp_lint_doubt {
    const char *subject, *value; /* "eval", "$(setup)" */
    const char *text;            /* why it matters */
    uint64_t line;
};

/* What a file turned out to be. */
enum gcmp_lint_form {
    GCMP_LINT_ENV_DUMP = 1,
    GCMP_LINT_SCRIPT,
    GCMP_LINT_JSON,
    GCMP_LINT_YAML,
    GCMP_LINT_LOG,
    GCMP_LINT_PIP,
    GCMP_LINT_CHECKPOINT
};

/* One file. Zero-initialise with `path` and `arena`; free with gcmp_lint_source_free. */
struct gcmp_lint_source {
    const char *path;
    struct gcmp_arena *arena; /* borrowed */
    enum gcmp_lint_form form;
    bool has_env, has_args,
        has_packages;     /* it is evidence of that kind, if only that nothing is set */
    bool is_mindspeed_mm; /* a config of MindSpeed-MM's own trainer */
    int64_t iteration;    /* of a checkpoint; -1: not known */
    struct gcmp_lint_setting *settings;
    size_t count, capacity;
    struct gcmp_map names; /* kind and name */
    size_t stray_lines;    /* of an environment dump */
    uint64_t first_stray_line;
    const char *unknown_arguments; /* a word of the launch that is not known and may hold any */
    uint64_t unknown_line;
    const char *program;  /* of a script's launch, without its folder; NULL: not known */
    const char *operands; /* words of the launch that are no options; NULL: none */
    uint64_t program_line;
    const char *unread; /* of a YAML document, all that is beside its sections; NULL: nothing */
    const char *conditional_argument; /* a word of the launch that may stand for others */
    uint64_t conditional_line;
    struct gcmp_lint_doubt *doubts;
    size_t doubt_count;
    const char **notes;
    size_t note_count;
};

/* Set a value; a setting that is there already is replaced, and counted as assigned once more.
 * `setting->times` is how often it was assigned (0: once); strings are copied. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_set(struct gcmp_lint_source *source,
                                                   const struct gcmp_lint_setting *setting,
                                                   struct gradcmp_error *error);

/* Find a setting, or NULL; those that are unset again count as not there. */
const struct gcmp_lint_setting *gcmp_lint_find(const struct gcmp_lint_source *source,
                                               enum gcmp_lint_kind kind, const char *name);

/* Set an argument from its spelling on a command line or as a key ("--tp-comm-overlap"): dashes
 * become underscores. `value` NULL with is_switch: true. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_lint_set_argument(struct gcmp_lint_source *source,
                                                            const char *spelling,
                                                            struct gcmp_lint_setting setting,
                                                            struct gradcmp_error *error);

/* The name that an argument of that spelling gets, owned by the arena; NULL without memory. */
const char *gcmp_lint_argument_name(struct gcmp_arena *arena, const char *spelling);

/* True for a setting whose value means yes: a switch that is on, "true", "yes", "on", a number that
 * is not 0. */
bool gcmp_lint_is_true(const struct gcmp_lint_setting *setting);

/* A setting's value as reports show it; of NULL that it is not set. */
const char *gcmp_lint_shown(const struct gcmp_lint_setting *setting);

/* Remember a doubt, whose `value` is copied; `subject` and `text` are constants. */
void gcmp_lint_doubt(struct gcmp_lint_source *source, const struct gcmp_lint_doubt *doubt);

/* Remember a sentence for the report. */
void gcmp_lint_note(struct gcmp_lint_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void gcmp_lint_source_free(struct gcmp_lint_source *source);

#endif
