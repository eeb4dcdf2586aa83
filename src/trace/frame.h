/* The records of a trace's file, one after the other: lines of JSON, or the items of one container
 * in a JSON document. Holds one record at a time. */
#ifndef GCMP_TRACE_FRAME_H
#define GCMP_TRACE_FRAME_H

#include "base/dir.h"

enum { GCMP_FRAME_MAX_BYTES = 16 << 20 }; /* of one record */

struct gcmp_frame {
    char *bytes; /* may be written to */
    size_t length_bytes;
    uint64_t line; /* where it begins, from 1 */
    const char
        *key;     /* of a member of an object, as written; NULL for an item of an array or a line */
    bool is_item; /* in the container; else a member of the document beside it */
    bool is_line, is_ended; /* is_ended: the line's newline is there */
};

struct gcmp_framer {
    struct gcmp_dir *dir;
    uint32_t file;
    const char *container; /* key of the document's array or object of records; NULL: lines */
    uint64_t read_bytes, line;
    char *buffer;
    size_t capacity, begin, end;
    enum { FRAME_START, FRAME_MEMBERS, FRAME_ITEMS, FRAME_DONE } state;
    char closing;     /* of the container that is being read */
    bool needs_comma; /* an item stands before */
    char key[512];
};

/* Start reading a registered file. Nothing is owned until the first gcmp_framer_next. */
void gcmp_framer_start(struct gcmp_framer *framer, struct gcmp_dir *dir, uint32_t file,
                       const char *container);
/* Release; may be called again. */
void gcmp_framer_end(struct gcmp_framer *framer);

/* Get the next record; *done is true behind the last. It is valid until the next call. CORRUPT,
 * with "line N: ..." in the message, where a document is none; LIMIT for a record of more than
 * GCMP_FRAME_MAX_BYTES. */
GRADCMP_MUST_USE enum gradcmp_status gcmp_framer_next(struct gcmp_framer *framer,
                                                      struct gcmp_frame *frame, bool *done,
                                                      struct gradcmp_error *error);

#endif
