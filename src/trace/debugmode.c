/* Hash logs of PyTorch's DebugMode: the document that DebugMode.save_logs writes
 * (`rankR_stepS.json`, or one file of any name), or its calls one a line (`.jsonl`). A call has no
 * identity of its own: its type, name, module and depth are, with how often it came. */
#include <stdio.h>
#include <string.h>

#include "trace/layout.h"

enum { VERSION = 1 };

static bool is_one(const char *bytes, size_t length) {
    return gcmp_sniff_key(bytes, length, "call_depth") ||
           (gcmp_sniff_key(bytes, length, "format") &&
            memmem(bytes, length, "DebugMode", strlen("DebugMode")) != NULL);
}

static bool is_lines(const char *name) {
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

static bool place(const char *name, struct gcmp_place *out) {
    bool fine = gcmp_take_word(&name, "rank") && gcmp_take_digits(&name, &out->rank);
    out->iteration = -1;
    if (fine && gcmp_take_word(&name, "_step")) {
        fine = gcmp_take_digits(&name, &out->iteration);
    }
    return fine && (strcmp(name, ".json") == 0 || strcmp(name, ".jsonl") == 0);
}

static const char *container(const char *name) {
    return is_lines(name) ? NULL : "logs";
}

#define FAIL(...) GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame, __VA_ARGS__)

/* A member of the document beside its logs. */
static enum gradcmp_status read_header(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gradcmp_error *error) {
    const struct gcmp_jv *value = &reader->text.values[0];
    if (strcmp(frame->key, "format") == 0) {
        const char *format = value->kind == GCMP_JV_STRING ? value->of.text : NULL;
        if (format == NULL || strcmp(format, "torch.utils._debug_mode.DebugMode.logs") != 0) {
            FAIL("format \"%.60s\" is not that of DebugMode's logs", format == NULL ? "" : format);
        }
    } else if (strcmp(frame->key, "version") == 0) {
        int64_t version = value->kind == GCMP_JV_INTEGER && value->of.magnitude < 1000
                              ? (int64_t)value->of.magnitude
                              : -1;
        if (version != VERSION) {
            FAIL("version %lld of DebugMode's logs, only 1 is known", (long long)version);
        }
        reader->has_header = true;
    }
    return GRADCMP_OK;
}

/* ---- hashes */

/* What kinds of numbers a tree of hashes holds: norms are written as reals, XOR hashes as integers.
 */
struct hashes {
    bool has_real, has_integer;
};

static struct hashes look(const struct gcmp_jv_text *text, uint32_t at) {
    struct hashes found = {false, false};
    for (uint32_t i = at; at != GCMP_JV_ABSENT && i < text->values[at].next; i++) {
        const char *word = gcmp_jv_string(text, i);
        found.has_integer |= text->values[i].kind == GCMP_JV_INTEGER;
        found.has_real |= text->values[i].kind == GCMP_JV_REAL ||
                          (word != NULL && strcmp(word, "nonfinite_float") == 0);
    }
    return found;
}

/* The value of a key in a tagged dict: {"type":"dict","items":[["hash",VALUE],...]}. */
static uint32_t tagged_get(const struct gcmp_jv_text *text, uint32_t dict, const char *key) {
    uint32_t items = dict == GCMP_JV_ABSENT ? dict : gcmp_jv_get(text, dict, "items");
    if (!gcmp_jv_is(text, items, GCMP_JV_ARRAY)) {
        return GCMP_JV_ABSENT;
    }
    uint32_t at = gcmp_jv_first(items);
    for (uint32_t i = 0; i < text->values[items].count; i++, at = gcmp_jv_next(text, at)) {
        const char *word = NULL;
        if (gcmp_jv_is(text, at, GCMP_JV_ARRAY) && text->values[at].count == 2) {
            word = gcmp_jv_string(text, at + 1);
        }
        if (word != NULL && strcmp(word, key) == 0) {
            return gcmp_jv_next(text, at + 1);
        }
    }
    return GCMP_JV_ABSENT;
}

static enum gradcmp_status note_mode(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                     uint32_t hash, struct gradcmp_error *error) {
    struct hashes found = look(&reader->text, hash);
    if (found.has_integer && found.has_real) {
        return gcmp_reader_mode(reader, frame, "norm, hash_tensor", GCMP_STRENGTH_XOR, error);
    }
    if (found.has_integer) {
        return gcmp_reader_mode(reader, frame, "hash_tensor", GCMP_STRENGTH_XOR, error);
    }
    return found.has_real ? gcmp_reader_mode(reader, frame, "norm", GCMP_STRENGTH_STATISTICS, error)
                          : GRADCMP_OK;
}

/* ---- calls */

/* Keep the stack of modules: there is a record where one is entered, none where it is left, so what
 * stands at a depth is over once a call comes that is no deeper. */
static void enter_module(struct gcmp_reader *reader, int64_t depth, const char *tag) {
    unsigned level = depth < 1 ? 0 : (unsigned)depth - 1;
    if (level > reader->module_depth) {
        level = reader->module_depth;
    }
    if (level < GCMP_MODULE_DEPTH) {
        snprintf(reader->modules[level], GCMP_MODULE_BYTES, "%s", tag);
        reader->module_depth = level + 1;
    }
}

static const char *module_at(const struct gcmp_reader *reader, int64_t depth) {
    unsigned level = depth < 1                       ? 0
                     : depth - 1 > GCMP_MODULE_DEPTH ? GCMP_MODULE_DEPTH
                                                     : (unsigned)depth - 1;
    if (level > reader->module_depth) {
        level = reader->module_depth;
    }
    return level == 0 ? "" : reader->modules[level - 1];
}

static enum gradcmp_status check_line(const struct gcmp_reader *reader,
                                      const struct gcmp_frame *frame, struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    int64_t index;
    int64_t rank;
    int64_t step;
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "index"), &index) || index != reader->position) {
        FAIL("expected index %lld: calls are counted from 0 without gaps",
             (long long)reader->position);
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "rank"), &rank) || rank != reader->rank ||
        !gcmp_jv_count(text, gcmp_jv_get(text, 0, "step"), &step) ||
        (reader->iteration >= 0 && step != reader->iteration)) {
        FAIL("the call is not of the rank and step that the file's name says");
    }
    return GRADCMP_OK;
}

/* Read type, name and depth. */
static enum gradcmp_status read_call(const struct gcmp_reader *reader,
                                     const struct gcmp_frame *frame, struct gcmp_event *event,
                                     int64_t *depth, struct gradcmp_error *error) {
    static const char *const types[][2] = {{"op", "op_name"},
                                           {"annotate", "tag"},
                                           {"triton_kernel", "kernel_name"},
                                           {"redistribute", "arg"},
                                           {"output_placement", "placements_str"}};
    const struct gcmp_jv_text *text = &reader->text;
    event->type = gcmp_jv_string(text, gcmp_jv_get(text, 0, "type"));
    for (size_t i = 0; event->type != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(event->type, types[i][0]) == 0) {
            event->name = gcmp_jv_string(text, gcmp_jv_get(text, 0, types[i][1]));
            event->name = event->name == NULL && i >= 3 ? types[i][0] : event->name;
        }
    }
    if (event->name == NULL) {
        FAIL("a call of type \"%.40s\" without a name, or of a type that is not known",
             event->type == NULL ? "" : event->type);
    }
    if (!gcmp_jv_count(text, gcmp_jv_get(text, 0, "call_depth"), depth)) {
        FAIL("a call without call_depth");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status identify(struct gcmp_reader *reader, struct gcmp_event *event,
                                    int64_t depth, struct gradcmp_error *error) {
    struct gcmp_identity identity = {reader->seed, ~reader->seed};
    gcmp_identity_number(&identity, event->iteration);
    gcmp_identity_text(&identity, event->type);
    gcmp_identity_text(&identity, event->name);
    event->name_key = identity.low;
    int64_t *seen = gcmp_counter_at(&reader->names, event->name_key);
    if (seen == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    event->occurrence = ++*seen;
    snprintf(reader->id, sizeof reader->id, "%.600s:%lld", event->name,
             (long long)event->occurrence);
    event->id = reader->id;
    gcmp_identity_number(&identity, event->occurrence);
    event->giving = identity;
    gcmp_identity_text(&identity, event->module);
    gcmp_identity_number(&identity, depth);
    event->identity = identity;
    return GRADCMP_OK;
}

/* Find what went in and what came out. Arguments in words are no evidence: they hold addresses. */
static void read_hashes(struct gcmp_reader *reader, struct gcmp_event *event) {
    const struct gcmp_jv_text *text = &reader->text;
    uint32_t log = gcmp_jv_get(text, 0, "log");
    event->in[0] = tagged_get(text, log, "input_hash");
    event->in[1] = gcmp_jv_get(text, 0, "pre_hashes");
    event->out[0] = tagged_get(text, log, "hash");
    event->out[1] = gcmp_jv_get(text, 0, "post_hashes");
    uint32_t words = gcmp_jv_get(text, 0, "output_str");
    const char *output = gcmp_jv_string(text, words);
    if (output != NULL && strstr(output, "0x") == NULL) {
        event->out[2] = words;
    }
    struct hashes inputs = look(text, event->in[0]);
    struct hashes before = look(text, event->in[1]);
    if (inputs.has_integer || inputs.has_real || before.has_integer || before.has_real) {
        event->inputs = GCMP_INPUTS_SOME;
        reader->saw_inputs = true;
    } else if (event->in[0] != GCMP_JV_ABSENT || event->in[1] != GCMP_JV_ABSENT) {
        event->inputs = GCMP_INPUTS_NONE;
    }
}

static enum gradcmp_status read_record(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gcmp_event *event, bool *skip,
                                       struct gradcmp_error *error) {
    int64_t depth;
    *skip = !frame->is_item;
    if (*skip) {
        return read_header(reader, frame, error);
    }
    GCMP_TRY(read_call(reader, frame, event, &depth, error));
    if (frame->is_line) {
        GCMP_TRY(check_line(reader, frame, error));
    }
    event->kind = strcmp(event->type, "op") == 0 || strcmp(event->type, "triton_kernel") == 0
                      ? GCMP_EVENT_CALL
                      : GCMP_EVENT_MARK;
    event->iteration = reader->iteration;
    event->sequence = reader->position;
    event->module = module_at(reader, depth);
    const char *header = gcmp_jv_string(&reader->text, gcmp_jv_get(&reader->text, 0, "header"));
    if (strcmp(event->type, "annotate") == 0 && header != NULL && strcmp(header, "nn.Mod") == 0) {
        enter_module(reader, depth, event->name);
    }
    read_hashes(reader, event);
    event->is_collective = gcmp_is_collective_name(event->name);
    GCMP_TRY(note_mode(reader, frame, event->out[0], error));
    GCMP_TRY(note_mode(reader, frame, event->in[0], error));
    return identify(reader, event, depth, error);
}

const struct gcmp_trace_layout gcmp_layout_debugmode = {
    .name = "debugmode",
    .naming = "rank<digits>_step<digits>.json or .jsonl",
    .grain = GCMP_GRAIN_OPERATION,
    .is_stateful = true,
    .in_names = {"input_hash", "pre_hashes"},
    .out_names = {"hash", "post_hashes", "output_str"},
    .is_one = is_one,
    .place = place,
    .container = container,
    .read = read_record,
};
