/* What the layouts of traces have in common: the event that each makes of a record, and the table
 * by which the rest of this folder uses them. */
#ifndef GCMP_TRACE_LAYOUT_H
#define GCMP_TRACE_LAYOUT_H

#include "trace/counter.h"
#include "trace/frame.h"
#include "trace/json_value.h"

enum { GCMP_EVENT_SLOTS = 4, GCMP_MODULE_DEPTH = 64, GCMP_MODULE_BYTES = 256, GCMP_ID_BYTES = 640 };

/* What equality of two records proves, from the weakest. */
enum gcmp_strength {
    GCMP_STRENGTH_NONE = 0,   /* nothing was compared */
    GCMP_STRENGTH_METADATA,   /* shapes and types alone */
    GCMP_STRENGTH_STATISTICS, /* extremes, means, norms */
    GCMP_STRENGTH_SAMPLED,    /* a digest of some elements */
    GCMP_STRENGTH_XOR,        /* a digest of all that cannot see permutations */
    GCMP_STRENGTH_CHECKSUM,   /* 32 bits over all bytes */
    GCMP_STRENGTH_FULL        /* SHA-256 over all bytes */
};

/* How finely a layout cuts a step. */
enum gcmp_grain { GCMP_GRAIN_MODULE = 1, GCMP_GRAIN_API, GCMP_GRAIN_OPERATION };

enum gcmp_event_kind {
    GCMP_EVENT_MARK = 1, /* no tensor, or one of unknown direction */
    GCMP_EVENT_INPUT,    /* what goes into a boundary */
    GCMP_EVENT_OUTPUT,   /* what comes out of one */
    GCMP_EVENT_CALL      /* an operation with its inputs and outputs */
};

enum gcmp_inputs {
    GCMP_INPUTS_UNKNOWN, /* not recorded */
    GCMP_INPUTS_NONE,    /* recorded: it has no tensor inputs */
    GCMP_INPUTS_SOME
};

struct gcmp_identity {
    uint64_t low, high;
};

/* One record. Texts live as long as the record; NULL where there is none. */
struct gcmp_event {
    enum gcmp_event_kind kind;
    int64_t iteration, microbatch; /* -1: none */
    const char *phase, *type, *name, *id, *module;
    int64_t occurrence;
    int64_t sequence;              /* -1: the layout has none */
    struct gcmp_identity identity; /* of all that does not depend on the run, without the rank */
    struct gcmp_identity giving;   /* of the record that holds a collective's local input */
    uint64_t repeat_key; /* of the identity without its occurrence; 0: repeats cannot be told */
    uint64_t name_key;   /* of iteration, type and name */
    bool is_collective, has_skipped; /* skipped: some input was not hashed */
    enum gcmp_inputs inputs;
    /* Values of the record: what went in, what came out, and an object whose members other than
     * `known` of the layout are arguments. */
    uint32_t in[GCMP_EVENT_SLOTS], out[GCMP_EVENT_SLOTS], arguments;
    bool has_arguments;
    uint32_t group; /* array of ranks */
};

/* How a rank's records are read, from its first to its last. */
struct gcmp_reader {
    const struct gcmp_trace_layout *layout;
    struct gcmp_jv_text text;
    uint64_t seed;
    int64_t rank, iteration; /* of the file, by its name; iteration -1: the records tell */
    int64_t position;        /* records read of this file */
    bool has_header;         /* of the document: it said what it is */
    bool saw_inputs;         /* some record told its inputs */
    bool saw_skipped;        /* some tensor was not hashed */
    char mode[32];           /* how tensors are fingerprinted; "" until one is seen */
    char selection[32];      /* what was chosen to be recorded, where the file says so */
    enum gcmp_strength strength;
    struct gcmp_counter names; /* seen in this file, where the layout does not count */
    char modules[GCMP_MODULE_DEPTH][GCMP_MODULE_BYTES];
    unsigned module_depth;
    char id[GCMP_ID_BYTES], name[GCMP_ID_BYTES], module[GCMP_ID_BYTES];
};

/* Where a file belongs. */
struct gcmp_place {
    int64_t rank, iteration;
};

struct gcmp_trace_layout {
    const char *name;
    const char *naming; /* of its files, for messages */
    enum gcmp_grain grain;
    bool is_stateful;     /* equal bytes do not make equal events */
    bool has_memberships; /* identities are unique and tell a missing event from a moved one */
    int64_t first_occurrence;
    const char *in_names[GCMP_EVENT_SLOTS], *out_names[GCMP_EVENT_SLOTS]; /* of an event's values */
    const char *const *known; /* members of `arguments` that are no arguments; ended by NULL */
    /* Tell by the first keys of a file whether it is of this layout. */
    bool (*is_one)(const char *bytes, size_t length);
    /* Tell rank and iteration by the file's name below the trace's folder; false: no such name. */
    bool (*place)(const char *name, struct gcmp_place *place);
    /* The key of the records in a document, or NULL for lines. */
    const char *(*container)(const char *name);
    /* Make an event of the record in reader->text. *skip: it is none (a member of the header). */
    enum gradcmp_status (*read)(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                struct gcmp_event *event, bool *skip, struct gradcmp_error *error);
    /* Tell why two records of one identity cannot be compared; NULL where they can. May be NULL. */
    const char *(*obstacle)(const struct gcmp_reader *a, const struct gcmp_event *event_a,
                            const struct gcmp_reader *b, const struct gcmp_event *event_b);
};

extern const struct gcmp_trace_layout gcmp_layout_boundary, gcmp_layout_ops, gcmp_layout_debugmode,
    gcmp_layout_msprobe;
/* All of them, ended by NULL. */
extern const struct gcmp_trace_layout *const gcmp_trace_layouts[];

/* The word of a strength in reports. */
const char *gcmp_strength_name(enum gcmp_strength strength);

/* Fail for a record: the message gets its line. */
#define GCMP_RECORD_FAIL(error, code, frame, ...)                                                  \
    return gcmp_failure(gcmp_record_fill((error), (code), (frame)->line, __VA_ARGS__))
enum gradcmp_status gcmp_record_fill(struct gradcmp_error *error, enum gradcmp_status code,
                                     uint64_t line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Extend an identity by a text (NULL: none) or a number. */
void gcmp_identity_text(struct gcmp_identity *identity, const char *text);
void gcmp_identity_number(struct gcmp_identity *identity, int64_t number);

/* Read "iteration" and such: a count, or null or absent where that is allowed, -1 then. */
bool gcmp_read_step(const struct gcmp_jv_text *text, uint32_t at, int64_t *out);

/* Take note of how the tensors of a record are fingerprinted; a second way is CORRUPT. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_reader_mode(struct gcmp_reader *reader,
                                                      const struct gcmp_frame *frame,
                                                      const char *mode, enum gcmp_strength strength,
                                                      struct gradcmp_error *error);

/* Tell whether a key stands in the outermost object, in the part of a file that is at hand. */
bool gcmp_sniff_key(const char *bytes, size_t length, const char *key);

/* Read digits at *text and step over them; false where there are none, or too many. */
bool gcmp_take_digits(const char **text, int64_t *out);
/* Step over a word; false where it does not stand there. */
bool gcmp_take_word(const char **text, const char *word);

/* Tell whether the name of an operation is a collective's (c10d and what Megatron calls them). */
bool gcmp_is_collective_name(const char *name);

/* Look for the digest that is no digest: "skipped_oversize". */
bool gcmp_has_skipped(const struct gcmp_jv_text *text, uint32_t at);

#endif
