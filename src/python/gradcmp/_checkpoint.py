"""Open checkpoints: a mapping of names to tensors."""

import ctypes
import importlib
import struct
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _abi
from ._library import Options, StrPath, dtype_names, encode, library, run, text


def _find_numpy() -> Any:
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


numpy = _find_numpy()

# Names of types by number, sizes in bytes, and the format characters of struct and memoryview.
NAMES = {number: name for name, number in dtype_names().items()}
SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1,
         "float8_e5m2": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4,
         "uint16": 2, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16}
FORMATS = {"float64": "d", "float32": "f", "bfloat16": "H", "float8_e4m3fn": "B",
           "float8_e5m2": "B", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
           "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B", "bool": "?",
           "complex64": "f", "complex128": "d"}
# How numpy calls what it has no type for.
STORED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


class Tensor(NamedTuple):
    """What is known of a tensor without reading it."""

    name: str
    state: str
    layer: int
    dtype: str
    shape: Tuple[int, ...]
    pieces: int
    copies: int


def _widen_bfloat16(raw: bytearray) -> bytearray:
    """The same values as float32: a bfloat16 is its upper half."""
    out = bytearray(2 * len(raw))
    low, high = (2, 3) if sys.byteorder == "little" else (0, 1)
    out[low::4], out[high::4] = raw[0::2], raw[1::2]
    return out


def _as_array(raw: bytearray, dtype: str, shape: Tuple[int, ...]) -> Any:
    return numpy.frombuffer(raw, dtype=numpy.dtype(STORED.get(dtype, dtype))).reshape(shape)


def _as_memoryview(raw: bytearray, dtype: str, shape: Tuple[int, ...]) -> Any:
    if dtype == "float16":  # memoryview cannot show these
        count = len(raw) // 2
        raw = bytearray(struct.pack(f"={count}f", *struct.unpack(f"={count}e", raw)))
        dtype = "float32"
    if dtype.startswith("complex"):
        shape = (*shape, 2)
    view: Any = memoryview(raw)  # casts take literals only, as far as type checkers know
    if 0 in shape:  # memoryview has no such shapes
        return view.cast(FORMATS[dtype])
    return view.cast("B").cast(FORMATS[dtype], shape)


class Checkpoint(Mapping):  # type: ignore[type-arg]
    """Tensors by name, unsharded, read when they are asked for.

    checkpoint[name] is the tensor of the state that was chosen when it was opened (by default
    exp_avg where there is one, else main_grad, else param); checkpoint[name, state] any other.
    """

    def __init__(self, handle: Any, state: Optional[str], bfloat16: str):
        self._handle = handle
        self._free = weakref.finalize(self, library.gradcmp_checkpoint_free, handle)
        self._bfloat16 = bfloat16
        self._turn = threading.Condition()  # guards the two below
        self._readers = 0
        self._closed = False
        self._index: Dict[Tuple[str, str], int] = {}
        self.tensors: List[Tensor] = []
        for i in range(library.gradcmp_checkpoint_tensor_count(handle)):
            self._add(i)
        states = {tensor.state for tensor in self.tensors}
        preferred: List[str] = [name for name in ("exp_avg", "main_grad", "param") if name in states]
        if state is not None and state not in states:
            self._free()
            raise KeyError(f"no state {state}; there are {', '.join(sorted(states))}")
        self.state = state or (preferred or sorted(states) or [""])[0]

    def _add(self, index: int) -> None:
        info = _abi.gradcmp_tensor_info()
        library.gradcmp_checkpoint_tensor(self._handle, index, ctypes.byref(info))
        tensor = Tensor(text(info.name), text(info.state), info.layer, NAMES.get(info.dtype, ""),
                        tuple(info.shape[: info.ndim]), info.pieces, info.copies)
        self._index[tensor.name, tensor.state] = len(self.tensors)
        self.tensors.append(tensor)

    def _key(self, key: Union[str, Tuple[str, str]]) -> Tuple[str, str]:
        return (key, self.state) if isinstance(key, str) else key

    def __iter__(self) -> Iterator[str]:
        return (tensor.name for tensor in self.tensors if tensor.state == self.state)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return self._key(key) in self._index  # type: ignore[arg-type]

    def info(self, key: Union[str, Tuple[str, str]]) -> Tensor:
        """What is known of a tensor without reading it."""
        return self.tensors[self._index[self._key(key)]]

    def __getitem__(self, key: Union[str, Tuple[str, str]]) -> Any:
        """A numpy array, or without numpy a memoryview of the shape. bfloat16 comes as float32, or
        as uint16 where the checkpoint was opened so; float8 as uint8. Without numpy float16 comes
        as float32, and complex numbers have an axis of two more."""
        if self._closed:
            raise ValueError("the checkpoint is closed")
        index = self._index[self._key(key)]
        tensor = self.tensors[index]
        if tensor.dtype not in SIZES:
            raise TypeError(f"{tensor.name} ({tensor.state}) is no tensor of numbers")
        count = 1
        for extent in tensor.shape:
            count *= extent
        raw = bytearray(count * SIZES[tensor.dtype])
        buffer = (ctypes.c_char * len(raw)).from_buffer(raw)
        self._begin()
        try:
            run("gradcmp_checkpoint_read", self._handle, index, buffer, len(raw))
        finally:
            self._end()
        del buffer  # or the bytes could not be viewed otherwise
        dtype = tensor.dtype
        if dtype == "bfloat16" and self._bfloat16 == "float32":
            raw, dtype = _widen_bfloat16(raw), "float32"
        return (_as_memoryview if numpy is None else _as_array)(raw, dtype, tensor.shape)

    def close(self) -> None:
        """Release files and memory, when reads in other threads are done; arrays stay valid."""
        with self._turn:
            self._closed = True
            self._turn.wait_for(lambda: self._readers == 0)
            self._free()

    def _begin(self) -> None:
        with self._turn:
            if self._closed:
                raise ValueError("the checkpoint is closed")
            self._readers += 1

    def _end(self) -> None:
        with self._turn:
            self._readers -= 1
            self._turn.notify_all()

    def __enter__(self) -> "Checkpoint":
        if self._closed:
            raise ValueError("the checkpoint is closed")
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def open(path: StrPath, *, state: Optional[str] = None, bfloat16: str = "float32",
         **options: Any) -> Checkpoint:
    """Open a checkpoint: an iteration's folder, its parent, or a file. Reads metadata only."""
    if bfloat16 not in ("float32", "uint16"):
        raise ValueError(f"bfloat16: expected float32 or uint16, found {bfloat16!r}")
    settings = Options(_abi.gradcmp_options, options)
    handle = ctypes.c_void_p()
    run("gradcmp_checkpoint_open", encode(path), ctypes.byref(settings.value), ctypes.byref(handle),
        options=settings)
    return Checkpoint(handle, state, bfloat16)
