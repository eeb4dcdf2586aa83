/* A file of torch.save: any bytes, as an archive or as the older stream, to the catalogue. */
#include "formats/torch_save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No source may reach out of its file. */
static void check_sources(const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        uint64_t bytes = gcmp_dir_file_bytes(catalogue->dir, source->file);
        if (source->offset_bytes > bytes || source->length_bytes > bytes - source->offset_bytes) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_catalogue catalogue = {
        .format = &gcmp_format_torch_save, .arena = &arena, .iteration = -1};
    int fd = memfd_create("fuzz.pt", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gcmp_dir_open(path, &catalogue.dir, NULL) != GRADCMP_OK) {
        abort();
    }
    (void)gcmp_format_torch_save.probe(catalogue.dir);
    if (gcmp_format_torch_save.open(&catalogue, &error) == GRADCMP_OK) {
        check_sources(&catalogue);
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_dir_close(catalogue.dir);
    gcmp_arena_free(&arena);
    close(fd);
    return 0;
}
