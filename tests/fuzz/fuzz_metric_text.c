/* Any bytes as a file of metrics: golden values, a log, CSV, event records. */
#include "metrics/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_metric_source source = {0};
    struct gradcmp_error error = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gcmp_metric_open(path, &arena, &source, &error) == GRADCMP_OK) {
        for (size_t i = 0; i < source.series_count; i++) {
            const struct gcmp_metric_series *series = &source.series[i];
            for (size_t j = 1; j < series->count; j++) {
                if (series->points[j - 1].step >= series->points[j].step) {
                    abort(); /* not one value a step, ascending */
                }
            }
        }
    } else if (error.code == GRADCMP_OK) {
        abort(); /* a failure without a word */
    }
    gcmp_metric_source_free(&source);
    gcmp_arena_free(&arena);
    close(fd);
    return 0;
}
