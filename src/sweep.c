/* gradcmp_sweep_run: many configurations against one baseline. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "checkpoint.h"
#include "comparison.h"
#include "resume.h"
#include "sweep.h"

/* A repeat that is compared bit for bit with the first run of its configuration: entries of a
 * recipe are sorted by configuration, then by number. */
static bool is_twin(const struct gcmp_roster *roster, size_t index) {
    const struct gcmp_entry *entry = &roster->entries[index];
    return entry->repeat > 1 && index > 0 && entry[-1].key != NULL &&
           entry[-1].place == entry->place;
}

/* --- the baseline --- */

/* What a checkpoint says of its parallelism; *ranks is 0 where it cannot be opened or says nothing.
 * Megatron states the degrees; where they are missing, their product is at least what is known.
 * Errors: MEMORY. */
static enum gradcmp_status count_ranks(const char *path, const struct gradcmp_options *options,
                                       uint64_t *ranks, struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint;
    enum gradcmp_status status = gcmp_checkpoint_open(path, options, &checkpoint, NULL);
    *ranks = 0;
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(error);
    }
    if (status != GRADCMP_OK) {
        return GRADCMP_OK;
    }
    const struct gradcmp_parallel *parallel = &checkpoint->catalogue.parallel;
    *ranks = parallel->world;
    if (*ranks == 0 && parallel->tp != 0) {
        *ranks = parallel->tp;
        *ranks *= parallel->pp != 0 ? parallel->pp : 1;
        *ranks *= parallel->cp != 0 ? parallel->cp : 1;
        *ranks *= parallel->dp != 0 ? parallel->dp : 1;
    }
    gradcmp_checkpoint_free(checkpoint);
    return GRADCMP_OK;
}

/* Of those with the fewest ranks the first by label, so that the choice does not depend on anything
 * else; a checkpoint that says nothing comes last. */
static enum gradcmp_status choose_least(struct gcmp_roster *roster, struct gradcmp_error *error) {
    uint64_t least = UINT64_MAX;
    size_t alike = 0;
    for (size_t i = 0; i < roster->count; i++) {
        uint64_t ranks;
        GCMP_TRY(count_ranks(roster->entries[i].path, &roster->options, &ranks, error));
        if (ranks == 0 || ranks > least || is_twin(roster, i)) {
            continue;
        }
        alike = ranks == least ? alike + 1 : 1;
        roster->baseline = ranks < least ? i : roster->baseline;
        least = ranks;
    }
    if (roster->baseline == SIZE_MAX) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE,
                  "no checkpoint says over how many ranks it was split: name the baseline with "
                  "--baseline");
    }
    roster->baseline_reason =
        alike == 1 ? gcmp_arena_format(roster->arena, "has the least parallelism: %llu rank%s",
                                       (unsigned long long)least, least == 1 ? "" : "s")
                   : gcmp_arena_format(roster->arena,
                                       "the first of %zu with %llu rank%s; --baseline chooses",
                                       alike, (unsigned long long)least, least == 1 ? "" : "s");
    if (roster->baseline_reason == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status choose_baseline(struct gcmp_roster *roster, const char *wanted,
                                           struct gradcmp_error *error) {
    if (wanted == NULL) {
        return roster->baseline != SIZE_MAX ? GRADCMP_OK : choose_least(roster, error);
    }
    GCMP_TRY(gcmp_roster_named(roster, wanted, &roster->baseline, error));
    roster->baseline_reason = "named by --baseline";
    if (roster->baseline == SIZE_MAX) {
        roster->baseline = roster->count;
        return gcmp_roster_add(roster, &(struct gcmp_entry){.path = wanted}, error);
    }
    return GRADCMP_OK;
}

/* What a plan expects of the baseline itself is not looked at. */
static enum gradcmp_status note_expected(struct gcmp_roster *roster, struct gradcmp_error *error) {
    const struct gcmp_entry *baseline = &roster->entries[roster->baseline];
    if (!baseline->has_expected || baseline->expected == GRADCMP_OUTCOME_CONSISTENT) {
        return GRADCMP_OK;
    }
    return gcmp_roster_leave_out(
        roster,
        &(struct gcmp_left_out){"checkpoint",
                                "of which the plan expects something, and which is the baseline",
                                &baseline->path, 1},
        error);
}

/* --- rows --- */

static bool is_row(const struct gcmp_roster *roster, size_t index) {
    return index != roster->baseline && !is_twin(roster, index);
}

static enum gradcmp_status make_rows(struct gradcmp_sweep *sweep, const struct gcmp_roster *roster,
                                     const char **paths, struct gradcmp_error *error) {
    size_t count = 0;
    sweep->rows = gcmp_arena_alloc(sweep->arena, roster->count, sizeof *sweep->rows);
    if (sweep->rows == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < roster->count; i++) {
        const struct gcmp_entry *entry = &roster->entries[i];
        if (is_row(roster, i)) {
            sweep->rows[count] = (struct gradcmp_sweep_row){.entry = i,
                                                            .label = entry->label,
                                                            .has_expected = entry->has_expected,
                                                            .expected = entry->expected};
            paths[count++] = entry->path;
        }
    }
    return GRADCMP_OK;
}

static uint64_t side_bytes(const struct gradcmp_parameter_report *parameter, bool is_a) {
    uint64_t elems = 1;
    unsigned ndim = is_a ? parameter->ndim_a : parameter->ndim_b;
    const uint64_t *shape = is_a ? parameter->shape_a : parameter->shape_b;
    if (!(is_a ? parameter->in_a : parameter->in_b)) {
        return 0;
    }
    for (unsigned d = 0; d < ndim; d++) {
        elems *= shape[d];
    }
    return elems *
           gcmp_dtype_bytes((enum gradcmp_dtype)(is_a ? parameter->dtype_a : parameter->dtype_b));
}

/* The baseline is read once, whatever the number of rows. */
static void count_bytes(struct gradcmp_sweep *sweep) {
    for (size_t p = 0; p < sweep->report->pair_count; p++) {
        const struct gradcmp_pair_report *pair = &sweep->report->pairs[p];
        uint64_t baseline = 0;
        for (size_t i = 0; i < pair->parameter_count && !pair->taken_over; i++) {
            baseline += side_bytes(&pair->parameters[i], true);
            sweep->candidate_bytes += side_bytes(&pair->parameters[i], false);
        }
        sweep->baseline_bytes = baseline > sweep->baseline_bytes ? baseline : sweep->baseline_bytes;
    }
}

/* --- recipes --- */

static enum gradcmp_status check_arguments(struct gradcmp_sweep *sweep,
                                           const struct gcmp_roster *roster,
                                           struct gradcmp_error *error) {
    const struct gcmp_entry *baseline = &roster->entries[roster->baseline];
    if (baseline->arguments != NULL) {
        GCMP_TRY(gcmp_recipe_check(sweep->arena, baseline->arguments, sweep->report->baseline,
                                   &sweep->baseline_findings, &sweep->baseline_finding_count,
                                   error));
    }
    for (size_t i = 0; i < sweep->report->pair_count; i++) {
        struct gradcmp_sweep_row *row = &sweep->rows[i];
        const struct gcmp_yaml *arguments = roster->entries[row->entry].arguments;
        const struct gradcmp_catalogue *catalogue = sweep->report->pairs[i].catalogue;
        if (arguments != NULL && catalogue != NULL) {
            GCMP_TRY(gcmp_recipe_check(sweep->arena, arguments, catalogue, &row->findings,
                                       &row->finding_count, error));
        }
    }
    return GRADCMP_OK;
}

/* True where what was compared of a parameter is of one type. */
static bool is_comparable(const struct gradcmp_parameter_report *parameter) {
    return parameter->in_a && parameter->in_b && parameter->shapes_agree &&
           parameter->dtype_a == parameter->dtype_b;
}

/* True where all of its bits are the same; the rows that pad a vocabulary are of its shape. */
static bool is_identical(const struct gradcmp_parameter_report *parameter) {
    return is_comparable(parameter) && parameter->ndim_a == parameter->ndim_b &&
           (parameter->ndim_a == 0 ||
            memcmp(parameter->shape_a, parameter->shape_b,
                   parameter->ndim_a * sizeof *parameter->shape_a) == 0) &&
           parameter->tally.equal_bits == parameter->compared_elems;
}

/* Count the copies of a parameter that are not its first one, which alone was compared. */
static void count_copies(const struct gradcmp_parameter_report *parameter,
                         struct gradcmp_sweep_repeat *repeat, const char **name) {
    uint64_t a = parameter->copies_unequal_a, b = parameter->copies_unequal_b;
    if (parameter->copies_conflict || a != b) {
        repeat->copies++;
        *name = *name == NULL ? parameter->name : *name;
    } else if (a > 0) {
        repeat->unequal++;
    }
}

/* Count the bits that two repeats share. What only one of them has differs. Errors: MEMORY. */
static enum gradcmp_status compare_bits(struct gradcmp_sweep *sweep,
                                        const struct gradcmp_pair_report *pair,
                                        struct gradcmp_sweep_repeat *repeat,
                                        struct gradcmp_error *error) {
    const char *first = NULL, *first_copies = NULL;
    bool failed = false;
    repeat->could_be_read = pair->outcome != GRADCMP_OUTCOME_ERROR;
    repeat->taken_over = pair->taken_over;
    repeat->error = pair->error;
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        repeat->elems += parameter->compared_elems;
        repeat->equal_bits += is_comparable(parameter) ? parameter->tally.equal_bits : 0;
        if (first == NULL && !is_identical(parameter)) {
            first = parameter->name;
        }
        count_copies(parameter, repeat, &first_copies);
    }
    repeat->first = gcmp_arena_keep(sweep->arena, first, &failed);
    repeat->first_copies = gcmp_arena_keep(sweep->arena, first_copies, &failed);
    if (failed) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Compare one repeat with the first of its key. */
static enum gradcmp_status run_repeat(struct gradcmp_sweep *sweep, const struct gcmp_roster *roster,
                                      size_t first, size_t other, struct gradcmp_error *error) {
    struct gradcmp_report *report;
    const struct gcmp_entry *a = &roster->entries[first], *b = &roster->entries[other];
    struct gradcmp_sweep_repeat *repeat = &sweep->repeats[sweep->repeat_count];
    repeat->label_a = a->label;
    repeat->label_b = b->label;
    enum gradcmp_status status = gcmp_compare_resumable(a->path, &b->path, 1, &roster->options,
                                                        roster->resume, &report, &repeat->error);
    if (status == GRADCMP_OK) {
        status = compare_bits(sweep, &report->pairs[0], repeat, &repeat->error);
    }
    if (status == GRADCMP_ERROR_CANCELLED || status == GRADCMP_ERROR_MEMORY) {
        if (error != NULL) {
            *error = repeat->error;
        }
        gradcmp_report_free(report);
        return status;
    }
    gradcmp_report_free(report);
    sweep->repeat_count++;
    return GRADCMP_OK;
}

static enum gradcmp_status run_repeats(struct gradcmp_sweep *sweep,
                                       const struct gcmp_roster *roster,
                                       struct gradcmp_error *error) {
    sweep->repeats = gcmp_arena_alloc(sweep->arena, roster->count, sizeof *sweep->repeats);
    if (sweep->repeats == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 1; i < roster->count; i++) { /* sorted by key, then by number */
        size_t first = i;
        while (first > 0 && roster->entries[i].key != NULL &&
               roster->entries[first - 1].key != NULL &&
               roster->entries[first - 1].place == roster->entries[i].place) {
            first--;
        }
        if (first < i && status == GRADCMP_OK) {
            status = run_repeat(sweep, roster, first, i, error);
        }
        sweep->unfinished += first < i && status != GRADCMP_OK;
    }
    return status;
}

/* --- the call --- */

static enum gradcmp_status fill_roster(struct gcmp_roster *roster, const char *folder,
                                       const struct gradcmp_sweep_options *sweep_options,
                                       struct gradcmp_error *error) {
    roster->root = folder;
    roster->plan = sweep_options->plan;
    roster->golden = sweep_options->golden;
    if (roster->plan != NULL) {
        GCMP_TRY(gcmp_plan_read(roster, folder, error));
    } else if (folder == NULL) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "a folder or a plan is needed");
    } else {
        GCMP_TRY(gcmp_roster_find(roster, folder, error));
    }
    if (roster->count == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, roster->root, GRADCMP_NO_OFFSET,
                     "no checkpoint here or below, a sweep compares at least two%s%s",
                     roster->left_count > 0 ? "; left out: " : "",
                     roster->left_count > 0 ? roster->left[0].text : "");
    }
    GCMP_TRY(choose_baseline(roster, sweep_options->baseline, error));
    GCMP_TRY(note_expected(roster, error));
    if (roster->count < 2) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_USAGE, roster->root, GRADCMP_NO_OFFSET,
                     "found %zu checkpoint%s, a sweep compares at least two%s%s", roster->count,
                     roster->count == 1 ? "" : "s", roster->left_count > 0 ? "; left out: " : "",
                     roster->left_count > 0 ? roster->left[0].text : "");
    }
    return GRADCMP_OK;
}

/* An interrupt leaves fewer pairs than rows. */
static void keep_rows(struct gradcmp_sweep *sweep) {
    const struct gradcmp_report *report = sweep->report;
    for (size_t i = 0; i < report->pair_count; i++) {
        sweep->rows[i] = sweep->rows[report->pairs[i].candidate];
    }
    sweep->unfinished = report->unfinished;
}

static enum gradcmp_status run(struct gradcmp_sweep *sweep, struct gcmp_roster *roster,
                               struct gradcmp_error *error) {
    const struct gcmp_entry *baseline = &roster->entries[roster->baseline];
    const char **paths = gcmp_arena_alloc(sweep->arena, roster->count, sizeof *paths);
    if (paths == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    sweep->root = roster->root;
    sweep->baseline_label = baseline->label;
    sweep->baseline_reason = roster->baseline_reason;
    sweep->left = roster->left;
    sweep->left_count = roster->left_count;
    sweep->absent = roster->absent;
    sweep->absent_count = roster->absent_count;
    GCMP_TRY(make_rows(sweep, roster, paths, error));
    size_t rows = 0;
    for (size_t i = 0; i < roster->count; i++) {
        rows += is_row(roster, i);
    }
    if (rows == 0) {
        GCMP_FAIL(error, GRADCMP_ERROR_USAGE, "there is nothing but the baseline to compare");
    }
    enum gradcmp_status status = gcmp_compare_resumable(
        baseline->path, paths, rows, &roster->options, roster->resume, &sweep->report, error);
    if (sweep->report == NULL) {
        return status;
    }
    keep_rows(sweep);
    sweep->report->sweep = sweep;
    count_bytes(sweep);
    GCMP_TRY(check_arguments(sweep, roster, error));
    GCMP_TRY(gcmp_sweep_golden(sweep, roster, error));
    return status == GRADCMP_OK ? run_repeats(sweep, roster, error) : status;
}

/* What the caller asked for, for the command that repeats it. */
static enum gradcmp_status keep_request(struct gradcmp_sweep *sweep, const char *folder,
                                        const struct gradcmp_sweep_options *given,
                                        struct gradcmp_error *error) {
    bool failed = false;
    sweep->folder = gcmp_arena_keep(sweep->arena, folder, &failed);
    sweep->plan = gcmp_arena_keep(sweep->arena, given->plan, &failed);
    sweep->baseline_named = gcmp_arena_keep(sweep->arena, given->baseline, &failed);
    sweep->golden_named = gcmp_arena_keep(sweep->arena, given->golden, &failed);
    sweep->resume = gcmp_arena_keep(sweep->arena, given->resume, &failed);
    if (failed) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

static struct gradcmp_sweep *new_sweep(void) {
    struct gcmp_arena *arena = calloc(1, sizeof *arena);
    struct gradcmp_sweep *sweep = arena == NULL ? NULL : gcmp_arena_alloc(arena, 1, sizeof *sweep);
    if (sweep == NULL) {
        free(arena);
        return NULL;
    }
    sweep->arena = arena;
    return sweep;
}

enum gradcmp_status gradcmp_sweep_run(const char *folder,
                                      const struct gradcmp_sweep_options *sweep_options,
                                      const struct gradcmp_options *options,
                                      struct gradcmp_sweep **out, struct gradcmp_error *error) {
    struct gradcmp_sweep_options given = GRADCMP_SWEEP_OPTIONS_INIT;
    *out = NULL;
    if (sweep_options != NULL) {
        memcpy(&given, sweep_options,
               sweep_options->struct_size < sizeof given ? sweep_options->struct_size
                                                         : sizeof given);
    }
    struct gradcmp_sweep *sweep = new_sweep();
    if (sweep == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gcmp_roster roster = {
        .arena = sweep->arena, .baseline = SIZE_MAX, .options = gcmp_options_complete(options)};
    enum gradcmp_status status = keep_request(sweep, folder, &given, error);
    status = status == GRADCMP_OK ? fill_roster(&roster, folder, &given, error) : status;
    if (status == GRADCMP_OK && given.resume != NULL) {
        status = gcmp_resume_open(given.resume, &roster.resume, error);
    }
    if (status == GRADCMP_OK) {
        status = run(sweep, &roster, error);
    }
    gcmp_resume_free(roster.resume);
    if (status != GRADCMP_OK && (status != GRADCMP_ERROR_CANCELLED || sweep->report == NULL)) {
        gradcmp_sweep_free(sweep);
        return status;
    }
    *out = sweep;
    return status;
}

void gradcmp_sweep_free(struct gradcmp_sweep *sweep) {
    if (sweep == NULL) {
        return;
    }
    gradcmp_report_free(sweep->report);
    struct gcmp_arena *arena = sweep->arena; /* the sweep lies in it */
    gcmp_arena_free(arena);
    free(arena);
}
