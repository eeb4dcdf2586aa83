/* The format "safetensors": files that real writers made, files made here, and files with one
 * defect each. */
#include "formats/sample_tools.h"

#include "formats/safetensors.h"

#define SAMPLES GCMP_TEST_DATA "/safetensors/"
#define BAD     GCMP_TEST_DATA "/bad/safetensors/"

static const struct gradcmp_format *const format = &gcmp_format_safetensors;

/* Write a file: header text, then `count` data bytes 0, 1, 2, ... beginning with `first`. Returns
 * the offset of the data. */
static uint64_t write_file(const char *temp, const char *name, const char *header, size_t count,
                           int first) {
    size_t header_bytes = strlen(header);
    unsigned char *bytes = calloc(1, 8 + header_bytes + count);
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i));
    }
    memcpy(bytes + 8, header, header_bytes);
    for (size_t i = 0; i < count; i++) {
        bytes[8 + header_bytes + i] = (unsigned char)(first + (int)i);
    }
    temp_file(temp, name, bytes, 8 + header_bytes + count);
    free(bytes);
    return 8 + header_bytes;
}

static void test_open__shards_of_two_ranks_are_put_together(void **state) {
    (void)state;
    check_sample(format, SAMPLES "sharded", SAMPLES "sharded.truth");
    struct opened *opened = open_good(format, SAMPLES "sharded");
    assert_string_equal(opened->catalogue.layout_name, "sharded");
    assert_string_equal(opened->catalogue.writer, "torch");
    assert_int_equal(opened->catalogue.note_count, 1);
    assert_int_equal(find_stored(opened, "tok_embeddings.weight", "exp_avg")->piece_count, 2);
    close_format(opened);
}

/* Consolidated files begin at odd bytes; the shards below them must not be read too. */
static void test_open__consolidated_files_are_read_by_their_index(void **state) {
    (void)state;
    check_sample(format, SAMPLES "consolidated", SAMPLES "consolidated.truth");
    check_sample(format, SAMPLES "consolidated/sharded", SAMPLES "consolidated.truth");
    struct opened *opened = open_good(format, SAMPLES "consolidated");
    assert_int_equal(find_stored(opened, "tok_embeddings.weight", "exp_avg")->piece_count, 1);
    assert_int_equal(gcmp_dir_file_count(opened->dir), 2);
    close_format(opened);
}

static void test_open__one_file_a_rank_is_put_together(void **state) {
    (void)state;
    check_sample(format, SAMPLES "per_rank", SAMPLES "per_rank.truth");
    check_refused_open(format, SAMPLES "per_rank/optimizer_rank0.safetensors",
                       GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "optimizer_rank0.safetensors",
                       "safetensors: one rank's file of several (world_size 2); name the folder "
                       "of all");
}

/* Every type of the format, with the state of the optimizer told from weights and counters. */
static void test_open__types_and_names_are_told(void **state) {
    write_file(*state, "m.safetensors",
               "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"12\"},"
               "\"model.w\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]},"
               "\"optimizer.exp_avg.w\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[4,12]},"
               "\"w.exp_avg_sq\":{\"dtype\":\"F16\",\"shape\":[0,3],\"data_offsets\":[12,12]},"
               "\"grad/w\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[12,13]},"
               "\"optimizer.step\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[13,21]},"
               "\"scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[21,24]},"
               "\"packed\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[24,26]}}",
               26, 0);
    char *path = temp_path(*state, "m.safetensors");
    struct opened *opened = open_good(format, path);
    const struct gradcmp_catalogue *catalogue = &opened->catalogue;
    assert_int_equal(catalogue->iteration, 12);
    assert_int_equal(find_stored(opened, "w", "param")->dtype, GRADCMP_DTYPE_BFLOAT16);
    const struct gradcmp_stored *moment = find_stored(opened, "w", "exp_avg");
    assert_int_equal(moment->dtype, GRADCMP_DTYPE_FLOAT64);
    assert_int_equal(moment->ndim, 0);
    assert_int_equal(moment->piece_count, 1);
    const struct gradcmp_stored *empty = find_stored(opened, "w", "exp_avg_sq");
    assert_int_equal(empty->shape[0], 0);
    assert_int_equal(empty->shape[1], 3);
    assert_int_equal(empty->piece_count, 0);
    assert_int_equal(find_stored(opened, "w", "main_grad")->dtype, GRADCMP_DTYPE_FLOAT8_E4M3FN);
    assert_null(find_stored(opened, "scale", "param")); /* listed only */
    assert_null(find_stored(opened, "optimizer.step", "param"));
    assert_int_equal(catalogue->stored_count, 7);
    assert_string_equal(catalogue->stored[3].key, "grad/w");
    close_format(opened);
    free(path);
}

#define F32(name, shape, from, to)                                                                 \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
#define SHARDED(name, offsets)                                                                     \
    "\"__metadata__\":{\"DCP_SHARDING_INFO\":\"{\\\"" name "\\\":{\\\"saved_offsets\\\":" offsets  \
    "}}\"}"

static void test_open__shards_that_contradict_each_other_are_refused(void **state) {
    const char *temp = *state;
    uint64_t data,
        first_data = write_file(
            temp, "a.safetensors",
            "{" SHARDED("exp_avg.w", "[0,0]") "," F32("exp_avg.w", "[1,2]", "0", "8") "}", 8, 0);
    data =
        write_file(temp, "b.safetensors",
                   "{" SHARDED("exp_avg.w", "[1]") "," F32("exp_avg.w", "[2]", "0", "8") "}", 8, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, data, "/b.safetensors",
                       "safetensors: \"exp_avg.w\": another type or number of axes than in "
                       "a.safetensors");
    data = write_file(temp, "b.safetensors",
                      "{" SHARDED("exp_avg.w", "[1]") "," F32("exp_avg.w", "[1,2]", "0", "8") "}",
                      8, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, data, "/b.safetensors",
                       "safetensors: \"exp_avg.w\": expected 2 offsets in DCP_SHARDING_INFO, found "
                       "another number of them");
    data = write_file(temp, "b.safetensors",
                      "{" SHARDED("exp_avg.w", "[9223372036854775807,0]") "," F32(
                          "exp_avg.w", "[1,2]", "0", "8") "}",
                      8, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, data, "/b.safetensors",
                       "safetensors: \"exp_avg.w\": offset 9223372036854775807 in "
                       "DCP_SHARDING_INFO is too large");
    data = write_file(temp, "b.safetensors",
                      "{" SHARDED("exp_avg.w", "[4611686018427387904,9]") "," F32(
                          "exp_avg.w", "[1,2]", "0", "8") "}",
                      8, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, first_data, "/a.safetensors",
                       "safetensors: \"exp_avg.w\": the shards' offsets make a tensor of more than "
                       "2^59 elements");
    write_file(temp, "b.safetensors", "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"{\"}}", 0, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, 8, "/b.safetensors",
                       "safetensors: DCP_SHARDING_INFO is not JSON");
}

static void test_open__several_files_need_to_say_how_they_belong_together(void **state) {
    const char *temp = *state;
    write_file(temp, "a.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 0);
    write_file(temp, "b.safetensors", "{" F32("exp_avg.v", "[1]", "0", "4") "}", 4, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, temp,
                       "2 safetensors files and nothing that tells how they belong together (an "
                       "index, DCP_SHARDING_INFO, rank and world_size, numbers k of n): name one");
    char *path = temp_path(temp, "a.safetensors");
    close_format(open_good(format, path));
    free(path);
    write_file(temp, "x.safetensors.index.json", "{}", 0, 0);
    write_file(temp, "y.safetensors.index.json", "{}", 0, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, temp,
                       "2 safetensors indexes in one folder: name a folder with one, or one file");
}

static void test_open__numbered_files_must_all_be_there(void **state) {
    const char *temp = *state;
    write_file(temp, "m-1-of-3.safetensors", "{" F32("exp_avg.u", "[1]", "0", "4") "}", 4, 0);
    write_file(temp, "m-3-of-3.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, temp,
                       "safetensors: m-1-of-3.safetensors is there, but not part m-2 of 3");
    write_file(temp, "m-2-of-3.safetensors", "{" F32("exp_avg.v", "[1]", "0", "4") "}", 4, 0);
    struct opened *opened = open_good(format, temp);
    assert_int_equal(opened->catalogue.stored_count, 3);
    close_format(opened);
    uint64_t data =
        write_file(temp, "m-2-of-3.safetensors", "{" F32("exp_avg.u", "[1]", "0", "4") "}", 4, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, data, "/m-2-of-3.safetensors",
                       "safetensors: \"exp_avg.u\": also in m-1-of-3.safetensors");
}

#define SHARD_OF(name, start) "{" SHARDED(name, "[" start "]") "," F32(name, "[2]", "0", "8") "}"
#define SHARD(start)          SHARD_OF("exp_avg.w", start)

static void check_notes(const char *path, const char *shapes, const char *gap) {
    struct opened *opened = open_good(format, path);
    assert_string_equal(opened->catalogue.layout_name, "sharded");
    assert_int_equal(opened->catalogue.note_count, gap == NULL ? 1 : 2);
    assert_string_equal(opened->catalogue.notes[0], shapes);
    if (gap != NULL) {
        assert_string_equal(opened->catalogue.notes[1], gap);
    }
    close_format(opened);
}

/* The only file may be one of several: nothing in it says how large the whole is. */
static void test_open__a_single_shard_is_told(void **state) {
    static const char one[] = "the file states no whole shapes: they are taken from the ends of "
                              "its shards; whether other ranks wrote more is not in it";
    static const char several[] = "the files state no whole shapes: they are taken from the ends "
                                  "of the shards";
    const char *temp = *state;
    write_file(temp, "shard-00001-model-00001-of-00001.safetensors", SHARD("0"), 8, 0);
    check_notes(temp, one, NULL);
    char *path = temp_path(temp, "shard-00001-model-00001-of-00001.safetensors");
    check_notes(path, one, NULL);
    free(path);
    write_file(temp, "shard-00002-model-00001-of-00001.safetensors", SHARD("2"), 8, 0);
    check_notes(temp, several, NULL);
    /* a number that is left out, of ranks or of one rank's parts */
    write_file(temp, "shard-00004-model-00001-of-00001.safetensors", SHARD("4"), 8, 0);
    check_notes(temp, several,
                "no file of shard 3, part 1 of 1, beside others: it is lost, or that rank had "
                "nothing of it");
}

static void test_open__a_part_of_one_rank_alone_is_told(void **state) {
    const char *temp = *state;
    write_file(temp, "shard-00001-model-00001-of-00002.safetensors", SHARD("0"), 8, 0);
    write_file(temp, "shard-00001-model-00002-of-00002.safetensors", SHARD_OF("exp_avg.v", "0"), 8,
               0);
    write_file(temp, "shard-00002-model-00001-of-00002.safetensors", SHARD("2"), 8, 0);
    check_notes(temp, "the files state no whole shapes: they are taken from the ends of the shards",
                "no file of shard 2, part 2 of 2, beside others: it is lost, or that rank had "
                "nothing of it");
    write_file(temp, "shard-00002-model-00002-of-00002.safetensors", SHARD_OF("exp_avg.v", "2"), 8,
               0);
    check_notes(temp, "the files state no whole shapes: they are taken from the ends of the shards",
                NULL);
}

/* Weights that torch.save wrote beside them may be others; what else lies in such a folder is no
 * weight. */
static void test_open__pickled_weights_beside_are_noted(void **state) {
    const char *temp = *state;
    write_file(temp, "model.safetensors", "{" F32("w", "[1]", "0", "4") "}", 4, 0);
    temp_file(temp, "training_args.bin", "?", 1);
    temp_file(temp, "rng_state_0.pth", "?", 1);
    struct opened *opened = open_good(format, temp);
    assert_int_equal(opened->catalogue.note_count, 0);
    close_format(opened);
    temp_file(temp, "pytorch_model.bin", "?", 1);
    opened = open_good(format, temp);
    assert_int_equal(opened->catalogue.note_count, 1);
    assert_string_equal(opened->catalogue.notes[0],
                        "pytorch_model.bin beside the safetensors files was not read: name it to "
                        "see what it holds");
    close_format(opened);
}

/* A tensor whose files no index names is not passed over in silence. */
static void test_open__files_beside_the_index_are_noted(void **state) {
    const char *temp = *state;
    static const char index[] = "{\"weight_map\": {\"exp_avg.w\": \"a.safetensors\"}}";
    write_file(temp, "a.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 0);
    write_file(temp, "b.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 9);
    temp_file(temp, "m.safetensors.index.json", index, sizeof index - 1);
    struct opened *opened = open_good(format, temp);
    assert_int_equal(opened->catalogue.note_count, 1);
    assert_string_equal(opened->catalogue.notes[0],
                        "1 more safetensors files, which the index does not name, were not read");
    close_format(opened);
}

static void test_open__tensor_that_the_index_places_elsewhere_is_refused(void **state) {
    const char *temp = *state;
    static const char index[] = "{\"weight_map\": {\"exp_avg.w\": \"a.safetensors\", "
                                "\"exp_avg.v\": \"b.safetensors\"}}";
    write_file(temp, "a.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 0);
    uint64_t data =
        write_file(temp, "b.safetensors", "{" F32("exp_avg.w", "[1]", "0", "4") "}", 4, 0);
    temp_file(temp, "m.safetensors.index.json", index, sizeof index - 1);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, data, "/b.safetensors",
                       "safetensors index: \"exp_avg.w\" is in this file, but the index says it is "
                       "in a.safetensors");
    write_file(temp, "b.safetensors", "{}", 0, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, 46, "/m.safetensors.index.json",
                       "safetensors index: \"exp_avg.v\" is not in b.safetensors, where the index "
                       "says it is");
}

static void test_open__state_of_a_type_that_is_not_read_is_refused(void **state) {
    const char *temp = *state;
    write_file(temp, "m.safetensors",
               "{\"exp_avg.w\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, temp,
                       "\"exp_avg.w\": expected a tensor of numbers for the state exp_avg, found "
                       "F4");
}

#define RANK(rank, world) "\"__metadata__\":{\"rank\":\"" rank "\",\"world_size\":\"" world "\"}"

/* Write rank 0 and 1 of a checkpoint with one vector and one matrix. */
static void write_ranks(const char *temp, const char *first, const char *second, size_t count,
                        int second_byte) {
    write_file(temp, "r0.safetensors", first, count, 1);
    write_file(temp, "r1.safetensors", second, count, second_byte);
}

#define REFUSED_RANKS(what)                                                                        \
    "safetensors files of 2 ranks without offsets: cannot prove that they are shards of axis "     \
    "0: " what "; save with torch.distributed.checkpoint"

static void check_ranks_refused(const char *temp, const char *message) {
    check_refused_open(format, temp, GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, temp, message);
}

static void test_open__even_ranks_are_proved_by_their_vectors(void **state) {
    const char *temp = *state;
    /* A norm of 2 elements a rank beside matrices that are 4 wide: the norm was cut. */
    write_ranks(temp,
                "{" RANK("0", "2") "," F32("exp_avg.n", "[2]", "0",
                                           "8") "," F32("exp_avg.w", "[1,4]", "8", "24") "}",
                "{" RANK("1", "2") "," F32("exp_avg.n", "[2]", "0",
                                           "8") "," F32("exp_avg.w", "[1,4]", "8", "24") "}",
                24, 99);
    struct opened *opened = open_good(format, temp);
    assert_string_equal(opened->catalogue.layout_name, "one file a rank");
    const struct gradcmp_stored *norm = find_stored(opened, "n", "exp_avg");
    assert_int_equal(norm->shape[0], 4);
    assert_int_equal(norm->pieces[1].start[0], 2);
    close_format(opened);
}

static void test_open__ranks_that_may_hold_copies_are_refused(void **state) {
    const char *temp = *state;
    /* As wide as the norm is long: both may be whole, or cut along axis 1. */
    write_ranks(temp,
                "{" RANK("0", "2") "," F32("exp_avg.n", "[4]", "0",
                                           "16") "," F32("exp_avg.w", "[1,4]", "16", "32") "}",
                "{" RANK("1", "2") "," F32("exp_avg.n", "[4]", "0",
                                           "16") "," F32("exp_avg.w", "[1,4]", "16", "32") "}",
                32, 99);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.n\" may be whole on each rank"));
    /* As long as one matrix is wide, and together as another: cut, or whole. */
    write_ranks(temp,
                "{" RANK("0", "2") "," F32("exp_avg.n", "[2]", "0", "8") "," F32(
                    "exp_avg.v", "[1,4]", "8", "24") "," F32("exp_avg.w", "[1,2]", "24", "32") "}",
                "{" RANK("1", "2") "," F32("exp_avg.n", "[2]", "0", "8") "," F32(
                    "exp_avg.v", "[1,4]", "8", "24") "," F32("exp_avg.w", "[1,2]", "24", "32") "}",
                32, 99);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.n\" may be whole on each rank"));
    /* The same bytes on both ranks. */
    write_ranks(temp,
                "{" RANK("0", "2") "," F32("exp_avg.n", "[2]", "0",
                                           "8") "," F32("exp_avg.w", "[1,4]", "8", "24") "}",
                "{" RANK("1", "2") "," F32("exp_avg.n", "[2]", "0",
                                           "8") "," F32("exp_avg.w", "[1,4]", "8", "24") "}",
                24, 1);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.n\" is the same on two ranks"));
    /* No vector at all. */
    write_ranks(temp, "{" RANK("0", "2") "," F32("exp_avg.w", "[1,4]", "0", "16") "}",
                "{" RANK("1", "2") "," F32("exp_avg.w", "[1,4]", "0", "16") "}", 16, 99);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.w\" has as many rows on each rank"));
}

static void test_open__ranks_that_do_not_fit_are_refused(void **state) {
    const char *temp = *state;
    write_ranks(temp, "{" RANK("0", "2") "," F32("exp_avg.w", "[1,4]", "0", "16") "}",
                "{" RANK("1", "2") "," F32("exp_avg.w", "[2,2]", "0", "16") "}", 16, 99);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.w\" differs in more than axis 0"));
    write_ranks(temp, "{" RANK("0", "2") "," F32("exp_avg.w", "[1,4]", "0", "16") "}",
                "{" RANK("1", "2") "," F32("exp_avg.v", "[1,4]", "0", "16") "}", 16, 99);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.v\" is not in every file"));
    write_file(temp, "r0.safetensors", "{" RANK("0", "2") "," F32("exp_avg.w", "[1]", "0", "4") "}",
               4, 0);
    write_file(temp, "r1.safetensors", "{" RANK("1", "2") "," F32("exp_avg.w", "[2]", "0", "8") "}",
               8, 0);
    check_ranks_refused(temp, REFUSED_RANKS("\"exp_avg.w\" is not dealt out as FSDP2 does"));
    write_file(temp, "r1.safetensors", "{" RANK("0", "2") "," F32("exp_avg.w", "[1]", "0", "4") "}",
               4, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "/r1.safetensors",
                       "safetensors: rank 0 of 2, expected each rank of 2 files once");
    write_file(temp, "r1.safetensors", "{" RANK("1", "3") "," F32("exp_avg.w", "[1]", "0", "4") "}",
               4, 0);
    check_refused_open(format, temp, GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "/r1.safetensors",
                       "safetensors: rank 1 of 3, expected each rank of 2 files once");
}

static void test_open__uneven_ranks_are_placed_by_their_rows(void **state) {
    const char *temp = *state;
    write_file(temp, "r0.safetensors", "{" RANK("1", "2") "," F32("exp_avg.w", "[1]", "0", "4") "}",
               4, 5);
    write_file(temp, "r1.safetensors", "{" RANK("0", "2") "," F32("exp_avg.w", "[2]", "0", "8") "}",
               8, 7);
    struct opened *opened = open_good(format, temp);
    const struct gradcmp_stored *stored = find_stored(opened, "w", "exp_avg");
    assert_int_equal(stored->shape[0], 3);
    assert_int_equal(stored->pieces[0].start[0], 0); /* by rank, not by name */
    assert_int_equal(stored->pieces[0].extent[0], 2);
    assert_int_equal(stored->pieces[1].start[0], 2);
    close_format(opened);
}

struct bad {
    const char *name;
    enum gradcmp_status code;
    uint64_t offset;
    const char *message;
};

#define TWO_OFFSETS                                                                                \
    "safetensors: \"exp_avg.w\": expected two integers of 0 or more as data_offsets, found "
#define SHAPE "safetensors: \"exp_avg.w\": expected integers of 0 or more as shape, found "

static const struct bad bad_files[] = {
    {"empty", GRADCMP_ERROR_CORRUPT, 0,
     "safetensors: expected the 8 bytes of the header's length, found 0"},
    {"short", GRADCMP_ERROR_CORRUPT, 7,
     "safetensors: expected the 8 bytes of the header's length, found 7"},
    {"len_zero", GRADCMP_ERROR_CORRUPT, 0, "safetensors: a header of 0 bytes, expected 2 to 24"},
    {"len_past", GRADCMP_ERROR_CORRUPT, 0,
     "safetensors: a header of 74 bytes, and only 73 follow its length: the file is cut off, or "
     "damaged"},
    {"len_4g", GRADCMP_ERROR_LIMIT, 0,
     "safetensors: a header of 4294967296 bytes, at most 100000000 are read"},
    {"len_huge", GRADCMP_ERROR_LIMIT, 0,
     "safetensors: a header of 9223372036854775808 bytes, at most 100000000 are read"},
    {"json_list", GRADCMP_ERROR_CORRUPT, 8, "safetensors: expected '{', found another byte"},
    {"space_first", GRADCMP_ERROR_CORRUPT, 8, "safetensors: expected '{', found another byte"},
    {"bad_json", GRADCMP_ERROR_CORRUPT, 0x27, "json: *"},
    {"big_number", GRADCMP_ERROR_CORRUPT, 0x1dc, "json: too big integer*"},
    {"deep_json", GRADCMP_ERROR_LIMIT, 0x4c, "json: more than 64 levels"},
    {"dup_key", GRADCMP_ERROR_CORRUPT, 0x42, "json: duplicate object key*"},
    {"dup_field", GRADCMP_ERROR_CORRUPT, 0x31, "json: duplicate object key*"},
    {"not_utf8", GRADCMP_ERROR_CORRUPT, 0x12, "json: unable to decode byte 0xff*"},
    {"nul_name", GRADCMP_ERROR_CORRUPT, 0x1a, "json: *"},
    {"surrogate", GRADCMP_ERROR_CORRUPT, 0x19, "json: invalid Unicode*"},
    {"meta_type", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: expected a text as __metadata__ \"a\", found an integer"},
    {"meta_list", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: expected an object as __metadata__, found an array"},
    {"entry_type", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": expected an object, found an array"},
    {"dtype_type", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": expected a text as dtype, found an integer"},
    {"many_axes", GRADCMP_ERROR_LIMIT, 9,
     "safetensors: \"exp_avg.w\": 17 axes, at most 16 are read"},
    {"dtype", GRADCMP_ERROR_UNSUPPORTED, 9,
     "safetensors: \"exp_avg.w\": dtype \"F33\" is not known"},
    {"missing_field", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"w\": expected two integers of 0 or more as data_offsets, found nothing"},
    {"negative", GRADCMP_ERROR_CORRUPT, 9, TWO_OFFSETS "a negative integer"},
    {"float_offset", GRADCMP_ERROR_CORRUPT, 9,
     TWO_OFFSETS "a number with a fraction or an exponent"},
    {"exp_offset", GRADCMP_ERROR_CORRUPT, 9, TWO_OFFSETS "a number with a fraction or an exponent"},
    {"reversed", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": data_offsets 24 to 0, expected a range of the 24 bytes behind "
     "the header"},
    {"past_end", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": data_offsets 0 to 24, and only 20 bytes follow the header: "
     "the file is cut off, or damaged"},
    {"shape_negative", GRADCMP_ERROR_CORRUPT, 9, SHAPE "a negative integer"},
    {"shape_type", GRADCMP_ERROR_CORRUPT, 9, SHAPE "a text"},
    {"shape_overflow", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": a tensor of more than 2^64 bits"},
    {"size_mismatch", GRADCMP_ERROR_CORRUPT, 9,
     "safetensors: \"exp_avg.w\": shape and dtype need 384 bits, data_offsets give 24 bytes"},
    {"overlap", GRADCMP_ERROR_CORRUPT, 0x91,
     "safetensors: \"b\" shares its bytes with another tensor: 12 bytes"},
    {"gap", GRADCMP_ERROR_CORRUPT, 0x8c, "safetensors: \"b\" begins behind a hole of 4 bytes"},
    {"trailing", GRADCMP_ERROR_CORRUPT, 0x69, "safetensors: 4 bytes belong to no tensor"},
};

static void test_open__each_defect_of_a_file_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        char path[512], name[64];
        snprintf(name, sizeof name, "/%s.safetensors", bad_files[i].name);
        snprintf(path, sizeof path, "%s%s", BAD, name + 1);
        check_refused_open(format, path, bad_files[i].code, bad_files[i].offset, name,
                           bad_files[i].message);
    }
}

static const struct bad bad_indexes[] = {
    {"index_up", GRADCMP_ERROR_CORRUPT, 0x30,
     "safetensors index: file name \"../../../../etc/passwd\" leads out of the checkpoint"},
    {"index_abs", GRADCMP_ERROR_CORRUPT, 0x30,
     "safetensors index: file name \"/etc/passwd\" is absolute"},
    {"index_missing", GRADCMP_ERROR_IO, 0x30,
     "safetensors index: file \"model-00009-of-00009.safetensors\" is named, but there is no such "
     "file"},
    {"index_type", GRADCMP_ERROR_CORRUPT, 1,
     "safetensors index: expected an object as weight_map, found an array"},
    {"index_file_type", GRADCMP_ERROR_CORRUPT, 16,
     "safetensors index: \"exp_avg.w\": expected the name of a file, found an integer"},
    {"index_json", GRADCMP_ERROR_CORRUPT, 7, "json: *"},
};

static void test_open__each_defect_of_an_index_is_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_indexes / sizeof *bad_indexes; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s%s", BAD, bad_indexes[i].name);
        check_refused_open(format, path, bad_indexes[i].code, bad_indexes[i].offset,
                           "/model.safetensors.index.json", bad_indexes[i].message);
    }
    check_refused_open(format, BAD "index_absent", GRADCMP_ERROR_CORRUPT, 0x51,
                       "/model-00001-of-00001.safetensors",
                       "safetensors index: \"exp_avg.w\" is in this file, but the index does not "
                       "list it");
}

static void test_probe__is_by_content_or_name(void **state) {
    const char *temp = *state;
    struct gcmp_dir *dir;
    static const struct {
        const char *name, *bytes;
        size_t count;
        int strength;
    } cases[] = {{"a.safetensors", "", 0, 2},
                 {"a.bin", "\2\0\0\0\0\0\0\0{}", 10, 2},
                 {"b.bin", "\3\0\0\0\0\0\0\0{}", 10, 0}, /* longer than the file */
                 {"c.bin", "\2\0\0\0\0\0\0\0[]", 10, 0},
                 {"d.bin", "\2\0\0\0\0\0\0\0{", 9, 0},
                 {"e.bin", "PK\3\4\0\0\0\0{}", 10, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        temp_file(temp, cases[i].name, cases[i].bytes, cases[i].count);
        char *path = temp_path(temp, cases[i].name);
        assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
        assert_int_equal(format->probe(dir), cases[i].strength);
        gcmp_dir_close(dir);
        free(path);
    }
    assert_int_equal(gcmp_dir_open(temp, &dir, NULL), GRADCMP_OK);
    assert_int_equal(format->probe(dir), 2);
    gcmp_dir_close(dir);
    assert_int_equal(gcmp_dir_open(GCMP_TEST_DATA, &dir, NULL), GRADCMP_OK);
    assert_int_equal(format->probe(dir), 0);
    gcmp_dir_close(dir);
}

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__shards_of_two_ranks_are_put_together),
        cmocka_unit_test(test_open__consolidated_files_are_read_by_their_index),
        cmocka_unit_test(test_open__one_file_a_rank_is_put_together),
        TEMP_TEST(test_open__types_and_names_are_told),
        TEMP_TEST(test_open__shards_that_contradict_each_other_are_refused),
        TEMP_TEST(test_open__several_files_need_to_say_how_they_belong_together),
        TEMP_TEST(test_open__numbered_files_must_all_be_there),
        TEMP_TEST(test_open__a_single_shard_is_told),
        TEMP_TEST(test_open__a_part_of_one_rank_alone_is_told),
        TEMP_TEST(test_open__pickled_weights_beside_are_noted),
        TEMP_TEST(test_open__files_beside_the_index_are_noted),
        TEMP_TEST(test_open__tensor_that_the_index_places_elsewhere_is_refused),
        TEMP_TEST(test_open__state_of_a_type_that_is_not_read_is_refused),
        TEMP_TEST(test_open__even_ranks_are_proved_by_their_vectors),
        TEMP_TEST(test_open__ranks_that_may_hold_copies_are_refused),
        TEMP_TEST(test_open__ranks_that_do_not_fit_are_refused),
        TEMP_TEST(test_open__uneven_ranks_are_placed_by_their_rows),
        cmocka_unit_test(test_open__each_defect_of_a_file_is_told),
        cmocka_unit_test(test_open__each_defect_of_an_index_is_told),
        TEMP_TEST(test_probe__is_by_content_or_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
