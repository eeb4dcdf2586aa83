/* Names of files: deepspeed/runtime/engine.py (_get_ckpt_name and its likes) and
 * runtime/pipe/module.py (ckpt_layer_path), versions 0.3 to 0.19.
 *
 * Limits: MAX_NAMES entries of a folder; numbers of at most MAX_DIGITS digits. */
#include "formats/deepspeed_files.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 1 << 20, MAX_DIGITS = 7 };

enum field { FIELD_MP, FIELD_DP, FIELD_LAYER, FIELD_EXPERT };

/* In a pattern '#' stands for a number, which is the next of the fields. */
static const struct {
    const char *pattern;
    enum gcmp_ds_kind kind;
    enum field fields[3];
    bool is_partitioned;
} patterns[] = {
    {"mp_rank_#_model_states.pt", GCMP_DS_MODEL, {FIELD_MP}, false},
    {"zero_pp_rank_#_mp_rank_#_model_states.pt", GCMP_DS_MODEL, {FIELD_DP, FIELD_MP}, true},
    {"zero_pp_rank_#_mp_rank_#_optim_states.pt", GCMP_DS_OPTIMIZER, {FIELD_DP, FIELD_MP}, false},
    {"bf16_zero_pp_rank_#_mp_rank_#_optim_states.pt",
     GCMP_DS_OPTIMIZER,
     {FIELD_DP, FIELD_MP},
     false},
    {"fp16_zero_pp_rank_#_mp_rank_#_optim_states.pt",
     GCMP_DS_OPTIMIZER,
     {FIELD_DP, FIELD_MP},
     false},
    {"expp_rank_#_mp_rank_#_optim_states.pt", GCMP_DS_EXPP, {FIELD_EXPERT, FIELD_MP}, false},
    {"layer_#-model_states.pt", GCMP_DS_LAYER, {FIELD_LAYER}, false},
    {"layer_#-model_#-model_states.pt", GCMP_DS_LAYER, {FIELD_LAYER, FIELD_MP}, false},
    {"layer_#_expert_#_mp_rank_#_model_states.pt",
     GCMP_DS_EXPERT,
     {FIELD_LAYER, FIELD_EXPERT, FIELD_MP},
     false},
    {"expert_#_mp_rank_#_model_states.pt", GCMP_DS_EXPERT, {FIELD_EXPERT, FIELD_MP}, false},
};
enum { PATTERN_COUNT = sizeof patterns / sizeof *patterns };

/* Match a name; numbers[] are filled in the order of the pattern. */
static bool match(const char *name, const char *pattern, uint32_t *numbers) {
    size_t found = 0;
    while (*pattern != '\0') {
        if (*pattern != '#') {
            if (*name++ != *pattern++) {
                return false;
            }
            continue;
        }
        size_t digits = strspn(name, "0123456789");
        if (digits == 0 || digits > MAX_DIGITS) {
            return false;
        }
        numbers[found++] = (uint32_t)strtoul(name, NULL, 10);
        name += digits;
        pattern++;
    }
    return *name == '\0';
}

static bool read_name(const char *name, struct gcmp_ds_file *out) {
    uint32_t numbers[3] = {0, 0, 0};
    *out = (struct gcmp_ds_file){.name = name};
    size_t i = 0;
    while (i < PATTERN_COUNT && !match(name, patterns[i].pattern, numbers)) {
        i++;
    }
    if (i == PATTERN_COUNT) {
        return false;
    }
    uint32_t *fields[] = {&out->mp, &out->dp, &out->layer, &out->expert};
    out->kind = patterns[i].kind;
    out->is_partitioned = patterns[i].is_partitioned;
    const char *mark = patterns[i].pattern;
    for (size_t k = 0; k < 3 && (mark = strchr(mark, '#')) != NULL; k++, mark++) {
        *fields[patterns[i].fields[k]] = numbers[k];
    }
    return true;
}

static int compare_numbers(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int compare_ranks(const struct gcmp_ds_file *a, const struct gcmp_ds_file *b) {
    int order = compare_numbers(a->kind, b->kind);
    order = order != 0 ? order : compare_numbers(a->mp, b->mp);
    order = order != 0 ? order : compare_numbers(a->layer, b->layer);
    order = order != 0 ? order : compare_numbers(a->expert, b->expert);
    return order != 0 ? order : compare_numbers(a->dp, b->dp);
}

static int compare_files(const void *left, const void *right) {
    const struct gcmp_ds_file *a = left, *b = right;
    int order = compare_ranks(a, b);
    return order != 0 ? order : strcmp(a->name, b->name);
}

enum gradcmp_status gcmp_ds_list_files(struct gcmp_dir *dir, struct gcmp_ds_files *out,
                                       struct gradcmp_error *error) {
    *out = (struct gcmp_ds_files){.names = NULL};
    GCMP_TRY(gcmp_dir_list(dir, "", MAX_NAMES, &out->names, &out->name_count, error));
    out->items = calloc(out->name_count + 1, sizeof *out->items);
    if (out->items == NULL) {
        GCMP_FAIL_MEMORY(error);
    }
    for (size_t i = 0; i < out->name_count; i++) {
        out->count += read_name(out->names[i], &out->items[out->count]);
    }
    qsort(out->items, out->count, sizeof *out->items, compare_files);
    for (size_t i = 1; i < out->count; i++) {
        if (compare_ranks(&out->items[i - 1], &out->items[i]) == 0) {
            GCMP_FAIL_AT(error, GRADCMP_ERROR_CORRUPT, gcmp_dir_path(dir), GRADCMP_NO_OFFSET,
                         "deepspeed: %.200s and %.200s are the same rank's, of two saves",
                         out->items[i - 1].name, out->items[i].name);
        }
    }
    return GRADCMP_OK;
}

void gcmp_ds_free_files(struct gcmp_ds_files *files) {
    gcmp_dir_free_names(files->names, files->name_count);
    free(files->items);
    *files = (struct gcmp_ds_files){.names = NULL};
}

size_t gcmp_ds_find(const struct gcmp_ds_files *files, enum gcmp_ds_kind kind, uint32_t mp,
                    size_t *first) {
    size_t count = 0;
    *first = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (files->items[i].kind == kind && files->items[i].mp == mp) {
            *first = count++ == 0 ? i : *first;
        }
    }
    return count;
}

bool gcmp_ds_probe_files(struct gcmp_dir *dir) {
    char **names;
    size_t count;
    struct gcmp_ds_file file;
    bool found = false;
    if (gcmp_dir_is_file(dir, NULL) ||
        gcmp_dir_list(dir, "", MAX_NAMES, &names, &count, NULL) != GRADCMP_OK) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        found = read_name(names[i], &file);
    }
    gcmp_dir_free_names(names, count);
    return found;
}
