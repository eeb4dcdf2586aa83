/* Valid checkpoints of every format, damaged at one value after another: each opens, or is refused
 * with a code, a message and a place. What each file is refused for, the first time that it is, is
 * compared with tests/data/damage/<file>.txt; GRADCMP_BLESS=1 rewrites these (read what changes).
 * By default one value is tried in each of some places, another one in the next; GRADCMP_DAMAGE=all
 * tries every value in every place, and compares no list. */
#include "damage_tools.h"
#include "resolve_tools.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/map.h"
#include "checkpoint.h"
#include "gradcmp/gradcmp.h"

enum kind { PICKLE, ARCHIVE, STREAM, JSON, HEADER, ZIP };
enum { MOST_PLACES = 150, MOST_RESOLVED = 8, STREAM_PICKLES = 5 };

/* A checkpoint below tests/data, and the file of it that is damaged; NULL: it is that file. */
static const struct target {
    const char *sample, *file;
    enum kind kind;
} targets[] = {
    {"betas/mixed.pt", NULL, ARCHIVE},
    {"dcp/groups_own", ".metadata", PICKLE},
    {"dcp/trainer2", ".metadata", PICKLE},
    {"deepspeed/experts", "global_step1/layer_0_expert_2_mp_rank_00_model_states.pt", ARCHIVE},
    {"deepspeed/experts", "global_step1/zero_pp_rank_1_mp_rank_00_optim_states.pt", ARCHIVE},
    {"deepspeed/pipeline", "global_step1/layer_01-model_states.pt", ARCHIVE},
    {"deepspeed/pipeline", "global_step1/mp_rank_01_model_states.pt", ARCHIVE},
    {"deepspeed/stage0", "global_step1/mp_rank_00_model_states.pt", ARCHIVE},
    {"deepspeed/stage1_bf16", "global_step1/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
     ARCHIVE},
    {"deepspeed/stage1_bf16", "global_step1/mp_rank_00_model_states.pt", ARCHIVE},
    {"deepspeed/stage3", "global_step1/zero_pp_rank_0_mp_rank_00_model_states.pt", ARCHIVE},
    {"deepspeed/stage3", "global_step1/zero_pp_rank_1_mp_rank_00_optim_states.pt", ARCHIVE},
    {"deepspeed/universal_stage3", "zero/layers.1.up.bias/exp_avg.pt", ARCHIVE},
    {"gathered/tp1", "iter_0000001/.metadata", PICKLE},
    {"gathered/tp1", "iter_0000001/common.pt", ARCHIVE},
    {"legacy/arrays", "iter_0000001/mp_rank_00/distrib_optim.pt", ARCHIVE},
    {"legacy/arrays", "iter_0000001/mp_rank_00/model_optim_rng.pt", ARCHIVE},
    {"legacy/fp32_pp2", "iter_0000001/mp_rank_00_000/model_optim_rng.pt", ARCHIVE},
    {"legacy/plain_moe_tp2ep2", "iter_0000001/mp_rank_00_000/model_optim_rng.pt", ARCHIVE},
    {"legacy/pp2_tied", "iter_0000001/mp_rank_00_000/distrib_optim.pt", ARCHIVE},
    {"legacy/pp2_tied", "iter_0000001/mp_rank_00_001/model_optim_rng.pt", ARCHIVE},
    {"safetensors/consolidated", "model.safetensors.index.json", JSON},
    {"safetensors/per_rank", "optimizer_rank0.safetensors", HEADER},
    {"torch_save/groups.pt", NULL, ARCHIVE},
    {"torch_save/groups_stream.pt", NULL, STREAM},
    {"torch_save/buffers.pt", NULL, ARCHIVE},
    {"torch_save/zoo.pt", NULL, ARCHIVE},
    {"torch_save/zoo_stream.pt", NULL, STREAM},
    {"torch_save/tied.pt", NULL, ZIP},
    {"torch_save/apart", "optimizer.bin", ARCHIVE},
    {"torch_save/fsdp1_sharded", "optimizer_0_rank1.bin", ARCHIVE},
    {"torch_save/fsdp2", "model_world_size_3_rank_0.pt", ARCHIVE},
    {"torch_save/stages", "rank1.pt", ARCHIVE},
    {"torch_save/tensor_parallel", "model_world_size_4_rank_0.pt", ARCHIVE},
    {"wgrads/pp2vp2", "wgrads/iter_0000001/mp_rank_00_000.pth", ARCHIVE},
    {"zarr/zarr2_gzip", "optimizer.state.exp_avg.norm.weight/.zarray", JSON},
    {"zarr/zarr3", "exp_avg.norm.weight/zarr.json", JSON},
};

/* One target under way. */
struct trial {
    const struct target *target;
    char *temp, *sample, *file; /* paths of the copy */
    struct bytes whole, text;   /* the file, and what of it is damaged */
    struct archive archive;
    struct gcmp_map told; /* messages without their numbers */
    struct gcmp_arena arena;
    FILE *list;
    size_t runs, refused, wrong;
};

/* --- a copy of the sample --- */

static void copy_file(const char *from, const char *to) {
    struct bytes bytes = bytes_read(from);
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.at, 1, bytes.count, file), bytes.count);
    assert_int_equal(fclose(file), 0);
    free(bytes.at);
}

static void copy_all(const char *from, const char *to) {
    struct stat info;
    assert_int_equal(stat(from, &info), 0);
    if (S_ISREG(info.st_mode)) {
        copy_file(from, to);
        return;
    }
    DIR *folder = opendir(from);
    assert_non_null(folder);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char *inner = temp_path(from, entry->d_name), *copy = temp_path(to, entry->d_name);
            copy_all(inner, copy);
            free(inner);
            free(copy);
        }
    }
    closedir(folder);
}

/* --- one damaged file --- */

static enum gradcmp_status open_it(const char *path, struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    size_t resolved = 0;
    uint64_t bytes = 0;
    memset(error, 0, sizeof *error);
    enum gradcmp_status status = gradcmp_checkpoint_open(path, NULL, &checkpoint, error);
    if (status == GRADCMP_OK) {
        status = resolve_some(checkpoint, MOST_RESOLVED, &resolved, &bytes, error);
    }
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

/* What is wrong with how a file was refused, or NULL. */
static const char *judge(const struct trial *trial, enum gradcmp_status status,
                         const struct gradcmp_error *error, size_t file_bytes) {
    const char *name = error->path + strlen(trial->temp);
    if (status != error->code || status == GRADCMP_ERROR_MEMORY) {
        return "an unexpected code";
    }
    if (strncmp(error->path, trial->temp, strlen(trial->temp)) != 0 || *name != '/') {
        return "no path";
    }
    for (const char *at = error->message; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at)) {
            return "a control character in the message";
        }
    }
    if (error->message[0] == '\0' || isupper((unsigned char)error->message[0])) {
        return "not a message in lower case";
    }
    bool is_damaged = strcmp(error->path, trial->file) == 0;
    if (error->offset_bytes != GRADCMP_NO_OFFSET && is_damaged &&
        error->offset_bytes > file_bytes) {
        return "a byte behind the end of the file";
    }
    return NULL;
}

/* Take numbers and what stands in quotation marks out of a message. */
static void blank_names(char *text) {
    bool is_name = false;
    char *to = text;
    for (const char *at = text; *at != '\0'; at++) {
        is_name = is_name != (*at == '"');
        if (!is_name && !isdigit((unsigned char)*at)) {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* Keep the first refusal of each sort; "it" is the damaged file. */
static void tell(struct trial *trial, const struct gradcmp_error *error) {
    char line[sizeof error->path + sizeof error->message + 64], place[24] = "-";
    bool is_damaged = strcmp(error->path, trial->file) == 0;
    const char *path = is_damaged ? "it" : error->path + strlen(trial->temp) + 1;
    if (error->offset_bytes != GRADCMP_NO_OFFSET) {
        snprintf(place, sizeof place, "%llu", (unsigned long long)error->offset_bytes);
    }
    snprintf(line, sizeof line, "%d %s %s: %s", (int)error->code, place, path, error->message);
    char *key = gcmp_arena_format(&trial->arena, "%d %s", (int)error->code, error->message);
    assert_non_null(key);
    blank_names(key);
    if (gcmp_map_add(&trial->told, key, strlen(key), 0, NULL) == GCMP_MAP_ADDED) {
        fprintf(trial->list, "%s\n", line);
    }
}

static void try_bytes(struct trial *trial, struct bytes damaged) {
    struct gradcmp_error error;
    int file = open(trial->file, O_WRONLY); /* not emptied first: file systems then write at once */
    assert_true(file >= 0);
    assert_int_equal(write(file, damaged.at, damaged.count), damaged.count);
    assert_int_equal(ftruncate(file, (off_t)damaged.count), 0);
    assert_int_equal(close(file), 0);
    enum gradcmp_status status = open_it(trial->sample, &error);
    trial->runs++;
    if (status == GRADCMP_OK) {
        return;
    }
    const char *fault = judge(trial, status, &error, damaged.count);
    trial->refused++;
    if (fault != NULL) {
        print_error("%s %s: run %zu: %s: %d %s: %s\n", trial->target->sample,
                    trial->target->file == NULL ? "" : trial->target->file, trial->runs, fault,
                    (int)status, error.path, error.message);
        trial->wrong++;
    } else {
        tell(trial, &error);
    }
}

static void try_value(struct trial *trial, struct place place, struct replacement value) {
    struct bytes damaged = replace(trial->text, place, value);
    if (trial->target->kind == ARCHIVE) {
        struct bytes pickle = damaged;
        damaged = archive_write(&trial->archive, trial->whole, pickle);
        free(pickle.at);
    } else if (trial->target->kind == HEADER) { /* its length stands in front */
        size_t length = (size_t)little(trial->whole.at, 8) + damaged.count - trial->whole.count;
        for (unsigned i = 0; i < 8; i++) {
            damaged.at[i] = (unsigned char)(length >> (8 * i));
        }
    }
    try_bytes(trial, damaged);
    free(damaged.at);
}

/* --- all of them --- */

static void find_places(struct trial *trial, struct places *places) {
    switch (trial->target->kind) {
    case ARCHIVE: {
        const struct gcmp_zip_record *record = &trial->archive.zip.records[trial->archive.pickle];
        trial->text.at = trial->whole.at + record->offset_bytes;
        trial->text.count = (size_t)record->length_bytes;
        pickle_places(trial->text, 1, places);
        break;
    }
    case PICKLE:
        pickle_places(trial->text, 1, places);
        break;
    case STREAM:
        pickle_places(trial->text, STREAM_PICKLES, places);
        break;
    case JSON:
        json_places(trial->text, 0, trial->text.count, places);
        break;
    case HEADER:
        json_places(trial->text, 8, 8 + (size_t)little(trial->text.at, 8), places);
        break;
    case ZIP:
        zip_places(trial->text, places);
        break;
    }
}

static void try_all(struct trial *trial, bool all) {
    static const struct {
        const struct replacement *list;
        size_t count;
    } sets[] = {[PICKLE] = {pickle_values, sizeof pickle_values / sizeof *pickle_values},
                [ARCHIVE] = {pickle_values, sizeof pickle_values / sizeof *pickle_values},
                [STREAM] = {pickle_values, sizeof pickle_values / sizeof *pickle_values},
                [JSON] = {json_values, sizeof json_values / sizeof *json_values},
                [HEADER] = {json_values, sizeof json_values / sizeof *json_values},
                [ZIP] = {zip_values, sizeof zip_values / sizeof *zip_values}};
    size_t kinds = sets[trial->target->kind].count;
    struct places places = {NULL, 0, 0};
    find_places(trial, &places);
    size_t tried = all || places.count < MOST_PLACES ? places.count : MOST_PLACES;
    for (size_t i = 0; i < tried; i++) {
        for (size_t k = 0; k < (all ? kinds : 1); k++) {
            try_value(trial, places.list[i * places.count / tried],
                      sets[trial->target->kind].list[all ? k : i % kinds]);
        }
    }
    free(places.list);
}

static void begin(struct trial *trial, const struct target *target) {
    char from[512];
    snprintf(from, sizeof from, "%s/%s", GCMP_TEST_DATA, target->sample);
    *trial = (struct trial){.target = target, .temp = temp_dir_make()};
    assert_non_null(trial->temp);
    trial->sample = temp_path(trial->temp, strrchr(from, '/') + 1);
    copy_all(from, trial->sample);
    trial->file =
        target->file == NULL ? strdup(trial->sample) : temp_path(trial->sample, target->file);
    trial->whole = bytes_read(trial->file);
    trial->text = trial->whole;
    if (target->kind == ARCHIVE) {
        archive_open(&trial->archive, trial->file);
    }
}

static void end(struct trial *trial) {
    if (trial->target->kind == ARCHIVE) {
        archive_close(&trial->archive);
    }
    gcmp_map_free(&trial->told);
    gcmp_arena_free(&trial->arena);
    free(trial->whole.at);
    free(trial->sample);
    free(trial->file);
    temp_dir_remove(trial->temp);
}

/* Compare with the list that is kept, or rewrite it. False where they differ. */
static bool check_list(const struct target *target, const char *text, size_t bytes) {
    char name[256], path[512];
    snprintf(name, sizeof name, "%s%s%s", target->sample, target->file == NULL ? "" : ".",
             target->file == NULL ? "" : target->file);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    snprintf(path, sizeof path, "%s/damage/%s.txt", GCMP_TEST_DATA, name);
    if (getenv("GRADCMP_BLESS") != NULL) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, bytes, file), bytes);
        return fclose(file) == 0;
    }
    struct bytes kept = bytes_read(path);
    kept.at[kept.count] = '\0';
    bool is_same = strcmp((const char *)kept.at, text) == 0;
    if (!is_same) {
        print_error("%s: expected\n%sfound\n%s", path, (const char *)kept.at, text);
    }
    free(kept.at);
    return is_same;
}

static void test_open__a_damaged_value_is_refused_or_does_no_harm(void **state) {
    (void)state;
    const char *how = getenv("GRADCMP_DAMAGE");
    bool all = how != NULL && strcmp(how, "all") == 0;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct trial trial;
        struct gradcmp_error error;
        char *text = NULL;
        size_t bytes = 0;
        begin(&trial, &targets[i]);
        if (open_it(trial.sample, &error) != GRADCMP_OK) {
            fail_msg("%s: undamaged: %s: %s", targets[i].sample, error.path, error.message);
        }
        trial.list = open_memstream(&text, &bytes);
        try_all(&trial, all);
        fclose(trial.list);
        print_message("%s %s: %zu damaged, %zu refused\n", targets[i].sample,
                      targets[i].file == NULL ? "" : targets[i].file, trial.runs, trial.refused);
        wrong += trial.wrong + (!all && !check_list(&targets[i], text, bytes));
        free(text);
        end(&trial);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__a_damaged_value_is_refused_or_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
