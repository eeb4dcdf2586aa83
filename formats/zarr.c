/* Walks the folders of a zarr checkpoint: as Megatron-Core wrote it until 2026 (a folder for each
 * tensor, metadata.json and common.pt beside them), or a group of version 2 or 3.
 *
 * Limits: MAX_NAMES entries in a folder; MAX_DEPTH levels of groups; MAX_JSON_BYTES; those of
 * zarr_array.c. */
#include "formats/zarr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/checked.h"
#include "base/grow.h"
#include "formats/megatron_args.h"
#include "formats/plain_names.h"
#include "formats/zarr_chunks.h"

enum { MAX_NAMES = 1 << 20, MAX_DEPTH = 32, MAX_JSON_BYTES = 1 << 20, MAX_PROBED = 64 };

static const char ARRAY_2[] = ".zarray", GROUP_2[] = ".zgroup", NODE_3[] = "zarr.json";

enum node { NODE_OTHER, NODE_ARRAY_2, NODE_GROUP_2, NODE_3_ANY };

/* The arrays of a checkpoint, by stored tensor. */
struct arrays {
    const struct gcmp_zarr_array **of_stored;
    const char **types;
    size_t count, capacity;
};

struct walk {
    struct gradcmp_catalogue *catalogue;
    struct arrays arrays;
    struct gradcmp_error *error;
};

/* Join two relative names in the arena; NULL without memory. */
static char *join(struct gcmp_arena *arena, const char *folder, const char *name) {
    return gcmp_arena_format(arena, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name);
}

/* Tell what a folder is by the file in it; what stands there under such a name and is no file fails
 * when it is read. */
static enum node node_of(struct gcmp_dir *dir, const char *folder) {
    static const struct {
        const char *file;
        enum node node;
    } marks[] = {{ARRAY_2, NODE_ARRAY_2}, {GROUP_2, NODE_GROUP_2}, {NODE_3, NODE_3_ANY}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char name[4096];
        int length = snprintf(name, sizeof name, "%s%s%s", folder, folder[0] == '\0' ? "" : "/",
                              marks[i].file);
        if (length > 0 && (size_t)length < sizeof name &&
            gcmp_dir_kind(dir, name) != GCMP_DIR_ABSENT) {
            return marks[i].node;
        }
    }
    return NODE_OTHER;
}

/* True where Megatron's metadata.json names zarr. */
static bool names_zarr(struct gcmp_dir *dir) {
    struct gcmp_json_file file;
    bool found = false;
    if (gcmp_dir_has_file(dir, "metadata.json")) {
        if (gcmp_json_open(dir, "metadata.json", MAX_JSON_BYTES, &file, NULL) == GRADCMP_OK) {
            const char *backend = json_string_value(json_object_get(file.root, "sharded_backend"));
            found = backend != NULL && strcmp(backend, "zarr") == 0;
        }
        gcmp_json_close(&file); /* a text that is no JSON is held too */
    }
    return found;
}

static int probe(struct gcmp_dir *dir) {
    char **names;
    size_t count;
    if (gcmp_dir_is_file(dir, NULL)) {
        return 0;
    }
    if (node_of(dir, "") != NODE_OTHER || names_zarr(dir)) {
        return 2;
    }
    if (gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) != GRADCMP_OK) {
        return 0;
    }
    bool found = false;
    for (size_t i = 0; i < count && i < MAX_PROBED && !found; i++) {
        found = gcmp_dir_has_dir(dir, names[i]) && node_of(dir, names[i]) != NODE_OTHER;
    }
    gcmp_dir_free_names(names, count);
    return found ? 2 : 0;
}

/* Remember the array of the stored tensor that comes next. */
static enum gradcmp_status remember(struct walk *walk, const struct gcmp_zarr_array *array) {
    struct arrays *arrays = &walk->arrays;
    if (arrays->count == arrays->capacity) {
        size_t capacity = arrays->capacity == 0 ? 64 : 2 * arrays->capacity;
        const struct gcmp_zarr_array **moved = realloc(arrays->of_stored, capacity * sizeof *moved);
        if (moved != NULL) {
            arrays->of_stored = moved;
        }
        const char **types = realloc(arrays->types, capacity * sizeof *types);
        if (types != NULL) {
            arrays->types = types;
        }
        if (moved == NULL || types == NULL) {
            GCMP_FAIL_MEMORY(walk->error);
        }
        arrays->capacity = capacity;
    }
    arrays->of_stored[arrays->count] = array;
    arrays->types[arrays->count++] = array == NULL ? "a folder" : array->type;
    return GRADCMP_OK;
}

/* Add an array under its folder's path; the checkpoint itself, as an array, under its own name. */
static enum gradcmp_status add_array(struct walk *walk, const char *folder,
                                     const struct gcmp_zarr_array *read) {
    struct gcmp_arena *arena = walk->catalogue->arena;
    const char *path = gcmp_dir_path(walk->catalogue->dir), *slash = strrchr(path, '/');
    const char *own = slash == NULL ? path : slash + 1;
    struct gcmp_zarr_array *array = gcmp_arena_alloc(arena, 1, sizeof *array);
    const char *key = gcmp_arena_dup(arena, folder[0] == '\0' ? own : folder);
    if (array == NULL || key == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    *array = *read;
    GCMP_TRY(remember(walk, array));
    return gcmp_zarr_add_array(walk->catalogue, folder, key, array, walk->error);
}

/* An array of version 2 may have been given metadata of version 3 too (zarr's migration), which
 * readers prefer: both must mean one array. What of version 3 is not read here is passed over. */
static enum gradcmp_status check_other_version(struct walk *walk, const char *folder,
                                               const struct gcmp_zarr_array *array) {
    struct gcmp_json_file file;
    struct gcmp_zarr_array other;
    struct gradcmp_error own = {0};
    bool is_array = false;
    const char *name = join(walk->catalogue->arena, folder, NODE_3);
    if (name == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (gcmp_dir_kind(walk->catalogue->dir, name) == GCMP_DIR_ABSENT) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status =
        gcmp_json_open(walk->catalogue->dir, name, MAX_JSON_BYTES, &file, &own);
    if (status == GRADCMP_OK) {
        status = gcmp_zarr_read_v3(&file, &other, &is_array, &own);
    }
    gcmp_json_close(&file);
    if (status == GRADCMP_ERROR_UNSUPPORTED) {
        return GRADCMP_OK;
    }
    if (status == GRADCMP_OK &&
        !(is_array && other.dtype == array->dtype &&
          gcmp_dims_equal(other.ndim, other.shape, array->ndim, array->shape) &&
          gcmp_dims_equal(other.ndim, other.chunk, array->ndim, array->chunk))) {
        char path[sizeof walk->error->path];
        snprintf(path, sizeof path, "%s/%s", gcmp_dir_path(walk->catalogue->dir), folder);
        GCMP_FAIL_AT(walk->error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "zarr: .zarray and zarr.json are of %s: leave the one that the chunks are of",
                     is_array ? "arrays of another shape, type or chunks" : "an array and a group");
    }
    if (status != GRADCMP_OK && walk->error != NULL) {
        *walk->error = own;
    }
    return status;
}

/* Read the metadata in a folder that has some; *is_array tells whether it was an array's. */
static enum gradcmp_status read_node(struct walk *walk, const char *folder, enum node node,
                                     bool *is_array) {
    struct gcmp_json_file file;
    struct gcmp_zarr_array array;
    *is_array = node == NODE_ARRAY_2;
    if (node == NODE_GROUP_2) {
        return GRADCMP_OK;
    }
    const char *name =
        join(walk->catalogue->arena, folder, node == NODE_ARRAY_2 ? ARRAY_2 : NODE_3);
    if (name == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    enum gradcmp_status status =
        gcmp_json_open(walk->catalogue->dir, name, MAX_JSON_BYTES, &file, walk->error);
    if (status == GRADCMP_OK) {
        status = node == NODE_ARRAY_2 ? gcmp_zarr_read_v2(&file, &array, walk->error)
                                      : gcmp_zarr_read_v3(&file, &array, is_array, walk->error);
    }
    gcmp_json_close(&file);
    GCMP_TRY(status);
    GCMP_TRY(node == NODE_ARRAY_2 ? check_other_version(walk, folder, &array) : GRADCMP_OK);
    return *is_array ? add_array(walk, folder, &array) : GRADCMP_OK;
}

/* A folder without metadata: Megatron's objects lie in some (shard_0_1.pt) and are listed; chunks
 * without the metadata that tells what they are of are damage. */
static enum gradcmp_status look_at_other(struct walk *walk, const char *folder) {
    char **names;
    size_t count;
    struct gradcmp_stored *stored;
    GCMP_TRY(gcmp_dir_list(walk->catalogue->dir, folder, MAX_NAMES, &names, &count, walk->error));
    bool chunks = count > 0, objects = false;
    for (size_t i = 0; i < count; i++) {
        bool digits = strspn(names[i], "0123456789.") == strlen(names[i]);
        chunks = chunks && (digits || strcmp(names[i], "c") == 0);
        objects = objects || strncmp(names[i], "shard_", 6) == 0;
    }
    gcmp_dir_free_names(names, count);
    if (chunks) {
        char path[sizeof walk->error->path];
        snprintf(path, sizeof path, "%s/%s", gcmp_dir_path(walk->catalogue->dir), folder);
        GCMP_FAIL_AT(walk->error, GRADCMP_ERROR_CORRUPT, path, GRADCMP_NO_OFFSET,
                     "zarr: chunks without .zarray or zarr.json");
    }
    if (!objects) {
        return GRADCMP_OK;
    }
    const char *key = gcmp_arena_format(walk->catalogue->arena, "%s/shard_", folder);
    if (key == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    GCMP_TRY(remember(walk, NULL));
    return gcmp_catalogue_add_stored(walk->catalogue, key, 0, NULL, 0, &stored, walk->error);
}

static unsigned depth_of(const char *folder) {
    unsigned depth = folder[0] != '\0';
    for (const char *at = folder; *at != '\0'; at++) {
        depth += *at == '/';
    }
    return depth;
}

/* Folders still to be looked at: names in the arena. */
struct queue {
    char **names;
    size_t count, capacity, done;
};

static enum gradcmp_status enqueue(struct walk *walk, struct queue *queue, char *name) {
    if (!gcmp_grow(&queue->names, queue->count, &queue->capacity, sizeof *queue->names)) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (name == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    queue->names[queue->count++] = name;
    return GRADCMP_OK;
}

/* Folders, and links that lead out of the checkpoint: arrays may lie there, so that nobody may pass
 * over them. Looking into those fails. */
static bool may_hold_arrays(const struct walk *walk, const char *name) {
    enum gcmp_dir_kind kind = gcmp_dir_kind(walk->catalogue->dir, name);
    return kind == GCMP_DIR_FOLDER || (kind == GCMP_DIR_OTHER && errno != 0);
}

static enum gradcmp_status enqueue_children(struct walk *walk, struct queue *queue,
                                            const char *folder) {
    char **names;
    size_t count;
    enum gradcmp_status status = GRADCMP_OK;
    if (depth_of(folder) > MAX_DEPTH) {
        GCMP_FAIL_AT(walk->error, GRADCMP_ERROR_LIMIT, gcmp_dir_path(walk->catalogue->dir),
                     GRADCMP_NO_OFFSET, "zarr: more than %d levels of groups", MAX_DEPTH);
    }
    GCMP_TRY(gcmp_dir_list(walk->catalogue->dir, folder, MAX_NAMES, &names, &count, walk->error));
    for (size_t i = 0; i < count && status == GRADCMP_OK; i++) {
        char *name = join(walk->catalogue->arena, folder, names[i]);
        if (name == NULL || (names[i][0] != '.' && may_hold_arrays(walk, name))) {
            status = enqueue(walk, queue, name);
        }
    }
    gcmp_dir_free_names(names, count);
    return status;
}

/* Look at one folder: an array, a group whose folders are looked at later, or something else. The
 * checkpoint's own folder is a group even without a file that says so. */
static enum gradcmp_status visit(struct walk *walk, struct queue *queue, const char *folder) {
    enum node node = node_of(walk->catalogue->dir, folder);
    bool is_array = false;
    if (node == NODE_OTHER && folder[0] != '\0') {
        return look_at_other(walk, folder);
    }
    if (node != NODE_OTHER) {
        GCMP_TRY(read_node(walk, folder, node, &is_array));
    }
    return is_array ? GRADCMP_OK : enqueue_children(walk, queue, folder);
}

static enum gradcmp_status visit_all(struct walk *walk) {
    struct queue queue = {0};
    enum gradcmp_status status = enqueue(walk, &queue, gcmp_arena_dup(walk->catalogue->arena, ""));
    while (status == GRADCMP_OK && queue.done < queue.count) {
        status = visit(walk, &queue, queue.names[queue.done++]);
    }
    free(queue.names);
    return status;
}

/* Leave to resolve() what it needs. */
static enum gradcmp_status keep_arrays(struct walk *walk) {
    size_t count = walk->arrays.count;
    const struct gcmp_zarr_array **kept =
        gcmp_arena_alloc(walk->catalogue->arena, count, sizeof *kept);
    if (kept == NULL) {
        GCMP_FAIL_MEMORY(walk->error);
    }
    if (count > 0) {
        memcpy(kept, walk->arrays.of_stored, count * sizeof *kept);
    }
    walk->catalogue->format_data = kept;
    return GRADCMP_OK;
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct walk walk = {.catalogue = catalogue, .error = error};
    bool common, megatron = names_zarr(catalogue->dir);
    GCMP_TRY(gcmp_megatron_read_common(catalogue, &common, error));
    megatron = megatron || common;
    catalogue->writer = megatron ? "megatron-core" : NULL;
    enum gradcmp_status status = visit_all(&walk);
    if (status == GRADCMP_OK) {
        status = keep_arrays(&walk);
    }
    if (status == GRADCMP_OK) {
        status = gcmp_plain_assign_names(catalogue, megatron ? GCMP_DCP_MEGATRON : GCMP_DCP_TORCH,
                                         walk.arrays.types, error);
    }
    free(walk.arrays.of_stored);
    free(walk.arrays.types);
    return status;
}

static enum gradcmp_status resolve(const struct gradcmp_catalogue *catalogue, uint32_t source,
                                   struct gradcmp_extent *out, struct gradcmp_error *error) {
    const struct gcmp_zarr_array *const *arrays = catalogue->format_data;
    const struct gcmp_zarr_array *array = arrays[catalogue->sources[source].stored];
    return gcmp_zarr_decode(array, catalogue, source, out, error);
}

const struct gradcmp_format gcmp_format_zarr = {
    .name = "zarr",
    .description = "zarr 2 and 3, also as Megatron-Core wrote it: none, gzip, zstd or blosc",
    .probe = probe,
    .open = open_catalogue,
    .resolve = resolve,
};
