/* Legacy Megatron checkpoints from files to parameters: every element of every copy is read through
 * the slabs and must be what tests/data/legacy/make.py says of its name and its place. */
#include "temp_tools.h"

#include "checkpoint.h"

/* What a sample must be made of. */
struct sample {
    const char *folder;
    size_t parameters;
    int64_t layers;
    size_t without_master;
};

static struct gradcmp_checkpoint *open_sample(const char *folder) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    struct gradcmp_error error = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/legacy/%s", GCMP_TEST_DATA, folder);
    if (gcmp_checkpoint_open(path, NULL, &checkpoint, &error) != GRADCMP_OK) {
        fail_msg("%s: %s: %s", folder, error.path, error.message);
    }
    return checkpoint;
}

static const struct gradcmp_model *model_of(struct gradcmp_checkpoint *checkpoint,
                                            const char *state) {
    const struct gradcmp_model *model = NULL;
    struct gradcmp_error error = {0};
    if (gcmp_checkpoint_model(checkpoint, state, &model, &error) != GRADCMP_OK) {
        fail_msg("%s: %s: %s", checkpoint->path, state, error.message);
    }
    return model;
}

static double expected_value(const char *name, const char *state, uint64_t index) {
    unsigned sum = 0;
    for (const char *at = name; *at != '\0'; at++) {
        sum += (unsigned char)*at;
    }
    double more = strcmp(state, "fp32_param") == 0   ? 0.25
                  : strcmp(state, "exp_avg_sq") == 0 ? 0.5
                                                     : 0.0;
    return 1000.0 * (sum % 997) + (double)index + more;
}

static double read_source(const struct gradcmp_catalogue *catalogue, uint32_t source,
                          int64_t element) {
    const struct gradcmp_source *from = &catalogue->sources[source];
    float value;
    assert_int_equal(from->kind, GRADCMP_SOURCE_RANGE);
    assert_true(element >= 0 && ((uint64_t)element + 1) * sizeof value <= from->length_bytes);
    assert_int_equal(gcmp_dir_read(catalogue->dir, from->file,
                                   from->offset_bytes + (uint64_t)element * sizeof value, &value,
                                   sizeof value, NULL),
                     GRADCMP_OK);
    return (double)value;
}

/* Check the elements of a slab; returns how many there are. */
static uint64_t check_slab(const struct gradcmp_catalogue *catalogue,
                           const struct gradcmp_parameter *parameter,
                           const struct gradcmp_slab *slab) {
    uint64_t elems = 1;
    assert_non_null(slab->coords);
    for (unsigned d = 0; d < parameter->ndim; d++) {
        elems *= slab->extent[d];
    }
    for (uint64_t i = 0; i < elems; i++) {
        uint64_t rest = i, index = 0, place = 1;
        int64_t element = slab->offset_elems;
        for (unsigned d = parameter->ndim; d-- > 0;) {
            uint64_t step = rest % slab->extent[d];
            rest /= slab->extent[d];
            index += (slab->start[d] + step) * place;
            place *= parameter->shape[d];
            element += (int64_t)step * slab->stride[d];
        }
        double found = read_source(catalogue, slab->source, element);
        double expected = expected_value(parameter->name, parameter->state, index);
        if (found != expected) {
            fail_msg("%s %s: element %llu is %g, expected %g", parameter->name, parameter->state,
                     (unsigned long long)index, found, expected);
        }
    }
    return elems;
}

static void check_parameter(const struct gradcmp_catalogue *catalogue,
                            const struct gradcmp_parameter *parameter) {
    uint64_t elems = 0;
    for (size_t i = 0; i < parameter->slab_count; i++) {
        elems += check_slab(catalogue, parameter, &parameter->slabs[i]);
    }
    assert_int_equal(elems, parameter->elem_count * parameter->copy_count);
    assert_int_equal(parameter->overlap, 0);
}

static void check_states(struct gradcmp_checkpoint *checkpoint, const struct sample *sample) {
    static const char *const states[] = {"exp_avg", "exp_avg_sq", "fp32_param"};
    for (size_t s = 0; s < 3; s++) {
        if (s == 2 && !gcmp_checkpoint_has_state(checkpoint, states[s])) {
            continue; /* of a 32-bit run */
        }
        const struct gradcmp_model *model = model_of(checkpoint, states[s]);
        size_t fewer = s == 2 ? sample->without_master : 0;
        assert_int_equal(model->count, sample->parameters - fewer);
        assert_int_equal(model->layers, sample->layers);
        for (size_t i = 0; i < model->count; i++) {
            check_parameter(&checkpoint->catalogue, &model->parameters[i]);
        }
    }
}

static void check_sample(struct sample sample) {
    struct gradcmp_checkpoint *checkpoint = open_sample(sample.folder);
    check_states(checkpoint, &sample);
    assert_int_equal(checkpoint->catalogue.iteration, 1);
    gradcmp_checkpoint_free(checkpoint);
}

static void expect_copies(const char *folder, const char *name, uint32_t copies, bool replicated) {
    struct gradcmp_checkpoint *checkpoint = open_sample(folder);
    const struct gradcmp_parameter *parameter =
        gcmp_model_find(model_of(checkpoint, "exp_avg"), name);
    assert_non_null(parameter);
    assert_int_equal(parameter->copy_count, copies);
    assert_int_equal(parameter->replicated, replicated);
    gradcmp_checkpoint_free(checkpoint);
}

static void test_legacy__chunks_of_different_depth(void **state) {
    (void)state;
    check_sample((struct sample){"pp2vp2_uneven", 33, 5, 0});
    check_sample((struct sample){"noop_pp2", 15, 4, 0});
}

static void test_legacy__square_shards_by_what_stands_beside(void **state) {
    (void)state;
    check_sample((struct sample){"tp4_square", 16, 1, 0});
    expect_copies("tp4_square", "embedding.position_embeddings.weight", 4, true);
    expect_copies("tp4_square", "decoder.layers.0.mlp.linear_fc1.bias", 1, false);
    expect_copies("tp4_square", "decoder.layers.0.mlp.linear_fc2.bias", 4, true);
    expect_copies("tp4_square", "decoder.layers.0.mlp.linear_fc2.weight", 1, false);
}

static void test_legacy__buckets(void **state) {
    (void)state;
    check_sample((struct sample){"pp2_tied", 15, 2, 0});
    check_sample((struct sample){"bucket_size", 15, 2, 0});
    check_sample((struct sample){"bucket_views", 15, 2, 0});
    check_sample((struct sample){"buckets_apart", 15, 2, 0});
}

static void test_legacy__experts(void **state) {
    (void)state;
    check_sample((struct sample){"moe_tp2ep2", 16, 1, 0});
    check_sample((struct sample){"moe_ep2", 16, 1, 0});
    check_sample((struct sample){"moe_tp2etp2", 12, 1, 0});
    expect_copies("moe_tp2ep2", "decoder.layers.0.mlp.router.weight", 2, true);
    expect_copies("moe_tp2ep2", "decoder.layers.0.mlp.experts.experts.3.linear_fc1.weight", 1,
                  false);
    expect_copies("moe_ep2", "decoder.layers.0.mlp.router.weight", 1, false);
    expect_copies("moe_tp2etp2", "decoder.layers.0.mlp.experts.experts.1.linear_fc2.weight", 1,
                  false);
}

static void test_legacy__optimizers_of_each_rank(void **state) {
    (void)state;
    check_sample((struct sample){"fp32_pp2", 15, 2, 0});
    check_sample((struct sample){"plain_moe_tp2ep2", 16, 1, 1});
}

static void test_legacy__latent_attention(void **state) {
    (void)state;
    check_sample((struct sample){"latent_tp2", 14, 1, 0});
    expect_copies("latent_tp2", "decoder.layers.0.self_attention.linear_kv_down_proj.weight", 2,
                  true);
    expect_copies("latent_tp2", "decoder.layers.0.self_attention.linear_kv_up_proj.weight", 1,
                  false);
}

/* The nearest bfloat16, of two the even one. */
static uint16_t round_to_bfloat16(double value) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Weights are the rounded masters; they are read as reports read them. */
static void check_weights(const char *folder) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    char path[512];
    size_t looked_at = 0;
    snprintf(path, sizeof path, "%s/legacy/%s", GCMP_TEST_DATA, folder);
    assert_int_equal(gradcmp_checkpoint_open(path, NULL, &checkpoint, NULL), GRADCMP_OK);
    for (size_t i = 0; i < gradcmp_checkpoint_tensor_count(checkpoint); i++) {
        struct gradcmp_tensor_info info;
        gradcmp_checkpoint_tensor(checkpoint, i, &info);
        if (strcmp(info.state, "param") != 0 || info.dtype != GRADCMP_DTYPE_BFLOAT16) {
            continue;
        }
        uint64_t elems = 1;
        for (unsigned d = 0; d < info.ndim; d++) {
            elems *= info.shape[d];
        }
        uint16_t *values = malloc(elems * sizeof *values);
        assert_int_equal(
            gradcmp_checkpoint_read(checkpoint, i, values, elems * sizeof *values, NULL),
            GRADCMP_OK);
        for (uint64_t e = 0; e < elems; e++) {
            double master = expected_value(info.name, "fp32_param", e);
            if (values[e] != round_to_bfloat16(master)) {
                fail_msg("%s: %s: element %llu is %04x", folder, info.name, (unsigned long long)e,
                         values[e]);
            }
        }
        free(values);
        looked_at++;
    }
    assert_true(looked_at > 8);
    gradcmp_checkpoint_free(checkpoint);
}

static void test_legacy__weights(void **state) {
    (void)state;
    check_weights("moe_tp2ep2");
    check_weights("pp2vp2_uneven");
    check_weights("tp4_square");
    check_weights("latent_tp2");
}

static void test_legacy__weights_inside_of_the_pickle(void **state) {
    (void)state;
    check_weights("arrays");
    check_weights("arrays_protocol4");
}

static void test_legacy__arguments(void **state) {
    (void)state;
    struct gradcmp_checkpoint *checkpoint = open_sample("moe_tp2ep2");
    const struct gradcmp_catalogue *catalogue = &checkpoint->catalogue;
    assert_int_equal(catalogue->parallel.tp, 2);
    assert_int_equal(catalogue->parallel.ep, 2);
    assert_int_equal(catalogue->parallel.etp, 1);
    assert_int_equal(catalogue->experts, 4);
    assert_int_equal(catalogue->vocab, 10);
    assert_int_equal(catalogue->compute, GRADCMP_DTYPE_BFLOAT16);
    assert_false(catalogue->is_dump);
    assert_string_equal(catalogue->layout_name, "distrib_optim.pt");
    gradcmp_checkpoint_free(checkpoint);
}

/* Where the fault shows only when parameters are made. */
static void expect_refused(const char *folder, enum gradcmp_status code, const char *message) {
    struct gradcmp_checkpoint *checkpoint = NULL;
    const struct gradcmp_model *model;
    struct gradcmp_error error = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/bad/legacy/%s", GCMP_TEST_DATA, folder);
    assert_int_equal(gcmp_checkpoint_open(path, NULL, &checkpoint, &error), GRADCMP_OK);
    if (gcmp_checkpoint_model(checkpoint, "exp_avg", &model, &error) != code ||
        strncmp(error.message, message, strlen(message)) != 0) {
        fail_msg("%s: expected %d \"%s\", found %d \"%s\"", folder, (int)code, message,
                 (int)error.code, error.message);
    }
    gradcmp_checkpoint_free(checkpoint);
}

static void test_legacy__layouts_that_do_not_fit_are_refused(void **state) {
    (void)state;
    expect_refused("buffer_short", GRADCMP_ERROR_UNSUPPORTED,
                   "mp_rank_00/distrib_optim.pt: gbuf_idx_0.param: 488 elements; its 9 weights "
                   "have 212, and no rule of alignment and buckets makes them as long; save with "
                   "--ckpt-format torch_dist --dist-ckpt-optim-fully-reshardable");
    expect_refused("buffer_extra", GRADCMP_ERROR_UNSUPPORTED,
                   "mp_rank_00/distrib_optim.pt: gbuf_idx_1.param: 552 elements; its 0 weights");
    expect_refused("buffer_missing", GRADCMP_ERROR_CORRUPT,
                   "incomplete: fp32_param of 1 tensor-parallel ranks, but the run had 2");
    expect_refused("weight_absent", GRADCMP_ERROR_UNSUPPORTED,
                   "mp_rank_01/distrib_optim.pt: gbuf_idx_0.param: 532 elements; its 8 weights");
    expect_refused("weight_shape", GRADCMP_ERROR_CORRUPT,
                   "mp_rank_01/distrib_optim.pt: gbuf_idx_0.param, "
                   "decoder.layers.0.self_attention.linear_qkv.weight: shape [3, 4], but "
                   "mp_rank_00/distrib_optim.pt: gbuf_idx_0.param, "
                   "decoder.layers.0.self_attention.linear_qkv.weight has [4, 4]");
    expect_refused("layers_fewer", GRADCMP_ERROR_CORRUPT,
                   "the ranks' files hold 1 layers, but the run has 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legacy__chunks_of_different_depth),
        cmocka_unit_test(test_legacy__square_shards_by_what_stands_beside),
        cmocka_unit_test(test_legacy__buckets),
        cmocka_unit_test(test_legacy__experts),
        cmocka_unit_test(test_legacy__optimizers_of_each_rank),
        cmocka_unit_test(test_legacy__latent_attention),
        cmocka_unit_test(test_legacy__weights),
        cmocka_unit_test(test_legacy__weights_inside_of_the_pickle),
        cmocka_unit_test(test_legacy__arguments),
        cmocka_unit_test(test_legacy__layouts_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests_name("legacy files", tests, NULL, NULL);
}
