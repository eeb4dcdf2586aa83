"""Write folders of two ranks' files: whole_<scale> and apart_<scale>, float64 of that size, in the
latter with a copy three times the other; untied, tied and tied_apart, an output layer that is the
embedding, in the last with such a copy of it."""
import os
import random

from torch_save_file import Tensor, save

chance = random.Random(5)


def write(folder, dtype, ranks):
    os.makedirs(folder)
    for rank, parameters in enumerate(ranks):
        tensors = {name: Tensor(dtype, [8, len(values) // 8], values) for name, values in parameters.items()}
        state = {name: {"exp_avg": tensor} for name, tensor in tensors.items()}
        save(f"{folder}/checkpoint_rank{rank}.pt", {
            "model": tensors, "optimizer": {"state": state, "param_groups": [{"params": list(tensors)}]}})


def tripled(parameters, name):
    return {**parameters, name: [3.0 * x for x in parameters[name]]}


layers = {f"layers.{i}.weight": [chance.gauss(0, 1) for _ in range(64)] for i in range(3)}
for scale in (1.0, 1e200, 1e-200):
    scaled = {name: [scale * x for x in values] for name, values in layers.items()}
    write(f"whole_{scale:g}", "float64", [scaled, scaled])
    write(f"apart_{scale:g}", "float64", [scaled, tripled(scaled, "layers.1.weight")])

words = {"embedding.word_embeddings.weight": [chance.gauss(0, 1) for _ in range(64)]}
words.update({"decoder." + name: values for name, values in layers.items()})
tied = {**words, "output_layer.weight": words["embedding.word_embeddings.weight"]}
write("untied", "float32", [words, words])
write("tied", "float32", [tied, tied])
write("tied_apart", "float32", [tied, tripled(tied, "output_layer.weight")])
