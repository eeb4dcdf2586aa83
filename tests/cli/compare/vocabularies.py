"""Write pairs of files a and b with tables of two vocabularies: of 70 words, padded to 72 rows and to 80, and another of 100 rows
(more), of which the last differ in more_off; of 110 in b (longer); of 32 (fewer). nan: folders of two ranks' files, the second with
a NaN in its copy of the padding."""
import os
import random

from safetensors_file import write_gradients
from torch_save_file import Tensor, save

COLUMNS = 4
chance = random.Random(1)


def numbers(rows):
    return [chance.gauss(0, 1) for _ in range(rows * COLUMNS)]


WORDS, MORE, FEWER, LAYER = numbers(70), numbers(110), numbers(32), numbers(4)


def write(path, padded, other):
    write_gradients(path, {"model.embed_tokens.weight": WORDS + [0.0] * (padded - 70) * COLUMNS,
                           "codec.embed_tokens.weight": other, "model.layers.0.mlp.weight": LAYER}, columns=COLUMNS)


write("more_a.safetensors", 72, MORE[:400])
write("more_b.safetensors", 80, MORE[:400])
write("more_off.safetensors", 80, MORE[:320] + [3 * x for x in MORE[320:400]])
write("longer_b.safetensors", 80, MORE)
write("fewer_a.safetensors", 72, FEWER)
write("fewer_b.safetensors", 80, FEWER)

for folder, last in (("whole", 0.0), ("nan", float("nan"))):
    os.makedirs(folder)
    for rank in range(2):
        pads = [0.0] * (2 * COLUMNS - 1) + [last if rank == 1 else 0.0]
        values = {"model.embed_tokens.weight": WORDS + pads, "model.layers.0.mlp.weight": LAYER}
        tensors = {name: Tensor("float32", [len(kept) // COLUMNS, COLUMNS], kept) for name, kept in values.items()}
        state = {name: {"exp_avg": tensor} for name, tensor in tensors.items()}
        save(f"{folder}/checkpoint_rank{rank}.pt", {
            "model": tensors, "optimizer": {"state": state, "param_groups": [{"params": list(tensors)}]}})
