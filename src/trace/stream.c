/* The events of one rank. */
#include "trace/stream.h"

#include <stdio.h>
#include <string.h>

enum { PROGRESS_RECORDS = 4096 };

bool gcmp_stream_range(const struct gcmp_trace_files *files, int64_t rank, size_t *first,
                       size_t *end) {
    size_t low = 0;
    for (size_t high = files->count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (files->files[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *first = *end = low;
    while (*end < files->count && files->files[*end].rank == rank) {
        (*end)++;
    }
    return *end > *first;
}

enum gradcmp_status gcmp_stream_start(struct gcmp_stream *stream, struct gcmp_trace_run *run,
                                      const struct gcmp_trace_files *files, int64_t rank,
                                      struct gradcmp_error *error) {
    memset(stream, 0, sizeof *stream);
    stream->run = run;
    stream->files = files;
    stream->last_sequence = -1;
    stream->reader.layout = files->layout;
    stream->reader.rank = rank;
    stream->reader.seed = run->seed;
    if (!gcmp_stream_range(files, rank, &stream->at, &stream->end)) {
        stream->is_done = true;
    }
    if (!gcmp_jv_init(&stream->reader.text, files->layout == &gcmp_layout_msprobe)) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

void gcmp_stream_end(struct gcmp_stream *stream) {
    gcmp_framer_end(&stream->framer);
    gcmp_jv_release(&stream->reader.text);
    gcmp_counter_free(&stream->reader.names);
    gcmp_repeats_free(&stream->repeats);
}

const char *gcmp_stream_path(const struct gcmp_stream *stream) {
    size_t at = stream->at < stream->end ? stream->at : stream->end - 1;
    return stream->end == 0 ? ""
                            : gcmp_dir_file_path(stream->files->dir, stream->files->files[at].file);
}

static void open_file(struct gcmp_stream *stream) {
    const struct gcmp_trace_file *file = &stream->files->files[stream->at];
    gcmp_framer_start(&stream->framer, stream->files->dir, file->file,
                      stream->files->layout->container(file->name));
    stream->reader.iteration = file->iteration;
    stream->reader.position = 0;
    stream->reader.has_header = false;
    stream->reader.module_depth = 0;
    gcmp_counter_clear(&stream->reader.names);
    gcmp_repeats_clear(&stream->repeats);
    stream->last_sequence = -1;
    stream->is_open = true;
}

/* At a file's end: it must have said what it is, and held something. */
static enum gradcmp_status close_file(struct gcmp_stream *stream, struct gradcmp_error *error) {
    if (stream->reader.position == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "holds no record");
    }
    if (stream->framer.container != NULL && !stream->reader.has_header) {
        GCMP_FAIL(error, GRADCMP_ERROR_CORRUPT, "the document does not say what it is (%s)",
                  stream->files->layout == &gcmp_layout_msprobe ? "no \"task\"" : "no \"version\"");
    }
    gcmp_framer_end(&stream->framer);
    stream->is_open = false;
    stream->at++;
    stream->is_done = stream->at == stream->end;
    return GRADCMP_OK;
}

static enum gradcmp_status parse_text(struct gcmp_stream *stream, struct gradcmp_error *error) {
    struct gcmp_jv_text *text = &stream->reader.text;
    const struct gcmp_frame *frame = &stream->frame;
    if (!gcmp_jv_parse(text, frame->bytes, frame->length_bytes)) {
        uint64_t line = frame->line + text->fault_line;
        bool is_cut = text->is_cut && frame->is_line && !frame->is_ended;
        return gcmp_failure(gcmp_record_fill(
            error, GRADCMP_ERROR_CORRUPT, line,
            is_cut ? "the file ends inside this record (%s)" : "no JSON record: %s", text->fault));
    }
    if (stream->frame.is_item && text->values[0].kind != GCMP_JV_OBJECT) {
        GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, frame, "the record is no JSON object");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_event(struct gcmp_stream *stream, bool *skip,
                                      struct gradcmp_error *error) {
    memset(&stream->event, 0, sizeof stream->event);
    stream->event.iteration = stream->event.microbatch = stream->event.sequence = -1;
    GCMP_TRY(parse_text(stream, error));
    return stream->files->layout->read(&stream->reader, &stream->frame, &stream->event, skip,
                                       error);
}

static enum gradcmp_status tell_progress(struct gcmp_stream *stream, struct gradcmp_error *error) {
    struct gcmp_trace_run *run = stream->run;
    if (run->progress != NULL && stream->records % PROGRESS_RECORDS == 0 &&
        run->progress(run->progress_user,
                      run->done_bytes < run->total_bytes ? run->done_bytes : run->total_bytes,
                      run->total_bytes) != 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_CANCELLED, "cancelled");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status fetch(struct gcmp_stream *stream, struct gradcmp_error *error) {
    while (!stream->is_done) {
        bool done;
        if (!stream->is_open) {
            open_file(stream);
        }
        GCMP_TRY(gcmp_framer_next(&stream->framer, &stream->frame, &done, error));
        if (done) {
            GCMP_TRY(close_file(stream, error));
            continue;
        }
        stream->run->done_bytes += stream->is_unchecked ? 0 : stream->frame.length_bytes + 1;
        if (stream->frame.is_item) {
            return tell_progress(stream, error);
        }
        bool skip;
        GCMP_TRY(read_event(stream, &skip, error));
    }
    return GRADCMP_OK;
}

/* Check what an event says of its place in the file. */
static enum gradcmp_status check_place(struct gcmp_stream *stream, struct gradcmp_error *error) {
    const struct gcmp_event *event = &stream->event;
    stream->reader.position++;
    stream->records++;
    if (stream->is_unchecked) {
        return GRADCMP_OK;
    }
    if (event->sequence >= 0 && event->sequence <= stream->last_sequence) {
        GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, &stream->frame,
                         "sequence %lld behind %lld: it must rise", (long long)event->sequence,
                         (long long)stream->last_sequence);
    }
    stream->last_sequence = event->sequence;
    bool repeated = false;
    int64_t occurrence = event->occurrence - stream->files->layout->first_occurrence;
    if (event->repeat_key != 0) {
        GCMP_TRY(gcmp_repeats_add(&stream->repeats, event->repeat_key, event->iteration, occurrence,
                                  &repeated, error));
    }
    if (repeated) {
        GCMP_RECORD_FAIL(error, GRADCMP_ERROR_CORRUPT, &stream->frame,
                         "a second record of one identity (%.200s)",
                         event->id != NULL ? event->id : event->name);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status with_path(const struct gcmp_stream *stream, enum gradcmp_status status,
                                     struct gradcmp_error *error) {
    if (status != GRADCMP_OK) {
        gcmp_error_add_path(error, gcmp_stream_path(stream));
    }
    return status;
}

enum gradcmp_status gcmp_stream_fetch(struct gcmp_stream *stream, struct gradcmp_error *error) {
    return with_path(stream, fetch(stream, error), error);
}

static enum gradcmp_status parse(struct gcmp_stream *stream, struct gradcmp_error *error) {
    bool skip;
    GCMP_TRY(read_event(stream, &skip, error));
    return check_place(stream, error);
}

enum gradcmp_status gcmp_stream_parse(struct gcmp_stream *stream, struct gradcmp_error *error) {
    return with_path(stream, parse(stream, error), error);
}

enum gradcmp_status gcmp_stream_adopt(struct gcmp_stream *stream, const struct gcmp_stream *twin,
                                      struct gradcmp_error *error) {
    struct gcmp_reader *reader = &stream->reader;
    stream->event = twin->event;
    reader->saw_inputs |= twin->reader.saw_inputs;
    reader->saw_skipped |= twin->reader.saw_skipped;
    enum gradcmp_status status = GRADCMP_OK;
    if (twin->reader.mode[0] != '\0') {
        status = gcmp_reader_mode(reader, &stream->frame, twin->reader.mode, twin->reader.strength,
                                  error);
    }
    if (status == GRADCMP_OK) {
        status = check_place(stream, error);
    }
    return with_path(stream, status, error);
}
