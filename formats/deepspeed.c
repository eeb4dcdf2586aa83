/* The format "deepspeed": the folder of one tag. Stages 0 to 3 of ZeRO, in fp32, fp16 or bf16, with
 * pipeline stages (mp_rank_00, 01, ...) and DeepSpeed's own experts; universal checkpoints. Tensor
 * parallelism is refused outside of universal checkpoints: nothing in the ranks' files says how
 * parts are put together. */
#include "formats/deepspeed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/catalogue.h"
#include "formats/deepspeed_files.h"
#include "formats/deepspeed_layout.h"
#include "formats/deepspeed_pipeline.h"
#include "formats/deepspeed_universal.h"
#include "formats/torch_save_file.h"

struct opening {
    struct gradcmp_catalogue *catalogue;
    struct gcmp_ds_files files;
    struct gcmp_pt_set set; /* weights, and what torch's own optimizer holds */
    struct gcmp_ds_wholes wholes;
    struct gcmp_ds_model *models; /* one a model-parallel rank */
    size_t model_count;
    bool has_layers; /* a pipeline: weights are in files of layers */
    bool is_cut;     /* the ranks' weights are parts, by tensor parallelism */
    struct gradcmp_error *error;
};

#define OPENING_FAIL(opening, code, ...)                                                           \
    GCMP_FAIL_AT((opening)->error, (code), gcmp_dir_path((opening)->catalogue->dir),               \
                 GRADCMP_NO_OFFSET, __VA_ARGS__)

static int probe(struct gcmp_dir *dir) {
    return gcmp_ds_probe_files(dir) ? 2 : 0;
}

/* --- the model --- */

/* Nothing is needed from the files of further ranks; that one of them is damaged is told all the
 * same, and one of another step refuses the checkpoint. */
static enum gradcmp_status look_into(const struct opening *opening,
                                     const struct gcmp_ds_file *file) {
    struct gcmp_arena scratch = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    struct gradcmp_error own = {0};
    enum gradcmp_status status =
        gcmp_torch_open_any(opening->catalogue->dir, file->name, &scratch, &torch, &own);
    if (status == GRADCMP_OK &&
        gcmp_ds_check_step(opening->catalogue, &torch, opening->error) != GRADCMP_OK) {
        gcmp_arena_free(&scratch);
        return GRADCMP_ERROR_CORRUPT;
    }
    gcmp_arena_free(&scratch);
    if (status == GRADCMP_ERROR_MEMORY) {
        GCMP_FAIL_MEMORY(opening->error);
    }
    if (status == GRADCMP_OK) {
        return GRADCMP_OK;
    }
    return gcmp_catalogue_note(opening->catalogue, opening->error,
                               "%.200s cannot be read, and nothing is needed from it: %.300s",
                               file->name, own.message);
}

/* Model files state how many ranks their run had; 0: not stated. */
static enum gradcmp_status check_same_run(const struct opening *opening,
                                          const struct gcmp_ds_file *file, const char *what,
                                          uint64_t ranks, uint64_t first) {
    if (ranks != 0 && first != 0 && ranks != first) {
        OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                     "%.200s is of %llu %s ranks, the model file of mp_rank_00 of %llu: they are "
                     "of two runs",
                     file->name, (unsigned long long)ranks, what, (unsigned long long)first);
    }
    return GRADCMP_OK;
}

/* Read the first file of each model-parallel rank; they are numbered from 0. */
static enum gradcmp_status read_models(struct opening *opening) {
    const struct gcmp_ds_files *files = &opening->files;
    opening->models = calloc(files->count + 1, sizeof *opening->models);
    if (opening->models == NULL) {
        GCMP_FAIL_MEMORY(opening->error);
    }
    for (size_t i = 0; i < files->count; i++) {
        const struct gcmp_ds_file *file = &files->items[i];
        if (file->kind != GCMP_DS_MODEL) {
            continue;
        }
        if (i > 0 && files->items[i - 1].kind == GCMP_DS_MODEL &&
            files->items[i - 1].mp == file->mp) {
            GCMP_TRY(look_into(opening, file));
            continue;
        }
        if (file->mp != opening->model_count) {
            OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                         "incomplete: %.200s is there, but no model file of mp_rank_%02zu",
                         file->name, opening->model_count);
        }
        struct gcmp_ds_model *model = &opening->models[opening->model_count];
        GCMP_TRY(gcmp_ds_read_model(&opening->set, file, model, opening->error));
        const struct gcmp_ds_model *base = &opening->models[0];
        GCMP_TRY(check_same_run(opening, file, "data-parallel", model->dp_ranks, base->dp_ranks));
        GCMP_TRY(check_same_run(opening, file, "model-parallel", model->mp_ranks, base->mp_ranks));
        opening->model_count++;
    }
    if (opening->model_count == 0) {
        OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                     "incomplete: no model file (mp_rank_00_model_states.pt, or "
                     "zero_pp_rank_0_mp_rank_00_model_states.pt of ZeRO stage 3)");
    }
    return GRADCMP_OK;
}

/* Tensor parallelism cannot be undone from the ranks' files. ds_to_universal undoes it, from what
 * ZeRO leaves. */
static enum gradcmp_status fail_cut(const struct opening *opening, const char *what) {
    size_t first;
    bool has_zero = gcmp_ds_find(&opening->files, GCMP_DS_OPTIMIZER, 0, &first) > 0;
    OPENING_FAIL(opening, GRADCMP_ERROR_UNSUPPORTED,
                 "tensor parallelism (%.300s): how its parts are put together is not in the "
                 "files; %s",
                 what,
                 has_zero ? "convert with ds_to_universal"
                          : "save with ZeRO stage 1 and convert with ds_to_universal, which takes "
                            "no optimizer without ZeRO");
}

/* Weights that are in files of their own. Those of a universal folder are masters besides. */
static enum gradcmp_status read_weights(struct opening *opening) {
    bool is_universal = gcmp_ds_is_universal(opening->catalogue->dir);
    for (size_t i = 0; i < opening->files.count; i++) {
        const struct gcmp_ds_file *file = &opening->files.items[i];
        if ((file->kind != GCMP_DS_LAYER && file->kind != GCMP_DS_EXPERT) ||
            (is_universal && opening->is_cut)) {
            continue;
        }
        opening->has_layers = opening->has_layers || file->kind == GCMP_DS_LAYER;
        if (file->mp > 0) {
            return fail_cut(opening, file->name);
        }
        GCMP_TRY(gcmp_ds_read_weights(&opening->set, file, opening->error));
    }
    return GRADCMP_OK;
}

/* True where model-parallel ranks hold parts of the weights: the files say so, or two of them have
 * weights of one name. */
static enum gradcmp_status find_cut(struct opening *opening) {
    struct gcmp_map names = GCMP_MAP_INIT;
    bool has_memory = true;
    opening->is_cut = opening->models[0].tp > 1;
    for (size_t i = 0; i < opening->set.tensor_count && has_memory && !opening->is_cut; i++) {
        const struct gcmp_pt_tensor *tensor = &opening->set.tensors[i];
        size_t file = tensor->file;
        if (tensor->kind == GCMP_PT_WEIGHT) {
            has_memory = gcmp_map_add(&names, tensor->name, strlen(tensor->name), tensor->file,
                                      &file) != GCMP_MAP_NO_MEMORY;
            opening->is_cut = file != tensor->file;
        }
    }
    gcmp_map_free(&names);
    if (!has_memory) {
        GCMP_FAIL_MEMORY(opening->error);
    }
    return GRADCMP_OK;
}

/* Parts of weights are none, beside the whole ones of a universal folder. */
static enum gradcmp_status leave_parts_out(struct opening *opening) {
    struct gcmp_pt_set *set = &opening->set;
    size_t kept = 0;
    for (size_t i = 0; i < set->tensor_count; i++) {
        if (set->tensors[i].kind == GCMP_PT_STATE) {
            set->tensors[kept++] = set->tensors[i];
        }
    }
    bool has_parts = kept < set->tensor_count;
    set->tensor_count = kept;
    return !has_parts ? GRADCMP_OK
                      : gcmp_catalogue_note(opening->catalogue, opening->error,
                                            "the model's files hold parts of the weights (tensor "
                                            "parallelism) and are not read: weights are taken from "
                                            "zero/*/fp32.pt, where they are whole");
}

/* A parameter of two model-parallel ranks is cut by tensor parallelism, or tied between stages of a
 * pipeline: then each stage holds a copy. */
static enum gradcmp_status check_twice(const struct opening *opening, const char *name) {
    const struct gcmp_ds_model *model = &opening->models[0];
    bool is_pipeline = (model->pp == opening->model_count && model->tp <= 1) ||
                       (model->pp == 0 && opening->has_layers);
    char what[300];
    if (is_pipeline && strncmp(name, "tied_modules.", 13) == 0) {
        return GRADCMP_OK;
    }
    snprintf(what, sizeof what, "\"%.200s\" is of several mp_ranks", name);
    return fail_cut(opening, what);
}

static enum gradcmp_status check_disjoint(const struct opening *opening) {
    struct gcmp_map names = GCMP_MAP_INIT;
    enum gradcmp_status status = GRADCMP_OK;
    if (opening->is_cut) {
        char what[64] = "weights of one name in the files of several mp_ranks";
        if (opening->models[0].tp > 1) {
            snprintf(what, sizeof what, "degree %llu", (unsigned long long)opening->models[0].tp);
        }
        return fail_cut(opening, what);
    }
    for (size_t m = 0; m < opening->model_count; m++) {
        const struct gcmp_ds_model *model = &opening->models[m];
        for (size_t i = 0; i < model->param_count && status == GRADCMP_OK; i++) {
            const char *name = model->params[i].name;
            size_t where;
            enum gcmp_map_result result = gcmp_map_add(&names, name, strlen(name), m, &where);
            if (result == GCMP_MAP_NO_MEMORY) {
                status = gcmp_error_set(opening->error, GRADCMP_ERROR_MEMORY, NULL,
                                        GRADCMP_NO_OFFSET, "out of memory");
            } else if (where != m) {
                status = check_twice(opening, name);
            }
        }
    }
    gcmp_map_free(&names);
    return status;
}

/* --- ranks' files that are lost --- */

/* As many mp_ranks have a model file as the files say that there are, and each that has a part of
 * the optimizer. */
static enum gradcmp_status check_mp_ranks(const struct opening *opening) {
    const struct gcmp_ds_files *files = &opening->files;
    const struct gcmp_ds_model *model = &opening->models[0];
    if (model->mp_ranks > opening->model_count) {
        OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                     "incomplete: the model is of %llu mp_ranks, and model files of %zu are there",
                     (unsigned long long)model->mp_ranks, opening->model_count);
    }
    for (size_t i = 0; i < files->count; i++) {
        const struct gcmp_ds_file *file = &files->items[i];
        if (file->kind == GCMP_DS_OPTIMIZER && file->mp >= opening->model_count) {
            OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                         "incomplete: %.200s is there, but no model file of mp_rank_%02u",
                         file->name, file->mp);
        }
    }
    return GRADCMP_OK;
}

/* In ZeRO stage 3 every rank that writes a part of the optimizer writes a model file (engine.py,
 * _configure_checkpointing). It repeats what the others hold, but for buffers and what the run put
 * beside the model: nothing is compared of it, and nothing resumes without it. */
static enum gradcmp_status tell_lost_models(const struct opening *opening,
                                            const struct gcmp_ds_model *model) {
    size_t first_part, first_model;
    size_t parts = gcmp_ds_find(&opening->files, GCMP_DS_OPTIMIZER, model->mp, &first_part);
    size_t models = gcmp_ds_find(&opening->files, GCMP_DS_MODEL, model->mp, &first_model);
    const struct gcmp_ds_file *items = opening->files.items;
    size_t lost = 0, first_lost = 0;
    char line[400];
    if (!items[first_model].is_partitioned) {
        return GRADCMP_OK;
    }
    for (size_t i = 0, k = 0; i < parts; i++) {
        while (k < models && items[first_model + k].dp < items[first_part + i].dp) {
            k++;
        }
        if (k == models || items[first_model + k].dp != items[first_part + i].dp) {
            first_lost = lost++ == 0 ? first_part + i : first_lost;
        }
    }
    if (lost == 0) {
        return GRADCMP_OK;
    }
    snprintf(line, sizeof line,
             "%zu of %zu ranks of mp_rank_%02u have no model file, first "
             "zero_pp_rank_%u_mp_rank_%02u_model_states.pt: nothing that is compared is in it, but "
             "a resume needs it",
             lost, parts, model->mp, items[first_lost].dp, model->mp);
    return gcmp_catalogue_contradict(opening->catalogue, opening->error, line);
}

/* --- ZeRO --- */

/* All ranks' files must be there, as many as the first one says. */
static enum gradcmp_status check_ranks(const struct opening *opening, size_t first, size_t count,
                                       uint64_t expected) {
    const struct gcmp_ds_file *items = opening->files.items + first;
    for (size_t i = 0; i < count; i++) {
        if (items[i].dp != i) {
            OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                         "incomplete: %.200s is there, but not the optimizer's part of rank %zu",
                         items[i].name, i);
        }
    }
    if (expected != 0 && expected != count) {
        OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                     "incomplete: the optimizer is shared by %llu ranks, and %zu files of it are "
                     "there (mp_rank_%02u)",
                     (unsigned long long)expected, count, items[0].mp);
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_ranks(const struct opening *opening, size_t first, size_t count,
                                      struct gcmp_ds_ranks *ranks) {
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_ds_file *file = &opening->files.items[first + i];
        struct gcmp_ds_rank *rank = &ranks->items[ranks->count++];
        GCMP_TRY(gcmp_ds_read_rank(opening->catalogue, file->name, file->dp, rank, opening->error));
        if (i == 0) {
            GCMP_TRY(check_ranks(opening, first, count, rank->most_ranks));
        }
        if (rank->is_stage3 != ranks->items[0].is_stage3 ||
            rank->most_ranks != ranks->items[0].most_ranks) {
            OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                         "deepspeed: %.200s is of another stage or number of ranks than the other "
                         "parts",
                         file->name);
        }
        if (rank->step < ranks->items[0].step || rank->step > ranks->items[0].step) {
            OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                         "the optimizer is at step %.17g in %.100s, but at %.17g in %.100s: they "
                         "are of two saves",
                         rank->step, file->name, ranks->items[0].step,
                         opening->files.items[first].name);
        }
    }
    return GRADCMP_OK;
}

/* Read the optimizer's parts of one model-parallel rank. */
static enum gradcmp_status read_optimizer(struct opening *opening,
                                          const struct gcmp_ds_model *model) {
    size_t first;
    struct gcmp_ds_ranks ranks = {.items = NULL};
    size_t count = gcmp_ds_find(&opening->files, GCMP_DS_OPTIMIZER, model->mp, &first);
    if (count == 0) {
        return GRADCMP_OK;
    }
    ranks.items = calloc(count, sizeof *ranks.items);
    if (ranks.items == NULL) {
        GCMP_FAIL_MEMORY(opening->error);
    }
    enum gradcmp_status status = read_ranks(opening, first, count, &ranks);
    if (status == GRADCMP_OK) {
        status = gcmp_ds_lay_out(&opening->wholes, model, &ranks, opening->error);
    }
    for (size_t i = 0; i < ranks.count; i++) {
        gcmp_ds_free_rank(&ranks.items[i]);
    }
    free(ranks.items);
    return status;
}

/* Either every model-parallel rank has its optimizer's parts, or none. */
static enum gradcmp_status read_optimizers(struct opening *opening) {
    size_t with = 0, without = 0, first;
    for (size_t m = 0; m < opening->model_count; m++) {
        bool has =
            gcmp_ds_find(&opening->files, GCMP_DS_OPTIMIZER, opening->models[m].mp, &first) > 0 ||
            opening->models[m].has_optimizer;
        opening->models[m].stage = opening->model_count > 1 ? (int32_t)m : -1;
        with += has;
        without += !has;
        GCMP_TRY(read_optimizer(opening, &opening->models[m]));
        GCMP_TRY(tell_lost_models(opening, &opening->models[m]));
    }
    if (with > 0 && without > 0) {
        OPENING_FAIL(opening, GRADCMP_ERROR_CORRUPT,
                     "incomplete: %zu of %zu mp_ranks have no optimizer's state", without,
                     opening->model_count);
    }
    return GRADCMP_OK;
}

/* Stages of a pipeline number their parameters from 0 each; one behind another they are the model's
 * layers, group by group. */
static void join_stages(struct gcmp_pt_set *set) {
    uint32_t first_group = 0;
    for (size_t i = 0; i < set->entry_count; i++) {
        if (i == 0 || set->entries[i].optimizer != set->entries[i - 1].optimizer) {
            first_group = set->entries[i].group;
        }
        set->entries[i].group -= first_group;
    }
}

/* Beside experts an optimizer without ZeRO is in files of its own. */
static enum gradcmp_status check_experts(const struct opening *opening) {
    size_t first;
    if (gcmp_ds_find(&opening->files, GCMP_DS_EXPP, 0, &first) > 0) {
        OPENING_FAIL(opening, GRADCMP_ERROR_UNSUPPORTED,
                     "experts without ZeRO (%.200s): the optimizers' numbers are not read; save "
                     "with ZeRO stage 1 or 2",
                     opening->files.items[first].name);
    }
    return GRADCMP_OK;
}

/* param_shapes are in the order of the groups of the optimizer, unless these were shuffled. */
static enum gradcmp_status list_parameters(const struct opening *opening) {
    const struct gcmp_ds_model *model = &opening->models[0];
    struct gradcmp_catalogue *catalogue = opening->catalogue;
    if (opening->model_count > 1 || model->is_round_robin || model->param_count == 0) {
        return GRADCMP_OK;
    }
    struct gradcmp_listed *listed =
        gcmp_arena_alloc(catalogue->arena, model->param_count, sizeof *listed);
    if (listed == NULL) {
        GCMP_FAIL_MEMORY(opening->error);
    }
    for (size_t i = 0, group = 0; i < model->param_count; i++) {
        while (group < model->group_count && i >= model->group_ends[group]) {
            group++;
        }
        listed[i] = (struct gradcmp_listed){model->params[i].name, (uint32_t)group};
    }
    size_t first;
    (void)gcmp_ds_find(&opening->files, GCMP_DS_MODEL, 0, &first);       /* it was read */
    catalogue->is_list_cut = opening->files.items[first].is_partitioned; /* into sub-groups */
    catalogue->listed = listed;
    catalogue->listed_count = model->param_count;
    return GRADCMP_OK;
}

static void describe_run(const struct opening *opening) {
    struct gradcmp_parallel *parallel = &opening->catalogue->parallel;
    const struct gcmp_ds_model *model = &opening->models[0];
    parallel->dp = model->dp_ranks <= UINT32_MAX ? (uint32_t)model->dp_ranks : 0;
    parallel->tp = model->tp <= UINT32_MAX ? (uint32_t)model->tp : 0;
    parallel->pp = model->pp <= UINT32_MAX ? (uint32_t)model->pp : 0;
    opening->catalogue->writer = "deepspeed";
    opening->catalogue->is_ordered = true;
}

static enum gradcmp_status open_all(struct opening *opening) {
    GCMP_TRY(gcmp_ds_list_files(opening->catalogue->dir, &opening->files, opening->error));
    GCMP_TRY(read_models(opening));
    GCMP_TRY(find_cut(opening));
    GCMP_TRY(read_weights(opening));
    GCMP_TRY(!opening->is_cut ? check_mp_ranks(opening) : GRADCMP_OK); /* parts are not read */
    if (gcmp_ds_is_universal(opening->catalogue->dir)) {
        opening->catalogue->layout_name = "universal";
        GCMP_TRY(opening->is_cut ? leave_parts_out(opening) : GRADCMP_OK);
        GCMP_TRY(gcmp_ds_read_universal(&opening->set, &opening->models[0], opening->error));
    } else {
        GCMP_TRY(check_disjoint(opening));
        GCMP_TRY(check_experts(opening));
        GCMP_TRY(read_optimizers(opening));
    }
    join_stages(&opening->set);
    if (opening->has_layers && opening->model_count > 1) {
        GCMP_TRY(gcmp_ds_name_copies(&opening->set, opening->error));
    }
    GCMP_TRY(
        gcmp_ds_name_tied(&opening->set, opening->models, opening->model_count, opening->error));
    GCMP_TRY(gcmp_pt_join(&opening->set, opening->error));
    GCMP_TRY(gcmp_ds_store_wholes(&opening->wholes, opening->error));
    GCMP_TRY(gcmp_ds_state_layers(opening->catalogue, opening->error));
    describe_run(opening);
    return list_parameters(opening);
}

static enum gradcmp_status open_catalogue(struct gradcmp_catalogue *catalogue,
                                          struct gradcmp_error *error) {
    struct opening opening = {
        .catalogue = catalogue,
        .set = {.catalogue = catalogue,
                .entry_index = GCMP_MAP_INIT,
                .is_ordered = true,
                .step = -1},
        .wholes = {.catalogue = catalogue, .by_name = GCMP_MAP_INIT, .sources = GCMP_MAP_INIT},
        .error = error};
    enum gradcmp_status status = open_all(&opening);
    gcmp_pt_free(&opening.set);
    gcmp_ds_free_wholes(&opening.wholes);
    gcmp_ds_free_files(&opening.files);
    free(opening.models);
    return status;
}

const struct gradcmp_format gcmp_format_deepspeed = {
    .name = "deepspeed",
    .description = "DeepSpeed: ZeRO stages 0 to 3, pipelines, experts, universal checkpoints",
    .probe = probe,
    .open = open_catalogue,
    .resolve = NULL,
};
