/* Findings of `check`, as they are added to a report. */
#include "finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Add a finding of `kind` about a parameter and return it in *out for its figures. */
enum gradcmp_status gcmp_finding_add(const struct gcmp_finding_sink *sink, const char *kind,
                                     const struct gradcmp_parameter *parameter,
                                     struct gradcmp_finding **out, struct gradcmp_error *error) {
    struct gradcmp_checked *checked = sink->checked;
    if (!gcmp_arena_grow(sink->arena, &checked->findings, checked->finding_count,
                         &checked->finding_capacity, sizeof *checked->findings)) {
        GCMP_FAIL_MEMORY(error);
    }
    *out = &checked->findings[checked->finding_count++];
    **out = (struct gradcmp_finding){.kind = kind,
                                     .name = parameter == NULL ? "" : parameter->name,
                                     .state = parameter == NULL ? "" : parameter->state};
    return GRADCMP_OK;
}

void gcmp_finding_figure(struct gradcmp_finding *finding, const char *name, double value) {
    finding->figures[finding->figure_count].name = name;
    finding->figures[finding->figure_count].value = value;
    finding->figure_count++;
}

enum gradcmp_status gcmp_finding_say(const struct gcmp_finding_sink *sink,
                                     struct gradcmp_finding *finding, struct gradcmp_error *error,
                                     const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    finding->text = gcmp_arena_dup(sink->arena, line);
    if (finding->text == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return GRADCMP_OK;
}
