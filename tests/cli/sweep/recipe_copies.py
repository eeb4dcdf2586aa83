"""Write runs of a recipe, each a folder of two ranks' files of three layers: the first argument is the
folder, the others NAME=FACTOR, the name of a run and what the second rank's copy of one layer is times
the first rank's."""
import os
import random
import struct
import sys

from torch_save_file import Tensor, save


def write(folder, ranks):
    os.makedirs(folder)
    for rank, parameters in enumerate(ranks):
        tensors = {name: Tensor("float32", shape, values) for name, (shape, values) in parameters.items()}
        state = {name: {"exp_avg": tensor} for name, tensor in tensors.items()}
        save(f"{folder}/checkpoint_rank{rank}.pt", {
            "model": tensors, "optimizer": {"state": state, "param_groups": [{"params": list(tensors)}]}})


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


chance = random.Random(5)
layers = {f"layers.{i}.weight": ([8, 8], [single(chance.gauss(0, 1)) for _ in range(64)]) for i in range(3)}
for run in sys.argv[2:]:
    name, factor = run.split("=")
    shape, values = layers["layers.1.weight"]
    scaled = {**layers, "layers.1.weight": (shape, [single(float(factor) * x) for x in values])}
    write(f"{sys.argv[1]}/{name}", [layers, scaled])
