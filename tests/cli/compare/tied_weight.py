"""Write runs of a model whose head is its embedding, one tensor under two names: first.pt has registered the embedding first,
last.pt the head, so that the optimizer's state bears its name; off.pt is last.pt with twice the gradient of it; apart.pt and
head.pt have a copy for a head, the latter with a state of the head alone."""
import random

from torch_save_file import Tensor, save

chance = random.Random(3)
SHAPES = {"wte.weight": [6, 4], "layers.0.weight": [4, 4], "norm.weight": [4], "lm_head.weight": [6, 4]}


def numbers(shape):
    return [chance.gauss(0, 1) for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1))]


WEIGHTS = {name: numbers(shape) for name, shape in SHAPES.items()}
GRADIENTS = {name: numbers(shape) for name, shape in SHAPES.items()}


def write(path, order, is_tied=True, factor=1, keep=None):
    model = {name: Tensor("float32", SHAPES[name], WEIGHTS[name]) for name in order}
    model["wte.weight" if order[0] == "lm_head.weight" else "lm_head.weight"] = (
        model[order[0]] if is_tied else Tensor("float32", [6, 4], WEIGHTS["wte.weight"]))
    state = {name: {"exp_avg": Tensor("float32", SHAPES[name], [
        (factor if name == order[0] else 1) * x for x in GRADIENTS[name.replace("lm_head", "wte")]])}
        for name in keep or order}
    save(path, {"model": model, "optimizer": {"state": state, "param_groups": [{"params": list(state)}]}})


WORDS = ["wte.weight", "layers.0.weight", "norm.weight"]
HEAD = ["lm_head.weight", "layers.0.weight", "norm.weight"]
write("first.pt", WORDS)
write("last.pt", HEAD)
write("off.pt", HEAD, factor=2)
write("apart.pt", WORDS, is_tied=False)
write("head.pt", HEAD, is_tied=False)
