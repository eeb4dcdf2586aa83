/* Good distributed checkpoints of several writers: what is listed, and where its bytes are. */
#include "formats/dcp_tools.h"

#include <pthread.h>
#include <zlib.h>

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

#define DCP_DATA      GCMP_TEST_DATA "/dcp/"
#define MEGATRON_DATA GCMP_TEST_DATA "/megatron/"

/* Copy a fixture that is metadata alone, and make its shards. */
static struct dcp_case *open_with_shards(void **state, const char *fixture) {
    char from[1024];
    snprintf(from, sizeof from, "%s%s", DCP_DATA, fixture);
    copy_files(from, *state);
    make_shards(*state);
    return dcp_open_good(*state);
}

/* Every element of a tensor lies in exactly one piece, when pieces are disjoint as here. */
static void expect_covered(const struct gradcmp_stored *stored) {
    uint64_t total = 1, sum = 0;
    for (unsigned d = 0; d < stored->ndim; d++) {
        total *= stored->shape[d];
    }
    for (size_t i = 0; i < stored->piece_count; i++) {
        uint64_t elems = 1;
        for (unsigned d = 0; d < stored->ndim; d++) {
            elems *= stored->pieces[i].extent[d];
        }
        assert_true(elems > 0);
        sum += elems;
    }
    assert_int_equal(sum, total);
}

static int probe(const char *path) {
    struct gcmp_dir *dir = NULL;
    assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
    int strength = gcmp_format_torch_dist.probe(dir);
    gcmp_dir_close(dir);
    return strength;
}

static void test_probe__tells_by_content(void **state) {
    assert_int_equal(probe(DCP_DATA "trainer2"), 2);
    assert_int_equal(probe(DCP_DATA "perrank2"), 2);
    assert_int_equal(probe(DCP_DATA "trainer2/.metadata"), 0);
    assert_int_equal(probe(*state), 0);
    temp_file(*state, "x.distcp", "x", 1);
    assert_int_equal(probe(*state), 0);
    temp_file(*state, "metadata.json", "{}", 2);
    assert_int_equal(probe(*state), 1);
}

static void test_formats__table_has_it(void **state) {
    (void)state;
    const struct gradcmp_format *const *formats = gcmp_formats();
    bool found = false;
    for (; *formats != NULL; formats++) {
        found = found || strcmp((*formats)->name, "torch_dist") == 0;
        assert_non_null((*formats)->description);
        assert_non_null((*formats)->probe);
        assert_non_null((*formats)->open);
    }
    assert_true(found);
}

static void test_open__torch24_two_files_a_rank(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(DCP_DATA "threads2_torch24");
    assert_int_equal(dcp->catalogue.stored_count, 50);
    assert_int_equal(dcp->catalogue.source_count, 89);
    assert_string_equal(dcp->catalogue.writer, "torch");
    assert_int_equal(dcp->catalogue.iteration, -1);
    assert_int_equal(gcmp_dir_file_count(dcp->catalogue.dir), 4);
    const struct gradcmp_stored *wq =
        dcp_find(dcp, "optim.state.layers.0.attention.wq.weight.exp_avg");
    assert_int_equal(wq->dtype, GRADCMP_DTYPE_FLOAT32);
    assert_int_equal(wq->layout, GRADCMP_LAYOUT_MODEL);
    assert_int_equal(wq->ndim, 2);
    assert_int_equal(wq->piece_count, 2);
    expect_covered(wq);
    expect_key(dcp, wq->key, "layers.0.attention.wq.weight", "exp_avg");
    expect_key(dcp, "optim.param_groups.0.lr", "optim.param_groups.0.lr", NULL);
    assert_int_equal(dcp_find(dcp, "optim.param_groups.0.lr")->piece_count, 1);
    assert_int_equal(dcp_resolve_all(dcp), 78);
    dcp_close(dcp);
}

static void test_open__trainer_layout(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(DCP_DATA "trainer2");
    expect_key(dcp, "layers.0.weight", "layers.0.weight", "param");
    expect_key(dcp, "optimizer.state.layers.0.weight.exp_avg", "layers.0.weight", "exp_avg");
    expect_key(dcp, "optimizer.state.tok.weight.step", "tok.weight", "step");
    expect_key(dcp, "optimizer.param_groups.tok.weight.lr", "optimizer.param_groups.tok.weight.lr",
               NULL);
    expect_key(dcp, "rng_state.rank_0.torch", "rng_state.rank_0.torch", NULL);
    expect_key(dcp, "train_state.step", "train_state.step", NULL);
    expect_key(dcp, "dataloader.dp_rank_0", "dataloader.dp_rank_0", NULL);
    assert_int_equal(dcp_find(dcp, "layers.0.weight")->dtype, GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(dcp_find(dcp, "train_state.step")->dtype, GRADCMP_DTYPE_INT32);
    assert_int_equal(dcp_resolve_all(dcp), 27);
    dcp_close(dcp);
}

static void test_open__integer_ids_become_names(void **state) {
    struct dcp_case *dcp = open_with_shards(state, "rawindex2");
    expect_key(dcp, "model.tok_embeddings.weight", "tok_embeddings.weight", "param");
    expect_key(dcp, "optimizer.state.0.exp_avg", "tok_embeddings.weight", "exp_avg");
    expect_key(dcp, "optimizer.state.1.exp_avg", "layers.0.attention.wq.weight", "exp_avg");
    expect_key(dcp, "optimizer.state.38.exp_avg_sq", "output.weight", "exp_avg_sq");
    expect_key(dcp, "optimizer.state.38.step", "output.weight", "step");
    dcp_close(dcp);
}

static void test_open__metadata_of_each_rank_is_united(void **state) {
    struct dcp_case *dcp = open_with_shards(state, "perrank2");
    assert_int_equal(dcp->catalogue.stored_count, 129);
    assert_int_equal(dcp->catalogue.source_count, 258);
    const struct gradcmp_stored *wq =
        dcp_find(dcp, "optim.state.layers.0.attention.wq.weight.exp_avg");
    assert_int_equal(wq->piece_count, 2);
    expect_covered(wq);
    /* what both ranks wrote is there twice */
    assert_int_equal(dcp_find(dcp, "optim.state.norm.weight.step")->piece_count, 2);
    dcp_close(dcp);
    char *path = temp_path(*state, "__0.metadata");
    assert_int_equal(unlink(path), 0);
    free(path);
    assert_int_equal(probe(*state), 2); /* __1.metadata is still there */
    dcp = dcp_open(*state);
    assert_int_equal(dcp->status, GRADCMP_ERROR_CORRUPT);
    assert_string_equal(dcp->error.message, "save unfinished: __0.metadata is missing");
    dcp_close(dcp);
}

static void test_open__empty_chunks_are_no_pieces(void **state) {
    struct dcp_case *dcp = open_with_shards(state, "uneven4");
    const struct gradcmp_stored *gate = dcp_find(dcp, "optim.state.layers.2.gate.weight.exp_avg");
    assert_int_equal(gate->shape[0], 2);
    assert_int_equal(gate->piece_count, 2);
    for (size_t i = 0; i < dcp->catalogue.stored_count; i++) {
        if (dcp->catalogue.stored[i].dtype != GRADCMP_DTYPE_NONE) {
            expect_covered(&dcp->catalogue.stored[i]);
        }
    }
    dcp_close(dcp);
}

static void test_open__flattened_state_alone(void **state) {
    struct dcp_case *dcp = open_with_shards(state, "flat2");
    expect_key(dcp, "state.norm.weight.exp_avg", "norm.weight", "exp_avg");
    expect_key(dcp, "param_groups.norm.weight.lr", "param_groups.norm.weight.lr", NULL);
    dcp_close(dcp);
}

static void test_open__sources_know_their_pieces(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(DCP_DATA "trainer2");
    for (uint32_t i = 0; i < dcp->catalogue.source_count; i++) {
        const struct gradcmp_source *source = &dcp->catalogue.sources[i];
        assert_true(source->stored < dcp->catalogue.stored_count);
        const struct gradcmp_stored *stored = &dcp->catalogue.stored[source->stored];
        assert_true(source->piece < stored->piece_count);
        assert_int_equal(stored->pieces[source->piece].source, i);
        assert_int_equal(source->kind, GRADCMP_SOURCE_ITEM);
        assert_null(stored->pieces[source->piece].stride);
        assert_null(stored->pieces[source->piece].coords);
    }
    dcp_close(dcp);
}

/* Compute the checksum of a record as it lies in its file. */
static uint32_t checksum(const struct dcp_case *dcp, uint32_t source,
                         const struct gradcmp_extent *extent) {
    unsigned char *bytes = malloc(extent->length_bytes + 1);
    assert_int_equal(gcmp_dir_read(dcp->catalogue.dir, dcp->catalogue.sources[source].file,
                                   extent->offset_bytes, bytes, extent->length_bytes, NULL),
                     GRADCMP_OK);
    uint32_t crc = (uint32_t)crc32_z(0, bytes, extent->length_bytes);
    free(bytes);
    return crc;
}

/* Count the sources whose record differs from its stored checksum. */
static unsigned count_damaged(const char *path) {
    struct dcp_case *dcp = dcp_open_good(path);
    unsigned damaged = 0;
    for (uint32_t i = 0; i < dcp->catalogue.source_count; i++) {
        struct gradcmp_extent extent;
        assert_int_equal(gcmp_format_torch_dist.resolve(&dcp->catalogue, i, &extent, NULL),
                         GRADCMP_OK);
        assert_true(extent.crc32 != 0);
        damaged += checksum(dcp, i, &extent) != extent.crc32;
    }
    dcp_close(dcp);
    return damaged;
}

static void test_resolve__gives_range_and_checksum_of_the_record(void **state) {
    (void)state;
    assert_int_equal(count_damaged(GCMP_TEST_DATA "/bad/dcp/specials"), 0);
    assert_int_equal(count_damaged(GCMP_TEST_DATA "/bad/dcp/flip_data"), 1);
    struct dcp_case *dcp = dcp_open_good(GCMP_TEST_DATA "/bad/dcp/specials");
    const struct gradcmp_stored *w = dcp_find(dcp, "optim.state.w.exp_avg");
    struct gradcmp_extent extent;
    assert_int_equal(
        gcmp_format_torch_dist.resolve(&dcp->catalogue, w->pieces[0].source, &extent, NULL),
        GRADCMP_OK);
    assert_int_equal(extent.dtype, GRADCMP_DTYPE_FLOAT32);
    assert_int_equal(extent.length_bytes, 24);
    assert_int_equal(extent.ndim, 2);
    assert_int_equal(extent.shape[0], 2);
    assert_int_equal(extent.shape[1], 3);
    assert_int_equal(extent.stride[0], 3);
    assert_int_equal(extent.stride[1], 1);
    assert_int_equal(extent.offset_elems, 0);
    assert_null(extent.decoded);
    dcp_close(dcp);
}

static void test_resolve__byte_object_is_not_a_tensor(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(DCP_DATA "trainer2");
    struct gradcmp_extent extent;
    struct gradcmp_error error = {0};
    uint32_t source = dcp_find(dcp, "dataloader.dp_rank_0")->pieces[0].source;
    assert_int_equal(gcmp_format_torch_dist.resolve(&dcp->catalogue, source, &extent, &error),
                     GRADCMP_ERROR_UNSUPPORTED);
    assert_text_contains(error.message, "is not a tensor of numbers");
    dcp_close(dcp);
}

static void *resolve_in_thread(void *dcp) {
    for (int i = 0; i < 5; i++) {
        const struct dcp_case *open = dcp;
        for (uint32_t k = 0; k < open->catalogue.source_count; k++) {
            struct gradcmp_extent extent;
            const struct gradcmp_source *source = &open->catalogue.sources[k];
            if (open->catalogue.stored[source->stored].dtype != GRADCMP_DTYPE_NONE &&
                gcmp_format_torch_dist.resolve(&open->catalogue, k, &extent, NULL) != GRADCMP_OK) {
                return dcp;
            }
        }
    }
    return NULL;
}

static void test_resolve__several_threads_at_once(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(DCP_DATA "threads2_torch24");
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, resolve_in_thread, dcp), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    dcp_close(dcp);
}

static void test_open__unknown_element_type_is_listed_with_a_note(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    static const long long shape[1] = {4}, zero[1] = {0};
    w_begin(writer);
    w_tensor(writer, "a", "quint4x2", 1, shape);
    w_chunk(writer, 1, zero, shape);
    w_tensor_end(writer);
    w_simple(writer, "b", 1, shape);
    w_storage(writer);
    w_entry(writer, "a", 1, zero, "shard");
    w_entry(writer, "b", 1, zero, "shard");
    w_entry(writer, "taken away", 1, zero, "no such file");
    w_finish(writer, *state);
    struct dcp_case *dcp = dcp_open_good(*state);
    assert_int_equal(dcp_find(dcp, "a")->dtype, GRADCMP_DTYPE_NONE);
    expect_key(dcp, "a", "a", NULL);
    expect_key(dcp, "b", "b", "param");
    assert_int_equal(dcp->catalogue.note_count, 1);
    assert_string_equal(dcp->catalogue.notes[0],
                        "1 tensors are not read, for their type: \"a\" (torch quint4x2)");
    dcp_close(dcp);
    free(writer);
}

static void test_open__megatron_fragments(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(MEGATRON_DATA "moe_tp2ep2/iter_0000001");
    const struct gradcmp_catalogue *catalogue = &dcp->catalogue;
    assert_string_equal(catalogue->writer, "megatron-core");
    assert_string_equal(catalogue->layout_name, "fully_sharded_model_space");
    assert_int_equal(catalogue->iteration, 1);
    assert_int_equal(catalogue->layers, 3);
    assert_int_equal(catalogue->experts, 4);
    assert_int_equal(catalogue->vocab, 70);
    assert_int_equal(catalogue->padded_vocab, 80);
    assert_int_equal(catalogue->compute, GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(catalogue->parallel.tp, 2);
    assert_int_equal(catalogue->parallel.ep, 2);
    assert_int_equal(catalogue->parallel.etp, 1);
    assert_int_equal(catalogue->parallel.vp, 0);
    const char *key = "chained_0.optimizer.state.exp_avg.output_layer.weight";
    expect_key(dcp, key, "output_layer.weight", "exp_avg");
    const struct gradcmp_stored *stored = dcp_find(dcp, key);
    assert_int_equal(stored->ndim, 3);
    assert_int_equal(stored->model_ndim, 2);
    assert_int_equal(stored->model_shape[0], 80);
    assert_int_equal(stored->model_shape[1], 32);
    expect_key(dcp, "output_layer.weight", "output_layer.weight", "param");
    assert_null(dcp_find(dcp, "output_layer.weight")->model_shape);
    assert_int_equal(dcp_resolve_all(dcp), 124);
    dcp_close(dcp);
}

static void test_open__megatron_fully_reshardable(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(MEGATRON_DATA "fr_tp2_singleton/iter_0000001");
    assert_string_equal(dcp->catalogue.layout_name, "fully_reshardable");
    expect_key(dcp, "optimizer.state.exp_avg.decoder.layers.0.mlp.linear_fc1.weight_w",
               "decoder.layers.0.mlp.linear_fc1.weight_w", "exp_avg");
    assert_int_equal(dcp_resolve_all(dcp), 106);
    dcp_close(dcp);
}

static void test_open__megatron_buckets_are_marked(void **state) {
    (void)state;
    struct dcp_case *dcp = dcp_open_good(MEGATRON_DATA "dr_dp2/iter_0000001");
    assert_string_equal(dcp->catalogue.layout_name, "dp_reshardable");
    size_t buckets = 0;
    for (size_t i = 0; i < dcp->catalogue.stored_count; i++) {
        const struct gradcmp_stored *stored = &dcp->catalogue.stored[i];
        if (stored->layout != GRADCMP_LAYOUT_BUCKET) {
            continue;
        }
        bool object = stored->dtype == GRADCMP_DTYPE_NONE;
        assert_true(object == (stored->state == NULL));
        if (!object) {
            assert_string_equal(stored->state, "exp_avg");
            buckets++;
        }
    }
    assert_int_equal(buckets, 1);
    dcp_close(dcp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEMP_TEST(test_probe__tells_by_content),
        cmocka_unit_test(test_formats__table_has_it),
        cmocka_unit_test(test_open__torch24_two_files_a_rank),
        cmocka_unit_test(test_open__trainer_layout),
        TEMP_TEST(test_open__integer_ids_become_names),
        TEMP_TEST(test_open__metadata_of_each_rank_is_united),
        TEMP_TEST(test_open__empty_chunks_are_no_pieces),
        TEMP_TEST(test_open__flattened_state_alone),
        cmocka_unit_test(test_open__sources_know_their_pieces),
        cmocka_unit_test(test_resolve__gives_range_and_checksum_of_the_record),
        cmocka_unit_test(test_resolve__byte_object_is_not_a_tensor),
        cmocka_unit_test(test_resolve__several_threads_at_once),
        TEMP_TEST(test_open__unknown_element_type_is_listed_with_a_note),
        cmocka_unit_test(test_open__megatron_fragments),
        cmocka_unit_test(test_open__megatron_fully_reshardable),
        cmocka_unit_test(test_open__megatron_buckets_are_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
