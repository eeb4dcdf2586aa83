"""Write a.safetensors and b.safetensors: gradients of four layers of eight experts; in b rounding
noise, and in layer 2 two experts from which part of the tokens went elsewhere, as the router's rows
of both tell. With "dense" a dense weight of that layer is wrong too; with "still" the router is not;
with "slots" the two experts are right, and in each other's place."""
import random
import sys

from safetensors_file import write_gradients

LAYERS, EXPERTS, ROWS, COLUMNS = 4, 8, 16, 24
ROUTER = "decoder.layers.2.mlp.router.weight"
chance = random.Random(7)
names = ["embedding.word_embeddings.weight", "output_layer.weight"]
for layer in range(LAYERS):
    start = f"decoder.layers.{layer}."
    names += [start + "self_attention.linear_proj.weight", start + "mlp.router.weight"]
    names += [f"{start}mlp.experts.experts.{e}.linear_fc1.weight" for e in range(EXPERTS)]


def noise(values, size):
    return [x + size * chance.gauss(0, 1) for x in values]


def elements(name):
    return (EXPERTS if "router" in name else ROWS) * COLUMNS


a = {name: noise([0.0] * elements(name), 1.0) for name in names}
b = {name: noise(values, 0.004) for name, values in a.items()}
for expert in (1, 6):
    name = f"decoder.layers.2.mlp.experts.experts.{expert}.linear_fc1.weight"
    b[name] = noise(a[name], 0.2)
    if "still" not in sys.argv:
        row = slice(expert * COLUMNS, (expert + 1) * COLUMNS)
        b[ROUTER][row] = noise(a[ROUTER][row], 0.2)
if "slots" in sys.argv:
    b = {name: noise(values, 0.004) for name, values in a.items()}
    one, other = (f"decoder.layers.2.mlp.experts.experts.{expert}.linear_fc1.weight" for expert in (1, 6))
    b[one], b[other] = b[other], b[one]
if "dense" in sys.argv:
    name = "decoder.layers.2.self_attention.linear_proj.weight"
    b[name] = noise(a[name], 0.3)
write_gradients("a.safetensors", a, COLUMNS)
write_gradients("b.safetensors", b, COLUMNS)
