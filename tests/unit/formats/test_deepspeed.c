/* DeepSpeed: samples of every stage, ranks' files that are lost, and numbers that do not add up. */
#include "formats/torch_save_tools.h"

#include "formats/deepspeed.h"

#define SAMPLES GCMP_TEST_DATA "/deepspeed/"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static void check_sample_of(const char *name, const char *folder) {
    char path[512], truth[512];
    snprintf(path, sizeof path, SAMPLES "%s/%s", name, folder);
    snprintf(truth, sizeof truth, SAMPLES "%s.truth", name);
    check_state(&gcmp_format_deepspeed, path, "exp_avg", truth, 0);
}

static void test_deepspeed__samples_hold_the_writers_gradients(void **state) {
    static const char *const names[] = {
        "stage0",  "stage1_bf16", "stage1_elastic",  "stage2_groups", "stage3",
        "experts", "pipeline",    "pipeline_stage0", "tied_two",      "stage1_groups"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_sample_of(names[i], "global_step1");
    }
    check_sample_of("universal_stage3", "");
}

static void test_deepspeed__the_run_is_described(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_deepspeed, SAMPLES "stage1_bf16/global_step1");
    assert_int_equal(opened->catalogue.iteration, 1);
    assert_int_equal(opened->catalogue.compute, GRADCMP_DTYPE_BFLOAT16);
    assert_int_equal(opened->catalogue.parallel.dp, 2);
    assert_int_equal(gcmp_catalogue_setting(&opened->catalogue, "zero_stage")->integer, 1);
    assert_non_null(gcmp_catalogue_setting(&opened->catalogue, "adam_beta1"));
    assert_int_equal(count_state(opened, "param"), 12);
    assert_int_equal(count_state(opened, "fp32_param"), 12);
    assert_int_equal(find_stored(opened, "embed.weight", "param")->dtype, GRADCMP_DTYPE_BFLOAT16);
    close_format(opened);
}

/* --- damage --- */

static void copy_sample(const char *temp, const char *name) {
    char command[1024];
    snprintf(command, sizeof command, "cp " SAMPLES "%s/global_step1/* '%s'", name, temp);
    assert_int_equal(system(command), 0);
}

static void lose(const char *temp, const char *name) {
    char *path = temp_path(temp, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void check_refused(const char *temp, enum gradcmp_status code, const char *path_end,
                          const char *message) {
    check_refused_open(&gcmp_format_deepspeed, temp, code, ANY_OFFSET, path_end, message);
}

static void test_deepspeed__lost_files_are_missed(void **state) {
    copy_sample(*state, "stage2_groups");
    lose(*state, "zero_pp_rank_2_mp_rank_00_optim_states.pt");
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "incomplete: the optimizer is shared by 3 ranks, and 2 files of it are there "
                  "(mp_rank_00)");
    lose(*state, "zero_pp_rank_0_mp_rank_00_optim_states.pt");
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "incomplete: zero_pp_rank_1_mp_rank_00_optim_states.pt is there, but not the "
                  "optimizer's part of rank 0");
    copy_sample(*state, "stage2_groups");
    lose(*state, "mp_rank_00_model_states.pt");
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "", "incomplete: no model file*");
}

/* The last model-parallel rank leaves no gap: the files say how many there are. */
static void test_deepspeed__a_lost_last_mp_rank_is_missed(void **state) {
    static const char *const samples[] = {"pipeline", "pipeline_stage0", "tied_two"};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        copy_sample(*state, samples[i]);
        lose(*state, "mp_rank_01_model_states.pt");
        check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                      "incomplete: the model is of 2 mp_ranks, and model files of 1 are there");
    }
}

static void check_lost_models(const char *temp, const char *line) {
    struct opened *opened = open_good(&gcmp_format_deepspeed, temp);
    assert_int_equal(count_state(opened, "exp_avg"), 12);
    assert_int_equal(opened->catalogue.contradiction_count, line != NULL);
    if (line != NULL) {
        assert_string_equal(opened->catalogue.contradictions[0], line);
    }
    close_format(opened);
}

/* A model file of each rank, of which one is enough to read the checkpoint. */
static void test_deepspeed__lost_model_files_of_stage3_are_told(void **state) {
    static const char *const names[] = {"zero_pp_rank_0_mp_rank_00_model_states.pt",
                                        "zero_pp_rank_1_mp_rank_00_model_states.pt"};
    for (size_t i = 0; i < 2; i++) {
        char line[400];
        copy_sample(*state, "stage3");
        check_lost_models(*state, NULL);
        lose(*state, names[i]);
        snprintf(line, sizeof line,
                 "1 of 2 ranks of mp_rank_00 have no model file, first %s: nothing that is "
                 "compared is in it, but a resume needs it",
                 names[i]);
        check_lost_models(*state, line);
    }
}

static void test_deepspeed__files_of_two_saves_are_refused(void **state) {
    char command[1024];
    copy_sample(*state, "stage2_groups");
    snprintf(command, sizeof command,
             "cd '%s' && cp zero_pp_rank_1_mp_rank_00_optim_states.pt "
             "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
             (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "deepspeed: bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt and "
                  "zero_pp_rank_1_mp_rank_00_optim_states.pt are the same rank's, of two saves");
}

static void test_deepspeed__a_universal_folder_must_be_whole(void **state) {
    char command[1024];
    snprintf(command, sizeof command,
             "cp -r " SAMPLES "universal_stage3/* '%s' && rm -r "
             "'%s/zero/embed.weight'",
             (const char *)*state, (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "incomplete: no folder zero/embed.weight of a parameter");
}

/* --- layouts written here: one group of "a" [2, 3] and "b" [4], ten elements --- */

#define MODEL(shapes)                                                                              \
    PT_DICT(PT_TEXT("param_shapes") PT_LIST(PT_DICT(shapes)) PT_TEXT("dp_world_size") PT_INT("2"))
#define A_AND_B PT_TEXT("a") "(I2\nI3\nt" PT_TEXT("b") "(I4\nt"
#define SLICE(start, count)                                                                        \
    "cdeepspeed.utils.tensor_fragment\nfragment_address\n)R(Vstart\nI" start "\nVnumel\nI" count   \
    "\ndb"
#define STATE(count)                                                                               \
    PT_TEXT("state") PT_DICT(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR(count)))
/* Stage 1: a part of `count` elements, and what it says of the parameters. */
#define PART(count, slices)                                                                        \
    PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT("base_optimizer_state") PT_DICT(       \
        STATE(count)) PT_TEXT("partition_count") PT_LIST(PT_INT("2")) slices))
#define SLICES(slices) PT_TEXT("param_slice_mappings") PT_LIST(PT_DICT(slices))
#define PART3_WITH(count, masters)                                                                 \
    PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(       \
        STATE(count)) PT_TEXT("partition_count") PT_INT("2") masters))
#define PART3(count) PART3_WITH(count, "")

static void write_checkpoint(const char *temp, const char *model, const char *first,
                             const char *second) {
    write_pt(temp, "mp_rank_00_model_states.pt", model);
    write_pt(temp, "zero_pp_rank_0_mp_rank_00_optim_states.pt", first);
    write_pt(temp, "zero_pp_rank_1_mp_rank_00_optim_states.pt", second);
}

/* Piece `index` of a parameter's exp_avg: its range in the parameter and where it lies. */
static void check_range(const struct opened *opened, const char *name, size_t index, uint64_t from,
                        uint64_t count, int64_t at, int32_t dp) {
    const struct gradcmp_stored *stored = find_stored(opened, name, "exp_avg");
    assert_non_null(stored);
    check_flat(stored);
    assert_true(index < stored->piece_count);
    const struct gradcmp_piece *piece = &stored->pieces[index];
    assert_int_equal(piece->start[stored->ndim - 1], from);
    assert_int_equal(piece->extent[stored->ndim - 1], count);
    assert_int_equal(piece->offset_elems, at);
    assert_int_equal(piece->coords->dp, dp);
}

static void test_deepspeed__parts_are_cut_where_ranks_meet(void **state) {
    write_checkpoint(*state, MODEL(A_AND_B),
                     PART("8", SLICES(PT_TEXT("a") SLICE("0", "6") PT_TEXT("b") SLICE("6", "2"))),
                     PART("4", SLICES(PT_TEXT("b") SLICE("0", "2"))));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    check_range(opened, "a", 0, 0, 6, 0, 0);
    check_range(opened, "b", 0, 0, 2, 6, 0);
    check_range(opened, "b", 1, 2, 2, 0, 1);
    assert_int_equal(opened->catalogue.source_count, 2); /* one for each rank's part */
    close_format(opened);
}

static void test_deepspeed__stage3_cuts_every_parameter(void **state) {
    write_checkpoint(*state, MODEL(A_AND_B), PART3("5"), PART3("5"));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    check_range(opened, "a", 0, 0, 3, 0, 0);
    check_range(opened, "a", 1, 3, 3, 0, 1);
    check_range(opened, "b", 1, 2, 2, 3, 1);
    close_format(opened);
    write_checkpoint(*state, MODEL(PT_TEXT("a") "(I3\nt" PT_TEXT("b") "(I1\nt"), PART3("3"),
                     PART3("3")); /* parts of 2 and 1, the last ones padded */
    opened = open_good(&gcmp_format_deepspeed, *state);
    check_range(opened, "a", 1, 2, 1, 0, 1);
    check_range(opened, "b", 0, 0, 1, 2, 0);
    assert_int_equal(find_stored(opened, "b", "exp_avg")->piece_count, 1);
    close_format(opened);
    write_checkpoint(*state, MODEL(A_AND_B), PART3("5"), PART3("6"));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_1_mp_rank_00_optim_states.pt",
                  "deepspeed: exp_avg: expected 5 elements, the rank's parts of all parameters, "
                  "found 6");
}

/* Whichever rank lacks it: the first one is the one that tells what states there are. */
static void test_deepspeed__a_state_of_some_ranks_only_is_refused(void **state) {
    static const char masters[] =
        PART("6", PT_TEXT("single_partition_of_fp32_groups") PT_LIST(PT_VECTOR("6")));
    static const char masters3[] =
        PART3_WITH("5", PT_TEXT("fp32_flat_groups") PT_LIST(PT_VECTOR("5")));
    write_checkpoint(*state, MODEL(A_AND_B), masters, masters);
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    assert_non_null(find_stored(opened, "a", "fp32_param"));
    close_format(opened);
    write_checkpoint(*state, MODEL(A_AND_B), PART("6", ""), masters);
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                  "deepspeed: no fp32_param of group 0, which other ranks have");
    write_checkpoint(*state, MODEL(A_AND_B), masters, PART("6", ""));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_1_mp_rank_00_optim_states.pt",
                  "deepspeed: no fp32_param of group 0, which other ranks have");
    write_checkpoint(*state, MODEL(A_AND_B), PART3("5"), masters3);
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                  "deepspeed: no fp32_param, which other ranks have");
    write_checkpoint(*state, MODEL(A_AND_B), masters3, PART3("5"));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_1_mp_rank_00_optim_states.pt",
                  "deepspeed: fp32_param: expected 5 elements, the rank's parts of all "
                  "parameters, found 0");
}

/* Three ranks share one element: two of them have none, and their pieces end where it does. */
static void test_deepspeed__stage3_has_ranks_without_elements(void **state) {
    static const char part[] = PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT(
        "optimizer_state_dict") PT_DICT(STATE("3")) PT_TEXT("partition_count") PT_INT("3")));
    write_checkpoint(*state, MODEL(PT_TEXT("a") "(I4\nt" PT_TEXT("b") "(I1\nt"), part, part);
    write_pt(*state, "zero_pp_rank_2_mp_rank_00_optim_states.pt", part);
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    assert_int_equal(find_stored(opened, "b", "exp_avg")->piece_count, 1);
    check_range(opened, "b", 0, 0, 1, 2, 0);
    close_format(opened);
}

static void test_deepspeed__lengths_must_add_up(void **state) {
    write_checkpoint(*state, MODEL(A_AND_B), PART("5", ""), PART("4", ""));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                  "deepspeed: exp_avg of group 0: the 2 ranks' parts have 9 elements, the "
                  "parameters 10 and a padding of less than 4");
    write_checkpoint(*state, MODEL(A_AND_B), PART("7", ""), PART("7", ""));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "deepspeed: exp_avg of group 0: the 2 ranks'*");
    write_checkpoint(*state, MODEL(A_AND_B), PART("6", ""), PART("6", ""));
    close_format(open_good(&gcmp_format_deepspeed, *state));
}

static void test_deepspeed__ranks_maps_must_agree(void **state) {
    static const char message[] = "deepspeed: group 0: param_slice_mappings do not agree with "
                                  "param_shapes and the ranks' parts";
    write_checkpoint(*state, MODEL(A_AND_B),
                     PART("8", SLICES(PT_TEXT("a") SLICE("0", "6") PT_TEXT("b") SLICE("6", "2"))),
                     PART("4", SLICES(PT_TEXT("b") SLICE("1", "2"))));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "", message);
    write_checkpoint(*state, MODEL(A_AND_B),
                     PART("8", SLICES(PT_TEXT("b") SLICE("0", "4") PT_TEXT("a") SLICE("4", "4"))),
                     PART("4", SLICES(PT_TEXT("a") SLICE("0", "2"))));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "", message);
    write_checkpoint(*state, MODEL(A_AND_B), PART("8", SLICES(PT_TEXT("a") SLICE("0", "6"))),
                     PART("4", SLICES(PT_TEXT("b") SLICE("0", "2"))));
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "", message);
}

static void test_deepspeed__tensor_parallelism_is_refused(void **state) {
    write_checkpoint(*state, MODEL(A_AND_B), PART("6", ""), PART("6", ""));
    write_pt(*state, "mp_rank_01_model_states.pt", MODEL(A_AND_B));
    write_pt(*state, "zero_pp_rank_0_mp_rank_01_optim_states.pt", PART("6", ""));
    write_pt(*state, "zero_pp_rank_1_mp_rank_01_optim_states.pt", PART("6", ""));
    check_refused(*state, GRADCMP_ERROR_UNSUPPORTED, "",
                  "tensor parallelism (\"a\" is of several mp_ranks)*");
    /* parameters of its own: another stage of a pipeline */
    write_pt(*state, "mp_rank_01_model_states.pt", MODEL(PT_TEXT("c") "(I10\nt"));
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    check_range(opened, "c", 1, 6, 4, 0, 1);
    close_format(opened);
    lose(*state, "mp_rank_01_model_states.pt");
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "incomplete: zero_pp_rank_0_mp_rank_01_optim_states.pt is there, but no model "
                  "file of mp_rank_01");
    write_pt(*state, "mp_rank_01_model_states.pt", MODEL(PT_TEXT("c") "(I10\nt"));
    lose(*state, "zero_pp_rank_0_mp_rank_01_optim_states.pt");
    lose(*state, "zero_pp_rank_1_mp_rank_01_optim_states.pt");
    check_refused(*state, GRADCMP_ERROR_CORRUPT, "",
                  "incomplete: 1 of 2 mp_ranks have no optimizer's state");
}

/* Two ranks with two experts each, that count them from 0. */
static void test_deepspeed__experts_are_counted_over_ranks(void **state) {
#define EXPERT(number) "moe.deepspeed_experts." number ".w"
#define EXPERT_PART                                                                                \
    PT_DICT(PT_TEXT("optimizer_state_dict") PT_DICT(PT_TEXT("base_optimizer_state") PT_DICT(       \
        PT_TEXT("state") PT_DICT(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("2")) PT_INT(    \
            "1") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("6")))) PT_TEXT("partition_count")           \
                                                        PT_LIST(PT_INT("2") PT_INT("1"))))
    write_checkpoint(*state,
                     PT_DICT(PT_TEXT("param_shapes") PT_LIST(PT_DICT(PT_TEXT("a") "(I4\nt") PT_DICT(
                         PT_TEXT(EXPERT("0")) "(I3\nt" PT_TEXT(EXPERT("1")) "(I3\nt"))),
                     EXPERT_PART, EXPERT_PART);
    struct opened *opened = open_good(&gcmp_format_deepspeed, *state);
    check_range(opened, "a", 1, 2, 2, 0, 1);
    check_range(opened, EXPERT("0"), 0, 0, 3, 0, 0);
    check_range(opened, EXPERT("1"), 0, 0, 3, 3, 0);
    check_range(opened, EXPERT("2"), 0, 0, 3, 0, 1);
    check_range(opened, EXPERT("3"), 0, 0, 3, 3, 1);
    close_format(opened);
}

static void test_deepspeed__other_folders_are_not_claimed(void **state) {
    struct gcmp_dir *dir;
    write_pt(*state, "mp_rank_00.pth", PT_DICT(PT_TEXT("a") PT_VECTOR("4")));
    write_pt(*state, "optimizer.pt", PT_DICT(PT_TEXT("a") PT_VECTOR("4")));
    assert_int_equal(gcmp_dir_open(*state, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_format_deepspeed.probe(dir), 0);
    write_pt(*state, "bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt", "N");
    assert_int_equal(gcmp_format_deepspeed.probe(dir), 2);
    gcmp_dir_close(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deepspeed__samples_hold_the_writers_gradients),
        cmocka_unit_test(test_deepspeed__the_run_is_described),
        TEMP_TEST(test_deepspeed__lost_files_are_missed),
        TEMP_TEST(test_deepspeed__a_lost_last_mp_rank_is_missed),
        TEMP_TEST(test_deepspeed__lost_model_files_of_stage3_are_told),
        TEMP_TEST(test_deepspeed__files_of_two_saves_are_refused),
        TEMP_TEST(test_deepspeed__a_universal_folder_must_be_whole),
        TEMP_TEST(test_deepspeed__parts_are_cut_where_ranks_meet),
        TEMP_TEST(test_deepspeed__stage3_cuts_every_parameter),
        TEMP_TEST(test_deepspeed__a_state_of_some_ranks_only_is_refused),
        TEMP_TEST(test_deepspeed__stage3_has_ranks_without_elements),
        TEMP_TEST(test_deepspeed__lengths_must_add_up),
        TEMP_TEST(test_deepspeed__ranks_maps_must_agree),
        TEMP_TEST(test_deepspeed__tensor_parallelism_is_refused),
        TEMP_TEST(test_deepspeed__experts_are_counted_over_ranks),
        TEMP_TEST(test_deepspeed__other_folders_are_not_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
