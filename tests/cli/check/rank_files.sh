# Files of Megatron's ranks that contradict each other: another run's refuse the checkpoint, others
# are findings. Files that a converter wrote say rank 0 all of them, and have no optimizer.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import os
from torch_save_file import Tensor, save

ARGS = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1, "data_parallel_size": 2,
        "world_size": 4, "num_layers": 1, "hidden_size": 4, "seed": 1}

def folder(name, first={}, second={}, ranks=(0, 1), steps=(3, 3), betas=(0.9, 0.9), optimizer=True):
    for number, more in enumerate((first, second)):
        args = ARGS | {"rank": ranks[number]} | more
        root = {"args": args, "iteration": 3,
                "model": {"decoder.final_layernorm.weight": Tensor("float32", [4], [1, 2, 3, 4])}}
        if optimizer:
            group = {"params": [0], "step": steps[number], "betas": (betas[number], 0.95)}
            root["optimizer"] = {"optimizer": {"state": {}, "param_groups": [group]}}
        path = f"{name}/mp_rank_{number:02}"
        os.makedirs(path)
        save(path + "/model_optim_rng.pt", root)

folder("good")
folder("other_replica", ranks=(0, 3))
folder("converted", ranks=(0, 0), optimizer=False)
folder("layers", second={"num_layers": 9})
folder("steps", steps=(3, 7))
folder("seed", second={"seed": 7}, betas=(0.9, 0.8))
folder("copied", ranks=(0, 0))
folder("exchanged", ranks=(1, 0))
EOF
try check -q good other_replica converted
for name in layers steps seed copied exchanged; do
    try check $name
done
