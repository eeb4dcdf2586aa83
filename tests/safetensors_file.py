"""Write safetensors files for tests, with nothing but Python's own library."""
import json
import struct

CODES = {"F32": "f", "F64": "d"}


def write(path, tensors, metadata=None):
    """tensors: {name: (type as the format spells it, shape, bytes)}."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, raw in tensors.values():
            file.write(raw)


def write_gradients(path, tensors, columns=None, dtype="F32"):
    """tensors: {parameter: values}, under the names that exp_avg has in a distributed checkpoint;
    matrices of that many columns, or vectors."""
    write(path, {"optimizer.state.exp_avg." + name: (
        dtype, [len(values) // columns, columns] if columns else [len(values)],
        struct.pack(f"<{len(values)}{CODES[dtype]}", *values)) for name, values in tensors.items()})
