#!/usr/bin/env python3
"""Write the gradients of a Megatron checkpoint as Hugging Face names and lays out a Llama-like model.

    gradcmp extract --state exp_avg tests/data/megatron/s_base -o megatron.safetensors
    python3 examples/map/make_hf_style.py megatron.safetensors hf_style.safetensors

Made hf_style.safetensors, once. The layout is written down here a second time, row by row and
without gradcmp's help, so that the map beside it is held against something of its own.
"""
import json
import struct
import sys

HEADS, GROUPS, HEAD_DIM, WORDS = 4, 2, 8, 70


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        rows = entry["shape"][0]
        step = (end - begin) // rows
        yield key, [data[begin + i * step:begin + (i + 1) * step] for i in range(rows)], entry


def qkv(rows):
    """Megatron: for each group its query heads, its key head, its value head."""
    q, k, v = [], [], []
    at = 0
    for _ in range(GROUPS):
        for part, heads in ((q, HEADS // GROUPS), (k, 1), (v, 1)):
            part += rows[at:at + heads * HEAD_DIM]
            at += heads * HEAD_DIM
    assert at == len(rows)
    return q, k, v


def convert(name, rows):
    layer = "model.layers." + name.split(".")[2] + "." if ".layers." in name else ""
    last = name.split(".", 3)[3] if layer else name
    plain = {
        "embedding.word_embeddings.weight": "model.embed_tokens.weight",
        "output_layer.weight": "lm_head.weight",
        "decoder.final_layernorm.weight": "model.norm.weight",
        "self_attention.linear_qkv.layer_norm_weight": "input_layernorm.weight",
        "self_attention.linear_proj.weight": "self_attn.o_proj.weight",
        "mlp.linear_fc1.layer_norm_weight": "post_attention_layernorm.weight",
        "mlp.linear_fc2.weight": "mlp.down_proj.weight",
    }
    if last == "self_attention.linear_qkv.weight":
        for word, part in zip("qkv", qkv(rows)):
            yield f"{layer}self_attn.{word}_proj.weight", part
    elif last == "mlp.linear_fc1.weight":
        half = len(rows) // 2
        yield layer + "mlp.gate_proj.weight", rows[:half]
        yield layer + "mlp.up_proj.weight", rows[half:]
    else:
        is_table = last in ("embedding.word_embeddings.weight", "output_layer.weight")
        yield layer + plain[last], rows[:WORDS] if is_table else rows


def main(source, target):
    prefix = "optimizer.state.exp_avg."
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for key, rows, entry in read(source):
        for name, part in convert(key[len(prefix):], rows):
            blob = b"".join(part)
            header["exp_avg." + name] = {
                "dtype": entry["dtype"],
                "shape": [len(part)] + entry["shape"][1:],
                "data_offsets": [at, at + len(blob)],
            }
            blobs.append(blob)
            at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


main(*sys.argv[1:])
