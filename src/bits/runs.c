/* Which iterations two runs have in common. */
#include "bits/runs.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/search.h"

enum { MAX_NAMES = 1 << 20 };

/* A checkpoint in a run's folder. */
struct found {
    int64_t iteration;
    const char *path, *name;
    bool counts_epochs; /* the number is one of epochs, which no other run's steps are */
};

struct run {
    struct found *list; /* sorted; in the arena */
    size_t count;
};

static bool is_checkpoint_name(struct gcmp_dir *dir, const char *name) {
    enum gcmp_dir_kind kind = gcmp_dir_kind(dir, name);
    return kind == GCMP_DIR_FILE ? gcmp_is_weak_mark(name) || fnmatch("*.safetensors", name, 0) == 0
                                 : kind == GCMP_DIR_FOLDER;
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

static int compare_points(const struct found *a, const struct found *b) {
    if (a->counts_epochs != b->counts_epochs) {
        return a->counts_epochs ? 1 : -1;
    }
    return a->iteration < b->iteration ? -1 : a->iteration > b->iteration;
}

static int compare_found(const void *left, const void *right) {
    const struct found *a = left, *b = right;
    int order = compare_points(a, b);
    return order != 0 ? order : strcmp(a->name, b->name);
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
        bool is_sure;
        int64_t iteration = gcmp_iteration_of(names[i], &is_sure);
        if (!is_sure || !is_checkpoint_name(dir, names[i])) {
            continue;
        }
        char *path = gcmp_arena_format(arena, "%s/%s", gcmp_dir_path(dir), names[i]);
        if (path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        out->list[out->count++] =
            (struct found){iteration, path, strrchr(path, '/') + 1, gcmp_epoch_of(names[i]) >= 0};
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

/* Two runs while they are paired. */
struct pairing {
    struct gcmp_arena *arena;
    const char *const *names; /* of the runs */
    const struct run *runs;
    struct gcmp_bits_steps *out;
    bool has_common;
    struct gradcmp_error *error;
};

/* Checkpoints of one iteration: list[first] to list[end - 1] of a run. */
struct span {
    size_t first, end;
};

static struct span span_at(const struct run *run, size_t first) {
    size_t end = first;
    while (end < run->count && compare_points(&run->list[first], &run->list[end]) == 0) {
        end++;
    }
    return (struct span){first, end};
}

/* True for what the second run should have: it lies behind its own first iteration. */
static bool is_behind_first(const struct run *run, const struct found *found) {
    for (size_t i = 0; i < run->count; i++) {
        if (run->list[i].counts_epochs == found->counts_epochs) {
            return run->list[i].iteration <= found->iteration;
        }
    }
    return false;
}

/* Note a checkpoint that one run (`side`) has alone; it is named where its run has others of that
 * iteration. */
static enum gradcmp_status add_alone(const struct pairing *pairing, size_t side,
                                     const struct found *found, bool is_one_of_many) {
    struct gcmp_bits_steps *out = pairing->out;
    const char *label = gcmp_arena_format(
        pairing->arena, "%s %lld%s%s", found->counts_epochs ? "epoch" : "iteration",
        (long long)found->iteration, is_one_of_many ? ": " : "", is_one_of_many ? found->name : "");
    const char *text = label == NULL ? NULL
                                     : gcmp_arena_format(pairing->arena, "%s is not in %s", label,
                                                         pairing->names[1 - side]);
    if (text == NULL) {
        GCMP_FAIL_MEMORY(pairing->error);
    }
    out->notes[out->note_count++] = text;
    if (side == 0 && is_behind_first(&pairing->runs[1], found)) {
        out->list[out->count++] =
            (struct gcmp_bits_step){found->path, pairing->names[1], found->iteration, true, label};
    }
    return GRADCMP_OK;
}

/* The one of a span that has a name; NULL: none. */
static const struct found *find_name(const struct run *run, const struct span *span,
                                     const char *name) {
    for (size_t i = span->first; i < span->end; i++) {
        if (strcmp(run->list[i].name, name) == 0) {
            return &run->list[i];
        }
    }
    return NULL;
}

/* Pair what two runs have of one iteration: the only one of each, or those of the same name. */
static enum gradcmp_status pair_spans(struct pairing *pairing, const struct span spans[2]) {
    struct gcmp_bits_steps *out = pairing->out;
    const struct run *runs = pairing->runs;
    const struct found *only = &runs[1].list[spans[1].first];
    bool is_one = spans[0].end - spans[0].first == 1 && spans[1].end - spans[1].first == 1;
    for (size_t i = spans[0].first; i < spans[0].end; i++) {
        const struct found *x = &runs[0].list[i];
        const struct found *y = is_one ? only : find_name(&runs[1], &spans[1], x->name);
        if (y == NULL) {
            GCMP_TRY(add_alone(pairing, 0, x, true));
            continue;
        }
        out->list[out->count++] =
            (struct gcmp_bits_step){x->path, y->path, x->iteration, false, NULL};
        pairing->has_common = true;
    }
    for (size_t i = spans[1].first; i < spans[1].end && !is_one; i++) {
        if (find_name(&runs[0], &spans[0], runs[1].list[i].name) == NULL) {
            GCMP_TRY(add_alone(pairing, 1, &runs[1].list[i], true));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status pair(struct pairing *pairing) {
    const struct run *a = &pairing->runs[0], *b = &pairing->runs[1];
    for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : compare_points(&a->list[i], &b->list[j]);
        const struct span spans[] = {span_at(a, i), span_at(b, j)};
        for (size_t k = i; order < 0 && k < spans[0].end; k++) {
            GCMP_TRY(add_alone(pairing, 0, &a->list[k], spans[0].end - i > 1));
        }
        for (size_t k = j; order > 0 && k < spans[1].end; k++) {
            GCMP_TRY(add_alone(pairing, 1, &b->list[k], spans[1].end - j > 1));
        }
        if (order == 0) {
            GCMP_TRY(pair_spans(pairing, spans));
        }
        i = order <= 0 ? spans[0].end : i;
        j = order >= 0 ? spans[1].end : j;
    }
    if (!pairing->has_common) {
        GCMP_FAIL_AT(pairing->error, GRADCMP_ERROR_USAGE, pairing->names[1], GRADCMP_NO_OFFSET,
                     "has no iteration in common with %s", pairing->names[0]);
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
        struct pairing pairing = {arena, names, both, out, false, error};
        GCMP_TRY(pair(&pairing));
    }
    return GRADCMP_OK;
}
