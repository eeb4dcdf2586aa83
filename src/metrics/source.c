/* Opens one side of the comparison. */
#include "metrics/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/utf8.h"
#include "metrics/events.h"
#include "metrics/text_source.h"

enum { MAX_ENTRIES = 100000, PROBE_BYTES = 64 };
#define MAX_TEXT_BYTES ((uint64_t)1 << 30)

/* An event file and the time in its name, by which restarts are ordered. */
struct event_file {
    const char *name;
    double time;
    uint32_t file;
    const char *part; /* of the source; NULL: of the run's own folder */
};

struct folder {
    struct gcmp_dir *dir;
    struct gcmp_metric_source *source;
    struct gradcmp_error *error;
    struct event_file *files;
    size_t file_count;
    const char *part;          /* that files are gathered of */
    const char *closed, *deep; /* the first entry that cannot be opened, the first folder two levels
                                  down that has event files; NULL: none */
};

const char *gcmp_metric_kind_name(enum gcmp_metric_kind kind) {
    static const char *const names[] = {[GCMP_METRIC_EVENTS] = "TensorBoard events",
                                        [GCMP_METRIC_GOLDEN] = "golden values",
                                        [GCMP_METRIC_LOG] = "training log",
                                        [GCMP_METRIC_CSV] = "CSV"};
    return kind >= GCMP_METRIC_EVENTS && kind <= GCMP_METRIC_CSV ? names[kind] : "unread";
}

static bool is_event_name(const char *name) {
    return strstr(name, "tfevents") != NULL;
}

static int by_time(const void *one, const void *two) {
    const struct event_file *a = one, *b = two;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* Seconds since 1970, from "events.out.tfevents.SECONDS.host.pid.n". */
static double time_in_name(const char *name) {
    const char *at = strstr(name, "tfevents.");
    at = at == NULL ? "" : at + strlen("tfevents.");
    size_t digits = strspn(at, "0123456789");
    return digits == 0 || digits > 15 ? 0 : strtod(at, NULL);
}

static enum gradcmp_status add_event_file(struct folder *folder, const char *name) {
    struct event_file *files =
        reallocarray(folder->files, folder->file_count + 1, sizeof *folder->files);
    if (files == NULL) {
        GCMP_FAIL_MEMORY(folder->error);
    }
    folder->files = files;
    struct event_file *file = &files[folder->file_count];
    GCMP_TRY(gcmp_dir_add(folder->dir, name, strlen(name), &file->file, folder->error));
    file->name = gcmp_dir_file_name(folder->dir, file->file);
    file->time = time_in_name(name);
    file->part = folder->part;
    if (file->time == 0) {
        file->time = gcmp_events_first_time(folder->dir, file->file);
    }
    folder->file_count++;
    return GRADCMP_OK;
}

/* True for a folder in which a name is an event file's. */
static bool has_events(struct folder *folder, const char *path) {
    char **names;
    size_t count;
    bool found = false;
    if (gcmp_dir_list(folder->dir, path, MAX_ENTRIES, &names, &count, NULL) != GRADCMP_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        found = found || is_event_name(names[i]);
    }
    gcmp_dir_free_names(names, count);
    return found;
}

/* Take an event file. Of a part, what is closed, empty or deeper is only told. */
static enum gradcmp_status take_entry(struct folder *folder, const char *path, bool is_event) {
    if (!is_event && folder->part == NULL) {
        return GRADCMP_OK;
    }
    enum gcmp_dir_kind kind = gcmp_dir_kind(folder->dir, path);
    if (kind == GCMP_DIR_FOLDER) {
        bool is_deep = folder->part != NULL && folder->deep == NULL && has_events(folder, path);
        folder->deep = is_deep ? path : folder->deep;
        return GRADCMP_OK;
    }
    if (folder->part != NULL && kind != GCMP_DIR_FILE) {
        folder->closed = folder->closed == NULL && is_event ? path : folder->closed;
        return GRADCMP_OK;
    }
    return is_event ? add_event_file(folder, path) : GRADCMP_OK;
}

/* Gather the event files that lie in a folder below the path ("" for itself). */
static enum gradcmp_status gather(struct folder *folder, const char *below) {
    char **names;
    size_t count;
    GCMP_TRY(gcmp_dir_list(folder->dir, below, MAX_ENTRIES, &names, &count, folder->error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        char *path = gcmp_arena_format(folder->source->arena, "%s%s%s", below,
                                       below[0] == '\0' ? "" : "/", names[i]);
        if (path == NULL) {
            status = gcmp_error_set(folder->error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        } else {
            status = take_entry(folder, path, is_event_name(names[i]));
        }
    }
    gcmp_dir_free_names(names, count);
    return status;
}

/* Find the one folder below the path with event files, *run; two are two runs. */
static enum gradcmp_status gather_below(struct folder *folder, const char **run) {
    char **names;
    size_t count, held = 0;
    char *first = NULL;
    GCMP_TRY(gcmp_dir_list(folder->dir, "", MAX_ENTRIES, &names, &count, folder->error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        if (gcmp_dir_kind(folder->dir, names[i]) != GCMP_DIR_FOLDER) {
            continue;
        }
        status = gather(folder, names[i]);
        if (folder->file_count > held && first != NULL) {
            status = gcmp_error_set(
                folder->error, GRADCMP_ERROR_USAGE, gcmp_dir_path(folder->dir), GRADCMP_NO_OFFSET,
                "event files in several folders, so several runs: name one (%.100s, %.100s, ...)",
                first, names[i]);
        } else if (folder->file_count > held) {
            first = names[i];
            held = folder->file_count;
        }
    }
    if (status == GRADCMP_OK && first != NULL) {
        *run = gcmp_arena_dup(folder->source->arena, first);
    }
    gcmp_dir_free_names(names, count);
    if (*run == NULL) {
        GCMP_FAIL_MEMORY(folder->error);
    }
    return status;
}

/* Gather the event files of one folder in the run's own; a part of the run where there are some. */
static enum gradcmp_status gather_part(struct folder *folder, const char *run, const char *name) {
    struct gcmp_metric_source *source = folder->source;
    size_t held = folder->file_count;
    const char *path =
        gcmp_arena_format(source->arena, "%s%s%s", run, run[0] == '\0' ? "" : "/", name);
    folder->part = gcmp_arena_dup(source->arena, name);
    if (path == NULL || folder->part == NULL) {
        GCMP_FAIL_MEMORY(folder->error);
    }
    enum gcmp_dir_kind kind = name[0] == '.' ? GCMP_DIR_ABSENT : gcmp_dir_kind(folder->dir, path);
    if (kind != GCMP_DIR_FOLDER) {
        folder->closed = kind == GCMP_DIR_OTHER && folder->closed == NULL ? path : folder->closed;
        return GRADCMP_OK;
    }
    GCMP_TRY(gather(folder, path));
    if (folder->file_count == held) {
        return GRADCMP_OK;
    }
    if (!gcmp_arena_grow(source->arena, &source->parts, source->part_count, &source->part_capacity,
                         sizeof *source->parts)) {
        GCMP_FAIL_MEMORY(folder->error);
    }
    source->parts[source->part_count++] = (struct gcmp_metric_part){.name = folder->part};
    return GRADCMP_OK;
}

static enum gradcmp_status gather_parts(struct folder *folder, const char *run) {
    char **names;
    size_t count;
    GCMP_TRY(gcmp_dir_list(folder->dir, run, MAX_ENTRIES, &names, &count, folder->error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        status = gather_part(folder, run, names[i]);
    }
    folder->part = NULL;
    gcmp_dir_free_names(names, count);
    if (folder->closed != NULL) {
        gcmp_metric_note(folder->source,
                         "%.200s leads out of %.200s or cannot be read: event files there are not "
                         "judged",
                         folder->closed, gcmp_dir_path(folder->dir));
    }
    if (folder->deep != NULL) {
        gcmp_metric_note(folder->source,
                         "event files in %.200s, two levels below the run, are not judged; name "
                         "the folder by itself",
                         folder->deep);
    }
    return status;
}

static enum gradcmp_status read_files(struct folder *folder) {
    qsort(folder->files, folder->file_count, sizeof *folder->files, by_time);
    for (size_t i = 0; i < folder->file_count; i++) {
        const struct event_file *file = &folder->files[i];
        folder->source->part = file->part;
        if (file->part != NULL && gcmp_dir_file_bytes(folder->dir, file->file) == 0) {
            gcmp_metric_note(folder->source, "%.200s is empty", file->name);
            continue;
        }
        GCMP_TRY(gcmp_events_read(folder->dir, file->file, folder->source, folder->error));
    }
    folder->source->part = NULL;
    return GRADCMP_OK;
}

static enum gradcmp_status read_folder(struct gcmp_dir *dir, struct gcmp_metric_source *source,
                                       struct gradcmp_error *error) {
    struct folder folder = {.dir = dir, .source = source, .error = error};
    const char *run = "";
    enum gradcmp_status status = gather(&folder, run);
    if (status == GRADCMP_OK && folder.file_count == 0) {
        status = gather_below(&folder, &run);
    }
    if (status == GRADCMP_OK && folder.file_count == 0) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                           "a folder without TensorBoard event files (*tfevents*); golden "
                           "values, logs and CSV are named as files");
    }
    if (status == GRADCMP_OK) {
        status = gather_parts(&folder, run);
    }
    if (status == GRADCMP_OK) {
        source->kind = GCMP_METRIC_EVENTS;
        status = read_files(&folder);
    }
    free(folder.files);
    return status;
}

/* Text of a file that is none of the kinds: what it might be instead. */
static enum gradcmp_status refuse_text(const struct gcmp_metric_text *text,
                                       struct gradcmp_error *error) {
    static const char pointer[] = "version https://git-lfs";
    if (text->length_bytes == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, 0, "an empty file");
    }
    if (strncmp(text->bytes, pointer, sizeof pointer - 1) == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, text->path, 0,
                     "line 1: a pointer of Git LFS in place of the file (git lfs pull fetches it)");
    }
    GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, text->path, GRADCMP_NO_OFFSET,
                 "no metrics: neither TensorBoard events, golden values (JSON), a log with "
                 "iteration lines, nor CSV with a column step or iteration");
}

static enum gradcmp_status read_text(const struct gcmp_metric_text *text,
                                     struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    size_t mark = gcmp_utf8_mark_bytes(text->bytes, text->length_bytes);
    const char *start = text->bytes + mark;
    source->file_count = 1;
    if (start[strspn(start, " \t\r\n")] == '{') {
        struct gcmp_metric_text unmarked = {text->path, start, text->length_bytes - mark};
        source->kind = GCMP_METRIC_GOLDEN;
        enum gradcmp_status status = gcmp_golden_read(&unmarked, source, error);
        if (status != GRADCMP_OK && error != NULL && error->offset_bytes != GRADCMP_NO_OFFSET) {
            error->offset_bytes += mark;
        }
        return status;
    }
    if (gcmp_log_probe(text)) {
        source->kind = GCMP_METRIC_LOG;
        return gcmp_log_read(text, source, error);
    }
    if (gcmp_csv_probe(text)) {
        source->kind = GCMP_METRIC_CSV;
        return gcmp_csv_read(text, source, error);
    }
    return refuse_text(text, error);
}

static enum gradcmp_status read_file(struct gcmp_dir *dir, const char *name,
                                     struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    uint32_t file;
    unsigned char head[PROBE_BYTES];
    GCMP_TRY(gcmp_dir_add(dir, name, strlen(name), &file, error));
    uint64_t size = gcmp_dir_file_bytes(dir, file);
    size_t count = size < sizeof head ? (size_t)size : sizeof head;
    GCMP_TRY(gcmp_dir_read(dir, file, 0, head, count, error));
    if (is_event_name(name) || gcmp_events_probe(head, count)) {
        source->kind = GCMP_METRIC_EVENTS;
        return gcmp_events_read(dir, file, source, error);
    }
    unsigned char *bytes;
    size_t length_bytes;
    GCMP_TRY(gcmp_dir_slurp(dir, name, MAX_TEXT_BYTES, &bytes, &length_bytes, error));
    struct gcmp_metric_text text = {gcmp_dir_path(dir), (const char *)bytes, length_bytes};
    enum gradcmp_status status = read_text(&text, source, error);
    free(bytes);
    return status;
}

enum gradcmp_status gcmp_metric_open(const char *path, struct gcmp_arena *arena,
                                     struct gcmp_metric_source *source,
                                     struct gradcmp_error *error) {
    const char *name;
    source->path = path;
    source->arena = arena;
    GCMP_TRY(gcmp_dir_open(path, &source->dir, error));
    GCMP_TRY(gcmp_dir_is_file(source->dir, &name) ? read_file(source->dir, name, source, error)
                                                  : read_folder(source->dir, source, error));
    GCMP_TRY(gcmp_dir_check(source->dir, error));
    if (source->point_count == 0 && !source->is_damaged) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                     "no scalar value in it");
    }
    return gcmp_metric_settle(source, error);
}
