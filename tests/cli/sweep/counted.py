"""Write checkpoints of torch.save in which Adam has counted fewer steps than the names say: PATH=STEPS,
with =STEPS:STATED also stating an iteration themselves."""
import os
import random
import sys

from torch_save_file import Tensor, save

chance = random.Random(7)
weights = {f"layers.{i}.weight": Tensor("float32", [8, 8], [chance.gauss(0, 1) for _ in range(64)]) for i in range(2)}
for argument in sys.argv[1:]:
    path, steps = argument.split("=")
    steps, _, stated = steps.partition(":")
    state = {i: {"step": Tensor("float32", [], [float(steps)]), "exp_avg": t} for i, t in enumerate(weights.values())}
    group = {"lr": 0.1, "betas": (0.0, 0.0), "params": list(range(len(weights)))}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save(path, {"model": weights, "optimizer": {"state": state, "param_groups": [group]},
                **({"iteration": int(stated)} if stated else {})})
