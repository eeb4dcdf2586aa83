/* From a checkpoint to items: stored tensors that a format lists, and objects in files that
 * torch.save wrote. Tensors are not read here, but for small ones inside of objects. */
#include "bits/side.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "base/grow.h"
#include "base/locate.h"
#include "base/map.h"
#include "bits/loose.h"
#include "bits/stored.h"
#include "bits/walk.h"
#include "engine/engine.h"
#include "formats/torch_save_file.h"

/* Limits: elements taken into memory; files in a folder; folders. */
enum { MEMORY_BYTES = 256 << 20, MAX_NAMES = 1 << 20, MAX_FOLDERS = 1 << 18 };

const struct gradcmp_catalogue *gcmp_bits_side_catalogue(const struct gcmp_bits_side *side) {
    return side->checkpoint == NULL ? NULL : &side->checkpoint->catalogue;
}

enum gradcmp_status gcmp_bits_note(struct gcmp_bits_side *side, struct gradcmp_error *error,
                                   const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!gcmp_arena_grow(&side->arena, &side->notes, side->note_count, &side->note_capacity,
                         sizeof *side->notes)) {
        GCMP_FAIL_MEMORY(error);
    }
    side->notes[side->note_count] = gcmp_arena_dup(&side->arena, line);
    if (side->notes[side->note_count++] == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* --- reading small tensors --- */

struct fetch {
    unsigned char *at;
    size_t left;
};

static int collect(void *user, const void *elems, size_t bytes) {
    struct fetch *fetch = user;
    if (bytes > fetch->left) {
        return 1;
    }
    memcpy(fetch->at, elems, bytes);
    fetch->at += bytes;
    fetch->left -= bytes;
    return 0;
}

enum gradcmp_status gcmp_bits_fetch(struct gcmp_arena *arena, struct gcmp_bits_item *item,
                                    struct gradcmp_error *error) {
    size_t bytes = (size_t)item->parameter->elem_count * item->elem_bytes;
    unsigned char *elements = gcmp_arena_alloc(arena, bytes + 1, 1);
    if (elements == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct fetch fetch = {elements, bytes};
    struct gradcmp_tally tally;
    struct gradcmp_error side_error = {0};
    struct gcmp_job job = {.a = {.catalogue = item->catalogue, .parameter = item->parameter},
                           .elems = item->parameter->elem_count,
                           .tallies = &tally,
                           .sink = collect,
                           .sink_user = &fetch};
    struct gcmp_engine_options engine = {.threads = 1, .buffer_bytes = 1};
    if (bytes > 0) {
        GCMP_TRY(gcmp_engine_run(&job, 1, &engine, &side_error, 1, error));
    }
    item->kind = GCMP_BITS_ARRAY;
    item->bytes = elements;
    item->length_bytes = bytes;
    return GRADCMP_OK;
}

/* --- where parameters lie --- */

static int compare_ranges(const void *left, const void *right) {
    const struct gcmp_bits_range *a = left, *b = right;
    if (a->file != b->file) {
        return a->file < b->file ? -1 : 1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static enum gradcmp_status make_ranges(struct gcmp_bits_side *side, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = gcmp_bits_side_catalogue(side);
    size_t total = 0;
    for (size_t i = 0; catalogue != NULL && i < catalogue->stored_count; i++) {
        total += catalogue->stored[i].state == NULL ? 0 : catalogue->stored[i].piece_count;
    }
    side->ranges = gcmp_arena_alloc(&side->arena, total, sizeof *side->ranges);
    if (side->ranges == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; total > 0 && i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        for (size_t k = 0; stored->state != NULL && k < stored->piece_count; k++) {
            const struct gradcmp_source *source = &catalogue->sources[stored->pieces[k].source];
            side->ranges[side->range_count++] = (struct gcmp_bits_range){
                source->offset_bytes, source->offset_bytes + source->length_bytes, source->file,
                (uint32_t)i};
        }
    }
    if (total > 0) {
        qsort(side->ranges, side->range_count, sizeof *side->ranges, compare_ranges);
    }
    return GRADCMP_OK;
}

const struct gradcmp_stored *gcmp_bits_stored_at(const struct gcmp_bits_side *side, uint32_t file,
                                                 uint64_t begin, uint64_t end) {
    size_t low = 0, high = side->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gcmp_bits_range *range = &side->ranges[middle];
        if (range->file < file || (range->file == file && range->begin < end)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct gcmp_bits_range *range = low == 0 ? NULL : &side->ranges[low - 1];
    if (range == NULL || range->file != file || range->end <= begin || range->begin >= end) {
        return NULL;
    }
    return &side->checkpoint->catalogue.stored[range->stored];
}

/* DeepSpeed pads with zeros, but for stage 3, where the last rank's part of each weight is
 * allocated and not filled (_partition_param of runtime/zero/partition_parameters.py), and masters
 * and moments are made of that. */
static bool is_stage3(const struct gradcmp_catalogue *catalogue) {
    const struct gradcmp_setting *stage = gcmp_catalogue_setting(catalogue, "zero_stage");
    return strcmp(catalogue->format->name, "deepspeed") == 0 && stage != NULL &&
           stage->kind == GRADCMP_SETTING_INT && stage->integer == 3;
}

bool gcmp_bits_is_flat(const struct gradcmp_catalogue *catalogue,
                       const struct gradcmp_stored *stored) {
    return stored->layout == GRADCMP_LAYOUT_BUCKET ||
           stored->layout == GRADCMP_LAYOUT_LOCAL_BUFFER ||
           (stored->state != NULL && is_stage3(catalogue));
}

/* --- files --- */

/* What files of some kinds hold beside tensors, and what is not compared. */
enum { BESIDE_KINDS = 4 };

static const struct {
    const char *what;
    const char *endings[4];
} beside_kinds[BESIDE_KINDS] = {
    {"JSON files", {"*.json", "*.jsonl", NULL}},
    {"__metadata__ of safetensors files", {"*.safetensors", NULL}},
    {"attributes of HDF5 files", {"*.h5", "*.hdf5", NULL}},
    {"attributes of zarr arrays", {"*.zarray", "*.zattrs", "*.zgroup", NULL}}};

/* Files that torch.save wrote, and names of others that were not looked at. */
struct scan {
    struct gcmp_bits_side *side;
    struct gcmp_map read; /* relative names, in the side's arena */
    struct gcmp_map prefixes;
    bool is_single; /* one file: paths begin with its object's own keys */
    size_t torch_files;
    size_t unread;
    const char *unread_name;
    const char **tensor_files; /* names in the side's arena; the array is malloced */
    size_t tensor_file_count, tensor_file_capacity;
    size_t beside[BESIDE_KINDS]; /* files of each kind of `beside_kinds` */
    const char *beside_name[BESIDE_KINDS];
};

static bool has_ending(const char *name, const char *const *endings) {
    for (size_t i = 0; endings[i] != NULL; i++) {
        if (fnmatch(endings[i], name, FNM_CASEFOLD) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_torch_file(struct gcmp_bits_side *side, const char *name) {
    static const char *const endings[] = {"*.pt", "*.pth", "*.bin", "*.ckpt", "*.tar", NULL};
    if (!has_ending(name, endings)) {
        return false;
    }
    enum gcmp_torch_form form = gcmp_torch_form(side->dir, name);
    return form == GCMP_TORCH_ZIP || form == GCMP_TORCH_STREAM;
}

/* Other files that say nothing of the state, or that readers take care of. */
static bool is_known_file(const char *name) {
    static const char *const endings[] = {
        "*.distcp",      "*.metadata", "*.txt",    "*.md",     "*.yaml", "*.yml",   "*.py",
        "*.log",         "*latest*",   "*.json",   "*.jsonl",  "*.h5",   "*.model", "*.hdf5",
        "*.safetensors", "*.zarray",   "*.zattrs", "*.zgroup", NULL};
    return has_ending(name, endings);
}

/* The beginning of all paths of a file: its name without the ending, or, where that is taken by
 * another one (a.bin, a.pt), with it. NULL without memory. */
static const char *prefix_of(struct scan *scan, const char *name) {
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    size_t bytes =
        dot != NULL && (slash == NULL || dot > slash + 1) ? (size_t)(dot - name) : strlen(name);
    const char *prefix = gcmp_arena_text(&scan->side->arena, name, bytes);
    if (prefix == NULL) {
        return NULL;
    }
    enum gcmp_map_result result = gcmp_map_add(&scan->prefixes, prefix, bytes, 0, NULL);
    return result == GCMP_MAP_ADDED ? prefix : result == GCMP_MAP_PRESENT ? name : NULL;
}

static enum gradcmp_status walk_file(struct scan *scan, const char *name, bool is_only,
                                     struct gradcmp_error *error) {
    struct gcmp_bits_side *side = scan->side;
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    const char *prefix = is_only ? "" : prefix_of(scan, name);
    if (prefix == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = gcmp_torch_open_any(side->dir, name, &arena, &torch, error);
    if (status == GRADCMP_OK) {
        struct gcmp_bits_archive archive = {.torch = &torch, .arena = &arena, .prefix = prefix};
        status = gcmp_bits_walk(side, &archive, error);
    }
    gcmp_arena_free(&arena);
    return status;
}

static void count_beside(struct scan *scan, const char *name) {
    for (size_t i = 0; i < BESIDE_KINDS; i++) {
        if (has_ending(name, beside_kinds[i].endings) && scan->beside[i]++ == 0) {
            scan->beside_name[i] = name;
        }
    }
}

/* Name what is not compared, so that "identical" is not taken for more than it says. */
static enum gradcmp_status tell_beside(const struct scan *scan, struct gradcmp_error *error) {
    struct gcmp_text text = GCMP_TEXT_INIT;
    size_t told = 0;
    for (size_t i = 0; i < BESIDE_KINDS; i++) {
        if (scan->beside[i] > 0) {
            gcmp_text_addf(&text, "%s%s (%zu: %.80s%s)", told++ > 0 ? ", " : "",
                           beside_kinds[i].what, scan->beside[i], scan->beside_name[i],
                           scan->beside[i] > 1 ? ", ..." : "");
        }
    }
    enum gradcmp_status status =
        told == 0 ? GRADCMP_OK
        : text.failed
            ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory")
            : gcmp_bits_note(scan->side, error, "not compared: %s", text.bytes);
    gcmp_text_free(&text);
    return status;
}

static enum gradcmp_status keep_name(struct scan *scan, const char *name,
                                     struct gradcmp_error *error) {
    if (!gcmp_grow(&scan->tensor_files, scan->tensor_file_count, &scan->tensor_file_capacity,
                   sizeof *scan->tensor_files)) {
        GCMP_FAIL_MEMORY(error);
    }
    scan->tensor_files[scan->tensor_file_count++] = name;
    return GRADCMP_OK;
}

static enum gradcmp_status take_file(struct scan *scan, const char *name,
                                     struct gradcmp_error *error) {
    count_beside(scan, name);
    if (is_torch_file(scan->side, name) ||
        (scan->is_single && gcmp_torch_form(scan->side->dir, name) != GCMP_TORCH_OTHER)) {
        scan->torch_files++;
        if (gcmp_map_add(&scan->read, name, strlen(name), 0, NULL) == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(error);
        }
        return walk_file(scan, name, scan->is_single, error);
    }
    return gcmp_bits_holds_tensors(name) ? keep_name(scan, name, error) : GRADCMP_OK;
}

/* A folder, and the index of the one that it lies in; the checkpoint's own lies in itself. */
struct folder {
    struct gcmp_dir_place place;
    size_t above;
    char *name; /* malloced, until it was looked into */
};

struct folders {
    struct folder *list;
    size_t count, capacity;
    size_t *open; /* indices of those that are still to be looked into */
    size_t open_count, open_capacity;
};

/* True for a folder that lies in itself, by a link: all that it holds is looked at without it. */
static bool is_within_itself(const struct folders *folders, size_t above,
                             const struct gcmp_dir_place *place) {
    for (size_t at = above;; at = folders->list[at].above) {
        if (gcmp_dir_place_is(&folders->list[at].place, place)) {
            return true;
        }
        if (folders->list[at].above == at) {
            return false;
        }
    }
}

static enum gradcmp_status push_folder(struct folders *folders, const char *name, size_t above,
                                       const struct gcmp_dir_place *place,
                                       struct gradcmp_error *error) {
    if (folders->count == MAX_FOLDERS) {
        GCMP_FAIL(error, GRADCMP_ERROR_LIMIT, "more than %d folders", MAX_FOLDERS);
    }
    if (!gcmp_grow(&folders->list, folders->count, &folders->capacity, sizeof *folders->list) ||
        !gcmp_grow(&folders->open, folders->open_count, &folders->open_capacity,
                   sizeof *folders->open)) {
        GCMP_FAIL_MEMORY(error);
    }
    folders->list[folders->count] = (struct folder){*place, above, strdup(name)};
    if (folders->list[folders->count].name == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    folders->open[folders->open_count++] = folders->count++;
    return GRADCMP_OK;
}

/* A name that nothing can be opened by is refused: what stands there may be what a resume restores.
 */
static enum gradcmp_status look_up(const struct scan *scan, const char *name,
                                   enum gcmp_dir_kind *kind, struct gcmp_dir_place *place,
                                   struct gradcmp_error *error) {
    struct gcmp_dir *dir = scan->side->dir;
    const char *fault = gcmp_dir_name_fault(name, strlen(name));
    if (fault != NULL) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                     "name \"%.60s...\" %s", name, fault);
    }
    *kind = gcmp_dir_look(dir, name, place);
    if (*kind == GCMP_DIR_OTHER && (errno == EACCES || errno == EPERM)) {
        char path[sizeof error->path];
        snprintf(path, sizeof path, "%s/%s", gcmp_dir_path(dir), name);
        GCMP_FAIL_AT(error, GRADCMP_ERROR_IO, path, GRADCMP_NO_OFFSET, "permission denied");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status look_at(struct scan *scan, struct folders *folders, size_t folder,
                                   const char *entry, struct gradcmp_error *error) {
    struct gcmp_bits_side *side = scan->side;
    const char *outer = folders->list[folder].name;
    char *name =
        gcmp_arena_format(&side->arena, "%s%s%s", outer, outer[0] == '\0' ? "" : "/", entry);
    if (name == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_dir_place place;
    enum gcmp_dir_kind kind;
    GCMP_TRY(look_up(scan, name, &kind, &place, error));
    if (kind == GCMP_DIR_FOLDER) {
        return is_within_itself(folders, folder, &place)
                   ? GRADCMP_OK
                   : push_folder(folders, name, folder, &place, error);
    }
    size_t before = scan->torch_files;
    if (kind == GCMP_DIR_FILE) {
        GCMP_TRY(take_file(scan, name, error));
    }
    /* Else a FIFO, a link that leads out or nowhere: nothing to be read. */
    if (kind != GCMP_DIR_FILE || (scan->torch_files == before && !is_known_file(name))) {
        scan->unread_name = scan->unread++ == 0 ? name : scan->unread_name;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status scan_folder(struct scan *scan, struct folders *folders, size_t folder,
                                       struct gradcmp_error *error) {
    char **names = NULL;
    size_t count = 0;
    GCMP_TRY(gcmp_dir_list(scan->side->dir, folders->list[folder].name, MAX_NAMES, &names, &count,
                           error));
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        status = look_at(scan, folders, folder, names[i], error);
    }
    gcmp_dir_free_names(names, count);
    return status;
}

static enum gradcmp_status scan_folders(struct scan *scan, struct gradcmp_error *error) {
    struct folders folders = {0};
    struct gcmp_dir_place place;
    (void)gcmp_dir_look(scan->side->dir, "", &place);
    enum gradcmp_status status = push_folder(&folders, "", 0, &place, error);
    while (folders.open_count > 0) {
        size_t folder = folders.open[--folders.open_count];
        if (status == GRADCMP_OK) {
            status = scan_folder(scan, &folders, folder, error);
        }
        free(folders.list[folder].name);
    }
    free(folders.list);
    free(folders.open);
    return status == GRADCMP_OK ? gcmp_dir_check(scan->side->dir, error) : status;
}

static enum gradcmp_status scan_files(struct scan *scan, struct gradcmp_error *error) {
    const char *name;
    if (gcmp_dir_is_file(scan->side->dir, &name)) {
        scan->is_single = true;
        return take_file(scan, name, error);
    }
    return scan_folders(scan, error);
}

/* List the tensors of the checkpoint's reader, and those of files beside them. */
static enum gradcmp_status add_tensors(struct scan *scan, struct gradcmp_error *error) {
    struct gcmp_bits_listing listing = {gcmp_bits_side_catalogue(scan->side), &scan->read, ""};
    if (listing.catalogue != NULL) {
        GCMP_TRY(gcmp_bits_add_catalogue(scan->side, &listing, error));
    }
    return gcmp_bits_add_loose(scan->side, scan->tensor_files, scan->tensor_file_count, error);
}

/* --- opening --- */

static const struct gradcmp_format objects_format = {
    .name = "objects", .description = "tensors inside of objects", .resolve = gcmp_rank_resolve};

/* What the reader cannot give names to (an optimizer that numbers its parameters) can be compared
 * as it is stored all the same. */
static enum gradcmp_status open_objects(struct gcmp_bits_side *side, int64_t iteration,
                                        const struct gradcmp_error *refusal,
                                        struct gradcmp_error *error) {
    GCMP_TRY(gcmp_locate(side->path, iteration, &side->found, error));
    GCMP_TRY(gcmp_dir_open(side->found, &side->dir, error));
    return gcmp_bits_note(side, error, "compared as stored: %s", refusal->message);
}

static enum gradcmp_status open_files(struct gcmp_bits_side *side,
                                      const struct gradcmp_options *options,
                                      struct gradcmp_error *error) {
    struct gradcmp_error refusal = {0};
    enum gradcmp_status status =
        gcmp_checkpoint_open_alone(side->path, options, &side->checkpoint, &refusal);
    if (status == GRADCMP_OK) {
        side->dir = side->checkpoint->dir;
    } else if (status != GRADCMP_ERROR_UNSUPPORTED ||
               open_objects(side, options == NULL ? -1 : options->iteration, &refusal, error) !=
                   GRADCMP_OK) {
        if (error != NULL) {
            *error = refusal;
        }
        return status;
    }
    side->extra.format = &objects_format;
    side->extra.arena = &side->arena;
    side->extra.dir = side->dir;
    side->extra.iteration = -1;
    side->memory_left = MEMORY_BYTES;
    GCMP_TRY(gcmp_rank_arrays_make(&side->extra, &side->arrays, error));
    GCMP_TRY(make_ranges(side, error));
    struct scan scan = {.side = side};
    status = scan_files(&scan, error);
    if (status == GRADCMP_OK && side->checkpoint == NULL && scan.torch_files == 0) {
        if (error != NULL) {
            *error = refusal;
        }
        status = refusal.code;
    }
    if (status == GRADCMP_OK) {
        status = add_tensors(&scan, error);
    }
    if (status == GRADCMP_OK && scan.unread > 0) {
        status = gcmp_bits_note(side, error, "%zu other files were not looked at: %s%s",
                                scan.unread, scan.unread_name, scan.unread > 1 ? ", ..." : "");
    }
    if (status == GRADCMP_OK) {
        status = tell_beside(&scan, error);
    }
    free(scan.tensor_files);
    gcmp_map_free(&scan.read);
    gcmp_map_free(&scan.prefixes);
    return status;
}

/* Two items of one path could be taken for each other. (A list that holds itself is no second item
 * there, but says what stands in the place.) */
static enum gradcmp_status check_paths(const struct gcmp_bits_side *side,
                                       struct gradcmp_error *error) {
    const struct gcmp_bits_item *list = side->items.list;
    for (size_t i = 1; i < side->items.count; i++) {
        bool is_ring =
            strcmp(list[i].type, "itself") == 0 || strcmp(list[i - 1].type, "itself") == 0;
        if (strcmp(list[i].path, list[i - 1].path) == 0 && !is_ring) {
            GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED,
                      "two of what it holds are both called %.300s: which is which cannot be "
                      "told; give the files one by one",
                      list[i].path);
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_side_open(struct gcmp_bits_side *side, const char *path,
                                        const struct gradcmp_options *options,
                                        struct gradcmp_error *error) {
    side->path = path;
    enum gradcmp_status status = open_files(side, options, error);
    if (status == GRADCMP_OK && side->items.count == 0) {
        status = gcmp_error_set(error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                                "nothing in it can be compared");
    }
    gcmp_bits_sort(&side->items);
    if (status == GRADCMP_OK) {
        status = check_paths(side, error);
    }
    gcmp_error_add_path(error, path);
    return status;
}

void gcmp_bits_side_close(struct gcmp_bits_side *side) {
    if (side->checkpoint == NULL) {
        gcmp_dir_close(side->dir);
    }
    gcmp_bits_free_loose(side);
    gcmp_catalogue_free(&side->extra);
    gradcmp_checkpoint_free(side->checkpoint);
    free(side->items.list);
    free(side->found);
    gcmp_arena_free(&side->arena);
}
