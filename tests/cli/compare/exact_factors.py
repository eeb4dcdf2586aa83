"""Write a_<type>.safetensors, and <type>_<factor>.safetensors with all values times that, or, in
<type>_one, one parameter times 3, or times 3 and with noise of 1e-10, or rounded to bfloat16."""
import random
import struct

from safetensors_file import write_gradients

chance = random.Random(3)
NAMES = ["embedding.word_embeddings.weight", "decoder.layers.0.w.weight", "decoder.layers.1.w.weight",
         "output_layer.weight"]

values = {name: [chance.gauss(0, 1) for _ in range(512)] for name in NAMES}
narrow = {name: struct.unpack("<512f", struct.pack("<512f", *own)) for name, own in values.items()}
write_gradients("a_fp64.safetensors", values, 16, "F64")
write_gradients("a_fp32.safetensors", narrow, 16, "F32")
for factor in (0.7, 3.0, 0.001, 2.0 ** -16):
    write_gradients(f"fp64_{factor}.safetensors",
                    {n: [factor * x for x in own] for n, own in values.items()}, 16, "F64")
write_gradients("fp32_0.0000152587890625.safetensors",
                {n: [2.0 ** -16 * x for x in own] for n, own in narrow.items()}, 16, "F32")


def round_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


rounded = dict(narrow)
rounded[NAMES[1]] = [round_bf16(x) for x in narrow[NAMES[1]]]
write_gradients("fp32_rounded.safetensors", rounded, 16, "F32")
for kind, noise in (("one", 0.0), ("noisy", 1e-10)):
    own = dict(values)
    own[NAMES[2]] = [3.0 * x * (1.0 + noise * chance.gauss(0, 1)) for x in own[NAMES[2]]]
    write_gradients(f"fp64_{kind}.safetensors", own, 16, "F64")
