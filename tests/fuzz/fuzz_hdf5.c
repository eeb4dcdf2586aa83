/* Fuzz target: what the HDF5 helper writes, had the file taken it over. The HDF5 file itself is 4
 * KiB of zeros. */
#include "formats/hdf5_dataset.h"

#include <string.h>

#include "base/catalogue.h"
#include "formats/hdf5.h"
#include "memory_file.h"

enum { FILE_BYTES = 4096, MAX_RESOLVED = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a catalogue promises to those who read it. */
static void check_sources(const struct gradcmp_catalogue *catalogue) {
    for (uint32_t i = 0; i < catalogue->source_count; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        struct gradcmp_extent extent;
        if (source->offset_bytes > FILE_BYTES ||
            (source->offset_bytes > 0 &&
             source->length_bytes > FILE_BYTES - source->offset_bytes) ||
            source->stored >= catalogue->stored_count ||
            source->piece >= catalogue->stored[source->stored].piece_count) {
            abort();
        }
        memset(&extent, 0, sizeof extent);
        if (i < MAX_RESOLVED && source->kind == GRADCMP_SOURCE_ITEM &&
            gcmp_format_hdf5.resolve(catalogue, i, &extent, NULL) == GRADCMP_OK) {
            free(extent.decoded);
            if (extent.decoded_in_file) {
                close(extent.decoded_fd);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t zeros[FILE_BYTES];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_catalogue catalogue = {
        .arena = &arena, .iteration = -1, .format = &gcmp_format_hdf5};
    uint32_t file;
    const char *own = "";
    catalogue.dir = memory_file_open(zeros, sizeof zeros);
    (void)gcmp_dir_is_file(catalogue.dir, &own);
    if (gcmp_dir_add(catalogue.dir, own, strlen(own), &file, NULL) != GRADCMP_OK) {
        abort();
    }
    if (gcmp_h5_read_stream(&catalogue, file, data, size, &error) == GRADCMP_OK) {
        check_sources(&catalogue);
    } else if (error.message[0] == '\0') {
        abort();
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_dir_close(catalogue.dir);
    gcmp_arena_free(&arena);
    return 0;
}
