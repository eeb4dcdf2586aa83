/* Opening a checkpoint while one call after another fails: the nth allocation, the nth read, for
 * every n in turn. The calls are wrapped by the linker (see tests/CMakeLists.txt). By default some
 * eighty n a sample are tried; GRADCMP_FAULTS=all tries each. */
#include "temp_tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "gradcmp/gradcmp.h"

enum { FIRST_RUNS = 60, MOST_RUNS = 20, MOST_RESOLVED = 40 };

/* --- the calls that fail --- */

enum kind { ALLOC, READ, KINDS };
static long fail_at[KINDS], calls[KINDS];
static bool is_armed;

static bool fails(enum kind kind) {
    bool now = is_armed && ++calls[kind] == fail_at[kind];
    if (now) {
        errno = kind == ALLOC ? ENOMEM : EIO;
    }
    return now;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
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
    size_t stored, sources, states, notes, parameters, slabs, resolved;
    uint64_t bytes;
};

static enum gradcmp_status resolve_some(const struct gradcmp_checkpoint *checkpoint,
                                        struct found *found, struct gradcmp_error *error) {
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    for (uint32_t i = 0; i < catalogue->source_count && found->resolved < MOST_RESOLVED; i++) {
        const struct gradcmp_source *source = &catalogue->sources[i];
        struct gradcmp_extent extent = {0};
        if (source->kind != GRADCMP_SOURCE_ITEM ||
            catalogue->stored[source->stored].dtype == GRADCMP_DTYPE_NONE) {
            continue;
        }
        GCMP_TRY(catalogue->format->resolve(catalogue, i, &extent, error));
        free(extent.decoded);
        if (extent.decoded_in_file) {
            close(extent.decoded_fd);
        }
        found->resolved++;
        found->bytes += extent.length_bytes;
    }
    return GRADCMP_OK;
}

static enum gradcmp_status look_at(struct gradcmp_checkpoint *checkpoint, struct found *found,
                                   struct gradcmp_error *error) {
    found->stored = checkpoint->catalogue.stored_count;
    found->sources = checkpoint->catalogue.source_count;
    found->notes = checkpoint->catalogue.note_count;
    found->states = checkpoint->state_count;
    for (size_t i = 0; i < checkpoint->state_count; i++) {
        const struct gradcmp_model *model;
        GCMP_TRY(gcmp_checkpoint_model(checkpoint, checkpoint->states[i], &model, error));
        found->parameters += model->count;
        for (size_t k = 0; k < model->count; k++) {
            found->slabs += model->parameters[k].slab_count;
        }
    }
    return resolve_some(checkpoint, found, error);
}

static enum gradcmp_status run(const char *path, struct found *found, struct gradcmp_error *error) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    memset(found, 0, sizeof *found);
    memset(error, 0, sizeof *error);
    memset(calls, 0, sizeof calls);
    is_armed = true;
    enum gradcmp_status status = gcmp_checkpoint_open(path, NULL, &checkpoint, error);
    if (status == GRADCMP_OK) {
        status = look_at(checkpoint, found, error);
    }
    is_armed = false;
    gradcmp_checkpoint_free(checkpoint);
    return status;
}

/* --- every n --- */

static unsigned wrong; /* runs that ended in another way */

static void check_run(const char *path, enum kind kind, long n, const struct found *plain) {
    static const enum gradcmp_status expected[KINDS] = {GRADCMP_ERROR_MEMORY, GRADCMP_ERROR_IO};
    struct found found;
    struct gradcmp_error error;
    fail_at[kind] = n;
    enum gradcmp_status status = run(path, &found, &error);
    fail_at[kind] = 0;
    if (status == GRADCMP_OK ? memcmp(&found, plain, sizeof found) != 0
                             : status != expected[kind] || error.code != status) {
        print_error("%s: call %ld of kind %d: status %d: %zu parameters of %zu: %s: %s\n", path, n,
                    (int)kind, (int)status, found.parameters, plain->parameters, error.path,
                    error.message);
        wrong++;
    }
}

static void check_sample(const char *name, enum kind kind) {
    char path[512];
    struct found plain;
    struct gradcmp_error error;
    const char *how = getenv("GRADCMP_FAULTS");
    bool all = how != NULL && strcmp(how, "all") == 0;
    snprintf(path, sizeof path, "%s/%s", GCMP_TEST_DATA, name);
    if (run(path, &plain, &error) != GRADCMP_OK) {
        fail_msg("%s: undisturbed: %s: %s", path, error.path, error.message);
    }
    long count = calls[kind];
    assert_true(count > 0 && plain.parameters > 0);
    long step = all || count <= MOST_RUNS ? 1 : count / MOST_RUNS + 1;
    for (long n = 1; n <= count; n += n < FIRST_RUNS ? 1 : step) { /* looking comes first */
        check_run(path, kind, n, &plain);
    }
    check_run(path, kind, count + 1, &plain); /* the call that is not made */
}

static const char *const samples[] = {
    "megatron/tp2dp2",
    "megatron/moe_tp2ep2",
    "megatron/dr_dp2",
    "megatron/fr_tp2_singleton",
    "gathered/tp2",
    "dcp/betas_flat",
    "dcp/groups_own",
    "dcp/groups_own_flat",
    "dcp/trainer2",
    "deepspeed/stage0",
    "deepspeed/stage1_bf16",
    "deepspeed/stage2_groups",
    "deepspeed/stage3",
    "deepspeed/experts",
    "deepspeed/pipeline",
    "deepspeed/universal_stage3",
    "legacy/pp2_tied",
    "legacy/moe_ep2",
    "legacy/arrays",
    "legacy/plain_moe_tp2ep2",
    "npu/numpy_tp2",
    "npu/tag_tp2pp2",
    "safetensors/consolidated",
    "safetensors/per_rank",
    "safetensors/sharded",
    "torch_save/apart",
    "torch_save/buffers.pt",
    "torch_save/fsdp1_sharded",
    "torch_save/fsdp2",
    "torch_save/groups.pt",
    "torch_save/groups_stream.pt",
    "torch_save/replicas",
    "torch_save/tensor_parallel",
    "torch_save/tied.pt",
    "zarr/zarr2_gzip",
    "zarr/zarr2_raw",
    "zarr/zarr2_zstd",
    "zarr/zarr3",
};

static void test_open__any_allocation_that_fails_is_told(void **state) {
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check_sample(samples[i], ALLOC);
    }
    assert_int_equal(wrong, 0);
}

static void test_open__any_read_that_fails_is_told(void **state) {
    (void)state;
    wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        check_sample(samples[i], READ);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__any_allocation_that_fails_is_told),
        cmocka_unit_test(test_open__any_read_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
