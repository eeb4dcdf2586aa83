"""Write checkpoints with tensors that belong to no model and to no optimizer, or are none: beside the
model, in a list, five dicts down; and names of a safetensors file."""
from safetensors_file import write
from torch_save_file import Tensor, save


def real(value):
    return Tensor("float32", [2, 2], [value] * 4)


model = {"layers.0.weight": real(1.0), "layers.1.weight": real(2.0)}
save("beside.pt", {"model": model, "head": {"weight": real(3.0)}})
save("list.pt", {"model": {**model, "experts": [real(3.0), real(4.0)]}})
save("pairs.pt", {"model": model, "replay": [(real(3.0), real(4.0)), (real(5.0), 1)]})
save("many.pt", {"model": model, "masks": [real(1.0)] * 5000})  # references to one tensor
save("state.pt", {"model": model, "optimizer": {"state": {0: {"square_avg": real(1.0)}, 1: {"square_avg": real(1.0)}},
                                               "param_groups": [{"params": [0, 1]}]}})
save("deep.pt", {"model": model, "a": {"b": {"c": {"d": {"e": {"weight": real(3.0)}}}}}})
save("none.pt", {"model": model, "rng": [Tensor("int64", [2], [1, 2])], "loss": {"scale": Tensor("float32", [], [1.0])}})
numbers = bytes(16)
write("names.safetensors", {"layers.0.weight": ("F32", [2, 2], numbers), "layers.0._extra_state": ("F32", [2, 2], numbers),
                            "optimizer.gain": ("F32", [2, 2], numbers)})
