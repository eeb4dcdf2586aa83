/* Statistics and checksums of msprobe: `stepS/rankR/dump.json` (`procPID` in place of `rankR` where
 * the run was not distributed). The order of the keys of "data" is the order of execution; a module
 * stands where its forward ended, so behind what it called. */
#include <stdio.h>
#include <string.h>

#include "trace/layout.h"

static bool is_one(const char *bytes, size_t length) {
    return gcmp_sniff_key(bytes, length, "dump_data_dir") ||
           (gcmp_sniff_key(bytes, length, "task") && gcmp_sniff_key(bytes, length, "data"));
}

/* A process number differs from run to run, so it counts as rank 0; that only one is there is
 * checked where files are gathered. */
static bool place(const char *name, struct gcmp_place *out) {
    out->iteration = -1;
    out->rank = 0;
    if (strncmp(name, "step", 4) == 0) {
        name += 4;
        if (!gcmp_take_digits(&name, &out->iteration) || *name++ != '/') {
            return false;
        }
    }
    int64_t process;
    bool fine = strncmp(name, "rank/", 5) == 0  ? (name += 4, true)
                : strncmp(name, "rank", 4) == 0 ? (name += 4, gcmp_take_digits(&name, &out->rank))
                : strncmp(name, "proc", 4) == 0 ? (name += 4, gcmp_take_digits(&name, &process))
                                                : true;
    name += fine && *name == '/';
    return fine && strcmp(name, "dump.json") == 0;
}

static const char *container(const char *name) {
    (void)name;
    return "data";
}

#define FAIL(...) GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame, __VA_ARGS__)

/* A member of the document beside its data. */
static enum gradcmp_status read_header(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gradcmp_error *error) {
    const struct gcmp_jv *value = &reader->text.values[0];
    const char *word = value->kind == GCMP_JV_STRING ? value->of.text : NULL;
    if (strcmp(frame->key, "task") == 0) {
        if (word == NULL || (strcmp(word, "statistics") != 0 && strcmp(word, "tensor") != 0)) {
            FAIL("task \"%.40s\", known are statistics and tensor", word == NULL ? "" : word);
        }
        reader->has_header = true;
    } else if (strcmp(frame->key, "level") == 0) {
        if (word == NULL || strlen(word) >= sizeof reader->selection) {
            FAIL("a level that is none");
        }
        snprintf(reader->selection, sizeof reader->selection, "level %.20s", word);
    }
    return GRADCMP_OK;
}

/* ---- names */

/* Find the last part of a dotted name that ends at `end`. */
static const char *last_part(const char *name, const char *end) {
    while (end > name && end[-1] != '.') {
        end--;
    }
    return end;
}

static void copy_part(char *to, size_t capacity, const char *from, const char *end) {
    size_t length = end > from ? (size_t)(end - from) : 0;
    snprintf(to, capacity, "%.*s", (int)(length < capacity ? length : capacity - 1), from);
}

static const char *phase_named(const char *part) {
    return strncmp(part, "forward", 7) == 0            ? "forward"
           : strncmp(part, "backward", 8) == 0         ? "backward"
           : strncmp(part, "parameters_grad", 15) == 0 ? "backward"
                                                       : NULL;
}

/* Take "Functional.linear.3.forward" or "Module.decoder.layers.0.Layer.forward.1" apart. */
static void read_name(struct gcmp_reader *reader, struct gcmp_event *event) {
    const char *key = event->id;
    const char *end = key + strlen(key);
    const char *last = last_part(key, end);
    const char *before = last > key ? last_part(key, last - 1) : key;
    bool is_module = *last >= '0' && *last <= '9';
    const char *count = is_module ? last : before;
    const char *digits = count;
    event->phase = phase_named(is_module ? before : last);
    if (event->phase == NULL || !gcmp_take_digits(&digits, &event->occurrence) ||
        (*digits != '.' && *digits != '\0')) {
        event->occurrence = 0;
        event->name = key; /* of a kind that we have not seen: the whole key tells */
        return;
    }
    copy_part(reader->name, sizeof reader->name, key, count - 1);
    size_t used = strlen(reader->name);
    if (!is_module) {
        snprintf(reader->name + used, sizeof reader->name - used, ".%s", last);
    }
    event->name = reader->name;
    if (is_module && strncmp(key, "Module.", 7) == 0 && before > key + 8) {
        const char *class_name = last_part(key, before - 1);
        copy_part(reader->module, sizeof reader->module, key + 7, class_name - 1);
        event->module = reader->module;
    }
}

/* ---- tensors */

static bool is_tensor(const struct gcmp_jv_text *text, uint32_t at) {
    return text->values[at].kind == GCMP_JV_OBJECT &&
           gcmp_jv_get(text, at, "dtype") != GCMP_JV_ABSENT &&
           gcmp_jv_get(text, at, "shape") != GCMP_JV_ABSENT;
}

static bool has_tensor(const struct gcmp_jv_text *text, uint32_t at) {
    for (uint32_t i = at; at != GCMP_JV_ABSENT && i < text->values[at].next; i++) {
        if (is_tensor(text, i)) {
            return true;
        }
    }
    return false;
}

/* A tensor whose fingerprint is null. */
static bool has_bare_tensor(const struct gcmp_jv_text *text, uint32_t at) {
    for (uint32_t i = at; at != GCMP_JV_ABSENT && i < text->values[at].next; i++) {
        if (is_tensor(text, i) && gcmp_jv_is(text, gcmp_jv_get(text, i, "md5"), GCMP_JV_NULL)) {
            return true;
        }
    }
    return false;
}

/* True where some statistic of a tensor is there. */
static bool has_statistics(const struct gcmp_jv_text *text, uint32_t tensor) {
    static const char *const names[] = {"Max", "Min", "Mean", "Norm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t at = gcmp_jv_get(text, tensor, names[i]);
        if (at != GCMP_JV_ABSENT && !gcmp_jv_is(text, at, GCMP_JV_NULL)) {
            return true;
        }
    }
    return false;
}

static bool is_empty(const struct gcmp_jv_text *text, uint32_t tensor) {
    uint32_t shape = gcmp_jv_get(text, tensor, "shape");
    for (uint32_t i = shape + 1; i < text->values[shape].next; i++) {
        if (text->values[i].kind == GCMP_JV_INTEGER && text->values[i].of.magnitude == 0) {
            return true;
        }
    }
    return false;
}

/* Take note of how each tensor is fingerprinted: "md5" is a CRC-32 in truth, "0x..." an XOR of
 * words. A tensor without elements has no fingerprint, and with XOR a
 * tensor without dimensions has its value in place of one. */
static enum gradcmp_status note_modes(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                      struct gradcmp_error *error) {
    const struct gcmp_jv_text *text = &reader->text;
    for (uint32_t i = 0; i < text->count; i++) {
        if (!is_tensor(text, i) || is_empty(text, i)) {
            continue;
        }
        uint32_t at = gcmp_jv_get(text, i, "md5");
        const char *digest = gcmp_jv_string(text, at);
        bool is_null = gcmp_jv_is(text, at, GCMP_JV_NULL);
        if (is_null || gcmp_jv_is(text, at, GCMP_JV_REAL) ||
            gcmp_jv_is(text, at, GCMP_JV_INTEGER)) {
            reader->saw_skipped |= is_null && !has_statistics(text, i);
            continue;
        }
        if (at != GCMP_JV_ABSENT && digest == NULL) {
            FAIL("a tensor whose md5 is no text");
        }
        if (digest == NULL && !has_statistics(text, i)) {
            reader->saw_skipped = true;
            continue;
        }
        bool is_xor = digest != NULL && strncmp(digest, "0x", 2) == 0;
        GCMP_TRY(gcmp_reader_mode(reader, frame,
                                  digest == NULL ? "statistics"
                                  : is_xor       ? "xor"
                                                 : "md5",
                                  digest == NULL ? GCMP_STRENGTH_STATISTICS
                                  : is_xor       ? GCMP_STRENGTH_XOR
                                                 : GCMP_STRENGTH_CHECKSUM,
                                  error));
    }
    return GRADCMP_OK;
}

/* ---- the record */

static void identify(struct gcmp_reader *reader, struct gcmp_event *event) {
    struct gcmp_identity identity = {reader->seed, ~reader->seed};
    gcmp_identity_number(&identity, event->iteration);
    gcmp_identity_text(&identity, event->name);
    event->name_key = identity.low;
    event->repeat_key = identity.low;
    gcmp_identity_text(&identity, event->id);
    event->identity = identity;
    event->giving = identity;
}

static const char *const known[] = {"input_args", "input_kwargs", "input", "parameters",
                                    "output",     "is_recompute", NULL};

static void find_slots(struct gcmp_reader *reader, struct gcmp_event *event) {
    const struct gcmp_jv_text *text = &reader->text;
    for (int i = 0; i < GCMP_EVENT_SLOTS; i++) {
        event->in[i] = gcmp_jv_get(text, 0, known[i]);
    }
    event->out[0] = gcmp_jv_get(text, 0, "output");
    bool has_any = false;
    bool is_known = false;
    for (int i = 0; i < GCMP_EVENT_SLOTS; i++) {
        has_any |= has_tensor(text, event->in[i]);
        event->has_skipped |= has_bare_tensor(text, event->in[i]);
        is_known |= i != 3 && event->in[i] != GCMP_JV_ABSENT;
    }
    event->inputs = has_any ? GCMP_INPUTS_SOME : is_known ? GCMP_INPUTS_NONE : GCMP_INPUTS_UNKNOWN;
    reader->saw_inputs |= has_any;
    event->has_arguments = true; /* members of the record that are not known, gradients too */
}

static enum gradcmp_status read_record(struct gcmp_reader *reader, const struct gcmp_frame *frame,
                                       struct gcmp_event *event, bool *skip,
                                       struct gradcmp_error *error) {
    *skip = !frame->is_item;
    if (*skip) {
        return read_header(reader, frame, error);
    }
    if (frame->key == NULL || reader->text.values[0].kind != GCMP_JV_OBJECT) {
        FAIL("\"data\" is no object of objects");
    }
    event->kind = GCMP_EVENT_CALL;
    event->type = "api";
    event->id = frame->key;
    event->iteration = reader->iteration;
    event->sequence = reader->position;
    event->is_collective = strncmp(event->id, "Distributed.", 12) == 0;
    read_name(reader, event);
    find_slots(reader, event);
    identify(reader, event);
    return note_modes(reader, frame, error);
}

const struct gcmp_trace_layout gcmp_layout_msprobe = {
    .name = "msprobe",
    .naming = "[step<digits>/][rank<digits>/]dump.json",
    .grain = GCMP_GRAIN_API,
    .known = known,
    .in_names = {"input_args", "input_kwargs", "input", "parameters"},
    .out_names = {"output"},
    .is_one = is_one,
    .place = place,
    .container = container,
    .read = read_record,
};
