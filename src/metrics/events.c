/* TensorBoard event files. Sources: TensorFlow's record format (length, masked crc, data, masked
 * crc) and event.proto, summary.proto for the field numbers. */
#include "metrics/events.h"

#include <stdlib.h>
#include <string.h>

#include "metrics/crc32c.h"
#include "metrics/tensor.h"
#include "metrics/wire.h"

enum { WINDOW_BYTES = 1 << 20, HEADER_BYTES = 12, FOOTER_BYTES = 4 };

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8 };

static const char version_prefix[] = "brain.Event:";

/* A part of a file in memory that moves forward with the reading. */
struct window {
    struct gcmp_dir *dir;
    uint32_t file;
    uint64_t file_bytes, start_bytes;
    unsigned char *bytes;
    size_t held_bytes, capacity_bytes;
};

struct reader {
    struct window window;
    struct gcmp_metric_source *source;
    uint64_t record_offset_bytes;
    size_t record; /* index of the record being read */
    size_t other_tensors;
    struct gradcmp_error error; /* why the reading stopped, or a value is lost */
};

/* Point *out at `count` bytes of the file, which has them. */
static enum gradcmp_status window_get(struct window *window, uint64_t offset_bytes, size_t count,
                                      const unsigned char **out, struct gradcmp_error *error) {
    bool is_held = offset_bytes >= window->start_bytes &&
                   offset_bytes - window->start_bytes <= window->held_bytes &&
                   count <= window->held_bytes - (offset_bytes - window->start_bytes);
    if (!is_held) {
        uint64_t left = window->file_bytes - offset_bytes;
        size_t wanted = count > WINDOW_BYTES ? count : WINDOW_BYTES;
        wanted = wanted > left ? (size_t)left : wanted;
        if (wanted > window->capacity_bytes) {
            unsigned char *grown = realloc(window->bytes, wanted);
            if (grown == NULL) {
                GCMP_FAIL_MEMORY(error);
            }
            window->bytes = grown;
            window->capacity_bytes = wanted;
        }
        window->held_bytes = 0;
        GCMP_TRY(
            gcmp_dir_read(window->dir, window->file, offset_bytes, window->bytes, wanted, error));
        window->start_bytes = offset_bytes;
        window->held_bytes = wanted;
    }
    *out = window->bytes + (offset_bytes - window->start_bytes);
    return GRADCMP_OK;
}

#define DAMAGED(reader, code, offset, ...)                                                         \
    gcmp_error_set(&(reader)->error, (code),                                                       \
                   gcmp_dir_file_path((reader)->window.dir, (reader)->window.file), (offset),      \
                   __VA_ARGS__)

static enum gradcmp_status broken(struct reader *reader, uint64_t offset_bytes) {
    return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, offset_bytes,
                   "record %zu: its checksum is right, but it is no event message", reader->record);
}

/* Mark the source, or the part of it, as damaged; of several damages the first one is told. */
static void note_damage(struct reader *reader) {
    struct gcmp_metric_source *source = reader->source;
    bool *is_damaged = &source->is_damaged;
    struct gradcmp_error *damage = &source->damage;
    for (size_t i = 0; i < source->part_count && source->part != NULL; i++) {
        if (strcmp(source->parts[i].name, source->part) == 0) {
            is_damaged = &source->parts[i].is_damaged;
            damage = &source->parts[i].damage;
        }
    }
    gcmp_error_add_path(&reader->error,
                        gcmp_dir_file_path(reader->window.dir, reader->window.file));
    if (!*is_damaged) {
        *damage = reader->error;
        *is_damaged = true;
    }
    reader->error = (struct gradcmp_error){0};
}

/* Read a tensor into a point; *is_scalar false where it holds no single number, *is_lost where
 * it holds one that no point does, which damages the source and stops nothing. */
static enum gradcmp_status read_tensor(struct reader *reader, struct gcmp_cursor tensor,
                                       struct gcmp_metric_point *point, bool *is_scalar,
                                       bool *is_lost) {
    uint64_t dtype = 0, offset_bytes = gcmp_cursor_offset(&tensor);
    enum gcmp_tensor_kind kind = gcmp_tensor_read(tensor, point, &dtype);
    *is_scalar = kind == GCMP_TENSOR_SCALAR;
    *is_lost = kind == GCMP_TENSOR_UNKNOWN_TYPE || kind == GCMP_TENSOR_TOO_LARGE;
    if (kind == GCMP_TENSOR_UNKNOWN_TYPE) {
        (void)DAMAGED(reader, GRADCMP_ERROR_UNSUPPORTED, offset_bytes,
                      "record %zu: a scalar of TensorFlow's type %llu, which is not read",
                      reader->record, (unsigned long long)dtype);
    } else if (kind == GCMP_TENSOR_TOO_LARGE) {
        (void)DAMAGED(reader, GRADCMP_ERROR_UNSUPPORTED, offset_bytes,
                      "record %zu: a whole number past 2^53 that binary64 does not hold",
                      reader->record);
    }
    if (*is_lost) {
        note_damage(reader);
    }
    return kind == GCMP_TENSOR_BROKEN ? broken(reader, offset_bytes) : GRADCMP_OK;
}

/* Read one Summary.Value. */
static enum gradcmp_status read_value(struct reader *reader, struct gcmp_cursor value,
                                      int64_t step) {
    struct gcmp_wire_field field;
    struct gcmp_cursor tag = {0};
    struct gcmp_metric_point point = {.step = step};
    bool is_broken, is_scalar = false, is_lost = false;
    uint64_t offset_bytes = gcmp_cursor_offset(&value);
    while (gcmp_wire_next(&value, &field, &is_broken)) {
        if (field.number == VALUE_TAG && field.type == GCMP_WIRE_BYTES) {
            tag = field.inside;
        } else if (field.number == VALUE_SIMPLE && field.type == GCMP_WIRE_FIXED32) {
            is_scalar = true;
            point.value = gcmp_wire_float(field.integer);
            point.type = GCMP_METRIC_FLOAT32;
        } else if (field.number == VALUE_TENSOR && field.type == GCMP_WIRE_BYTES) {
            GCMP_TRY(read_tensor(reader, field.inside, &point, &is_scalar, &is_lost));
        }
    }
    if (is_broken) {
        return broken(reader, offset_bytes);
    }
    if (!is_scalar) {
        reader->other_tensors += !is_lost;
        return GRADCMP_OK;
    }
    if (tag.length_bytes == 0) {
        return broken(reader, offset_bytes);
    }
    return gcmp_metric_add(reader->source, (const char *)tag.bytes, tag.length_bytes, point,
                           &reader->error);
}

static enum gradcmp_status read_summary(struct reader *reader, struct gcmp_cursor summary,
                                        int64_t step) {
    struct gcmp_wire_field field;
    bool is_broken;
    uint64_t offset_bytes = gcmp_cursor_offset(&summary);
    while (gcmp_wire_next(&summary, &field, &is_broken)) {
        if (field.number == SUMMARY_VALUE && field.type == GCMP_WIRE_BYTES) {
            GCMP_TRY(read_value(reader, field.inside, step));
        }
    }
    return is_broken ? broken(reader, offset_bytes) : GRADCMP_OK;
}

static bool is_version(const struct gcmp_cursor *text) {
    size_t length = sizeof version_prefix - 1;
    return text->length_bytes >= length && memcmp(text->bytes, version_prefix, length) == 0;
}

/* Read an Event: the step may stand behind the summary, so it is looked for first. */
static enum gradcmp_status read_event(struct reader *reader, struct gcmp_cursor event) {
    struct gcmp_wire_field field;
    struct gcmp_cursor again = event;
    bool is_broken, has_version = false;
    uint64_t step = 0;
    while (gcmp_wire_next(&event, &field, &is_broken)) {
        if (field.number == EVENT_STEP && field.type == GCMP_WIRE_VARINT) {
            step = field.integer;
        } else if (field.number == EVENT_FILE_VERSION && field.type == GCMP_WIRE_BYTES) {
            has_version = is_version(&field.inside);
        }
    }
    if (is_broken) {
        return broken(reader, again.base_bytes);
    }
    if (reader->record == 0 && !has_version) {
        return DAMAGED(reader, GRADCMP_ERROR_UNSUPPORTED, 0,
                       "its first record does not say \"%sN\": records of something else than "
                       "TensorBoard events",
                       version_prefix);
    }
    while (gcmp_wire_next(&again, &field, &is_broken)) {
        if (field.number == EVENT_SUMMARY && field.type == GCMP_WIRE_BYTES) {
            GCMP_TRY(read_summary(reader, field.inside, (int64_t)step));
        }
    }
    return GRADCMP_OK;
}

/* Frame the record at `offset_bytes`, with its checksums. */
static enum gradcmp_status frame(struct reader *reader, uint64_t offset_bytes,
                                 struct gcmp_cursor *data) {
    struct window *window = &reader->window;
    uint64_t left = window->file_bytes - offset_bytes, length, crc;
    struct gradcmp_error *damage = &reader->error;
    const unsigned char *bytes;
    if (left < HEADER_BYTES) {
        return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, offset_bytes,
                       "record %zu is cut off: %d bytes of its header expected, %llu are left",
                       reader->record, HEADER_BYTES, (unsigned long long)left);
    }
    GCMP_TRY(window_get(window, offset_bytes, HEADER_BYTES, &bytes, damage));
    struct gcmp_cursor header = gcmp_cursor_make(bytes, HEADER_BYTES, offset_bytes);
    if (!gcmp_read_le(&header, 8, &length) || !gcmp_read_le(&header, 4, &crc) ||
        crc != gcmp_crc32c_masked(bytes, 8)) {
        return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, offset_bytes,
                       "record %zu: the checksum of its length is wrong", reader->record);
    }
    if (left - HEADER_BYTES < FOOTER_BYTES || length > left - HEADER_BYTES - FOOTER_BYTES) {
        return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, offset_bytes,
                       "record %zu is cut off: %llu bytes and a checksum expected, %llu are left",
                       reader->record, (unsigned long long)length,
                       (unsigned long long)(left - HEADER_BYTES));
    }
    if (length > GCMP_EVENTS_MAX_RECORD_BYTES) {
        return DAMAGED(reader, GRADCMP_ERROR_LIMIT, offset_bytes,
                       "record %zu has %llu bytes, more than %d MiB", reader->record,
                       (unsigned long long)length, GCMP_EVENTS_MAX_RECORD_BYTES >> 20);
    }
    uint64_t data_offset = offset_bytes + HEADER_BYTES;
    GCMP_TRY(window_get(window, data_offset, (size_t)length + FOOTER_BYTES, &bytes, damage));
    struct gcmp_cursor footer = gcmp_cursor_make(bytes + length, FOOTER_BYTES, 0);
    if (!gcmp_read_le(&footer, FOOTER_BYTES, &crc) ||
        crc != gcmp_crc32c_masked(bytes, (size_t)length)) {
        return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, offset_bytes,
                       "record %zu: the checksum of its %llu bytes is wrong", reader->record,
                       (unsigned long long)length);
    }
    *data = gcmp_cursor_make(bytes, (size_t)length, data_offset);
    return GRADCMP_OK;
}

static enum gradcmp_status read_records(struct reader *reader) {
    uint64_t offset_bytes = 0;
    if (reader->window.file_bytes == 0) {
        return DAMAGED(reader, GRADCMP_ERROR_CORRUPT, 0, "an empty file, not even a header");
    }
    while (offset_bytes < reader->window.file_bytes) {
        struct gcmp_cursor data;
        GCMP_TRY(frame(reader, offset_bytes, &data));
        GCMP_TRY(read_event(reader, data));
        offset_bytes += HEADER_BYTES + data.length_bytes + FOOTER_BYTES;
        reader->record++;
    }
    return GRADCMP_OK;
}

static struct reader open_reader(struct gcmp_dir *dir, uint32_t file,
                                 struct gcmp_metric_source *source) {
    struct reader reader = {.source = source};
    reader.window.dir = dir;
    reader.window.file = file;
    reader.window.file_bytes = gcmp_dir_file_bytes(dir, file);
    return reader;
}

enum gradcmp_status gcmp_events_read(struct gcmp_dir *dir, uint32_t file,
                                     struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    struct reader reader = open_reader(dir, file, source);
    enum gradcmp_status status = read_records(&reader);
    free(reader.window.bytes);
    source->file_count++;
    if (status != GRADCMP_OK) {
        if (status == GRADCMP_ERROR_MEMORY || status == GRADCMP_ERROR_IO) {
            gcmp_error_add_path(&reader.error, gcmp_dir_file_path(dir, file));
            if (error != NULL) {
                *error = reader.error;
            }
            return status;
        }
        note_damage(&reader);
    }
    if (reader.other_tensors > 0) {
        gcmp_metric_note(source, "%s: %zu summaries that are no scalars are left out",
                         gcmp_dir_file_name(dir, file), reader.other_tensors);
    }
    return GRADCMP_OK;
}

double gcmp_events_first_time(struct gcmp_dir *dir, uint32_t file) {
    struct gcmp_metric_source scratch = {0};
    struct reader reader = open_reader(dir, file, &scratch);
    struct gcmp_cursor data;
    double time = 0;
    bool is_broken;
    if (frame(&reader, 0, &data) == GRADCMP_OK) {
        struct gcmp_wire_field field;
        while (gcmp_wire_next(&data, &field, &is_broken)) {
            if (field.number == EVENT_WALL_TIME && field.type == GCMP_WIRE_FIXED64) {
                time = gcmp_wire_double(field.integer);
            }
        }
    }
    free(reader.window.bytes);
    return time;
}

bool gcmp_events_probe(const unsigned char *bytes, size_t length_bytes) {
    uint64_t crc;
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, length_bytes, 0);
    return gcmp_skip(&cursor, 8) && gcmp_read_le(&cursor, 4, &crc) &&
           crc == gcmp_crc32c_masked(bytes, 8);
}
