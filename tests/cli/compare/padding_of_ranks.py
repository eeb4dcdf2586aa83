"""Write folders a and b of two ranks' files, each with its part of the rows (31 and 30 of 61); in b
those of rank 1 are twice as large."""
import os
import random
import struct

from safetensors_file import write

chance = random.Random(9)
shapes = {"lm_head.weight": 61, "layers.0.mlp.down_proj.weight": 61}
values = {name: [[chance.gauss(0, 1) for _ in range(4)] for _ in range(rows)] for name, rows in shapes.items()}
for folder, factor in (("a", 1.0), ("b", 2.0)):
    os.makedirs(folder)
    for rank, part in enumerate((slice(0, 31), slice(31, 61))):
        tensors = {}
        for name, rows in values.items():
            own = [x * (factor if rank else 1.0) for row in rows[part] for x in row]
            tensors["exp_avg." + name] = ("F32", [len(own) // 4, 4], struct.pack(f"<{len(own)}f", *own))
        write(f"{folder}/rank{rank}.safetensors", tensors, {"rank": str(rank), "world_size": "2"})
