/* Metadata whose chunks and entries cannot be taken while it is read, or only in part: it must be
 * read as if nothing had been tried. */
#include "formats/dcp_tools.h"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static const long long zeros[2] = {0, 0}, twos[2] = {2, 2}, whole[2] = {4, 2}, below[2] = {2, 0};

static struct dcp_case *finish(void **state, struct dcp_writer *writer) {
    w_finish(writer, *state);
    free(writer);
    return dcp_open_good(*state);
}

static void expect_pieces(const struct dcp_case *dcp, const char *key, size_t count) {
    const struct gradcmp_stored *stored = dcp_find(dcp, key);
    assert_int_equal(stored->piece_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct gradcmp_piece *piece = &stored->pieces[i];
        assert_int_equal(piece->start[0], 2 * i);
        assert_int_equal(piece->extent[0], stored->shape[0] / count);
        assert_int_equal(dcp->catalogue.sources[piece->source].length_bytes, 100);
    }
}

static void test_open__tensors_that_share_their_chunks_have_them_all(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_tensor(writer, "a", "float32", 2, whole);
    w_chunk(writer, 2, zeros, twos);
    w_chunk(writer, 2, below, twos);
    w_tensor_end(writer);
    w_raw(writer, "q\x03");
    w_text(writer, "b");
    w_raw(writer, "h\x03");
    w_storage(writer);
    for (int i = 0; i < 2; i++) {
        w_entry(writer, i == 0 ? "a" : "b", 2, zeros, "shard");
        w_entry(writer, i == 0 ? "a" : "b", 2, below, "shard");
    }
    struct dcp_case *dcp = finish(state, writer);
    expect_pieces(dcp, "a", 2);
    expect_pieces(dcp, "b", 2);
    dcp_close(dcp);
}

/* A process that saves alone writes the offsets of a chunk once, for it and for its entry. */
static void test_open__offsets_that_chunk_and_entry_share(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_tensor(writer, "a", "float32", 2, twos);
    w_object(writer, W_METADATA, "ChunkStorageMetadata");
    w_text(writer, "offsets");
    w_size(writer, 2, zeros);
    w_raw(writer, "q\x07");
    w_text(writer, "sizes");
    w_size(writer, 2, twos);
    w_end(writer);
    w_tensor_end(writer);
    w_storage(writer);
    w_object(writer, W_METADATA, "MetadataIndex");
    w_text(writer, "fqn");
    w_text(writer, "a");
    w_text(writer, "offset");
    w_raw(writer, "h\x07");
    w_end(writer);
    w_info(writer, "shard");
    struct dcp_case *dcp = finish(state, writer);
    expect_pieces(dcp, "a", 1);
    dcp_close(dcp);
}

/* Pickle adds a last item that is alone by another opcode than a batch. */
static void test_open__chunks_in_batches_and_one_alone(void **state) {
    static const long long third[2] = {4, 0}, six[2] = {6, 2};
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_tensor(writer, "a", "float32", 2, six);
    w_chunk(writer, 2, zeros, twos);
    w_raw(writer, "e(");
    w_chunk(writer, 2, below, twos);
    w_raw(writer, "e");
    w_chunk(writer, 2, third, twos);
    w_raw(writer, "a");
    w_end(writer);
    w_storage(writer);
    w_entry(writer, "a", 2, zeros, "shard");
    w_raw(writer, "u(");
    w_entry(writer, "a", 2, third, "shard");
    w_raw(writer, "u");
    w_entry(writer, "a", 2, below, "shard");
    w_raw(writer, "s(");
    struct dcp_case *dcp = finish(state, writer);
    expect_pieces(dcp, "a", 3);
    dcp_close(dcp);
}

static void test_open__the_last_of_equal_keys_counts(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_tensor(writer, "a", "float32", 2, whole);
    w_chunk(writer, 2, zeros, whole);
    w_tensor_end(writer);
    w_tensor(writer, "a", "float32", 2, whole);
    w_chunk(writer, 2, zeros, twos);
    w_chunk(writer, 2, below, twos);
    w_tensor_end(writer);
    w_storage(writer);
    w_entry(writer, "a", 2, zeros, "shard");
    w_entry(writer, "a", 2, below, "shard");
    struct dcp_case *dcp = finish(state, writer);
    expect_pieces(dcp, "a", 2);
    dcp_close(dcp);
}

/* What has the names of the large containers but is elsewhere is nobody's business. */
static void test_open__containers_of_the_same_names_elsewhere(void **state) {
    struct dcp_writer *writer = calloc(1, sizeof *writer);
    w_begin(writer);
    w_tensor(writer, "a", "float32", 2, twos);
    w_chunk(writer, 2, zeros, twos);
    w_tensor_end(writer);
    w_raw(writer, "u");
    w_text(writer, "planner_data");
    w_raw(writer, "}(");
    w_text(writer, "chunks");
    w_raw(writer, "](");
    w_chunk(writer, 2, zeros, twos);
    w_raw(writer, "e");
    w_text(writer, "storage_data");
    w_raw(writer, "}(");
    w_entry(writer, "a", 2, below, "elsewhere");
    w_storage(writer); /* closes that one; again in planner_data, where it replaces it */
    w_entry(writer, "a", 2, below, "elsewhere");
    w_raw(writer, "u");
    w_storage(writer);
    w_entry(writer, "a", 2, zeros, "shard");
    struct dcp_case *dcp = finish(state, writer);
    expect_pieces(dcp, "a", 1);
    dcp_close(dcp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open__tensors_that_share_their_chunks_have_them_all,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_open__offsets_that_chunk_and_entry_share, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_open__chunks_in_batches_and_one_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_open__the_last_of_equal_keys_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open__containers_of_the_same_names_elsewhere, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
