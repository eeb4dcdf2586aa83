/* A POSIX shell script (with bash's arrays) read as far as settings go: words with their
 * expansions, variables, and which of them are exported. Nothing is run. */
#ifndef GCMP_LINT_SHELL_H
#define GCMP_LINT_SHELL_H

#include "base/text.h"
#include "lint/facts.h"

/* Values carry marks for what is not known: UNKNOWN raw UNKNOWN_END, and DEFAULT raw DEFAULT_TEXT
 * text DEFAULT_END for ${X:-text}. CONDITIONAL stands before each word that only a branch sets,
 * REPLACED before a value where a branch may have taken another away. A script with such bytes is
 * refused. */
enum {
    GCMP_SHELL_UNKNOWN = 1,
    GCMP_SHELL_UNKNOWN_END = 2,
    GCMP_SHELL_DEFAULT = 3,
    GCMP_SHELL_DEFAULT_TEXT = 4,
    GCMP_SHELL_DEFAULT_END = 5,
    GCMP_SHELL_CONDITIONAL = 6,
    GCMP_SHELL_REPLACED = 7
};

/* Limits: of expanded text and copied words in all, of words of one command, and of what contains
 * what. */
enum { GCMP_SHELL_MAX_BYTES = 32 << 20, GCMP_SHELL_MAX_WORDS = 200000, GCMP_SHELL_MAX_DEPTH = 8 };
/* Of branches, and of calls of functions, within each other; of variables and functions. */
enum {
    GCMP_SHELL_MAX_FRAMES = 256,
    GCMP_SHELL_MAX_CALLS = 16,
    GCMP_SHELL_MAX_VARIABLES = GCMP_LINT_MAX_SETTINGS
};

/* Room for values. A variable that was kept as it was before a branch may share it; what stands
 * beyond a variable's own count is another's. */
struct gcmp_shell_room {
    size_t used, capacity;
};

struct gcmp_shell_variable {
    const char *name;
    const char **values; /* marked; several for an array */
    uint64_t *lines;     /* where each stands */
    size_t count;
    struct gcmp_shell_room *room; /* that they lie in; NULL: no more than their count */
    bool is_set, is_array, is_exported;
    bool is_export_conditional; /* exported, or not, by a branch */
    bool is_active;             /* a function ("NAME()") that is running */
    uint64_t frame_serial;      /* of the branch that assigned it last */
    unsigned times;             /* assigned so far */
    uint64_t line;
};

/* A word of a command: NAME=value, or (name NULL) a field. */
struct gcmp_shell_word {
    const char *name, *value;         /* value: marked */
    bool is_append;                   /* NAME+=value */
    bool is_conditional, is_replaced; /* from a value with such a mark */
    uint64_t line;
};

struct gcmp_shell_words {
    struct gcmp_shell_word *items;
    size_t count, capacity;
};

/* What contains the commands that are read; flow.h. */
struct gcmp_shell_frame {
    unsigned kind;
    uint64_t serial;
    size_t touch_count;
};

/* Variables as they were before. */
struct gcmp_shell_touches {
    struct gcmp_shell_touch *items;
    size_t count, capacity;
};

struct gcmp_shell {
    struct gcmp_lint_source *source;
    struct gradcmp_error *error;
    struct gcmp_arena *arena;
    struct gcmp_shell_variable *variables;
    size_t variable_count, variable_capacity;
    struct gcmp_map names;
    size_t expanded_bytes;
    unsigned depth;
    bool exports_all; /* set -a */
    struct gcmp_shell_frame frames[GCMP_SHELL_MAX_FRAMES];
    size_t frame_count, frame_base; /* frames below the base belong to the caller */
    uint64_t frame_serial;
    struct gcmp_shell_touches touches, locals;
};

/* Where in a text the reading stands. */
struct gcmp_shell_text {
    const char *at, *end; /* one NUL stands at `end` */
    uint64_t line;
};

/* Read one word (with `splits`: into as many fields as its expansions give) and add it. Stops at a
 * blank or an operator. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_shell_word(struct gcmp_shell *shell,
                                                     struct gcmp_shell_text *text, bool splits,
                                                     struct gcmp_shell_words *words);

/* Add a word. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_shell_add_word(struct gcmp_shell *shell,
                                                         struct gcmp_shell_words *words,
                                                         struct gcmp_shell_word word);

/* Count what is copied where variables are expanded or added to: LIMIT beyond GCMP_SHELL_MAX_BYTES.
 * `line` 0: none to be told. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_shell_charge(struct gcmp_shell *shell, size_t bytes,
                                                       uint64_t line);
/* Room for the values of a variable and their lines, and count it. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_shell_make_values(struct gcmp_shell *shell, size_t count,
                                                            const char ***values, uint64_t **lines,
                                                            uint64_t line);

/* Find a variable, or NULL; make one. */
struct gcmp_shell_variable *gcmp_shell_find(struct gcmp_shell *shell, const char *name,
                                            size_t name_bytes);
GRADCMP_MUST_USE enum gradcmp_status gcmp_shell_make(struct gcmp_shell *shell, const char *name,
                                                     struct gcmp_shell_variable **out);

/* Take the marks out of a value: what it comes to with defaults taken, or what was written. */
const char *gcmp_shell_text_of(struct gcmp_shell *shell, const char *value);
const char *gcmp_shell_raw_of(struct gcmp_shell *shell, const char *value);

/* Bytes of a variable's name at `at`; 0 where none begins. */
size_t gcmp_shell_name_bytes(const char *at, const char *end);

#endif
