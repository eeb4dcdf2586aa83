"""Write named.safetensors, and folders numbers and buffers: one rank's files of Megatron's T5, whose state dict has two tensors
under two names each; its optimizer numbers its parameters, or keeps them in one flat buffer."""
import os
import random
import struct

from safetensors_file import write
from torch_save_file import Tensor, save

chance = random.Random(3)
LAYER = "decoder.layers.0."
NAMES = {"embedding.word_embeddings.weight": [6, 4], "embedding.position_embeddings.weight": [4, 4],
         LAYER + "mlp.linear_fc1.weight": [4, 4], LAYER + "mlp.linear_fc2.weight": [4, 4],
         "decoder.final_layernorm.weight": [4], "lm_head.output_layer.bias": [6]}
SECOND = {"embedding.position_embeddings.weight": "position_embeddings.weight",
          "lm_head.output_layer.bias": "output_layer.bias"}


def numbers(count):
    return [chance.gauss(0, 1) for _ in range(count)]


def count_of(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def flat(values):
    """The buffer of a distributed optimizer: from the last parameter, each at a multiple of 64."""
    elems = []
    for name in reversed(NAMES):
        elems += [0.0] * (-len(elems) % 64) + values[name]
    return Tensor("float32", [len(elems)], elems)


gradients = {name: numbers(count_of(shape)) for name, shape in NAMES.items()}
model = {name: Tensor("float32", shape, numbers(count_of(shape))) for name, shape in NAMES.items()}
model.update({second: model[name] for name, second in SECOND.items()})
order = sorted(model, key=lambda name: name == "output_layer.bias")
order.insert(2, order.pop(order.index("position_embeddings.weight")))
model = {name: model[name] for name in order}

states = {number: {"exp_avg": Tensor("float32", NAMES[name], gradients[name])} for number, name in enumerate(NAMES)}
for folder in ("numbers", "buffers"):
    rank = f"{folder}/iter_0000001/mp_rank_00"
    os.makedirs(rank)
    numbered = {"state": states, "param_groups": [{"params": list(states)}]}
    save(f"{rank}/model_optim_rng.pt", {
        "args": {"params_dtype": "float32", "num_layers": 1, "bf16": True}, "iteration": 1, "model": model,
        "optimizer": numbered if folder == "numbers" else {}})
    if folder == "buffers":
        save(f"{rank}/distrib_optim.pt", {
            "buckets_coalesced": True, 0: {("torch.float32", "torch.float32"): {"exp_avg": flat(gradients)}}})

pair = ("F32", [2], struct.pack("<2f", 1.0, 2.0))
write("named.safetensors", {name: pair for name in (
    "exp_avg.position_embeddings.weight", "position_embeddings.weight", "embedding.position_embeddings.weight",
    "embedding.frozen.weight")})
