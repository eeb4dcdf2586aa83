#!/usr/bin/env python3
"""Write the samples of `gradcmp bits` (with torch 2; each file is one state, or that state with one difference).

    python make.py FOLDER
"""
import argparse
import collections
import datetime
import http
import io
import os
import pickle
import random
import sys

import numpy as np
import torch


def state():
    g = torch.Generator().manual_seed(3)
    r = lambda *shape: torch.randn(*shape, generator=g)
    weights = {"decoder.layers.0.mlp.weight": r(4, 3), "decoder.layers.1.mlp.weight": r(4, 3), "norm.weight": r(3)}
    optimizer = {
        "state": {i: {"step": torch.tensor(2.0), "exp_avg": r(*w.shape), "exp_avg_sq": r(*w.shape) ** 2}
                  for i, w in enumerate(weights.values())},
        "param_groups": [{"lr": 0.0003, "betas": (0.9, 0.95), "params": [0, 1]}, {"lr": 0.0003, "params": [2]}]}
    optimizer["state"][2]["exp_avg"][1] = 0.0
    optimizer["state"][2]["exp_avg"][2] = float("nan")
    inner = io.BytesIO()
    torch.save({"scale": torch.tensor([1.5, 2.5]), "text": "inner"}, inner)
    shared = ["one", "list"]
    ring = [1, "ring"]
    ring.append(ring)
    return {
        "model": {k: v.bfloat16() for k, v in weights.items()},
        "optimizer": optimizer,
        "lr_scheduler": {"last_epoch": 2, "_last_lr": [0.0003, 0.0003]},
        "rng": {"python": random.Random(1).getstate(),
                "numpy": ("MT19937", np.arange(12, dtype=np.uint32), 5, 0, 0.0),
                "cuda": torch.arange(16, dtype=torch.uint8)},
        "sampler": {"position": 8}, "grad_scaler": {"scale": 65536.0, "_growth_tracker": 1},
        "dataloader": {"dp_rank_0": pickle.dumps({"position": 4, "buffer": ["a"]})},
        "args": argparse.Namespace(lr=0.0003, seed=7, save="runs/a", load=None, save_time=1.0, consumed_samples=8),
        "zoo": {
            "deque": collections.deque([1, 2], maxlen=4), "set": {3, 1, 2}, "frozenset": frozenset({"b", "a"}),
            "enum": http.HTTPStatus.OK, "time": datetime.datetime(2020, 1, 2), "complex": 1 - 2j, "big": 1 << 80,
            "bytes": b"\x00\xff", "ordered": collections.OrderedDict(a=1, b=2), (0, 1): "key", "empty": {}, "none": None,
            "default": collections.defaultdict(list, {"k": [1]}), "shared": [shared, shared], "ring": ring,
            "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
            "big_endian": np.arange(3, dtype=">i4"), "scalar": np.float64(0.25), "strings": np.array(["x", "yy"]),
            "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "numbers": [float(i) / 3 for i in range(20)],
            "sparse": torch.eye(3).to_sparse(), "view": r(4, 4).t()[1:, ::2], "int": torch.arange(3), "inner": inner.getvalue(),
            "bool": torch.tensor([True, False]), "c64": torch.tensor([1 + 2j]), "empty_tensor": torch.empty(0, 3)},
    }


def bits(t):
    return t.view({2: torch.int16, 4: torch.int32}[t.element_size()])


def reordered(x):
    """The same values: keys in another order, nothing shared, other strides and storages, C order, little-endian."""
    if isinstance(x, dict) and not isinstance(x, (collections.OrderedDict, collections.defaultdict)):
        return {k: reordered(v) for k, v in reversed(list(x.items()))}
    if isinstance(x, torch.Tensor) and x.layout == torch.strided and x.dim() == 2 and x.numel():
        base = torch.zeros(x.numel() + 5, dtype=x.dtype)
        view = base[5:].view(x.shape[1], x.shape[0]).t()
        view.copy_(x)
        return view
    if isinstance(x, np.ndarray) and x.dtype.kind in "fi":
        return np.ascontiguousarray(x.astype(x.dtype.newbyteorder("<")))
    if isinstance(x, list) and x and isinstance(x[0], list):
        return [list(y) for y in x]
    return x


def edit(name, s):
    exp_avg = s["optimizer"]["state"][2]["exp_avg"]
    if name == "flip":
        bits(s["optimizer"]["state"][0]["exp_avg"])[2, 1] ^= 1 << 12
    elif name == "negzero":
        exp_avg[1] = -0.0
    elif name == "nan_payload":
        bits(exp_avg)[2] ^= 1
    elif name == "weight_all":
        s["model"]["norm.weight"] *= 2
    elif name == "lr":
        s["args"].lr = 0.0004
        s["optimizer"]["param_groups"][1]["lr"] = 0.0004
    elif name == "step":
        s["optimizer"]["state"][1]["step"] -= 1
    elif name == "dtype":
        s["optimizer"]["state"][1]["exp_avg"] = s["optimizer"]["state"][1]["exp_avg"].double()
    elif name == "lost":
        del s["optimizer"]["state"][2]
        del s["rng"]["cuda"]
        s["ema"] = torch.zeros(2)
    elif name == "rng":
        v, numbers, rest = s["rng"]["python"]
        s["rng"]["python"] = (v, (*numbers[:100], numbers[100] ^ 5, *numbers[101:]), rest)
        s["rng"]["numpy"][1][3] += 1
        s["dataloader"]["dp_rank_0"] = pickle.dumps({"position": 5, "buffer": ["a"]})
    elif name == "zoo":
        z = s["zoo"]
        z["set"], z["big"], z["ordered"]["b"], z["strings"][1] = {1, 2, 4}, (1 << 80) + 1, 3, "yz"
        z["enum"], z["none"], z["ring"][1], z["numbers"][19] = http.HTTPStatus.NOT_FOUND, 0, "r1ng", 6.5
        z["sparse"] = (torch.eye(3) * 2).to_sparse()
        z["view"][0, 0] += 1
        z["c64"] = torch.tensor([1 - 2j])
        z["deque"] = collections.deque([1, 2], maxlen=5)
        z["empty_tensor"] = torch.empty(3, 0)
        inner = io.BytesIO()
        torch.save({"scale": torch.tensor([1.5, 2.25]), "text": "inner"}, inner)
        z["inner"] = inner.getvalue()


def main(out):
    os.makedirs(out, exist_ok=True)
    at = lambda name: os.path.join(out, name)
    torch.save(state(), at("a.pt"))
    s = reordered(state())
    s["args"].save, s["args"].load, s["args"].save_time = "runs/b", "runs/a", 2.0
    torch.save(s, at("same.pt"), pickle_protocol=4)
    torch.save(state(), at("stream.pt"), _use_new_zipfile_serialization=False)
    for name in ("flip", "negzero", "nan_payload", "weight_all", "lr", "step", "dtype", "lost", "rng", "zoo"):
        s = state()
        edit(name, s)
        torch.save(s, at(name + ".pt"))
    small = {k: v for k, v in state().items() if k in ("model", "optimizer", "sampler")}
    os.makedirs(at("apart"), exist_ok=True)
    torch.save(small, at("together.pt"))
    for k, v in small.items():
        torch.save(v, at(f"apart/{k}.pt"))
    for run, bad in (("run_a", None), ("run_b", 3)):
        os.makedirs(at(run), exist_ok=True)
        for step in range(1, 4 if run == "run_a" else 5):
            s = {"model": {"w": torch.arange(6.0) * step}, "step": step}
            if step == bad:
                s["model"]["w"][4] += 1
            torch.save(s, at(f"{run}/step_{step}.pt"))


r = lambda *shape: torch.arange(float(torch.Size(shape).numel())).view(*shape)

if __name__ == "__main__":
    main(sys.argv[1])
