/* Names that only all keys together tell. */
#include "temp_tools.h"

#include "base/catalogue.h"
#include "formats/dcp_names.h"
#include "formats/quantised.h"

/* A catalogue made of keys: shape and type of each are given. */
struct item {
    const char *key;
    unsigned ndim;
    uint64_t shape[2];
    enum gradcmp_dtype dtype;
};

struct naming_case {
    struct gcmp_arena arena;
    struct gradcmp_catalogue catalogue;
    struct gcmp_dcp_key keys[32];
    struct gradcmp_error error;
    enum gradcmp_status status;
};

#define F32   GRADCMP_DTYPE_FLOAT32
#define BYTES GRADCMP_DTYPE_NONE

/* The path of a key whose words are separated by '|', which become dots; NULL for one without. */
static const struct gcmp_node *cut_path(struct gcmp_arena *arena, char *key) {
    char pickle[256] = "(";
    struct gcmp_node *path = NULL;
    if (strchr(key, '|') == NULL) {
        return NULL;
    }
    for (char *word = key, *end; word != NULL; word = end == NULL ? NULL : end + 1) {
        end = strchr(word, '|');
        if (end != NULL) {
            *end = '.';
        }
        int bytes = end == NULL ? (int)strlen(word) : (int)(end - word);
        bool is_number = (int)strspn(word, "0123456789") >= bytes;
        size_t at = strlen(pickle);
        snprintf(pickle + at, sizeof pickle - at, "%c%.*s\n", is_number ? 'I' : 'V', bytes, word);
    }
    strcat(pickle, "t.");
    struct gcmp_cursor cursor = gcmp_cursor_make(pickle, strlen(pickle), 0);
    assert_int_equal(gcmp_pickle_load(&cursor, arena, "", &path, NULL), GRADCMP_OK);
    return path;
}

static struct naming_case *assign(const struct item *items, size_t count,
                                  enum gcmp_dcp_style style) {
    struct naming_case *naming = calloc(1, sizeof *naming);
    naming->catalogue.arena = &naming->arena;
    for (size_t i = 0; i < count; i++) {
        struct gradcmp_stored *stored = NULL;
        char *key = gcmp_arena_dup(&naming->arena, items[i].key);
        assert_non_null(key);
        const struct gcmp_node *path = cut_path(&naming->arena, key);
        assert_int_equal(gcmp_catalogue_add_stored(&naming->catalogue, key, items[i].ndim,
                                                   items[i].shape, 0, &stored, NULL),
                         GRADCMP_OK);
        stored->dtype = (uint8_t)items[i].dtype;
        assert_true(gcmp_dcp_parse_key(&naming->arena, key, path, style, &naming->keys[i]));
    }
    naming->status = gcmp_dcp_assign_names(&naming->catalogue, naming->keys, &naming->error);
    return naming;
}

static void naming_free(struct naming_case *naming) {
    gcmp_catalogue_free(&naming->catalogue);
    gcmp_arena_free(&naming->arena);
    free(naming);
}

#define ASSIGN(items) assign(items, sizeof(items) / sizeof *(items), GCMP_DCP_TORCH)

static void expect_names(const struct naming_case *naming, const char *const *names) {
    assert_int_equal(naming->status, GRADCMP_OK);
    for (size_t i = 0; i < naming->catalogue.stored_count; i++) {
        assert_string_equal(naming->catalogue.stored[i].name, names[i]);
    }
}

static void test_assign__model_prefix_goes_where_the_optimizer_lacks_it(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model.a.weight", 1, {4}, F32},
        {"model.b.weight", 1, {4}, F32}, /* frozen: no state */
        {"optim.state.a.weight.exp_avg", 1, {4}, F32},
    };
    static const char *const names[] = {"a.weight", "b.weight", "a.weight"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    naming_free(naming);
}

static void test_assign__model_prefix_stays_where_the_optimizer_has_it(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model.a.weight", 1, {4}, F32},
        {"model.b.weight", 1, {4}, F32},
        {"lm_head.weight", 1, {4}, F32},
        {"optimizer.state.model.a.weight.exp_avg", 1, {4}, F32},
        {"optimizer.state.lm_head.weight.exp_avg", 1, {4}, F32},
    };
    static const char *const names[] = {"model.a.weight", "model.b.weight", "lm_head.weight",
                                        "model.a.weight", "lm_head.weight"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    naming_free(naming);
}

static void test_assign__model_prefix_goes_without_an_optimizer(void **state) {
    (void)state;
    static const struct item items[] = {{"model.a.weight", 1, {4}, F32}};
    static const char *const names[] = {"a.weight"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    naming_free(naming);
}

static void test_assign__ids_follow_the_order_of_the_weights(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model.a", 2, {4, 3}, F32},
        {"model.b", 2, {4, 3}, F32},
        {"model.c", 1, {3}, F32},
        {"optimizer.state.2.exp_avg", 1, {3}, F32},
        {"optimizer.state.0.exp_avg", 2, {4, 3}, F32},
        {"optimizer.state.1.exp_avg", 2, {4, 3}, F32},
        {"optimizer.state.1.step", 0, {0}, F32},
        {"optimizer.param_groups.0.lr", 0, {0}, BYTES},
    };
    static const char *const names[] = {"a", "b", "c", "c",
                                        "a", "b", "b", "optimizer.param_groups.0.lr"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    assert_null(naming->catalogue.stored[7].state);
    naming_free(naming);
}

static void test_assign__ids_of_several_groups_are_told_by_unique_shapes(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model.a", 1, {3}, F32},
        {"model.b", 2, {4, 3}, F32},
        {"model.c", 1, {4}, F32},
        {"optimizer.state.0.exp_avg", 2, {4, 3}, F32}, /* matrices come first */
        {"optimizer.state.1.exp_avg", 1, {3}, F32},
        {"optimizer.state.2.exp_avg", 1, {4}, F32},
        {"optimizer.param_groups.0.lr", 0, {0}, BYTES},
        {"optimizer.param_groups.1.lr", 0, {0}, BYTES},
    };
    static const char *const names[] = {
        "a", "b", "c", "b", "a", "c", "optimizer.param_groups.0.lr", "optimizer.param_groups.1.lr"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    naming_free(naming);
}

/* Whatever could mean two parameters is refused. */
static void test_assign__ambiguous_ids_are_unsupported(void **state) {
    (void)state;
    static const struct item groups[] = {
        {"model.a", 1, {4}, F32},
        {"model.b", 1, {4}, F32},
        {"optimizer.state.0.exp_avg", 1, {4}, F32},
        {"optimizer.state.1.exp_avg", 1, {4}, F32},
        {"optimizer.param_groups.0.lr", 0, {0}, BYTES},
        {"optimizer.param_groups.1.lr", 0, {0}, BYTES},
    };
    static const struct item fewer[] = {
        {"model.a", 1, {4}, F32},
        {"model.b", 1, {4}, F32},
        {"optimizer.state.0.exp_avg", 1, {4}, F32},
    };
    static const struct item shapes[] = {
        {"model.a", 1, {4}, F32},
        {"model.b", 1, {5}, F32},
        {"optimizer.state.0.exp_avg", 1, {4}, F32},
        {"optimizer.state.1.exp_avg", 1, {6}, F32},
    };
    static const struct item twice[] = {
        {"model.a", 1, {4}, F32},
        {"model.b", 1, {5}, F32},
        {"optimizer.state.0.exp_avg", 1, {4}, F32},
        {"optimizer.state.7.exp_avg", 1, {4}, F32},
    };
    static const struct item groupless[] = {/* of how many groups is not told */
                                            {"model.a", 1, {4}, F32},
                                            {"model.b", 1, {4}, F32},
                                            {"optimizer.state.0.exp_avg", 1, {4}, F32},
                                            {"optimizer.state.1.exp_avg", 1, {4}, F32}};
    static const struct item stepless[] = {
        {"model.a", 1, {4}, F32},
        {"optimizer.state.0.step", 0, {0}, F32},
    };
    struct naming_case *namings[] = {ASSIGN(groups), ASSIGN(fewer),     ASSIGN(shapes),
                                     ASSIGN(twice),  ASSIGN(groupless), ASSIGN(stepless)};
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        assert_int_equal(namings[i]->status, GRADCMP_ERROR_UNSUPPORTED);
        assert_text_contains(namings[i]->error.message, "the optimizer numbers its parameters");
        naming_free(namings[i]);
    }
}

static void test_assign__digits_that_a_weight_bears_are_no_id(void **state) {
    (void)state;
    static const struct item items[] = {
        {"7", 1, {4}, F32},
        {"optimizer.state.7.exp_avg", 1, {4}, F32},
        {"b", 1, {4}, F32},
    };
    static const char *const names[] = {"7", "7", "b"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    naming_free(naming);
}

static void test_assign__integers_and_objects_are_no_weights(void **state) {
    (void)state;
    static const struct item items[] = {
        {"counter", 0, {0}, GRADCMP_DTYPE_INT64},
        {"object", 0, {0}, BYTES},
        {"optim.state.a.exp_avg", 0, {0}, BYTES},
        {"a", 1, {4}, GRADCMP_DTYPE_FLOAT8_E4M3FN},
    };
    struct naming_case *naming = ASSIGN(items);
    assert_int_equal(naming->status, GRADCMP_OK);
    assert_null(naming->catalogue.stored[0].state);
    assert_null(naming->catalogue.stored[1].state);
    assert_null(naming->catalogue.stored[2].state);
    assert_string_equal(naming->catalogue.stored[3].state, "param");
    naming_free(naming);
}

static void expect_states(const struct naming_case *naming, const char *const *states) {
    for (size_t i = 0; i < naming->catalogue.stored_count; i++) {
        const char *found = naming->catalogue.stored[i].state;
        assert_string_equal(found == NULL ? "-" : found, states[i]);
    }
}

static void test_assign__a_module_called_state_has_weights(void **state) {
    (void)state;
    static const struct item items[] = {
        {"head.weight", 1, {4}, F32},     {"state.enc.weight", 1, {4}, F32},
        {"state.0.weight", 1, {4}, F32},  {"state.attn.param", 1, {4}, F32},
        {"state.enc.count", 1, {4}, F32}, {"optimizer.state.head.weight.exp_avg", 1, {4}, F32},
        {"state.step", 0, {0}, F32},
    };
    static const char *const names[] = {"head.weight",      "state.enc.weight", "state.0.weight",
                                        "state.attn.param", "state.enc.count",  "head.weight",
                                        "state.step"};
    static const char *const states[] = {"param", "param",   "param", "param",
                                         "param", "exp_avg", "-"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    expect_states(naming, states);
    naming_free(naming);
}

/* Beside known states, or groups, words that nobody knows are states too; but what has a state is a
 * weight. */
static void test_assign__other_keys_show_an_optimizer(void **state) {
    (void)state;
    static const struct item known[] = {
        {"state.enc.weight", 1, {4}, F32},
        {"state.state.enc.weight.exp_avg", 1, {4}, F32},
        {"state.state.enc.weight.curvature", 1, {4}, F32},
    };
    static const char *const known_names[] = {"state.enc.weight", "state.enc.weight",
                                              "state.enc.weight"};
    static const char *const known_states[] = {"param", "exp_avg", "curvature"};
    static const struct item groups[] = {
        {"state.a.curvature", 1, {4}, F32},
        {"param_groups.a.lr", 0, {0}, BYTES},
    };
    static const char *const group_states[] = {"curvature", "-"};
    struct naming_case *naming = ASSIGN(known);
    expect_names(naming, known_names);
    expect_states(naming, known_states);
    naming_free(naming);
    naming = ASSIGN(groups);
    expect_states(naming, group_states);
    assert_string_equal(naming->catalogue.stored[0].name, "a");
    naming_free(naming);
}

static void test_assign__modules_called_like_parts_of_a_checkpoint(void **state) {
    (void)state;
    static const struct item items[] = {
        {"sampler.proj", 2, {4, 3}, F32},
        {"sampler.scale", 0, {0}, F32},
        {"sampler.seed", 0, {0}, GRADCMP_DTYPE_INT64},
        {"scaler.scale", 0, {0}, F32},
        {"optimizer.enc.weight", 1, {4}, F32},
        {"optimizer.enc.gain", 1, {4}, F32},
        {"optimizer.enc.exp_avg", 1, {4}, F32},
        {"optimizer.param_groups.0.betas", 1, {2}, F32},
        {"optim.flat", 1, {9}, F32},
        {"sampler", 1, {4}, F32},
    };
    static const char *const states[] = {"param", "param", "-", "-", "param",
                                         "param", "-",     "-", "-", "-"};
    struct naming_case *naming = ASSIGN(items);
    assert_int_equal(naming->status, GRADCMP_OK);
    expect_states(naming, states);
    naming_free(naming);
}

static void test_assign__a_model_of_any_name(void **state) {
    (void)state;
    static const struct item items[] = {
        {"app|policy|a.weight", 1, {4}, F32},
        {"app|policy|state.b.weight", 1, {4}, F32},
        {"app|policy|scale", 0, {0}, F32},
        {"app|ema|a.weight", 1, {4}, F32},
        {"app|optim|state|a.weight|exp_avg", 1, {4}, F32},
        {"app|optim|flat|buffer", 1, {4}, F32},
        {"app|train_state|losses", 1, {9}, F32},
        {"app|meter|loss", 0, {0}, F32},
        {"loss", 0, {0}, F32},
    };
    static const char *const names[] = {"a.weight",
                                        "state.b.weight",
                                        "scale",
                                        "app.ema.a.weight",
                                        "a.weight",
                                        "app.optim.flat.buffer",
                                        "app.train_state.losses",
                                        "app.meter.loss",
                                        "loss"};
    static const char *const states[] = {"param", "param", "param", "-", "exp_avg",
                                         "-",     "-",     "-",     "-"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    expect_states(naming, states);
    naming_free(naming);
}

static void test_assign__models_beside_each_other(void **state) {
    (void)state;
    static const struct item two[] = {
        {"generator|a", 1, {4}, F32}, {"critic|a", 1, {4}, F32}, {"critic|b", 0, {0}, F32}};
    static const char *const two_names[] = {"generator.a", "critic.a", "critic.b"};
    static const struct item list[] = {{"weights|0", 1, {4}, F32}, {"weights|1", 1, {4}, F32}};
    static const char *const list_names[] = {"weights.0", "weights.1"};
    static const struct item average[] = {{"ema|a", 1, {4}, F32}};
    static const char *const average_names[] = {"a"};
    /* Where one is called a model, others are none. */
    static const struct item named[] = {{"net|a", 1, {4}, F32}, {"critic|a", 1, {4}, F32}};
    static const char *const named_states[] = {"param", "-"};
    struct naming_case *naming = ASSIGN(two);
    expect_names(naming, two_names);
    naming_free(naming);
    naming = ASSIGN(list);
    expect_names(naming, list_names);
    naming_free(naming);
    naming = ASSIGN(average);
    expect_names(naming, average_names);
    naming_free(naming);
    naming = ASSIGN(named);
    expect_states(naming, named_states);
    naming_free(naming);
}

static void test_assign__a_dict_without_weights_is_no_model(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model|name", 0, {0}, BYTES},
        {"net|version", 1, {4}, GRADCMP_DTYPE_INT64},
        {"network|loss", 0, {0}, F32},
        {"policy|a.weight", 1, {4}, F32},
        {"optim|state|a.weight|exp_avg", 1, {4}, F32},
    };
    static const char *const names[] = {"model.name", "net.version", "network.loss", "a.weight",
                                        "a.weight"};
    static const char *const states[] = {"-", "-", "-", "param", "exp_avg"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    expect_states(naming, states);
    naming_free(naming);
}

static void test_assign__tensors_at_the_top_hide_no_model(void **state) {
    (void)state;
    static const struct item loose[] = {
        {"losses", 1, {50}, F32}, {"policy|a", 1, {4}, F32}, {"ema|a", 1, {4}, F32}};
    static const char *const loose_names[] = {"losses", "policy.a", "ema.a"};
    static const char *const loose_states[] = {"param", "param", "-"};
    static const struct item alone[] = {{"a", 1, {4}, F32}, {"ema|a", 1, {4}, F32}};
    static const struct item dotted[] = {{"a.scale", 1, {4}, F32}, {"critic|a", 1, {4}, F32}};
    static const struct item layer[] = {{"weight", 1, {4}, F32}, {"critic|a", 1, {4}, F32}};
    static const char *const top_states[] = {"param", "-"};
    static const struct item trained[] = {
        {"a", 1, {4}, F32}, {"critic|a", 1, {4}, F32}, {"optim|state|a|exp_avg", 1, {4}, F32}};
    static const char *const trained_states[] = {"param", "-", "exp_avg"};
    struct naming_case *naming = ASSIGN(loose);
    expect_names(naming, loose_names);
    expect_states(naming, loose_states);
    naming_free(naming);
    naming = ASSIGN(alone);
    expect_states(naming, top_states);
    naming_free(naming);
    naming = ASSIGN(dotted);
    expect_states(naming, top_states);
    naming_free(naming);
    naming = ASSIGN(layer);
    expect_states(naming, top_states);
    naming_free(naming);
    naming = ASSIGN(trained);
    expect_states(naming, trained_states);
    naming_free(naming);
}

static void test_assign__states_of_another_shape_are_listed_only(void **state) {
    (void)state;
    static const struct item items[] = {
        {"model.a", 2, {4, 3}, F32},
        {"model.b", 1, {3}, F32},
        {"optimizer.state.a.row_var", 2, {4, 1}, F32},
        {"optimizer.state.a.col_var", 2, {1, 3}, F32},
        {"optimizer.state.a.lr", 0, {0}, F32},
        {"optimizer.state.a.step", 0, {0}, F32},
        {"optimizer.state.a.code", 1, {12}, F32},   /* flat */
        {"optimizer.state.a.exp_avg", 1, {3}, F32}, /* refused where it is read */
        {"optimizer.state.b.variance", 1, {3}, F32},
        {"optimizer.state.frozen.row_var", 2, {4, 1}, F32},
    };
    static const char *const names[] = {"a", "b", "a", "a", "a", "a", "a", "a", "b", "frozen"};
    static const char *const states[] = {"param", "param", "-",       "-",        "-",
                                         "step",  "code",  "exp_avg", "variance", "row_var"};
    struct naming_case *naming = ASSIGN(items);
    expect_names(naming, names);
    expect_states(naming, states);
    assert_int_equal(naming->catalogue.note_count, 1);
    assert_string_equal(naming->catalogue.notes[0],
                        "3 tensors are listed, not read: optimizer.state.a.row_var (of another "
                        "shape than its parameter) ...");
    naming_free(naming);
}

static void test_assign__layout_from_keys_where_nothing_says_it(void **state) {
    (void)state;
    static const struct item buckets[] = {
        {"optimizer.distributed.dp_group_idx_0.optimizer/shard_0_1", 0, {0}, BYTES},
        {"optimizer.distributed.dp_group_idx_0.bucket_idx_0.exp_avg", 1, {4}, F32},
    };
    static const struct item gathered[] = {
        {"optimizer.distributed.dp_group_idx_0.param_state/shard_0_1", 0, {0}, BYTES},
    };
    static const struct item named[] = {{"optimizer.state.exp_avg.a", 1, {4}, F32}};
    struct naming_case *naming = ASSIGN(buckets);
    assert_string_equal(naming->catalogue.layout_name, "dp_reshardable");
    assert_int_equal(naming->catalogue.stored[1].layout, GRADCMP_LAYOUT_BUCKET);
    naming_free(naming);
    naming = ASSIGN(gathered);
    assert_string_equal(naming->catalogue.layout_name, "dp_zero_gather_scatter");
    naming_free(naming);
    naming = ASSIGN(named);
    assert_null(naming->catalogue.layout_name);
    assert_int_equal(naming->catalogue.stored[0].layout, GRADCMP_LAYOUT_MODEL);
    naming_free(naming);
}

static void expect_quantised(const struct item *items, size_t count, const char *key) {
    struct naming_case *naming = assign(items, count, GCMP_DCP_TORCH);
    assert_int_equal(naming->status, GRADCMP_OK);
    const char *found;
    assert_int_equal(gcmp_find_quantised(&naming->catalogue, &found, NULL), GRADCMP_OK);
    assert_int_equal(naming->catalogue.note_count, key == NULL ? 0 : 1);
    if (key == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, key);
    }
    naming_free(naming);
}

static void test_assign__codes_with_scales_are_quantised_weights(void **state) {
    (void)state;
    static const struct item pairs[][2] = {
        {{"e.down_proj_blocks", 2, {4, 16}, GRADCMP_DTYPE_UINT8},
         {"e.down_proj_scales", 1, {4}, GRADCMP_DTYPE_UINT8}},
        {{"a.weight", 2, {4, 4}, GRADCMP_DTYPE_FLOAT8_E4M3FN},
         {"a.weight_scale_inv", 2, {1, 1}, F32}},
        {{"a.weight", 2, {4, 4}, GRADCMP_DTYPE_INT8}, {"a.weight_scale", 1, {4}, F32}},
        {{"a.weight", 2, {4, 4}, BYTES}, {"a.weight_scale", 1, {4}, F32}},
        {{"a.weight_packed", 2, {4, 1}, GRADCMP_DTYPE_INT32}, {"a.weight_scale", 1, {4}, F32}},
        {{"a.qweight", 2, {4, 1}, GRADCMP_DTYPE_INT32}, {"a.scales", 1, {4}, F32}},
        {{"a.weight", 2, {4, 4}, GRADCMP_DTYPE_INT8}, {"a.SCB", 1, {4}, F32}},
        {{"a.weight", 2, {4, 1}, GRADCMP_DTYPE_UINT8}, {"a.weight.absmax", 1, {4}, F32}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        expect_quantised(pairs[i], 2, pairs[i][0].key);
        expect_quantised(pairs[i], 1, NULL);
    }
}

static void test_assign__a_scale_beside_a_weight_of_numbers_is_a_parameter(void **state) {
    (void)state;
    static const struct item items[] = {
        {"a.weight", 2, {4, 4}, F32},
        {"a.weight_scale", 1, {4}, F32},
    };
    expect_quantised(items, 2, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assign__model_prefix_goes_where_the_optimizer_lacks_it),
        cmocka_unit_test(test_assign__model_prefix_stays_where_the_optimizer_has_it),
        cmocka_unit_test(test_assign__model_prefix_goes_without_an_optimizer),
        cmocka_unit_test(test_assign__ids_follow_the_order_of_the_weights),
        cmocka_unit_test(test_assign__ids_of_several_groups_are_told_by_unique_shapes),
        cmocka_unit_test(test_assign__ambiguous_ids_are_unsupported),
        cmocka_unit_test(test_assign__digits_that_a_weight_bears_are_no_id),
        cmocka_unit_test(test_assign__integers_and_objects_are_no_weights),
        cmocka_unit_test(test_assign__a_module_called_state_has_weights),
        cmocka_unit_test(test_assign__other_keys_show_an_optimizer),
        cmocka_unit_test(test_assign__modules_called_like_parts_of_a_checkpoint),
        cmocka_unit_test(test_assign__a_model_of_any_name),
        cmocka_unit_test(test_assign__models_beside_each_other),
        cmocka_unit_test(test_assign__a_dict_without_weights_is_no_model),
        cmocka_unit_test(test_assign__tensors_at_the_top_hide_no_model),
        cmocka_unit_test(test_assign__states_of_another_shape_are_listed_only),
        cmocka_unit_test(test_assign__layout_from_keys_where_nothing_says_it),
        cmocka_unit_test(test_assign__codes_with_scales_are_quantised_weights),
        cmocka_unit_test(test_assign__a_scale_beside_a_weight_of_numbers_is_a_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
