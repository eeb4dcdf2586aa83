"""Write torch.save's zip files for tests, without torch: tensors are Tensor(dtype, shape, values) here,
in whatever of dicts, lists and numbers stands around them."""
import io
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict

STORAGES = {"float32": ("FloatStorage", "f"), "float64": ("DoubleStorage", "d"), "int64": ("LongStorage", "q"),
            "complex64": ("ComplexFloatStorage", "2f")}


def stand_in(module, name):
    """What the pickle names, so that Python's pickler finds it there."""
    words = module.split(".")
    for depth in range(1, len(words) + 1):
        parent = sys.modules.setdefault(".".join(words[:depth]), types.ModuleType(module))
    made = type(name, (), {"__module__": module}) if name.endswith("Storage") else lambda *_: None
    made.__module__, made.__qualname__, made.__name__ = module, name, name
    return parent.__dict__.setdefault(name, made)


REBUILD = stand_in("torch._utils", "_rebuild_tensor_v2")
RECONSTRUCT = stand_in("numpy.core.multiarray", "_reconstruct")
REBUILD_SPARSE = stand_in("torch._utils", "_rebuild_sparse_tensor")


class Storage:
    def __init__(self, dtype, values):
        name, code = STORAGES[dtype]
        self.kind = stand_in("torch", name)
        numbers = [part for value in values for part in (value.real, value.imag)] if len(code) > 1 else values
        self.count, self.raw = len(values), struct.pack(f"<{len(numbers)}{code[-1]}", *numbers)


class Tensor:
    def __init__(self, dtype, shape, values):
        self.storage, self.shape, self.values = Storage(dtype, values), tuple(shape), values

    def __reduce__(self):
        stride = [1] * len(self.shape)
        for axis in range(len(self.shape) - 1, 0, -1):
            stride[axis - 1] = stride[axis] * self.shape[axis]
        return REBUILD, (self.storage, 0, self.shape, tuple(stride), False, OrderedDict())


class Sparse:
    """A sparse tensor: a list of indices for each axis, and the values there."""

    def __init__(self, shape, indices, values):
        self.shape = tuple(shape)
        self.indices = Tensor("int64", [len(indices), len(values)], [index for axis in indices for index in axis])
        self.values = Tensor("float32", [len(values)], values)

    def __reduce__(self):
        return REBUILD_SPARSE, (None, (self.indices, self.values, self.shape, True))


class Array:
    """A NumPy array, of which only what is read is there."""

    def __init__(self, shape, raw):
        self.state = (1, tuple(shape), None, False, raw)

    def __reduce__(self):
        return RECONSTRUCT, (None, (0,), "b"), self.state


class Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.storages = []

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        self.storages.append(obj)
        return "storage", obj.kind, str(len(self.storages) - 1), "cpu", obj.count


def save(path, obj):
    text = io.BytesIO()
    pickler = Pickler(text)
    pickler.dump(obj)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", text.getvalue())
        archive.writestr("archive/byteorder", "little")
        for number, storage in enumerate(pickler.storages):
            archive.writestr(f"archive/data/{number}", storage.raw)
        archive.writestr("archive/version", "3\n")
