/* What callers of the library read from findings. */
#include "gradcmp/sys/result.h"

size_t gradcmp_findings_count(const struct gradcmp_findings *findings) {
    size_t count = 0;
    for (size_t i = 0; i < findings->checked_count; i++) {
        count += findings->checked[i].finding_count;
    }
    return count;
}

int gradcmp_findings_exit_status(const struct gradcmp_findings *findings) {
    for (size_t i = 0; i < findings->checked_count; i++) {
        if (findings->checked[i].error.code != GRADCMP_OK) {
            return 2;
        }
    }
    return gradcmp_findings_count(findings) > 0 ? 1 : 0;
}

const struct gradcmp_error *gradcmp_findings_error(const struct gradcmp_findings *findings,
                                                   size_t index) {
    bool failed =
        index < findings->checked_count && findings->checked[index].error.code != GRADCMP_OK;
    return failed ? &findings->checked[index].error : NULL;
}
