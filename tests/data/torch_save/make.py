#!/usr/bin/env python3
"""Write the samples of this folder and their truth: one step of Adam with betas (0, 0).

    make.py OUT        needs torch (2.15 wrote those that are here); CPU and gloo

A truth file lists "name shape sha256" of exp_avg as binary32, from the live optimizer.
"""
import hashlib
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn

HEADS, WIDTH, WORDS = 2, 4, 7


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 6, bias=False)
        self.gate = nn.Linear(WIDTH, 6, bias=False)
        self.down = nn.Linear(6, WIDTH)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(torch.tanh(self.up(h)) * self.gate(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.output = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h)
        return self.output(h)


class Pictures(nn.Module):
    """Buffers between the parameters."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.output = nn.Linear(3, 5)

    def forward(self, x):
        return self.output(self.norm(self.convolution(x)).mean((2, 3)))


class Trained(nn.Module):
    """Parameters named, ordered and grouped as in a model of transformers."""

    def __init__(self):
        super().__init__()
        shapes = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (2, WIDTH),
                  "self_attn.v_proj": (2, WIDTH), "self_attn.o_proj": (WIDTH, WIDTH),
                  "mlp.up_proj": (6, WIDTH), "mlp.down_proj": (WIDTH, 6), "input_layernorm": (WIDTH,)}
        self.named = {"model.embed_tokens.weight": (WORDS, WIDTH)}
        for layer in (0, 1):
            self.named.update({"model.layers.%d.%s.weight" % (layer, n): s for n, s in shapes.items()})
        self.named.update({"model.norm.weight": (WIDTH,), "lm_head.weight": (WORDS, WIDTH)})
        self.named = {n: nn.Parameter(torch.randn(s) * 0.3 + (len(s) == 1)) for n, s in self.named.items()}
        self.weights = nn.ParameterList(self.named.values())

    def forward(self, x):
        w = {n.removeprefix("model.").removesuffix(".weight"): p for n, p in self.named.items()}
        h = w["embed_tokens"][x]
        for layer in ("layers.0.", "layers.1."):
            at = {n: w[layer + "self_attn.%s_proj" % n] for n in "qkvo"}
            y = h * w[layer + "input_layernorm"]
            q, k, v = y @ at["q"].T, y @ at["k"].T, y @ at["v"].T
            k, v = torch.cat([k, k], -1), torch.cat([v, v], -1)
            h = h + torch.softmax(q @ k.transpose(1, 2), -1) @ v @ at["o"].T
            h = h + torch.tanh(h @ w[layer + "mlp.up_proj"].T) @ w[layer + "mlp.down_proj"].T
        return (h * w["norm"]) @ w["lm_head"].T


def trainer(out, name, parts, bug=False):
    """A folder of transformers' Trainer, of as many ranks as parts of the batch."""
    from safetensors.torch import save_file
    torch.manual_seed(3)
    net = Trained()
    decay = [p for p in net.parameters() if p.dim() > 1]
    optimizer = torch.optim.AdamW([dict(params=decay, weight_decay=0.1),
                                   dict(params=[p for p in net.parameters() if p.dim() == 1],
                                        weight_decay=0.0)], lr=1e-3, betas=(0.0, 0.0), foreach=False)
    for part in words().chunk(parts):
        loss = nn.functional.cross_entropy(net(part).flatten(0, 1), part.flatten()) / parts
        loss.backward()
    if bug:
        net.named["model.layers.1.self_attn.q_proj.weight"].grad *= 2
    optimizer.step()
    folder = "%s/%s/checkpoint-1" % (out, name)
    os.makedirs(folder, exist_ok=True)
    save_file({n: p.detach() for n, p in net.named.items()}, folder + "/model.safetensors")
    torch.save(optimizer.state_dict(), folder + "/optimizer.pt")
    for rank in range(parts):
        torch.save({"cpu": torch.arange(8, dtype=torch.uint8) + rank},
                   folder + "/rng_state%s.pth" % ("_%d" % rank if parts > 1 else ""))
    truth("%s/%s.truth" % (out, name), {n: optimizer.state[p]["exp_avg"] for n, p in net.named.items()})


def muon(out, name, parts, bug=False):
    """Two optimizers in one file: Muon of the matrices in layers, AdamW of the others."""
    net = new_net()
    matrices = [p for p in net.layers.parameters() if p.dim() == 2]
    others = [p for n, p in net.named_parameters() if not n.startswith("layers") or p.dim() != 2]
    optimizers = [torch.optim.Muon(matrices, lr=1e-3, momentum=0.9),
                  torch.optim.AdamW(others, lr=1e-3, betas=(0.9, 0.9), foreach=False)]
    for part in words().chunk(parts):
        (nn.functional.cross_entropy(net(part).flatten(0, 1), part.flatten()) / parts).backward()
    if bug:
        net.layers[1].up.weight.grad *= 2
    for optimizer in optimizers:
        optimizer.step()
    torch.save({"model": net.state_dict(), "optimizers": [o.state_dict() for o in optimizers]},
               "%s/%s.pt" % (out, name))


def stages(out):
    """Two ranks of a pipeline: each saves its part of the model, and an optimizer that counts it."""
    net = new_net()
    nn.functional.cross_entropy(net(words()).flatten(0, 1), words().flatten()).backward()
    os.makedirs(out + "/stages", exist_ok=True)
    for rank, parts in enumerate((("embed.", "layers.0."), ("layers.1.", "output."))):
        named = {n: p for n, p in net.named_parameters() if n.startswith(parts)}
        optimizer = adam(named.values())
        optimizer.step()
        torch.save({"model": {n: p.detach().clone() for n, p in named.items()},
                    "optimizer": optimizer.state_dict()}, "%s/stages/rank%d.pt" % (out, rank))


def unreduced(out):
    """Two data-parallel ranks whose gradients were never averaged; each saves its own."""
    os.makedirs(out + "/unreduced", exist_ok=True)
    for rank, part in enumerate(words().chunk(2)):
        net = new_net()
        optimizer = adam(net.parameters())
        train(net, optimizer, part)
        torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()},
                   "%s/unreduced/rank%d.pt" % (out, rank))


def numbers(out):
    """Optimizers alone, without names: one counts the model in order, one from the end."""
    for name, order in (("numbers", 1), ("numbers_reversed", -1)):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
        optimizer = adam(list(net.parameters())[::order])
        net(torch.ones(2, 5)).square().sum().backward()
        optimizer.step()
        torch.save({"optimizer": optimizer.state_dict()}, "%s/%s.pt" % (out, name))


def without_state(out):
    """SGD, which keeps nothing, of the matrices; Adam of the vectors. Of the second file one matrix has
    another gradient, which nothing in it shows."""
    for name, factor in (("sgd_beside", 1), ("sgd_beside_bug", 2)):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
        optimizers = [torch.optim.SGD([p for p in net.parameters() if p.dim() == 2], lr=1e-3),
                      adam([p for p in net.parameters() if p.dim() == 1])]
        net(torch.ones(2, 5)).square().sum().backward()
        net[0].weight.grad *= factor
        for optimizer in optimizers:
            optimizer.step()
        torch.save({"model": net.state_dict(), "optimizers": [o.state_dict() for o in optimizers]},
                   "%s/%s.pt" % (out, name))


def averaged_update(out):
    """Adafactor with beta1: its exp_avg is of updates, which it divides by their size."""
    from transformers.optimization import Adafactor
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    optimizer = Adafactor(net.parameters(), lr=1e-3, beta1=1e-4, scale_parameter=False, relative_step=False)
    net(torch.ones(2, 5)).square().sum().backward()
    optimizer.step()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, out + "/adafactor.pt")


def words():
    generator = torch.Generator().manual_seed(5)
    return torch.randint(0, WORDS, (4, 8), generator=generator)


def train(model, optimizer, batch):
    out = model(batch)
    loss = nn.functional.cross_entropy(out.flatten(0, 1), batch.flatten())
    loss.backward()
    optimizer.step()


def new_net(tied=False):
    torch.manual_seed(3)
    net = Net()
    if tied:
        net.output.weight = net.embed.weight
    return net


def adam(params, **options):
    return torch.optim.Adam(params, lr=1e-3, betas=(0.0, 0.0), foreach=False, **options)


def truth(path, rows):
    with open(path, "w", encoding="utf-8") as out:
        for name, tensor in sorted(rows.items()):
            tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            values = tensor.detach().to(torch.float32).contiguous()
            shape = "x".join(map(str, values.shape)) or "-"
            out.write("%s %s %s\n" % (name, shape, hashlib.sha256(values.numpy().tobytes()).hexdigest()))


def moments(model, optimizer):
    return {n: optimizer.state[p]["exp_avg"] for n, p in model.named_parameters() if p in optimizer.state}


def local(out):
    def save(name, model, optimizer, **options):
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
                   "%s/%s.pt" % (out, name), **options)
        truth("%s/%s.truth" % (out, name), moments(model, optimizer))

    net = new_net()
    matrices = [p for p in net.parameters() if p.dim() > 1]
    vectors = [p for p in net.parameters() if p.dim() == 1]
    optimizer = adam([dict(params=vectors), dict(params=matrices, weight_decay=0.1)])
    train(net, optimizer, words())
    save("groups", net, optimizer)
    save("groups_stream", net, optimizer, _use_new_zipfile_serialization=False)

    net = new_net(tied=True)
    optimizer = adam(net.parameters())
    train(net, optimizer, words())
    save("tied", net, optimizer)

    torch.manual_seed(3)
    net = Pictures()
    optimizer = adam(net.parameters())
    nn.functional.cross_entropy(net(torch.randn(4, 1, 6, 6)), torch.arange(4)).backward()
    optimizer.step()
    save("buffers", net, optimizer)

    net = new_net()
    optimizer = torch.optim.Adam(net.named_parameters(), lr=1e-3, betas=(0.0, 0.0), foreach=False)
    train(net, optimizer, words())
    os.makedirs(out + "/apart", exist_ok=True)
    torch.save(net.state_dict(), out + "/apart/pytorch_model.bin")
    torch.save(optimizer.state_dict(), out + "/apart/optimizer.bin")
    torch.save({"last_epoch": 1}, out + "/apart/scheduler.bin")
    truth(out + "/apart.truth", moments(net, optimizer))


    muon(out, "muon", 1)
    muon(out, "muon_two", 2)
    muon(out, "muon_bug", 2, bug=True)
    trainer(out, "trainer", 1)
    trainer(out, "trainer_two", 2)
    trainer(out, "trainer_bug", 2, bug=True)
    stages(out)
    unreduced(out)
    numbers(out)
    without_state(out)
    averaged_update(out)


def ranks(rank, world, port, out, kind):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    folder = "%s/%s" % (out, kind)
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
    dist.barrier()
    net = new_net()
    if kind == "fsdp1_sharded":
        from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType
        net = FullyShardedDataParallel(net, use_orig_params=True, device_id=torch.device("cpu"))
    else:
        sizes, axes = {"fsdp2": ((3,), ("dp",)), "replicas": ((2, 2), ("copies", "dp")),
                       "tensor_parallel": ((2, 2), ("dp", "tp"))}[kind]
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=axes)
        if kind == "tensor_parallel":
            from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                           parallelize_module)
            for layer in net.layers:
                parallelize_module(layer, mesh["tp"], {
                    "up": ColwiseParallel(), "gate": ColwiseParallel(), "down": RowwiseParallel()})
            mesh = mesh["dp"]
        for layer in net.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
    optimizer = adam(net.parameters())
    train(net, optimizer, words())
    if kind == "fsdp1_sharded":
        with FullyShardedDataParallel.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
            state = FullyShardedDataParallel.optim_state_dict(net, optimizer)
        rows = {}
        for name, values in state["state"].items():
            whole = torch.zeros(values["exp_avg"].size())
            for shard in values["exp_avg"].local_shards():
                start = shard.metadata.shard_offsets[0]
                whole[start:start + shard.metadata.shard_sizes[0]] = shard.tensor
            dist.all_reduce(whole)
            rows[name] = whole
        torch.save(state, "%s/optimizer_0_rank%d.bin" % (folder, rank))
    else:
        rows = {n: t.full_tensor() for n, t in moments(net, optimizer).items()}
        torch.save(optimizer.state_dict(), "%s/optim_world_size_%d_rank_%d.pt" % (folder, world, rank))
        torch.save(net.state_dict(), "%s/model_world_size_%d_rank_%d.pt" % (folder, world, rank))
    if rank == 0:
        truth("%s/%s.truth" % (out, kind), rows)
    dist.barrier()
    dist.destroy_process_group()


def main():
    out = os.path.abspath(sys.argv[1])
    local(out)
    for kind, world in (("fsdp2", 3), ("replicas", 4), ("tensor_parallel", 4), ("fsdp1_sharded", 2)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        torch.multiprocessing.spawn(ranks, (world, port, out, kind), nprocs=world)


if __name__ == "__main__":
    main()
