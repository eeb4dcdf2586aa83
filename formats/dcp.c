/* The format "torch_dist": a folder with `.metadata` (or `__<rank>.metadata` of each rank) and
 * shards whose items are torch.save archives of one tensor each. Megatron-Core adds metadata.json
 * and, until 2026, common.pt.
 *
 * Limits: MAX_JSON_BYTES, MAX_RANKS. */
#include "formats/dcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/cursor.h"
#include "base/dtype.h"
#include "base/text.h"
#include "formats/dcp_groups.h"
#include "formats/dcp_item.h"
#include "formats/dcp_metadata.h"
#include "formats/dcp_run.h"
#include "formats/dcp_safetensors.h"
#include "formats/dcp_writers.h"
#include "formats/json_doc.h"
#include "formats/megatron_args.h"
#include "formats/megatron_flat.h"
#include "formats/torch_file.h"

enum { MAX_JSON_BYTES = 1 << 20, MAX_RANKS = 1 << 20 };

static const char METADATA[] = ".metadata";
static const char JSON[] = "metadata.json";

/* The rank of "__<rank>.metadata"; -1 for other names. */
static long rank_of(const char *name) {
    char *end;
    if (strncmp(name, "__", 2) != 0 || strspn(name + 2, "0123456789") == 0 || strlen(name) > 24) {
        return -1;
    }
    long rank = strtol(name + 2, &end, 10);
    return strcmp(end, METADATA) == 0 ? rank : -1;
}

/* Tell whether there is the metadata of any rank; where the first is not, the save is incomplete.
 */
static bool has_rank_file(struct gcmp_dir *dir) {
    char **names = NULL;
    size_t count = 0;
    bool found = false;
    if (gcmp_dir_list(dir, "", MAX_RANKS, &names, &count, NULL) != GRADCMP_OK) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        found = rank_of(names[i]) >= 0;
    }
    gcmp_dir_free_names(names, count);
    return found;
}

static int probe(struct gcmp_dir *dir) {
    if (gcmp_dir_is_file(dir, NULL)) {
        return 0;
    }
    if (gcmp_dir_kind(dir, METADATA) != GCMP_DIR_ABSENT ||
        gcmp_dir_kind(dir, "__0.metadata") != GCMP_DIR_ABSENT || has_rank_file(dir)) {
        return 2;
    }
    return gcmp_dir_has_file(dir, JSON) ? 1 : 0;
}

/* Read the backend's name in Megatron's metadata.json; "" where the file is someone else's. */
static enum gradcmp_status read_backend(struct gcmp_dir *dir, char *backend, size_t capacity,
                                        struct gradcmp_error *error) {
    struct gcmp_json_file file;
    enum gradcmp_status status = gcmp_json_open(dir, JSON, MAX_JSON_BYTES, &file, error);
    const char *found = json_string_value(json_object_get(file.root, "sharded_backend"));
    snprintf(backend, capacity, "%s", found == NULL ? "" : found);
    gcmp_json_close(&file);
    return status;
}

/* Read metadata.json where there is one; *megatron tells whether Megatron-Core wrote it. */
static enum gradcmp_status read_json(struct gradcmp_catalogue *catalogue, bool *megatron,
                                     struct gradcmp_error *error) {
    char backend[64] = "", path[sizeof error->path];
    *megatron = false;
    if (gcmp_dir_kind(catalogue->dir, JSON) == GCMP_DIR_ABSENT) {
        return GRADCMP_OK;
    }
    snprintf(path, sizeof path, "%s/%s", gcmp_dir_path(catalogue->dir), JSON);
    GCMP_TRY(read_backend(catalogue->dir, backend, sizeof backend, error));
    *megatron = backend[0] != '\0';
    if (*megatron && strcmp(backend, "torch_dist") != 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, path, GRADCMP_NO_OFFSET,
                     "sharded_backend \"%s\" is not read, only torch_dist", backend);
    }
    return GRADCMP_OK;
}

static int compare_ranks(const void *a, const void *b) {
    long x = rank_of(*(char *const *)a), y = rank_of(*(char *const *)b);
    return x < y ? -1 : x > y;
}

/* Move the metadata files of ranks to the front, in order of rank; returns how many there are. */
static size_t keep_ranks(char **names, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (rank_of(names[i]) >= 0) {
            char *name = names[i];
            names[i] = names[kept];
            names[kept++] = name;
        }
    }
    qsort(names, kept, sizeof *names, compare_ranks);
    return kept;
}

/* Read the metadata of every rank. A rank's file that is missing leaves holes. */
static enum gradcmp_status read_rank_files(struct gradcmp_catalogue *catalogue, bool *megatron,
                                           struct gradcmp_error *error) {
    const char *folder = gcmp_dir_path(catalogue->dir);
    char **names = NULL;
    size_t count = 0;
    GCMP_TRY(gcmp_dir_list(catalogue->dir, "", MAX_RANKS, &names, &count, error));
    size_t ranks = count == 0 ? 0 : keep_ranks(names, count);
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < ranks && status == GRADCMP_OK; i++) {
        if (rank_of(names[i]) != (long)i) {
            status = gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, folder, GRADCMP_NO_OFFSET,
                                    "save unfinished: __%zu.metadata is missing", i);
        }
    }
    if (ranks == 0) {
        status = gcmp_error_set(error, GRADCMP_ERROR_CORRUPT, folder, GRADCMP_NO_OFFSET,
                                "save unfinished: .metadata is missing");
    }
    if (status == GRADCMP_OK) {
        status = gcmp_dcp_read_metadata(catalogue, names, ranks, megatron, error);
    }
    gcmp_dir_free_names(names, count);
    return status;
}

static enum gradcmp_status read_metadata(struct gradcmp_catalogue *catalogue, bool *megatron,
                                         struct gradcmp_error *error) {
    char name[] = ".metadata", *names[] = {name};
    if (gcmp_dir_kind(catalogue->dir, METADATA) == GCMP_DIR_ABSENT) {
        return read_rank_files(catalogue, megatron, error);
    }
    return gcmp_dcp_read_metadata(catalogue, names, 1, megatron, error);
}

/* Where nothing else says it, the folder's name does: iter_0000005. */
static int64_t iteration_of_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t digits = strncmp(name, "iter_", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    return digits > 0 && digits <= 18 && name[5 + digits] == '\0' ? strtoll(name + 5, NULL, 10)
                                                                  : -1;
}

static enum gradcmp_status note_lost_common(struct gradcmp_catalogue *catalogue,
                                            struct gradcmp_error *error) {
    return gcmp_catalogue_note(catalogue, error,
                               "no common.pt: the run's arguments (types, parallel sizes, true "
                               "vocabulary, betas) are not known");
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    bool megatron, common;
    GCMP_TRY(read_json(catalogue, &megatron, error));
    GCMP_TRY(gcmp_megatron_read_common(catalogue, &common, error));
    megatron = megatron || common;
    GCMP_TRY(read_metadata(catalogue, &megatron, error));
    GCMP_TRY(gcmp_dcp_place_safetensors(catalogue, error));
    GCMP_TRY(gcmp_megatron_add_gathered(catalogue, error));
    if (!common) { /* which says it for all parameters */
        GCMP_TRY(gcmp_dcp_read_groups(catalogue, error));
        GCMP_TRY(gcmp_dcp_read_run(catalogue, error));
        GCMP_TRY(megatron ? note_lost_common(catalogue, error) : GRADCMP_OK);
    }
    catalogue->writer = megatron ? "megatron-core" : "torch";
    catalogue->is_ordered = !megatron && gcmp_dcp_is_ordered(catalogue);
    if (catalogue->iteration < 0) {
        catalogue->iteration = iteration_of_folder(gcmp_dir_path(catalogue->dir));
    }
    return GRADCMP_OK;
}

static void add_shape(struct gcmp_text *text, const uint64_t *shape, unsigned ndim) {
    gcmp_text_add(text, "[");
    for (unsigned d = 0; d < ndim; d++) {
        gcmp_text_addf(text, "%s%llu", d == 0 ? "" : ", ", (unsigned long long)shape[d]);
    }
    gcmp_text_add(text, "]");
}

/* The item must hold what the metadata says of its chunk. */
static enum gradcmp_status check_extent(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_source *source,
                                        const struct gradcmp_extent *extent,
                                        struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[source->stored];
    const struct gradcmp_piece *piece = &stored->pieces[source->piece];
    if (extent->dtype == stored->dtype && extent->ndim == stored->ndim &&
        memcmp(extent->shape, piece->extent, stored->ndim * sizeof *extent->shape) == 0) {
        return GRADCMP_OK;
    }
    struct gcmp_text text = GCMP_TEXT_INIT;
    gcmp_text_addf(&text, "item of \"%.160s\": expected %s ", stored->key,
                   gradcmp_dtype_name((enum gradcmp_dtype)stored->dtype));
    add_shape(&text, piece->extent, stored->ndim);
    gcmp_text_addf(&text, ", found %s ", gradcmp_dtype_name((enum gradcmp_dtype)extent->dtype));
    add_shape(&text, extent->shape, extent->ndim);
    enum gradcmp_status status =
        gcmp_error_set(error, text.failed ? GRADCMP_ERROR_MEMORY : GRADCMP_ERROR_CORRUPT,
                       gcmp_dir_file_path(catalogue->dir, source->file), source->offset_bytes, "%s",
                       text.failed ? "out of memory" : text.bytes);
    gcmp_text_free(&text);
    return status;
}

static enum gradcmp_status read_item(const struct gradcmp_catalogue *catalogue,
                                     const struct gradcmp_source *source,
                                     const struct gcmp_dcp_item *item, struct gradcmp_extent *out,
                                     struct gradcmp_error *error) {
    if (!gcmp_torch_is_tensor(item->torch.root)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_file_path(catalogue->dir, source->file),
                     source->offset_bytes, "item of \"%.160s\": expected a tensor, found %s",
                     catalogue->stored[source->stored].key, gcmp_node_kind_name(item->torch.root));
    }
    GCMP_TRY(gcmp_dcp_item_tensor(catalogue, source, item, out, error));
    return check_extent(catalogue, source, out, error);
}

static enum gradcmp_status resolve_item(const struct gradcmp_catalogue *catalogue,
                                        const struct gradcmp_source *source,
                                        struct gcmp_arena *arena, struct gradcmp_extent *out,
                                        struct gradcmp_error *error) {
    const struct gradcmp_stored *stored = &catalogue->stored[source->stored];
    struct gcmp_dcp_item item;
    enum gradcmp_status status = gcmp_dcp_open_item(
        catalogue, source, gcmp_dcp_item_limit(stored, &stored->pieces[source->piece]), arena,
        &item, error);
    if (status == GRADCMP_OK) {
        status = read_item(catalogue, source, &item, out, error);
    }
    if (status == GRADCMP_OK) {
        gcmp_dcp_item_give(&item, out);
    }
    gcmp_dcp_close_item(&item);
    return status;
}

static enum gradcmp_status resolve(const struct gradcmp_catalogue *catalogue, uint32_t source,
                                   struct gradcmp_extent *out, struct gradcmp_error *error) {
    if (catalogue->stored[catalogue->sources[source].stored].dtype == GRADCMP_DTYPE_NONE) {
        GCMP_FAIL(error, GRADCMP_ERROR_UNSUPPORTED, "\"%.160s\" is not a tensor of numbers",
                  catalogue->stored[catalogue->sources[source].stored].key);
    }
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    enum gradcmp_status status =
        resolve_item(catalogue, &catalogue->sources[source], &arena, out, error);
    gcmp_arena_free(&arena);
    return status;
}

const struct gradcmp_format gcmp_format_torch_dist = {
    .name = "torch_dist",
    .description = "torch distributed checkpoint (DCP): .metadata and .distcp shards, also "
                   "Megatron-Core's",
    .probe = probe,
    .open = open_catalogue,
    .resolve = resolve,
};
