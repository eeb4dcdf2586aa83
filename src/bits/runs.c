/* Which iterations two runs have in common. */
#include "bits/runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"

enum { MAX_NAMES = 1 << 20 };

/* A checkpoint in a run's folder. */
struct found {
    int64_t iteration;
    const char *path;
};

struct run {
    struct found *list; /* sorted; in the arena */
    size_t count;
};

/* The number that a name ends with, in front of a file's ending: iter_0000005, step-5, step4.pt,
 * global_step5, checkpoint-500; -1: none. */
static int64_t iteration_of(const char *name) {
    size_t length = strcspn(name, ".");
    size_t digits = 0;
    while (digits < length && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9') {
        digits++;
    }
    static const char *const words[] = {"iter", "step", "checkpoint", "ckpt", "epoch"};
    bool is_named = digits == length;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !is_named; i++) {
        const char *at = strstr(name, words[i]);
        is_named = at != NULL && at < name + length;
    }
    return digits == 0 || digits > 18 || !is_named ? -1 : strtoll(name + length - digits, NULL, 10);
}

static bool is_checkpoint_name(struct gcmp_dir *dir, const char *name) {
    static const char *const endings[] = {".pt",          ".pth", ".bin", ".ckpt",
                                          ".safetensors", ".h5",  ".hdf5"};
    enum gcmp_dir_kind kind = gcmp_dir_kind(dir, name);
    if (kind != GCMP_DIR_FILE) {
        return kind == GCMP_DIR_FOLDER;
    }
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);
        if (bytes > ending && strcmp(name + bytes - ending, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Files that belong to one checkpoint: the folder is no run. */
static bool is_mark(const char *name) {
    static const char *const marks[] = {
        ".metadata",          "metadata.json", "common.pt", "mp_rank_",  "zero_pp_rank_",    "__0_",
        "bf16_zero_pp_rank_", ".zgroup",       ".zarray",   "zarr.json", "model.safetensors"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (strncmp(name, marks[i], strlen(marks[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int compare_found(const void *left, const void *right) {
    const struct found *a = left, *b = right;
    if (a->iteration != b->iteration) {
        return a->iteration < b->iteration ? -1 : 1;
    }
    return strcmp(a->path, b->path);
}

static enum gradcmp_status take_names(struct gcmp_arena *arena, struct gcmp_dir *dir, char **names,
                                      size_t count, struct run *out, struct gradcmp_error *error) {
    out->list = gcmp_arena_alloc(arena, count, sizeof *out->list);
    if (out->list == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (is_mark(names[i])) {
            out->count = 0;
            return GRADCMP_OK;
        }
        int64_t iteration = iteration_of(names[i]);
        if (iteration < 0 || !is_checkpoint_name(dir, names[i])) {
            continue;
        }
        char *path = gcmp_arena_format(arena, "%s/%s", gcmp_dir_path(dir), names[i]);
        if (path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        out->list[out->count++] = (struct found){iteration, path};
    }
    if (out->count > 0) {
        qsort(out->list, out->count, sizeof *out->list, compare_found);
    }
    return GRADCMP_OK;
}

/* Find the iterations of a run; none where the path is something else. */
static enum gradcmp_status find_run(struct gcmp_arena *arena, const char *path, struct run *out,
                                    struct gradcmp_error *error) {
    struct gcmp_dir *dir;
    char **names = NULL;
    size_t count = 0;
    *out = (struct run){0};
    struct gradcmp_error own = {0};
    enum gradcmp_status status = gcmp_dir_open(path, &dir, &own);
    if (status == GRADCMP_ERROR_MEMORY || (status == GRADCMP_ERROR_IO && access(path, R_OK) == 0)) {
        return gcmp_error_set(error, status, own.path, own.offset_bytes, "%s", own.message);
    }
    if (status != GRADCMP_OK) {
        return GRADCMP_OK; /* opening it as a checkpoint tells why */
    }
    const char *dumps = gcmp_arena_format(arena, "%s/wgrads", gcmp_dir_path(dir));
    bool has_dumps = !gcmp_dir_is_file(dir, NULL) && gcmp_dir_has_dir(dir, "wgrads");
    struct gcmp_dir *below = NULL;
    status = gcmp_dir_check(dir, error);
    if (status == GRADCMP_OK && has_dumps) {
        status = dumps == NULL ? gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                GRADCMP_NO_OFFSET, "out of memory")
                               : gcmp_dir_open(dumps, &below, error);
    }
    if (below != NULL) {
        gcmp_dir_close(dir);
        dir = below;
    }
    if (status == GRADCMP_OK && !gcmp_dir_is_file(dir, NULL) &&
        gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) == GRADCMP_OK) {
        status = take_names(arena, dir, names, count, out, error);
        gcmp_dir_free_names(names, count);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_dir_check(dir, error);
    }
    gcmp_dir_close(dir);
    return status;
}

static enum gradcmp_status note(struct gcmp_arena *arena, struct gcmp_bits_steps *out,
                                const struct found *found, const char *lacking,
                                struct gradcmp_error *error) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one was found */
    long long iteration = found->iteration;
    out->notes[out->note_count] =
        gcmp_arena_format(arena, "iteration %lld is not in %s", iteration, lacking);
    if (out->notes[out->note_count++] == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status pair(struct gcmp_arena *arena, const char *const names[2],
                                const struct run runs[2], struct gcmp_bits_steps *out,
                                struct gradcmp_error *error) {
    size_t i = 0, j = 0;
    bool has_common = false;
    const struct run *a = &runs[0], *b = &runs[1];
    while (i < a->count || j < b->count) {
        const struct found *x = i < a->count ? &a->list[i] : NULL;
        const struct found *y = j < b->count ? &b->list[j] : NULL;
        bool only_a = y == NULL || (x != NULL && x->iteration < y->iteration);
        bool only_b = !only_a && (x == NULL || y->iteration < x->iteration);
        if (only_a) {
            GCMP_TRY(note(arena, out, x, names[1], error));
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one was found */
            if (x->iteration > b->list[0].iteration) {
                out->list[out->count++] =
                    (struct gcmp_bits_step){x->path, names[1], x->iteration, true};
            }
        } else if (only_b) {
            GCMP_TRY(note(arena, out, y, names[0], error));
        } else {
            out->list[out->count++] =
                (struct gcmp_bits_step){x->path, y->path, x->iteration, false};
            has_common = true;
        }
        i += !only_b;
        j += !only_a;
    }
    if (!has_common) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, names[1], GRADCMP_NO_OFFSET,
                     "has no iteration in common with %s", names[0]);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_pair_runs(struct gcmp_arena *arena, const char *const *paths,
                                        size_t count, struct gcmp_bits_steps *out,
                                        struct gradcmp_error *error) {
    struct run *runs = gcmp_arena_alloc(arena, count, sizeof *runs);
    size_t total = 0;
    bool has_several = false, are_runs = true;
    *out = (struct gcmp_bits_steps){0};
    if (runs == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < count && are_runs; i++) {
        GCMP_TRY(find_run(arena, paths[i], &runs[i], error));
        are_runs = runs[i].count > 0;
        has_several = has_several || runs[i].count > 1;
        total += runs[i].count + runs[0].count;
    }
    if (!are_runs || !has_several) {
        return GRADCMP_OK;
    }
    out->list = gcmp_arena_alloc(arena, total, sizeof *out->list);
    out->notes = gcmp_arena_alloc(arena, total, sizeof *out->notes);
    if (out->list == NULL || out->notes == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 1; i < count; i++) {
        const char *names[] = {paths[0], paths[i]};
        const struct run both[] = {runs[0], runs[i]};
        GCMP_TRY(pair(arena, names, both, out, error));
    }
    return GRADCMP_OK;
}
