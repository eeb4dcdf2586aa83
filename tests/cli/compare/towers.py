"""Write a model of an encoder and a decoder, each with layers of its own (a), and with layer 1 of the
encoder doubled (b)."""
import random

from safetensors_file import write_gradients

chance = random.Random(2)
a = {f"{tower}.layers.{i}.mlp.linear_fc1.weight": [chance.gauss(0, 1) for _ in range(64)]
     for tower in ("encoder", "decoder") for i in range(3)}
name = "encoder.layers.1.mlp.linear_fc1.weight"
write_gradients("a.safetensors", a, 8)
write_gradients("b.safetensors", {**a, name: [2.0 * x for x in a[name]]}, 8)
