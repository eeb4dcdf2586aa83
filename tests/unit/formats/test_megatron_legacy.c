/* Legacy Megatron checkpoints: what is found in the files of ranks, and what is refused. */
#include "sample_tools.h"

#include "formats/megatron_legacy.h"

#define SAMPLE(name) GCMP_TEST_DATA "/legacy/" name "/iter_0000001"
#define BAD(name)    GCMP_TEST_DATA "/bad/legacy/" name "/iter_0000001"

/* The stored tensor of a rank's chunk; -1: any chunk. */
static const struct gradcmp_stored *find_of_rank(const struct opened *opened, const char *name,
                                                 const char *state, int32_t tp, int32_t pp,
                                                 int32_t vp) {
    for (size_t i = 0; i < opened->catalogue.stored_count; i++) {
        const struct gradcmp_stored *stored = &opened->catalogue.stored[i];
        const struct gradcmp_coords *coords = stored->pieces[0].coords;
        if (stored->state != NULL && strcmp(stored->name, name) == 0 &&
            strcmp(stored->state, state) == 0 && coords->tp == tp && coords->pp == pp &&
            (vp < 0 || coords->vp == vp)) {
            return stored;
        }
    }
    return NULL;
}

static void test_megatron_legacy_probe__by_content(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int strength;
    } cases[] = {
        {SAMPLE("moe_ep2"), 2},
        {SAMPLE("pp2vp2_uneven"), 2},
        {GCMP_TEST_DATA "/legacy/moe_ep2", 0},
        {GCMP_TEST_DATA "/wgrads/base/wgrads/iter_0000001", 0},
        {GCMP_TEST_DATA "/megatron/s_base/iter_0000001", 0},
        {SAMPLE("moe_ep2") "/mp_rank_00_000", 2},
        {SAMPLE("moe_ep2") "/mp_rank_00_000/model_optim_rng.pt", 2},
        {SAMPLE("moe_ep2") "/mp_rank_00_000/distrib_optim.pt", 0},
        {SAMPLE("bucket_size") "/mp_rank_00/model_optim_rng.pt", 0}, /* all there is */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gcmp_dir *dir;
        assert_int_equal(gcmp_dir_open(cases[i].path, &dir, NULL), GRADCMP_OK);
        if (gcmp_format_megatron_legacy.probe(dir) != cases[i].strength) {
            fail_msg("%s", cases[i].path);
        }
        gcmp_dir_close(dir);
    }
}

static void test_megatron_legacy__chunks_and_their_buffers(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("pp2vp2_uneven"));
    const struct gradcmp_stored *norm =
        find_of_rank(opened, "decoder.layers.0.input_layernorm.weight", "param", 0, 1, 1);
    assert_non_null(norm);
    assert_int_equal(norm->layout, GRADCMP_LAYOUT_LOCAL);
    assert_int_equal(norm->dtype, GRADCMP_DTYPE_BFLOAT16);
    assert_string_equal(norm->key,
                        "mp_rank_00_001: model1.decoder.layers.0.input_layernorm.weight");
    const struct gradcmp_stored *buffer = find_of_rank(opened, "gbuf_idx_1", "exp_avg", 0, 1, -1);
    assert_non_null(buffer);
    assert_int_equal(buffer->layout, GRADCMP_LAYOUT_LOCAL_BUFFER);
    assert_int_equal(buffer->ndim, 1);
    assert_int_equal(buffer->pieces[0].coords->vp, -1);
    assert_non_null(find_of_rank(opened, "gbuf_idx_0", "fp32_param", 0, 0, -1));
    assert_int_equal(opened->catalogue.parallel.vp, 2);
    assert_int_equal(opened->catalogue.parallel.pp, 2);
    close_format(opened);
}

static void test_megatron_legacy__views_of_one_record_share_a_source(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("bucket_views"));
    const struct gradcmp_stored *first =
        find_of_rank(opened, "embedding.word_embeddings.weight", "param", 0, 0, 0);
    const struct gradcmp_stored *last =
        find_of_rank(opened, "output_layer.weight", "param", 0, 0, 0);
    assert_int_equal(first->pieces[0].source, last->pieces[0].source);
    assert_int_equal(last->pieces[0].offset_elems, 0);
    assert_true(first->pieces[0].offset_elems > 0);
    close_format(opened);
}

static void test_megatron_legacy__chained_optimizers_and_buckets_are_named(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("moe_ep2"));
    assert_non_null(find_of_rank(opened, "chained_0.gbuf_idx_0", "exp_avg", 0, 0, -1));
    assert_non_null(find_of_rank(opened, "chained_1.gbuf_idx_0", "exp_avg", 0, 0, -1));
    close_format(opened);
    opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("buckets_apart"));
    assert_non_null(find_of_rank(opened, "gbuf_idx_0.bucket_idx_0", "exp_avg", 0, 0, -1));
    assert_non_null(find_of_rank(opened, "gbuf_idx_0.bucket_idx_3", "exp_avg", 0, 0, -1));
    close_format(opened);
}

/* Numbers run over the groups; the first group of a stage without an embedding is that of vectors.
 */
static void test_megatron_legacy__numbers_become_names(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("fp32_pp2"));
    const struct gradcmp_stored *norm =
        find_of_rank(opened, "decoder.layers.0.input_layernorm.weight", "exp_avg", 0, 1, 0);
    const struct gradcmp_stored *output =
        find_of_rank(opened, "output_layer.weight", "exp_avg_sq", 0, 1, 0);
    assert_string_equal(norm->key, "mp_rank_00_001: optimizer.state.0.exp_avg");
    assert_string_equal(output->key, "mp_rank_00_001: optimizer.state.7.exp_avg_sq");
    assert_int_equal(norm->layout, GRADCMP_LAYOUT_LOCAL);
    assert_null(find_of_rank(opened, "output_layer.weight", "step", 0, 1, 0));
    assert_null(find_of_rank(opened, "output_layer.weight", "fp32_param", 0, 1, 0));
    close_format(opened);
    opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("plain_moe_tp2ep2"));
    const struct gradcmp_stored *master = find_of_rank(opened, "mlp.x", "fp32_param", 0, 0, 0);
    assert_null(master);
    master = find_of_rank(opened, "decoder.layers.0.mlp.experts.local_experts.1.linear_fc2.weight",
                          "fp32_param", 1, 0, 0);
    assert_string_equal(master->key,
                        "mp_rank_01_001: optimizer.fp32_from_fp16_params.0.master_param");
    close_format(opened);
}

/* Ascend: a weight inside of the pickle is an item, and decodes to the type that it had. */
static void test_megatron_legacy__arrays_are_items(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, SAMPLE("arrays"));
    const struct gradcmp_stored *weight =
        find_of_rank(opened, "decoder.layers.0.mlp.linear_fc1.weight", "param", 0, 0, 0);
    const struct gradcmp_source *source = &opened->catalogue.sources[weight->pieces[0].source];
    struct gradcmp_extent extent = {0};
    assert_int_equal(source->kind, GRADCMP_SOURCE_ITEM);
    assert_int_equal(weight->dtype, GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(opened->catalogue.format->resolve(&opened->catalogue, weight->pieces[0].source,
                                                       &extent, NULL),
                     GRADCMP_OK);
    assert_int_equal(extent.dtype, GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(extent.length_bytes, 2 * 12 * 4);
    assert_int_equal(extent.stride[0], 1); /* columns first */
    assert_int_equal(extent.stride[1], 12);
    free(extent.decoded);
    close_format(opened);
}

static void test_megatron_legacy__value_that_bfloat16_has_not(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, BAD("array_not_bf16"));
    const struct gradcmp_stored *weight =
        find_of_rank(opened, "decoder.layers.0.self_attention.linear_qkv.weight", "param", 0, 0, 0);
    struct gradcmp_extent extent = {0};
    struct gradcmp_error error = {0};
    assert_int_equal(opened->catalogue.format->resolve(&opened->catalogue, weight->pieces[0].source,
                                                       &extent, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_null(extent.decoded);
    assert_string_equal(error.message,
                        "torch: an array that stands for bfloat16 holds a value that "
                        "bfloat16 has not");
    assert_true(error.offset_bytes != GRADCMP_NO_OFFSET);
    close_format(opened);
}

/* A rank's file that changes between opening and reading. */
static void test_megatron_legacy__array_that_changed(void **state) {
    char *temp = temp_dir_make(), command[600];
    (void)state;
    snprintf(command, sizeof command, "cp -r '%s' '%s/a'", SAMPLE("arrays"), temp);
    assert_int_equal(system(command), 0);
    char *path = temp_path(temp, "a");
    struct opened *opened = open_good(&gcmp_format_megatron_legacy, path);
    const struct gradcmp_stored *weight =
        find_of_rank(opened, "output_layer.weight", "param", 0, 0, 0);
    uint64_t at = opened->catalogue.sources[weight->pieces[0].source].offset_bytes;
    char *file = temp_path(path, "mp_rank_00/model_optim_rng.pt");
    FILE *stream = fopen(file, "r+b");
    assert_int_equal(fseek(stream, (long)at + 1, SEEK_SET), 0);
    assert_int_equal(fputc(0xff, stream), 0xff);
    assert_int_equal(fclose(stream), 0);
    struct gradcmp_extent extent = {0};
    struct gradcmp_error error = {0};
    assert_int_equal(opened->catalogue.format->resolve(&opened->catalogue, weight->pieces[0].source,
                                                       &extent, &error),
                     GRADCMP_ERROR_CORRUPT);
    assert_string_equal(error.message, "torch: the file changed while it was read");
    close_format(opened);
    free(file);
    free(path);
    temp_dir_remove(temp);
}

/* One rank of several is not the checkpoint. */
static void test_megatron_legacy__one_rank_alone_is_refused(void **state) {
    (void)state;
    static const char message[] = "the files of one rank: name the folder of the iteration, which "
                                  "holds all mp_rank_*";
    check_refused_open(&gcmp_format_megatron_legacy, SAMPLE("moe_ep2") "/mp_rank_00_000",
                       GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "mp_rank_00_000", message);
    check_refused_open(&gcmp_format_megatron_legacy,
                       SAMPLE("moe_ep2") "/mp_rank_00_000/model_optim_rng.pt",
                       GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "model_optim_rng.pt", message);
}

static void test_megatron_legacy__damage_is_refused(void **state) {
    (void)state;
#define QKV "decoder.layers.0.self_attention.linear_qkv.weight"
    static const struct {
        const char *path;
        enum gradcmp_status code;
        const char *path_end, *message;
    } cases[] = {
        {BAD("rank_missing"), GRADCMP_ERROR_CORRUPT, "iter_0000001",
         "incomplete: mp_rank_01 is missing (1 files; *"},
        {BAD("moe_hole"), GRADCMP_ERROR_CORRUPT, "iter_0000001",
         "incomplete: with tensor-parallel 4, but expert-parallel 2 times "
         "expert-tensor-parallel 1, ranks from 2 on wrote no file*"},
        {BAD("iteration_of_another"), GRADCMP_ERROR_CORRUPT, "mp_rank_01/model_optim_rng.pt",
         "iteration 2, but the first rank's file is of iteration 1"},
        {BAD("no_model"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/model_optim_rng.pt",
         "expected a dict with \"model\" or \"model0\", found a dict without"},
        {BAD("model_is_list"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/model_optim_rng.pt",
         "expected a dict of tensors, found a list"},
        {BAD("chunk_order"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/model_optim_rng.pt",
         "expected the chunks of the model in order, found \"model1\" as number 0"},
        {BAD("dicts_deep"), GRADCMP_ERROR_LIMIT, "mp_rank_00/model_optim_rng.pt",
         "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: dicts nested more than 16 deep"},
        {BAD("tensor_unknown"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/model_optim_rng.pt",
         "mp_rank_00: model." QKV
         ": torch: a tensor made by \"torch_x.storage _rebuild_blocked_tensor\" is not read"},
        {BAD("weight_unknown_call"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/model_optim_rng.pt",
         "mp_rank_00: model." QKV
         ": torch: a tensor made by \"torch_x.storage _rebuild_blocked_tensor\" is not read"},
        {BAD("array_text"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/model_optim_rng.pt",
         "mp_rank_00: model." QKV ": torch: expected the bytes of an array, found a text"},
        {BAD("array_short"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/model_optim_rng.pt",
         "mp_rank_00: model." QKV ": torch: an array of 124 bytes, its shape says 128"},
        {BAD("array_type"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/model_optim_rng.pt",
         "mp_rank_00: model." QKV
         ": torch: an array of float32 that stands for a tensor of \"torch float64\" is not read"},
        {BAD("buffer_axes"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/distrib_optim.pt",
         "mp_rank_00/distrib_optim.pt: gbuf_idx_0.exp_avg: expected a flat tensor, found one of 2 "
         "axes"},
        {BAD("buffer_numel"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/distrib_optim.pt",
         "mp_rank_00/distrib_optim.pt: gbuf_idx_0.param: numel_unpadded is 553, but the buffer has "
         "552 elements"},
        {BAD("buffer_types"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/distrib_optim.pt",
         "expected one type of elements in buffer 0, found 2"},
        {BAD("buffer_none"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/distrib_optim.pt",
         "expected a dict of numbered buffers, found a dict without"},
        {BAD("plain_numbers"), GRADCMP_ERROR_UNSUPPORTED, "mp_rank_00/model_optim_rng.pt",
         "the optimizer numbers 11 parameters, but the rank holds 9 weights"},
        {BAD("plain_shapes"), GRADCMP_ERROR_CORRUPT, "mp_rank_00/model_optim_rng.pt",
         "optimizer.state.0.exp_avg_sq: another shape than mp_rank_00: "
         "model.embedding.word_embeddings.weight has"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_folder = strcmp(cases[i].path_end, "iter_0000001") == 0;
        check_refused_open(&gcmp_format_megatron_legacy, cases[i].path, cases[i].code,
                           is_folder ? GRADCMP_NO_OFFSET : ANY_OFFSET, cases[i].path_end,
                           cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_megatron_legacy_probe__by_content),
        cmocka_unit_test(test_megatron_legacy__chunks_and_their_buffers),
        cmocka_unit_test(test_megatron_legacy__views_of_one_record_share_a_source),
        cmocka_unit_test(test_megatron_legacy__chained_optimizers_and_buckets_are_named),
        cmocka_unit_test(test_megatron_legacy__numbers_become_names),
        cmocka_unit_test(test_megatron_legacy__arrays_are_items),
        cmocka_unit_test(test_megatron_legacy__value_that_bfloat16_has_not),
        cmocka_unit_test(test_megatron_legacy__array_that_changed),
        cmocka_unit_test(test_megatron_legacy__one_rank_alone_is_refused),
        cmocka_unit_test(test_megatron_legacy__damage_is_refused),
    };
    return cmocka_run_group_tests_name("megatron legacy", tests, NULL, NULL);
}
