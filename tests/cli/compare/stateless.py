"""Write pairs of files of which half of the parameters, three times too large in the second, have another state than exp_avg (other),
and of which half of the weights are frozen while the optimizer numbers the others (few; optimizer, beside model).
halves: a frozen weight of two halves that do not fit."""
import struct

from safetensors_file import write
from torch_save_file import Tensor, save

NAMES = [f"layers.{layer}.{module}.weight" for layer in range(3) for module in ("norm", "up")]
SHAPES = {"norm": [8], "up": [2, 4]}


def tensor(name, factor):
    return Tensor("float32", SHAPES[name.split(".")[2]], [factor * (1 + i) / 8 for i in range(8)])


def state(name, factor):
    return {"square_avg": tensor(name, factor)} if "up" in name else {"exp_avg": tensor(name, 1)}


def numbered(kept):
    return {"state": {i: {"exp_avg": one} for i, one in enumerate(kept)},
            "param_groups": [{"params": list(range(len(kept)))}]}


MODEL = {name: tensor(name, 1) for name in NAMES}
for side, factor in (("a", 1), ("b", 3)):
    save(f"other_{side}.pt", {"optimizer": {"state": {name: state(name, factor) for name in NAMES},
                                            "param_groups": [{"params": NAMES}]}})
    save(f"few_{side}.pt", {"model": MODEL, "optimizer": numbered([MODEL[name] for name in NAMES[:3]])})
    save(f"optimizer_{side}.pt", numbered([MODEL[name] for name in NAMES[:3]]))
write("model.safetensors", {name: ("F32", [8], struct.pack("<8f", *range(8))) if "norm" in name else
                            ("F32", [2, 4], struct.pack("<8f", *range(8))) for name in NAMES})


def raw(count):
    return struct.pack(f"<{count}f", *(1.0 + i for i in range(count)))


for side in "ab":
    kept = {f"layers.{layer}.fc.weight": ("F32", [4, 4], raw(16)) for layer in range(2)}
    write(f"halves_{side}.safetensors", {
        **kept, **{"optimizer.state.exp_avg." + name: of for name, of in kept.items()},
        "layers.0.mlp.weight_w": ("F32", [4, 4], raw(16)), "layers.0.mlp.weight_v": ("F32", [4, 6], raw(24))})
