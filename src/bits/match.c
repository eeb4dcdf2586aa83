/* Pairing by paths. */
#include "bits/match.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/grow.h"
#include "unshard/names.h"

/* True where the caller says that a path may differ. */
static bool is_path_ignored(const struct gcmp_bits_options *options, const char *path) {
    for (size_t i = 0; i < options->ignore_count; i++) {
        if (gcmp_bits_ignores(options->ignores[i], path)) {
            return true;
        }
    }
    return false;
}

bool gcmp_bits_is_ignored(const struct gcmp_bits_options *options,
                          const struct gcmp_bits_item *item) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an item is given */
    if (is_path_ignored(options, item->path)) {
        return true;
    }
    bool by_default = !options->no_default_ignores && item->kind == GCMP_BITS_VALUE;
    for (size_t i = 0; by_default && gcmp_bits_default_ignores[i] != NULL; i++) {
        if (gcmp_bits_ignores(gcmp_bits_default_ignores[i], item->path)) {
            return true;
        }
    }
    return false;
}

enum gradcmp_status gcmp_bits_add_entry(struct gcmp_bits_match *match,
                                        const struct gcmp_bits_entry *entry,
                                        struct gradcmp_error *error) {
    if (!gcmp_grow(&match->entries, match->count, &match->capacity, sizeof *entry)) {
        GCMP_FAIL_MEMORY(error);
    }
    match->entries[match->count++] = *entry;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_add_ignored(struct gcmp_bits_match *match, const char *path,
                                          struct gradcmp_error *error) {
    if (!gcmp_grow(&match->ignored, match->ignored_count, &match->ignored_capacity, sizeof path)) {
        GCMP_FAIL_MEMORY(error);
    }
    match->ignored[match->ignored_count] = gcmp_arena_dup(match->arena, path);
    if (match->ignored[match->ignored_count++] == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* --- two items --- */

static bool same_shape(const struct gcmp_bits_item *a, const struct gcmp_bits_item *b) {
    return gcmp_dims_equal(a->ndim, a->shape, b->ndim, b->shape);
}

static enum gcmp_bits_how compare_forms(const struct gcmp_bits_item *a,
                                        const struct gcmp_bits_item *b) {
    bool value = a->kind == GCMP_BITS_VALUE;
    if (value != (b->kind == GCMP_BITS_VALUE) || strcmp(a->type, b->type) != 0) {
        return GCMP_BITS_BY_TYPE;
    }
    if (value) {
        return a->length_bytes == b->length_bytes &&
                       memcmp(a->bytes, b->bytes, a->length_bytes) == 0
                   ? GCMP_BITS_SAME
                   : GCMP_BITS_BY_VALUE;
    }
    return same_shape(a, b) ? GCMP_BITS_SAME : GCMP_BITS_BY_SHAPE;
}

static struct gcmp_bits_difference *begin_difference(struct gcmp_bits_match *match,
                                                     const struct gcmp_bits_item *item) {
    return gcmp_bits_difference_make(
        match->arena, item->ndim,
        item->kind == GCMP_BITS_TENSOR ? item->parameter->shape : item->shape, item->elem_bytes);
}

/* An array in memory against a tensor in a file: the tensor is read. Only small ones, and those of
 * compressed objects, are in memory. */
static enum gradcmp_status bring_together(struct gcmp_bits_match *match,
                                          const struct gcmp_bits_item **item,
                                          struct gradcmp_error *error) {
    if ((*item)->kind == GCMP_BITS_ARRAY) {
        return GRADCMP_OK;
    }
    struct gcmp_bits_item *copy = gcmp_arena_alloc(match->arena, 1, sizeof *copy);
    if (copy == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    *copy = **item;
    *item = copy;
    return gcmp_bits_fetch(match->arena, copy, error);
}

static enum gradcmp_status compare_elements(struct gcmp_bits_match *match,
                                            struct gcmp_bits_entry *entry,
                                            struct gradcmp_error *error) {
    entry->difference = begin_difference(match, entry->a);
    if (entry->difference == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (entry->a->kind == GCMP_BITS_TENSOR && entry->b->kind == GCMP_BITS_TENSOR) {
        entry->elems = entry->a->parameter->elem_count;
        return GRADCMP_OK; /* the engine's */
    }
    GCMP_TRY(bring_together(match, &entry->a, error));
    GCMP_TRY(bring_together(match, &entry->b, error));
    if (entry->a->length_bytes != entry->b->length_bytes) {
        entry->how = GCMP_BITS_BY_SHAPE;
        return GRADCMP_OK;
    }
    entry->elems = entry->a->length_bytes / entry->a->elem_bytes;
    gcmp_bits_compare(entry->difference, 0, (size_t)entry->elems, entry->a->bytes, entry->b->bytes);
    entry->how = entry->difference->different > 0 ? GCMP_BITS_BY_VALUE : GCMP_BITS_SAME;
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_pair(struct gcmp_bits_match *match, const struct gcmp_bits_item *a,
                                   const struct gcmp_bits_item *b, struct gradcmp_error *error) {
    struct gcmp_bits_entry entry = {
        .path = a->path, .a = a, .b = b, .group = a->group, .how = (uint8_t)compare_forms(a, b)};
    if (entry.how == GCMP_BITS_SAME && a->kind != GCMP_BITS_VALUE) {
        if (gcmp_bits_is_ignored(match->options, a)) {
            return gcmp_bits_add_ignored(match, a->path, error);
        }
        GCMP_TRY(compare_elements(match, &entry, error));
    }
    if (entry.how != GCMP_BITS_SAME && gcmp_bits_is_ignored(match->options, a)) {
        return gcmp_bits_add_ignored(match, a->path, error);
    }
    bool has_no_meaning = match->layouts_differ && a->kind != GCMP_BITS_TENSOR &&
                          (a->group == GCMP_BITS_RNG || gcmp_bits_is_layout_setting(a->path) ||
                           gcmp_bits_is_numbering(a->path));
    if (entry.how != GCMP_BITS_SAME && has_no_meaning) {
        entry.group = GCMP_BITS_LAYOUT;
    }
    return gcmp_bits_add_entry(match, &entry, error);
}

/* --- what one side lacks --- */

/* The list in which a side's items are looked up. */
static const struct gcmp_bits_items *items_of(const struct gcmp_bits_match *match, size_t side) {
    const struct gcmp_bits_side *whole = side == 0 ? match->a : match->b;
    return match->layouts_differ ? &match->reduced[side] : &whole->items;
}

/* True where a list has the path, or anything below it. */
static bool has_below(const struct gcmp_bits_items *items, const char *path, size_t bytes,
                      struct gcmp_text *room) {
    gcmp_text_clear(room);
    gcmp_text_add_bytes(room, path, bytes);
    if (room->failed) {
        return true;
    }
    size_t at = gcmp_bits_lower(items, room->bytes);
    if (at < items->count && strcmp(items->list[at].path, room->bytes) == 0) {
        return true;
    }
    gcmp_text_add(room, "/");
    at = room->failed ? 0 : gcmp_bits_lower(items, room->bytes);
    return at < items->count && strncmp(items->list[at].path, room->bytes, bytes + 1) == 0;
}

/* The next '/' that is not within the quotes of a key; NULL: none. */
static const char *next_slash(const char *at) {
    for (bool is_quoted = false; *at != '\0'; at++) {
        if (*at == '\\' && is_quoted && at[1] != '\0') {
            at++;
        } else if (*at == '\'') {
            is_quoted = !is_quoted;
        } else if (*at == '/' && !is_quoted) {
            return at;
        }
    }
    return NULL;
}

/* The shortest beginning of a path that a list lacks altogether. */
static char *topmost(struct gcmp_bits_match *match, const struct gcmp_bits_items *items,
                     const char *path) {
    struct gcmp_text room = GCMP_TEXT_INIT;
    const char *slash = next_slash(path);
    while (slash != NULL && has_below(items, path, (size_t)(slash - path), &room)) {
        slash = next_slash(slash + 1);
    }
    gcmp_text_free(&room);
    return gcmp_arena_text(match->arena, path,
                           slash == NULL ? strlen(path) : (size_t)(slash - path));
}

/* Add an entry for a part that a side lacks, but where it is told already. */
static enum gradcmp_status add_lacking(struct gcmp_bits_match *match,
                                       const struct gcmp_bits_entry *entry, size_t lacking,
                                       struct gradcmp_error *error) {
    if (entry->path == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_bits_told *told = &match->told[lacking];
    const char **last = entry->how == GCMP_BITS_LEFT_OUT ? &told->left_out : &told->counted;
    if (*last != NULL && strcmp(*last, entry->path) == 0) {
        return GRADCMP_OK;
    }
    *last = entry->path;
    return is_path_ignored(match->options, entry->path)
               ? gcmp_bits_add_ignored(match, entry->path, error)
               : gcmp_bits_add_entry(match, entry, error);
}

/* Add an entry for what some ranks of a side lack. */
static enum gradcmp_status add_lost(struct gcmp_bits_match *match, const struct gcmp_bits_item *a,
                                    const struct gcmp_bits_item *b, size_t lacking,
                                    struct gradcmp_error *error) {
    /* cppcheck-suppress nullPointer; one of both is given */
    const char *path = a == NULL ? b->path : a->path;
    struct gcmp_bits_entry entry = {.path = topmost(match, items_of(match, lacking), path),
                                    .a = a,
                                    .b = b,
                                    .group = GCMP_BITS_KEYS,
                                    .how = lacking == 0 ? GCMP_BITS_LOST_BY_RANKS_OF_A
                                                        : GCMP_BITS_LOST_BY_RANKS_OF_B};
    return add_lacking(match, &entry, lacking, error);
}

/* True for a name of how far a run is, which is no rank's own. */
static bool is_counter(const char *path) {
    static const char *const words[] = {"iteration", "epoch", "step"};
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(slash == NULL ? path : slash, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* True where all ranks of one side (1 - lacking) agree on an item, and it counts that the other
 * side's run of it does not have it so. That a single rank agrees with itself, and texts, that may
 * be paths, say little. */
static bool is_judged(const struct gcmp_bits_match *match, const struct gcmp_bits_item *item,
                      const struct gcmp_bits_run *run, size_t lacking) {
    if (run->count == 0 || !gcmp_bits_is_for_all_ranks(item)) {
        return false;
    }
    if (gcmp_bits_is_alike(run, item)) {
        return true; /* lost by some */
    }
    bool is_list = gcmp_bits_in_group(item->path) == NULL && item->group == GCMP_BITS_OPT_HYPER;
    bool may_vary = item->group == GCMP_BITS_OTHER || item->group == GCMP_BITS_ARGS;
    bool says_little = item->group == GCMP_BITS_OTHER && item->ranks != GCMP_BITS_EVERY_RANK &&
                       !is_counter(item->path);
    return !is_list && !says_little && !(may_vary && gcmp_bits_has_type(item, "str")) &&
           gcmp_bits_unlike(&match->reduced[1 - lacking], item, run) != NULL;
}

/* An item of which the other side's ranks have not all the same: a rank that has another value is
 * told, or that some have none. */
static enum gradcmp_status tell_ranks(struct gcmp_bits_match *match,
                                      const struct gcmp_bits_item *item,
                                      const struct gcmp_bits_run *run, size_t lacking,
                                      struct gradcmp_error *error) {
    const struct gcmp_bits_item *other = gcmp_bits_unlike(&match->reduced[1 - lacking], item, run);
    if (other == NULL) {
        return add_lost(match, lacking == 0 ? NULL : item, lacking == 0 ? item : NULL, lacking,
                        error);
    }
    struct gcmp_bits_item *pair = gcmp_arena_alloc(match->arena, 2, sizeof *pair);
    if (pair == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    pair[lacking] = *other;
    pair[1 - lacking] = *item;
    pair[0].path = pair[1].path = other->whole == NULL ? item->path : other->whole;
    return gcmp_bits_pair(match, &pair[0], &pair[1], error);
}

/* True where every rank of one side has an item, and of the other side only the first. */
static bool is_lost(const struct gcmp_bits_item *whole, const struct gcmp_bits_item *lost) {
    return whole->ranks == GCMP_BITS_EVERY_RANK && lost->ranks == GCMP_BITS_FIRST_RANK &&
           gcmp_bits_is_for_all_ranks(whole);
}

/* True where a side has generators at all: else they were lost, whatever the layout. */
static bool has_generators(const struct gcmp_bits_match *match, size_t side) {
    const struct gcmp_bits_items *items = side == 0 ? &match->a->items : &match->b->items;
    for (size_t i = 0; i < items->count; i++) {
        if (items->list[i].group == GCMP_BITS_RNG) {
            return true;
        }
    }
    return false;
}

/* True for what a side need not have: the other layout of the format keeps it, or the format keeps
 * objects in other places. What modules keep beside tensors stands at layers that a rank, or a
 * layout, numbers for itself, as optimizers do their parameters; layouts come with versions of a
 * trainer. */
static bool has_other_place(const struct gcmp_bits_match *match, const struct gcmp_bits_item *item,
                            size_t lacking) {
    if (match->formats_differ || gcmp_bits_is_of_version(item->path) ||
        gcmp_bits_is_numbering(item->path) || gcmp_bits_is_numbered(item->path)) {
        return true;
    }
    bool may_be_elsewhere = match->format != NULL || strchr(item->path, '*') != NULL;
    unsigned there = match->marks[lacking], own = gcmp_bits_optimizer_marks(item->path);
    unsigned form = own & (GCMP_BITS_ONE_OPTIMIZER | GCMP_BITS_OPTIMIZERS);
    unsigned forms = there & (GCMP_BITS_ONE_OPTIMIZER | GCMP_BITS_OPTIMIZERS);
    bool is_in_other_form = form != 0 && forms != 0 && (form & forms) == 0;
    bool is_step = (own & GCMP_BITS_GROUP_STEPS) != 0 && (there & GCMP_BITS_GROUP_STEPS) == 0;
    return is_in_other_form || is_step ||
           (may_be_elsewhere && (there & GCMP_BITS_EXTRA_STATES) != 0 &&
            gcmp_bits_is_extra_state(item->path)) ||
           (match->format != NULL &&
            gcmp_bits_is_of_layout(match->format, item->path, match->layout_names[lacking]));
}

enum gradcmp_status gcmp_bits_lone(struct gcmp_bits_match *match, const struct gcmp_bits_item *item,
                                   size_t lacking, struct gradcmp_error *error) {
    if (gcmp_bits_is_ignored(match->options, item)) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an item is given */
        return gcmp_bits_add_ignored(match, item->path, error);
    }
    struct gcmp_bits_run run = {0};
    if (match->layouts_differ && item->state == NULL) {
        run = gcmp_bits_find_run(&match->ranked[lacking], item->path);
    }
    if (is_judged(match, item, &run, lacking)) {
        return tell_ranks(match, item, &run, lacking, error);
    }
    struct gcmp_bits_entry entry = {.group = GCMP_BITS_KEYS,
                                    .how = lacking == 0 ? GCMP_BITS_MISSING_IN_A
                                                        : GCMP_BITS_MISSING_IN_B};
    *(lacking == 0 ? &entry.b : &entry.a) = item;
    /* Steps are kept in other places, too, or not at all: extracted tensors, for inference. */
    bool is_object =
        item->state == NULL || (match->formats_differ && !gcmp_is_parameter_state(item->state) &&
                                !gcmp_bits_by_model(match, item));
    if (match->layouts_differ && is_object &&
        (run.count > 0 || has_other_place(match, item, lacking) ||
         (item->group == GCMP_BITS_RNG && item->by_rank && has_generators(match, lacking)))) {
        entry.group = GCMP_BITS_LAYOUT;
        entry.how = GCMP_BITS_LEFT_OUT;
        match->left_out[1 - lacking] |= UINT32_C(1) << item->group;
    }
    /* Another format keeps what is below a part elsewhere: what is lost of it has to be named. */
    bool is_whole = match->formats_differ && entry.how != GCMP_BITS_LEFT_OUT;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an item is given */
    entry.path = is_whole ? gcmp_arena_dup(match->arena, item->path)
                          : topmost(match, items_of(match, lacking), item->path);
    return add_lacking(match, &entry, lacking, error);
}

/* --- the lists --- */

/* What of a side's objects tells where others of them stand. */
static unsigned marks_of(const struct gcmp_bits_items *items) {
    unsigned marks = 0;
    for (size_t i = 0; i < items->count; i++) {
        marks |= gcmp_bits_is_extra_state(items->list[i].path) ? GCMP_BITS_EXTRA_STATES : 0U;
        marks |= gcmp_bits_optimizer_marks(items->list[i].path);
    }
    return marks;
}

enum gradcmp_status gcmp_bits_merge_lists(struct gcmp_bits_match *match,
                                          struct gradcmp_error *error) {
    const struct gcmp_bits_items *a = items_of(match, 0), *b = items_of(match, 1);
    size_t i = 0, j = 0;
    for (size_t side = 0; match->layouts_differ && side < 2; side++) {
        match->marks[side] = marks_of(&match->reduced[side]) | marks_of(&match->ranked[side]);
    }
    while (i < a->count || j < b->count) {
        const struct gcmp_bits_item *x = i < a->count ? &a->list[i] : NULL;
        const struct gcmp_bits_item *y = j < b->count ? &b->list[j] : NULL;
        int order = x == NULL ? 1 : y == NULL ? -1 : strcmp(x->path, y->path);
        i += order <= 0;
        j += order >= 0;
        bool skip_x = order <= 0 && gcmp_bits_by_model(match, x);
        bool skip_y = order >= 0 && gcmp_bits_by_model(match, y);
        if (order == 0 && !skip_x && !skip_y) {
            GCMP_TRY(gcmp_bits_pair(match, x, y, error));
            if ((is_lost(x, y) || is_lost(y, x)) && !gcmp_bits_is_ignored(match->options, x)) {
                GCMP_TRY(add_lost(match, x, y, is_lost(x, y) ? 1 : 0, error));
            }
        } else {
            if (order <= 0 && !skip_x) {
                GCMP_TRY(gcmp_bits_lone(match, x, 1, error));
            }
            if (order >= 0 && !skip_y) {
                GCMP_TRY(gcmp_bits_lone(match, y, 0, error));
            }
        }
    }
    return GRADCMP_OK;
}

/* What only some ranks have, or each another. The other side's item of the path was told where it
 * is one; where both sides lost it, what is left is compared; and where the other has none at all,
 * that is a loss as any other. */
static enum gradcmp_status leave_out_run(struct gcmp_bits_match *match, size_t side,
                                         const struct gcmp_bits_run *run,
                                         struct gradcmp_error *error) {
    const struct gcmp_bits_item *item = &run->list[0];
    struct gcmp_bits_run other = gcmp_bits_find_run(&match->ranked[1 - side], item->path);
    struct gcmp_bits_run one = gcmp_bits_find_run(&match->reduced[1 - side], item->path);
    bool is_lost_here = gcmp_bits_is_for_all_ranks(item) && gcmp_bits_is_alike(run, item);
    if (gcmp_bits_is_ignored(match->options, item) ||
        (one.count > 0 && is_judged(match, &one.list[0], run, side))) {
        return GRADCMP_OK;
    }
    if (is_lost_here && one.count == 0 && other.count == 0) {
        return gcmp_bits_lone(match, item, 1 - side, error);
    }
    if (side == 1 && other.count > 0) {
        return GRADCMP_OK; /* told with side 0 */
    }
    if (is_lost_here && other.count > 0 && gcmp_bits_is_alike(&other, &other.list[0])) {
        return gcmp_bits_pair(match, item, &other.list[0], error);
    }
    struct gcmp_bits_entry entry = {
        .path = item->path, .group = GCMP_BITS_LAYOUT, .how = GCMP_BITS_LEFT_OUT};
    *(side == 0 ? &entry.a : &entry.b) = item;
    return gcmp_bits_add_entry(match, &entry, error);
}

enum gradcmp_status gcmp_bits_leave_out(struct gcmp_bits_match *match,
                                        struct gradcmp_error *error) {
    for (size_t side = 0; side < 2; side++) {
        const struct gcmp_bits_items *ranked = &match->ranked[side];
        match->told[1 - side] = (struct gcmp_bits_told){NULL, NULL};
        for (size_t first = 0; first < ranked->count;) {
            struct gcmp_bits_run run = gcmp_bits_run_at(ranked, first);
            first += run.count;
            if (gcmp_bits_find_run(&match->reduced[side], run.list[0].path).count == 0) {
                GCMP_TRY(leave_out_run(match, side, &run, error));
            }
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_bits_match(struct gcmp_bits_match *match, struct gradcmp_error *error) {
    gcmp_bits_compare_layouts(match);
    if (match->layouts_differ) {
        GCMP_TRY(gcmp_bits_pair_models(match, error));
    }
    for (size_t side = 0; match->layouts_differ && side < 2; side++) {
        GCMP_TRY(gcmp_bits_reduce(match, side, error));
    }
    GCMP_TRY(gcmp_bits_merge_lists(match, error));
    if (match->layouts_differ) {
        GCMP_TRY(gcmp_bits_leave_out(match, error));
    }
    return gcmp_bits_find_owned(match, error);
}

void gcmp_bits_match_free(struct gcmp_bits_match *match) {
    for (size_t side = 0; side < 2; side++) {
        free(match->reduced[side].list);
        free(match->ranked[side].list);
    }
    free(match->entries);
    free(match->ignored);
}
