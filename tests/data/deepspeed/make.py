#!/usr/bin/env python3
"""Write the samples of this folder and their truth: one step of Adam with betas (0, 0).

    make.py OUT [NAME]...      needs torch and deepspeed (0.19.8 wrote those that are here); CPU, gloo

A truth file lists "name shape sha256" of exp_avg as binary32, from the live optimizers of all ranks.
"""
import hashlib
import os
import shutil
import socket
import subprocess
import sys

os.environ.update(OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu")

import torch
import torch.distributed as dist
from torch import nn

WIDTH, WORDS, BATCH = 4, 7, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 5)
        self.down = nn.Linear(5, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


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


class Experts(nn.Module):
    def __init__(self, ep_size):
        super().__init__()
        from deepspeed.moe.layer import MoE
        self.embed = nn.Embedding(WORDS, WIDTH)
        expert = nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, WIDTH))
        self.moe = MoE(hidden_size=WIDTH, expert=expert, num_experts=4, ep_size=ep_size, k=1,
                       min_capacity=8)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        h = self.embed(x)
        return self.output(h + self.moe(h)[0])


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)

    def forward(self, x):
        return self.words(x)


class Output(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        return self.words(x)


def loss_of(out, words):
    return nn.functional.cross_entropy(out.float().flatten(0, 1), words.flatten())


def words_of(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, WORDS, (BATCH, 6), generator=generator)


def adam(params):
    return torch.optim.Adam(params, lr=1e-3, betas=(0.0, 0.0), foreach=False)


def two_groups(model):
    return [dict(params=[p for p in model.parameters() if p.dim() > 1]),
            dict(params=[p for p in model.parameters() if p.dim() <= 1])]


def layer_groups(model):
    """Groups that share shapes: the first layer by itself, behind all others."""
    return [dict(params=[p for n, p in model.named_parameters() if "layers.0." not in n]),
            dict(params=[p for n, p in model.named_parameters() if "layers.0." in n])]


def settings(world, stage, dtype, **options):
    config = {"train_batch_size": BATCH * world, "train_micro_batch_size_per_gpu": BATCH,
              "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 4,
                                    "contiguous_gradients": False, "overlap_comm": False, **options},
              "zero_allow_untested_optimizer": True}
    if dtype != "fp32":
        config[dtype] = {"enabled": True}
    return config


def moment(engine, optimizer, parameter):
    from deepspeed.utils import safe_get_full_optimizer_state
    if parameter in optimizer.state:
        return optimizer.state[parameter]["exp_avg"]
    return safe_get_full_optimizer_state(parameter, "exp_avg")


def parts_of(zero):
    """The whole moments of stages 1 and 2, from the live flat parts, by id of the parameter."""
    moments = {}
    for group, part in enumerate(zero.single_partition_of_fp32_groups):
        mine = zero.optimizer.state[part]["exp_avg"].contiguous()
        ranks = zero.real_dp_process_group[group]
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size(ranks))]
        dist.all_gather(parts, mine, group=ranks)
        whole, at = torch.cat(parts), 0
        for parameter in zero.round_robin_bit16_groups[group]:
            moments[id(parameter)] = whole[at:at + parameter.numel()].view(parameter.shape)
            at += parameter.numel()
    return moments


def row(name, tensor):
    values = tensor.detach().to(torch.float32).contiguous()
    shape = "x".join(map(str, values.shape)) or "-"
    return "%s %s %s\n" % (name, shape, hashlib.sha256(values.numpy().tobytes()).hexdigest())


def start(rank, world, port):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world),
                      LOCAL_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    import deepspeed
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    torch.manual_seed(3)
    return deepspeed


def finish(engine, out, name, rows, rank, world):
    folder = "%s/%s" % (out, name)
    if rank == 0:
        shutil.rmtree(folder, ignore_errors=True)
    dist.barrier()
    engine.save_checkpoint(folder, tag="global_step1")
    everyone = [None] * world
    dist.all_gather_object(everyone, rows)
    if rank == 0:
        for file in os.listdir(folder):
            if file.endswith(".py"):
                os.remove(os.path.join(folder, file))
        with open("%s/%s.truth" % (out, name), "w", encoding="utf-8") as truth:
            truth.writelines(sorted(set().union(*map(set, everyone))))
    dist.barrier()


def dense(rank, world, port, out, name, stage, dtype, grouped, options):
    deepspeed = start(rank, world, port)
    model = Net()
    named = list(model.named_parameters())
    optimizer = adam(grouped(model) if grouped else model.parameters())
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer,
                                      config=settings(world, stage, dtype, **options))
    words = words_of(rank)
    engine.backward(loss_of(engine(words), words))
    engine.step()
    if grouped and stage in (1, 2):  # the library's own accessor fails here
        moments = parts_of(engine.optimizer)
        rows = [row(n, moments[id(p)]) for n, p in named]
    else:
        rows = [row(n, moment(engine, optimizer, p)) for n, p in named]
    finish(engine, out, name, rows, rank, world)


def plain(out, name, world):
    """What torch's own optimizer keeps of the same step: numbers, and no names."""
    torch.manual_seed(3)
    model = Net()
    optimizer = adam(layer_groups(model))
    for rank in range(world):
        words = words_of(rank)
        (loss_of(model(words), words) / world).backward()
    optimizer.step()
    torch.save({"optimizer": optimizer.state_dict()}, "%s/%s.pt" % (out, name))


def experts(rank, world, port, out, name, stage, ep_size):
    deepspeed = start(rank, world, port)
    from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
    model = Experts(ep_size)
    torch.manual_seed(100 + rank % ep_size)
    for key, parameter in model.named_parameters():
        if "deepspeed_experts" in key:
            nn.init.normal_(parameter, std=0.3)
    groups = split_params_into_different_moe_groups_for_optimizer(
        {"params": list(model.parameters()), "name": "parameters"})
    optimizer = adam(groups)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer,
                                      config=settings(world, stage, "fp32"))
    words = words_of(rank)
    engine.backward(loss_of(engine(words), words))
    engine.step()
    rows, moments = [], parts_of(engine.optimizer)
    for key, parameter in model.named_parameters():
        if ".deepspeed_experts." in key:
            before, after = key.split(".deepspeed_experts.")
            local, after = after.split(".", 1)
            number = int(local) + (rank % ep_size) * (4 // ep_size)
            key = "%s.deepspeed_experts.%d.%s" % (before, number, after)
        rows.append(row(key, moments[id(parameter)]))
    finish(engine, out, name, rows, rank, world)


def pipeline(rank, world, port, out, name, stage, dtype):
    deepspeed = start(rank, world, port)
    from deepspeed.pipe import LayerSpec, PipelineModule
    layers = [LayerSpec(Embedding), LayerSpec(Block), LayerSpec(Block), LayerSpec(Output)]
    model = PipelineModule(layers=layers, num_stages=2, loss_fn=loss_of, partition_method="uniform")
    torch.manual_seed(5 + rank % 2)
    optimizer = adam(model.parameters())
    config = settings(world // 2, stage, dtype)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    engine.train_batch(data_iter=iter([(words_of(k), words_of(k)) for k in range(4)]))
    rows = [row(n, moment(engine, optimizer, p)) for n, p in model.named_parameters()]
    finish(engine, out, name, rows, rank, world)


class Words(nn.Module):
    """What TiedLayerSpec ties: the embedding, and the output by its weight."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)

    @property
    def weight(self):
        return self.words.weight

    def forward(self, x):
        return self.words(x)


def tied(rank, world, port, out, name, stage, is_lost):
    deepspeed = start(rank, world, port)
    from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
    from deepspeed.runtime.pipe.engine import PipelineEngine
    from deepspeed.runtime.pipe.schedule import ReduceTiedGrads
    if is_lost:
        PipelineEngine._INSTRUCTION_MAP[ReduceTiedGrads] = lambda self: None
    layers = [TiedLayerSpec("embed", Words), LayerSpec(Block),
              TiedLayerSpec("embed", Words, forward_fn=lambda m, x: x @ m.weight.t())]
    model = PipelineModule(layers=layers, num_stages=world, loss_fn=loss_of, seed_layers=True,
                           base_seed=11, partition_method="uniform")
    optimizer = adam(model.parameters())
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer,
                                      config=settings(1, stage, "fp32"))
    engine.train_batch(data_iter=iter([(words_of(k), words_of(k)) for k in range(4)]))
    rows = [row(n, moment(engine, optimizer, p)) for n, p in model.named_parameters()]
    finish(engine, out, name, rows, rank, world)


SAMPLES = {
    "stage0": (dense, 2, (0, "fp32", None, {})),
    "stage1_bf16": (dense, 2, (1, "bf16", None, {})),
    "stage1_elastic": (dense, 2, (1, "fp32", None, {"elastic_checkpoint": True})),
    "stage2_groups": (dense, 3, (2, "fp32", two_groups, {"round_robin_gradients": True})),
    "stage1_groups": (dense, 2, (1, "fp32", layer_groups, {})),
    "stage3": (dense, 2, (3, "fp32", None, {"sub_group_size": 60})),
    "experts": (experts, 2, (1, 2)),
    "experts_shared": (experts, 4, (2, 2)),
    "pipeline": (pipeline, 2, (1, "fp32")),
    "pipeline_stage0": (pipeline, 2, (0, "fp32")),
    "pipeline_bf16": (pipeline, 4, (1, "bf16")),
    "tied_one": (tied, 1, (1, False)),
    "tied_two": (tied, 2, (1, False)),
    "tied_lost": (tied, 2, (1, True)),
    "tied_one_stage0": (tied, 1, (0, False)),
    "tied_two_stage0": (tied, 2, (0, False)),
}


def universal(out, name):
    source, target = "%s/%s/global_step1" % (out, name), "%s/universal_%s" % (out, name)
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--input_folder",
                    source, "--output_folder", target, "--num_extract_workers", "1",
                    "--num_merge_workers", "1", "--inject_missing_state"], check=True)
    shutil.copy("%s/%s.truth" % (out, name), target + ".truth")


def main():
    out = os.path.abspath(sys.argv[1])
    for name, (run, world, arguments) in SAMPLES.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        torch.multiprocessing.spawn(run, (world, port, out, name, *arguments), nprocs=world)
        if name == "stage1_groups":
            plain(out, name, world)
        if name in ("stage1_bf16", "stage3"):
            universal(out, name)


if __name__ == "__main__":
    main()
