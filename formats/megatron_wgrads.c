/* The format "megatron_wgrads": <save>/wgrads/iter_NNNNNNN/mp_rank_TT[_PPP][_EEE].pth, each a
 * torch.save archive of {"model_chunk<k>": {local name: tensor}}
 * (megatron/training/checkpointing.py, save_grads; main branch, 2026-01). There are no arguments:
 * sizes come from names of files and chunks. <save>/params is written in the same form
 * (--save-params-interval), and <save>/dgrads under the same names of files, with gradients of
 * activations.
 *
 * Limits: MAX_CHUNKS. */
#include "formats/megatron_wgrads.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/grow.h"
#include "formats/rank_files.h"
#include "formats/rank_tensors.h"

enum { MAX_CHUNKS = 4096 };

static const char SUFFIX[] = ".pth";

/* One chunk of one file. */
struct chunk {
    struct gradcmp_coords *coords; /* filled once all files are known */
    size_t file;                   /* index into the ranks' files, as listed */
    int32_t index;
    size_t first, end; /* its stored tensors */
};

/* One call of open. */
struct dump {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_rank_files files;
    struct gcmp_rank_arrays *arrays;
    const char *state;
    struct chunk *chunks; /* in the order of the files */
    size_t chunk_count, chunk_capacity;
};

/* What visiting the tensors of a chunk needs. */
struct visit {
    struct gcmp_rank_reader *reader;
    const struct dump *dump;
    const struct chunk *chunk;
};

/* The number of "model_chunk<k>"; -1 for other keys. */
static int32_t chunk_index(const char *key) {
    static const char prefix[] = "model_chunk";
    if (key == NULL || strncmp(key, prefix, sizeof prefix - 1) != 0) {
        return -1;
    }
    const char *digits = key + sizeof prefix - 1;
    size_t count = strspn(digits, "0123456789");
    long index = count == 0 || count > 6 || digits[count] != '\0' ? -1 : strtol(digits, NULL, 10);
    return index < MAX_CHUNKS ? (int32_t)index : -1;
}

/* One rank's file alone: to be claimed, so that nobody takes it for the whole. */
static bool is_one_rank(struct gcmp_dir *dir) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    const struct gcmp_node *key, *value;
    const char *name;
    uint32_t file, numbers[3];
    unsigned count;
    bool is_chunks =
        gcmp_dir_is_file(dir, &name) && gcmp_rank_name_read(name, SUFFIX, numbers, &count) &&
        gcmp_dir_add(dir, name, strlen(name), &file, NULL) == GRADCMP_OK &&
        gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), &arena, &torch, NULL) ==
            GRADCMP_OK &&
        gcmp_node_pair(torch.root, 0, &key, &value) && chunk_index(gcmp_node_text(key)) >= 0;
    gcmp_arena_free(&arena);
    return is_chunks;
}

/* True where a file of a rank is there that begins like a zip archive. */
static bool holds_ranks(struct gcmp_dir *dir) {
    struct gcmp_rank_files files;
    unsigned char head[4];
    uint32_t file;
    bool is_archive =
        gcmp_rank_files_list(dir, SUFFIX, &files, NULL) == GRADCMP_OK && files.count > 0 &&
        gcmp_dir_add(dir, files.list[0].name, strlen(files.list[0].name), &file, NULL) ==
            GRADCMP_OK &&
        gcmp_dir_read(dir, file, 0, head, sizeof head, NULL) == GRADCMP_OK &&
        memcmp(head, "PK\3\4", sizeof head) == 0;
    gcmp_rank_files_free(&files);
    return is_archive;
}

static int probe(struct gcmp_dir *dir) {
    bool is_file = gcmp_dir_is_file(dir, NULL);
    return (is_file ? is_one_rank(dir) : holds_ranks(dir)) ? 2 : 0;
}

static enum gradcmp_status add_tensor(void *user, const char *name, const struct gcmp_node *node,
                                      struct gradcmp_error *error) {
    const struct visit *visit = user;
    if (strchr(name, '/') != NULL) {
        GCMP_RANK_FAIL(visit->reader, node, error, GRADCMP_ERROR_UNSUPPORTED,
                       "\"%.160s\": gradients of activations (dgrads) are not read, only those of "
                       "weights (wgrads)",
                       name);
    }
    struct gradcmp_catalogue *catalogue = visit->dump->catalogue;
    const char *rank = visit->dump->files.list[visit->chunk->file].name;
    struct gcmp_rank_tensor tensor = {.name = name,
                                      .state = visit->dump->state,
                                      .coords = visit->chunk->coords,
                                      .layout = GRADCMP_LAYOUT_LOCAL};
    tensor.key = gcmp_arena_format(catalogue->arena, "%s: model_chunk%d.%s", rank,
                                   (int)visit->chunk->index, name);
    if (tensor.key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    return gcmp_rank_reader_add(visit->reader, &tensor, node, NULL, error);
}

static enum gradcmp_status add_chunk(struct dump *dump, size_t file, int32_t index,
                                     struct chunk **out, struct gradcmp_error *error) {
    if (!gcmp_grow(&dump->chunks, dump->chunk_count, &dump->chunk_capacity, sizeof *dump->chunks)) {
        GCMP_FAIL_MEMORY(error);
    }
    *out = &dump->chunks[dump->chunk_count];
    **out = (struct chunk){.file = file, .index = index};
    (*out)->coords = gcmp_arena_alloc(dump->catalogue->arena, 1, sizeof *(*out)->coords);
    if ((*out)->coords == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    dump->chunk_count++;
    return GRADCMP_OK;
}

static enum gradcmp_status read_root(struct dump *dump, struct gcmp_rank_reader *reader,
                                     size_t file, struct gradcmp_error *error) {
    const struct gcmp_node *root = reader->torch.root, *key, *value;
    for (size_t i = 0; gcmp_node_pair(root, i, &key, &value); i++) {
        int32_t index = chunk_index(gcmp_node_text(key));
        struct chunk *chunk;
        if (index < 0) {
            GCMP_RANK_FAIL(reader, key, error, GRADCMP_ERROR_UNSUPPORTED,
                           "expected model_chunk0, model_chunk1, ... as keys, found \"%.64s\"",
                           gcmp_node_text(key) == NULL ? gcmp_node_kind_name(key)
                                                       : gcmp_node_text(key));
        }
        GCMP_TRY(add_chunk(dump, file, index, &chunk, error));
        chunk->first = dump->catalogue->stored_count;
        struct visit visit = {reader, dump, chunk};
        GCMP_TRY(gcmp_rank_walk(reader, value, add_tensor, &visit, error));
        chunk->end = dump->catalogue->stored_count;
    }
    if (!gcmp_node_pair(root, 0, &key, &value)) {
        GCMP_RANK_FAIL(reader, root, error, GRADCMP_ERROR_CORRUPT,
                       "expected a dict of model chunks, found %s", gcmp_node_kind_name(root));
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_files(struct dump *dump, struct gradcmp_error *error) {
    for (size_t i = 0; i < dump->files.count; i++) {
        struct gcmp_rank_reader reader;
        enum gradcmp_status status = gcmp_rank_reader_open(&reader, dump->catalogue, dump->arrays,
                                                           dump->files.list[i].name, error);
        if (status == GRADCMP_OK) {
            status = read_root(dump, &reader, i, error);
        }
        gcmp_rank_reader_close(&reader);
        GCMP_TRY(status);
    }
    return GRADCMP_OK;
}

/* True where two chunks hold the same names in the same order. */
static bool same_names(const struct gradcmp_catalogue *catalogue, const struct chunk *a,
                       const struct chunk *b) {
    if (a->index != b->index || a->end - a->first != b->end - b->first) {
        return false;
    }
    for (size_t i = 0; i < a->end - a->first; i++) {
        if (strcmp(catalogue->stored[a->first + i].name, catalogue->stored[b->first + i].name) !=
            0) {
            return false;
        }
    }
    return true;
}

/* Of two numbers the second is a stage of the pipeline or a rank of experts: stages hold different
 * layers and the first and last more than these, ranks of experts all hold the same names. */
static enum gcmp_rank_second second_number(const struct dump *dump) {
    const struct gcmp_rank_files *files = &dump->files;
    size_t per_file = dump->chunk_count / files->count;
    for (size_t i = per_file; i < dump->chunk_count; i++) {
        if (!same_names(dump->catalogue, &dump->chunks[i % per_file], &dump->chunks[i])) {
            return GCMP_SECOND_IS_STAGE;
        }
    }
    return GCMP_SECOND_IS_EXPERTS;
}

static int compare_chunks(const void *left, const void *right) {
    const struct chunk *a = left, *b = right;
    return a->file != b->file ? (a->file < b->file ? -1 : 1)
                              : (a->index > b->index) - (a->index < b->index);
}

/* Every file must hold the same chunks, 0 and on. */
static enum gradcmp_status check_chunks(struct dump *dump, struct gradcmp_error *error) {
    size_t per_file = dump->chunk_count / dump->files.count;
    qsort(dump->chunks, dump->chunk_count, sizeof *dump->chunks, compare_chunks);
    for (size_t i = 0; i < dump->chunk_count; i++) {
        const struct chunk *chunk = &dump->chunks[i];
        if (chunk->file != i / per_file || (size_t)chunk->index != i % per_file) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dump->catalogue->dir),
                         GRADCMP_NO_OFFSET,
                         "%s holds other chunks of the model than the files before (model_chunk%d)",
                         dump->files.list[chunk->file].name, (int)chunk->index);
        }
    }
    dump->catalogue->parallel.vp = (uint32_t)per_file;
    return GRADCMP_OK;
}

static bool has_experts(const struct gradcmp_catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->stored_count; i++) {
        if (strstr(catalogue->stored[i].name, ".experts.") != NULL) {
            return true;
        }
    }
    return false;
}

/* Ranks beyond those of the experts write no file: with as many files as tensor-parallel ranks seen
 * there may have been more of these, and the size is not known. */
static void set_parallel(struct dump *dump) {
    const struct gcmp_rank_files *files = &dump->files;
    struct gradcmp_parallel *parallel = &dump->catalogue->parallel;
    bool may_be_more = (uint64_t)files->etp * files->ep == files->tp;
    parallel->tp = may_be_more && has_experts(dump->catalogue) ? 0 : files->tp;
    parallel->pp = files->pp;
    parallel->ep = files->ep;
    parallel->etp = files->etp;
}

static enum gradcmp_status place(struct dump *dump, struct gradcmp_error *error) {
    struct gradcmp_parallel nothing = {.tp = 0};
    size_t per_file = dump->chunk_count / dump->files.count;
    GCMP_TRY(check_chunks(dump, error));
    GCMP_TRY(gcmp_rank_files_place(&dump->files, second_number(dump), &nothing,
                                   dump->catalogue->dir, error));
    for (size_t i = 0; i < dump->files.count; i++) {
        const struct gcmp_rank_file *file = &dump->files.list[i];
        for (size_t k = 0; k < per_file; k++) {
            *dump->chunks[file->listed * per_file + k].coords =
                (struct gradcmp_coords){.tp = (int32_t)file->tp,
                                        .pp = (int32_t)file->pp,
                                        .ep = (int32_t)file->ep,
                                        .dp = -1,
                                        .vp = (int32_t)k,
                                        .etp = (int32_t)file->etp};
        }
    }
    set_parallel(dump);
    return GRADCMP_OK;
}

/* The folder above says what was dumped: weights themselves, or (as always before 2026-07)
 * gradients. */
static const char *find_state(const struct gradcmp_catalogue *catalogue) {
    char resolved[PATH_MAX];
    const char *path = realpath(gcmp_dir_path(catalogue->dir), resolved);
    static const char tail[] = "/params";
    const char *last = path == NULL ? NULL : strrchr(path, '/');
    size_t bytes = last == NULL ? 0 : (size_t)(last - path);
    bool is_params = bytes >= sizeof tail - 1 &&
                     memcmp(path + bytes - (sizeof tail - 1), tail, sizeof tail - 1) == 0;
    return is_params ? "param" : "main_grad";
}

static enum gradcmp_status read_dump(struct dump *dump, struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = dump->catalogue;
    GCMP_TRY(gcmp_rank_files_list(catalogue->dir, SUFFIX, &dump->files, error));
    GCMP_TRY(gcmp_rank_arrays_make(catalogue, &dump->arrays, error));
    GCMP_TRY(read_files(dump, error));
    return place(dump, error);
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct dump dump = {.catalogue = catalogue, .state = find_state(catalogue)};
    if (gcmp_dir_is_file(catalogue->dir, NULL)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "the gradient dump of one rank: name the folder of the iteration, which holds "
                     "all mp_rank_*.pth");
    }
    catalogue->writer = "megatron-lm";
    catalogue->layout_name = "gradient dump";
    catalogue->is_dump = true;
    catalogue->iteration = gcmp_rank_files_iteration(gcmp_dir_path(catalogue->dir));
    enum gradcmp_status status = read_dump(&dump, error);
    gcmp_rank_files_free(&dump.files);
    free(dump.chunks);
    return status;
}

const struct gradcmp_format gcmp_format_megatron_wgrads = {
    .name = "megatron_wgrads",
    .description = "gradient dumps of Megatron-LM (--save-wgrads-interval): "
                   "wgrads/iter_NNNNNNN/mp_rank_TT[_PPP][_EEE].pth",
    .probe = probe,
    .open = open_catalogue,
    .resolve = gcmp_rank_resolve,
};
