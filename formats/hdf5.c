/* HDF5 files, whose metadata the helper program reads; elements are read here, as ranges of the
 * file or as chunks that are decoded here.
 *
 * Limits: MAX_NAMES entries in the folder; those of hdf5_process.c. */
#include "formats/hdf5.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "formats/hdf5_dataset.h"
#include "formats/hdf5_process.h"

enum { MAX_NAMES = 1 << 20, SIGNATURE_BYTES = 8, MAX_USER_BLOCK_BYTES = 1 << 20 };

static const unsigned char signature[SIGNATURE_BYTES] = {0x89, 'H',  'D',  'F',
                                                         '\r', '\n', 0x1a, '\n'};

static bool has_name(const char *name) {
    return fnmatch("*.h5", name, 0) == 0 || fnmatch("*.hdf5", name, 0) == 0;
}

/* The signature stands at the beginning, or behind a user block: at 512, 1024, 2048 ... */
static bool has_signature(struct gcmp_dir *dir, const char *name) {
    uint32_t file;
    unsigned char bytes[SIGNATURE_BYTES];
    if (gcmp_dir_add(dir, name, strlen(name), &file, NULL) != GRADCMP_OK) {
        return false;
    }
    uint64_t size = gcmp_dir_file_bytes(dir, file);
    for (uint64_t at = 0; at + SIGNATURE_BYTES <= size && at <= MAX_USER_BLOCK_BYTES;
         at = at == 0 ? 512 : 2 * at) {
        if (gcmp_dir_read(dir, file, at, bytes, sizeof bytes, NULL) == GRADCMP_OK &&
            memcmp(bytes, signature, sizeof bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Find the one HDF5 file of a folder; *name is malloced, NULL where there is none. *count tells how
 * many there are. */
static enum gradcmp_status find_file(struct gcmp_dir *dir, char **name, size_t *count,
                                     struct gradcmp_error *error) {
    char **names;
    size_t total;
    *name = NULL;
    *count = 0;
    GCMP_TRY(gcmp_dir_list(dir, "", MAX_NAMES, &names, &total, error));
    for (size_t i = 0; i < total; i++) {
        if (gcmp_dir_is_file(dir, NULL) || has_name(names[i])) {
            free(*name);
            *name = names[i];
            names[i] = NULL;
            ++*count;
        }
    }
    gcmp_dir_free_names(names, total);
    return GRADCMP_OK;
}

static int probe(struct gcmp_dir *dir) {
    const char *own;
    char *name;
    size_t count;
    if (gcmp_dir_is_file(dir, &own)) {
        return has_name(own) || has_signature(dir, own) ? 2 : 0;
    }
    if (find_file(dir, &name, &count, NULL) != GRADCMP_OK) {
        return 0;
    }
    free(name);
    return count > 0 ? 1 : 0;
}

static enum gradcmp_status open_file(struct gradcmp_catalogue *catalogue, const char *name,
                                     struct gradcmp_error *error) {
    uint32_t file;
    unsigned char *bytes;
    size_t count;
    GCMP_TRY(gcmp_dir_add(catalogue->dir, name, strlen(name), &file, error));
    GCMP_TRY(gcmp_h5_run(catalogue->dir, file, &bytes, &count, error));
    enum gradcmp_status status = gcmp_h5_read_stream(catalogue, file, bytes, count, error);
    free(bytes);
    return status;
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    char *name;
    size_t count;
    GCMP_TRY(find_file(catalogue->dir, &name, &count, error));
    enum gradcmp_status status;
    if (count != 1) {
        status = gcmp_error_set(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                                GRADCMP_NO_OFFSET,
                                "%zu HDF5 files and nothing that tells how they belong together: "
                                "name one",
                                count);
    } else {
        status = open_file(catalogue, name, error);
    }
    free(name);
    return status;
}

/* Elements that lie in an object header were told with it. */
static enum gradcmp_status resolve_compact(const struct gcmp_h5_dataset *dataset,
                                           struct gradcmp_extent *out,
                                           struct gradcmp_error *error) {
    out->decoded = malloc(dataset->compact_bytes + 1);
    if (out->decoded == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    memcpy(out->decoded, dataset->compact, dataset->compact_bytes);
    out->length_bytes = dataset->compact_bytes;
    return GRADCMP_OK;
}

static enum gradcmp_status resolve(const struct gradcmp_catalogue *catalogue, uint32_t source,
                                   struct gradcmp_extent *out, struct gradcmp_error *error) {
    const struct gcmp_h5_data *data = catalogue->format_data;
    const struct gradcmp_source *from = &catalogue->sources[source];
    const struct gcmp_h5_dataset *dataset = data->of_stored[from->stored];
    const struct gradcmp_piece *piece = &catalogue->stored[from->stored].pieces[from->piece];
    const uint64_t *sizes = dataset->sizes; /* of what was decoded */
    if (dataset->layout == GCMP_H5_COMPACT) {
        GCMP_TRY(resolve_compact(dataset, out, error));
    } else {
        struct gcmp_bytes decoded,
            chunk = gcmp_bytes_of_file(catalogue->dir, from->file, from->offset_bytes,
                                       from->length_bytes);
        GCMP_TRY(gcmp_h5_undo_filters(dataset, &chunk, data->skipped[source], &decoded, error));
        gcmp_bytes_give(&decoded, out);
        sizes = dataset->chunk;
    }
    out->dtype = (uint8_t)dataset->dtype;
    out->big_endian = dataset->big_endian;
    out->ndim = dataset->ndim;
    int64_t step = 1;
    for (unsigned d = dataset->ndim; d-- > 0;) {
        out->shape[d] = piece->extent[d];
        out->stride[d] = step;
        step *= (int64_t)sizes[d];
    }
    return GRADCMP_OK;
}

const struct gradcmp_format gcmp_format_hdf5 = {
    .name = "hdf5",
    .description = "HDF5: contiguous, compact, chunked; deflate, shuffle, fletcher32, zstd, blosc",
    .probe = probe,
    .open = open_catalogue,
    .resolve = resolve,
};
