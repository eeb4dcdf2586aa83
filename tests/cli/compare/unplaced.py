"""Write a model whose names show no layers (a), and with one weight doubled (b)."""
import random

from safetensors_file import write_gradients

chance = random.Random(6)
a = {f"stage{s}.unit{u}.{side}.weight": [chance.gauss(0, 1) for _ in range(64)]
     for s in range(2) for u in range(3) for side in ("up", "down")}
name = "stage1.unit0.up.weight"
write_gradients("a.safetensors", a, 8)
write_gradients("b.safetensors", {**a, name: [2.0 * x for x in a[name]]}, 8)
