#!/usr/bin/env python3
"""Make the files of this folder, with torch: Adam of two pairs of betas over the same gradients.

    python3 make.py

NAME_stepN.pt: the model and its optimizer after step N. `zero` has betas (0, 0), so that its exp_avg
is the gradient itself; `usual` has (0.9, 0.99), `other` (0.8, 0.95). `wrong` is `usual` whose
gradient of the last step was doubled in one parameter; `drift` is `usual` with a beta that changed.
numbers.pt: an optimizer alone, which numbers its parameters, in two groups.
"""
import torch


def parameters():
    torch.manual_seed(1)
    names = ["embed_tokens.weight", "layers.0.fc.weight", "layers.1.fc.weight", "norm.weight", "lm_head.weight"]
    shapes = [(11, 8), (8, 8), (8, 8), (8,), (11, 8)]
    return {n: torch.nn.Parameter(torch.randn(s)) for n, s in zip(names, shapes)}


def gradients(step):
    generator = torch.Generator().manual_seed(100 + step)
    return {n: torch.randn(p.shape, generator=generator) * 0.1 for n, p in parameters().items()}


def run(name, betas, steps, keep, fault=None, later_betas=None):
    model = parameters()
    optimizer = torch.optim.Adam(list(model.values()), lr=1e-3, betas=betas)
    for step in range(1, steps + 1):
        for n, g in gradients(step).items():
            model[n].grad = g * (2.0 if fault == n and step == steps else 1.0)
        if later_betas is not None and step == steps:
            optimizer.param_groups[0]["betas"] = later_betas
        optimizer.step()
        if step in keep:
            state = {"model": {n: p.detach() for n, p in model.items()}, "optimizer": optimizer.state_dict(),
                     "iteration": step}
            torch.save(state, f"{name}_step{step}.pt")


run("zero", (0.0, 0.0), 3, {3})
run("usual", (0.9, 0.99), 3, {1, 2, 3})
run("other", (0.8, 0.95), 3, {2, 3})
run("wrong", (0.9, 0.99), 3, {3}, fault="layers.1.fc.weight")
run("drift", (0.9, 0.99), 3, {3}, later_betas=(0.85, 0.99))

parts = [torch.nn.Parameter(torch.randn(shape)) for shape in [(11, 8), (8, 8), (8,), (11, 8)]]
optimizer = torch.optim.Adam([{"params": parts[:2]}, {"params": parts[2:]}], lr=1e-3, betas=(0.0, 0.0))
for part in parts:
    part.grad = torch.randn(part.shape)
optimizer.step()
torch.save(optimizer.state_dict(), "numbers.pt")
