/* What paths mean: groups, ranks, settings of the layout, and what may differ. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "bits/item.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const names[GCMP_BITS_GROUPS] = {
    "model", "master", "exp_avg", "exp_avg_sq", "opt_step", "opt_hyper", "scheduler",
    "rng",   "data",   "scaler",  "args",       "other",    "keys",      "layout"};

const char *gcmp_bits_group_name(enum gcmp_bits_group group) {
    return names[group];
}

/* The last part of a path; and behind its last dot, as flattened keys have it. */
static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}
static const char *last_word(const char *path) {
    const char *part = last_part(path), *dot = strrchr(part, '.');
    return dot == NULL ? part : dot + 1;
}

static bool is_separator(char c) {
    return c == '/' || c == '.' || c == '_' || c == '-' || c == '\'' || c == '\0' ||
           isdigit((unsigned char)c);
}

/* True where the word stands in the path between separators. */
static bool has_word(const char *path, const char *word) {
    size_t bytes = strlen(word);
    for (const char *at = strstr(path, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == path || is_separator(at[-1])) && is_separator(at[bytes])) {
            return true;
        }
    }
    return false;
}

/* True where a part of the path, split at '/' and '.' and in quotes or not, is exactly the word. */
static bool has_part(const char *path, const char *word) {
    size_t bytes = strlen(word);
    for (const char *at = strstr(path, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == path || strchr("/.'", at[-1]) != NULL) && strchr("/.'", at[bytes]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Generators' states differ by rank and layout, so what is taken for one is excused much: a part of
 * a path that is called rng or random, or the state of such. A generator is that of numbers where
 * nothing is below it, else a network that is trained against another. */
static bool is_rng_part(const char *path, size_t bytes) {
    char part[64];
    size_t length = strlen(path);
    bool is_last = length == bytes || strspn(path + bytes + 1, "0123456789") == length - bytes - 1;
    if (bytes >= sizeof part) {
        return false;
    }
    memcpy(part, path, bytes);
    part[bytes] = '\0';
    if (strcmp(part, "generator") == 0 || strcmp(part, "generators") == 0 ||
        strcmp(part, "generator_state") == 0 || strcmp(part, "generator_states") == 0) {
        return is_last;
    }
    static const char *const sources[] = {"rng", "random"};
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        size_t word = strlen(sources[i]);
        bool ends = bytes >= word && strcmp(part + bytes - word, sources[i]) == 0;
        if (has_word(part, sources[i]) && (ends || strstr(part, "state") != NULL)) {
            return true;
        }
    }
    return false;
}

static bool is_rng(const char *path) {
    for (const char *part = path; part != NULL;) {
        size_t bytes = strcspn(part, "/.");
        if (is_rng_part(part, bytes)) {
            return true;
        }
        part = part[bytes] == '\0' ? NULL : part + bytes + 1;
    }
    return false;
}

/* A word anywhere in the path and its group; the first that fits decides. */
static const struct {
    const char *word;
    bool whole; /* it stands between separators */
    enum gcmp_bits_group group;
} words[] = {
    {"exp_avg_sq", false, GCMP_BITS_EXP_AVG_SQ},
    {"exp_avg", false, GCMP_BITS_EXP_AVG},
    {"master", false, GCMP_BITS_MASTER},
    {"fp32_param", false, GCMP_BITS_MASTER},
    {"fp32_from_fp16", false, GCMP_BITS_MASTER},
    {"single_partition_of_fp32_groups", false, GCMP_BITS_MASTER},
    {"fp32_flat_groups", false, GCMP_BITS_MASTER},
    {"state.param", false, GCMP_BITS_MASTER},
    {"scaler", false, GCMP_BITS_SCALER},
    {"loss_scale", false, GCMP_BITS_SCALER},
    {"scheduler", false, GCMP_BITS_SCHEDULER},
    {"sampler", false, GCMP_BITS_DATA},
    {"dataloader", false, GCMP_BITS_DATA},
    {"data_loader", false, GCMP_BITS_DATA},
    {"dataset", true, GCMP_BITS_DATA},
    {"consumed", false, GCMP_BITS_DATA},
    {"ntokens", false, GCMP_BITS_DATA},
    {"data_position", false, GCMP_BITS_DATA},
};

static const struct {
    const char *state;
    enum gcmp_bits_group group;
} states[] = {
    {"param", GCMP_BITS_MODEL},     {"fp32_param", GCMP_BITS_MASTER},
    {"exp_avg", GCMP_BITS_EXP_AVG}, {"exp_avg_sq", GCMP_BITS_EXP_AVG_SQ},
    {"step", GCMP_BITS_OPT_STEP},
};

/* What Megatron's files of everything hold: their name says nothing of a part. */
static const char *within_file(const char *path) {
    static const char name[] = "model_optim_rng/";
    const char *at = strstr(path, name);
    return at == NULL ? path : at + sizeof name - 1;
}

enum gcmp_bits_group gcmp_bits_group_of(const char *path, const char *state) {
    for (size_t i = 0; state != NULL && i < COUNT_OF(states); i++) {
        if (strcmp(states[i].state, state) == 0) {
            return states[i].group;
        }
    }
    path = within_file(path);
    if (has_part(path, "args")) {
        return strstr(last_part(path), "consumed") != NULL ? GCMP_BITS_DATA : GCMP_BITS_ARGS;
    }
    if (is_rng(path)) {
        return GCMP_BITS_RNG;
    }
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (words[i].whole ? has_word(path, words[i].word) : strstr(path, words[i].word) != NULL) {
            return words[i].group;
        }
    }
    if (strstr(path, "optim") != NULL && strcmp(last_word(path), "step") == 0) {
        return GCMP_BITS_OPT_STEP;
    }
    if (strstr(path, "param_groups") != NULL) {
        return GCMP_BITS_OPT_HYPER;
    }
    return strstr(path, "optim") == NULL &&
                   (has_part(path, "model") || has_part(path, "module") ||
                    has_part(path, "state_dict") || has_part(path, "decoder") ||
                    has_part(path, "embedding") || has_part(path, "layers"))
               ? GCMP_BITS_MODEL
               : GCMP_BITS_OTHER;
}

/* "rank", "shard" and the like, with a number behind: how long the word and the number are; 0: no
 * rank here. Megatron's objects are "shard_<index>_<count>", indices and counts joined by dots. */
static size_t rank_bytes(const char *at) {
    static const char *const marks[] = {"dp_rank", "mp_rank", "dprank",
                                        "rank",    "shard",   "rng_state"};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        size_t bytes = strlen(marks[i]);
        if (strncmp(at, marks[i], bytes) != 0) {
            continue;
        }
        size_t gap = at[bytes] == '_' || at[bytes] == '-' ? 1 : 0;
        size_t digits = strspn(at + bytes + gap, "0123456789");
        if (digits > 0) {
            return bytes + gap + strspn(at + bytes + gap, "0123456789._");
        }
    }
    return 0;
}

/* Next rank in the path: where it begins; NULL: none. */
static const char *find_rank(const char *path, const char *from, size_t *bytes) {
    for (const char *at = from; *at != '\0'; at++) {
        bool starts = at == path || is_separator(at[-1]);
        *bytes = starts ? rank_bytes(at) : 0;
        if (*bytes > 0) {
            return at;
        }
    }
    return NULL;
}

/* The comma in a key that is the coordinates of a rank: "(0, 1)"; NULL: there is none. */
static const char *find_coordinates(const char *path) {
    const char *at = strchr(path, '(');
    return at != NULL && isdigit((unsigned char)at[1]) ? strchr(at, ',') : NULL;
}

size_t gcmp_bits_rank_bytes(const char *path) {
    size_t bytes;
    const char *rank = find_rank(path, path, &bytes), *end = find_coordinates(path);
    if (rank != NULL && (end == NULL || rank < end)) {
        end = rank + bytes;
    }
    const char *slash = end == NULL ? NULL : strchr(end, '/');
    return slash == NULL ? 0 : (size_t)(slash - path);
}

bool gcmp_bits_is_by_rank(const char *path) {
    size_t bytes;
    return find_rank(path, path, &bytes) != NULL || find_coordinates(path) != NULL;
}

/* Megatron keeps hyperparameters once, in common.pt, or for each group of data parallel ranks
 * (state_dict of distrib_optimizer.py): "chained_1.optimizer.distributed.dp_group_idx_0.optimizer/
 * shard_0_1/0/param_groups" is "common/optimizer/1/optimizer/param_groups". NULL: not those; or,
 * with *failed, without memory. */
static char *common_place(struct gcmp_arena *arena, const char *path, bool *failed) {
    static const char chained[] = "chained_", group[] = "optimizer.distributed.dp_group_idx_";
    static const char optimizer[] = ".optimizer/", first[] = "/0/";
    const char *at = path, *number = "";
    size_t digits = 0, bytes = 0;
    if (strncmp(at, chained, sizeof chained - 1) == 0) {
        number = at + sizeof chained - 1;
        digits = strspn(number, "0123456789");
        at = number + digits + (number[digits] == '.');
    }
    if (strncmp(at, group, sizeof group - 1) != 0) {
        return NULL;
    }
    at += sizeof group - 1;
    at += strspn(at, "0123456789");
    if (strncmp(at, optimizer, sizeof optimizer - 1) != 0) {
        return NULL;
    }
    at += sizeof optimizer - 1;
    bytes = rank_bytes(at);
    if (bytes == 0 || strncmp(at + bytes, first, sizeof first - 1) != 0) {
        return NULL;
    }
    char *out = gcmp_arena_format(arena, "common/optimizer/%.*s%soptimizer/%s", (int)digits, number,
                                  digits > 0 ? "/" : "", at + bytes + sizeof first - 1);
    *failed = out == NULL;
    return out;
}

char *gcmp_bits_without_ranks(struct gcmp_arena *arena, const char *path) {
    bool failed = false;
    char *common = common_place(arena, path, &failed);
    if (common != NULL || failed) {
        return common;
    }
    char *out = gcmp_arena_dup(arena, path);
    size_t bytes;
    const char *rank = find_rank(path, path, &bytes);
    if (out == NULL || rank == NULL) {
        return out;
    }
    char *to = out;
    const char *from = path;
    while (rank != NULL) {
        memcpy(to, from, (size_t)(rank - from));
        to += rank - from;
        *to++ = '*';
        from = rank + bytes;
        rank = find_rank(path, from, &bytes);
    }
    memcpy(to, from, strlen(from) + 1);
    return out;
}

bool gcmp_bits_is_layout_size(const char *path) {
    static const char *const exact[] = {
        "world_size",      "padded_vocab_size", "num_layers_per_virtual_pipeline_stage",
        "partition_count", "dp_world_size",     "mp_world_size"};
    const char *word = last_word(path);
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        if (strcmp(word, exact[i]) == 0) {
            return true;
        }
    }
    size_t bytes = strlen(word);
    static const char end[] = "parallel_size";
    return bytes >= sizeof end - 1 && strcmp(word + bytes - (sizeof end - 1), end) == 0;
}

bool gcmp_bits_is_layout_setting(const char *path) {
    static const char *const exact[] = {
        "rank", "local_rank", "num_micro_batches", "use_distributed_optimizer", "numel_unpadded",
        "zero_stage",
        /* how Megatron laid the state out in the files, and the flags for that */
        "distrib_optim_sharding_type", "param_state_sharding_type",
        "distrib_optim_fully_reshardable_mem_efficient", "dist_ckpt_optim_fully_reshardable",
        "singleton_local_shards", "chained_optim_avoid_prefix"};
    const char *word = last_word(path);
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        if (strcmp(word, exact[i]) == 0) {
            return true;
        }
    }
    return gcmp_bits_is_layout_size(path) || strstr(word, "parallel") != NULL ||
           strstr(word, "pipeline") != NULL;
}

/* What one layout of a format has and another does not: buffers and what tells of them, steps of
 * each parameter for those of groups, numbers of parameters. */
static const struct {
    const char *format, *path;
} layout_places[] = {
    {"torch_dist", "common/content_metadata/*"},
    {"torch_dist", "common/optimizer/*param_state/*"},
    {"torch_dist", "*optimizer.distributed.dp_group_idx_*"},
    {"megatron_legacy", "*/distrib_optim"},
    {"megatron_legacy", "*/distrib_optim/*"},
    {"megatron_legacy", "*/optimizer/state/*"},
    {"deepspeed", "*optim_states/*"},
    {"deepspeed", "*zero/*"},
};

/* True for the step of a group of hyperparameters. */
static bool is_group_step(const char *path) {
    return strstr(path, "param_groups/") != NULL && strcmp(last_part(path), "step") == 0;
}

/* Steps of groups: all layouts keep them, but for optimizers that keep one for each parameter. */
static bool lacks_group_steps(const char *layout) {
    return layout != NULL && strcmp(layout, "optimizer of each rank") == 0;
}

unsigned gcmp_bits_optimizer_marks(const char *path) {
    static const char word[] = "optimizer/";
    const char *at = strstr(path, word);
    if (at == NULL || (at != path && at[-1] != '/')) {
        bool is_list = strcmp(last_part(path), "optimizer") == 0 && !has_part(path, "args");
        return is_list ? GCMP_BITS_OPTIMIZERS : 0U; /* of dicts, what is in them has paths alone */
    }
    at += sizeof word - 1;
    size_t digits = strspn(at, "0123456789");
    bool is_listed = digits > 0 && (at[digits] == '/' || at[digits] == '\0');
    return (is_listed ? GCMP_BITS_OPTIMIZERS : GCMP_BITS_ONE_OPTIMIZER) |
           (is_group_step(at) ? GCMP_BITS_GROUP_STEPS : 0U);
}

bool gcmp_bits_is_of_layout(const char *format, const char *path, const char *other) {
    for (size_t i = 0; i < COUNT_OF(layout_places); i++) {
        if (strcmp(layout_places[i].format, format) == 0 &&
            fnmatch(layout_places[i].path, path, FNM_NOESCAPE) == 0) {
            return true;
        }
    }
    return (is_group_step(path) && lacks_group_steps(other)) || gcmp_bits_is_layout_setting(path);
}

/* What is a rank's own by its name: where it runs, and as which. */
static bool is_own_name(const char *word) {
    static const char *const endings[] = {"rank", "device", "gpu",  "host", "hostname", "node",
                                          "pid",  "port",   "path", "file", "dir",      "seed"};
    size_t bytes = strlen(word);
    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        size_t ending = strlen(endings[i]);
        if (bytes >= ending && strcmp(word + bytes - ending, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *gcmp_bits_in_group(const char *path) {
    static const char word[] = "param_groups/";
    const char *at = strstr(path, word);
    size_t digits = at == NULL ? 0 : strspn(at + sizeof word - 1, "0123456789");
    const char *rest = at == NULL ? NULL : at + sizeof word - 1 + digits;
    return digits > 0 && *rest == '/' ? rest : NULL;
}

/* True where a part of the path is a number: one of several optimizers, of which a rank has those
 * whose parameters it has. */
static bool has_number(const char *path) {
    for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
        size_t digits = strspn(at + 1, "0123456789");
        if (digits > 0 && (at[1 + digits] == '/' || at[1 + digits] == '\0')) {
            return true;
        }
    }
    return false;
}

/* True for what lies at the top of a rank's file, or one folder or key below. */
static bool is_near_top(const char *path) {
    const char *star = strrchr(path, '*');
    size_t slashes = 0;
    for (const char *at = star; at != NULL && *at != '\0'; at++) {
        slashes += *at == '/';
    }
    return slashes == 1 || slashes == 2;
}

bool gcmp_bits_is_for_all_ranks(const struct gcmp_bits_item *item) {
    const char *path = item->path;
    if (is_own_name(last_word(path)) || gcmp_bits_is_layout_setting(path) ||
        gcmp_bits_is_extra_state(path)) {
        return false;
    }
    switch ((enum gcmp_bits_group)item->group) {
    case GCMP_BITS_SCHEDULER:
    case GCMP_BITS_SCALER:
    case GCMP_BITS_ARGS:
        return true;
    case GCMP_BITS_OPT_HYPER:
    case GCMP_BITS_OPT_STEP:
        return gcmp_bits_in_group(path) == NULL
                   ? strcmp(last_part(path), "param_groups") == 0 && !has_number(path)
                   : strstr(path, "/params") == NULL;
    case GCMP_BITS_DATA:
        return strstr(last_part(path), "consumed") != NULL ||
               strcmp(last_word(path), "ntokens") == 0;
    case GCMP_BITS_OTHER:
        return item->kind == GCMP_BITS_VALUE && is_near_top(path);
    default:
        return false;
    }
}

bool gcmp_bits_is_numbering(const char *path) {
    static const char params[] = "/params";
    const char *rest = gcmp_bits_in_group(path);
    return strchr(path, '*') != NULL &&
           ((rest != NULL && strncmp(rest, params, sizeof params - 1) == 0) ||
            strstr(path, "/fp32_from_fp16_params") != NULL);
}

bool gcmp_bits_is_numbered(const char *path) {
    static const char state[] = "optimizer/state/";
    const char *at = strchr(path, '*') == NULL ? NULL : strstr(path, state);
    return at != NULL && isdigit((unsigned char)at[sizeof state - 1]);
}

bool gcmp_bits_is_of_version(const char *path) {
    const char *rest = gcmp_bits_in_group(path);
    return rest != NULL && strcmp(rest, "/default_config") == 0; /* Megatron core 0.16 */
}

bool gcmp_bits_is_extra_state(const char *path) {
    return has_part(path, "_extra_state");
}

/* Names of when, where and under which name a run was saved. */
const char *const gcmp_bits_default_ignores[] = {"save",
                                                 "load",
                                                 "save_time",
                                                 "run_name",
                                                 "hostname",
                                                 "wall_time",
                                                 "elapsed",
                                                 "timestamp",
                                                 "start_time",
                                                 "tensorboard_dir",
                                                 "wandb_save_dir",
                                                 "wandb_exp_name",
                                                 "master_addr",
                                                 "master_port",
                                                 "output_dir",
                                                 "log_dir",
                                                 "logging_dir",
                                                 "non_persistent_global_ckpt_dir",
                                                 "non_persistent_local_ckpt_dir",
                                                 NULL};

/* The path with '/' for '.', and without the quotes and backslashes of keys that are spelled with
 * them, in a bounded buffer; longer ones are cut at the front. */
static const char *slashed(char *buffer, size_t bytes, const char *text) {
    size_t length = strlen(text);
    text += length >= bytes ? length - bytes + 1 : 0;
    char *to = buffer;
    for (; *text != '\0'; text++) {
        if (*text != '\'' && *text != '\\') {
            *to++ = *text == '.' ? '/' : *text;
        }
    }
    *to = '\0';
    return buffer;
}

bool gcmp_bits_ignores(const char *pattern, const char *path) {
    char buffer[1024], wanted[256];
    slashed(buffer, sizeof buffer, path);
    slashed(wanted, sizeof wanted, pattern);
    for (const char *at = buffer; at != NULL; at = strchr(at, '/')) {
        at += *at == '/' ? 1 : 0;
        if (fnmatch(wanted, at, FNM_NOESCAPE) == 0) {
            return true;
        }
    }
    return false;
}
