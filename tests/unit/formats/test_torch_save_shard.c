/* Where the pieces of sharded tensors lie: meshes and placements as versions of torch write them.
 */
#include "formats/torch_save_tools.h"

#include "formats/torch_save_shard.h"

/* An object of a class, with a state. */
#define OBJECT(class, state) "ctorch.distributed.x\n" class "\n)R" state "b"
#define SHARD(axis)          OBJECT("Shard", "(Vdim\nI" axis "\nd")
#define STRIDED(axis, parts)                                                                       \
    OBJECT("_StridedShard", "(Vdim\nI" axis "\nVsplit_factor\nI" parts "\nd")
#define REPLICATE          OBJECT("Replicate", "(d")
#define FLAT_LAYOUT(ranks) OBJECT("_FlatLayout", "(Vshape\n(I" ranks "\ntd")
#define AXES(axes)         "V_layout\n" OBJECT("_MeshLayout", "(Vaxes\n(" axes "td")
#define SHAPE(shape)       "V_layout\n" OBJECT("_MeshLayout", "(Vshape\n" shape "d")
#define RANKS(size, stride)                                                                        \
    "Vmesh\n" PT_TENSOR(PT_STORAGE("IntStorage", "0", "12"), "0", size, stride)

struct dtensor {
    const char *size, *mesh, *coordinates, *placements, *more; /* more: of the spec; "" */
};

/* What is found of a DTensor; `text` is "start+extent" of each axis. */
struct found {
    enum gradcmp_status status;
    struct gradcmp_error error;
    struct gcmp_pt_shard shard;
    int64_t writer;
    char text[128];
};

static void write_found(struct found *found) {
    found->text[0] = '\0';
    for (unsigned d = 0; d < found->shard.ndim; d++) {
        sprintf(found->text + strlen(found->text), "%s%llu+%llu", d == 0 ? "" : " ",
                (unsigned long long)found->shard.start[d],
                (unsigned long long)found->shard.extent[d]);
    }
}

/* Write the pickle, open it, and hand its root on. */
static struct found with_pickle(const char *pickle, bool is_dtensor) {
    struct found found = {.status = GRADCMP_OK};
    struct gcmp_arena arena = GCMP_ARENA_INIT;
    struct gcmp_torch_file torch;
    struct gcmp_dir *dir;
    uint32_t file;
    char *temp = temp_dir_make();
    write_pt(temp, "file.pt", pickle);
    assert_int_equal(gcmp_dir_open(temp, &dir, NULL), GRADCMP_OK);
    assert_int_equal(gcmp_dir_add(dir, "file.pt", 7, &file, NULL), GRADCMP_OK);
    assert_int_equal(
        gcmp_torch_open(dir, file, 0, gcmp_dir_file_bytes(dir, file), &arena, &torch, &found.error),
        GRADCMP_OK);
    assert_int_equal(gcmp_pt_is_dtensor(torch.root), is_dtensor);
    assert_int_equal(gcmp_pt_is_sharded(torch.root), !is_dtensor);
    found.status = is_dtensor
                       ? gcmp_pt_read_dtensor(&torch, torch.root, &found.shard, &found.error)
                       : gcmp_pt_read_sharded(&torch, torch.root, 0, &found.shard, &found.error);
    found.writer = gcmp_pt_shard_writer(&torch, torch.root);
    write_found(&found);
    gcmp_arena_free(&arena);
    gcmp_dir_close(dir);
    temp_dir_remove(temp);
    return found;
}

static struct found read_dtensor(const struct dtensor *dtensor, bool is_parameter) {
    char pickle[8192];
    snprintf(pickle, sizeof pickle,
             "%sctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n"
             "ctorch.distributed.tensor\nDTensor\n(ctorch.distributed.tensor\nDTensor\nctorch\n"
             "float32\n%s(I1\ntI0\nNNI00\nt(N(V_local_tensor\n%sV_spec\nctorch.distributed.x\n"
             "DTensorSpec\n)R(Vmesh\nctorch.distributed.x\nDeviceMesh\n)R(%sV_coordinate_on_dim\n%s"
             "dbVplacements\n(%st%sdbdttR%s",
             is_parameter ? "ctorch._utils\n_rebuild_parameter\n(" : "", dtensor->size,
             PT_VECTOR("4"), dtensor->mesh, dtensor->coordinates, dtensor->placements,
             dtensor->more == NULL ? "" : dtensor->more,
             is_parameter ? "I00\nccollections\nOrderedDict\n)RtR" : "");
    return with_pickle(pickle, true);
}

static void check_piece(struct dtensor dtensor, const char *expected) {
    for (int is_parameter = 0; is_parameter < 2; is_parameter++) {
        struct found found = read_dtensor(&dtensor, is_parameter == 1);
        if (found.status != GRADCMP_OK) {
            fail_msg("%s", found.error.message);
        }
        assert_string_equal(found.text, expected);
    }
}

static void check_refused(struct dtensor dtensor, enum gradcmp_status code, const char *part) {
    struct found found = read_dtensor(&dtensor, false);
    assert_int_equal(found.status, code);
    assert_text_contains(found.error.message, part);
}

static void test_torch_save_shard__one_axis_is_cut_into_equal_parts(void **state) {
    static const char *const expected[] = {"0+4", "4+4", "8+2", "10+0"};
    static const char *const coordinates[] = {"(I0\nt", "(I1\nt", "(I2\nt", "(I3\nt"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        check_piece(
            (struct dtensor){"(I10\nt", AXES(FLAT_LAYOUT("3")), coordinates[i], SHARD("0"), NULL},
            expected[i]);
    }
    check_piece((struct dtensor){"(I10\nt", AXES(FLAT_LAYOUT("6")), "(I5\nt", SHARD("0"), NULL},
                "10+0"); /* parts of 2: the sixth rank has nothing */
    check_piece((struct dtensor){"(I3\nI7\nt", AXES(FLAT_LAYOUT("2")), "(I1\nt", SHARD("-1"), NULL},
                "0+3 4+3");
}

static void test_torch_save_shard__meshes_of_all_versions_are_understood(void **state) {
    static const char *const meshes[] = {AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("3")),
                                         SHAPE("(I2\nI3\nt"), RANKS("(I2\nI3\nt", "(I3\nI1\nt")};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        check_piece(
            (struct dtensor){"(I6\nI6\nt", meshes[i], "(I1\nI2\nt", REPLICATE SHARD("1"), NULL},
            "0+6 4+2");
    }
    check_piece((struct dtensor){"(I6\nt", SHAPE("I2\n"), "(I1\nt", SHARD("0"), NULL}, "3+3");
    /* an axis that was made of several */
    check_piece((struct dtensor){"(I6\nt", SHAPE("((I2\nI3\ntt"), "(I4\nt", SHARD("0"), NULL},
                "4+1");
}

static void test_torch_save_shard__mesh_axes_cut_one_after_another(void **state) {
    (void)state;
    check_piece((struct dtensor){"(I8\nt", AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("2")), "(I1\nI1\nt",
                                 SHARD("0") SHARD("0"), NULL},
                "6+2");
    check_piece((struct dtensor){"(I8\nI8\nt", AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("2")),
                                 "(I1\nI0\nt", SHARD("1") SHARD("0"), NULL},
                "0+4 4+4");
    /* FSDP behind tensor parallelism: this cuts 6 into 3 + 3, that each into 2 + 1 */
    check_piece((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("2")), "(I1\nI0\nt",
                                 STRIDED("0", "2") SHARD("0"), NULL},
                "2+1");
    check_piece((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("2")), "(I0\nI1\nt",
                                 STRIDED("0", "2") SHARD("0"), NULL},
                "3+2");
}

static void test_torch_save_shard__what_gives_no_box_is_refused(void **state) {
    static const char two[] = AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("2"));
    (void)state;
    check_refused(
        (struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2")), "(I0\nt", OBJECT("Partial", "(d"), NULL},
        GRADCMP_ERROR_UNSUPPORTED, "partial sums");
    check_refused((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2")), "(I0\nt",
                                   OBJECT("RaggedShard", "(Vdim\nI0\nd"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "placement \"RaggedShard\"");
    check_refused((struct dtensor){"(I6\nt", two, "(I0\nI0\nt", STRIDED("0", "3") SHARD("0"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "_StridedShard(0, 3) on mesh axis 0");
    check_refused((struct dtensor){"(I6\nt", two, "(I0\nI0\nt", SHARD("0") STRIDED("0", "2"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "_StridedShard(0, 2) on mesh axis 1");
    check_refused(
        (struct dtensor){"(I6\nt", two, "(I0\nI0\nt", SHARD("0") SHARD("0"),
                         "Vshard_order\n(ctorch.distributed.x\nShardOrderEntry\n(I0\n(I1\n"
                         "I0\nttRt"},
        GRADCMP_ERROR_UNSUPPORTED, "shard in another order than their own");
    check_piece((struct dtensor){"(I6\nt", two, "(I0\nI1\nt", SHARD("0") SHARD("0"),
                                 "Vshard_order\n(ctorch.distributed.x\nShardOrderEntry\n(I0\n(I0\n"
                                 "I1\nttRt"},
                "2+1");
    check_refused((struct dtensor){"(I6\nt", "Vmesh\nN", "(I0\nt", SHARD("0"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "device mesh is not understood");
    check_refused((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2")), "N", SHARD("0"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "its writer's place");
    check_refused((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2")), "(I2\nt", SHARD("0"), NULL},
                  GRADCMP_ERROR_UNSUPPORTED, "its writer's place");
    check_refused((struct dtensor){"(I6\nt", AXES(FLAT_LAYOUT("2")), "(I0\nt", SHARD("1"), NULL},
                  GRADCMP_ERROR_CORRUPT, "a DTensor of 1 axes, sharded on axis 1");
    check_refused((struct dtensor){"(I6\nt", two, "(I0\nI0\nt", SHARD("0"), NULL},
                  GRADCMP_ERROR_CORRUPT, "1 placements on a mesh of 2 axes");
    check_refused((struct dtensor){"(I-6\nt", two, "(I0\nI0\nt", REPLICATE REPLICATE, NULL},
                  GRADCMP_ERROR_CORRUPT, "size is no tuple");
}

#define STRIDED_LAYOUT(ranks, stride)                                                              \
    OBJECT("_FlatLayout", "(Vshape\n(I" ranks "\ntVstride\n(I" stride "\ntd")
#define SIX      "(I5\nI4\nI3\nI2\nI1\nI0\nt"
#define RANK_MAP "V_flatten_rank_map\n" SIX

static void test_torch_save_shard__a_mesh_of_listed_ranks_tells_the_writer(void **state) {
    static const struct {
        const char *mesh;
        int64_t writer;
    } rows[] = {
        {AXES(STRIDED_LAYOUT("2", "3") STRIDED_LAYOUT("3", "1")) RANK_MAP, 0},
        {AXES(STRIDED_LAYOUT("2", "1") STRIDED_LAYOUT("3", "2")) RANK_MAP, -1},
        {AXES(FLAT_LAYOUT("2") FLAT_LAYOUT("3")) RANK_MAP, -1},
        {AXES(STRIDED_LAYOUT("2", "3") STRIDED_LAYOUT("3", "1")), -1},
        {"V_layout\n" OBJECT("_MeshLayout", "(Vshape\n(I2\nI3\ntVstride\n(I3\nI1\ntd") RANK_MAP, 0},
        {RANKS("(I2\nI3\nt", "(I3\nI1\nt") "V_flatten_mesh_list\n" SIX, 0},
        {RANKS("(I2\nI3\nt", "(I3\nI1\nt") "V_flatten_mesh_list\n(I0\nI1\nt", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dtensor dtensor = {"(I6\nI6\nt", rows[i].mesh, "(I1\nI2\nt", REPLICATE SHARD("1"),
                                  NULL};
        struct found found = read_dtensor(&dtensor, i % 2 == 1);
        assert_int_equal(found.status, GRADCMP_OK);
        assert_int_equal(found.writer, rows[i].writer);
    }
    struct dtensor one = {
        "(I6\nt", "V_layout\n" OBJECT("_MeshLayout", "(Vshape\nI6\nVstride\nI1\nd") RANK_MAP,
        "(I2\nt", SHARD("0"), NULL};
    assert_int_equal(read_dtensor(&one, false).writer, 3);
}

#define SHARDED_CLASS "ctorch.distributed._shard.sharded_tensor.api\nShardedTensor\n"
#define SHARDED_STATE(offsets, sizes)                                                              \
    "((ctorch.x\nShard\n)R(N(Vtensor\n" PT_VECTOR(                                                 \
        "4") "Vmetadata\nctorch.x\nShardMetadata\n)R"                                              \
             "(N(Vshard_offsets\n" offsets "Vshard_sizes\n" sizes "dtbdtbl"                        \
             "ctorch.x\nShardedTensorMetadata\n)R(Vsize\n(I10\nI2\ntVshards_metadata\n("           \
             "I1\nI2\nldbNNI00\nt"

static void test_torch_save_shard__sharded_tensors_state_their_place(void **state) {
    (void)state;
    struct found found =
        with_pickle(SHARDED_CLASS ")R" SHARDED_STATE("(I4\nI0\nl", "(I2\nI2\nl") "b",
                    false); /* before torch 2.0 */
    assert_int_equal(found.status, GRADCMP_OK);
    assert_string_equal(found.text, "4+2 0+2");
    assert_int_equal(found.shard.mesh_ranks, 2);
    found = with_pickle("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
                        "_rebuild_wrapper_subclass\n" SHARDED_CLASS
                        "(t" SHARDED_STATE("(I8\nI0\nl", "(I2\nI2\nl") "tR",
                        false);
    assert_int_equal(found.status, GRADCMP_OK);
    assert_string_equal(found.text, "8+2 0+2");
    found = with_pickle(SHARDED_CLASS ")R" SHARDED_STATE("(I9\nI0\nl", "(I2\nI2\nl") "b", false);
    assert_int_equal(found.status, GRADCMP_ERROR_CORRUPT);
    assert_text_contains(found.error.message, "no place inside of its size");
    found = with_pickle(SHARDED_CLASS ")R" SHARDED_STATE("(I9\nl", "(I2\nI2\nl") "b", false);
    assert_int_equal(found.status, GRADCMP_ERROR_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_save_shard__one_axis_is_cut_into_equal_parts),
        cmocka_unit_test(test_torch_save_shard__meshes_of_all_versions_are_understood),
        cmocka_unit_test(test_torch_save_shard__mesh_axes_cut_one_after_another),
        cmocka_unit_test(test_torch_save_shard__what_gives_no_box_is_refused),
        cmocka_unit_test(test_torch_save_shard__a_mesh_of_listed_ranks_tells_the_writer),
        cmocka_unit_test(test_torch_save_shard__sharded_tensors_state_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
