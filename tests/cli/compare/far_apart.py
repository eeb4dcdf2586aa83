"""Write a.safetensors and b.safetensors of float64: in b one element of 1e170; a second parameter of
1e-200 against 1e200; a third that is the same on both sides."""
import json
import struct

VALUES = [0.5 + i % 7 for i in range(64)]


def write(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}d", *values)
        header["optimizer.state.exp_avg." + name] = {
            "dtype": "F64", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


write("a.safetensors", {"one": VALUES, "all": [1e-200 * x for x in VALUES], "same": VALUES})
write("b.safetensors", {"one": VALUES[:-1] + [1e170], "all": [1e200 * x for x in VALUES], "same": VALUES})
