/* The format "megatron_legacy": iter_NNNNNNN/mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt, a
 * torch.save archive of {"args", "iteration", "model" (or "model0", "model1", ... of a virtual
 * pipeline), "optimizer", ...}, and beside it distrib_optim.pt with the state of a distributed
 * optimizer (megatron/training/checkpointing.py, --ckpt-format torch). Names are local to the rank.
 */
#include "formats/megatron_legacy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "base/dtype.h"
#include "formats/megatron_args.h"
#include "formats/megatron_legacy_rank.h"
#include "formats/megatron_same_run.h"

enum { MAX_PATH_BYTES = 300 };

static const char MODEL_FILE[] = "model_optim_rng.pt";

/* What visiting the weights of a chunk needs. */
struct visit {
    const struct gcmp_legacy_rank *rank;
    struct gcmp_rank_reader *reader;
    const struct gradcmp_coords *coords;
    const char *chunk; /* "model", "model0", ... */
};

/* The path of a rank's file with the weights. */
static void model_path(const struct gcmp_rank_file *file, char path[MAX_PATH_BYTES]) {
    snprintf(path, MAX_PATH_BYTES, "%s/%s", file->name, MODEL_FILE);
}

/* True where the arguments in a rank's file say that there are others. */
static bool says_of_others(const struct gcmp_node *root) {
    static const char *const sizes[] = {
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size"};
    int64_t size;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (gcmp_node_int(gcmp_node_get(gcmp_node_get(root, "args"), sizes[i]), &size) &&
            size > 1) {
            return true;
        }
    }
    return false;
}

/* One rank's file alone, of several: to be claimed, so that nobody takes it for the whole. */
static bool is_part(struct gcmp_dir *dir, const char *name) {
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    uint32_t file;
    bool is_one_of_several = strcmp(name, MODEL_FILE) == 0 &&
                             gcmp_dir_add(dir, name, strlen(name), &file, NULL) == GRADCMP_OK &&
                             gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), &arena,
                                             &torch, NULL) == GRADCMP_OK &&
                             says_of_others(torch.root);
    gcmp_arena_free(&arena);
    return is_one_of_several;
}

/* True for one rank's folder or file. */
static bool is_one_rank(struct gcmp_dir *dir) {
    const char *name;
    return gcmp_dir_is_file(dir, &name) ? is_part(dir, name)
                                        : gcmp_dir_kind(dir, MODEL_FILE) != GCMP_DIR_ABSENT;
}

static int probe(struct gcmp_dir *dir) {
    struct gcmp_rank_files files;
    int strength = is_one_rank(dir) ? 2 : 0;
    if (strength > 0 || gcmp_dir_is_file(dir, NULL)) {
        return strength;
    }
    if (gcmp_rank_files_list(dir, "", &files, NULL) == GRADCMP_OK) {
        for (size_t i = 0; i < files.count && strength == 0; i++) {
            char path[MAX_PATH_BYTES];
            model_path(&files.list[i], path);
            strength = gcmp_dir_kind(dir, path) != GCMP_DIR_ABSENT ? 2 : 0;
        }
    }
    gcmp_rank_files_free(&files);
    return strength;
}

const struct gradcmp_coords *gcmp_legacy_coords(const struct gcmp_legacy_rank *rank,
                                                int32_t chunk) {
    struct gradcmp_coords *coords = gcmp_arena_alloc(rank->catalogue->arena, 1, sizeof *coords);
    if (coords != NULL) {
        *coords = (struct gradcmp_coords){.tp = (int32_t)rank->file->tp,
                                          .pp = (int32_t)rank->file->pp,
                                          .ep = (int32_t)rank->file->ep,
                                          .dp = -1,
                                          .vp = chunk,
                                          .etp = (int32_t)rank->file->etp};
    }
    return coords;
}

/* Transformer Engine's state of its own, under names that end so, is no tensor of numbers. */
static bool is_extra_state(const char *name) {
    static const char end[] = "_extra_state";
    size_t bytes = strlen(name), end_bytes = sizeof end - 1;
    return bytes >= end_bytes && strcmp(name + bytes - end_bytes, end) == 0;
}

/* Whatever is made by a call may be a tensor: one that cannot be read must not be passed over. */
static enum gradcmp_status add_weight(void *user, const char *name, const struct gcmp_node *node,
                                      struct gradcmp_error *error) {
    const struct visit *visit = user;
    if (is_extra_state(name) || (node->kind != GCMP_NODE_CALL && node->kind != GCMP_NODE_PERSID)) {
        return GRADCMP_OK;
    }
    struct gcmp_rank_tensor tensor = {
        .name = name, .state = "param", .coords = visit->coords, .layout = GRADCMP_LAYOUT_LOCAL};
    tensor.key = gcmp_arena_format(visit->reader->catalogue->arena, "%s: %s.%s",
                                   visit->rank->file->name, visit->chunk, name);
    if (tensor.key == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    struct gradcmp_stored *stored;
    GCMP_TRY(gcmp_rank_reader_add(visit->reader, &tensor, node, &stored, error));
    if (!gcmp_dtype_is_float((enum gradcmp_dtype)stored->dtype)) {
        stored->state = NULL; /* counts and the like */
    }
    return GRADCMP_OK;
}

/* The chunk that a key of the root means: 0 for "model", k for "model<k>"; -1 for others. */
static int32_t chunk_of_key(const char *key) {
    if (key == NULL || strncmp(key, "model", 5) != 0) {
        return -1;
    }
    size_t digits = strspn(key + 5, "0123456789");
    if (key[5 + digits] != '\0' || digits > 4) {
        return -1;
    }
    return digits == 0 ? 0 : (int32_t)strtol(key + 5, NULL, 10);
}

static enum gradcmp_status add_chunks(struct gcmp_legacy_rank *rank,
                                      struct gcmp_rank_reader *reader,
                                      struct gradcmp_error *error) {
    const struct gcmp_node *root = reader->torch.root, *key, *value;
    int32_t chunks = 0;
    rank->first_weight = rank->catalogue->stored_count;
    for (size_t i = 0; gcmp_node_pair(root, i, &key, &value); i++) {
        const char *name = gcmp_node_text(key);
        int32_t chunk = chunk_of_key(name);
        if (chunk < 0) {
            continue;
        }
        struct visit visit = {rank, reader, gcmp_legacy_coords(rank, chunk), name};
        if (visit.coords == NULL) {
            GCMP_FAIL_MEMORY(error);
        }
        if (chunk != chunks++) {
            GCMP_RANK_FAIL(reader, key, error, GRADCMP_ERROR_CORRUPT,
                           "expected the chunks of the model in order, found \"%s\" as number %d",
                           name, (int)chunks - 1);
        }
        GCMP_TRY(gcmp_rank_walk(reader, value, add_weight, &visit, error));
    }
    rank->end_weight = rank->catalogue->stored_count;
    if (chunks == 0) {
        GCMP_RANK_FAIL(reader, root, error, GRADCMP_ERROR_CORRUPT,
                       "expected a dict with \"model\" or \"model0\", found %s without",
                       gcmp_node_kind_name(root));
    }
    return GRADCMP_OK;
}

/* Ranks' files of different steps are of two saves. */
static enum gradcmp_status check_iteration(const struct gcmp_rank_reader *reader,
                                           struct gradcmp_error *error) {
    const struct gcmp_node *node = gcmp_node_get(reader->torch.root, "iteration");
    int64_t iteration, expected = reader->catalogue->iteration;
    if (gcmp_node_int(node, &iteration) && expected >= 0 && iteration != expected) {
        GCMP_RANK_FAIL(reader, node, error, GRADCMP_ERROR_CORRUPT,
                       "iteration %lld, but the first rank's file is of iteration %lld",
                       (long long)iteration, (long long)expected);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_rank(struct gcmp_legacy_rank *rank, struct gcmp_same_run *run,
                                     struct gradcmp_error *error) {
    char path[MAX_PATH_BYTES];
    struct gcmp_rank_reader reader;
    enum gradcmp_status status;
    model_path(rank->file, path);
    GCMP_TRY_OUT(gcmp_rank_reader_open(&reader, rank->catalogue, rank->arrays, path, error));
    GCMP_TRY_OUT(check_iteration(&reader, error));
    GCMP_TRY_OUT(gcmp_same_run_check(run, &reader, rank->file, error));
    GCMP_TRY_OUT(add_chunks(rank, &reader, error));
    GCMP_TRY_OUT(gcmp_legacy_add_states(rank, &reader, error));
    status = gcmp_legacy_add_buffers(rank, error);
out:
    gcmp_rank_reader_close(&reader);
    return status;
}

/* MindSpeed's noop_layers: a set of layers that are there in name only, so that stages are of one
 * depth. Which ones does not matter to us, only whether there are any. */
static enum gradcmp_status read_noop_layers(struct gradcmp_catalogue *catalogue,
                                            const struct gcmp_node *root,
                                            struct gradcmp_error *error) {
    const struct gcmp_node *node = gcmp_node_get(gcmp_node_get(root, "args"), "noop_layers");
    const struct gcmp_node *items = gcmp_node_count(node) > 0 ? node : gcmp_node_arg(node, 0);
    struct gradcmp_setting setting = {
        .name = "noop_layers", .kind = GRADCMP_SETTING_TEXT, .text = "some"};
    return gcmp_node_count(items) > 0 ? gcmp_catalogue_set(catalogue, &setting, error) : GRADCMP_OK;
}

/* Take arguments and iteration from the first rank's file. */
static enum gradcmp_status read_run(struct gradcmp_catalogue *catalogue,
                                    struct gcmp_rank_arrays *arrays,
                                    const struct gcmp_rank_file *file,
                                    struct gradcmp_error *error) {
    char path[MAX_PATH_BYTES];
    struct gcmp_rank_reader reader;
    model_path(file, path);
    enum gradcmp_status status = gcmp_rank_reader_open(&reader, catalogue, arrays, path, error);
    if (status == GRADCMP_OK) {
        status = gcmp_megatron_read_run(catalogue, reader.torch.root, error);
    }
    if (status == GRADCMP_OK) {
        status = read_noop_layers(catalogue, reader.torch.root, error);
    }
    gcmp_rank_reader_close(&reader);
    if (catalogue->iteration < 0) {
        catalogue->iteration = gcmp_rank_files_iteration(gcmp_dir_path(catalogue->dir));
    }
    return status;
}

static enum gradcmp_status read_ranks(struct gradcmp_catalogue *catalogue,
                                      struct gcmp_rank_files *files, struct gradcmp_error *error) {
    struct gcmp_rank_arrays *arrays;
    GCMP_TRY(gcmp_rank_files_list(catalogue->dir, "", files, error));
    GCMP_TRY(gcmp_rank_arrays_make(catalogue, &arrays, error));
    GCMP_TRY(read_run(catalogue, arrays, &files->list[0], error));
    bool is_stage = catalogue->parallel.pp > 1 || catalogue->parallel.ep <= 1;
    GCMP_TRY(gcmp_rank_files_place(files, is_stage ? GCMP_SECOND_IS_STAGE : GCMP_SECOND_IS_EXPERTS,
                                   &catalogue->parallel, catalogue->dir, error));
    catalogue->parallel.tp = files->tp;
    catalogue->parallel.pp = files->pp;
    catalogue->parallel.ep = files->ep;
    catalogue->parallel.etp = files->etp;
    struct gcmp_same_run run = {.writers = GCMP_MAP_INIT, .files = files};
    enum gradcmp_status status = GRADCMP_OK;
    for (size_t i = 0; i < files->count && status == GRADCMP_OK; i++) {
        struct gcmp_legacy_rank rank = {
            .catalogue = catalogue, .arrays = arrays, .file = &files->list[i]};
        status = read_rank(&rank, &run, error);
    }
    gcmp_map_free(&run.writers);
    return status;
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct gcmp_rank_files files;
    catalogue->writer = "megatron-lm";
    if (is_one_rank(catalogue->dir)) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "the files of one rank: name the folder of the iteration, which holds all "
                     "mp_rank_*");
    }
    enum gradcmp_status status = read_ranks(catalogue, &files, error);
    gcmp_rank_files_free(&files);
    return status;
}

const struct gradcmp_format gcmp_format_megatron_legacy = {
    .name = "megatron_legacy",
    .description = "Megatron-LM's --ckpt-format torch, also MindSpeed-LLM's: "
                   "mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt",
    .probe = probe,
    .open = open_catalogue,
    .resolve = gcmp_rank_resolve,
};
