/* A distributed checkpoint of one shard. Input: the length of .metadata (4 bytes, little-endian),
 * .metadata, and the shard "__0_0.distcp". */
#include "formats/dcp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/catalogue.h"
#include "base/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void remove_folder(void) {
    char path[128];
    const char *const names[] = {".metadata", "__0_0.distcp"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* One folder serves all inputs of a process. */
static void make_folder(void) {
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/gradcmp-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (mkdtemp(folder) == NULL) {
            abort();
        }
        atexit(remove_folder);
    }
}

static void write_file(const char *name, const uint8_t *bytes, size_t count) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count) {
        abort();
    }
    close(fd);
}

/* What the catalogue promises to those who read it. */
static void check_stored(const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        const struct gradcmp_stored *stored = &catalogue->stored[i];
        for (size_t k = 0; k < stored->piece_count; k++) {
            const struct gradcmp_piece *piece = &stored->pieces[k];
            for (unsigned d = 0; d < stored->ndim; d++) {
                if (piece->extent[d] == 0 || piece->start[d] >= stored->shape[d] ||
                    piece->extent[d] > stored->shape[d] - piece->start[d]) {
                    abort();
                }
            }
            if (piece->source >= catalogue->source_count ||
                catalogue->sources[piece->source].stored != i) {
                abort();
            }
        }
    }
}

static void resolve_all(const struct gradcmp_catalogue *catalogue) {
    for (uint32_t i = 0; i < catalogue->source_count; i++) {
        struct gradcmp_extent extent = {0};
        struct gradcmp_error error = {0};
        const struct gradcmp_source *source = &catalogue->sources[i];
        if (catalogue->format->resolve(catalogue, i, &extent, &error) == GRADCMP_OK) {
            if (extent.decoded == NULL && (extent.offset_bytes < source->offset_bytes ||
                                           extent.length_bytes > source->length_bytes)) {
                abort();
            }
            free(extent.decoded);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gcmp_cursor cursor = gcmp_cursor_make(data, size, 0);
    const unsigned char *metadata, *shard;
    uint32_t length;
    if (!gcmp_read_u32le(&cursor, &length) || !gcmp_read_bytes(&cursor, length, &metadata)) {
        return 0;
    }
    size_t shard_bytes = gcmp_cursor_left(&cursor);
    (void)gcmp_read_bytes(&cursor, shard_bytes, &shard);
    make_folder();
    write_file(".metadata", metadata, length);
    write_file("__0_0.distcp", shard, shard_bytes);
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gradcmp_error error = {0};
    struct gradcmp_catalogue catalogue = {
        .arena = &arena, .iteration = -1, .format = &gcmp_format_torch_dist};
    if (gcmp_dir_open(folder, &catalogue.dir, &error) != GRADCMP_OK) {
        abort();
    }
    if (catalogue.format->open(&catalogue, &error) == GRADCMP_OK) {
        check_stored(&catalogue);
        resolve_all(&catalogue);
    }
    gcmp_catalogue_free(&catalogue);
    gcmp_dir_close(catalogue.dir);
    gcmp_arena_free(&arena);
    return 0;
}
