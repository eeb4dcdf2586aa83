/* The format "torch.save". What is read: a file of any name, or a folder: the optimizer and the
 * weights in files of their own, parts k of n, one file a rank with DTensors or ShardedTensors. */
#include "formats/torch_save.h"

#include <string.h>

#include "base/catalogue.h"
#include "formats/rank_files.h"
#include "formats/safetensors_image.h"
#include "formats/torch_save_file.h"
#include "formats/torch_save_files.h"
#include "formats/torch_save_set.h"

static int probe(struct gcmp_dir *dir) {
    return gcmp_pt_probe_files(dir);
}

/* An iteration that the object states beside its weights; the optimizer's step comes after it. */
static void read_iteration(struct gradcmp_catalogue *catalogue, const struct gcmp_node *root) {
    static const char *const words[] = {"iteration", "global_step", "global_steps", "step"};
    for (size_t i = 0; i < sizeof words / sizeof *words && catalogue->iteration < 0; i++) {
        int64_t value;
        const struct gcmp_node *node = root->kind == GCMP_NODE_DICT || root->kind == GCMP_NODE_CALL
                                           ? gcmp_node_get(root, words[i])
                                           : NULL;
        if (node != NULL && node->kind == GCMP_NODE_INT && gcmp_node_int(node, &value)) {
            catalogue->iteration = value < 0 ? -1 : value;
        }
    }
}

/* *optimizers counts those of the rank's files. */
static enum gradcmp_status walk_file(struct gcmp_pt_set *set, const struct gcmp_pt_file *file,
                                     uint32_t *optimizers, struct gcmp_arena *scratch,
                                     struct gradcmp_error *error) {
    struct gcmp_torch_file torch;
    GCMP_TRY(gcmp_torch_open_any(set->catalogue->dir, file->name, scratch, &torch, error));
    struct gcmp_pt_place place = {.set = set,
                                  .torch = &torch,
                                  .rank = file->rank,
                                  .optimizer = *optimizers,
                                  .visits_left = torch.pickle->length_bytes + 64,
                                  .error = error};
    read_iteration(set->catalogue, torch.root);
    GCMP_TRY(gcmp_pt_read_run(set->catalogue, torch.root, error));
    enum gradcmp_status status = gcmp_pt_walk(&place);
    *optimizers = place.optimizer;
    return status;
}

/* Weights in a safetensors file beside the optimizer: their order there is not the model's. */
static enum gradcmp_status take_image(struct gcmp_pt_set *set, const struct gcmp_st_image *image,
                                      struct gradcmp_error *error) {
    for (size_t i = 0; i < image->count; i++) {
        GCMP_TRY(gcmp_pt_add_range(set, image->file, &image->tensors[i], error));
    }
    set->is_ordered = false;
    return GRADCMP_OK;
}

static enum gradcmp_status walk_weights(struct gcmp_pt_set *set, const struct gcmp_pt_file *file,
                                        struct gradcmp_error *error) {
    struct gcmp_dir *dir = set->catalogue->dir;
    struct gcmp_st_image image = {0};
    uint32_t number;
    GCMP_TRY(gcmp_dir_add(dir, file->name, strlen(file->name), &number, error));
    enum gradcmp_status status = gcmp_st_open(dir, number, 0, gcmp_dir_file_bytes(dir, number),
                                              set->catalogue->arena, &image, error);
    if (status == GRADCMP_OK) {
        status = take_image(set, &image, error);
    }
    gcmp_st_close(&image);
    return status;
}

/* A mesh of all the ranks that have files tells which of them wrote each; that of fewer may be
 * anywhere in the run. */
static enum gradcmp_status tell_swaps(const struct gcmp_pt_set *set, uint64_t ranks,
                                      struct gradcmp_error *error) {
    struct gcmp_rank_swaps swaps = {0};
    for (size_t i = 0; i < set->writer_count; i++) {
        const struct gcmp_pt_writer *writer = &set->writers[i];
        bool is_told =
            writer->mesh_ranks == ranks && writer->writer >= 0 && (uint64_t)writer->writer < ranks;
        if (is_told && writer->writer != writer->rank && swaps.count++ == 0) {
            swaps.first = gcmp_dir_file_name(set->catalogue->dir, writer->file);
            swaps.first_rank = (uint64_t)writer->writer;
        }
    }
    return gcmp_rank_tell_swaps(set->catalogue, &swaps, error);
}

static enum gradcmp_status walk_files(struct gcmp_pt_set *set, const struct gcmp_pt_files *files,
                                      struct gradcmp_error *error) {
    uint64_t ranks = 0;
    uint32_t optimizers = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct gcmp_pt_file *file = &files->items[i];
        if (i == 0 || file->rank != file[-1].rank) {
            optimizers = 0;
        }
        struct gcmp_arena scratch = GCMP_ARENA_INIT;
        enum gradcmp_status status = file->is_weights
                                         ? walk_weights(set, file, error)
                                         : walk_file(set, file, &optimizers, &scratch, error);
        gcmp_arena_free(&scratch);
        GCMP_TRY(status);
        ranks =
            file->rank >= 0 && (uint64_t)file->rank + 1 > ranks ? (uint64_t)file->rank + 1 : ranks;
    }
    if (set->mesh_ranks > 1 && ranks == 0) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(set->catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "incomplete: tensors are sharded over %llu ranks, and no file is named after "
                     "its rank (model_rank0.pt, model_rank1.pt, ...)",
                     (unsigned long long)set->mesh_ranks);
    }
    if (ranks > 0 && set->mesh_ranks > ranks) {
        GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(set->catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "incomplete: tensors are sharded over %llu ranks, and the files are of %llu",
                     (unsigned long long)set->mesh_ranks, (unsigned long long)ranks);
    }
    set->catalogue->parallel.world = (uint32_t)ranks;
    return tell_swaps(set, ranks, error);
}

static enum gradcmp_status finish(struct gcmp_pt_set *set, const struct gcmp_pt_files *files,
                                  struct gradcmp_error *error) {
    struct gradcmp_catalogue *catalogue = set->catalogue;
    if (set->tensor_count == 0) {
        bool is_alone = files->count == 1;
        GCMP_FAIL_AT(error, GRADCMP_ERROR_UNSUPPORTED, gcmp_dir_path(catalogue->dir),
                     GRADCMP_NO_OFFSET,
                     "torch: no state of an optimizer and no dict of tensors in %s%.200s",
                     is_alone ? "" : "any of the files, such as ", files->items[0].name);
    }
    if (files->skipped > 0) {
        GCMP_TRY(gcmp_catalogue_note(
            catalogue, error, "%zu files are not of torch.save and were not read: %.200s%s",
            files->skipped, files->first_skipped, files->skipped > 1 ? " ..." : ""));
    }
    GCMP_TRY(gcmp_pt_join(set, error));
    if (catalogue->iteration < 0 && set->step >= 0) {
        catalogue->iteration = set->step;
        catalogue->iteration_is_count = true;
    }
    catalogue->writer = "torch";
    catalogue->is_ordered = set->is_ordered && !set->is_interleaved;
    return GRADCMP_OK;
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct gcmp_pt_files files = {0};
    struct gcmp_pt_set set = {
        .catalogue = catalogue, .entry_index = GCMP_MAP_INIT, .is_ordered = true, .step = -1};
    enum gradcmp_status status;
    GCMP_TRY_OUT(gcmp_pt_list_files(catalogue->dir, &files, error));
    GCMP_TRY_OUT(walk_files(&set, &files, error));
    GCMP_TRY_OUT(finish(&set, &files, error));
out:
    gcmp_pt_free(&set);
    gcmp_pt_free_files(&files);
    return status;
}

const struct gradcmp_format gcmp_format_torch_save = {
    .name = "torch.save",
    .description = "files of torch.save: state dicts and optimizers, one file or several, also "
                   "one a rank; zip archives and the stream of torch before 1.6",
    .probe = probe,
    .open = open_catalogue,
    .resolve = NULL,
};
