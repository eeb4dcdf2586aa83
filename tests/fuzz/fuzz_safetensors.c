/* Fuzz target: a safetensors file as a checkpoint, its header and its sharding info. */
#include "formats/safetensors.h"

#include <string.h>

#include "base/catalogue.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a catalogue promises to those who read it. */
static void check_pieces(const struct gradcmp_catalogue *catalogue, size_t size) {
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        if (source->offset_bytes > size || source->length_bytes > size - source->offset_bytes ||
            source->stored >= catalogue->stored_count ||
            source->piece >= catalogue->stored[source->stored].piece_count) {
            abort();
        }
        const struct gradcmp_stored *stored = &catalogue->stored[source->stored];
        const struct gradcmp_piece *piece = &stored->pieces[source->piece];
        for (unsigned d = 0; d < stored->ndim; d++) {
            if (piece->start[d] + piece->extent[d] > stored->shape[d]) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_catalogue catalogue = {.arena = &arena, .iteration = -1};
    catalogue.dir = memory_file_open(data, size);
    (void)gcmp_format_safetensors.probe(catalogue.dir);
    if (gcmp_format_safetensors.open(&catalogue, &error) == GRADCMP_OK) {
        check_pieces(&catalogue, size);
    } else if (error.message[0] == '\0') {
        abort();
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_dir_close(catalogue.dir);
    gcmp_arena_free(&arena);
    return 0;
}
