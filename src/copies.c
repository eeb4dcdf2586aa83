/* Copies of one parameter within a side. */
#include "copies.h"

#include <math.h>
#include <stdio.h>

#include "bounds/bounds.h"

/* The rank on an axis that all slabs of a copy share; -1: none, or not known. */
static int32_t shared_rank(const struct gradcmp_parameter *parameter, uint32_t copy, size_t axis) {
    int32_t shared = -1;
    bool is_first = true;
    for (size_t i = 0; i < parameter->slab_count; i++) {
        const struct gradcmp_coords *at = parameter->slabs[i].coords;
        if (parameter->slabs[i].copy != copy) {
            continue;
        }
        if (at == NULL) {
            return -1;
        }
        const int32_t ranks[] = {at->tp, at->pp, at->ep, at->dp};
        if (!is_first && ranks[axis] != shared) {
            return -1;
        }
        shared = ranks[axis];
        is_first = false;
    }
    return shared;
}

const char *gcmp_copy_name(char out[GCMP_COPY_NAME_BYTES],
                           const struct gradcmp_parameter *parameter, uint32_t copy) {
    static const char *const axes[] = {"tp", "pp", "ep", "dp"};
    size_t at = (size_t)snprintf(out, GCMP_COPY_NAME_BYTES, "copy %u", (unsigned)copy);
    const char *separator = " (";
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        int32_t rank = shared_rank(parameter, copy, i);
        if (rank >= 0) {
            at += (size_t)snprintf(out + at, GCMP_COPY_NAME_BYTES - at, "%s%s %d", separator,
                                   axes[i], (int)rank);
            separator = ", ";
        }
    }
    if (separator[0] == ',') {
        snprintf(out + at, GCMP_COPY_NAME_BYTES - at, ")");
    }
    return out;
}

const char *gcmp_side_name(const struct gcmp_side *side) {
    return side->owner == 0 ? "baseline" : "candidate";
}

/* An output layer that is not the embedding to the last bit is no tied copy, but one that the other
 * side lacks. */
static enum gradcmp_status fail_tied(struct gcmp_comparison *comparison,
                                     struct gradcmp_pair_report *pair,
                                     struct gradcmp_parameter_report *parameter,
                                     const struct gcmp_job *job, struct gradcmp_error *error) {
    parameter->copies_conflict = true;
    return gcmp_pair_note(comparison, pair, error,
                          "%s: only the %s stores it, and it is not tied: %llu of %llu elements "
                          "differ from %s; it is missing on the other side",
                          job->b[0].parameter->name, gcmp_side_name(&job->a),
                          (unsigned long long)(job->tallies[0].elems - job->tallies[0].equal_bits),
                          (unsigned long long)job->tallies[0].elems, parameter->name);
}

/* Copies that are none fail the pair: pieces that overlap, and what ranks of the baseline hold
 * under one name, where it may be shards as well, so that nothing is there to compare with. */
static void fail_copies(const struct gcmp_comparison *comparison, struct gradcmp_pair_report *pair,
                        const struct gcmp_job *job) {
    const struct gradcmp_tally *tally = &job->tallies[0];
    struct gradcmp_error error = {0};
    const char *path = job->a.owner == 0 ? comparison->baseline.checkpoint->path : pair->path;
    unsigned long long differing = tally->elems - tally->equal_bits, elems = tally->elems;
    char copy[GCMP_COPY_NAME_BYTES];
    const char *name = job->a.parameter->name;
    bool in_first = tally->nonfinite_a > 0;
    if (tally->nonfinite_any > 0 && !job->a.parameter->overlap) {
        const struct gcmp_side *side = in_first ? &job->a : &job->b[0];
        gcmp_error_set(
            &error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
            "%s: %llu of %llu elements of %s are NaN or Inf, and its other copies differ "
            "from it, so that there is no baseline of it; gradcmp check tells more",
            name, (unsigned long long)(in_first ? tally->nonfinite_a : tally->nonfinite_b), elems,
            gcmp_copy_name(copy, side->parameter, side->copy));
    } else if (job->a.parameter->overlap) {
        gcmp_error_set(&error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                       "%s: chunks of one tensor overlap and hold different values (%llu of %llu "
                       "elements)",
                       name, differing, elems);
    } else if (gcmp_is_of_stages(job->a.parameter)) {
        gcmp_error_set(&error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                       "%s: the stages' copies of this tied weight hold different values (%llu of "
                       "%llu elements), so that there is no baseline of it: was their reduction "
                       "left out? As the candidate it can be judged, and gradcmp check tells more",
                       name, differing, elems);
    } else {
        gcmp_error_set(&error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                       "%s: files of ranks hold different values under this name (%llu of %llu "
                       "elements), and do not tell whether they are shards; save with "
                       "torch.distributed.checkpoint",
                       name, differing, elems);
    }
    gcmp_pair_fail(pair, &error);
}

char *gcmp_copies_nonfinite(struct gcmp_arena *arena, const struct gcmp_job *job) {
    const struct gradcmp_tally *tally = &job->tallies[0];
    const struct gcmp_side *sides[] = {&job->a, &job->b[0]};
    const uint64_t counts[] = {tally->nonfinite_a, tally->nonfinite_b};
    char *text = NULL, name[GCMP_COPY_NAME_BYTES];
    for (size_t i = 0; i < 2; i++) {
        if (counts[i] > 0) {
            text = gcmp_arena_format(
                arena, "%s%llu of %llu elements of %s", text == NULL ? "NaN or Inf in " : text,
                (unsigned long long)counts[i], (unsigned long long)tally->elems,
                gcmp_copy_name(name, sides[i]->parameter, sides[i]->copy));
        }
        if (i == 0 && text != NULL && counts[1] > 0) {
            text = gcmp_arena_format(arena, "%s, in ", text);
        }
    }
    return text;
}

/* Copies of which one holds NaN or Inf conflict; `far`: what both have finite differs beyond the
 * bound as well, by `rel`. */
static enum gradcmp_status note_nonfinite(struct gcmp_comparison *comparison,
                                          struct gradcmp_pair_report *pair,
                                          struct gradcmp_parameter_report *parameter,
                                          const struct gcmp_job *job, double rel, bool far,
                                          struct gradcmp_error *error) {
    struct gcmp_arena *arena = comparison->report->arena;
    const char *side = gcmp_side_name(&job->a), *which = gcmp_copies_nonfinite(arena, job);
    if (which != NULL && parameter->copies_note == NULL) {
        parameter->copies_note = gcmp_arena_format(arena, "%s of the %s", which, side);
    }
    if (which == NULL || parameter->copies_note == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return far ? gcmp_pair_note(comparison, pair, error,
                                "%s: copies in the %s differ: %s; the rest is beyond the bound too "
                                "(relative difference %.3g)",
                                job->a.parameter->name, side, which, rel)
               : gcmp_pair_note(comparison, pair, error, "%s: copies in the %s differ: %s",
                                job->a.parameter->name, side, which);
}

enum gradcmp_status gcmp_judge_copies(struct gcmp_comparison *comparison,
                                      struct gradcmp_pair_report *pair,
                                      struct gradcmp_parameter_report *parameter,
                                      const struct gcmp_job *job, struct gradcmp_error *error) {
    const struct gradcmp_tally *tally = &job->tallies[0];
    if (tally->equal_bits == tally->elems) {
        return GRADCMP_OK;
    }
    uint64_t *unequal =
        job->a.owner == 0 ? &parameter->copies_unequal_a : &parameter->copies_unequal_b;
    *unequal += tally->elems - tally->equal_bits;
    if (job->b[0].parameter != job->a.parameter) {
        return fail_tied(comparison, pair, parameter, job, error);
    }
    double rel = tally->a2 > 0.0   ? sqrt(tally->d2 / tally->a2)
                 : tally->b2 > 0.0 ? (double)INFINITY
                                   : 0.0;
    bool far = !(rel <= gcmp_bound_at(&pair->bound, parameter->layer));
    bool nonfinite = tally->nonfinite_any > 0, beyond = far || nonfinite;
    if (job->a.parameter->overlap || (job->a.parameter->of_ranks && beyond && job->a.owner == 0)) {
        fail_copies(comparison, pair, job);
        return GRADCMP_OK;
    }
    if (beyond) {
        parameter->copies_nonfinite =
            nonfinite && !far && (!parameter->copies_conflict || parameter->copies_nonfinite);
        parameter->copies_conflict = true;
    }
    return nonfinite
               ? note_nonfinite(comparison, pair, parameter, job, rel, far, error)
               : gcmp_pair_note(comparison, pair, error,
                                "%s: copies in the %s differ %s the bound (relative difference "
                                "%.3g)",
                                job->a.parameter->name, gcmp_side_name(&job->a),
                                beyond ? "beyond" : "inside", rel);
}
