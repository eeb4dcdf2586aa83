/* The end of the search: what was proved becomes a cause. */
#include <math.h>
#include <string.h>

#include "bounds/bounds.h"
#include "diagnose_search.h"

enum gradcmp_status gcmp_search_add_cause(struct gcmp_search *search,
                                          const struct gcmp_search_scene *scene,
                                          struct gradcmp_cause cause, struct gradcmp_error *error) {
    struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    struct gradcmp_cause *grown =
        gcmp_arena_alloc(scene->comparison->report->arena, report->cause_count + 1, sizeof *grown);
    if (grown == NULL || cause.text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    size_t at = 0;
    while (at < report->cause_count &&
           gcmp_cause_find(report->causes[at].kind) <= gcmp_cause_find(cause.kind)) {
        at++;
    }
    if (at > 0) {
        memcpy(grown, report->causes, at * sizeof *grown);
    }
    grown[at] = cause;
    if (at < report->cause_count) {
        memcpy(grown + at + 1, report->causes + at, (report->cause_count - at) * sizeof *grown);
    }
    report->causes = grown;
    report->cause_count++;
    return GRADCMP_OK;
}

/* Parts of one hypothesis, added up. */
static void add_part(struct gradcmp_tally *total, const struct gradcmp_tally *part) {
    total->d2 += part->d2;
    total->ad += part->ad;
    total->a2 += part->a2;
    total->b2 += part->b2;
    total->max_d = fmax(total->max_d, part->max_d);
    total->nonfinite_any += part->nonfinite_any;
}

static enum gradcmp_status claim_guesses(struct gcmp_search *search,
                                         const struct gcmp_search_scene *scene,
                                         struct gradcmp_error *error) {
    const struct gradcmp_parameter_report *report = gcmp_search_report(search, scene);
    double bound = gcmp_bound_at(&gcmp_search_pair(scene)->bound, report->layer);
    for (struct gcmp_guess *guess = search->guesses; guess != NULL; guess = guess->next) {
        if (!guess->confirmed) {
            continue;
        }
        struct gradcmp_tally tally = scene->probes->tallies[guess->probe];
        for (const struct gcmp_guess *part = guess->rest; part != NULL; part = part->rest) {
            add_part(&tally, &scene->probes->tallies[part->probe]);
        }
        double residual = gcmp_cause_residual(&tally, search->common);
        if (tally.nonfinite_any == 0 &&
            gcmp_cause_holds(residual, bound, gcmp_search_before(report))) {
            struct gradcmp_cause cause = {gcmp_cause_name(guess->kind), NAN, residual, guess->text};
            GCMP_TRY(gcmp_search_add_cause(search, scene, cause, error));
        }
    }
    return GRADCMP_OK;
}

enum gradcmp_status gcmp_search_claim(struct gcmp_search *search,
                                      const struct gcmp_search_scene *scene,
                                      struct gradcmp_error *error) {
    return claim_guesses(search, scene, error);
}
