/* Which files of a folder are a trace. */
#include "trace/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { MAX_NAMES = 1000000, MAX_FOLDERS = 1000000, SNIFF_BYTES = 64 << 10 };

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

/* msprobe's folders of steps and ranks; "rank" alone is that of a run without process groups. */
static bool is_inner_folder(const char *name) {
    int64_t number;
    return strcmp(name, "rank") == 0 ||
           ((gcmp_take_word(&name, "step") || gcmp_take_word(&name, "rank") ||
             gcmp_take_word(&name, "proc")) &&
            gcmp_take_digits(&name, &number) && *name == '\0');
}

/* How far a name begins as the file of a rank does: "rank3" or "rank_000003", with "_iter7" or
 * "_step7" behind it (*has_step) or without. NULL: it does not. */
static const char *skip_stem(const char *name, bool *has_step) {
    int64_t number;
    *has_step = false;
    if (!gcmp_take_word(&name, "rank")) {
        return NULL;
    }
    (void)gcmp_take_word(&name, "_");
    if (!gcmp_take_digits(&name, &number)) {
        return NULL;
    }
    const char *behind = name;
    *has_step = (gcmp_take_word(&behind, "_iter") || gcmp_take_word(&behind, "_step")) &&
                gcmp_take_digits(&behind, &number);
    return *has_step ? behind : name;
}

/* True for the name of a trace's file in a form that is not read: packed, half written, renamed.
 * A profiler's rank0_trace.json.gz or rank0.123.pt.trace.json.gz is none. */
static bool is_stray(const char *name) {
    static const char *const forms[] = {"",     ".gz",  ".zst", ".xz",   ".bz2", ".lz4",
                                        ".zip", ".tmp", ".bak", ".part", NULL};
    bool has_step;
    const char *behind = skip_stem(name, &has_step);
    if (behind == NULL) {
        return gcmp_take_word(&name, "dump.json") && *name == '.';
    }
    for (size_t i = 0; has_step && forms[i] != NULL; i++) {
        if (strcmp(behind, forms[i]) == 0) {
            return true;
        }
    }
    return (has_step || name[strlen("rank")] == '_') && gcmp_take_word(&behind, ".json") &&
           *behind != '\0' && !ends_with(name, ".json") && !ends_with(name, ".jsonl");
}

static bool is_candidate(const char *name, bool is_inner) {
    if (is_inner) {
        return strcmp(name, "dump.json") == 0;
    }
    return (ends_with(name, ".json") || ends_with(name, ".jsonl")) && name[0] != '.' &&
           strcmp(name, "construct.json") != 0 && strcmp(name, "stack.json") != 0 &&
           strcmp(name, "debug.json") != 0;
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
        } else if (is_inner_folder(names[i])) {
            status = folders->count < MAX_FOLDERS
                         ? add_name(folders, folder, names[i], error)
                         : gcmp_error_set(error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(dir),
                                          GRADCMP_NO_OFFSET, "more than %d folders", MAX_FOLDERS);
        }
    }
    gcmp_dir_free_names(names, count);
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

/* True for a folder two levels below the path or deeper, where anything may lie. */
static bool is_deep(const char *folder) {
    return strchr(folder, '/') != NULL;
}

/* Forget what no trace's file is named as and cannot be opened: a FIFO, a link that leads out. */
static void drop_closed(struct gcmp_dir *dir, const char *folder, struct names *files) {
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (guess_by_name(below(folder, files->items[i])) == NULL &&
            gcmp_dir_kind(dir, files->items[i]) == GCMP_DIR_OTHER) {
            free(files->items[i]);
        } else {
            files->items[kept++] = files->items[i];
        }
    }
    files->count = kept;
}

/* Gather the candidates two levels down in msprobe's folders. */
static enum gradcmp_status gather_inner(struct gcmp_dir *dir, struct names *folders,
                                        struct names *files, struct gradcmp_error *error) {
    enum gradcmp_status status = GRADCMP_OK;
    size_t first_level = folders->count;
    for (size_t i = 0; i < folders->count && status == GRADCMP_OK; i++) {
        struct names deeper = {NULL, 0, 0};
        enum gcmp_dir_kind kind = gcmp_dir_kind(dir, folders->items[i]);
        if (kind == GCMP_DIR_ABSENT || kind == GCMP_DIR_FILE) {
            continue; /* a link that leads out may be a rank's: listing it fails */
        }
        status = list_folder(dir, folders->items[i], true, files,
                             i < first_level ? folders : &deeper, error);
        free_names(&deeper);
    }
    return status;
}

/* Forget what an msprobe trace around has already. */
static void drop_dumps(struct names *files) {
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (ends_with(files->items[i], "/dump.json")) {
            free(files->items[i]);
        } else {
            files->items[kept++] = files->items[i];
        }
    }
    files->count = kept;
}

/* Gather the candidates of one folder: its own files, and those in msprobe's folders in it, unless
 * it is one of these itself. */
static enum gradcmp_status gather(struct gcmp_dir *dir, const char *folder, bool is_inner,
                                  struct names *files, struct gradcmp_error *error) {
    struct names folders = {NULL, 0, 0};
    enum gradcmp_status status = list_folder(dir, folder, false, files, &folders, error);
    if (is_deep(folder) && !is_inner) {
        drop_closed(dir, folder, files);
    }
    if (is_inner) {
        drop_dumps(files);
    } else if (status == GRADCMP_OK) {
        status = gather_inner(dir, &folders, files, error);
    }
    free_names(&folders);
    return status;
}

/* ---- layouts */

/* The keys of a profiler's file (PyTorch's, Chrome's), which may be named as DebugMode's are. */
static bool is_profile(const char *bytes, size_t length) {
    return gcmp_sniff_key(bytes, length, "traceEvents") ||
           gcmp_sniff_key(bytes, length, "schemaVersion");
}

/* True for the text of an object from brace to brace. */
static bool is_whole(const char *bytes, size_t length) {
    while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) != NULL &&
           bytes[length - 1] != '\0') {
        length--;
    }
    return length > 1 && bytes[0] == '{' && bytes[length - 1] == '}';
}

/* Find the layout whose first keys a file has, NULL for none; *is_other where it is known to be
 * something else: a profile, or any other whole object in a deep folder. */
static enum gradcmp_status sniff(struct gcmp_dir *dir, const char *folder, const char *name,
                                 const struct gcmp_trace_layout **layout, bool *is_other,
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
    *is_other = status == GRADCMP_OK && *layout == NULL &&
                (is_profile(buffer, count) ||
                 (is_deep(folder) && ends_with(name, ".json") && is_whole(buffer, count)));
    free(buffer);
    return status;
}

/* Find the layout of a folder: that of the first file that has one; where none has, but a name
 * looks like a trace's, that of the name, so that an emptied or spoilt file is told. */
static enum gradcmp_status find_layout(struct gcmp_dir *dir, const char *folder,
                                       const struct names *files,
                                       const struct gcmp_trace_layout **layout,
                                       struct gradcmp_error *error) {
    *layout = NULL;
    const struct gcmp_trace_layout *guess = NULL;
    for (size_t i = 0; i < files->count && *layout == NULL; i++) {
        bool is_other;
        GCMP_TRY(sniff(dir, folder, files->items[i], layout, &is_other, error));
        guess = guess == NULL && !is_other ? guess_by_name(below(folder, files->items[i])) : guess;
    }
    *layout = *layout == NULL ? guess : *layout;
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

/* True for a .json file of another kind, which is no one's business. */
static bool is_foreign(const char *own, const struct gcmp_trace_layout *layout) {
    bool has_step;
    const char *behind = skip_stem(own, &has_step);
    return layout == NULL && !ends_with(own, ".jsonl") &&
           (behind == NULL || !has_step || strcmp(behind, ".json") != 0);
}

/* Put one file where it belongs, or tell why it cannot. */
static enum gradcmp_status add_file(struct builder *b, const char *name, bool is_only) {
    struct gcmp_trace_files *out = b->out;
    struct gcmp_place place = {0, -1};
    const char *own = below(out->folder, name);
    if (out->layout != &gcmp_layout_msprobe && strchr(own, '/') != NULL) {
        return GRADCMP_OK; /* a trace of its own */
    }
    if (!out->layout->place(own, &place)) {
        const struct gcmp_trace_layout *layout;
        bool is_other;
        GCMP_TRY(sniff(out->dir, out->folder, name, &layout, &is_other, b->error));
        if (is_other || is_foreign(own, layout)) {
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

/* Look for a trace in the folder that b->out names; its layout stays NULL where there is none. */
static enum gradcmp_status look_into(struct builder *b, bool is_inner) {
    struct names files = {NULL, 0, 0};
    struct gcmp_trace_files *out = b->out;
    enum gradcmp_status status = gather(out->dir, out->folder, is_inner, &files, b->error);
    if (status == GRADCMP_OK) {
        status = find_layout(out->dir, out->folder, &files, &out->layout, b->error);
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

/* ---- all folders */

/* A folder that is still to be looked into, or was. */
struct visit {
    const char *folder;         /* below the path; "" for itself */
    const struct visit *around; /* NULL: itself */
    struct gcmp_dir_place place;
    unsigned level; /* of a step or rank of an msprobe trace: 1 or 2 below it */
    struct visit *next;
};

struct walk {
    struct builder *b;
    struct gcmp_traces *traces;
    struct visit *last;
    size_t count, trace_capacity;
};

/* Have a folder looked into later, but none that leads back to one that it lies in. */
static enum gradcmp_status add_visit(struct walk *walk, const struct visit *around,
                                     const char *folder, const struct gcmp_dir_place *place,
                                     unsigned level) {
    struct builder *b = walk->b;
    for (const struct visit *at = around; at != NULL; at = at->around) {
        if (gcmp_dir_place_is(&at->place, place)) {
            return GRADCMP_OK;
        }
    }
    if (walk->count++ == MAX_FOLDERS) {
        GCMP_FAIL_AT(b->error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(b->out->dir), GRADCMP_NO_OFFSET,
                     "more than %d folders", MAX_FOLDERS);
    }
    struct visit *visit = gcmp_arena_alloc(b->run->arena, 1, sizeof *visit);
    if (visit == NULL) {
        GCMP_FAIL_MEMORY(b->error);
    }
    *visit = (struct visit){folder, around, *place, level, NULL};
    if (walk->last != NULL) {
        walk->last->next = visit;
    }
    walk->last = visit;
    return GRADCMP_OK;
}

/* How deep in the msprobe trace that b->out is, or the folder around is of, a folder lies; 0: it is
 * none of its steps and ranks. */
static unsigned level_of(const struct builder *b, const struct visit *around, const char *name) {
    bool is_in = around->level > 0 ? around->level < 2 : b->out->layout == &gcmp_layout_msprobe;
    return is_in && is_inner_folder(name) ? around->level + 1 : 0;
}

/* Tell of what is a trace's by its name, and is not read. */
static enum gradcmp_status tell_stray(struct builder *b, const char *path) {
    return complain(b, path, "a trace's file in a form that is not read (%s): unpack or move it",
                    b->out->layout != NULL ? b->out->layout->naming
                                           : "files of traces end in .json or .jsonl");
}

/* Go through what lies in a folder. */
static enum gradcmp_status look_at(struct walk *walk, const struct visit *visit, char **names,
                                   size_t count) {
    struct builder *b = walk->b;
    bool has_part = false;
    for (size_t i = 0; i < count; i++) {
        struct gcmp_dir_place place;
        const char *path = gcmp_arena_format(b->run->arena, "%s%s%s", visit->folder,
                                             visit->folder[0] == '\0' ? "" : "/", names[i]);
        if (path == NULL) {
            GCMP_FAIL_MEMORY(b->error);
        }
        unsigned level = level_of(b, visit, names[i]);
        has_part =
            has_part || level > 0 || strcmp(names[i], "dump.json") == 0 || is_stray(names[i]);
        if (names[i][0] == '.') {
            continue;
        }
        enum gcmp_dir_kind kind = gcmp_dir_look(b->out->dir, path, &place);
        if (kind == GCMP_DIR_OTHER) {
            walk->traces->closed = walk->traces->closed == NULL ? path : walk->traces->closed;
            walk->traces->closed_count++;
        }
        if (kind == GCMP_DIR_FOLDER) {
            GCMP_TRY(add_visit(walk, visit, path, &place, level));
        } else if (is_stray(names[i])) {
            GCMP_TRY(tell_stray(b, path));
        }
    }
    return visit->level == 0 || has_part
               ? GRADCMP_OK
               : complain(b, visit->folder, "no %s in this folder of a trace", "dump.json");
}

/* Look for a trace in a folder, and list what lies below it. */
static enum gradcmp_status visit_folder(struct walk *walk, struct gcmp_traces *out,
                                        const struct visit *visit) {
    struct builder *b = walk->b;
    char **names;
    size_t count;
    if (!gcmp_arena_grow(b->run->arena, &out->traces, out->count, &walk->trace_capacity,
                         sizeof *out->traces)) {
        GCMP_FAIL_MEMORY(b->error);
    }
    b->out = &out->traces[out->count];
    *b->out = (struct gcmp_trace_files){.dir = out->dir, .folder = visit->folder};
    GCMP_TRY(look_into(b, visit->level > 0));
    GCMP_TRY(gcmp_dir_list(out->dir, visit->folder, MAX_NAMES, &names, &count, b->error));
    enum gradcmp_status status = look_at(walk, visit, names, count);
    out->count += b->out->layout != NULL;
    gcmp_dir_free_names(names, count);
    return status;
}

/* Look into the folder and each one below, however deep. */
static enum gradcmp_status look_everywhere(struct builder *b, struct gcmp_traces *out) {
    struct walk walk = {b, out, NULL, 0, 0};
    struct gcmp_dir_place place = {0, 0};
    (void)gcmp_dir_look(out->dir, "", &place);
    GCMP_TRY(add_visit(&walk, NULL, "", &place, 0));
    for (const struct visit *visit = walk.last; visit != NULL; visit = visit->next) {
        GCMP_TRY(visit_folder(&walk, out, visit));
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_traces_find(struct gcmp_trace_run *run, struct gcmp_dir *dir, char side,
                                     struct gcmp_traces *out, struct gradcmp_error *error) {
    struct gcmp_trace_files single = {.folder = "", .dir = dir};
    struct builder b = {run, side, &single, error};
    const char *only;
    *out = (struct gcmp_traces){.dir = dir};
    if (gcmp_dir_is_file(dir, &only)) {
        size_t capacity = 0;
        GCMP_TRY(look_into(&b, false));
        if (!gcmp_arena_grow(run->arena, &out->traces, 0, &capacity, sizeof *out->traces)) {
            GCMP_FAIL_MEMORY(error);
        }
        out->traces[0] = single;
        out->count = single.layout != NULL;
    } else {
        GCMP_TRY(look_everywhere(&b, out));
    }
    GCMP_TRY(gcmp_dir_check(dir, error));
    if (out->count == 0) {
        return complain(
            &b, "", "no trace found (%s)",
            "known are boundary records, operation streams, DebugMode logs and msprobe dumps");
    }
    return GRADCMP_OK;
}
