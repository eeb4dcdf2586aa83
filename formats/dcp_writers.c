/* First writers. */
#include "formats/dcp_writers.h"

#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/dtype.h"

/* Numbers of files come behind those of ranks. */
static const uint64_t file_writers = (uint64_t)1 << 32;

/* "__3_0.distcp" is of rank 3. */
static uint64_t writer_of_file(const struct gradcmp_catalogue *catalogue, uint32_t file) {
    const char *path = gcmp_dir_file_name(catalogue->dir, file), *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t digits = strncmp(name, "__", 2) == 0 ? strspn(name + 2, "0123456789") : 0;
    if (digits == 0 || digits > 9 || name[2 + digits] != '_') {
        return file_writers + file;
    }
    return strtoul(name + 2, NULL, 10);
}

uint64_t gcmp_dcp_first_writer(const struct gradcmp_catalogue *catalogue,
                               const struct gradcmp_stored *stored) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < stored->piece_count; i++) {
        uint32_t file = catalogue->sources[stored->pieces[i].source].file;
        uint64_t writer = writer_of_file(catalogue, file);
        first = writer < first ? writer : first;
    }
    return first;
}

bool gcmp_dcp_is_ordered(const struct gradcmp_catalogue *catalogue) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        if (stored->state == NULL || strcmp(stored->state, "param") != 0 ||
            !gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype)) {
            continue;
        }
        uint64_t writer = gcmp_dcp_first_writer(catalogue, stored);
        if (first != UINT64_MAX && first != writer) {
            return false;
        }
        first = writer;
    }
    return first != UINT64_MAX;
}
