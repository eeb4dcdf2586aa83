"""Finds the library, and what every call shares: options, errors, texts, output."""

import ctypes
import difflib
import operator
import os
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from . import _abi

StrPath = Union[str, "os.PathLike[str]"]
NATIVE = Path(__file__).resolve().parent / "_native"


class Error(Exception):
    """A failure of the library. code: as enum gradcmp_status; path and offset: where, if known."""

    def __init__(self, message: str, code: int = 0, path: str = "", offset: Optional[int] = None):
        super().__init__(f"{path}: {message}" if path else message)
        self.code, self.path, self.offset = code, path, offset


class Cancelled(Error):
    """The progress callback asked to stop."""


def _load() -> ctypes.CDLL:
    # For those who work on gradcmp: a library that is not in the package.
    stated = os.environ.get("GRADCMP_LIBRARY")
    found = [Path(stated)] if stated else sorted((NATIVE / "lib").glob("libgradcmp.so*"))
    if not found:
        raise ImportError(f"gradcmp: no libgradcmp.so in {NATIVE / 'lib'}; is this a source folder? "
                          "Build a wheel (src/python/README.md), or set GRADCMP_LIBRARY")
    library = ctypes.CDLL(str(found[0]))
    for name, (result, parameters) in _abi.PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


library = _load()


def call(name: str) -> Any:
    """The function of that name; an Error where this version has none."""
    if name not in _abi.PROTOTYPES:
        raise Error(f"this version of the library has no {name}")
    return getattr(library, name)


def error_of(details: Any) -> Error:
    none = 2**64 - 1
    kind = Cancelled if details.code == _abi.GRADCMP_ERROR_CANCELLED else Error
    offset = None if details.offset_bytes == none else details.offset_bytes
    return kind(text(details.message) or "failed", details.code, os.fsdecode(details.path), offset)


def text(value: Optional[bytes]) -> str:
    return "" if value is None else value.decode("utf-8", "surrogateescape")


def encode(value: Any) -> bytes:
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError("a text with a NUL byte")
    return encoded


def string_array(values: Iterable[Any]) -> Any:
    encoded = [encode(value) for value in values]
    return (ctypes.c_char_p * len(encoded))(*encoded)


ALIASES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
           "fp8": "float8_e4m3fn"}


def dtype_names() -> Dict[str, int]:
    return {text(library.gradcmp_dtype_name(i)): i for i in range(1, _abi.GRADCMP_DTYPE_COUNT)}


def _dtype(value: Any) -> int:
    name = ALIASES.get(value, value)
    known = dtype_names()
    if name not in known:
        raise ValueError(f"dtype: expected one of {', '.join(ALIASES)}, found {value!r}")
    return known[name]


class Options:
    """An options struct filled from keywords; keeps alive what it points to."""

    def __init__(self, struct: Any, keywords: Dict[str, Any]):
        self.value = struct()
        self.value.struct_size = ctypes.sizeof(struct)
        self.keep: List[Any] = []
        self.raised: Optional[BaseException] = None
        fields = dict(struct._fields_)
        defaults: Dict[str, Any] = _abi.INIT[struct]
        for name, value in defaults.items():
            if value is not None:
                setattr(self.value, name, value)
        hidden = {"progress_user", "warn_user", "device_index"}
        hidden |= {name for name in fields if name.endswith("_count") and name[:-6] + "s" in fields}
        hidden |= {name for name in fields if name.endswith("_count") and name[:-6] in fields}
        allowed = [name for name in defaults if name not in hidden]
        for name, value in keywords.items():
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                hint = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(allowed)})"
                raise TypeError(f"no option {name}{hint}")
            if value is not None:
                self._set(name, fields[name], value, fields)

    def _set(self, name: str, kind: Any, value: Any, fields: Dict[str, Any]) -> None:
        if name == "dtype":
            self.value.dtype = _dtype(value)
        elif name == "device":
            self._set_device(value)
        elif name == "progress":
            self.value.progress = self._progress(value)
        elif name == "warn":
            self.value.warn = self._warn(value)
        elif kind is ctypes.c_char_p:
            setattr(self.value, name, encode(value))
        elif kind is ctypes.POINTER(ctypes.c_char_p):
            if isinstance(value, (str, bytes)):
                raise TypeError(f"{name}: expected a list of texts, found one text")
            array = string_array(value)
            self.keep.append(array)
            setattr(self.value, name, array)
            singular = name[:-1] + "_count"
            setattr(self.value, singular if singular in fields else name + "_count", len(array))
        elif kind is ctypes.c_double:
            setattr(self.value, name, float(value))
        else:
            self._set_integer(name, kind, value)

    def _set_integer(self, name: str, kind: Any, value: Any) -> None:
        number = operator.index(value)  # bools too; a float is a TypeError
        if kind(number).value != number:
            raise ValueError(f"{name}: {number} is out of range")
        setattr(self.value, name, number)

    def _set_device(self, value: str) -> None:
        names = {"auto": 0, "cpu": 1, "cuda": 2}
        kind, colon, index = value.partition(":")
        if kind not in names or (colon and not (kind == "cuda" and index.isdecimal())):
            raise ValueError(f"device: expected auto, cpu, cuda or cuda:N, found {value!r}")
        self.value.device = names[kind]
        self.value.device_index = int(index or 0)

    def _progress(self, function: Any) -> Any:
        def step(_user: Any, done: int, total: int) -> int:
            try:
                return 1 if function(done, total) else 0
            except BaseException as error:  # raised again when the call has come back
                self.raised = error
                return 1

        return _abi.gradcmp_progress_fn(step)

    def _warn(self, function: Any) -> Any:
        def step(_user: Any, line: bytes) -> None:
            try:
                function(text(line))
            except BaseException as error:
                self.raised = error

        return _abi.gradcmp_warn_fn(step)


def run(name: str, *arguments: Any, options: Optional[Options] = None) -> None:
    """Call a function whose last parameter is the error; raise what it says."""
    details = _abi.gradcmp_error()
    status = call(name)(*arguments, ctypes.byref(details))
    if options is not None and options.raised is not None:
        raise options.raised
    if status != _abi.GRADCMP_OK:
        details.code = status
        raise error_of(details)


def written(name: str, handle: Any, *arguments: Any) -> str:
    """What a writing function writes."""
    pieces: List[bytes] = []

    def write(_user: Any, address: int, length: int) -> int:
        pieces.append(ctypes.string_at(address, length))
        return 0

    run(name, handle, *arguments, _abi.gradcmp_write_fn(write), None)
    return b"".join(pieces).decode("utf-8", "surrogateescape")


def text_options(verbose: bool, top: int, width: int) -> Any:
    return ctypes.byref(Options(_abi.gradcmp_text_options,
                                {"utf8": 0, "verbose": verbose, "top": top, "width": width}).value)


def replace_by(path: StrPath, fill: Callable[[int], None]) -> None:
    """Have `fill` write to the descriptor of a file that is then named `path`."""
    name = os.fspath(path)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(name) or ".", prefix=".gradcmp-")
    try:
        try:
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(descriptor, 0o666 & ~mask)
            fill(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, name)
    except BaseException:
        os.unlink(temporary)
        raise


def replace(path: StrPath, content: str) -> None:
    """Write a text file, whole or not at all."""
    def fill(descriptor: int) -> None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape"))

    replace_by(path, fill)
