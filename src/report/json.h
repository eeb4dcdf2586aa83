/* A JSON writer that streams. It is our own because a document tree (jansson's) would hold 100,000
 * parameters at once, has no unsigned 64-bit integers, and refuses names that are not UTF-8; the
 * tests read what it writes with jansson. */
#ifndef GCMP_REPORT_JSON_H
#define GCMP_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "report/out.h"

enum { GCMP_JSON_MAX_DEPTH = 10 };

struct gcmp_emitter {
    struct gcmp_out *out;
    unsigned depth;
    struct {
        bool is_block, has_items;
        char closing;
    } levels[GCMP_JSON_MAX_DEPTH]; /* levels[depth]: the container being written */
};

/* Everything below writes one value: with its key inside an object, with NULL inside an array or at
 * the top. */

/* Start an object or array: a block puts each item on a line of its own; everything inside a
 * container that is no block stays on one line. */
void gcmp_emit_open_object(struct gcmp_emitter *json, const char *key, bool is_block);
void gcmp_emit_open_array(struct gcmp_emitter *json, const char *key, bool is_block);
void gcmp_emit_close(struct gcmp_emitter *json);

/* A string; NULL gives null. A byte that is not part of valid UTF-8 is written as the four
 * characters \xNN, since JSON has no other way to tell it. */
void gcmp_emit_text(struct gcmp_emitter *json, const char *key, const char *value);
/* A number with 17 significant digits, from which the same binary64 is read back; the strings
 * "inf",
 * "-inf" and "nan" where it is not finite. */
void gcmp_emit_real(struct gcmp_emitter *json, const char *key, double value);
/* A figure of a report: as above, but NaN means that there is none: null. */
void gcmp_emit_figure(struct gcmp_emitter *json, const char *key, double value);
void gcmp_emit_integer(struct gcmp_emitter *json, const char *key, int64_t value);
void gcmp_emit_count(struct gcmp_emitter *json, const char *key, uint64_t value);
/* A count, where 0 means not known: null. */
void gcmp_emit_known(struct gcmp_emitter *json, const char *key, uint64_t value);
void gcmp_emit_bool(struct gcmp_emitter *json, const char *key, bool value);
void gcmp_emit_null(struct gcmp_emitter *json, const char *key);
/* [2, 3, 4] */
void gcmp_emit_sizes(struct gcmp_emitter *json, const char *key, const uint64_t *sizes,
                     size_t count);

#endif
