/* Finds out which safetensors files belong to a checkpoint and what they are of it:
 *   - a single file, or one with an index beside it (Hugging Face; torch's consolidated output,
 *     whose shards in the folder sharded/ are not looked at);
 *   - files of torch's Hugging Face writer without an index, which say where their tensors belong;
 *   - files 1 to n of n ("-00001-of-00002"), each with tensors of its own;
 *   - one file a rank.
 *
 * Limits: MAX_NAMES entries in the folder; those of the files. */
#include "formats/safetensors.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/cursor.h"
#include "base/map.h"
#include "formats/extracted.h"
#include "formats/safetensors_set.h"

enum { MAX_NAMES = 1 << 20, MAX_HEADER_BYTES = 100000000, PROBE_BYTES = 10 };

static const char FILES[] = "*.safetensors", INDEXES[] = "*.safetensors.index.json";

/* Names in the folder, the files of this format first. */
struct listing {
    char **names;
    size_t total;
    const char **files;
    size_t file_count;
    const char *index, *pickled; /* one of the files of weights that torch.save wrote; or NULL */
    size_t index_count;
};

/* Weights as torch.save writes them: transformers', and Meta's. */
static const char *const PICKLED[] = {"*model*.bin", "*model*.pt", "*model*.pth",
                                      "consolidated*.pth", NULL};

/* A file's first bytes: a small length, then an object. */
static bool looks_like_image(struct gcmp_dir *dir, const char *name) {
    uint32_t file;
    unsigned char bytes[PROBE_BYTES];
    uint64_t header;
    if (gcmp_dir_add(dir, name, strlen(name), &file, NULL) != GRADCMP_OK ||
        gcmp_dir_file_bytes(dir, file) < sizeof bytes ||
        gcmp_dir_read(dir, file, 0, bytes, sizeof bytes, NULL) != GRADCMP_OK) {
        return false;
    }
    struct gcmp_cursor cursor = gcmp_cursor_make(bytes, sizeof bytes, 0);
    return gcmp_read_u64le(&cursor, &header) && header <= MAX_HEADER_BYTES &&
           header <= gcmp_dir_file_bytes(dir, file) - 8 && bytes[8] == '{' &&
           (bytes[9] == '"' || bytes[9] == '}');
}

static int probe(struct gcmp_dir *dir) {
    const char *name;
    char **names;
    size_t count;
    if (gcmp_dir_is_file(dir, &name)) {
        return fnmatch(FILES, name, 0) == 0 ? 2 : looks_like_image(dir, name) ? 2 : 0;
    }
    if (gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) != GRADCMP_OK) {
        return 0;
    }
    int strength = 0;
    for (size_t i = 0; i < count && strength == 0; i++) {
        bool ours = fnmatch(FILES, names[i], 0) == 0 || fnmatch(INDEXES, names[i], 0) == 0;
        strength = ours ? 2 : 0;
    }
    gcmp_dir_free_names(names, count);
    return strength;
}

static bool is_pickled(const char *name) {
    size_t i = 0;
    while (PICKLED[i] != NULL && fnmatch(PICKLED[i], name, 0) != 0) {
        i++;
    }
    return PICKLED[i] != NULL;
}

static enum gradcmp_status list_folder(struct gradcmp_catalogue *catalogue, struct listing *listing,
                                       struct gradcmp_error *error) {
    GCMP_TRY(gcmp_dir_list(catalogue->dir, "", MAX_NAMES, &listing->names, &listing->total, error));
    listing->files = calloc(listing->total + 1, sizeof *listing->files);
    if (listing->files == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < listing->total; i++) {
        const char *name = listing->names[i];
        if (fnmatch(INDEXES, name, 0) == 0) {
            listing->index = name;
            listing->index_count++;
        } else if (gcmp_dir_is_file(catalogue->dir, NULL) || fnmatch(FILES, name, 0) == 0) {
            listing->files[listing->file_count++] = name;
        } else if (is_pickled(name)) {
            listing->pickled = name;
        }
    }
    if (listing->index_count > 1) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "%zu safetensors indexes in one folder: name a folder with one, or one file",
                     listing->index_count);
    }
    return GRADCMP_OK;
}

/* Take "<base>-<k>-of-<n>.safetensors" apart, a "shard-<rank>-" in front of the base left out.
 * False for other names. */
static bool split_name(const char *name, const char **base, size_t *base_bytes, unsigned long *part,
                       unsigned long *of) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a listing's names are set */
    size_t rank = strncmp(name, "shard-", 6) == 0 ? strspn(name + 6, "0123456789") : 0;
    *base = rank > 0 && name[6 + rank] == '-' ? name + 7 + rank : name;
    const char *mark = strstr(*base, "-of-");
    const char *digits = mark;
    while (digits != NULL && digits > *base && digits[-1] >= '0' && digits[-1] <= '9') {
        digits--;
    }
    if (digits == NULL || digits == mark || mark - digits > 9 || digits == *base ||
        digits[-1] != '-') {
        return false;
    }
    char *end;
    *base_bytes = (size_t)(digits - *base);
    *part = strtoul(digits, NULL, 10);
    *of = strtoul(mark + 4, &end, 10);
    return strcmp(end, ".safetensors") == 0 && end - mark <= 13 && end > mark + 4;
}

/* Write what tells a part of a numbered series: its base, how many there are, and which it is. */
static size_t series_key(const char *name, long step, char *key, size_t capacity) {
    const char *base;
    size_t base_bytes;
    unsigned long part, of;
    if (!split_name(name, &base, &base_bytes, &part, &of) || base_bytes > capacity - 48) {
        return 0;
    }
    unsigned long wanted = part + (unsigned long)step;
    if (wanted < 1 || wanted > of) {
        return 0;
    }
    return (size_t)snprintf(key, capacity, "%.*s%lu of %lu", (int)base_bytes, base, wanted, of);
}

/* Where files are numbered k of n, all n must be there: each one's neighbours are looked for, which
 * is enough for all. *numbered tells whether every file has a number. */
static enum gradcmp_status check_series(const struct gradcmp_catalogue *catalogue,
                                        const struct listing *listing, bool *numbered,
                                        struct gradcmp_error *error) {
    struct gcmp_map seen = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    char(*keys)[512] = calloc(listing->file_count + 1, sizeof *keys);
    bool has_memory = keys != NULL;
    *numbered = true;
    for (size_t i = 0; i < listing->file_count && has_memory; i++) {
        size_t bytes = series_key(listing->files[i], 0, keys[i], sizeof *keys);
        *numbered = *numbered && bytes > 0;
        has_memory =
            bytes == 0 || gcmp_map_add(&seen, keys[i], bytes, i, NULL) != GCMP_MAP_NO_MEMORY;
    }
    if (!has_memory) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    }
    for (size_t i = 0; i < 2 * listing->file_count && status == GRADCMP_OK; i++) {
        char key[512];
        size_t ignored,
            bytes = series_key(listing->files[i / 2], i % 2 == 0 ? -1 : 1, key, sizeof key);
        if (bytes > 0 && !gcmp_map_find(&seen, key, bytes, &ignored)) {
            status = gcmp_error_set(
                error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(catalogue->dir), GRADCMP_NO_OFFSET,
                "safetensors: %.200s is there, but not part %.200s", listing->files[i / 2], key);
        }
    }
    gcmp_map_free(&seen);
    free(keys);
    return status;
}

/* Read "shard-<rank>-...-<k>-of-<n>.safetensors"; false for other names. */
static bool read_shard_name(const char *name, unsigned long *rank, unsigned long *part,
                            unsigned long *of) {
    const char *base;
    size_t base_bytes;
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a listing's names are set */
    size_t digits = strncmp(name, "shard-", 6) == 0 ? strspn(name + 6, "0123456789") : 0;
    *rank = strtoul(digits > 0 ? name + 6 : "0", NULL, 10);
    return digits > 0 && digits <= 9 && *rank > 0 && split_name(name, &base, &base_bytes, part, of);
}

/* torch's writer numbers ranks from 1 and gives each its parts 1 to n; what a rank has nothing of
 * it does not write (hf_storage.py, write_data). A file that the others' numbers leave room for is
 * noted: a last one that is lost shows in nothing else. */
static enum gradcmp_status note_gap(struct gradcmp_catalogue *catalogue,
                                    const struct listing *listing, struct gradcmp_error *error) {
    struct gcmp_map seen = GCMP_MAP_INIT;
    unsigned long key[2], of, parts = 0, ranks = 0, rank = 1, part = 1;
    size_t ignored;
    bool has_memory = true;
    for (size_t i = 0; i < listing->file_count && has_memory; i++) {
        if (!read_shard_name(listing->files[i], &key[0], &key[1], &of)) {
            gcmp_map_free(&seen);
            return GRADCMP_OK;
        }
        ranks = key[0] > ranks ? key[0] : ranks;
        parts = of > parts ? of : parts;
        has_memory = gcmp_map_add(&seen, key, sizeof key, i, NULL) != GCMP_MAP_NO_MEMORY;
    }
    while (rank <= ranks && has_memory) {
        key[0] = rank;
        key[1] = part;
        if (!gcmp_map_find(&seen, key, sizeof key, &ignored)) {
            break;
        }
        rank += part == parts;
        part = part == parts ? 1 : part + 1;
    }
    gcmp_map_free(&seen);
    if (!has_memory) {
        GCMP_FAIL_MEMORY(error);
    }
    return rank > ranks ? GRADCMP_OK
                        : gcmp_catalogue_note(catalogue, error,
                                              "no file of shard %lu, part %lu of %lu, beside "
                                              "others: it is lost, or that rank had nothing of it",
                                              rank, part, parts);
}

/* Each file says where its tensors begin, and none says where they end. */
static enum gradcmp_status note_sharded(struct gradcmp_catalogue *catalogue,
                                        const struct listing *listing,
                                        const struct gcmp_st_set *set,
                                        struct gradcmp_error *error) {
    catalogue->layout_name = "sharded";
    if (set->count == 1) {
        GCMP_TRY(gcmp_catalogue_note(catalogue, error,
                                     "the file states no whole shapes: they are taken from the "
                                     "ends of its shards; whether other ranks wrote more is not in "
                                     "it"));
    } else {
        GCMP_TRY(gcmp_catalogue_note(catalogue, error,
                                     "the files state no whole shapes: they are taken from the "
                                     "ends of the shards"));
    }
    return gcmp_dir_is_file(catalogue->dir, NULL) ? GRADCMP_OK
                                                  : note_gap(catalogue, listing, error);
}

/* How many of the files say where their tensors belong, and how many name a rank. */
struct kinds {
    size_t placed, ranked;
};

static enum gradcmp_status open_loose(struct gradcmp_catalogue *catalogue,
                                      const struct listing *listing, struct gcmp_st_set *set,
                                      struct kinds *kinds, struct gradcmp_error *error) {
    for (size_t i = 0; i < listing->file_count; i++) {
        bool placed;
        GCMP_TRY(gcmp_st_set_add(catalogue, set, listing->files[i], error));
        struct gcmp_st_image *image = &set->images[i];
        GCMP_TRY(gcmp_st_read_sharding(catalogue->dir, image, catalogue->arena, &placed, error));
        const char *world = gcmp_st_metadata(image, "world_size");
        kinds->placed += placed;
        kinds->ranked += !placed && world != NULL && strcmp(world, "1") != 0 &&
                         gcmp_st_metadata(image, "rank") != NULL;
    }
    return GRADCMP_OK;
}

/* Files without an index: find out how they belong together. */
static enum gradcmp_status read_loose(struct gradcmp_catalogue *catalogue,
                                      const struct listing *listing, struct gcmp_st_set *set,
                                      struct gradcmp_error *error) {
    struct kinds kinds = {0, 0};
    bool numbered;
    GCMP_TRY(open_loose(catalogue, listing, set, &kinds, error));
    if (kinds.ranked > 0 && kinds.ranked == set->count) {
        catalogue->layout_name = "one file a rank";
        return gcmp_st_place_ranks(catalogue, set, error);
    }
    bool is_sharded = kinds.placed == set->count && set->count > 0;
    if (gcmp_dir_is_file(catalogue->dir, NULL)) {
        return is_sharded ? note_sharded(catalogue, listing, set, error) : GRADCMP_OK;
    }
    GCMP_TRY(check_series(catalogue, listing, &numbered, error));
    if (is_sharded) {
        return note_sharded(catalogue, listing, set, error);
    }
    if (set->count > 1 && !numbered) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "%zu safetensors files and nothing that tells how they belong together (an "
                     "index, DCP_SHARDING_INFO, rank and world_size, numbers k of n): name one",
                     set->count);
    }
    return GRADCMP_OK;
}

/* The file that loaders take rather than the index, "model.safetensors" beside
 * "model.safetensors.index.json", where the index does not name it; NULL: there is none. */
static const char *find_rival(const struct gradcmp_catalogue *catalogue,
                              const struct listing *listing, const struct gcmp_st_set *set) {
    size_t bytes = strlen(listing->index) - strlen(".index.json");
    const char *rival = NULL;
    for (size_t i = 0; i < listing->file_count; i++) {
        const char *name = listing->files[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): files have names */
        rival = strlen(name) == bytes && strncmp(name, listing->index, bytes) == 0 ? name : rival;
    }
    for (size_t i = 0; i < set->count && rival != NULL; i++) {
        const char *named = gcmp_dir_file_name(catalogue->dir, set->images[i].file);
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): the loop ends without one */
        rival = strcmp(named, rival) == 0 ? NULL : rival;
    }
    return rival;
}

/* A tensor that both the index's files and another image hold; NULL: there is none, or (*has_memory
 * false) no memory. */
static const char *find_shared(const struct gcmp_st_set *set, const struct gcmp_st_image *image,
                               bool *has_memory) {
    struct gcmp_map names = GCMP_MAP_INIT;
    const char *shared = NULL;
    *has_memory = true;
    for (size_t i = 0; i < image->count && *has_memory; i++) {
        const char *name = image->tensors[i].name;
        *has_memory = gcmp_map_add(&names, name, strlen(name), i, NULL) != GCMP_MAP_NO_MEMORY;
    }
    for (size_t i = 0; i < set->count && *has_memory && shared == NULL; i++) {
        for (size_t j = 0; j < set->images[i].count && shared == NULL; j++) {
            size_t ignored;
            const char *name = set->images[i].tensors[j].name;
            shared = gcmp_map_find(&names, name, strlen(name), &ignored) ? name : NULL;
        }
    }
    gcmp_map_free(&names);
    return shared;
}

/* Which of two sets of weights is meant is not ours to choose. */
static enum gradcmp_status check_rival(struct gradcmp_catalogue *catalogue,
                                       const struct listing *listing, const struct gcmp_st_set *set,
                                       struct gradcmp_error *error) {
    struct gcmp_st_set other = {0};
    const char *rival = find_rival(catalogue, listing, set), *shared = NULL;
    bool has_memory = true;
    if (rival == NULL) {
        return GRADCMP_OK;
    }
    enum gradcmp_status status = gcmp_st_set_add(catalogue, &other, rival, error);
    if (status == GRADCMP_OK) {
        shared = find_shared(set, &other.images[0], &has_memory);
    }
    if (!has_memory) {
        status =
            gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL, GRADCMP_NO_OFFSET, "out of memory");
    } else if (shared != NULL) {
        status = gcmp_error_set(
            error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir), GRADCMP_NO_OFFSET,
            "\"%.160s\" is in %.160s and in a file of %.160s, and loaders take either: name the "
            "file, or a folder with one of the two",
            shared, rival, listing->index);
    }
    gcmp_st_set_close(&other);
    return status;
}

static enum gradcmp_status read_indexed(struct gradcmp_catalogue *catalogue,
                                        const struct listing *listing, struct gcmp_st_set *set,
                                        struct gradcmp_error *error) {
    GCMP_TRY(gcmp_st_read_index(catalogue, listing->index, set, error));
    for (size_t i = 0; i < set->count; i++) {
        bool placed;
        GCMP_TRY(gcmp_st_read_sharding(catalogue->dir, &set->images[i], catalogue->arena, &placed,
                                       error));
    }
    GCMP_TRY(check_rival(catalogue, listing, set, error));
    if (listing->file_count > set->count) {
        return gcmp_catalogue_note(catalogue, error,
                                   "%zu more safetensors files, which the index does not name, "
                                   "were not read",
                                   listing->file_count - set->count);
    }
    return GRADCMP_OK;
}

/* What the first file's metadata says of the run. */
static void read_run(struct gradcmp_catalogue *catalogue, const struct gcmp_st_set *set) {
    static const char *const names[] = {"iteration", "step"};
    if (set->count == 0) {
        return;
    }
    const struct gcmp_st_image *image = &set->images[0];
    for (size_t i = 0; i < sizeof names / sizeof *names && catalogue->iteration < 0; i++) {
        const char *text = gcmp_st_metadata(image, names[i]);
        size_t digits = text == NULL ? 0 : strspn(text, "0123456789");
        if (digits > 0 && digits <= 18 && text[digits] == '\0') {
            catalogue->iteration = strtoll(text, NULL, 10);
        }
    }
    const char *format = gcmp_st_metadata(image, "format");
    catalogue->writer = format != NULL && strcmp(format, "pt") == 0 ? "torch" : NULL;
}

/* What `gradcmp extract` wrote of the run; texts are bytes that end at a NUL at the latest. */
static enum gradcmp_status read_extracted(struct gradcmp_catalogue *catalogue,
                                          const struct gcmp_st_set *set,
                                          struct gradcmp_error *error) {
    json_t *metadata = set->count == 1 ? set->images[0].metadata : NULL;
    for (void *at = metadata == NULL ? NULL : json_object_iter(metadata); at != NULL;
         at = json_object_iter_next(metadata, at)) {
        const char *text = json_string_value(json_object_iter_value(at));
        if (text != NULL) {
            GCMP_TRY(gcmp_extracted_take(catalogue, json_object_iter_key(at), text, error));
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct listing listing = {0};
    struct gcmp_st_set set = {0};
    enum gradcmp_status status;
    GCMP_TRY_OUT(list_folder(catalogue, &listing, error));
    GCMP_TRY_OUT(listing.index != NULL ? read_indexed(catalogue, &listing, &set, error)
                                       : read_loose(catalogue, &listing, &set, error));
    if (listing.pickled != NULL) {
        GCMP_TRY_OUT(gcmp_catalogue_note(catalogue, error,
                                         "%.160s beside the safetensors files was not read: name "
                                         "it to see what it holds",
                                         listing.pickled));
    }
    read_run(catalogue, &set);
    GCMP_TRY_OUT(read_extracted(catalogue, &set, error));
    GCMP_TRY_OUT(gcmp_st_join(catalogue, &set, error));
    const char *layers =
        set.count == 1 ? gcmp_st_metadata(&set.images[0], GCMP_EXTRACTED_TENSOR_LAYERS) : NULL;
    if (layers != NULL) {
        status = gcmp_extracted_take_layers(catalogue, layers, error);
    }
out:
    gcmp_st_set_close(&set);
    free(listing.files);
    gcmp_dir_free_names(listing.names, listing.total);
    return status;
}

const struct gradcmp_format gcmp_format_safetensors = {
    .name = "safetensors",
    .description = "safetensors: one file, files with an index, shards of torch's Hugging Face "
                   "writer, one file a rank",
    .probe = probe,
    .open = open_catalogue,
    .resolve = NULL,
};
