"""Write a.safetensors, and b_*.safetensors that differ in one parameter whose gradient is a thousandth
of its layer's: other noise, its halves exchanged, its rows rolled, a factor."""
import json
import random
import struct

ROWS, COLUMNS = 32, 24
chance = random.Random(5)


def write(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header["optimizer.state.exp_avg.decoder.layers.0." + name] = {
            "dtype": "F32", "shape": [len(values) // COLUMNS, COLUMNS],
            "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


large = [chance.gauss(0, 1) for _ in range(16 * ROWS * COLUMNS)]
small = [1e-3 + 1e-4 * chance.gauss(0, 1) for _ in range(ROWS * COLUMNS)]
half = len(small) // 2
write("a.safetensors", {"large.weight": large, "small.weight": small})
for name, values in (("noise", [1e-3 + 1e-4 * chance.gauss(0, 1) for _ in small]),
                     ("halves", small[half:] + small[:half]),
                     ("rolled", small[-3 * COLUMNS:] + small[:-3 * COLUMNS]),
                     ("scaled", [1.2 * x for x in small])):
    write(f"b_{name}.safetensors", {"large.weight": large, "small.weight": values})
