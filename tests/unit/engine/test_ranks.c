/* Work that is dealt over ranks: the same figures and the same faults as of one. */
#include "engine/engine_tools.h"
#include "engine/rank_tools.h"

#include "engine/deal.h"
#include "engine/digest.h"

enum { OWNERS = 3, JOBS = 6 };

/* One rank's view of a baseline and two candidates; every rank has its own, made alike. */
struct view {
    struct world *worlds[OWNERS];
    struct tensor tensors[OWNERS][JOBS];
    struct gcmp_side sides[JOBS][OWNERS - 1];
    struct gradcmp_tally found[JOBS][OWNERS - 1];
    struct gcmp_job jobs[JOBS];
    struct gradcmp_error errors[OWNERS], error;
    struct gcmp_engine_options options;
    enum gradcmp_status status, second;
};

/* Tensors of less than a block up to many: some are cut, some are not, one has no elements. */
static const uint64_t rows[JOBS] = {3, 700, 0, 200, 1, 450};

static struct view *view_make(char *temp, unsigned rank, enum storing way, bool checksums) {
    struct view *view = calloc(1, sizeof *view);
    char name[16];
    for (size_t c = 0; c < OWNERS; c++) {
        snprintf(name, sizeof name, "r%uc%zu", rank, c);
        view->worlds[c] = world_make(temp, name, c);
        for (size_t j = 0; j < JOBS; j++) {
            uint64_t shape[2] = {rows[j], 100}, parts[2] = {rows[j] > 1 ? 2 : 1, 3};
            view->tensors[c][j] =
                tensor_make(c == 1 ? GRADCMP_DTYPE_BFLOAT16 : GRADCMP_DTYPE_FLOAT32, 2, shape);
            fill_elems(view->tensors[c][j].elems,
                       (enum gradcmp_dtype)view->tensors[c][j].parameter.dtype, shape[0] * shape[1],
                       FILL_GRADIENTS, c * 100 + j);
            if (rows[j] > 0) {
                store_grid(view->worlds[c], &view->tensors[c][j], parts, way, 0);
            }
        }
        if (checksums) {
            world_set_checksums(view->worlds[c]);
        }
    }
    for (size_t j = 0; j < JOBS; j++) {
        for (size_t c = 1; c < OWNERS; c++) {
            view->sides[j][c - 1] = side_of(view->worlds[c], &view->tensors[c][j], (uint32_t)c);
        }
        view->jobs[j] = (struct gcmp_job){.a = side_of(view->worlds[0], &view->tensors[0][j], 0),
                                          .b = view->sides[j],
                                          .b_count = OWNERS - 1,
                                          .elems = view->tensors[0][j].parameter.elem_count,
                                          .tallies = view->found[j]};
    }
    return view;
}

static void view_free(struct view *view) {
    for (size_t c = 0; c < OWNERS; c++) {
        for (size_t j = 0; j < JOBS; j++) {
            free(view->tensors[c][j].elems);
        }
        world_free(view->worlds[c]);
    }
    free(view);
}

static void run_view(struct view *view, struct gradcmp_ranks *ranks) {
    view->options.ranks = ranks;
    memset(view->found, 0xee, sizeof view->found);
    view->status =
        gcmp_engine_run(view->jobs, JOBS, &view->options, view->errors, OWNERS, &view->error);
}

static void run_once(struct hub_rank *rank) {
    run_view(rank->user, &rank->ranks);
}

/* Some views, the last of which is run alone. */
struct views {
    struct view *list[HUB_RANKS + 1];
    unsigned count; /* of ranks */
};

typedef void (*spoil_fn)(struct view *view, unsigned rank);

static struct views views_make(char *temp, unsigned count, enum storing way, bool checksums,
                               spoil_fn spoil) {
    struct views views = {.count = count};
    for (unsigned r = 0; r <= count; r++) {
        views.list[r] = view_make(temp, r, way, checksums);
        views.list[r]->options = (struct gcmp_engine_options){
            .threads = 1 + r % 3, .buffer_bytes = (uint64_t)(r % 4) * 600000};
        if (spoil != NULL) {
            spoil(views.list[r], r);
        }
        for (size_t c = 0; c < OWNERS; c++) {
            world_open(views.list[r]->worlds[c]);
        }
    }
    return views;
}

static void views_run(struct views *views) {
    hub_run(views->count, run_once, (void **)views->list);
    run_view(views->list[views->count], NULL);
}

static void views_free(struct views *views) {
    for (unsigned r = 0; r <= views->count; r++) {
        view_free(views->list[r]);
    }
}

/* All ranks say what one process says. */
static void assert_ranks_agree(const struct views *views) {
    const struct view *alone = views->list[views->count];
    for (unsigned r = 0; r < views->count; r++) {
        const struct view *view = views->list[r];
        assert_int_equal(view->status, alone->status);
        /* Without the baseline the call fails, and what others lack is not looked for. */
        size_t told = alone->errors[0].code != GRADCMP_OK ? 1 : OWNERS;
        for (size_t c = 0; c < told; c++) {
            assert_int_equal(view->errors[c].code, alone->errors[c].code);
            if (alone->errors[c].code == GRADCMP_OK) {
                continue;
            }
            assert_string_equal(view->errors[c].message, alone->errors[c].message);
            assert_int_equal(view->errors[c].offset_bytes, alone->errors[c].offset_bytes);
        }
        for (size_t j = 0; j < JOBS; j++) {
            for (size_t c = 1; c < OWNERS && alone->status == GRADCMP_OK; c++) {
                if (alone->errors[c].code == GRADCMP_OK) {
                    assert_same_tally(&view->found[j][c - 1], &alone->found[j][c - 1]);
                }
            }
        }
    }
}

static void test_ranks__any_number_sums_as_one(void **state) {
    static const unsigned counts[] = {1, 2, 3, 8};
    static const enum storing ways[] = {STORE_PLAIN, STORE_PERMUTED, STORE_BIG, STORE_DECODED};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t w = i % 2; w < sizeof ways / sizeof ways[0]; w += 2) {
            struct views views = views_make(*state, counts[i], ways[w], w % 2 == 0, NULL);
            views_run(&views);
            assert_int_equal(views.list[0]->status, GRADCMP_OK);
            for (size_t j = 0; j < JOBS; j++) {
                struct gradcmp_tally expected =
                    span_of(&views.list[0]->tensors[0][j], 0, &views.list[0]->tensors[2][j], 0,
                            views.list[0]->jobs[j].elems);
                assert_same_tally(&views.list[0]->found[j][1], &expected);
            }
            assert_ranks_agree(&views);
            views_free(&views);
        }
    }
}

/* --- faults --- */

static struct gradcmp_source *source_at(struct view *view, size_t c, size_t j, size_t slab) {
    return &view->worlds[c]->sources[view->tensors[c][j].parameter.slabs[slab].source];
}

/* A byte of a record that is read by several ranks: its checksum is theirs together. */
static unsigned spoiled_slab;
static size_t spoiled_owner, spoiled_job;

static void flip_byte(struct view *view, unsigned rank) {
    const struct gradcmp_source *source = source_at(view, spoiled_owner, spoiled_job, spoiled_slab);
    (void)rank;
    view->worlds[spoiled_owner]->bytes[source->offset_bytes + source->length_bytes / 2] ^= 1;
}

static void test_ranks__damaged_record_is_found_by_any_number(void **state) {
    static const unsigned counts[] = {2, 3, 8};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (spoiled_job = 0; spoiled_job < JOBS; spoiled_job++) {
            spoiled_owner = spoiled_job % 2 * 2;
            spoiled_slab = (unsigned)(spoiled_job + i) % 3;
            if (rows[spoiled_job] == 0) {
                continue;
            }
            struct views views = views_make(*state, counts[i], STORE_PLAIN, true, flip_byte);
            views_run(&views);
            assert_int_equal(views.list[0]->errors[spoiled_owner].code, GRADCMP_ERROR_CORRUPT);
            assert_ranks_agree(&views);
            views_free(&views);
        }
    }
}

/* The record of one tensor is used by two jobs, on different ranks, each of which reads part. */
static void share_record(struct view *view, unsigned rank) {
    (void)rank;
    for (size_t c = 0; c < OWNERS; c += 2) {
        view->tensors[c][5].parameter.slabs = view->tensors[c][1].parameter.slabs;
        view->tensors[c][5].parameter.slab_count = view->tensors[c][1].parameter.slab_count;
        view->tensors[c][5].parameter.shape = view->tensors[c][1].parameter.shape;
        view->tensors[c][5].parameter.elem_count = view->tensors[c][1].parameter.elem_count;
        view->jobs[5].elems = 1000;
    }
}

static void share_and_flip(struct view *view, unsigned rank) {
    share_record(view, rank);
    flip_byte(view, rank);
}

static void test_ranks__record_of_several_jobs_is_checked_once_more(void **state) {
    spoiled_owner = 2;
    spoiled_job = 1;
    spoiled_slab = 1;
    for (unsigned count = 2; count <= HUB_RANKS; count += 6) {
        struct views good = views_make(*state, count, STORE_PLAIN, true, share_record);
        views_run(&good);
        assert_int_equal(good.list[0]->status, GRADCMP_OK);
        assert_int_equal(good.list[0]->errors[2].code, GRADCMP_OK);
        assert_ranks_agree(&good);
        views_free(&good);
        struct views bad = views_make(*state, count, STORE_PLAIN, true, share_and_flip);
        views_run(&bad);
        assert_int_equal(bad.list[0]->errors[2].code, GRADCMP_ERROR_CORRUPT);
        assert_ranks_agree(&bad);
        views_free(&bad);
    }
}

/* Only part of a record is needed: it is checked with verify alone, as without ranks. */
static void need_part(struct view *view, unsigned rank) {
    view->jobs[1].elems = 40000;
    view->options.verify = rank < 100;
    flip_byte(view, rank);
}

static void need_part_unverified(struct view *view, unsigned rank) {
    need_part(view, rank);
    view->options.verify = 0;
}

static void test_ranks__record_in_part_is_checked_with_verify(void **state) {
    spoiled_owner = 2;
    spoiled_job = 1;
    spoiled_slab = 4;
    for (unsigned count = 1; count <= HUB_RANKS; count += 4) {
        struct views checked = views_make(*state, count, STORE_PLAIN, true, need_part);
        views_run(&checked);
        assert_int_equal(checked.list[0]->errors[2].code, GRADCMP_ERROR_CORRUPT);
        assert_ranks_agree(&checked);
        views_free(&checked);
        struct views unchecked = views_make(*state, count, STORE_PLAIN, true, need_part_unverified);
        views_run(&unchecked);
        assert_int_equal(unchecked.list[0]->errors[2].code, GRADCMP_OK);
        assert_ranks_agree(&unchecked);
        views_free(&unchecked);
    }
}

/* Files end early, at several places: the first fault of each side is told. */
static uint64_t cut_at;

static void cut_files(struct view *view, unsigned rank) {
    (void)rank;
    view->worlds[0]->length_bytes -= spoiled_owner == 0 ? cut_at : 0;
    view->worlds[1]->length_bytes -= cut_at;
    view->worlds[2]->length_bytes -= cut_at / 2;
}

static void test_ranks__short_file_is_the_same_fault(void **state) {
    for (unsigned count = 1; count <= HUB_RANKS; count += 3) {
        for (spoiled_owner = 0; spoiled_owner < 2; spoiled_owner++) {
            for (cut_at = 1000; cut_at < 200000; cut_at += 120000) {
                struct views views = views_make(*state, count, STORE_PLAIN, false, cut_files);
                views_run(&views);
                assert_int_equal(views.list[0]->errors[spoiled_owner].code, GRADCMP_ERROR_CORRUPT);
                assert_ranks_agree(&views);
                views_free(&views);
            }
        }
    }
}

/* One rank alone cannot read what it has been dealt; all learn of it. */
static void spoil_last_rank(struct view *view, unsigned rank) {
    if (rank == 2) {
        view->worlds[2]->length_bytes -= 2000;
    }
}

static void test_ranks__fault_of_one_rank_is_known_to_all(void **state) {
    struct views views = views_make(*state, 3, STORE_PLAIN, false, spoil_last_rank);
    views_run(&views);
    for (unsigned r = 0; r < 3; r++) {
        assert_int_equal(views.list[r]->status, GRADCMP_OK);
        assert_int_equal(views.list[r]->errors[2].code, GRADCMP_ERROR_CORRUPT);
        assert_int_equal(views.list[r]->errors[1].code, GRADCMP_OK);
    }
    views_free(&views);
}

/* --- ranks that do not do the same --- */

static void change_work(struct view *view, unsigned rank) {
    if (rank == 1) {
        view->jobs[3].elems--;
    }
}

static void test_ranks__other_work_is_refused_by_all(void **state) {
    struct views views = views_make(*state, 3, STORE_PLAIN, false, change_work);
    views_run(&views);
    for (unsigned r = 0; r < 3; r++) {
        assert_int_equal(views.list[r]->status, GRADCMP_ERROR_USAGE);
        assert_non_null(strstr(views.list[r]->error.message, "rank 1"));
    }
    views_free(&views);
}

static void leave(struct view *view, struct gradcmp_ranks *ranks) {
    struct gcmp_ranks_card card;
    struct gcmp_ranks_waiting waiting = {0};
    memset(&card, 0, sizeof card);
    card.step = GCMP_STEP_LEAVE;
    view->second = gcmp_ranks_meet_last(ranks, &card, &waiting, &view->error);
}

/* Rank 1 ends before the run; with `told`, it says so first. */
static bool is_told;

static void run_and_leave(struct hub_rank *rank) {
    struct view *view = rank->user;
    if (rank->index == 1) {
        if (is_told) {
            gcmp_ranks_tell(&rank->ranks, GCMP_WORD_STOP);
        }
        view->status = GRADCMP_ERROR_MEMORY;
    } else {
        run_view(view, &rank->ranks);
    }
    leave(view, &rank->ranks);
}

static void test_ranks__rank_that_ends_stops_all(void **state) {
    for (int told = 0; told < 2; told++) {
        is_told = told;
        struct views views = views_make(*state, 4, STORE_PLAIN, false, NULL);
        hub_run(4, run_and_leave, (void **)views.list);
        for (unsigned r = 0; r < 4; r++) {
            assert_int_equal(views.list[r]->second, GRADCMP_OK);
            assert_int_equal(views.list[r]->status,
                             r == 1 ? GRADCMP_ERROR_MEMORY : GRADCMP_ERROR_CANCELLED);
        }
        views_free(&views);
    }
}

static int stop_at_once(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
    return 1;
}

static void interrupt_rank(struct view *view, unsigned rank) {
    view->options.progress = rank == 2 ? stop_at_once : NULL;
}

static void run_and_stop(struct hub_rank *rank) {
    struct view *view = rank->user;
    run_view(view, &rank->ranks);
    if (view->status != GRADCMP_OK) {
        gcmp_ranks_tell(&rank->ranks, GCMP_WORD_STOP);
    }
    leave(view, &rank->ranks);
}

static void test_ranks__interrupt_of_one_rank_stops_all(void **state) {
    struct views views = views_make(*state, 4, STORE_PLAIN, false, interrupt_rank);
    hub_run(4, run_and_stop, (void **)views.list);
    for (unsigned r = 0; r < 4; r++) {
        assert_int_equal(views.list[r]->second, GRADCMP_OK);
        assert_int_equal(views.list[r]->status, GRADCMP_ERROR_CANCELLED);
    }
    views_free(&views);
}

static int take_nothing(void *user, const void *elems, size_t bytes) {
    (void)user;
    (void)elems;
    (void)bytes;
    return 0;
}

static void want_sink(struct view *view, unsigned rank) {
    (void)rank;
    view->jobs[0].sink = take_nothing;
}

static void test_ranks__sink_is_refused(void **state) {
    struct views views = views_make(*state, 2, STORE_PLAIN, false, want_sink);
    hub_run(2, run_once, (void **)views.list);
    assert_int_equal(views.list[0]->status, GRADCMP_ERROR_USAGE);
    assert_int_equal(views.list[1]->status, GRADCMP_ERROR_USAGE);
    views_free(&views);
}

/* --- dealing --- */

static void test_deal__every_element_falls_to_one_rank(void **state) {
    struct view *view = view_make(*state, 0, STORE_PLAIN, false);
    for (unsigned count = 1; count <= 40; count++) {
        struct gcmp_deal deal = {0};
        struct gradcmp_error error;
        struct gradcmp_ranks ranks = {.count = count};
        uint64_t next[JOBS] = {0}, most = 0, total = 0;
        assert_int_equal(gcmp_deal_make(&deal, &ranks, view->jobs, JOBS, &error), GRADCMP_OK);
        for (deal.index = 0; deal.index < count; deal.index++) {
            uint64_t mine = 0;
            for (size_t j = 0; j < JOBS; j++) {
                struct gcmp_stretch share = gcmp_deal_share(&deal, j, view->jobs[j].elems);
                if (share.first == share.end) {
                    continue;
                }
                assert_int_equal(share.first, next[j]);
                assert_true(share.end > share.first);
                assert_int_equal(share.first % GRADCMP_BLOCK_ELEMS, 0);
                assert_int_equal(gcmp_deal_rank(&deal, (struct gcmp_place){j, share.first}),
                                 deal.index);
                assert_int_equal(gcmp_deal_rank(&deal, (struct gcmp_place){j, share.end - 1}),
                                 deal.index);
                next[j] = share.end;
                mine += share.end - share.first;
            }
            most = mine > most ? mine : most;
            total += mine;
        }
        for (size_t j = 0; j < JOBS; j++) {
            assert_int_equal(next[j], view->jobs[j].elems);
        }
        assert_true(most <= total / count + 2 * deal.chunk_elems); /* a fair share */
        gcmp_deal_free(&deal);
    }
    view_free(view);
}

static void test_digest__anything_else_is_another_digest(void **state) {
    struct view *view = view_make(*state, 0, STORE_PLAIN, false);
    uint64_t before[2], after[2];
    struct gradcmp_error error;
    for (int change = 0; change < 6; change++) {
        struct gcmp_job jobs[JOBS];
        struct gradcmp_parameter parameter = view->tensors[0][1].parameter;
        assert_int_equal(gcmp_digest_jobs(view->jobs, JOBS, 0, before, &error), GRADCMP_OK);
        memcpy(jobs, view->jobs, sizeof jobs);
        jobs[1].a.parameter = &parameter;
        parameter.name = change == 0 ? "other" : parameter.name;
        parameter.dtype = change == 1 ? GRADCMP_DTYPE_FLOAT16 : parameter.dtype;
        parameter.slab_count -= change == 2;
        jobs[1].scale_log2 = change == 3;
        jobs[1].a.copy = change == 4;
        assert_int_equal(gcmp_digest_jobs(jobs, JOBS, change == 5, after, &error), GRADCMP_OK);
        assert_memory_not_equal(before, after, sizeof before);
    }
    view_free(view);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ranks__any_number_sums_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks__damaged_record_is_found_by_any_number, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_ranks__record_of_several_jobs_is_checked_once_more,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks__record_in_part_is_checked_with_verify, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_ranks__short_file_is_the_same_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks__fault_of_one_rank_is_known_to_all, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_ranks__other_work_is_refused_by_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks__rank_that_ends_stops_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranks__interrupt_of_one_rank_stops_all, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_ranks__sink_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deal__every_element_falls_to_one_rank, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_digest__anything_else_is_another_digest, setup,
                                        teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
