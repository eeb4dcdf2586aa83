"""Write the table of README.md that sets gradcmp against today's script, from a run over the corpus.

    faults.py --program PATH --corpus DIR

Each row is one injected fault of the corpus' manifests. Today's script is not run but modelled, by
what is known of how it judges:

- It reads the optimizer state of torch_dist checkpoints that is stored tensor by tensor. On state in
  buckets, legacy files and gradient dumps it is mute.
- It knows two row-parallel layers by name and takes all others for column-parallel; no sample has
  another row-parallel layer, so its unsharded tensors are ours.
- It compares the relative error of each tensor with one constant, 0.0829, the bound of layer 0 of a
  model of 32 layers, in whatever type the run computed. A NaN compares false, so it passes.

Its answer is "fails" where any tensor is over that constant, else "passes"; it names no layer and no
cause.
"""
import argparse
import os
import sys

import corpus

CONSTANT_BOUND = 0.0829
READ_BY_SCRIPT = {"fully_sharded_model_space", "fully_reshardable"}
NO_FAULTS = {"pad_garbage"}  # what is no fault of the gradients


def describe(bug):
    """The fault in a few words, as the manifest has it."""
    words = [bug["kind"].replace("_", " ")]
    if "factor" in bug:
        words.append("by %g" % bug["factor"])
    if "param" in bug:
        words.append("in %s" % bug["param"].rstrip("."))
    if "layer" in bug:
        words.append("of layers.%s" % bug["layer"])
    return " ".join(words)


def script_says(layout, candidate):
    if layout not in READ_BY_SCRIPT:
        return "mute"
    rels = [corpus.number(p["rel"]) for p in candidate["parameters"] if p["rel"] is not None]
    if any(p["nonfinite_b"] for p in candidate["parameters"]):
        rels = [corpus.number(p["rel"]) for p in candidate["parameters"]
                if p["rel"] is not None and not p["nonfinite_b"]]
    return "fails" if any(rel > CONSTANT_BOUND for rel in rels) else "passes"


def ours(candidate):
    """(verdict, onset, cause) in words."""
    onset, cause = candidate["onset"], candidate["cause"]
    found = {"inconsistent": "detected", "consistent": "**missed**"}.get(
        candidate["verdict"], candidate["verdict"])
    layer = "layer %d" % onset["layer"] if onset else "all"
    if cause is None:
        return found, layer, "none"
    factor = "" if cause["factor"] is None else " %.4g" % corpus.number(cause["factor"])
    return found, layer, cause["kind"] + factor


def megatron_faults(program, folder):
    """Yield (fault, layout, candidate) of one manifest of checkpoints."""
    rows = corpus.load_yaml(os.path.join(folder, "manifest.yaml"))["checkpoints"]
    by_name = {row["name"]: row for row in rows}
    for row in rows:
        if not row["bug"] or row["bug"]["kind"] in NO_FAULTS:
            continue
        paths = [os.path.join(folder, by_name[name]["path"]) for name in (row["base"], row["name"])]
        yield row["bug"], row["optimizer_format"], compare(program, *paths)


def dump_faults(program, folder):
    dumps = corpus.load_yaml(os.path.join(folder, "manifest.yaml"))["dumps"]
    by_name = {dump["name"]: dump for dump in dumps}
    for dump in dumps:
        if not dump["bug"] or dump["expect"] == "incomplete":
            continue
        iteration = "iter_%07d" % dump["iterations"][-1]
        paths = [os.path.join(folder, os.path.dirname(by_name[name]["path"]), iteration)
                 for name in (dump["base"], dump["name"])]
        yield dump["bug"], "dump", compare(program, *paths)


def compare(program, base, candidate):
    code, document, complaint = program.compare(base, candidate)
    if document is None:
        sys.exit("faults.py: %s: exit %s: %s" % (candidate, code, complaint))
    return document["candidates"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--corpus", required=True)
    options = parser.parse_args()
    program = corpus.Program(options.program)
    print("| fault | stored as | today's script | gradcmp | from | cause |")
    print("| --- | --- | --- | --- | --- | --- |")
    missed = 0
    for find, folder in ((megatron_faults, "megatron"), (megatron_faults, "npu"),
                         (dump_faults, "megatron_wgrads")):
        for bug, layout, candidate in find(program, os.path.join(options.corpus, folder)):
            found, layer, cause = ours(candidate)
            missed += found != "detected"
            print("| %s | %s | %s | %s | %s | %s |" % (
                describe(bug), layout, script_says(layout, candidate), found, layer, cause))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
