/* Tensors of a file that are one, under two names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/twins.h"

static const uint64_t MATRIX[] = {4, 4}, WIDE[] = {2, 8}, NONE[] = {0};
static const int64_t ROWS_FIRST[] = {4, 1}, COLUMNS_FIRST[] = {1, 4};

/* A tensor by hand: of a source, at an element of it. */
struct view {
    const char *name, *state;
    uint32_t source;
    unsigned ndim;
    const uint64_t *shape;
    const int64_t *stride;
    int64_t offset_elems;
    const struct gradcmp_coords *coords;
};

enum { MOST = 4 };

static void expect(const struct view *views, size_t count, const size_t *first,
                   const size_t *name) {
    struct gradcmp_source sources[3] = {
        {.kind = GRADCMP_SOURCE_RANGE, .file = 1, .offset_bytes = 64},
        {.kind = GRADCMP_SOURCE_RANGE, .file = 1, .offset_bytes = 128},
        {.kind = GRADCMP_SOURCE_RANGE, .file = 2, .offset_bytes = 64}};
    struct gradcmp_stored stored[MOST];
    struct gradcmp_piece pieces[MOST];
    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct gradcmp_piece){.source = views[i].source,
                                           .stride = views[i].stride,
                                           .offset_elems = views[i].offset_elems,
                                           .coords = views[i].coords};
        stored[i] = (struct gradcmp_stored){.name = views[i].name,
                                            .state = views[i].state,
                                            .shape = views[i].shape,
                                            .ndim = (uint8_t)views[i].ndim,
                                            .dtype = GRADCMP_DTYPE_FLOAT32,
                                            .pieces = &pieces[i],
                                            .piece_count = 1};
    }
    const struct gradcmp_catalogue catalogue = {
        .stored = stored, .stored_count = count, .sources = sources, .source_count = 3};
    struct gcmp_twin *twins;
    assert_int_equal(gcmp_twins_find(&catalogue, 0, count, &twins, NULL), GRADCMP_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(twins[i].first, first[i]);
        assert_int_equal(twins[i].name, name[i]);
    }
    free(twins);
}
#define EXPECT(views, first, name) expect(views, sizeof(views) / sizeof *(views), first, name)

/* The first name stands, but where the model has one of its own. */
static void test_twins__of_one_place(void **state) {
    (void)state;
    const struct view views[] = {
        {"embedding.position_embeddings.weight", "param", 0, 2, MATRIX, NULL, 0, NULL},
        {"head.weight", "param", 1, 2, MATRIX, NULL, 0, NULL},
        {"position_embeddings.weight", "param", 0, 2, MATRIX, NULL, 0, NULL},
        {"copy.weight", "param", 0, 2, MATRIX, ROWS_FIRST, 16,
         NULL}}; /* of the place of the head */
    EXPECT(views, ((const size_t[]){0, 1, 0, 3}), ((const size_t[]){2, 1, 2, 3}));
    const struct view plain[] = {{"b.weight", "param", 0, 2, MATRIX, NULL, 0, NULL},
                                 {"a.weight", "param", 0, 2, MATRIX, NULL, 0, NULL}};
    EXPECT(plain, ((const size_t[]){0, 0}), ((const size_t[]){0, 0}));
}

static void test_twins__that_are_not(void **state) {
    (void)state;
    const struct view files[] = {{"a", "param", 0, 2, MATRIX, NULL, 0, NULL},
                                 {"b", "param", 2, 2, MATRIX, NULL, 0, NULL}};
    EXPECT(files, ((const size_t[]){0, 1}), ((const size_t[]){0, 1}));
    const struct view shapes[] = {{"a", "param", 0, 2, MATRIX, NULL, 0, NULL},
                                  {"b", "param", 0, 2, WIDE, NULL, 0, NULL},
                                  {"c", "exp_avg", 0, 2, MATRIX, NULL, 0, NULL}};
    EXPECT(shapes, ((const size_t[]){0, 1, 2}), ((const size_t[]){0, 1, 2}));
    const struct view strides[] = {{"a", "param", 0, 2, MATRIX, ROWS_FIRST, 0, NULL},
                                   {"b", "param", 0, 2, MATRIX, COLUMNS_FIRST, 0, NULL}};
    EXPECT(strides, ((const size_t[]){0, 1}), ((const size_t[]){0, 1}));
    const struct gradcmp_coords chunks[] = {{.vp = 0}, {.vp = 1}};
    const struct view ranks[] = {{"a", "param", 0, 2, MATRIX, NULL, 0, &chunks[0]},
                                 {"b", "param", 0, 2, MATRIX, NULL, 0, &chunks[1]}};
    EXPECT(ranks, ((const size_t[]){0, 1}), ((const size_t[]){0, 1}));
    const struct view empty[] = {{"a", "param", 0, 1, NONE, NULL, 0, NULL},
                                 {"b", "param", 0, 1, NONE, NULL, 0, NULL}};
    EXPECT(empty, ((const size_t[]){0, 1}), ((const size_t[]){0, 1}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twins__of_one_place),
        cmocka_unit_test(test_twins__that_are_not),
    };
    return cmocka_run_group_tests_name("twins", tests, NULL, NULL);
}
