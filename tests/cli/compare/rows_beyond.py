"""Write embeddings of 80 rows (a, c) and of the first 72 of them (b)."""
import random

from safetensors_file import write_gradients

chance = random.Random(1)
values = [chance.gauss(0, 1) for _ in range(80 * 4)]
for name, rows in (("a", 80), ("b", 72), ("c", 80)):
    write_gradients(f"{name}.safetensors", {"embedding.word_embeddings.weight": values[:rows * 4],
                                            "decoder.layers.0.mlp.linear_fc1.weight": values[:64]}, 4)
