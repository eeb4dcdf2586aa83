/* What the names of metrics say. */
#include "metrics/names.h"

#include <string.h>

#include "metrics/measured.h"
#include "metrics/series.h"

enum { NAME_BYTES = GCMP_METRIC_MAX_NAME_BYTES + 1 };
#define DEFAULT_RTOL   0.05
#define NUM_ZEROS_RTOL 0.20

bool gcmp_metric_by_samples(const char *name) {
    static const char ending[] = " vs samples";
    size_t length = strlen(name), end = sizeof ending - 1;
    return length > end && strcmp(name + length - end, ending) == 0;
}

void gcmp_metric_normalise(const char *name, char *out, size_t out_bytes) {
    static const char *const aliases[][2] = {{"batch size", "global batch size"},
                                             {"elapsed time per iteration (ms)", "iteration time"},
                                             {"params norm", "parameter norm"}};
    size_t at = 0;
    for (; name[at] != '\0' && at + 1 < out_bytes; at++) {
        char byte = name[at];
        out[at] = byte == '-' || byte == '_'   ? ' '
                  : byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a')
                                               : byte;
    }
    out[at] = '\0';
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(out, aliases[i][0]) == 0) {
            strcpy(out, aliases[i][1]); /* NOLINT: out holds every alias */
        }
    }
}

bool gcmp_metric_is_time(const char *name) {
    char own[NAME_BYTES];
    gcmp_metric_normalise(name, own, sizeof own);
    return gcmp_metric_is_measured(own);
}

bool gcmp_metric_is_iteration_time(const char *name) {
    char own[NAME_BYTES];
    gcmp_metric_normalise(name, own, sizeof own);
    return gcmp_metric_is_measured(own) &&
           (strstr(own, "iteration time") != NULL || strstr(own, "elapsed time") != NULL ||
            strstr(own, "iteration timing") != NULL);
}

double gcmp_metric_default_rtol(const char *name) {
    char own[NAME_BYTES];
    gcmp_metric_normalise(name, own, sizeof own);
    return strncmp(own, "num zeros", 9) == 0 ? NUM_ZEROS_RTOL : DEFAULT_RTOL;
}
