/* Which series of a side are compared. */
#include "metrics/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/expression.h"

static bool has_part(const struct gcmp_metric_source *source, const char *part) {
    for (size_t i = 0; i < source->part_count; i++) {
        if (strcmp(source->parts[i].name, part) == 0) {
            return true;
        }
    }
    return false;
}

/* Free the series of a part, and close the gap. */
static void drop_part(struct gcmp_metric_source *source, const char *part) {
    size_t kept = 0, length = strlen(part);
    for (size_t i = 0; i < source->series_count; i++) {
        struct gcmp_metric_series *series = &source->series[i];
        if (strncmp(series->name, part, length) == 0 &&
            strncmp(series->name + length, "//", 2) == 0) {
            gcmp_metric_series_free(series);
        } else {
            source->series[kept++] = *series;
        }
    }
    source->series_count = kept;
}

void gcmp_metric_drop_lone_parts(struct gcmp_metric_source *source,
                                 const struct gcmp_metric_source *other) {
    for (size_t i = 0; i < source->part_count; i++) {
        const struct gcmp_metric_part *part = &source->parts[i];
        if (other->kind == GCMP_METRIC_EVENTS && !has_part(other, part->name)) {
            drop_part(source, part->name);
            source->lone_part_count++;
            gcmp_metric_note(source,
                             "event files in the folder %.200s, which the other side lacks, "
                             "are not judged",
                             part->name);
        } else if (part->is_damaged && !source->is_damaged) {
            source->is_damaged = true;
            source->damage = part->damage;
        }
    }
}

enum gradcmp_status gcmp_metric_choose(struct gcmp_metric_source *source, const char *pattern,
                                       bool is_wanted, struct gradcmp_error *error) {
    regex_t regex;
    if (pattern == NULL) {
        return GRADCMP_OK;
    }
    GCMP_TRY(gcmp_expression_compile(&regex, REG_NOSUB, is_wanted ? "--match " : "--exclude ",
                                     pattern, error));
    size_t kept = 0;
    const char **left_out = gcmp_arena_alloc(
        source->arena, source->left_out_count + source->series_count, sizeof *left_out);
    bool lacks_memory = left_out == NULL;
    for (size_t i = 0; i < source->left_out_count && !lacks_memory; i++) {
        left_out[i] = source->left_out[i];
    }
    source->left_out = left_out;
    for (size_t i = 0; i < source->series_count && !lacks_memory; i++) {
        struct gcmp_metric_series *series = &source->series[i];
        bool matches = gcmp_expression_matches(&regex, series->name, 0, NULL, &lacks_memory);
        if (lacks_memory || matches == is_wanted) {
            source->series[kept++] = *series;
        } else {
            left_out[source->left_out_count++] = series->name;
            gcmp_metric_series_free(series);
        }
    }
    regfree(&regex);
    if (lacks_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    source->series_count = kept;
    return GRADCMP_OK;
}
