/* A rank's file of DeepSpeed's optimizer: any bytes, cut by a model of two groups. */
#include "formats/deepspeed_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t matrix[] = {2, 3}, vector[] = {4};
static struct gcmp_ds_param params[] = {{"a", matrix, 2, 6}, {"b", vector, 1, 4}};

/* Ranges lie inside of their parameters and of their files. */
static void check(const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        unsigned flat = stored->ndim - 1u;
        for (size_t k = 0; k < stored->piece_count; k++) {
            const struct gradcmp_piece *piece = &stored->pieces[k];
            const struct gradcmp_source *source = &catalogue->sources[piece->source];
            if (piece->start[flat] + piece->extent[flat] > stored->shape[flat] ||
                source->length_bytes > gcmp_dir_file_bytes(catalogue->dir, source->file) ||
                ((uint64_t)piece->offset_elems + piece->extent[flat]) > source->length_bytes) {
                abort();
            }
        }
    }
}

static void lay_out(struct gradcmp_catalogue *catalogue, const char *name, size_t groups) {
    size_t ends[] = {groups == 1 ? 2 : 1, 2};
    struct gcmp_ds_model model = {
        .params = params, .param_count = 2, .group_ends = ends, .group_count = groups};
    struct gcmp_ds_wholes wholes = {
        .catalogue = catalogue, .by_name = GCMP_MAP_INIT, .sources = GCMP_MAP_INIT};
    struct gcmp_ds_rank rank;
    struct gcmp_ds_ranks ranks = {&rank, 1};
    struct gradcmp_error error = {0};
    if (gcmp_ds_read_rank(catalogue, name, 0, &rank, &error) == GRADCMP_OK &&
        gcmp_ds_lay_out(&wholes, &model, &ranks, &error) == GRADCMP_OK &&
        gcmp_ds_store_wholes(&wholes, &error) == GRADCMP_OK) {
        check(catalogue);
    }
    gcmp_ds_free_rank(&rank);
    gcmp_ds_free_wholes(&wholes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    const char *name;
    int fd = memfd_create("fuzz.pt", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (size_t groups = 1; groups <= 2; groups++) {
        struct gcmp_arena arena = GCMP_ARENA_INIT;
        struct gradcmp_catalogue catalogue = {.arena = &arena, .iteration = -1};
        if (gcmp_dir_open(path, &catalogue.dir, NULL) != GRADCMP_OK ||
            !gcmp_dir_is_file(catalogue.dir, &name)) {
            abort();
        }
        lay_out(&catalogue, name, groups);
        gcmp_catalogue_free(&catalogue);
        gcmp_dir_close(catalogue.dir);
        gcmp_arena_free(&arena);
    }
    close(fd);
    return 0;
}
