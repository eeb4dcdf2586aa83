"""Write Megatron's legacy checkpoints of Muon for matrices beside Adam for the rest: whole, split over
two stages, with a matrix's gradient doubled (double), and with an optimizer that has forgotten the
matrices (frozen)."""
import argparse
import os
import random

from torch_save_file import Tensor, save

chance = random.Random(4)
LAYERS, WIDTH = 2, 8


def tensor(shape):
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    return Tensor("float32", shape, [chance.gauss(0, 1) for _ in range(count)])


def stage(first, end, layers):
    names = {"embedding.word_embeddings.weight": (16, WIDTH)} if first else {}
    for layer in range(layers):
        names[f"decoder.layers.{layer}.self_attention.linear_proj.weight"] = (WIDTH, WIDTH)
        names[f"decoder.layers.{layer}.mlp.linear_fc2.weight"] = (WIDTH, 2 * WIDTH)
        names[f"decoder.layers.{layer}.mlp.linear_fc1.layer_norm_weight"] = (WIDTH,)
    if end:
        names.update({"decoder.final_layernorm.weight": (WIDTH,), "output_layer.weight": (16, WIDTH)})
    return names


def of_whole(name, offset):
    """A stage counts its own layers from 0 on."""
    parts = name.split(".")
    return ".".join(parts[:2] + [str(int(parts[2]) + offset)] + parts[3:]) if parts[1] == "layers" else name


def is_matrix(name):
    return ".layers." in name and "norm" not in name


gradients = {name: tensor(shape) for name, shape in stage(True, True, LAYERS).items()}
weights = {name: tensor(shape) for name, shape in stage(True, True, LAYERS).items()}


def optimizer(names, offset, state_of):
    state = {i: state_of(of_whole(name, offset)) for i, name in enumerate(names)}
    return {"optimizer": {"state": state, "param_groups": [{"params": list(state), "lr": 0.1}]},
            "fp32_from_fp16_params": [[weights[of_whole(name, offset)] for name in names]]}


def write(folder, stages, doubled=None, forgets=False):
    def gradient(name):
        own = gradients[name]
        return Tensor("float32", own.shape, [2.0 * x for x in own.values]) if name == doubled else own

    for number in range(stages):
        layers = LAYERS // stages
        names = stage(number == 0, number == stages - 1, layers)
        matrices = [name for name in names if is_matrix(name)]
        others = [name for name in names if not is_matrix(name)]
        offset = number * layers
        muon = optimizer(matrices, offset, lambda name: {} if forgets else {"momentum_buffer": gradient(name)})
        adam = optimizer(others, offset, lambda name: {"exp_avg": gradient(name), "exp_avg_sq": gradient(name)})
        path = f"{folder}/iter_0000001/mp_rank_00" + (f"_{number:03d}" if stages > 1 else "")
        os.makedirs(path)
        save(path + "/model_optim_rng.pt", {
            "args": argparse.Namespace(tensor_model_parallel_size=1, pipeline_model_parallel_size=stages,
                                       num_layers=LAYERS, bf16=True, adam_beta1=0.0, adam_beta2=0.0),
            "checkpoint_version": 3.0, "iteration": 1,
            "model": {name: weights[of_whole(name, offset)] for name in names}, "optimizer": [muon, adam]})


write("whole", 1)
write("stages", 2)
write("double", 2, doubled="decoder.layers.1.mlp.linear_fc2.weight")
write("frozen", 1, forgets=True)
