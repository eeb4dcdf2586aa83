/* What the two formats of extracted files have in common: which tensors, what is told of the run,
 * and the stream of elements. */
#ifndef GCMP_EXTRACTION_H
#define GCMP_EXTRACTION_H

#include "checkpoint.h"
#include "engine/engine.h"

/* One tensor of the file. */
struct gcmp_extract_item {
    const struct gradcmp_parameter *parameter;
    enum gradcmp_dtype dtype; /* as written */
    uint64_t bytes;
    const char *key; /* "optimizer.state.STATE.NAME", or the name of a weight */
};

struct gcmp_extraction {
    struct gradcmp_checkpoint *checkpoint;
    struct gradcmp_options options; /* complete */
    bool as_float32;
    const char *format;                      /* for messages: "safetensors" */
    bool (*takes)(enum gradcmp_dtype dtype); /* types that it has */
    struct gcmp_arena arena;                 /* keys and texts */
    struct gcmp_extract_item *items;         /* malloced */
    size_t count;

    int (*emit)(void *user, const void *bytes, size_t count); /* nonzero: it failed */
    bool is_little; /* emit wants the lowest byte first, not the host's order */
    void *user;
    bool has_failed;
    const struct gcmp_extract_item *current;
    uint64_t beyond;       /* finite elements of `current` that are infinite as written */
    uint64_t vanished;     /* elements of all items that are 0 as written, and were not */
    const char *vanishing; /* the first item with such; NULL: there is none */
};

/* A text about the run. */
struct gcmp_extract_text {
    const char *name, *value;
};
enum { GCMP_EXTRACT_MAX_TEXTS = 16 };

/* Choose the tensors: those of options.state, match and exclude, sorted by state and name. Set
 * checkpoint, options, as_float32, format and takes before, and free with gcmp_extraction_free in
 * any case. UNSUPPORTED where none is left or the format has no type for one; LIMIT; MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_extraction_make(struct gcmp_extraction *extraction,
                                                          struct gradcmp_error *error);
void gcmp_extraction_free(struct gcmp_extraction *extraction);

/* Make the texts about the run, whose names are those of formats/extracted.h. MEMORY. */
GRADCMP_MUST_USE enum gradcmp_status
gcmp_extraction_texts(struct gcmp_extraction *extraction,
                      struct gcmp_extract_text texts[GCMP_EXTRACT_MAX_TEXTS], size_t *count,
                      struct gradcmp_error *error);

/* Give the elements of an item to `emit`, as they are to be written, in order. IO where it failed;
 * UNSUPPORTED where a finite one is infinite as float32; those of the engine. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_extraction_stream(struct gcmp_extraction *extraction,
                                                            const struct gcmp_extract_item *item,
                                                            struct gradcmp_error *error);

/* All items were given: warn of those that float32 is too narrow for. */
void gcmp_extraction_end(const struct gcmp_extraction *extraction);

#endif
