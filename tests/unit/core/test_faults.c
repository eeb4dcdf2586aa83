/* Opening a checkpoint while one call after another fails: the nth allocation, the nth read. The
 * calls are wrapped by the linker (see tests/CMakeLists.txt). Tried are each n whose call comes
 * from a place in the program (a stack of calls) from where none was tried before, the first ones
 * of each sample, and some ten of the rest; GRADCMP_FAULTS=all tries every n. */
#include "resolve_tools.h"
#include "temp_tools.h"

#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "checkpoint.h"
#include "gradcmp/gradcmp.h"

enum { FIRST_RUNS = 10, MOST_RUNS = 10, MOST_RESOLVED = 40 };

/* --- the calls that fail --- */

enum kind { ALLOC, READ, KINDS };
#define MAPS GCMP_TEST_DATA "/../../examples/map"

static long fail_at[KINDS], calls[KINDS];
static bool is_armed;

/* The places that calls come from: hashes of the addresses that they return to. */
enum { STACK_DEPTH = 12, PLACE_SLOTS = 1 << 16 };
static uint64_t places[PLACE_SLOTS]; /* a hash set; 0: free */
static size_t place_count;
static enum kind looked_for = KINDS; /* whose calls are noted; KINDS: none */
static bool *is_new;                 /* by n: the call comes from a new place */
static size_t new_slots;             /* of is_new */

void *__real_realloc(void *old, size_t bytes);

static bool add_place(uint64_t hash) {
    size_t slot = hash % PLACE_SLOTS;
    while (places[slot] != 0 && places[slot] != hash) {
        slot = (slot + 1) % PLACE_SLOTS;
    }
    bool added = places[slot] == 0;
    if (added) {
        assert_true(++place_count < PLACE_SLOTS / 2);
        places[slot] = hash;
    }
    return added;
}

static void note_place(enum kind kind, long n) {
    void *stack[STACK_DEPTH];
    is_armed = false; /* what is called here is none of the program's */
    int depth = backtrace(stack, STACK_DEPTH);
    if ((size_t)n >= new_slots) {
        new_slots = 2 * (size_t)n + 1024;
        is_new = __real_realloc(is_new, new_slots * sizeof *is_new);
        assert_non_null(is_new);
    }
    is_new[n] = add_place(XXH3_64bits_withSeed(stack, (size_t)depth * sizeof *stack, kind) | 1);
    is_armed = true;
}

static bool fails(enum kind kind) {
    if (!is_armed) {
        return false;
    }
    long n = ++calls[kind];
    if (kind == looked_for) {
        note_place(kind, n);
    }
    bool now = n == fail_at[kind];
    if (now) {
        errno = kind == ALLOC ? ENOMEM : EIO;
    }
    return now;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_reallocarray(void *old, size_t count, size_t bytes);
char *__real_strdup(const char *text);
ssize_t __real_pread(int fd, void *buffer, size_t count, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_reallocarray(void *old, size_t count, size_t bytes);
char *__wrap_strdup(const char *text);
ssize_t __wrap_pread(int fd, void *buffer, size_t count, off_t offset);
ssize_t __wrap___pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t room);

void *__wrap_malloc(size_t bytes) {
    return fails(ALLOC) ? NULL : __real_malloc(bytes);
}
void *__wrap_calloc(size_t count, size_t bytes) {
    return fails(ALLOC) ? NULL : __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
    return fails(ALLOC) ? NULL : __real_realloc(old, bytes);
}
void *__wrap_reallocarray(void *old, size_t count, size_t bytes) {
    return fails(ALLOC) ? NULL : __real_reallocarray(old, count, bytes);
}
char *__wrap_strdup(const char *text) {
    return fails(ALLOC) ? NULL : __real_strdup(text);
}
ssize_t __wrap_pread(int fd, void *buffer, size_t count, off_t offset) {
    return fails(READ) ? -1 : __real_pread(fd, buffer, count, offset);
}

/* What pread is called where the compiler knows the buffer (_FORTIFY_SOURCE). */
ssize_t __wrap___pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t room) {
    (void)room;
    return __wrap_pread(fd, buffer, count, offset);
}

/* --- one run --- */

/* What was found, in numbers. */
struct found {
    size_t stored, sources, states, notes, settings, parameters, slabs, resolved;
    uint64_t bytes, layers;
    int64_t iteration;
};

static enum gradcmp_status look_at(struct gradcmp_checkpoint *checkpoint, struct found *found,
                                   struct gradcmp_error *error) {
    found->stored = checkpoint->catalogue.stored_count;
    found->sources = checkpoint->catalogue.source_count;
    found->notes = checkpoint->catalogue.note_count;
    found->settings = checkpoint->catalogue.setting_count;
    found->layers = checkpoint->catalogue.layers;
    found->iteration = checkpoint->catalogue.iteration;
    found->states = checkpoint->state_count;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model;
        GCMP_TRY(gcmp_checkpoint_model(checkpoint, checkpoint->states[i], &model, error));
        found->parameters += model->count;
        for (size_t k = 0; k < model->count; k++) {
            found->slabs += model->parameters[k].slab_count;
        }
    }
    return resolve_some(checkpoint, MOST_RESOLVED, &found->resolved, &found->bytes, error);
}

/* Checkpoints below tests/data, and the rules for names that one is opened with. */
struct sample {
    const char *name, *map;
    int map_side;
};

static const struct sample samples[] = {
    {"betas/mixed.pt", NULL, 0},
    {"dcp/betas_flat", NULL, 0},
    {"dcp/groups_own", NULL, 0},
    {"dcp/groups_own_flat", NULL, 0},
    {"dcp/trainer2", NULL, 0},
    {"deepspeed/experts", NULL, 0},
    {"deepspeed/pipeline", NULL, 0},
    {"deepspeed/pipeline_stage0", NULL, 0},
    {"deepspeed/stage0", NULL, 0},
    {"deepspeed/stage1_bf16", NULL, 0},
    {"deepspeed/stage1_elastic", NULL, 0},
    {"deepspeed/stage2_groups", NULL, 0},
    {"deepspeed/stage3", NULL, 0},
    {"deepspeed/universal_stage3", NULL, 0},
    {"gathered/tp2", NULL, 0},
#if defined(GCMP_TEST_H5HELPER)
    {"hdf5/bf16_custom.h5", NULL, 0},
    {"hdf5/gzip_latest.h5", NULL, 0},
#endif
    {"legacy/arrays", NULL, 0},
    {"legacy/bucket_size", NULL, 0},
    {"legacy/bucket_views", NULL, 0},
    {"legacy/buckets_apart", NULL, 0},
    {"legacy/fp32_pp2", NULL, 0},
    {"legacy/latent_tp2", NULL, 0},
    {"legacy/moe_ep2", NULL, 0},
    {"legacy/moe_tp2etp2", NULL, 0},
    {"legacy/noop_pp2", NULL, 0},
    {"legacy/plain_moe_tp2ep2", NULL, 0},
    {"legacy/pp2_tied", NULL, 0},
    {"legacy/pp2vp2_uneven", NULL, 0},
    {"megatron/dr_dp2", NULL, 0},
    {"megatron/fr_pp2dp2", NULL, 0},
    {"megatron/fr_tp2_singleton", NULL, 0},
    {"megatron/moe_tp2ep2", NULL, 0},
    {"megatron/tied_pp2", NULL, 0},
    {"megatron/tp2_perlayer", NULL, 0},
    {"megatron/tp2dp2", NULL, 0},
    {"npu/numpy_tp2", NULL, 0},
    {"npu/tag_tp2pp2", NULL, 0},
    {"resume/apart", NULL, 0},
    {"safetensors/consolidated", NULL, 0},
    {"safetensors/per_rank", NULL, 0},
    {"safetensors/sharded", NULL, 0},
    {"torch_save/apart", NULL, 0},
    {"torch_save/buffers.pt", NULL, 0},
    {"torch_save/fsdp1_sharded", NULL, 0},
    {"torch_save/fsdp2", NULL, 0},
    {"torch_save/groups.pt", NULL, 0},
    {"torch_save/groups_stream.pt", NULL, 0},
    {"torch_save/replicas", NULL, 0},
    {"torch_save/stages", NULL, 0},
    {"torch_save/tensor_parallel", NULL, 0},
    {"torch_save/tied.pt", NULL, 0},
    {"torch_save/zoo.pt", NULL, 0},
    {"torch_save/zoo_stream.pt", NULL, 0},
    {"wgrads/moe_te_tp2ep2", NULL, 0},
    {"wgrads/pp2vp2", NULL, 0},
    {"zarr/zarr2_blosc", NULL, 0},
    {"zarr/zarr2_gzip", NULL, 0},
    {"zarr/zarr2_raw", NULL, 0},
    {"zarr/zarr2_zstd", NULL, 0},
    {"zarr/zarr3", NULL, 0},
    {"megatron/s_base", MAPS "/megatron_to_hf.yaml", 1},
    {"../../examples/map/hf_style.safetensors", MAPS "/hf_to_megatron.yaml", 2},
};

static enum gradcmp_status run(const struct sample *sample, struct found *found,
                               struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    struct gradcmp_options options = GRADCMP_OPTIONS_INIT;
    char path[512];
    options.map = sample->map;
    options.map_side = sample->map_side;
    snprintf(path, sizeof path, "%s/%s", GCMP_TEST_DATA, sample->name);
    memset(found, 0, sizeof *found);
    memset(error, 0, sizeof *error);
    memset(calls, 0, sizeof calls);
    is_armed = true;
    enum gradcmp_status status = gradcmp_checkpoint_open(path, &options, &checkpoint, error);
    if (status == GRADCMP_OK) {
        status = look_at(checkpoint, found, error);
    }
    is_armed = false;
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

/* --- every n --- */

static unsigned wrong; /* runs that ended in another way */

static void check_run(const struct sample *sample, enum kind kind, long n,
                      const struct found *plain) {
    static const enum gradcmp_status expected[KINDS] = {GRADCMP_ERROR_MEMORY, GRADCMP_ERROR_IO};
    struct found found;
    struct gradcmp_error error;
    fail_at[kind] = n;
    enum gradcmp_status status = run(sample, &found, &error);
    fail_at[kind] = 0;
    if (status == GRADCMP_OK ? memcmp(&found, plain, sizeof found) != 0
                             : status != expected[kind] || error.code != status) {
        print_error("%s: call %ld of kind %d: status %d: %zu parameters of %zu: %s: %s\n",
                    sample->name, n, (int)kind, (int)status, found.parameters, plain->parameters,
                    error.path, error.message);
        wrong++;
    }
}

static void check_sample(const struct sample *sample, enum kind kind) {
    struct found plain;
    struct gradcmp_error error;
    const char *how = getenv("GRADCMP_FAULTS");
    bool all = how != NULL && strcmp(how, "all") == 0;
    looked_for = kind;
    enum gradcmp_status status = run(sample, &plain, &error);
    looked_for = KINDS;
    if (status != GRADCMP_OK) {
        fail_msg("%s: undisturbed: %s: %s", sample->name, error.path, error.message);
    }
    long count = calls[kind], tried = 0;
    assert_true(count > 0 && plain.parameters > 0);
    long step = all || count <= MOST_RUNS ? 1 : count / MOST_RUNS + 1;
    for (long n = 1; n <= count; n++) {
        if (n < FIRST_RUNS || n % step == 0 || is_new[n]) {
            check_run(sample, kind, n, &plain);
            tried++;
        }
    }
    print_message("%s: %ld of %ld calls\n", sample->name, tried, count);
    check_run(sample, kind, count + 1, &plain); /* the call that is not made */
}

static void test_open__any_allocation_that_fails_is_told(void **state) {
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check_sample(&samples[i], ALLOC);
    }
    assert_int_equal(wrong, 0);
}

static void test_open__any_read_that_fails_is_told(void **state) {
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check_sample(&samples[i], READ);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
#if defined(GCMP_TEST_H5HELPER)
    setenv("GRADCMP_H5HELPER", GCMP_TEST_H5HELPER, 1);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__any_allocation_that_fails_is_told),
        cmocka_unit_test(test_open__any_read_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
