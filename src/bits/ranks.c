/* Items of many ranks as one: what all of them have alike, and what each has for itself. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "bits/match.h"

static bool same_item(const struct gcmp_bits_item *a, const struct gcmp_bits_item *b) {
    return a->kind == b->kind && a->kind != GCMP_BITS_TENSOR && strcmp(a->type, b->type) == 0 &&
           gcmp_dims_equal(a->ndim, a->shape, b->ndim, b->shape) &&
           a->length_bytes == b->length_bytes && memcmp(a->bytes, b->bytes, a->length_bytes) == 0;
}

/* --- runs of one path --- */

struct gcmp_bits_run gcmp_bits_run_at(const struct gcmp_bits_items *items, size_t first) {
    size_t end = first;
    while (end < items->count && strcmp(items->list[end].path, items->list[first].path) == 0) {
        end++;
    }
    return (struct gcmp_bits_run){end > first ? &items->list[first] : NULL, end - first};
}

struct gcmp_bits_run gcmp_bits_find_run(const struct gcmp_bits_items *items, const char *path) {
    size_t first = gcmp_bits_lower(items, path);
    bool is_there = first < items->count && strcmp(items->list[first].path, path) == 0;
    return is_there ? gcmp_bits_run_at(items, first) : (struct gcmp_bits_run){NULL, 0};
}

/* True where another group of hyperparameters has the value: which group is which depends on the
 * parameters that a rank has. */
static bool is_in_other_group(const struct gcmp_bits_items *items,
                              const struct gcmp_bits_item *item,
                              const struct gcmp_bits_item *value) {
    const char *rest = gcmp_bits_in_group(item->path);
    if (rest == NULL) {
        return false;
    }
    const char *number = rest;
    while (number[-1] != '/') {
        number--;
    }
    size_t bytes = (size_t)(number - item->path);
    size_t at = (size_t)(gcmp_bits_find_run(items, item->path).list - items->list);
    while (at > 0 && strncmp(items->list[at - 1].path, item->path, bytes) == 0) {
        at--;
    }
    for (; at < items->count && strncmp(items->list[at].path, item->path, bytes) == 0; at++) {
        const char *there = gcmp_bits_in_group(items->list[at].path);
        if (there != NULL && strcmp(there, rest) == 0 && same_item(&items->list[at], value)) {
            return true;
        }
    }
    return false;
}

const struct gcmp_bits_item *gcmp_bits_unlike(const struct gcmp_bits_items *items,
                                              const struct gcmp_bits_item *item,
                                              const struct gcmp_bits_run *run) {
    for (size_t i = 0; i < run->count; i++) {
        if (!same_item(&run->list[i], item) && !is_in_other_group(items, item, &run->list[i])) {
            return &run->list[i];
        }
    }
    return NULL;
}

bool gcmp_bits_is_alike(const struct gcmp_bits_run *run, const struct gcmp_bits_item *item) {
    for (size_t i = 0; i < run->count; i++) {
        if (&run->list[i] != item && !same_item(&run->list[i], item)) {
            return false;
        }
    }
    return true;
}

/* --- ranks' files --- */

/* Take ranks from an item's path; `whole` keeps it. */
static enum gradcmp_status take_ranks(struct gcmp_arena *arena, struct gcmp_bits_item *item,
                                      struct gradcmp_error *error) {
    item->whole = item->path;
    item->path = gcmp_bits_without_ranks(arena, item->path);
    if (item->path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Bytes of a path up to a group of hyperparameters in a rank's file; 0: it is in none. */
static size_t group_bytes(const char *path) {
    const char *rest = gcmp_bits_in_group(path);
    return rest == NULL || gcmp_bits_rank_bytes(path) == 0 ? 0 : (size_t)(rest - path);
}

static enum gradcmp_status list_holders(struct gcmp_arena *arena,
                                        const struct gcmp_bits_items *items,
                                        size_t (*bytes_of)(const char *path),
                                        struct gcmp_bits_items *out, struct gradcmp_error *error) {
    const char *last = "";
    size_t last_bytes = 0;
    for (size_t i = 0; i < items->count; i++) {
        const char *path = items->list[i].path;
        size_t bytes = bytes_of(path);
        if (bytes == 0 || (bytes == last_bytes && strncmp(path, last, bytes) == 0)) {
            continue;
        }
        struct gcmp_bits_item holder = {.path = gcmp_arena_text(arena, path, bytes)};
        if (holder.path == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        last = holder.type = holder.path; /* they are sorted by it */
        last_bytes = bytes;
        GCMP_TRY(take_ranks(arena, &holder, error));
        GCMP_TRY(gcmp_bits_add(out, &holder, error));
    }
    return GRADCMP_OK;
}

/* What is before a path's first '/' behind a rank names a rank's file (or object): one item for
 * each, whose path has no rank; and one for each group of hyperparameters in them, as not every
 * rank has parameters of every group. `items` are sorted, so that a file's stand together. */
static enum gradcmp_status list_files(struct gcmp_arena *arena, const struct gcmp_bits_items *items,
                                      struct gcmp_bits_items *out, struct gradcmp_error *error) {
    GCMP_TRY(list_holders(arena, items, gcmp_bits_rank_bytes, out, error));
    GCMP_TRY(list_holders(arena, items, group_bytes, out, error));
    gcmp_bits_sort(out);
    return GRADCMP_OK;
}

/* Which of the files, or groups, that could hold a run do. */
static enum gradcmp_status count_ranks(struct gcmp_arena *arena,
                                       const struct gcmp_bits_items *files,
                                       const struct gcmp_bits_run *run, uint8_t *out,
                                       struct gradcmp_error *error) {
    const char *whole = run->list[0].whole;
    size_t bytes = whole == NULL ? 0 : group_bytes(whole);
    bytes = whole != NULL && bytes == 0 ? gcmp_bits_rank_bytes(whole) : bytes;
    *out = GCMP_BITS_RANKLESS;
    if (bytes == 0) {
        return GRADCMP_OK;
    }
    struct gcmp_bits_item file = {.path = gcmp_arena_text(arena, whole, bytes)};
    if (file.path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    GCMP_TRY(take_ranks(arena, &file, error));
    struct gcmp_bits_run all = gcmp_bits_find_run(files, file.path);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a count has items */
    bool is_first = all.count > 0 && strcmp(all.list[0].whole, file.whole) == 0;
    *out = all.count < 2                 ? GCMP_BITS_RANKLESS
           : run->count == all.count     ? GCMP_BITS_EVERY_RANK
           : run->count == 1 && is_first ? GCMP_BITS_FIRST_RANK
                                         : GCMP_BITS_SOME_RANKS;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_mark_ranks(struct gcmp_arena *arena,
                                         const struct gcmp_bits_items *all,
                                         const struct gcmp_bits_items *ranked,
                                         struct gcmp_bits_items *items,
                                         struct gradcmp_error *error) {
    struct gcmp_bits_items files = {0};
    enum gradcmp_status status = list_files(arena, all, &files, error);
    for (size_t i = 0; i < items->count && status == GRADCMP_OK; i++) {
        struct gcmp_bits_run run = gcmp_bits_find_run(ranked, items->list[i].path);
        if (run.count > 0) {
            status = count_ranks(arena, &files, &run, &items->list[i].ranks, error);
        }
    }
    free(files.list);
    return status;
}

/* --- reducing --- */

/* Items of one path without ranks: one where they are the same, and no rank's file lacks what
 * every rank has to have; else all. */
static enum gradcmp_status reduce_run(struct gcmp_bits_match *match, size_t side,
                                      const struct gcmp_bits_items *files,
                                      const struct gcmp_bits_run *run,
                                      struct gradcmp_error *error) {
    struct gcmp_bits_item first = run->list[0];
    GCMP_TRY(count_ranks(match->arena, files, run, &first.ranks, error));
    bool is_lost = first.ranks == GCMP_BITS_SOME_RANKS && gcmp_bits_is_for_all_ranks(&first);
    if (gcmp_bits_is_alike(run, &run->list[0]) && !is_lost) {
        return gcmp_bits_add(&match->reduced[side], &first, error);
    }
    for (size_t i = 0; i < run->count; i++) {
        GCMP_TRY(gcmp_bits_add(&match->ranked[side], &run->list[i], error));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status without_ranks(struct gcmp_bits_match *match,
                                         const struct gcmp_bits_items *items,
                                         struct gcmp_bits_items *out, struct gradcmp_error *error) {
    for (size_t i = 0; i < items->count; i++) {
        struct gcmp_bits_item item = items->list[i];
        bool is_parameter = item.state != NULL && !item.model_layout;
        if (item.by_rank && item.state == NULL) {
            GCMP_TRY(take_ranks(match->arena, &item, error));
        }
        if (!is_parameter || !gcmp_bits_by_model(match, &item)) {
            GCMP_TRY(gcmp_bits_add(out, &item, error));
        }
    }
    gcmp_bits_sort(out);
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_reduce(struct gcmp_bits_match *match, size_t side,
                                     struct gradcmp_error *error) {
    const struct gcmp_bits_items *items = side == 0 ? &match->a->items : &match->b->items;
    struct gcmp_bits_items all = {0}, files = {0};
    enum gradcmp_status status = list_files(match->arena, items, &files, error);
    if (status == GRADCMP_OK) {
        status = without_ranks(match, items, &all, error);
    }
    for (size_t first = 0; first < all.count && status == GRADCMP_OK;) {
        struct gcmp_bits_run run = gcmp_bits_run_at(&all, first);
        status = reduce_run(match, side, &files, &run, error);
        first += run.count;
    }
    free(all.list);
    free(files.list);
    return status;
}
