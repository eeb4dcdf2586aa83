/* Files of torch.save: samples of real runs, and what is made of forms, folders and damage. */
#include "formats/torch_save_tools.h"

#include "formats/torch_save.h"

#define SAMPLES GCMP_TEST_DATA "/torch_save/"

static int setup(void **state) {
    *state = temp_dir_make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state) {
    temp_dir_remove(*state);
    return 0;
}

static struct opened *open_file(const char *temp, const char *name) {
    char *path = temp_path(temp, name);
    struct opened *opened = open_good(&gcmp_format_torch_save, path);
    free(path);
    return opened;
}

static void check_refused(const char *temp, const char *name, enum gradcmp_status code,
                          uint64_t offset, const char *path_end, const char *message) {
    char *path = temp_path(temp, name);
    check_refused_open(&gcmp_format_torch_save, path, code, offset, path_end, message);
    free(path);
}

static void check_setting(const struct opened *opened, const char *name, double value) {
    const struct gradcmp_setting *setting = gcmp_catalogue_setting(&opened->catalogue, name);
    assert_non_null(setting);
    double found =
        setting->kind == GRADCMP_SETTING_INT ? (double)setting->integer : setting->number;
    assert_true(found >= value && found <= value);
}

/* --- samples --- */

static void test_torch_save__samples_hold_the_writers_gradients(void **state) {
    static const char *const names[] = {
        "groups.pt", "groups_stream.pt", "tied.pt",      "buffers.pt", "apart",
        "fsdp2",     "tensor_parallel",  "fsdp1_sharded"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], truth[512];
        snprintf(path, sizeof path, SAMPLES "%s", names[i]);
        snprintf(truth, sizeof truth, SAMPLES "%.*s.truth", (int)strcspn(names[i], "."), names[i]);
        check_state(&gcmp_format_torch_save, path, "exp_avg", truth, 0);
    }
}

static void test_torch_save__every_layout_of_elements_is_read(void **state) {
    (void)state; /* beside these: float16 and two types of float8 */
    check_state(&gcmp_format_torch_save, SAMPLES "zoo.pt", "param", SAMPLES "zoo.truth", 3);
    check_state(&gcmp_format_torch_save, SAMPLES "zoo_stream.pt", "param", SAMPLES "zoo.truth", 3);
}

static void test_torch_save__groups_of_options_become_settings(void **state) {
    (void)state;
    struct opened *opened = open_good(&gcmp_format_torch_save, SAMPLES "groups.pt");
    assert_int_equal(opened->catalogue.iteration, 1);
    assert_true(opened->catalogue.is_ordered);
    assert_string_equal(opened->catalogue.writer, "torch");
    check_setting(opened, "adam_beta1", 0.0);
    check_setting(opened, "adam_beta2", 0.0);
    check_setting(opened, "lr", 1e-3);
    assert_int_equal(count_state(opened, "param"), 14);
    assert_int_equal(count_state(opened, "exp_avg_sq"), 14);
    close_format(opened);
}

/* Copies of ranks are pieces of their own. */
static void test_torch_save__replicas_are_kept_as_copies(void **state) {
    const char *path = SAMPLES "replicas";
    (void)state;
    struct opened *opened = open_good(&gcmp_format_torch_save, path);
    const struct gradcmp_stored *stored = find_stored(opened, "0", "exp_avg");
    assert_non_null(stored); /* the model's files are not there: numbers stay */
    assert_int_equal(stored->piece_count, 4);
    assert_int_equal(opened->catalogue.number_count, 14);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(stored->pieces[i].coords->dp, i);
        assert_int_equal(stored->pieces[i].start[0], i % 2 == 0 ? 0 : 4);
        assert_int_equal(stored->pieces[i].extent[0], i % 2 == 0 ? 4 : 3);
    }
    close_format(opened);
}

static void test_torch_save__a_lost_ranks_file_is_missed(void **state) {
    char command[1024];
    snprintf(command, sizeof command,
             "cp " SAMPLES "fsdp2/*rank_0.pt " SAMPLES "fsdp2/*rank_2.pt %s", (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: model_world_size_3_rank_2.pt is there, but not the file of rank 1");
    snprintf(command, sizeof command,
             "cd %s && rm *rank_2.pt && for f in *; do mv $f "
             "${f%%world*}rank_0.pt; done",
             (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: tensors are sharded over 3 ranks, and the files are of 1");
    snprintf(command, sizeof command, "cd %s && mv model_rank_0.pt rank0_model.pt && rm -f optim*",
             (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: tensors are sharded over 3 ranks, and no file is named after its "
                  "rank (model_rank0.pt, model_rank1.pt, ...)");
    snprintf(command, sizeof command, "rm %s/*; cp " SAMPLES "fsdp2/*rank_[01].pt %s",
             (const char *)*state, (const char *)*state);
    assert_int_equal(system(command), 0);
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: model_world_size_3_rank_0.pt is one of 3 ranks' files, 2 are there");
}

/* --- forms --- */

#define STEP(value) PT_TEXT("step") value
#define MOMENT      PT_TEXT("exp_avg") PT_MATRIX("3", "4")

static int64_t iteration_of(const char *temp, const char *pickle) {
    struct opened *opened = open_pickle(temp, pickle);
    int64_t iteration = opened->catalogue.iteration;
    close_format(opened);
    return iteration;
}

static void test_torch_save__a_step_in_any_form_is_the_iteration(void **state) {
    const char *temp = *state;
    assert_int_equal(iteration_of(temp, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT STEP("I7\n")),
                                                     PT_GROUP(PT_INT("0")))),
                     7);
    assert_int_equal(iteration_of(temp, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT STEP("F8.0\n")),
                                                     PT_GROUP(PT_INT("0")))),
                     8);
    assert_int_equal(/* element 1 of the record is 1.5: no count */
                     iteration_of(temp, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT STEP(PT_SCALAR)),
                                                     PT_GROUP(PT_INT("0")))),
                     -1);
    assert_int_equal(iteration_of(temp, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT),
                                                     PT_DICT(PT_TEXT("params") PT_LIST(PT_INT("0"))
                                                                 STEP("I9\n")))),
                     9);
    assert_int_equal(/* parameters disagree */
                     iteration_of(temp, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT STEP("I7\n"))
                                                         PT_INT("1") PT_DICT(MOMENT STEP("I8\n")),
                                                     PT_GROUP(PT_INT("0") PT_INT("1")))),
                     -1);
    assert_int_equal(/* the file's own word comes first */
                     iteration_of(
                         temp, PT_DICT(PT_TEXT("optimizer") PT_OPTIMIZER(
                                   PT_INT("0") PT_DICT(MOMENT STEP("I7\n")), PT_GROUP(PT_INT("0")))
                                           PT_TEXT("global_step") PT_INT("12"))),
                     12);
}

static void test_torch_save__an_optimizer_alone_keeps_numbers(void **state) {
    struct opened *opened =
        open_pickle(*state, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT) PT_INT("1") PT_DICT(MOMENT),
                                         PT_GROUP(PT_INT("0")) PT_GROUP(PT_INT("1"))));
    assert_non_null(find_stored(opened, "0", "exp_avg"));
    assert_non_null(find_stored(opened, "1", "exp_avg"));
    assert_int_equal(opened->catalogue.number_count, 2);
    assert_int_equal(opened->catalogue.number_groups[0], 0);
    assert_int_equal(opened->catalogue.number_groups[1], 1);
    assert_text_contains(opened->catalogue.notes[0], "numbers its 2 parameters");
    close_format(opened);
}

#define DECAYED(options)                                                                           \
    PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT),                                                      \
                 PT_DICT(PT_TEXT("params") PT_LIST("") PT_TEXT("weight_decay") "F9.0\n")           \
                     PT_DICT(PT_TEXT("params") PT_LIST(PT_INT("0")) options))

static double added_decay(const char *temp, const char *pickle) {
    struct opened *opened = open_pickle(temp, pickle);
    const struct gradcmp_setting *setting =
        gcmp_catalogue_setting(&opened->catalogue, "optimizer.added_decay");
    double decay = setting == NULL ? 0.0 : setting->number;
    close_format(opened);
    return decay;
}

/* What an optimizer adds to the gradient before it averages. */
static void test_torch_save__decay_that_is_not_decoupled_is_a_setting(void **state) {
    assert_true(added_decay(*state, DECAYED(PT_TEXT("weight_decay") "F0.5\n" PT_TEXT(
                                        "decoupled_weight_decay") "I00\n")) == 0.5);
    assert_true(added_decay(*state, DECAYED(PT_TEXT("weight_decay") "F0.5\n" PT_TEXT(
                                        "decoupled_weight_decay") "I01\n")) == 0.0);
    assert_true(added_decay(*state, DECAYED(PT_TEXT("weight_decay") "F0.5\n")) == 0.0);
    assert_true(added_decay(*state, DECAYED(PT_TEXT("weight_decay") "F0.5\n" PT_TEXT("dampening")
                                                PT_INT("0"))) == 0.5);
    assert_true(added_decay(*state, DECAYED(PT_TEXT("decoupled_weight_decay") "I00\n")) == 0.0);
}

static void test_torch_save__names_of_any_source_are_taken(void **state) {
    /* names for keys, as a gathered state dict has them */
    struct opened *opened = open_pickle(
        *state, PT_DICT(PT_TEXT("optim") PT_OPTIMIZER(PT_TEXT("a.weight") PT_DICT(MOMENT),
                                                      PT_GROUP(PT_TEXT("a.weight")))));
    const struct gradcmp_stored *stored = find_stored(opened, "a.weight", "exp_avg");
    assert_non_null(stored);
    assert_string_equal(stored->key, "optim.state.a.weight.exp_avg");
    close_format(opened);
    /* names beside the numbers; a weight of another name would be ambiguous */
    opened = open_pickle(*state,
                         PT_DICT(PT_TEXT("optimizer") PT_OPTIMIZER(
                             PT_INT("0") PT_DICT(MOMENT),
                             PT_DICT(PT_TEXT("params") PT_LIST(PT_INT("0")) PT_TEXT("param_names")
                                         PT_LIST(PT_TEXT("b.weight")))) PT_TEXT("model")
                                     PT_DICT(PT_TEXT("a.weight") PT_MATRIX("3", "4")
                                                 PT_TEXT("b.weight") PT_MATRIX("3", "4"))));
    assert_non_null(find_stored(opened, "b.weight", "exp_avg"));
    assert_null(find_stored(opened, "a.weight", "exp_avg"));
    close_format(opened);
}

static void test_torch_save__bare_dicts_tell_states_by_their_words(void **state) {
    struct opened *opened = open_pickle(
        *state, PT_DICT(PT_TEXT("exp_avg.a.weight") PT_MATRIX("3", "4") PT_TEXT("grad.b.weight")
                            PT_MATRIX("3", "4") PT_TEXT("a.weight") PT_MATRIX("3", "4")));
    assert_non_null(find_stored(opened, "a.weight", "exp_avg"));
    assert_non_null(find_stored(opened, "b.weight", "main_grad"));
    assert_non_null(find_stored(opened, "a.weight", "param"));
    close_format(opened);
    opened = open_pickle(
        *state, PT_DICT(PT_TEXT("grads") PT_DICT(PT_TEXT("a.weight") PT_MATRIX("3", "4"))));
    assert_non_null(find_stored(opened, "a.weight", "main_grad"));
    close_format(opened);
    opened = open_pickle(*state, PT_MATRIX("3", "4"));
    assert_non_null(find_stored(opened, "file", "param"));
    close_format(opened);
}

static void test_torch_save__of_several_dicts_the_models_are_weights(void **state) {
    struct opened *opened = open_pickle(
        *state, PT_DICT(PT_TEXT("ema") PT_DICT(PT_TEXT("a") PT_VECTOR("2")) PT_TEXT("model")
                            PT_DICT(PT_TEXT("a") PT_VECTOR("3")) PT_TEXT("seed") PT_VECTOR("1")));
    const struct gradcmp_stored *stored = find_stored(opened, "a", "param");
    assert_non_null(stored);
    assert_int_equal(stored->shape[0], 3);
    assert_int_equal(count_state(opened, "param"), 1);
    close_format(opened);
    opened =
        open_pickle(*state, PT_DICT(PT_TEXT("generator") PT_DICT(PT_TEXT("a") PT_VECTOR("2"))
                                        PT_TEXT("critic") PT_DICT(PT_TEXT("a") PT_VECTOR("3"))));
    assert_non_null(find_stored(opened, "generator.a", "param"));
    assert_non_null(find_stored(opened, "critic.a", "param"));
    close_format(opened);
}

static void test_torch_save__lists_of_optimizers_are_found(void **state) {
    struct opened *opened = open_pickle(
        *state, PT_DICT(PT_TEXT("state_dict") PT_DICT(PT_TEXT("a") PT_MATRIX("3", "4") PT_TEXT(
                    "b") PT_VECTOR("4")) PT_TEXT("optimizer_states")
                            PT_LIST(PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT) PT_INT("1")
                                                     PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("4")),
                                                 PT_GROUP(PT_INT("0") PT_INT("1"))))));
    assert_non_null(find_stored(opened, "a", "exp_avg"));
    assert_non_null(find_stored(opened, "b", "exp_avg"));
    close_format(opened);
}

static void test_torch_save__big_endian_elements_are_marked(void **state) {
    write_pt_order(*state, "file.pt", PT_DICT(PT_TEXT("a") PT_VECTOR("4")), "big");
    struct opened *opened = open_file(*state, "file.pt");
    assert_int_equal(opened->catalogue.sources[0].big_endian, 1);
    close_format(opened);
}

/* Views of one record share a source, so that its checksum is compared once. */
static void test_torch_save__views_share_their_record(void **state) {
    struct opened *opened =
        open_pickle(*state, PT_DICT(PT_TEXT("a") PT_MATRIX("3", "4") PT_TEXT("b")
                                        PT_TENSOR(PT_FLOATS, "5", "(I2\nI2\nt", "(I1\nI4\nt")));
    const struct gradcmp_stored *b = find_stored(opened, "b", "param");
    assert_int_equal(opened->catalogue.source_count, 1);
    assert_int_equal(opened->catalogue.sources[0].length_bytes, 48);
    assert_int_equal(b->pieces[0].offset_elems, 5);
    assert_int_equal(b->pieces[0].stride[0], 1);
    assert_int_equal(b->pieces[0].stride[1], 4);
    close_format(opened);
}

/* States that have no element for each of their parameter's are listed, not compared. */
static void test_torch_save__states_of_other_shapes_are_listed_only(void **state) {
    struct opened *opened = open_pickle(
        *state,
        PT_DICT(
            PT_TEXT("model") PT_DICT(PT_TEXT("a") PT_MATRIX("3", "4")) PT_TEXT("optimizer")
                PT_OPTIMIZER(PT_TEXT("a") PT_DICT(MOMENT PT_TEXT("exp_avg_sq_row") PT_VECTOR("3")),
                             PT_GROUP(PT_TEXT("a")))));
    assert_non_null(find_stored(opened, "a", "exp_avg"));
    assert_null(find_stored(opened, "a", "exp_avg_sq_row"));
    assert_int_equal(opened->catalogue.stored_count, 3);
    assert_text_contains(opened->catalogue.notes[0], "1 tensors are listed, not read");
    close_format(opened);
}

/* --- refusals --- */

static void test_torch_save__what_is_compared_is_never_passed_over(void **state) {
    struct opened *opened = open_pickle(
        *state,
        PT_OPTIMIZER(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") PT_TENSOR(
                         PT_STORAGE("ComplexFloatStorage", "0", "6"), "0", "(I6\nt", "(I1\nt")),
                     PT_GROUP(PT_INT("0"))));
    const struct gradcmp_stored *stored = find_stored(opened, "0", "exp_avg");
    assert_non_null(stored);
    assert_int_equal(stored->dtype, GRADCMP_DTYPE_COMPLEX64);
    close_format(opened);
#define SPARSE                                                                                     \
    PT_OPTIMIZER(PT_INT("0")                                                                       \
                     PT_DICT(PT_TEXT("exp_avg") "ctorch._utils\n_rebuild_sparse_tensor\n(tR"),     \
                 PT_GROUP(PT_INT("0")))
    check_pickle_refused(*state, SPARSE, GRADCMP_ERROR_UNSUPPORTED,
                         "torch: \"state.0.exp_avg\": expected a tensor of real numbers for the "
                         "state exp_avg, found torch: a sparse tensor*");
    opened = open_pickle(*state, PT_DICT(PT_TEXT("optim") SPARSE PT_TEXT("model")
                                             PT_DICT(PT_TEXT("a") PT_VECTOR("4"))));
    assert_int_equal(count_state(opened, "exp_avg"), 0);
    assert_string_equal(opened->catalogue.stored[0].unread_state, "exp_avg");
    assert_text_contains(opened->catalogue.stored[0].unread_why, "torch: a sparse tensor");
    close_format(opened);
    opened = open_pickle(*state, PT_DICT(PT_TEXT("a") PT_VECTOR("4")
                                             PT_TEXT("q") "ctorch._utils\n_rebuild_qtensor\n(tR"));
    assert_int_equal(count_state(opened, "param"), 1);
    assert_text_contains(opened->catalogue.notes[0], "q (torch: a quantized tensor");
    close_format(opened);
}

static void test_torch_save__contradictions_of_an_optimizer_are_damage(void **state) {
    check_pickle_refused(*state, PT_OPTIMIZER(PT_INT("1") PT_DICT(MOMENT), PT_GROUP(PT_INT("0"))),
                         GRADCMP_ERROR_CORRUPT,
                         "torch: a state of parameter 1, which no group lists");
    check_pickle_refused(
        *state,
        PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT), PT_GROUP(PT_INT("0")) PT_GROUP(PT_INT("0"))),
        GRADCMP_ERROR_CORRUPT, "torch: param_groups list parameter 0 twice");
    check_pickle_refused(
        *state, PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT), "I5\n"), GRADCMP_ERROR_CORRUPT,
        "torch: expected a list \"params\" in a group of parameters, found nothing");
    check_pickle_refused(*state, PT_OPTIMIZER(PT_INT("0") PT_LIST("I1\n"), PT_GROUP(PT_INT("0"))),
                         GRADCMP_ERROR_CORRUPT,
                         "torch: expected a dict as state of a parameter, found a list");
    check_pickle_refused(
        *state,
        PT_DICT(PT_TEXT("model") PT_DICT(PT_TEXT("a") PT_MATRIX("3", "4")) PT_TEXT("optimizer")
                    PT_OPTIMIZER(PT_TEXT("a") PT_DICT(PT_TEXT("exp_avg") PT_VECTOR("3")),
                                 PT_GROUP(PT_TEXT("a")))),
        GRADCMP_ERROR_CORRUPT,
        "torch: \"optimizer.state.a.exp_avg\" is not of the shape of its parameter \"model.a\"");
    check_pickle_refused(*state,
                         PT_OPTIMIZER(PT_INT("0") PT_DICT(MOMENT),
                                      PT_DICT(PT_TEXT("params") PT_LIST(PT_INT("0")) PT_TEXT(
                                          "param_names") PT_LIST(PT_TEXT("a") PT_TEXT("b")))),
                         GRADCMP_ERROR_CORRUPT, "torch: a group of 1 parameters with 2 names");
}

#define HALF(offset) PT_TENSOR(PT_FLOATS, offset, "(I1\nI4\nt", "(I4\nI1\nt")
#define ONE_NUMBER_OF(first, second)                                                               \
    PT_DICT(PT_TEXT("model") PT_DICT(PT_TEXT("a") first PT_TEXT("b") second) PT_TEXT("optimizer")  \
                PT_OPTIMIZER(PT_INT("0") PT_DICT(PT_TEXT("exp_avg") HALF("0")),                    \
                             PT_GROUP(PT_INT("0"))))

static void test_torch_save__ambiguous_numbers_stay_numbers(void **state) {
    struct opened *opened = open_pickle(*state, ONE_NUMBER_OF(HALF("0"), HALF("4")));
    assert_text_contains(
        opened->catalogue.notes[0],
        "the optimizer numbers its parameters, and number 0, of shape [1, 4], could be several "
        "weights (there are fewer numbers than weights)");
    assert_int_equal(opened->catalogue.number_count, 1);
    assert_non_null(find_stored(opened, "0", "exp_avg"));
    assert_non_null(find_stored(opened, "b", "param"));
    close_format(opened);
    /* two names of the same elements are one parameter */
    opened = open_pickle(*state, ONE_NUMBER_OF(HALF("4"), HALF("4")));
    assert_non_null(find_stored(opened, "a", "exp_avg"));
    assert_non_null(find_stored(opened, "b", "param"));
    close_format(opened);
}

static void test_torch_save__nothing_to_read_is_said(void **state) {
    check_pickle_refused(*state, PT_LIST("I1\nI2\n"), GRADCMP_ERROR_UNSUPPORTED,
                         "torch: no state of an optimizer and no dict of tensors in file.pt");
    check_pickle_refused(*state, "cposix\nsystem\n(Vtouch gradcmp_was_tricked\ntR",
                         GRADCMP_ERROR_UNSUPPORTED,
                         "torch: no state of an optimizer and no dict of tensors in file.pt");
}

/* Reading an expanded view takes as long as its shape says. */
static void test_torch_save__endless_views_are_refused(void **state) {
    check_pickle_refused(
        *state,
        PT_DICT(PT_TEXT("a") PT_TENSOR(PT_FLOATS, "0", "(I1048576\nI1048576\nt", "(I0\nI0\nt")),
        GRADCMP_ERROR_LIMIT,
        "torch: an expanded view of 1099511627776 elements of a storage of 12");
    struct opened *opened = open_pickle(
        *state, PT_DICT(PT_TEXT("a") PT_TENSOR(PT_FLOATS, "0", "(I1024\nI1024\nt", "(I0\nI0\nt")));
    close_format(opened);
}

/* A dict that is in the object many times is not looked at as often. */
static void test_torch_save__dicts_in_dicts_are_bounded(void **state) {
    char *pickle = malloc(1 << 20), *at = pickle;
    at += sprintf(at, "(");
    for (int i = 0; i < 15; i++) {
        at += sprintf(at, "V%d\nN", i);
    }
    at += sprintf(at, "dp0\n0("); /* the dict in the memo, and a dict that holds it 4000 times */
    for (int i = 0; i < 4000; i++) {
        at += sprintf(at, "V%d\ng0\n", i);
    }
    sprintf(at, "d");
    write_pt(*state, "file.pt", pickle);
    free(pickle);
    check_refused(*state, "file.pt", GRADCMP_ERROR_LIMIT, ANY_OFFSET, "file.pt",
                  "torch: more entries than a pickle of *");
}

/* --- folders --- */

static void test_torch_save__a_parameter_in_two_files_is_refused(void **state) {
    write_pt(*state, "a.pt", PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
    write_pt(*state, "b.pt", PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
    check_refused(*state, "", GRADCMP_ERROR_UNSUPPORTED, GRADCMP_NO_OFFSET, "b.pt",
                  "torch: \"x\": the param of this parameter is also in a.pt; name one file");
}

static void test_torch_save__all_parts_of_a_series_must_be_there(void **state) {
    write_pt(*state, "pytorch_model-00001-of-00003.bin", PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
    write_pt(*state, "pytorch_model-00002-of-00003.bin", PT_DICT(PT_TEXT("y") PT_VECTOR("4")));
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: pytorch_model-00002-of-00003.bin is there, but not part 3");
    write_pt(*state, "pytorch_model-00003-of-00003.bin", PT_DICT(PT_TEXT("z") PT_VECTOR("4")));
    struct opened *opened = open_file(*state, "");
    assert_int_equal(count_state(opened, "param"), 3);
    close_format(opened);
    char *path = temp_path(*state, "pytorch_model-00001-of-00003.bin");
    assert_int_equal(unlink(path), 0);
    free(path);
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "",
                  "incomplete: pytorch_model-00002-of-00003.bin is there, but not part 1");
}

/* Weights of ranks' own shapes are no pieces of one tensor. */
static void test_torch_save__ranks_must_agree_on_shapes(void **state) {
    write_pt(*state, "w_rank0.pt", PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
    write_pt(*state, "w_rank1.pt", PT_DICT(PT_TEXT("x") PT_VECTOR("3")));
    check_refused(*state, "", GRADCMP_ERROR_CORRUPT, GRADCMP_NO_OFFSET, "w_rank1.pt",
                  "torch: \"x\" is of another shape or type than in w_rank0.pt");
}

static void test_torch_save__other_contents_are_told_apart(void **state) {
    unsigned char tar[1024] = "storages";
    memcpy(tar + 257, "ustar", 5);
    temp_file(*state, "file.pt", tar, sizeof tar);
    check_refused(*state, "file.pt", GRADCMP_ERROR_UNSUPPORTED, 0, "file.pt",
                  "torch: a tar archive*");
    temp_file(*state, "file.pt", "text", 4);
    check_refused(*state, "file.pt", GRADCMP_ERROR_CORRUPT, 0, "file.pt",
                  "torch: expected a zip archive or a stream*");
    /* beside a checkpoint a .bin may be anything */
    write_pt(*state, "file.pt", PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
    temp_file(*state, "words.bin", "text", 4);
    struct opened *opened = open_file(*state, "");
    assert_text_contains(opened->catalogue.notes[0], "words.bin");
    close_format(opened);
}

static void test_torch_save__probe_tells_by_content(void **state) {
    static const struct {
        const char *name;
        int alone, in_folder;
    } cases[] = {{"file.pt", 2, 1}, {"optimizer.bin", 2, 2}, {"no_suffix", 2, 0}};
    struct gcmp_dir *dir;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_pt(*state, cases[i].name, PT_DICT(PT_TEXT("x") PT_VECTOR("4")));
        char *path = temp_path(*state, cases[i].name);
        assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
        assert_int_equal(gcmp_format_torch_save.probe(dir), cases[i].alone);
        gcmp_dir_close(dir);
        assert_int_equal(gcmp_dir_open(*state, &dir, NULL), GRADCMP_OK);
        assert_int_equal(gcmp_format_torch_save.probe(dir), cases[i].in_folder);
        gcmp_dir_close(dir);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    temp_file(*state, "a.txt", "text", 4);
    char *path = temp_path(*state, "a.txt");
    assert_int_equal(gcmp_dir_open(path, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_format_torch_save.probe(dir), 0);
    gcmp_dir_close(dir);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_save__samples_hold_the_writers_gradients),
        cmocka_unit_test(test_torch_save__every_layout_of_elements_is_read),
        cmocka_unit_test(test_torch_save__groups_of_options_become_settings),
        cmocka_unit_test(test_torch_save__replicas_are_kept_as_copies),
        TEMP_TEST(test_torch_save__a_lost_ranks_file_is_missed),
        TEMP_TEST(test_torch_save__a_step_in_any_form_is_the_iteration),
        TEMP_TEST(test_torch_save__an_optimizer_alone_keeps_numbers),
        TEMP_TEST(test_torch_save__decay_that_is_not_decoupled_is_a_setting),
        TEMP_TEST(test_torch_save__names_of_any_source_are_taken),
        TEMP_TEST(test_torch_save__bare_dicts_tell_states_by_their_words),
        TEMP_TEST(test_torch_save__of_several_dicts_the_models_are_weights),
        TEMP_TEST(test_torch_save__lists_of_optimizers_are_found),
        TEMP_TEST(test_torch_save__big_endian_elements_are_marked),
        TEMP_TEST(test_torch_save__views_share_their_record),
        TEMP_TEST(test_torch_save__states_of_other_shapes_are_listed_only),
        TEMP_TEST(test_torch_save__what_is_compared_is_never_passed_over),
        TEMP_TEST(test_torch_save__contradictions_of_an_optimizer_are_damage),
        TEMP_TEST(test_torch_save__ambiguous_numbers_stay_numbers),
        TEMP_TEST(test_torch_save__nothing_to_read_is_said),
        TEMP_TEST(test_torch_save__endless_views_are_refused),
        TEMP_TEST(test_torch_save__dicts_in_dicts_are_bounded),
        TEMP_TEST(test_torch_save__a_parameter_in_two_files_is_refused),
        TEMP_TEST(test_torch_save__all_parts_of_a_series_must_be_there),
        TEMP_TEST(test_torch_save__ranks_must_agree_on_shapes),
        TEMP_TEST(test_torch_save__other_contents_are_told_apart),
        TEMP_TEST(test_torch_save__probe_tells_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
