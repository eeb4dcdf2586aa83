"""Write pairs of checkpoints of models whose modules are called like parts of a checkpoint: "state", "optimizer",
"sampler". In the second of each pair a weight of the module is doubled."""
from safetensors_file import write
from torch_save_file import Tensor, save
from struct import pack


def packed(value):
    return ("F32", [2, 2], pack("<4f", *[value] * 4))


def real(value):
    return Tensor("float32", [2, 2], [value] * 4)


for module in ("state", "optimizer", "sampler"):
    for side, value in (("a", 1.5), ("b", 3.0)):
        names = {module + ".enc.weight": value, module + ".0.bias": 1.0, "head.weight": 1.25}
        write(f"{module}_{side}.safetensors", {name: packed(number) for name, number in names.items()})
        states = {name: {"exp_avg": real(value), "exp_avg_sq": real(1.0)} for name in names}
        save(f"{module}_{side}.pt", {"model": {name: real(number) for name, number in names.items()},
                                     "optimizer": {"state": states, "param_groups": [{"params": list(names)}]}})
