"""Write small checkpoints in the form of Megatron's --ckpt-format torch, and damaged ones.

    make.py [DIR]     (default: the folder of this file; damaged ones go to ../bad/legacy)

Nothing but Python is needed: pickles refer to torch's and numpy's globals by name, and archives are
written as torch.save lays them out. The layouts follow megatron/core (param_and_grad_buffer.py,
distrib_optimizer.py, optimizer.py, checkpointing.py). Element i of a parameter is

    float32(1000 * (sum of the bytes of its name % 997) + i)

in exp_avg, a quarter more in the fp32 weights, half more in exp_avg_sq; names and i are those of the
whole model, as distributed checkpoints have them.
"""
import argparse
import io
import os
import pickle
import shutil
import struct
import sys
import types
import zipfile
from collections import OrderedDict

HERE = os.path.dirname(os.path.abspath(__file__))


# ---------------------------------------------------------------- globals, storages and archives

def module(name):
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        if "." in name:
            parent, _, last = name.rpartition(".")
            setattr(module(parent), last, sys.modules[name])
    return sys.modules[name]


def by_name(where, name):
    def function(*_):
        raise RuntimeError("only a name")
    function.__module__, function.__name__, function.__qualname__ = where, name, name
    setattr(module(where), name, function)
    return function


V2 = by_name("torch._utils", "_rebuild_tensor_v2")
ARRAY = by_name("torch._utils", "_rebuild_device_tensor_from_numpy")
UNKNOWN = by_name("torch_x.storage", "_rebuild_blocked_tensor")
FLOAT32, BFLOAT16 = by_name("torch", "float32"), by_name("torch", "bfloat16")
STORAGES = {FLOAT32: by_name("torch", "FloatStorage"),
            BFLOAT16: by_name("torch", "BFloat16Storage")}
WRAP, TENSOR = by_name("torch._tensor", "_rebuild_from_type_v2"), by_name("torch", "Tensor")
RECONSTRUCT = by_name("numpy.core.multiarray", "_reconstruct")
NDARRAY, DTYPE = by_name("numpy", "ndarray"), by_name("numpy", "dtype")


def bfloat16(value):
    """The bits of the nearest bfloat16, of two the even one."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


class Storage:
    def __init__(self, dtype, values):
        self.dtype, self.values = dtype, list(values)

    def bytes(self):
        if self.dtype is FLOAT32:
            return struct.pack("<%df" % len(self.values), *self.values)
        return b"".join(struct.pack("<H", bfloat16(v)) for v in self.values)


class Reduced:
    """An object that is pickled as a call."""

    def __init__(self, function, arguments, state=None):
        self.call = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.call


class Tensor(Reduced):
    def __init__(self, storage, offset, shape, function=V2):
        strides, step = [], 1
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        super().__init__(function, (storage, offset, tuple(shape), tuple(strides), False,
                                    OrderedDict()))
        self.storage, self.offset, self.shape = storage, offset, tuple(shape)


def tensor(shape, values, dtype=FLOAT32):
    return Tensor(Storage(dtype, values), 0, shape)


def narrow(value):
    """A value as bfloat16 keeps it."""
    return struct.unpack("<f", struct.pack("<I", bfloat16(value) << 16))[0]


def array(shape, values, dtype=FLOAT32, text=None, order="<", fortran=False):
    """A tensor inside of the pickle; of a bfloat16 tensor the array is float32."""
    if fortran:
        rows, columns = shape
        values = [values[r * columns + c] for c in range(columns) for r in range(rows)]
    data = struct.pack("%s%df" % (order, len(values)), *values)
    kind = Reduced(DTYPE, ("f4", False, True), (3, order, None, None, None, -1, -1, 0))
    ndarray = Reduced(RECONSTRUCT, (NDARRAY, (0,), b"b"),
                      (1, tuple(shape), kind, fortran, data if text is None else text))
    return Reduced(ARRAY, (ndarray, dtype, "npu:0", False))


class Namespace:
    pass


Namespace.__module__, Namespace.__qualname__ = "argparse", "Namespace"
argparse.Namespace = Namespace


class Pickler(pickle._Pickler):  # the one in Python: names need not be importable
    def __init__(self, stream, protocol):
        super().__init__(stream, protocol=protocol)
        self.keys = {}

    def persistent_id(self, what):
        if not isinstance(what, Storage):
            return None
        key = self.keys.setdefault(id(what), (str(len(self.keys)), what))[0]
        return ("storage", STORAGES[what.dtype], key, "cpu", len(what.values))


def save(root, path, protocol=2):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stream = io.BytesIO()
    pickler = Pickler(stream, protocol)
    pickler.dump(root)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        def add(name, data):
            info = zipfile.ZipInfo("model/" + name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, data)

        add("data.pkl", stream.getvalue())
        add("byteorder", b"little")
        for key, storage in pickler.keys.values():
            add("data/" + key, storage.bytes())
        add("version", b"3\n")


# ---------------------------------------------------------------------- the model and its shards

def values(name, count, more=0.0):
    return [1000.0 * (sum(name.encode()) % 997) + i + more for i in range(count)]


def product(shape):
    result = 1
    for size in shape:
        result *= size
    return result


class Model:
    """Parameters of a rank: (local name, global name, shape, axis, halves, expert)."""

    def __init__(self, **sizes):
        self.tp = self.pp = self.vp = self.ep = 1
        self.etp = None
        self.hidden, self.ffn, self.qkv, self.inner, self.vocab = 4, 6, 8, 4, 10
        self.gated, self.bias, self.tied, self.experts, self.positions = True, False, False, 0, 0
        self.chunks = None  # layers of each [chunk][stage]
        self.layers = 2
        self.noop = ()  # layers without parameters
        self.latent = None  # (query, key, position) sizes of latent attention
        self.args = {}
        self.__dict__.update(sizes)
        if self.etp is None:
            self.etp = 1 if self.experts else self.tp
        if self.chunks is None:
            each = self.layers // (self.pp * self.vp)
            self.chunks = [[each] * self.pp for _ in range(self.vp)]
        self.layers = sum(map(sum, self.chunks))

    def attention(self):
        hidden = self.hidden
        if self.latent is None:
            yield "linear_proj.weight", (hidden, self.inner), 1
            if self.bias:
                yield "linear_proj.bias", (hidden,), None
            yield "linear_qkv.weight", (self.qkv, hidden), 0
            if self.bias:
                yield "linear_qkv.bias", (self.qkv,), 0
            return
        query, key, position = self.latent
        yield "linear_proj.weight", (hidden, self.inner), 1
        yield "linear_q_down_proj.weight", (query, hidden), None
        yield "linear_q_up_proj.weight", (self.qkv, query), 0
        yield "linear_kv_down_proj.weight", (key + position, hidden), None
        yield "linear_kv_up_proj.weight", (self.qkv, key), 0
        yield "q_layernorm.weight", (query,), None
        yield "kv_layernorm.weight", (key,), None

    def mlp(self, prefix="mlp."):
        rows = self.ffn * (2 if self.gated else 1)
        yield prefix + "linear_fc1.weight", (rows, self.hidden), 0
        if self.bias:
            yield prefix + "linear_fc1.bias", (rows,), 0
        yield prefix + "linear_fc2.weight", (self.hidden, self.ffn), 1
        if self.bias:
            yield prefix + "linear_fc2.bias", (self.hidden,), None

    def norm(self, local, name):
        yield local + ".weight", name + "weight", (self.hidden,), None
        if self.bias:
            yield local + ".bias", name + "bias", (self.hidden,), None

    def layer(self, ep):
        fused = "self_attention.linear_qkv.layer_norm_"
        yield from self.norm("input_layernorm", "input_layernorm." if self.latent else fused)
        for name, shape, axis in self.attention():
            name = "self_attention." + name
            yield name, name, shape, axis
        yield from self.norm("pre_mlp_layernorm", "mlp.linear_fc1.layer_norm_")
        if not self.experts:
            for name, shape, axis in self.mlp():
                yield name, name, shape, axis
            return
        yield "mlp.router.weight", "mlp.router.weight", (self.experts, self.hidden), None
        each = self.experts // self.ep
        for local in range(each):
            for name, shape, axis in self.mlp(""):
                yield ("mlp.experts.local_experts.%d.%s" % (local, name),
                       "mlp.experts.experts.%d.%s" % (ep * each + local, name), shape, axis)

    def chunk(self, pp, vp, ep):
        """(local name, global name, shape, axis) in the order of registration."""
        first = pp == 0 and vp == 0
        last = pp == self.pp - 1 and vp == self.vp - 1
        before = sum(self.chunks[v][p] for v in range(self.vp) for p in range(self.pp)
                     if (v, p) < (vp, pp))
        if first:
            yield ("embedding.word_embeddings.weight",) * 2 + ((self.vocab, self.hidden), 0)
            if self.positions:
                yield (("embedding.position_embeddings.weight",) * 2 +
                       ((self.positions, self.hidden), None))
        for local in range(self.chunks[vp][pp]):
            if before + local in self.noop:
                continue
            for name, name_of_model, shape, axis in self.layer(ep):
                yield ("decoder.layers.%d.%s" % (local, name),
                       "decoder.layers.%d.%s" % (before + local, name_of_model), shape, axis)
        if last:
            yield from self.norm("decoder.final_layernorm", "decoder.final_layernorm.")
            if not self.tied or not first:
                yield ("output_layer.weight", "output_layer.weight", (self.vocab, self.hidden), 0)

    def shard(self, local, name, shape, axis, tp, etp, more=0.0):
        """Shape and values of a rank's part."""
        is_expert = ".experts." in name
        ranks, rank = (self.etp, etp) if is_expert else (self.tp, tp)
        whole = values(name, product(shape), more)
        if axis is None or ranks == 1:
            return shape, whole
        gated = self.gated and "linear_fc1" in name
        size = shape[axis]
        own = size // ranks
        index = list(range(rank * own, (rank + 1) * own))
        if gated:
            half, own = size // 2, size // 2 // ranks
            index = [h * half + rank * own + i for h in (0, 1) for i in range(own)]
        columns = shape[1] if len(shape) == 2 else 1
        if axis == 0:
            part = [whole[r * columns + c] for r in index for c in range(columns)]
            return (len(index),) + tuple(shape[1:]), part
        part = [whole[r * columns + c] for r in range(shape[0]) for c in index]
        return (shape[0], len(index)), part

    def rank(self, tp, pp, ep, etp, more=0.0):
        """Chunks of a rank: lists of (local name, shape, values, is expert)."""
        return [[(local,) + self.shard(local, name, shape, axis, tp, etp, more) +
                 (".experts." in local,)
                 for local, name, shape, axis in self.chunk(pp, vp, ep)]
                for vp in range(self.vp)]

    def namespace(self, iteration=1, **more):
        args = Namespace()
        args.__dict__.update(
            num_layers=self.layers, hidden_size=self.hidden, ffn_hidden_size=self.ffn,
            num_attention_heads=4, tensor_model_parallel_size=self.tp,
            pipeline_model_parallel_size=self.pp,
            virtual_pipeline_model_parallel_size=self.vp if self.vp > 1 else None,
            expert_model_parallel_size=self.ep, expert_tensor_parallel_size=self.etp,
            num_experts=self.experts or None, data_parallel_size=1, bf16=True,
            untie_embeddings_and_output_weights=not self.tied, vocab_size=self.vocab,
            adam_beta1=0.0, adam_beta2=0.0, iteration=iteration)
        args.__dict__.update(self.args)
        args.__dict__.update(more)
        return args

    def ranks(self):
        """(folder, tp, pp, ep, etp) of each rank that writes."""
        for pp in range(self.pp):
            for r in range(self.etp * self.ep):
                tp, ep = r % self.tp, r // self.etp % self.ep
                name = "mp_rank_%02d" % tp
                name += "_%03d" % pp if self.pp > 1 else ""
                name += "_%03d" % ep if self.ep > 1 else ""
                yield name, tp, pp, ep, r % self.etp


# ------------------------------------------------------------------------------- flat buffers

def up(number, unit):
    return -(-number // unit) * unit


def lay_out(shapes, align=64, bucket=None, shared=()):
    """Starts in the padded buffer and without padding of bucket ends; sizes of the buckets."""
    padded, plain, sizes = [0] * len(shapes), [0] * len(shapes), []
    at = first = gone = 0

    def close(end):
        nonlocal at, first, gone
        sizes.append(end - first)
        after = up(end, 128 if align > 1 else 1)
        gone += after - end
        at = first = after

    for i in reversed(range(len(shapes))):
        at = first + up(at - first, align)
        if i in shared and at > first:
            close(at)
        padded[i], plain[i] = at, at - gone
        at += product(shapes[i])
        if i in shared or (bucket and at - first >= bucket):
            close(at)
    if at > first:
        close(at)
    return padded, plain, sizes, at


class Save:
    """One checkpoint under way."""

    def __init__(self, folder, model, **how):
        self.folder, self.model = folder, model
        self.align, self.bucket, self.views, self.kind = 64, None, True, "distributed"
        self.chained = self.buckets_apart = self.half = False
        self.skip, self.iteration, self.protocol = (), 1, 2
        self.wide = None  # end of the names of weights that are 32-bit in a 16-bit run
        self.weight = lambda rank, name, shape, data: None  # another form of a weight
        self.edit = lambda rank, root: None
        self.edit_buffers = lambda rank, root: root
        self.__dict__.update(how)

    def write(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for rank, tp, pp, ep, etp in self.model.ranks():
            if rank in self.skip:
                continue
            path = os.path.join(self.folder, "iter_%07d" % self.iteration, rank)
            parts = [self.model.rank(tp, pp, ep, etp, more) for more in (0.25, 0.0, 0.5)]
            root = {"args": self.model.namespace(self.iteration), "checkpoint_version": 3.0,
                    "iteration": self.iteration}
            for vp, chunk in enumerate(parts[0]):
                key = "model" if self.model.vp == 1 else "model%d" % vp
                root[key] = self.weights(rank, chunk)
            root["optimizer"] = self.optimizer(parts)
            self.edit(rank, root)
            save(root, os.path.join(path, "model_optim_rng.pt"), self.protocol)
            if self.kind == "distributed":
                buffers = self.edit_buffers(rank, self.buffers(parts, dense=ep == 0 or tp > 0))
                if buffers is not None:
                    save(buffers, os.path.join(path, "distrib_optim.pt"))

    def shared(self, chunk):
        tied = self.model.tied and self.model.pp > 1
        return [i for i, row in enumerate(chunk)
                if tied and ("word_embeddings" in row[0] or "output_layer" in row[0])]

    def weights(self, rank, chunk):
        dtype = FLOAT32 if self.kind == "fp32" else BFLOAT16
        result = OrderedDict()
        shapes = [row[1] for row in chunk]
        starts, _, _, size = lay_out(shapes, self.align, self.bucket, self.shared(chunk))
        storage = Storage(dtype, [0.0] * size)
        for (name, shape, data, _), start in zip(chunk, starts):
            form = self.weight(rank, name, shape, data)
            if form is None and self.views and self.kind == "distributed":
                storage.values[start:start + len(data)] = data
                form = Tensor(storage, start, shape)
            is_wide = self.wide is not None and name.endswith(self.wide)
            result[name] = form or tensor(shape, data, FLOAT32 if is_wide else dtype)
            if name.endswith("linear_qkv.weight"):
                result[name.replace("weight", "_extra_state")] = None
            if name.endswith("router.weight"):
                result[name.replace("weight", "expert_bias")] = tensor(
                    (self.model.experts,), [0.0] * self.model.experts)
        return result

    def buffer(self, chunks):
        """One buffer of three states: [(shape, data of each state)]."""
        shapes = [shape for _, shape, _, _ in chunks[0]]
        _, plain, sizes, _ = lay_out(shapes, self.align, self.bucket, self.shared(chunks[0]))
        total, out = sum(sizes), {}
        for state, chunk in zip(("param", "exp_avg", "exp_avg_sq"), chunks):
            flat = [-1.0] * total
            for (_, _, data, _), start in zip(chunk, plain):
                flat[start:start + len(data)] = data
            out[state] = tensor((total,), flat)
            if self.buckets_apart:
                ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
                out[state] = [tensor((size,), flat[end - size:end])
                              for size, end in zip(sizes, ends)]
        if self.buckets_apart:
            return {FLOAT32: out}
        out["numel_unpadded"] = total
        return {(BFLOAT16, FLOAT32): out}

    def buffers(self, parts, dense):
        def of(wanted):
            root = {} if self.buckets_apart else {"buckets_coalesced": True}
            for vp in range(self.model.vp):
                root[vp] = self.buffer([[row for row in states[vp] if wanted(row)]
                                        for states in parts])
            return root

        if not self.chained:
            return of(lambda row: True)
        return [of(lambda row: not row[3]) if dense else None, of(lambda row: row[3])]

    def optimizer(self, parts):
        if self.kind == "distributed":
            return {"optimizer": {"param_groups": [{"betas": (0.0, 0.0), "step": 1}]}}
        rows = [[row for chunk in states for row in chunk] for states in parts]
        if self.chained:
            return [self.plain(rows, lambda row: not row[3], False),
                    self.plain(rows, lambda row: row[3], True)]
        return self.plain(rows, lambda row: True, False)

    def plain(self, rows, wanted, experts):
        """The state of an optimizer that is not distributed."""
        def is_vector(row):
            return len(row[1]) == 1

        chosen = [i for i, row in enumerate(rows[0]) if wanted(row)]
        groups = [[i for i in chosen if is_vector(rows[0][i]) == vectors]
                  for vectors in (False, True)]
        if chosen and is_vector(rows[0][chosen[0]]):
            groups.reverse()
        state, param_groups, masters, number = {}, [], [], 0
        for group in groups:
            numbers = []
            for i in group:
                state[number] = {"step": tensor((), [1.0]),
                                 "exp_avg": tensor(rows[1][i][1], rows[1][i][2]),
                                 "exp_avg_sq": tensor(rows[2][i][1], rows[2][i][2])}
                numbers.append(number)
                number += 1
            vectors = bool(group) and is_vector(rows[0][group[0]])
            param_groups.append({"wd_mult": 0.0 if vectors else 1.0, "betas": (0.0, 0.0),
                                 "is_expert_parallel": experts, "params": numbers})
            masters.append([tensor(rows[0][i][1], rows[0][i][2]) for i in group
                            if self.wide is None or not rows[0][i][0].endswith(self.wide)])
        inner = {"state": state, "param_groups": param_groups}
        if self.kind == "fp32":
            return inner
        return {"optimizer": inner, "fp32_from_fp16_params": masters}


# ------------------------------------------------------------------------------- the samples

def good(folder):
    def write(name, model, **how):
        Save(os.path.join(folder, name), model, **how).write()

    # Chunks of different depth: 2 and 1 layers, then 1 and 1.
    write("pp2vp2_uneven", Model(pp=2, vp=2, chunks=[[2, 1], [1, 1]]))
    # [h, h] on every rank, twice in each MLP; biases; positions; a tied output layer.
    write("tp4_square", Model(tp=4, hidden=4, ffn=16, qkv=12, inner=4, vocab=16, gated=False,
                              bias=True, tied=True, positions=8, layers=1))
    # A shared embedding in a bucket of its own, on two stages.
    write("pp2_tied", Model(pp=2, tied=True, vocab=9), views=False)
    # Buckets whose ends are seen in the sum alone, and in the weights' places.
    overlap = {"overlap_grad_reduce": True, "ddp_bucket_size": 50}
    write("bucket_size", Model(args=overlap, vocab=9, ffn=5), bucket=50,
          views=False)
    write("bucket_views", Model(vocab=9, ffn=5), bucket=400)
    # Before 2024-03: one tensor a bucket, no alignment.
    write("buckets_apart", Model(vocab=9, ffn=5), bucket=50, align=1, buckets_apart=True)
    # Experts: two ranks hold (0, 0) and (1, 1); replicas of dense weights; experts split further.
    write("moe_tp2ep2", Model(tp=2, ep=2, experts=4, layers=1), chained=True)
    write("moe_ep2", Model(ep=2, experts=4, layers=1), chained=True)
    write("moe_tp2etp2", Model(tp=2, etp=2, experts=2, layers=1))
    # Optimizers of each rank: 32-bit, chained, vectors first.
    write("fp32_pp2", Model(pp=2), kind="fp32")
    # Experts of the shapes of other weights; a router of 32 bits, which has no master.
    write("plain_moe_tp2ep2", Model(tp=2, ep=2, experts=4, layers=1, ffn=2), kind="plain",
          chained=True, wide="router.weight")
    # MindSpeed's layers in name only: the second of each stage.
    write("noop_pp2", Model(pp=2, layers=4, noop={1, 3}, args={"noop_layers": {1, 3}}))
    # Latent attention: what is whole and what is split is in the arguments.
    latent = {"q_lora_rank": 6, "kv_lora_rank": 5, "qk_pos_emb_head_dim": 2}
    write("latent_tp2", Model(tp=2, latent=(6, 5, 2), layers=1, args=latent))


    # Weights inside of the pickle: columns first, big-endian, in a wrapper; in protocol 4 as bytes.
    def form(rank, name, shape, data):
        data = [narrow(value) for value in data]
        if name.endswith("linear_fc1.weight"):
            return array(shape, data, BFLOAT16, fortran=True)
        if name.endswith("linear_fc2.weight"):
            return array(shape, data, BFLOAT16, order=">")
        made = array(shape, data, BFLOAT16)
        if name.endswith("norm.weight"):
            inner = made.call
            return Reduced(WRAP, (inner[0], TENSOR, inner[1], {"partition_dim": 0}))
        return made

    write("arrays", Model(layers=1), weight=form)
    write("arrays_protocol4", Model(layers=1), weight=form, protocol=4)


def bad(folder):
    def write(name, model=None, **how):
        Save(os.path.join(folder, name), model or Model(layers=1), **how).write()

    def drop(rank, key):
        def edit(at, root):
            if at == rank:
                del root[key]
        return edit

    def replace(rank, key, value):
        def edit(at, root):
            if at == rank:
                root[key] = value
        return edit

    def on_weight(wanted, make):
        return lambda rank, name, shape, data: make(shape, data) if name == wanted else None

    qkv = "decoder.layers.0.self_attention.linear_qkv.weight"
    two = Model(tp=2, layers=1)
    write("rank_missing", two, skip=("mp_rank_01",))
    write("iteration_of_another", two, edit=replace("mp_rank_01", "iteration", 2))
    write("no_model", edit=drop("mp_rank_00", "model"))
    write("model_is_list", edit=replace("mp_rank_00", "model", [1, 2]))
    write("tensor_unknown", weight=on_weight(
        qkv, lambda shape, data: Reduced(UNKNOWN, (Storage(BFLOAT16, data), 16, len(data)))))
    write("weight_unknown_call", weight=on_weight(
        qkv, lambda shape, data: Reduced(UNKNOWN, (list(data),))))
    write("weight_shape", two, weight=lambda rank, name, shape, data: tensor(
        (shape[0] - 1,) + tuple(shape[1:]), data[:-4], BFLOAT16)
        if name == qkv and rank == "mp_rank_01" else None)
    write("weight_absent", two, edit=lambda rank, root: root["model"].pop(qkv)
          if rank == "mp_rank_01" else None)
    write("layers_fewer", Model(layers=1, args={"num_layers": 2}))
    write("buffer_missing", two, edit_buffers=lambda rank, root: None if rank == "mp_rank_01" else root)
    write("array_text", Model(layers=1), weight=on_weight(
        qkv, lambda shape, data: array(shape, data, BFLOAT16, text="x" * len(data) * 4)))
    write("array_short", Model(layers=1), weight=on_weight(
        qkv, lambda shape, data: array(shape, data[:-1], BFLOAT16)))
    write("array_not_bf16", Model(layers=1), weight=on_weight(
        qkv, lambda shape, data: array(shape, [v + 0.1 for v in data], BFLOAT16)))
    write("array_type", Model(layers=1), weight=on_weight(
        qkv, lambda shape, data: array(shape, data, by_name("torch", "float64"))))

    def cut(rank, root):
        states = root[0][(BFLOAT16, FLOAT32)]
        for state in ("param", "exp_avg", "exp_avg_sq"):
            states[state] = tensor((states["numel_unpadded"] - 64,),
                                   states[state].storage.values[:-64])
        states["numel_unpadded"] -= 64
        return root

    def claim(rank, root):
        root[0][(BFLOAT16, FLOAT32)]["numel_unpadded"] += 1
        return root

    def two_axes(rank, root):
        states = root[0][(BFLOAT16, FLOAT32)]
        flat = states["exp_avg"].storage.values
        states["exp_avg"] = Tensor(Storage(FLOAT32, flat), 0, (1, len(flat)))
        return root

    write("buffer_short", edit_buffers=cut)
    write("buffer_numel", edit_buffers=claim)
    write("buffer_axes", edit_buffers=two_axes)
    write("buffer_types", edit_buffers=lambda rank, root: {0: {**root[0], FLOAT32: {}}})
    write("buffer_none", edit_buffers=lambda rank, root: {"buckets_coalesced": True})
    write("buffer_extra", edit_buffers=lambda rank, root: {**root, 1: root[0]})

    def numbers(rank, root):
        groups = root["optimizer"]["optimizer"]["param_groups"]
        groups[1]["params"] = groups[1]["params"] + [99, 100]

    def shapes(rank, root):
        state = root["optimizer"]["optimizer"]["state"]
        state[0]["exp_avg_sq"] = tensor((3,), [1.0, 2.0, 3.0])

    write("plain_numbers", Model(layers=1), kind="plain", edit=numbers)
    write("plain_shapes", Model(layers=1), kind="plain", edit=shapes)
    write("moe_hole", Model(tp=4, ep=2, experts=4, layers=1, inner=4, qkv=8, vocab=12))
    deep = {"a": 1}
    for _ in range(20):
        deep = {"a": deep}
    write("dicts_deep", Model(layers=1), edit=replace("mp_rank_00", "model", deep))
    write("chunk_order", Model(layers=1), edit=lambda rank, root: root.update(
        model1=root["model"], model0=root.pop("model")))


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else HERE
    good(place)
    bad(os.path.join(place, "..", "bad", "legacy"))
