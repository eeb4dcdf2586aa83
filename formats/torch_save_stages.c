/* Ranks that hold parameters of their own: stages of a pipeline, each with a file of its weights
 * and an optimizer that counts them from 0. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "formats/torch_save_set.h"

/* The tensors of one rank, which stand side by side: files are in the order of ranks. */
struct run {
    size_t first, end;
    int32_t rank;
};

struct parting {
    struct gcmp_pt_set *set;
    struct gcmp_map names; /* of the weights of files of rank 0 and of no rank */
    bool *is_counted;      /* of each entry: those files have a state of it */
    size_t *copies;        /* of each optimizer: that made of it for a run ... */
    size_t *copied_at;     /* ... that ends here; 0: none was */
    bool has_stages;
    struct gradcmp_error *error;
};

static bool next_run(const struct gcmp_pt_set *set, struct run *run) {
    if (run->end >= set->tensor_count) {
        return false;
    }
    *run = (struct run){run->end, run->end + 1, set->tensors[run->end].rank};
    while (run->end < set->tensor_count && set->tensors[run->end].rank == run->rank) {
        run->end++;
    }
    return true;
}

static bool is_numbered(const struct gcmp_pt_tensor *tensor) {
    return tensor->kind == GCMP_PT_STATE && tensor->entry != SIZE_MAX;
}

static enum gradcmp_status note_first(struct parting *parting, const struct run *run) {
    for (size_t i = run->first; i < run->end; i++) {
        const struct gcmp_pt_tensor *tensor = &parting->set->tensors[i];
        if (tensor->kind == GCMP_PT_WEIGHT &&
            gcmp_map_add(&parting->names, tensor->name, strlen(tensor->name), i, NULL) ==
                GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(parting->error);
        }
        if (is_numbered(tensor)) {
            parting->is_counted[tensor->entry] = true;
        }
    }
    return GRADCMP_OK;
}

/* What a further rank has of its own. */
struct findings {
    bool has_weights; /* under names that rank 0 does not have */
    bool has_states;  /* of numbers of which rank 0 has states too */
    bool has_list;    /* of other numbers, or other names for them */
    bool has_unnamed; /* ... and some have no name */
};

static struct findings look_at(const struct parting *parting, const struct run *run) {
    struct findings found = {false, false, false, false};
    for (size_t i = run->first; i < run->end; i++) {
        const struct gcmp_pt_tensor *tensor = &parting->set->tensors[i];
        size_t index;
        if (tensor->kind == GCMP_PT_WEIGHT) {
            found.has_weights = found.has_weights || !gcmp_map_find(&parting->names, tensor->name,
                                                                    strlen(tensor->name), &index);
        } else if (is_numbered(tensor)) {
            const struct gcmp_pt_entry *entry = &parting->set->entries[tensor->entry];
            found.has_states = found.has_states || parting->is_counted[tensor->entry];
            found.has_list = found.has_list || entry->rank >= 0;
            found.has_unnamed = found.has_unnamed || (entry->rank >= 0 && entry->name == NULL);
        }
    }
    return found;
}

/* Append a copy of an optimizer, whose entries are the rank's own. */
static enum gradcmp_status copy_optimizer(struct parting *parting, uint32_t number,
                                          const struct run *run) {
    struct gcmp_pt_set *set = parting->set;
    struct gcmp_pt_optimizer optimizer = set->optimizers[number];
    if (!gcmp_grow(&set->optimizers, set->optimizer_count, &set->optimizer_capacity,
                   sizeof *set->optimizers)) {
        GCMP_FAIL_MEMORY(parting->error);
    }
    set->optimizers[set->optimizer_count] =
        (struct gcmp_pt_optimizer){set->entry_count, optimizer.count};
    for (size_t i = 0; i < optimizer.count; i++) {
        if (!gcmp_grow(&set->entries, set->entry_count, &set->entry_capacity,
                       sizeof *set->entries)) {
            GCMP_FAIL_MEMORY(parting->error);
        }
        struct gcmp_pt_entry entry = set->entries[optimizer.first + i];
        entry.optimizer = (uint32_t)set->optimizer_count;
        entry.rank = run->rank;
        set->entries[set->entry_count++] = entry;
    }
    parting->copies[number] = set->optimizer_count++;
    parting->copied_at[number] = run->end;
    return GRADCMP_OK;
}

/* Give a rank entries of its own. */
static enum gradcmp_status part(struct parting *parting, const struct run *run) {
    struct gcmp_pt_set *set = parting->set;
    for (size_t i = run->first; i < run->end; i++) {
        struct gcmp_pt_tensor *tensor = &set->tensors[i];
        tensor->is_own = true;
        if (!is_numbered(tensor) || set->entries[tensor->entry].rank >= 0) {
            continue;
        }
        uint32_t number = set->entries[tensor->entry].optimizer;
        if (parting->copied_at[number] != run->end) {
            GCMP_TRY(copy_optimizer(parting, number, run));
        }
        tensor->entry = tensor->entry - set->optimizers[number].first +
                        set->optimizers[parting->copies[number]].first;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status part_run(struct parting *parting, const struct run *run) {
    struct findings found = look_at(parting, run);
    parting->has_stages = parting->has_stages || found.has_weights;
    if (found.has_list && found.has_unnamed && !found.has_weights) {
        GCMP_FAIL_AT(
            parting->error, GRADCMP_ERROR_UNSUPPORTED,
            gcmp_dir_file_path(parting->set->catalogue->dir,
                               parting->set->tensors[run->first].file),
            GRADCMP_NO_OFFSET,
            "torch: param_groups list other parameters than rank 0's, and no weights of other "
            "names tell which; save with names (torch.distributed.checkpoint.state_dict, or an "
            "optimizer made from named_parameters())");
    }
    bool is_own = found.has_list || (found.has_weights && found.has_states);
    return is_own ? part(parting, run) : GRADCMP_OK;
}

/* --- the order of the weights --- */

/* The number in a name that comes first among its words between dots, and where it begins. */
static bool find_number(const char *name, size_t *begin, unsigned long long *number) {
    for (const char *word = name; word != NULL;) {
        size_t digits = strspn(word, "0123456789");
        if (digits > 0 && digits < 19 && (word[digits] == '.' || word[digits] == '\0')) {
            *begin = (size_t)(word - name);
            *number = strtoull(word, NULL, 10);
            return true;
        }
        word = strchr(word, '.');
        word = word == NULL ? NULL : word + 1;
    }
    return false;
}

/* Whether layers come one after another, from rank to rank: stages that take turns (virtual ones)
 * come back to a list of layers, or to a number that was passed. `last` has room for all tensors.
 */
static enum gradcmp_status check_order(struct parting *parting, unsigned long long *last,
                                       struct gcmp_map *names, struct gcmp_map *lists) {
    struct gcmp_pt_set *set = parting->set;
    size_t current = SIZE_MAX, count = 0;
    for (size_t i = 0; i < set->tensor_count && !set->is_interleaved; i++) {
        const char *name = set->tensors[i].name;
        size_t begin, list = SIZE_MAX;
        unsigned long long number = 0;
        if (set->tensors[i].kind != GCMP_PT_WEIGHT) {
            continue;
        }
        enum gcmp_map_result result = gcmp_map_add(names, name, strlen(name), i, NULL);
        bool is_new = result == GCMP_MAP_ADDED;
        bool is_listed = is_new && find_number(name, &begin, &number);
        if (is_listed) {
            result = gcmp_map_add(lists, name, begin, count, &list);
        }
        if (result == GCMP_MAP_NO_MEMORY) {
            GCMP_FAIL_MEMORY(parting->error);
        }
        if (is_listed) {
            set->is_interleaved =
                result == GCMP_MAP_PRESENT && (list != current || number < last[list]);
            count += result == GCMP_MAP_ADDED;
            last[list] = number;
        }
        current = is_new ? list : current;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status settle_order(struct parting *parting) {
    struct gcmp_map names = GCMP_MAP_INIT, lists = GCMP_MAP_INIT;
    unsigned long long *last = calloc(parting->set->tensor_count + 1, sizeof *last);
    enum gradcmp_status status = last == NULL
                                     ? gcmp_error_set(parting->error, GRADCMP_ERROR_MEMORY, NULL,
                                                      GRADCMP_NO_OFFSET, "out of memory")
                                     : check_order(parting, last, &names, &lists);
    gcmp_map_free(&names);
    gcmp_map_free(&lists);
    free(last);
    return status;
}

static enum gradcmp_status part_all(struct parting *parting) {
    struct run run = {0, 0, -1};
    while (next_run(parting->set, &run)) {
        GCMP_TRY(run.rank <= 0 ? note_first(parting, &run) : part_run(parting, &run));
    }
    return parting->has_stages ? settle_order(parting) : GRADCMP_OK;
}

enum gradcmp_status gcmp_pt_part_stages(struct gcmp_pt_set *set, struct gradcmp_error *error) {
    struct parting parting = {.set = set, .names = GCMP_MAP_INIT, .error = error};
    parting.is_counted = calloc(set->entry_count + 1, sizeof *parting.is_counted);
    parting.copies = calloc(set->optimizer_count + 1, sizeof *parting.copies);
    parting.copied_at = calloc(set->optimizer_count + 1, sizeof *parting.copied_at);
    bool has_memory =
        parting.is_counted != NULL && parting.copies != NULL && parting.copied_at != NULL;
    enum gradcmp_status status = has_memory ? part_all(&parting)
                                            : gcmp_error_set(error, GRADCMP_ERROR_MEMORY, NULL,
                                                             GRADCMP_NO_OFFSET, "out of memory");
    gcmp_map_free(&parting.names);
    free(parting.is_counted);
    free(parting.copies);
    free(parting.copied_at);
    return status;
}
