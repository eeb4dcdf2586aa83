/* Golden num-zeros of a Megatron functional test against the zeros in the gradients of a sweep. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/dir.h"
#include "metrics/choice.h"
#include "metrics/source.h"
#include "sweep.h"

static const char METRIC[] = "num-zeros";
/* The golden values are those of one configuration. Of others so much may differ, which is what
 * Megatron-LM's own approximate check allows. */
static const double OTHER_LAYOUTS = 0.20;

/* What one side of a pair holds: zeros among the compared elements, and rows of padding behind
 * them, which have no gradient and which Megatron-LM counts too. */
struct zeros {
    uint64_t counted, padding;
};

/* False where a parameter was not measured: what it holds is not known. */
static bool count_zeros(const struct gradcmp_pair_report *pair, bool of_a, struct zeros *out) {
    *out = (struct zeros){0, 0};
    for (size_t i = 0; i < pair->parameter_count; i++) {
        const struct gradcmp_parameter_report *parameter = &pair->parameters[i];
        uint64_t elems;
        if (!parameter->in_a || !parameter->in_b || !parameter->shapes_agree ||
            !gcmp_product(of_a ? parameter->shape_a : parameter->shape_b,
                          of_a ? parameter->ndim_a : parameter->ndim_b, &elems) ||
            elems < parameter->compared_elems) {
            return false;
        }
        out->counted += of_a ? parameter->tally.zeros_a : parameter->tally.zeros_b;
        out->padding += elems - parameter->compared_elems;
    }
    return pair->parameter_count > 0;
}

/* True where the compared state has its zeros where the gradient has: exp_avg is a multiple of it
 * at the first step, and the gradient itself at any step when beta1 is 0. */
static bool is_gradient(const char *state, const struct gradcmp_catalogue *catalogue) {
    const struct gradcmp_setting *beta1 = gcmp_catalogue_setting(catalogue, "adam_beta1");
    bool forgets =
        beta1 != NULL && ((beta1->kind == GRADCMP_SETTING_FLOAT && beta1->number == 0.0) ||
                          (beta1->kind == GRADCMP_SETTING_INT && beta1->integer == 0));
    return strcmp(state, "main_grad") == 0 ||
           (strcmp(state, "exp_avg") == 0 && (forgets || catalogue->iteration == 1));
}

/* One run that may be held against the golden values. */
struct run {
    const struct gradcmp_catalogue *catalogue;
    const char ***findings;
    size_t *finding_count;
    struct zeros zeros;
    bool is_first; /* the golden values are of its configuration */
};

/* The sum that the golden values' run counts: its own padding, where that run is known. */
struct golden {
    struct gradcmp_sweep *sweep;
    const struct gcmp_metric_series *series;
    uint64_t padding;
    bool has_padding;
    size_t compared;
};

static enum gradcmp_status add_finding(struct gradcmp_sweep *sweep, const struct run *run,
                                       const char *line, struct gradcmp_error *error) {
    const char **lines = gcmp_arena_alloc(sweep->arena, *run->finding_count + 1, sizeof *lines);
    if (lines == NULL || line == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    if (*run->finding_count > 0) {
        memcpy(lines, *run->findings, *run->finding_count * sizeof *lines);
    }
    lines[(*run->finding_count)++] = line;
    *run->findings = lines;
    return GRADCMP_OK;
}

static enum gradcmp_status compare_run(struct golden *golden, const struct run *run,
                                       struct gradcmp_error *error) {
    const struct gradcmp_sweep *sweep = golden->sweep;
    const struct gcmp_metric_point *point =
        run->catalogue == NULL || run->catalogue->iteration < 0 ||
                !is_gradient(sweep->report->state, run->catalogue)
            ? NULL
            : gcmp_metric_find(golden->series->points, golden->series->count,
                               run->catalogue->iteration);
    if (point == NULL || point->is_absent || !isfinite(point->value) || point->value < 0.0) {
        return GRADCMP_OK;
    }
    golden->compared++;
    uint64_t found =
        run->zeros.counted + (golden->has_padding ? golden->padding : run->zeros.padding);
    double off = (double)found - point->value;
    /* A run logs the sum as float32. In other layouts some elements round to zero that do not here.
     */
    if ((float)point->value == (float)found ||
        (!run->is_first && fabs(off) <= OTHER_LAYOUTS * point->value)) {
        return GRADCMP_OK;
    }
    const char *line =
        point->value > 0.0
            ? gcmp_arena_format(sweep->arena,
                                "%s is %.0f in the golden values at step %lld, the gradients have "
                                "%llu zeros (%+.3g %%)",
                                METRIC, point->value, (long long)run->catalogue->iteration,
                                (unsigned long long)found, 100.0 * off / point->value)
            : gcmp_arena_format(sweep->arena,
                                "%s is 0 in the golden values at step %lld, the gradients have "
                                "%llu zeros",
                                METRIC, (long long)run->catalogue->iteration,
                                (unsigned long long)found);
    return add_finding(golden->sweep, run, line, error);
}

/* The golden values are those of the first configuration; others are padded to other sizes. Of a
 * sweep that is no recipe they are the baseline's. */
static bool is_first(const struct gcmp_entry *entry) {
    return entry->key != NULL && strcmp(entry->key, "MODEL_ARGS") == 0;
}

static void learn_padding(struct golden *golden, const struct gcmp_entry *entry,
                          const struct zeros *zeros) {
    if (is_first(entry) && !golden->has_padding) {
        golden->has_padding = true;
        golden->padding = zeros->padding;
    }
}

/* Compare all runs whose zeros are known. */
static enum gradcmp_status compare_runs(struct golden *golden, const struct gcmp_roster *roster,
                                        struct gradcmp_error *error) {
    struct gradcmp_sweep *sweep = golden->sweep;
    const struct gradcmp_report *report = sweep->report;
    const struct gcmp_entry *entry = &roster->entries[roster->baseline];
    struct run baseline = {.catalogue = report->baseline,
                           .findings = &sweep->baseline_findings,
                           .finding_count = &sweep->baseline_finding_count,
                           .is_first = entry->key == NULL || is_first(entry)};
    bool has_baseline = false;
    struct zeros zeros;
    for (size_t i = 0; i < report->pair_count; i++) {
        if (!has_baseline && count_zeros(&report->pairs[i], true, &baseline.zeros)) {
            has_baseline = true;
            learn_padding(golden, entry, &baseline.zeros);
        }
        if (count_zeros(&report->pairs[i], false, &zeros)) {
            learn_padding(golden, &roster->entries[sweep->rows[i].entry], &zeros);
        }
    }
    if (has_baseline) {
        GCMP_TRY(compare_run(golden, &baseline, error));
    }
    for (size_t i = 0; i < report->pair_count; i++) {
        struct gradcmp_sweep_row *row = &sweep->rows[i];
        struct run run = {.catalogue = report->pairs[i].catalogue,
                          .findings = &row->findings,
                          .finding_count = &row->finding_count,
                          .is_first = is_first(&roster->entries[row->entry])};
        if (count_zeros(&report->pairs[i], false, &run.zeros)) {
            GCMP_TRY(compare_run(golden, &run, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status note(struct gradcmp_sweep *sweep, const char *line,
                                struct gradcmp_error *error) {
    sweep->golden_note = line;
    if (line == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}

/* Hold the runs against the golden values, and say what could be. */
static enum gradcmp_status compare_source(struct gradcmp_sweep *sweep,
                                          const struct gcmp_roster *roster,
                                          const struct gcmp_metric_source *source,
                                          struct gradcmp_error *error) {
    struct golden golden = {.sweep = sweep, .series = gcmp_metric_series_find(source, METRIC)};
    size_t runs = sweep->report->pair_count + 1;
    sweep->golden_is_idle = !roster->golden_was_found;
    if (golden.series == NULL) {
        return note(sweep, "has no num-zeros; nothing was compared with it", error);
    }
    if (roster->options.match != NULL || roster->options.exclude != NULL) {
        return note(sweep,
                    "--match and --exclude leave parameters out, whose zeros are not known; "
                    "nothing was compared with it",
                    error);
    }
    GCMP_TRY(compare_runs(&golden, roster, error));
    sweep->golden_is_idle = sweep->golden_is_idle && golden.compared == 0;
    return note(sweep,
                golden.compared == runs
                    ? gcmp_arena_format(sweep->arena, "num-zeros of %zu runs compared", runs)
                    : gcmp_arena_format(sweep->arena,
                                        "num-zeros of %zu of %zu runs compared; the others have no "
                                        "gradient at a step of which it has a number, or not all "
                                        "parameters",
                                        golden.compared, runs),
                error);
}

enum gradcmp_status gcmp_sweep_golden(struct gradcmp_sweep *sweep, const struct gcmp_roster *roster,
                                      struct gradcmp_error *error) {
    struct gcmp_metric_source source = {0};
    sweep->golden = roster->golden;
    sweep->golden_note = roster->golden_note;
    if (roster->golden == NULL) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_metric_open(roster->golden, sweep->arena, &source, error);
    gcmp_metric_drop_lone_parts(&source, &source); /* none: damage of any part counts */
    if (status == GRADCMP_OK && source.is_damaged) {
        if (error != NULL) {
            *error = source.damage;
        }
        status = GRADCMP_ERROR_CORRUPT;
    }
    if (status == GRADCMP_OK) {
        status = compare_source(sweep, roster, &source, error);
    } else if (roster->golden_was_found && status != GRADCMP_ERROR_MEMORY) {
        status = note(sweep, "holds no metrics by steps; nothing was compared with it", error);
    }
    gcmp_metric_source_free(&source);
    return status;
}

enum gradcmp_status gcmp_golden_find(struct gcmp_roster *roster, const char *folder,
                                     struct gradcmp_error *error) {
    enum { MAX_NAMES = 10000 };
    static const char start[] = "golden_values", end[] = ".json";
    struct gcmp_dir *dir = NULL;
    char **names = NULL;
    size_t count = 0, found = 0;
    const char *where = folder[0] == '\0' ? "." : folder;
    if (gcmp_dir_open(where, &dir, NULL) != GRADCMP_OK ||
        gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) != GRADCMP_OK) {
        count = 0;
    }
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (length < sizeof start + sizeof end - 2 ||
            strncmp(names[i], start, sizeof start - 1) != 0 ||
            strcmp(names[i] + length - (sizeof end - 1), end) != 0) {
            continue;
        }
        found++;
        roster->golden = gcmp_arena_format(roster->arena, "%s%s%s", folder,
                                           folder[0] == '\0' ? "" : "/", names[i]);
        if (roster->golden == NULL) {
            status = GRADCMP_ERROR_MEMORY;
        }
    }
    roster->golden_was_found = found == 1;
    if (found > 1) {
        roster->golden = NULL;
        roster->golden_note =
            gcmp_arena_format(roster->arena,
                              "%zu files golden_values*.json lie beside the plan, none is taken "
                              "(--golden FILE)",
                              found);
        status = roster->golden_note == NULL ? GRADCMP_ERROR_MEMORY : status;
    }
    gcmp_dir_free_names(names, count);
    gcmp_dir_close(dir);
    if (status != GRADCMP_OK) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}
