/* Rules of a map: what they make of parameters, read back element by element. */
#include "unshard/mapping.h"

#include <stdio.h>

#include "hand_catalogue.h"

/* A model with one parameter "a.layers.0.fused" [rows, columns] in row blocks of two, whose element
 * i in row-major order is i; and what is made of it. */
struct fixture {
    struct hand hand;
    struct gradcmp_model model;
    struct gradcmp_error error;
};

/* Add a tensor whose elements count from `base`, cut into blocks of two rows. */
static void add_counting(struct fixture *fixture, const char *name, uint64_t rows, uint64_t columns,
                         double base) {
    size_t tensor = HAND_TENSOR(&fixture->hand, "exp_avg", name, rows, columns);
    for (uint64_t row = 0; row < rows; row += 2) {
        uint64_t count = rows - row < 2 ? rows - row : 2;
        double *values = calloc(count * columns, sizeof *values);
        assert_non_null(values);
        for (uint64_t i = 0; i < count * columns; i++) {
            values[i] = base + (double)(row * columns + i);
        }
        uint32_t source = hand_source(&fixture->hand, values, count * columns);
        hand_piece_of(&fixture->hand, tensor, DIMS(row, 0), DIMS(count, columns), source);
    }
}

static void start(struct fixture *fixture) {
    memset(fixture, 0, sizeof *fixture);
    hand_init(&fixture->hand);
}

static void end(struct fixture *fixture) {
    gcmp_model_free(&fixture->model);
    hand_free(&fixture->hand);
}

static enum gradcmp_status apply_to(struct fixture *fixture, const char *rules,
                                    enum gcmp_mapping_side side) {
    struct gcmp_mapping *mapping;
    if (fixture->model.arena == NULL) {
        fixture->model = hand_unshard(&fixture->hand, "exp_avg");
    }
    enum gradcmp_status status =
        gcmp_mapping_parse("rules.yaml", rules, strlen(rules), &mapping, &fixture->error);
    if (status == GRADCMP_OK) {
        status = gcmp_mapping_apply(mapping, &fixture->hand.catalogue, side, &fixture->model,
                                    &fixture->error);
        if (status == GRADCMP_OK) {
            status = gcmp_mapping_check_used(mapping, (unsigned)side, &fixture->error);
        }
        gcmp_mapping_free(mapping);
    }
    return status;
}

static void apply(struct fixture *fixture, const char *rules) {
    if (apply_to(fixture, rules, GCMP_MAPPING_BASELINE) != GRADCMP_OK) {
        fail_msg("%s", fixture->error.message);
    }
}

static void assert_row(const struct fixture *fixture, const char *name, uint64_t row,
                       double first) {
    const struct gradcmp_parameter *parameter = hand_find(&fixture->model, name);
    for (uint32_t copy = 0; copy < parameter->copy_count; copy++) {
        double *values = hand_read(&fixture->hand, parameter, copy);
        for (uint64_t c = 0; c < parameter->shape[1]; c++) {
            if (values[row * parameter->shape[1] + c] < first + (double)c ||
                values[row * parameter->shape[1] + c] > first + (double)c) {
                fail_msg("%s [%d, %d] is %g, expected %g", name, (int)row, (int)c,
                         values[row * parameter->shape[1] + c], first + (double)c);
            }
        }
        free(values);
    }
}

/* 6 heads of 1 row in 3 query groups: each group has q q k v. */
static void test_split__fused_attention_by_groups(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.0.fused", 12, 5, 0.0);
    apply(&fixture, "rules:\n- split: (.*)fused\n  into: [\\1q, \\1k, \\1v]\n  heads: 6\n"
                    "  query_groups: 3\n");
    ASSERT_NAMES(&fixture.model, "layers.0.k", "layers.0.q", "layers.0.v");
    ASSERT_SHAPE(hand_find(&fixture.model, "layers.0.q"), 6, 5);
    ASSERT_SHAPE(hand_find(&fixture.model, "layers.0.v"), 3, 5);
    for (uint64_t group = 0; group < 3; group++) {
        double first = (double)(group * 20);
        assert_row(&fixture, "layers.0.q", 2 * group, first);
        assert_row(&fixture, "layers.0.q", 2 * group + 1, first + 5);
        assert_row(&fixture, "layers.0.k", group, first + 10);
        assert_row(&fixture, "layers.0.v", group, first + 15);
    }
    assert_int_equal(hand_find(&fixture.model, "layers.0.q")->layer, 1);
    end(&fixture);
}

/* What was split and is put together again is what it was, on either axis and with any shares. */
static void test_concat__undoes_split(void **state) {
    (void)state;
    static const char *const shares[] = {
        "  groups: 3\n  parts: [2, 1, 1]\n",
        "  groups: 2\n  parts: [1, 4, 1]\n",
        "  parts: [1, 1, 1]\n",
        "  heads: 12\n  query_groups: 2\n  axis: 1\n",
        "  axis: 1\n  groups: 4\n  parts: [1, 2, 1]\n",
    };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct fixture fixture;
        char rules[400];
        start(&fixture);
        add_counting(&fixture, "layers.0.fused", 12, 16, 0.0);
        snprintf(rules, sizeof rules,
                 "rules:\n- split: (.*)fused\n  into: [\\1q, \\1k, \\1v]\n%s"
                 "- concat: [(.*)q, \\1k, \\1v]\n  to: \\1whole\n%s",
                 shares[i], shares[i]);
        apply(&fixture, rules);
        ASSERT_NAMES(&fixture.model, "layers.0.whole");
        ASSERT_SHAPE(hand_find(&fixture.model, "layers.0.whole"), 12, 16);
        for (uint64_t row = 0; row < 12; row++) {
            assert_row(&fixture, "layers.0.whole", row, (double)(16 * row));
        }
        end(&fixture);
    }
}

static void test_concat__takes_the_sizes_of_the_parts(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.0.a", 3, 4, 0.0);
    add_counting(&fixture, "layers.0.b", 5, 4, 100.0);
    apply(&fixture, "rules:\n- concat: [(.*)\\.b, \\1.a]\n  to: \\1.ba\n");
    ASSERT_SHAPE(hand_find(&fixture.model, "layers.0.ba"), 8, 4);
    assert_row(&fixture, "layers.0.ba", 0, 100.0);
    assert_row(&fixture, "layers.0.ba", 4, 116.0);
    assert_row(&fixture, "layers.0.ba", 5, 0.0);
    assert_row(&fixture, "layers.0.ba", 7, 8.0);
    end(&fixture);
}

/* A part without copies stands for itself in every copy of what it is joined to. */
static void test_concat__keeps_copies_apart(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.0.a", 2, 4, 0.0);
    add_counting(&fixture, "layers.0.b", 2, 4, 100.0);
    size_t b = fixture.hand.catalogue.stored_count - 1;
    double *other = calloc(8, sizeof *other);
    assert_non_null(other);
    other[0] = 7.0;
    hand_piece_of(&fixture.hand, b, DIMS(0, 0), DIMS(2, 4), hand_source(&fixture.hand, other, 8));
    apply(&fixture, "rules:\n- concat: [(.*)a, \\1b]\n  to: \\1ab\n");
    const struct gradcmp_parameter *made = hand_find(&fixture.model, "layers.0.ab");
    assert_int_equal(made->copy_count, 2);
    double *first = hand_read(&fixture.hand, made, 0), *second = hand_read(&fixture.hand, made, 1);
    assert_true(first[7] == 7.0 && second[7] == 7.0);   /* the last of a, on both */
    assert_true(first[8] == 100.0 && second[8] == 7.0); /* b's own copies */
    free(first);
    free(second);
    end(&fixture);
}

static void test_transpose__exchanges_axes(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.0.w", 3, 4, 0.0);
    apply(&fixture, "rules:\n- transpose: .*w\n");
    const struct gradcmp_parameter *made = hand_find(&fixture.model, "layers.0.w");
    ASSERT_SHAPE(made, 4, 3);
    double *values = hand_read(&fixture.hand, made, 0);
    assert_true(values[0] == 0.0 && values[1] == 4.0 && values[3] == 1.0 && values[11] == 11.0);
    free(values);
    end(&fixture);
}

static void test_rename__expands_groups_and_backslashes(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.3.w", 2, 4, 0.0);
    apply(&fixture,
          "rules:\n- rename: '(layers)\\.([0-9]+)(x)?\\.w'\n  to: '\\\\\\0:\\2.\\1\\3'\n");
    ASSERT_NAMES(&fixture.model, "\\layers.3.w:3.layers");
    end(&fixture);
}

static void test_sides__rules_of_the_other_are_left_out(void **state) {
    (void)state;
    static const char rules[] = "rules:\n- rename: w\n  to: a\n  apply: baseline\n"
                                "- rename: w\n  to: b\n  apply: candidate\n";
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "w", 2, 4, 0.0);
    assert_int_equal(apply_to(&fixture, rules, GCMP_MAPPING_CANDIDATE), GRADCMP_OK);
    ASSERT_NAMES(&fixture.model, "b");
    assert_int_equal(apply_to(&fixture, rules, GCMP_MAPPING_ALONE), GRADCMP_ERROR_UNSUPPORTED);
    assert_string_equal(fixture.error.path, "rules.yaml");
    end(&fixture);
}

static void test_rules__in_order_each_on_what_was_left(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "a", 2, 4, 0.0);
    add_counting(&fixture, "b", 2, 4, 100.0);
    apply(&fixture, "rules:\n- rename: a\n  to: c\n- rename: b\n  to: a\n- rename: c\n  to: b\n");
    ASSERT_NAMES(&fixture.model, "a", "b");
    assert_row(&fixture, "a", 0, 100.0);
    assert_row(&fixture, "b", 0, 0.0);
    end(&fixture);
}

static void assert_layer(const struct fixture *fixture, const char *name, int64_t layer) {
    assert_int_equal(hand_find(&fixture->model, name)->layer, layer);
}

/* New names tell which stack feeds another, also to what keeps its name. */
static void test_layers__new_names_join_stacks(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "enc.layers.2.w", 2, 4, 0.0);
    add_counting(&fixture, "encoder.norm", 2, 4, 0.0);
    add_counting(&fixture, "decoder.layers.1.w", 2, 4, 0.0);
    add_counting(&fixture, "dec.layers.0.w", 2, 4, 0.0);
    add_counting(&fixture, "decoder.norm", 2, 4, 0.0);
    apply(&fixture, "rules:\n- rename: (enc|dec)\\.(.*)\n  to: \\1oder.\\2\n");
    assert_int_equal(fixture.model.layers, 5);
    assert_int_equal(fixture.model.shown, 5);
    assert_layer(&fixture, "encoder.layers.2.w", 3);
    assert_layer(&fixture, "encoder.norm", 3);
    assert_layer(&fixture, "decoder.layers.0.w", 4);
    assert_layer(&fixture, "decoder.layers.1.w", 5);
    assert_layer(&fixture, "decoder.norm", 6);
    end(&fixture);
}

/* A frozen tower, of which only weights tell, stays in front of what gets another name. */
static void test_layers__new_names_keep_stacks_without_state(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    HAND_WHOLE(&fixture.hand, "param", "visual.blocks.2.w", 4);
    add_counting(&fixture, "mm_projector.w", 2, 4, 0.0);
    add_counting(&fixture, "model.layers.1.w", 2, 4, 0.0);
    add_counting(&fixture, "model.layers.1.qk", 2, 4, 0.0);
    apply(&fixture, "rules:\n- rename: mm_projector\\.w\n  to: vision_projection.w\n"
                    "- rename: (layers.*w)\n  to: language_model.\\1\n"
                    "- split: layers\\.(.*)qk\n  into: [language_model.layers.\\1q, "
                    "language_model.layers.\\1k]\n  parts: [1, 1]\n");
    assert_int_equal(fixture.model.layers, 5);
    assert_layer(&fixture, "vision_projection.w", 3);
    assert_layer(&fixture, "language_model.layers.1.w", 5);
    assert_layer(&fixture, "language_model.layers.1.q", 5);
    end(&fixture);
}

/* Names that a rule gives tell the layer, unless a rule of layers does. */
static void test_layers__follow_the_new_names(void **state) {
    (void)state;
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "layers.1.w", 2, 4, 0.0);
    add_counting(&fixture, "s4", 2, 4, 0.0);
    add_counting(&fixture, "first", 2, 4, 0.0);
    add_counting(&fixture, "last", 2, 4, 0.0);
    apply(&fixture, "rules:\n- rename: s([0-9])\n  to: layers.\\1.x\n"
                    "- rename: first\n  to: word_embeddings.weight\n"
                    "- layer: layers\\.(1)\\.w\n  l: 3\n");
    assert_int_equal(fixture.model.layers, 5);
    assert_int_equal(hand_find(&fixture.model, "layers.4.x")->layer, 5);
    assert_int_equal(hand_find(&fixture.model, "layers.1.w")->layer, 3);
    assert_int_equal(hand_find(&fixture.model, "word_embeddings.weight")->layer, 0);
    assert_int_equal(hand_find(&fixture.model, "word_embeddings.weight")->vocab_rows, 1);
    assert_int_equal(hand_find(&fixture.model, "last")->layer, 6);
    end(&fixture);
}

static void test_arguments__heads_and_groups(void **state) {
    (void)state;
    static const char rules[] = "rules:\n- split: w\n  into: [q, k, v]\n  heads: arguments\n";
    struct gradcmp_setting heads = {
        .name = "num_attention_heads", .kind = GRADCMP_SETTING_INT, .integer = 4};
    struct gradcmp_setting groups = {
        .name = "num_query_groups", .kind = GRADCMP_SETTING_INT, .integer = 1};
    struct gradcmp_setting grouped = {.name = "group_query_attention",
                                      .kind = GRADCMP_SETTING_BOOL};
    for (int64_t is_grouped = 0; is_grouped < 2; is_grouped++) {
        struct fixture fixture;
        start(&fixture);
        add_counting(&fixture, "w", 12, 4, 0.0);
        grouped.integer = is_grouped;
        assert_int_equal(gcmp_catalogue_set(&fixture.hand.catalogue, &heads, NULL), GRADCMP_OK);
        assert_int_equal(gcmp_catalogue_set(&fixture.hand.catalogue, &groups, NULL), GRADCMP_OK);
        assert_int_equal(gcmp_catalogue_set(&fixture.hand.catalogue, &grouped, NULL), GRADCMP_OK);
        apply(&fixture, rules);
        /* One group: q q q q k v, of two rows each. As many groups as heads: q k v four times. */
        assert_int_equal(hand_find(&fixture.model, "k")->shape[0], is_grouped ? 2 : 4);
        assert_row(&fixture, "k", 0, is_grouped ? 32.0 : 4.0);
        end(&fixture);
    }
    struct fixture fixture;
    start(&fixture);
    add_counting(&fixture, "w", 12, 4, 0.0);
    assert_int_equal(apply_to(&fixture, rules, GCMP_MAPPING_BASELINE), GRADCMP_ERROR_CORRUPT);
    assert_string_equal(fixture.error.message,
                        "line 2: the checkpoint's arguments tell no heads and query groups (0 and "
                        "0 found); write them here: heads: N, query_groups: N");
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split__fused_attention_by_groups),
        cmocka_unit_test(test_concat__undoes_split),
        cmocka_unit_test(test_concat__takes_the_sizes_of_the_parts),
        cmocka_unit_test(test_concat__keeps_copies_apart),
        cmocka_unit_test(test_transpose__exchanges_axes),
        cmocka_unit_test(test_rename__expands_groups_and_backslashes),
        cmocka_unit_test(test_sides__rules_of_the_other_are_left_out),
        cmocka_unit_test(test_rules__in_order_each_on_what_was_left),
        cmocka_unit_test(test_layers__new_names_join_stacks),
        cmocka_unit_test(test_layers__new_names_keep_stacks_without_state),
        cmocka_unit_test(test_layers__follow_the_new_names),
        cmocka_unit_test(test_arguments__heads_and_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
