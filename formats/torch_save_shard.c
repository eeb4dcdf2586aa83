/* Pieces of sharded tensors. Sources: torch/distributed/tensor (placement_types.py,
 * _dtensor_spec.py, _utils.py), torch/distributed/device_mesh.py and _mesh_layout.py,
 * torch/distributed/_shard/ sharded_tensor/api.py, of torch 2.0 to 2.15;
 * torch/distributed/fsdp/_fully_shard/_fsdp_param.py.
 *
 * Shard(d) on a mesh axis of n ranks cuts what is left of axis d into parts of ceil(size / n), the
 * last ones shorter or empty. Mesh axes cut in their order, from left to right, but for
 * _StridedShard(d, f): FSDP cuts what tensor parallelism, further right in the mesh, has cut into f
 * parts before it.
 *
 * Limits: GRADCMP_MAX_NDIM axes, MAX_MESH axes of a mesh, MAX_WRAPPERS calls around a tensor. */
#include "formats/torch_save_shard.h"

#include <string.h>

#include "base/checked.h"

enum { MAX_MESH = 8, MAX_WRAPPERS = 8 };

enum placement_kind { REPLICATE, SHARD, STRIDED_SHARD, PARTIAL, OTHER_PLACEMENT };

/* One axis of a mesh, and what it does to the tensor. */
struct mesh_axis {
    uint64_t ranks, coordinate;
    enum placement_kind kind;
    uint64_t tensor_axis, split_factor;
};

struct mesh {
    const struct gcmp_torch_file *torch;
    const struct gcmp_node *node; /* the tensor, for messages */
    struct gradcmp_error *error;
    struct mesh_axis axes[MAX_MESH];
    unsigned count;
};

#define MESH_FAIL(mesh, code, ...)                                                                 \
    GCMP_FAIL_AT((mesh)->error, (code),                                                            \
                 gcmp_dir_file_path((mesh)->torch->dir, (mesh)->torch->file),                      \
                 (mesh)->torch->pickle->offset_bytes + (mesh)->node->at, "torch: " __VA_ARGS__)

/* --- DTensor --- */

/* Take Parameter wrappers off: the call that rebuilds the DTensor, or NULL for other nodes. */
static const struct gcmp_node *find_dtensor(const struct gcmp_node *node) {
    for (int i = 0; i < MAX_WRAPPERS; i++) {
        if (!gcmp_node_is_call(node, "torch._utils", "_rebuild_parameter") &&
            !gcmp_node_is_call(node, "torch._utils", "_rebuild_parameter_with_state")) {
            break;
        }
        node = gcmp_node_arg(node, 0);
    }
    bool is_dtensor = gcmp_torch_local_tensor(node) != NULL;
    return is_dtensor ? node : NULL;
}

bool gcmp_pt_is_dtensor(const struct gcmp_node *node) {
    return find_dtensor(node) != NULL;
}

/* The last word of the class of an object: "Shard"; "" for what is no object. */
static const char *class_word(const struct gcmp_node *node) {
    const char *name = gcmp_node_global(node), *space = name == NULL ? NULL : strrchr(name, ' ');
    return space == NULL ? "" : space + 1;
}

static bool read_size(const struct gcmp_node *node, uint64_t *out) {
    int64_t value;
    bool ok = gcmp_node_int(node, &value) && value >= 0;
    *out = ok ? (uint64_t)value : 0;
    return ok;
}

/* An integer, or a tuple of integers whose product it is: a mesh axis that was made of several. */
static bool read_axis_size(const struct gcmp_node *node, uint64_t *out) {
    uint64_t sizes[MAX_MESH];
    unsigned count;
    return read_size(node, out) ||
           (gcmp_node_sizes(node, sizes, MAX_MESH, &count) && gcmp_product(sizes, count, out));
}

/* The mesh's shape from its layout: axes of layouts of their own (2.15), or one shape (2.9). */
static bool read_layout(const struct gcmp_node *layout, struct mesh *mesh) {
    const struct gcmp_node *axes = gcmp_node_get(layout, "axes");
    const struct gcmp_node *shape = gcmp_node_get(layout, "shape");
    const struct gcmp_node *list = axes != NULL ? axes : shape;
    size_t count = gcmp_node_count(list);
    if (axes == NULL && read_size(shape, &mesh->axes[0].ranks)) {
        mesh->count = 1;
        return true;
    }
    if (list == NULL || count > MAX_MESH) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct gcmp_node *axis = gcmp_node_item(list, i);
        axis = axes != NULL ? gcmp_node_get(axis, "shape") : axis;
        if (!read_axis_size(axis, &mesh->axes[i].ranks)) {
            return false;
        }
    }
    mesh->count = (unsigned)count;
    return true;
}

/* Until 2.8 the mesh is a tensor of ranks. */
static bool read_rank_tensor(const struct gcmp_node *ranks, struct mesh *mesh) {
    struct gradcmp_extent extent;
    if (!gcmp_torch_is_tensor(ranks) ||
        gcmp_torch_tensor(mesh->torch, ranks, &extent, NULL) != GRADCMP_OK ||
        extent.ndim > MAX_MESH) {
        return false;
    }
    for (unsigned i = 0; i < extent.ndim; i++) {
        mesh->axes[i].ranks = extent.shape[i];
    }
    mesh->count = extent.ndim;
    return true;
}

static enum gradcmp_status read_mesh(const struct gcmp_node *node, struct mesh *mesh) {
    const struct gcmp_node *layout = gcmp_node_get(node, "_layout");
    const struct gcmp_node *ranks = gcmp_node_get(node, "mesh");
    ranks = ranks != NULL ? ranks : gcmp_node_get(node, "_mesh");
    if (!(layout != NULL ? read_layout(layout, mesh) : read_rank_tensor(ranks, mesh))) {
        MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED,
                  "a DTensor whose device mesh is not understood; save with "
                  "torch.distributed.checkpoint");
    }
    const struct gcmp_node *coordinates = gcmp_node_get(node, "_coordinate_on_dim");
    for (unsigned i = 0; i < mesh->count; i++) {
        if (!read_size(gcmp_node_item(coordinates, i), &mesh->axes[i].coordinate) ||
            gcmp_node_count(coordinates) != mesh->count ||
            mesh->axes[i].coordinate >= mesh->axes[i].ranks) {
            MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED,
                      "a DTensor that does not tell its writer's place in the device mesh; save "
                      "with torch.distributed.checkpoint");
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_placement(const struct gcmp_node *node,
                                          const struct gcmp_pt_shard *shard, struct mesh *mesh,
                                          struct mesh_axis *axis) {
    const char *word = class_word(node);
    int64_t tensor_axis = 0;
    axis->kind = strcmp(word, "Replicate") == 0       ? REPLICATE
                 : strcmp(word, "Shard") == 0         ? SHARD
                 : strcmp(word, "_StridedShard") == 0 ? STRIDED_SHARD
                 : strstr(word, "Partial") != NULL    ? PARTIAL
                                                      : OTHER_PLACEMENT;
    if (axis->kind == REPLICATE) {
        return GRADCMP_OK;
    }
    if (axis->kind == PARTIAL) {
        MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED,
                  "a DTensor of partial sums (placement %s), which no rank holds whole", word);
    }
    bool has_axis = gcmp_node_int(gcmp_node_get(node, "dim"), &tensor_axis);
    if (axis->kind == OTHER_PLACEMENT || !has_axis) {
        MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED, "a DTensor of placement \"%.100s\" is not read",
                  word);
    }
    tensor_axis += tensor_axis < 0 ? (int64_t)shard->ndim : 0;
    if (tensor_axis < 0 || tensor_axis >= (int64_t)shard->ndim) {
        MESH_FAIL(mesh, GRADCMP_ERROR_CORRUPT, "a DTensor of %u axes, sharded on axis %lld",
                  shard->ndim, (long long)tensor_axis);
    }
    axis->tensor_axis = (uint64_t)tensor_axis;
    axis->split_factor = 1;
    if (axis->kind == STRIDED_SHARD &&
        !read_size(gcmp_node_get(node, "split_factor"), &axis->split_factor)) {
        MESH_FAIL(mesh, GRADCMP_ERROR_CORRUPT, "a _StridedShard without its split_factor");
    }
    return GRADCMP_OK;
}

static enum gradcmp_status read_placements(const struct gcmp_node *spec,
                                           const struct gcmp_pt_shard *shard, struct mesh *mesh) {
    const struct gcmp_node *placements = gcmp_node_get(spec, "placements");
    if (gcmp_node_count(placements) != mesh->count) {
        MESH_FAIL(mesh, GRADCMP_ERROR_CORRUPT, "a DTensor of %zu placements on a mesh of %u axes",
                  gcmp_node_count(placements), mesh->count);
    }
    for (unsigned i = 0; i < mesh->count; i++) {
        GCMP_TRY(read_placement(gcmp_node_item(placements, i), shard, mesh, &mesh->axes[i]));
    }
    return GRADCMP_OK;
}

/* Keep of axis `d` what one rank of a mesh axis has. */
static void cut_axis(const struct mesh_axis *axis, struct gcmp_pt_shard *shard) {
    uint64_t *extent = &shard->extent[axis->tensor_axis], *start = &shard->start[axis->tensor_axis];
    uint64_t part = *extent / axis->ranks + (*extent % axis->ranks != 0);
    uint64_t before = part * axis->coordinate;
    before = before < *extent ? before : *extent;
    *start += before;
    *extent = *extent - before < part ? *extent - before : part;
}

/* A _StridedShard comes after the cuts of its axis further right, which make split_factor parts. */
static enum gradcmp_status cut_strided(const struct mesh *mesh, unsigned at,
                                       struct gcmp_pt_shard *shard) {
    const struct mesh_axis *axis = &mesh->axes[at];
    uint64_t parts = 1;
    for (unsigned i = at + 1; i < mesh->count; i++) {
        const struct mesh_axis *other = &mesh->axes[i];
        if (other->kind == SHARD && other->tensor_axis == axis->tensor_axis &&
            !gcmp_mul_u64(parts, other->ranks, &parts)) {
            parts = 0;
        }
    }
    for (unsigned i = 0; i < mesh->count; i++) {
        const struct mesh_axis *other = &mesh->axes[i];
        bool is_same = i != at && other->tensor_axis == axis->tensor_axis;
        if (is_same && (other->kind == STRIDED_SHARD || (other->kind == SHARD && i < at))) {
            parts = 0; /* an order of cuts that FSDP does not make */
        }
    }
    if (parts == 0 || parts != axis->split_factor) {
        MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED,
                  "a DTensor with _StridedShard(%llu, %llu) on mesh axis %u, which is not the cut "
                  "of FSDP behind tensor parallelism; save with torch.distributed.checkpoint",
                  (unsigned long long)axis->tensor_axis, (unsigned long long)axis->split_factor,
                  at);
    }
    cut_axis(axis, shard);
    return GRADCMP_OK;
}

/* Since 2.10 a spec may say in which order the mesh axes cut an axis; only from left to right is
 * read (other orders are written as _StridedShard until now). */
static enum gradcmp_status check_order(const struct gcmp_node *spec, const struct mesh *mesh) {
    const struct gcmp_node *order = gcmp_node_get(spec, "shard_order");
    for (unsigned i = 0; i < mesh->count; i++) {
        if (mesh->axes[i].kind == STRIDED_SHARD) {
            return GRADCMP_OK;
        }
    }
    for (size_t i = 0; i < gcmp_node_count(order); i++) {
        const struct gcmp_node *axes = gcmp_node_arg(gcmp_node_item(order, i), 1);
        int64_t before = -1, axis;
        for (size_t k = 0; k < gcmp_node_count(axes); k++, before = axis) {
            if (!gcmp_node_int(gcmp_node_item(axes, k), &axis) || axis <= before) {
                MESH_FAIL(mesh, GRADCMP_ERROR_UNSUPPORTED,
                          "a DTensor whose mesh axes shard in another order than their own; save "
                          "with torch.distributed.checkpoint");
            }
        }
    }
    return GRADCMP_OK;
}

static enum gradcmp_status cut(const struct gcmp_node *spec, const struct mesh *mesh,
                               struct gcmp_pt_shard *shard) {
    GCMP_TRY(check_order(spec, mesh));
    for (unsigned i = 0; i < mesh->count; i++) {
        if (mesh->axes[i].kind == SHARD) {
            cut_axis(&mesh->axes[i], shard);
        }
    }
    for (unsigned i = 0; i < mesh->count; i++) {
        if (mesh->axes[i].kind == STRIDED_SHARD) {
            GCMP_TRY(cut_strided(mesh, i, shard));
        }
    }
    shard->mesh_ranks = 1;
    for (unsigned i = 0; i < mesh->count; i++) {
        if (!gcmp_mul_u64(shard->mesh_ranks, mesh->axes[i].ranks, &shard->mesh_ranks)) {
            shard->mesh_ranks = 0;
        }
    }
    return GRADCMP_OK;
}

/* Take over a shape and make the piece the whole of it. */
static bool start_shard(const struct gcmp_node *size, struct gcmp_pt_shard *out) {
    if (!gcmp_node_sizes(size, out->shape, GRADCMP_MAX_NDIM, &out->ndim)) {
        return false;
    }
    memset(out->start, 0, sizeof out->start);
    memcpy(out->extent, out->shape, sizeof out->extent);
    return true;
}

enum gradcmp_status gcmp_pt_read_dtensor(const struct gcmp_torch_file *torch,
                                         const struct gcmp_node *node, struct gcmp_pt_shard *out,
                                         struct gradcmp_error *error) {
    const struct gcmp_node *call = find_dtensor(node);
    struct mesh mesh = {.torch = torch, .node = node, .error = error};
    *out = (struct gcmp_pt_shard){.local = gcmp_torch_local_tensor(call)};
    const struct gcmp_node *spec = gcmp_node_state_get(gcmp_node_arg(call, 3), "_spec");
    if (!start_shard(gcmp_node_item(gcmp_node_arg(call, 2), 2), out)) {
        MESH_FAIL(&mesh, GRADCMP_ERROR_CORRUPT,
                  "a DTensor whose size is no tuple of at most %d "
                  "integers of 0 or more",
                  GRADCMP_MAX_NDIM);
    }
    GCMP_TRY(read_mesh(gcmp_node_get(spec, "mesh"), &mesh));
    GCMP_TRY(read_placements(spec, out, &mesh));
    return cut(spec, &mesh, out);
}

/* True where ranks stand in the mesh as the numbers of its places do, the last axis first. */
static bool is_row_major(const struct gcmp_node *layout, const struct mesh *mesh) {
    const struct gcmp_node *axes = gcmp_node_get(layout, "axes");
    const struct gcmp_node *strides = gcmp_node_get(layout, "stride");
    uint64_t expected = 1, stride;
    for (unsigned i = mesh->count; i-- > 0;) {
        const struct gcmp_node *node =
            axes != NULL ? gcmp_node_get(gcmp_node_item(axes, i), "stride")
            : mesh->count == 1 && read_size(strides, &stride) ? strides
                                                              : gcmp_node_item(strides, i);
        if (!read_axis_size(node, &stride) || stride != expected ||
            !gcmp_mul_u64(expected, mesh->axes[i].ranks, &expected)) {
            return false;
        }
    }
    return true;
}

/* The list of all ranks is beside the layout, or (until 2.8) beside the tensor of ranks. */
static int64_t dtensor_writer(const struct gcmp_torch_file *torch, const struct gcmp_node *node) {
    struct mesh mesh = {.torch = torch, .node = node};
    const struct gcmp_node *spec =
        gcmp_node_state_get(gcmp_node_arg(find_dtensor(node), 3), "_spec");
    const struct gcmp_node *about = gcmp_node_get(spec, "mesh");
    const struct gcmp_node *layout = gcmp_node_get(about, "_layout");
    const struct gcmp_node *ranks =
        gcmp_node_get(about, layout != NULL ? "_flatten_rank_map" : "_flatten_mesh_list");
    uint64_t place = 0, count = 1;
    int64_t rank;
    if (read_mesh(about, &mesh) != GRADCMP_OK || (layout != NULL && !is_row_major(layout, &mesh))) {
        return -1;
    }
    for (unsigned i = 0; i < mesh.count; i++) {
        if (!gcmp_mul_u64(count, mesh.axes[i].ranks, &count)) {
            return -1;
        }
        place = place * mesh.axes[i].ranks + mesh.axes[i].coordinate;
    }
    bool is_told = gcmp_node_count(ranks) == count &&
                   gcmp_node_int(gcmp_node_item(ranks, (size_t)place), &rank) && rank >= 0;
    return is_told ? rank : -1;
}

/* --- ShardedTensor --- */

static const char SHARDED_MODULE[] = "torch.distributed._shard.sharded_tensor.api";

/* The state of a ShardedTensor: (local shards, metadata, process group, sharding, init_rrefs). It
 * is rebuilt as a subclass of Tensor since torch 2.0, and was an object before. NULL for others. */
static const struct gcmp_node *sharded_state(const struct gcmp_node *node) {
    if (gcmp_node_is_call(node, SHARDED_MODULE, "ShardedTensor")) {
        return node->as.call.state;
    }
    bool is_rebuilt = gcmp_node_is_call(node, "torch._tensor", "_rebuild_from_type_v2") &&
                      gcmp_node_is_global(gcmp_node_arg(node, 1), SHARDED_MODULE, "ShardedTensor");
    return is_rebuilt ? gcmp_node_arg(node, 3) : NULL;
}

bool gcmp_pt_is_sharded(const struct gcmp_node *node) {
    return sharded_state(node) != NULL;
}

static const struct gcmp_node *state_item(const struct gcmp_node *node, size_t index) {
    return gcmp_node_item(sharded_state(node), index);
}

size_t gcmp_pt_sharded_count(const struct gcmp_node *node) {
    return gcmp_node_count(state_item(node, 0));
}

enum gradcmp_status gcmp_pt_read_sharded(const struct gcmp_torch_file *torch,
                                         const struct gcmp_node *node, size_t index,
                                         struct gcmp_pt_shard *out, struct gradcmp_error *error) {
    const struct gcmp_node *shard = gcmp_node_item(state_item(node, 0), index);
    const struct gcmp_node *metadata = gcmp_node_get(shard, "metadata");
    struct mesh mesh = {.torch = torch, .node = node, .error = error};
    unsigned start_ndim = 0, extent_ndim = 0;
    *out = (struct gcmp_pt_shard){.local = gcmp_node_get(shard, "tensor")};
    bool ok = out->local != NULL && start_shard(gcmp_node_get(state_item(node, 1), "size"), out) &&
              gcmp_node_sizes(gcmp_node_get(metadata, "shard_offsets"), out->start,
                              GRADCMP_MAX_NDIM, &start_ndim) &&
              gcmp_node_sizes(gcmp_node_get(metadata, "shard_sizes"), out->extent, GRADCMP_MAX_NDIM,
                              &extent_ndim) &&
              start_ndim == out->ndim && extent_ndim == out->ndim;
    for (unsigned d = 0; d < out->ndim && ok; d++) {
        ok = out->start[d] <= out->shape[d] && out->extent[d] <= out->shape[d] - out->start[d];
    }
    if (!ok) {
        MESH_FAIL(&mesh, GRADCMP_ERROR_CORRUPT,
                  "a ShardedTensor whose shard %zu has no tensor, or no place inside of its size",
                  index);
    }
    out->mesh_ranks = gcmp_node_count(gcmp_node_get(state_item(node, 1), "shards_metadata"));
    return GRADCMP_OK;
}

/* --- the writer --- */

int64_t gcmp_pt_shard_writer(const struct gcmp_torch_file *torch, const struct gcmp_node *node) {
    int64_t rank;
    if (gcmp_pt_is_dtensor(node)) {
        return dtensor_writer(torch, node);
    }
    const struct gcmp_node *shard = gcmp_node_item(state_item(node, 0), 0);
    const struct gcmp_node *placement =
        gcmp_node_get(gcmp_node_get(shard, "metadata"), "placement");
    return gcmp_node_int(gcmp_node_get(placement, "_rank"), &rank) && rank >= 0 ? rank : -1;
}
