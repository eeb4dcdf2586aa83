/* Which files of a folder are a trace. */
#include "trace/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MAX_NAMES = 1000000, SNIFF_BYTES = 64 << 10, MAX_TRACES = 64 };

bool gcmp_is_trouble(enum gradcmp_status status) {
    return status == GRADCMP_ERROR_CORRUPT || status == GRADCMP_ERROR_LIMIT ||
           status == GRADCMP_ERROR_UNSUPPORTED;
}

/* Read "line 12: " off the front of a message. */
static const char *split_line(const char *message, uint64_t *line) {
    const char *at = message;
    int64_t number = 0;
    *line = 0;
    if (gcmp_take_word(&at, "line ") && gcmp_take_digits(&at, &number) &&
        gcmp_take_word(&at, ": ")) {
        *line = (uint64_t)number;
        return at;
    }
    return message;
}

enum gradcmp_status gcmp_trouble_add(struct gcmp_trace_run *run, const char *layout, char side,
                                     int64_t rank, const struct gradcmp_error *trouble,
                                     struct gradcmp_error *error) {
    struct gcmp_trouble *added = gcmp_arena_alloc(run->arena, 1, sizeof *added);
    if (added == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    added->layout = layout;
    added->side = side;
    added->rank = rank;
    added->path = gcmp_arena_dup(run->arena, trouble->path);
    added->text = gcmp_arena_dup(run->arena, split_line(trouble->message, &added->line));
    if (added->path == NULL || added->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *run->last = added;
    run->last = &added->next;
    run->trouble_count++;
    return GRADCMP_OK;
}

/* ---- gathering names */

struct names {
    char **items;
    size_t count, capacity;
};

static void free_names(struct names *names) {
    gcmp_dir_free_names(names->items, names->count);
}

static enum gradcmp_status add_name(struct names *names, const char *folder, const char *name,
                                    struct gradcmp_error *error) {
    if (!gcmp_grow(&names->items, names->count, &names->capacity, sizeof *names->items)) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t length = strlen(folder) + strlen(name) + 2;
    char *joined = malloc(length);
    if (joined == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    snprintf(joined, length, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name);
    names->items[names->count++] = joined;
    return GRADCMP_OK;
}

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text);
    size_t tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

/* msprobe's folders of steps and ranks. */
static bool is_inner_folder(const char *name) {
    int64_t number;
    return (gcmp_take_word(&name, "step") || gcmp_take_word(&name, "rank") ||
            gcmp_take_word(&name, "proc")) &&
           gcmp_take_digits(&name, &number) && *name == '\0';
}

static bool is_candidate(const char *name, bool is_inner) {
    if (is_inner) {
        return strcmp(name, "dump.json") == 0;
    }
    return (ends_with(name, ".json") || ends_with(name, ".jsonl")) && name[0] != '.' &&
           strcmp(name, "construct.json") != 0 && strcmp(name, "stack.json") != 0;
}

/* Put what stands in `folder` into the lists: files that may be a trace's, and msprobe's folders.
 */
static enum gradcmp_status list_folder(struct gcmp_dir *dir, const char *folder, bool is_inner,
                                       struct names *files, struct names *folders,
                                       struct gradcmp_error *error) {
    char **names;
    size_t count;
    GCMP_TRY(gcmp_dir_list(dir, folder, MAX_NAMES, &names, &count, error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        if (is_candidate(names[i], is_inner)) {
            status = add_name(files, folder, names[i], error);
        } else if (is_inner_folder(names[i]) && folders->count < MAX_NAMES) {
            status = add_name(folders, folder, names[i], error);
        }
    }
    gcmp_dir_free_names(names, count);
    return status;
}

/* Gather the candidates of one folder: its own files, and those two levels down in msprobe's. */
static enum gradcmp_status gather(struct gcmp_dir *dir, const char *folder, struct names *files,
                                  struct gradcmp_error *error) {
    struct names folders = {NULL, 0, 0};
    enum gradcmp_status status = list_folder(dir, folder, false, files, &folders, error);
    size_t first_level = folders.count;
    for (size_t i = 0; i < folders.count && status == GRADCMP_OK; i++) {
        struct names deeper = {NULL, 0, 0};
        enum gcmp_dir_kind kind = gcmp_dir_kind(dir, folders.items[i]);
        if (kind == GCMP_DIR_ABSENT || kind == GCMP_DIR_FILE) {
            continue; /* a link that leads out may be a rank's: listing it fails */
        }
        status = list_folder(dir, folders.items[i], true, files,
                             i < first_level ? &folders : &deeper, error);
        free_names(&deeper);
    }
    free_names(&folders);
    return status;
}

/* ---- layouts */

static enum gradcmp_status sniff(struct gcmp_dir *dir, const char *name,
                                 const struct gcmp_trace_layout **layout,
                                 struct gradcmp_error *error) {
    uint32_t file;
    *layout = NULL;
    GCMP_TRY(gcmp_dir_add(dir, name, strlen(name), &file, error));
    uint64_t bytes = gcmp_dir_file_bytes(dir, file);
    size_t count = bytes < SNIFF_BYTES ? (size_t)bytes : SNIFF_BYTES;
    char *buffer = malloc(count + 1);
    if (buffer == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_dir_read(dir, file, 0, buffer, count, error);
    for (size_t i = 0; status == GRADCMP_OK && gcmp_trace_layouts[i] != NULL; i++) {
        if (*layout == NULL && gcmp_trace_layouts[i]->is_one(buffer, count)) {
            *layout = gcmp_trace_layouts[i];
        }
    }
    free(buffer);
    return status;
}

static const char *below(const char *folder, const char *name) {
    return folder[0] == '\0' ? name : name + strlen(folder) + 1;
}

/* The layout whose file names these are, where no content tells. */
static const struct gcmp_trace_layout *guess_by_name(const char *name) {
    struct gcmp_place place;
    for (size_t i = 0; gcmp_trace_layouts[i] != NULL; i++) {
        if (gcmp_trace_layouts[i]->place(name, &place)) {
            return gcmp_trace_layouts[i];
        }
    }
    return NULL;
}

/* Find the layout of a folder: that of the first file that has one; where none has, but a name
 * looks like a trace's, that of the name, so that an emptied or spoilt file is told. */
static enum gradcmp_status find_layout(struct gcmp_dir *dir, const char *folder,
                                       const struct names *files,
                                       const struct gcmp_trace_layout **layout,
                                       struct gradcmp_error *error) {
    *layout = NULL;
    for (size_t i = 0; i < files->count && *layout == NULL; i++) {
        GCMP_TRY(sniff(dir, files->items[i], layout, error));
    }
    for (size_t i = 0; i < files->count && *layout == NULL; i++) {
        *layout = guess_by_name(below(folder, files->items[i]));
    }
    return GRADCMP_OK;
}

struct builder {
    struct gcmp_trace_run *run;
    char side;
    struct gcmp_trace_files *out;
    struct gradcmp_error *error;
};

static enum gradcmp_status complain(struct builder *b, const char *path, const char *format,
                                    const char *word) {
    struct gradcmp_error trouble = {0};
    snprintf(trouble.path, sizeof trouble.path, "%s%s%s", gcmp_dir_path(b->out->dir),
             path[0] == '\0' ? "" : "/", path);
    /* The formats are this file's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(trouble.message, sizeof trouble.message, format, word);
#pragma GCC diagnostic pop
    return gcmp_trouble_add(b->run, NULL, b->side, -1, &trouble, b->error);
}

/* Put one file where it belongs, or tell why it cannot. A .json file of another kind is no one's
 * business. */
static enum gradcmp_status add_file(struct builder *b, const char *name, bool is_only) {
    struct gcmp_trace_files *out = b->out;
    struct gcmp_place place = {0, -1};
    const char *own = below(out->folder, name);
    if (!out->layout->place(own, &place)) {
        const struct gcmp_trace_layout *layout;
        GCMP_TRY(sniff(out->dir, name, &layout, b->error));
        if (layout == NULL && !ends_with(name, ".jsonl")) {
            return GRADCMP_OK;
        }
        if (layout != out->layout || !is_only || layout != &gcmp_layout_debugmode) {
            return complain(b, name, "not named %s as the files of this trace are",
                            out->layout->naming);
        }
        place = (struct gcmp_place){0, -1};
    }
    struct gcmp_trace_file *file = &out->files[out->count];
    GCMP_TRY(gcmp_dir_add(out->dir, name, strlen(name), &file->file, b->error));
    file->rank = place.rank;
    file->iteration = place.iteration;
    file->name = gcmp_arena_dup(b->run->arena, own);
    if (file->name == NULL) {
        GCMP_FAIL_MEMORY(b->error);
    }
    out->count++;
    return GRADCMP_OK;
}

static int compare_files(const void *left, const void *right) {
    const struct gcmp_trace_file *a = left;
    const struct gcmp_trace_file *b = right;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->iteration != b->iteration) {
        return a->iteration < b->iteration ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static enum gradcmp_status sort_files(struct builder *b) {
    struct gcmp_trace_files *out = b->out;
    if (out->count > 0) {
        qsort(out->files, out->count, sizeof *out->files, compare_files);
    }
    for (size_t i = 1; i < out->count; i++) {
        if (out->files[i].rank == out->files[i - 1].rank &&
            out->files[i].iteration == out->files[i - 1].iteration) {
            return complain(b, gcmp_dir_file_name(out->dir, out->files[i].file),
                            "a second file of one rank and step, beside %s",
                            out->files[i - 1].name);
        }
    }
    for (size_t i = 0; i < out->count; i++) {
        b->run->total_bytes += gcmp_dir_file_bytes(out->dir, out->files[i].file);
    }
    return GRADCMP_OK;
}

/* Look for a trace in one folder; out->layout stays NULL where there is none. */
static enum gradcmp_status look_into(struct builder *b, const char *folder) {
    struct names files = {NULL, 0, 0};
    struct gcmp_trace_files *out = b->out;
    out->folder = gcmp_arena_dup(b->run->arena, folder);
    enum gradcmp_status status = gather(out->dir, folder, &files, b->error);
    if (out->folder == NULL) {
        status = GRADCMP_ERROR_MEMORY;
    }
    if (status == GRADCMP_OK) {
        status = find_layout(out->dir, folder, &files, &out->layout, b->error);
    }
    if (status == GRADCMP_OK && out->layout != NULL) {
        out->files = gcmp_arena_alloc(b->run->arena, files.count, sizeof *out->files);
        if (out->files == NULL) {
            status = gcmp_error_set(b->error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET,
                                    "out of memory");
        }
        for (size_t i = 0; i < files.count && status == GRADCMP_OK; i++) {
            status = add_file(b, files.items[i], files.count == 1);
        }
        if (status == GRADCMP_OK) {
            status = sort_files(b);
        }
    }
    free_names(&files);
    return status;
}

/* Look into each folder below. */
static enum gradcmp_status look_below(struct builder *b, struct gcmp_traces *out) {
    char **names;
    size_t count;
    GCMP_TRY(gcmp_dir_list(out->dir, "", MAX_NAMES, &names, &count, b->error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK && out->count < MAX_TRACES; i++) {
        if (names[i][0] == '.' || gcmp_dir_kind(out->dir, names[i]) != GCMP_DIR_FOLDER) {
            continue;
        }
        b->out = &out->traces[out->count];
        b->out->dir = out->dir;
        status = look_into(b, names[i]);
        out->count += b->out->layout != NULL;
    }
    gcmp_dir_free_names(names, count);
    return status;
}

enum gradcmp_status gcmp_traces_find(struct gcmp_trace_run *run, struct gcmp_dir *dir, char side,
                                     struct gcmp_traces *out, struct gradcmp_error *error) {
    struct builder b = {run, side, NULL, error};
    out->dir = dir;
    out->count = 0;
    out->traces = gcmp_arena_alloc(run->arena, MAX_TRACES, sizeof *out->traces);
    if (out->traces == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    b.out = &out->traces[0];
    b.out->dir = dir;
    GCMP_TRY(look_into(&b, ""));
    out->count = b.out->layout != NULL;
    const char *only;
    if (out->count == 0 && !gcmp_dir_is_file(dir, &only)) {
        GCMP_TRY(look_below(&b, out));
    }
    GCMP_TRY(gcmp_dir_check(dir, error));
    if (out->count == 0) {
        b.out = &out->traces[0];
        b.out->dir = dir;
        return complain(
            &b, "", "no trace found (%s)",
            "known are boundary records, operation streams, DebugMode logs and msprobe dumps");
    }
    return GRADCMP_OK;
}
