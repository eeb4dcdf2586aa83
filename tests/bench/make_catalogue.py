#!/usr/bin/env python3
"""Make a checkpoint with as many pieces as a large run writes: a mixture of experts whose tensors 512 ranks share.

    tests/bench/make_catalogue.py FOLDER [LAYERS [EXPERTS [PIECES]]]

Without torch: the metadata is the pickle that torch.distributed.checkpoint writes, of classes of the same names. The
files of the ranks are sparse. `stacked` layers, as Megatron-Core writes them. With the defaults (120 layers, 88 experts
of 2 x 16 pieces, three states) there are 1,028,160 pieces.
"""
import math
import os
import pickle
import sys
import types

RANKS, HIDDEN = 512, 1024
ITEM_HEAD = 1500  # bytes of an item beside its payload


def module(name):
    """A module of that name, so that classes can be pickled by reference to it."""
    made = sys.modules.get(name)
    if made is None:
        made = sys.modules[name] = types.ModuleType(name)
    return made


def class_of(where, name, **members):
    made = type(name, members.pop("bases", (object,)), {"__module__": where, "__qualname__": name, **members})
    setattr(module(where), name, made)
    return made


class Named:
    """What pickles as the name of a global, as torch's types do."""

    def __init__(self, where, name):
        self.name = name
        setattr(module(where), name, self)
        self.__module__, self.__qualname__ = where, name

    def __reduce__(self):
        return self.name

    def __call__(self):
        raise TypeError("stands for a name only")


for parent in ("torch", "torch.distributed", "torch.distributed.checkpoint", "torch.serialization"):
    module(parent)
META, FILES = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
Size = class_of("torch", "Size", bases=(tuple,), __reduce__=lambda self: (Size, (tuple(self),)))
FLOAT32 = Named("torch", "float32")
STRIDED = Named("torch.serialization", "_get_layout")
Metadata = class_of(META, "Metadata")
TensorStorageMetadata = class_of(META, "TensorStorageMetadata")
ChunkStorageMetadata = class_of(META, "ChunkStorageMetadata")
MetadataIndex = class_of(META, "MetadataIndex")
StorageInfo = class_of(FILES, "_StorageInfo")


class Layout:
    def __reduce__(self):
        return (STRIDED, ("torch.strided",))


Format = class_of(META, "_MEM_FORMAT_ENCODING", __reduce__=lambda self: (Format, (0,)))
TensorProperties = class_of(META, "TensorProperties", __getstate__=lambda self: self.state)


def make(cls, **attributes):
    made = cls.__new__(cls)
    made.__dict__.update(attributes)
    return made


class Writer:
    def __init__(self):
        self.tensors, self.entries = {}, {}
        self.ends = [0] * RANKS
        self.count = 0
        self.properties = make(TensorProperties)
        self.properties.state = (FLOAT32, Layout(), False, Format(), False)

    def add(self, key, shape, boxes):
        chunks = []
        for start, extent in boxes:
            rank, length = self.count % RANKS, ITEM_HEAD + 4 * math.prod(extent)
            chunks.append(make(ChunkStorageMetadata, offsets=Size(start), sizes=Size(extent)))
            index = make(MetadataIndex, fqn=key, offset=Size(start), index=len(chunks) - 1)
            self.entries[index] = make(
                StorageInfo, relative_path=self.file(rank), offset=self.ends[rank], length=length,
                transform_descriptors=None)
            self.ends[rank] += length
            self.count += 1
        self.tensors[key] = make(TensorStorageMetadata, properties=self.properties, size=Size(shape), chunks=chunks)

    @staticmethod
    def file(rank):
        return sys.intern(f"__{rank}_0.distcp")

    def write(self, folder):
        metadata = make(Metadata, state_dict_metadata=self.tensors, planner_data=None, storage_data=self.entries,
                        storage_meta=None, version="1.0.0")
        with open(os.path.join(folder, ".metadata"), "wb") as out:
            pickle.dump(metadata, out)
        for rank, end in enumerate(self.ends):
            with open(os.path.join(folder, self.file(rank)), "wb") as out:
                out.truncate(end)
        with open(os.path.join(folder, "metadata.json"), "w", encoding="ascii") as out:
            out.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", '
                      '"common_backend_version": 1}')
        return os.path.getsize(os.path.join(folder, ".metadata"))


def boxes_of(lead, shape, parts):
    """The pieces of stacked matrices that are cut along their rows."""
    rows = shape[0] // parts
    for index in lead:
        for part in range(parts):
            yield (index + (part * rows,) + (0,) * (len(shape) - 1), (1,) * len(index) + (rows,) + shape[1:])


def main():
    folder = sys.argv[1]
    layers, experts, parts = (int(sys.argv[i]) if len(sys.argv) > i else default
                              for i, default in ((2, 120), (3, 88), (4, 16)))
    dense = {"self_attention.linear_qkv.weight": (3 * HIDDEN, HIDDEN),
             "self_attention.linear_proj.weight": (HIDDEN, HIDDEN),
             "self_attention.linear_qkv.layer_norm_weight": (HIDDEN,),
             "pre_mlp_layernorm.weight": (HIDDEN,),
             "mlp.router.weight": (experts // 8 * 8, HIDDEN)}
    grouped = {"mlp.experts.experts.linear_fc1.weight": (2 * HIDDEN, HIDDEN),
               "mlp.experts.experts.linear_fc2.weight": (HIDDEN, 2 * HIDDEN)}
    os.makedirs(folder, exist_ok=True)
    writer = Writer()
    for state in ("exp_avg", "exp_avg_sq", "fp32_param"):
        prefix = f"optimizer.state.{state}.decoder.layers."
        for name, shape in dense.items():
            lead = [(layer,) for layer in range(layers)]
            writer.add(prefix + name, (layers,) + shape, boxes_of(lead, shape, 8))
        for name, shape in grouped.items():
            lead = [(layer, expert) for layer in range(layers) for expert in range(experts)]
            writer.add(prefix + name, (layers, experts) + shape, boxes_of(lead, shape, parts))
    size = writer.write(folder)
    print(f"{writer.count:,} pieces, {size / 2**20:.0f} MiB of metadata in {folder}")


if __name__ == "__main__":
    main()
