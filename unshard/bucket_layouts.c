/* Tries all ways of laying a model out in buckets.
 *
 * Two things are not in the names: whether the norm before attention is a module of its own, and
 * whether experts are grouped. Gathered buffers (bucket_set.h) do not tell either where the
 * writer's buckets ended, and before 2024-03 parameters were not aligned. So a layout is a choice
 * of each. */
#include "unshard/bucket_layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"

/* Layouts that leave weights out have numbers beyond those of the others. */
enum { ALIGN_ELEMS = 64, LAYOUTS_OF_BUCKETS = 4, FIRST_LEFT_OUT = GCMP_BUCKET_LAYOUTS + 1 };

static int compare_placed(const void *left, const void *right) {
    const struct gcmp_placed *a = left, *b = right;
    const uint64_t keys_a[] = {a->parameter, a->repeat, a->rank, a->stage, a->bucket, a->start};
    const uint64_t keys_b[] = {b->parameter, b->repeat, b->rank, b->stage, b->bucket, b->start};
    for (size_t i = 0; i < 6; i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* The layout of a number from 1. */
static struct gcmp_bucket_layout layout_of(uint32_t number) {
    uint32_t bits = number - 1;
    struct gcmp_modules modules = {(bits & 1) != 0, (bits & 2) != 0};
    return (struct gcmp_bucket_layout){.modules = modules,
                                       .align = (bits & 4) != 0 ? 1 : ALIGN_ELEMS,
                                       .cuts_buckets = (bits & 8) != 0,
                                       .splits_shared = (bits & 16) != 0,
                                       .leaves_out = number >= FIRST_LEFT_OUT};
}

/* How many layouts there are to try. */
static uint32_t layout_count(const struct gcmp_bucket_set *set) {
    for (size_t i = 0; i < set->bucket_count; i++) {
        if (set->buckets[i].is_gathered) {
            return GCMP_BUCKET_LAYOUTS;
        }
    }
    return LAYOUTS_OF_BUCKETS;
}

/* Whether the run's arguments contradict an order of registration. */
static bool is_denied(const struct gradcmp_catalogue *catalogue, struct gcmp_modules modules) {
    const struct gradcmp_setting *impl = gcmp_catalogue_setting(catalogue, "transformer_impl");
    const struct gradcmp_setting *grouped = gcmp_catalogue_setting(catalogue, "moe_grouped_gemm");
    bool knows_impl = impl != NULL && impl->kind == GRADCMP_SETTING_TEXT;
    bool knows_grouped = grouped != NULL && grouped->kind == GRADCMP_SETTING_BOOL;
    return (knows_impl && (strcmp(impl->text, "local") != 0) != modules.norms_are_fused) ||
           (knows_grouped && (grouped->integer != 0) != modules.experts_are_grouped);
}

/* A layout that fits: where it places everything, sorted. */
struct fitting {
    uint32_t number;
    struct gcmp_placed *placed; /* malloced */
    size_t count;
    bool is_denied;
};

struct fittings {
    struct fitting list[GCMP_BUCKET_LAYOUTS];
    size_t count;
};

static void free_fittings(struct fittings *fittings) {
    for (size_t i = 0; i < fittings->count; i++) {
        free(fittings->list[i].placed);
    }
    fittings->count = 0;
}

static bool is_same(const struct fitting *fitting, const struct gcmp_fit *fit) {
    size_t i = 0;
    while (i < fitting->count && i < fit->placed_count &&
           compare_placed(&fitting->placed[i], &fit->placed[i]) == 0) {
        i++;
    }
    return i == fitting->count && i == fit->placed_count;
}

/* Keep what was laid out, unless another layout places everything so too. False without memory. */
static bool keep(const struct gcmp_fit *fit, uint32_t number, struct fittings *fittings) {
    bool denied = is_denied(fit->catalogue, fit->layout.modules);
    if (fit->placed_count > 0) {
        qsort(fit->placed, fit->placed_count, sizeof *fit->placed, compare_placed);
    }
    for (size_t i = 0; i < fittings->count; i++) {
        if (is_same(&fittings->list[i], fit)) {
            fittings->list[i].is_denied = fittings->list[i].is_denied && denied;
            return true;
        }
    }
    struct gcmp_placed *placed = malloc((fit->placed_count + 1) * sizeof *placed);
    if (placed == NULL) {
        return false;
    }
    if (fit->placed_count > 0) {
        memcpy(placed, fit->placed, fit->placed_count * sizeof *placed);
    }
    fittings->list[fittings->count++] = (struct fitting){number, placed, fit->placed_count, denied};
    return true;
}

/* Try the layouts of some numbers. *is_open: a layout that the arguments do not deny fits with
 * several choices of frozen weights, and so is none of the fittings. */
static enum gradcmp_status try_numbers(struct gcmp_fit *fit, uint32_t first, uint32_t last,
                                       struct fittings *fittings, bool *is_open,
                                       struct gradcmp_error *error) {
    for (uint32_t i = first; i <= last; i++) {
        bool fits = gcmp_fit_lay_out(fit, layout_of(i));
        if (fit->lacks_memory || (fits && !keep(fit, i, fittings))) {
            free_fittings(fittings);
            GCMP_FAIL_MEMORY(error);
        }
        *is_open = *is_open || (fit->is_open && !is_denied(fit->catalogue, fit->layout.modules));
    }
    return GRADCMP_OK;
}

/* Try the layout of one number, or all (0): where none holds all weights, those that leave some
 * out. On failure nothing is to be freed. */
static enum gradcmp_status try_layouts(struct gcmp_fit *fit, uint32_t number,
                                       struct fittings *fittings, struct gradcmp_error *error) {
    uint32_t first = number == 0 ? 1 : number;
    uint32_t last = number == 0 ? layout_count(fit->set) : number;
    bool is_open = false;
    fittings->count = 0;
    GCMP_TRY(try_numbers(fit, first, last, fittings, &is_open, error));
    if (fittings->count == 0 && number == 0 && gcmp_fit_may_leave_out(fit)) {
        const char *where = fit->where;
        GCMP_TRY(try_numbers(fit, FIRST_LEFT_OUT, FIRST_LEFT_OUT + LAYOUTS_OF_BUCKETS - 1, fittings,
                             &is_open, error));
        fit->where = where;
    }
    if (is_open) {
        free_fittings(fittings);
        return gcmp_fit_refuse(
            fit,
            "it does not hold all of the model's parameters, and several choices "
            "of frozen ones would fill it",
            error);
    }
    if (fittings->count == 0) {
        return gcmp_fit_refuse(fit, "no order of the model's parameters fills this buffer", error);
    }
    fit->where = NULL;
    return GRADCMP_OK;
}

/* The only one that the arguments do not deny, or the only one; NULL where several are left. */
static struct fitting *choose(struct fittings *fittings) {
    struct fitting *best = NULL;
    size_t allowed = 0;
    for (size_t i = 0; i < fittings->count; i++) {
        if (!fittings->list[i].is_denied) {
            best = &fittings->list[i];
            allowed++;
        }
    }
    return allowed == 1 ? best : allowed == 0 && fittings->count == 1 ? fittings->list : NULL;
}

/* What fits by its size alone must be in an order that is known. */
static enum gradcmp_status check_known(const struct gcmp_fit *fit, struct gradcmp_error *error) {
    if (fit->unknown == NULL) {
        return GRADCMP_OK;
    }
    char why[512];
    snprintf(why, sizeof why,
             "nothing tells in which order it holds modules such as that of %.256s", fit->unknown);
    return gcmp_fit_refuse(fit, why, error);
}

/* Leave a layout's placements in the fit, and what it leaves out. */
static enum gradcmp_status take(struct gcmp_fit *fit, const struct fitting *found,
                                struct gradcmp_error *error) {
    if (!gcmp_fit_lay_out(fit, layout_of(found->number))) { /* it did before */
        GCMP_FAIL_MEMORY(error);
    }
    if (fit->placed_count > 0) {
        qsort(fit->placed, fit->placed_count, sizeof *fit->placed, compare_placed);
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_layout_find(struct gcmp_fit *fit, uint32_t number,
                                     struct gradcmp_error *error) {
    struct fittings fittings;
    GCMP_TRY(try_layouts(fit, number, &fittings, error));
    struct fitting *found = choose(&fittings);
    enum gradcmp_status status = number == 0 ? check_known(fit, error) : GRADCMP_OK;
    if (status == GRADCMP_OK) {
        status = found != NULL
                     ? take(fit, found, error)
                     : gcmp_fit_refuse(
                           fit, "several orders of the model's parameters fill the buffers", error);
    }
    free_fittings(&fittings);
    return status;
}

enum gradcmp_status gcmp_layout_list(struct gcmp_fit *fit, struct gcmp_bucket_layouts *out,
                                     struct gradcmp_error *error) {
    struct fittings fittings;
    GCMP_TRY(try_layouts(fit, 0, &fittings, error));
    *out = (struct gcmp_bucket_layouts){.count = 0};
    for (unsigned denied = 0; denied < 2; denied++) {
        for (size_t i = 0; i < fittings.count; i++) {
            if (fittings.list[i].is_denied == (denied != 0)) {
                out->numbers[out->count++] = fittings.list[i].number;
                out->allowed += denied == 0;
            }
        }
    }
    free_fittings(&fittings);
    return GRADCMP_OK;
}
