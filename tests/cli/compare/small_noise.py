"""Write a.safetensors, and b_*.safetensors that differ in one parameter whose gradient is a thousandth
of its layer's: other noise, its halves exchanged, its rows rolled, a factor."""
import random

from safetensors_file import write_gradients

ROWS, COLUMNS = 32, 24
LARGE, SMALL = "decoder.layers.0.large.weight", "decoder.layers.0.small.weight"
chance = random.Random(5)

large = [chance.gauss(0, 1) for _ in range(16 * ROWS * COLUMNS)]
small = [1e-3 + 1e-4 * chance.gauss(0, 1) for _ in range(ROWS * COLUMNS)]
half = len(small) // 2
write_gradients("a.safetensors", {LARGE: large, SMALL: small}, COLUMNS)
for name, values in (("noise", [1e-3 + 1e-4 * chance.gauss(0, 1) for _ in small]),
                     ("halves", small[half:] + small[:half]),
                     ("rolled", small[-3 * COLUMNS:] + small[:-3 * COLUMNS]),
                     ("scaled", [1.2 * x for x in small])):
    write_gradients(f"b_{name}.safetensors", {LARGE: large, SMALL: values}, COLUMNS)
