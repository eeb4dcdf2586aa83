"""Run gradcmp over sample checkpoints and compare what it says with what is known to be true.

    corpus.py --program PATH --corpus DIR [--set NAME]...     the whole corpus (YAML manifests)
    corpus.py --program PATH --shipped DIR                    the samples in tests/data (JSON)

A set is a function that yields cases; a case is a name and a function that returns a list of
complaints, empty when all is well, or raises Skip. To add a set: write such a generator and put it
into SETS. What a case may expect of the program is in README.md and in the manifests.
"""
import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EXIT_CONSISTENT, EXIT_DIFFERENT, EXIT_TROUBLE = 0, 1, 2
NORM_TOLERANCE = 1e-12  # relative, against norms computed in binary64 by other code
REL_TOLERANCE = 1e-6
EPS = {"bf16": 2.0**-7, "fp16": 2.0**-10, "fp32": 2.0**-23}
GROWTH, CAP = 1.03, 0.25
TIMEOUT_SECONDS = 60
HOSTILE_SECONDS, HOSTILE_BYTES = 10, 256 << 20
SANITIZED = bool(os.environ.get("GRADCMP_SANITIZED"))  # then memory is not the program's own

# The reader that a sample needs, under the name in `gradcmp --version`. A sample whose reader this
# build does not have is skipped, and counted as such.
READER_OF_LAYOUT = {
    "fully_sharded_model_space": "torch_dist",
    "fully_reshardable": "torch_dist",
    "dp_reshardable": "torch_dist",
    "dp_zero_gather_scatter": "torch_dist",
    "distrib_optim.pt": "megatron_legacy",
    "in model_optim_rng.pt": "megatron_legacy",
}
REFUSED_LAYOUTS = {"dp_zero_gather_scatter"}
READER_OF_TORCH = {
    "dcp": "torch_dist",
    "pt": "torch.save",
    "pt-dtensor": "torch.save",
    "hdf5": "hdf5",
    "deepspeed": "deepspeed",
    "deepspeed-universal": "deepspeed",
    "safetensors": "safetensors",
    "safetensors-perrank": "safetensors",
    "zarr2": "zarr",
    "zarr3": "zarr",
}
READER_OF_HOSTILE = {
    "dcp": "torch_dist",
    "dir": "torch_dist",
    "pt": "torch.save",
    "safetensors": "safetensors",
    "hdf5": "hdf5",
    "zarr": "zarr",
    "deepspeed": "deepspeed",
}


class Skip(Exception):
    """The sample is of a kind that this version does not read."""


class Program:
    """The program under test."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        version = self.run("--version").stdout.decode("utf-8", "replace")
        features = version.partition("formats:")[2].partition("kernels:")[0]
        self.readers = {word.strip() for word in features.split(",")}

    def need(self, reader):
        """Skip the case where this build has no such reader."""
        if reader not in self.readers:
            raise Skip

    def run(self, *arguments, limited=False):
        """Run it; the result has returncode, stdout, stderr (bytes) and peak_bytes."""

        def limit():
            # Against filling the disk. Memory is measured, not limited: sanitizers reserve
            # terabytes of addresses.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))

        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [self.path, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                preexec_fn=limit if limited else None)
            seconds = HOSTILE_SECONDS if limited else TIMEOUT_SECONDS
            result = subprocess.CompletedProcess(arguments, None)
            result.timed_out = not wait_seconds(process, seconds)
            result.peak_bytes = process.usage.ru_maxrss * 1024 if process.usage else 0
            result.returncode = process.code
            for name, stream in (("stdout", out), ("stderr", err)):
                stream.seek(0)
                setattr(result, name, stream.read())
        return result

    def compare(self, *paths, options=()):
        """Return (exit code, document or None, complaint or None)."""
        result = self.run("compare", "--json", "-", "--quiet", *options, *paths)
        return self.document(result)

    def list_tensors(self, path, options=()):
        result = self.run("ls", "--stats", "--json", "-", *options, path)
        return self.document(result)

    @staticmethod
    def document(result):
        if result.timed_out:
            return None, None, "no end after %d s" % TIMEOUT_SECONDS
        if result.returncode < 0:
            return result.returncode, None, "killed by signal %d" % -result.returncode
        text = result.stderr.decode("utf-8", "replace").strip()
        try:
            return result.returncode, json.loads(result.stdout), text or None
        except ValueError:
            return result.returncode, None, text or "no JSON on standard output"


def wait_seconds(process, seconds):
    """Wait, keep the resource usage; kill and return False when it takes too long."""
    process.usage = None
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.usage = usage
            process.code = os.waitstatus_to_exitcode(status)
            process.returncode = process.code
            return True
        if time.monotonic() > deadline:
            os.kill(process.pid, signal.SIGKILL)
            _, status, process.usage = os.wait4(process.pid, 0)
            process.code = process.returncode = os.waitstatus_to_exitcode(status)
            return False
        time.sleep(0.002)


# ---------------------------------------------------------------- what is known of a Megatron case


def number(value):
    """A figure of a report or of a truth file; strings stand for what is not finite."""
    return float(value) if isinstance(value, (int, float, str)) else math.nan


def layer_of(name, layers):
    if name.startswith("decoder.layers."):
        return int(name.split(".")[2]) + 1
    return 0 if name.startswith("embedding.") else layers + 1


def bound_of(name, case, base):
    """The bound of DESIGN: of two compute types the coarser."""
    eps = max(EPS[case["dtype"]["param"]], EPS[base["dtype"]["param"]])
    k = 32 if eps == EPS["fp32"] else 4
    layers = base["model"]["layers"]
    return min(k * GROWTH ** (layers + 1 - layer_of(name, layers)) * eps, CAP)


def over(rel, bound):
    return math.isnan(rel) or rel > bound


def true_onset(case, base, truth):
    layers = base["model"]["layers"]
    hit = [layer_of(name, layers) for name, row in truth["parameters"].items()
           if over(number(row["rel_diff"]), bound_of(name, case, base))]
    return max(hit, default=None)


# Which causes may be told for an injected fault. A fault of arithmetic or of a reduction within a
# layer has no signature of its own: no cause may be claimed that is not there.
OPEN_CAUSES = {"unexplained", "one_shard", "upstream"}
CAUSES = {
    "scale_grad": {"scale"}, "loss_scale": {"common_scale"}, "swap_glu_halves": {"halves_swapped"},
    "qkv_order": {"qkv_regrouped"}, "swap_tp_blocks": {"blocks_permuted"},
    "dup_tp_block": {"block_repeated"}, "zero_grad": {"zero"}, "nan": {"nonfinite"},
    "roll": {"roll"}, "skip_sp_norm_reduce": {"partial_sum", "missing_reduction"},
    "shift_slots": {"layer_slot"}, "stale_shard": {"one_shard"}}


def wrong_cause(candidate, bug):
    """The pair's cause against the fault that was put in; without one there must be none."""
    cause = candidate["cause"]
    if candidate["verdict"] != "inconsistent":
        told = [p["name"] for p in candidate["parameters"] if p["causes"]]
        return ["a cause where nothing fails: %s" % (cause or told[0])] if cause or told else []
    allowed = CAUSES.get((bug or {}).get("kind"), OPEN_CAUSES)
    if cause is None or cause["kind"] not in allowed:
        return ["cause %s, expected %s" % (cause and cause["kind"], " or ".join(sorted(allowed)))]
    wrong = []
    if "factor" in bug and cause["factor"] and not close(cause["factor"], bug["factor"], 0.01):
        wrong.append("factor %s, expected %s" % (cause["factor"], bug["factor"]))
    bare = [p["name"] for p in candidate["parameters"]
            if p["verdict"] in ("fail", "scale", "conflict", "nonfinite") and not p["causes"]
            and cause["kind"] != "common_scale"]
    return wrong + ["%s fails without a cause, not even unexplained" % name for name in bare[:1]]


def close(value, expected, tolerance):
    return abs(value - expected) <= tolerance * abs(expected)


class Megatron:
    """Checkpoints of one manifest with their truth."""

    def __init__(self, program, folder, checkpoints, truth_of):
        self.program = program
        self.folder = folder
        self.by_name = {case["name"]: case for case in checkpoints}
        self.truth_of = truth_of

    def path(self, case):
        return os.path.join(self.folder, case["path"])

    def base(self, case):
        return self.by_name[case["base"] or case["name"]]

    def readable(self):
        return [c for c in self.by_name.values()
                if READER_OF_LAYOUT[c["optimizer_format"]] in self.program.readers]

    def need(self, case):
        self.program.need(READER_OF_LAYOUT[case["optimizer_format"]])

    def against_base(self):
        """Each case against its base: verdict, onset and every figure."""
        for case in self.by_name.values():
            if case["base"]:
                yield case["name"], lambda case=case: self.judge(case)

    def judge(self, case):
        self.need(case)
        base = self.base(case)
        code, document, complaint = self.program.compare(self.path(base), self.path(case))
        if document is None:
            return ["exit %s: %s" % (code, complaint)]
        candidate = document["candidates"][0]
        if unread(candidate):
            return unread(candidate)
        wrong = []
        expected = "consistent" if case["expect"] == "pass" else "inconsistent"
        if candidate["verdict"] != expected or document["verdict"] != expected:
            wrong.append("verdict %s, expected %s" % (candidate["verdict"], expected))
        if code != (EXIT_CONSISTENT if expected == "consistent" else EXIT_DIFFERENT):
            wrong.append("exit code %s" % code)
        wrong += self.figures(case, base, candidate)
        wrong += self.onset(case, base, candidate)
        wrong += wrong_cause(candidate, case["bug"])
        if case["expect"] == "pass":
            flagged = [p["name"] for p in candidate["parameters"] if p["verdict"] != "pass"]
            if flagged:
                wrong.append("not pass in a good pair: %s" % ", ".join(flagged[:3]))
        return wrong

    def figures(self, case, base, candidate):
        wrong = []
        truth_a = self.truth_of(base["name"])["parameters"]
        truth_b = self.truth_of(case["name"])["parameters"]
        rows = {row["name"]: row for row in candidate["parameters"]}
        if set(rows) != set(truth_b):
            wrong.append("parameters differ from truth: %s" % sorted(set(rows) ^ set(truth_b))[:3])
        for name in sorted(set(rows) & set(truth_b)):
            row, a, b = rows[name], truth_a[name], truth_b[name]
            if row["shape"] != b["shape"]:
                wrong.append("%s: shape %s, truth %s" % (name, row["shape"], b["shape"]))
            if math.isnan(number(b["norm"])):  # what is not finite is left out, on both sides
                if row["verdict"] != "nonfinite":
                    wrong.append("%s: %s, expected nonfinite" % (name, row["verdict"]))
                continue
            pairs = [("norm_a", number(a["norm"]), NORM_TOLERANCE),
                     ("norm_b", number(b["norm"]), NORM_TOLERANCE),
                     ("rel", number(b["rel_diff"]), REL_TOLERANCE),
                     ("bound", bound_of(name, case, base), NORM_TOLERANCE)]
            for key, expected, tolerance in pairs:
                if not close(number(row[key]), expected, tolerance):
                    wrong.append("%s: %s %s, truth %.17g" % (name, key, row[key], expected))
        return wrong

    def onset(self, case, base, candidate):
        onset = candidate["onset"]["layer"] if candidate["onset"] else None
        factor = candidate["summary"]["common_factor"]
        bug = case["bug"] or {}
        if bug.get("kind") == "loss_scale":
            if factor is None or not close(number(factor), bug["factor"], 0.02):
                return ["common factor %s, expected %s" % (factor, bug["factor"])]
            return [] if onset is None else ["onset %s of a common factor" % onset]
        wrong = [] if factor is None else ["claims a common factor %s" % factor]
        expected = true_onset(case, base, self.truth_of(case["name"]))
        if onset != expected:
            wrong.append("onset %s, expected %s" % (onset, expected))
        return wrong

    def listings(self):
        """`ls --stats` of each case: norms, and the shapes up to the padding of the vocabulary."""
        for case in self.by_name.values():
            yield case["name"], lambda case=case: self.listing(case)

    def listing(self, case):
        self.need(case)
        code, document, complaint = self.program.list_tensors(
            self.path(case), ("--state", "exp_avg"))
        if document is None or code != 0:
            return ["exit %s: %s" % (code, complaint)]
        rows = {t["name"]: t for t in document["tensors"] if t["state"] == "exp_avg"}
        truth = self.truth_of(case["name"])["parameters"]
        wrong = []
        if set(rows) != set(truth):
            wrong.append("tensors differ from truth: %s" % sorted(set(rows) ^ set(truth))[:3])
        for name in sorted(set(rows) & set(truth)):
            shape = list(truth[name]["shape"])
            of_vocabulary = shape[0] == case["vocab"]["real"] and "layers" not in name
            if of_vocabulary:
                shape[0] = case["vocab"]["padded"]
            if rows[name]["shape"] != shape:
                wrong.append("%s: shape %s, expected %s" % (name, rows[name]["shape"], shape))
            expected, norm = number(truth[name]["norm"]), number(rows[name]["norm"])
            if of_vocabulary and (case["bug"] or {}).get("kind") == "pad_garbage":
                if not norm > expected:  # truth leaves the garbage out, a listing does not
                    wrong.append("%s: norm %s without the padding rows" % (name, norm))
            elif not (math.isnan(expected) or close(norm, expected, NORM_TOLERANCE)):
                wrong.append("%s: norm %s, truth %.17g" % (name, norm, expected))
        return wrong

    def families(self):
        """Each checkpoint as the baseline of all others of its run family."""
        families = {}
        for case in self.readable():
            families.setdefault(case["base"] or case["name"], []).append(case)
        for members in families.values():
            for baseline in members:
                others = [c for c in members if c is not baseline]
                if others:
                    yield baseline["name"], lambda b=baseline, o=others: self.family(b, o)

    def family(self, baseline, others):
        code, document, complaint = self.program.compare(
            self.path(baseline), *[self.path(c) for c in others])
        if document is None:
            return ["exit %s: %s" % (code, complaint)]
        wrong = []
        different = any(c["verdict"] != "consistent" for c in document["candidates"])
        if code != (EXIT_DIFFERENT if different else EXIT_CONSISTENT):
            wrong.append("exit code %s" % code)
        for case, candidate in zip(others, document["candidates"]):
            good = case["expect"] == baseline["expect"] == "pass"
            allowed = ("consistent",) if good else ("consistent", "inconsistent")
            if candidate["verdict"] not in allowed:
                wrong.append("%s: verdict %s" % (case["name"], candidate["verdict"]))
            elif self.same_values(baseline, case):
                wrong += ["%s: %s" % (case["name"], text) for text in not_identical(candidate)]
        return wrong

    def same_values(self, one, two):
        """Whether truth says that both hold the same gradients, to the last bit. (The padding rows of
        the vocabulary are no part of the truth.)"""
        rows = [self.truth_of(c["name"])["parameters"] for c in (one, two)]
        if one["base"] is None or two["base"] is None:
            other = rows[1] if one["base"] is None else rows[0]
            return all(row["rel_diff"] == 0 for row in other.values())
        return rows[0] == rows[1] and one["expect"] == two["expect"] == "pass"

    def fits(self):
        """Cross-validation of `gradcmp fit`: what good pairs of a family make must pass the others."""
        families = {}
        for case in self.readable():
            if case["base"] and case["optimizer_format"] not in REFUSED_LAYOUTS:
                families.setdefault(case["base"], []).append(case)
        for name, members in families.items():
            base = self.by_name[name]
            good = [c for c in members if c["expect"] == "pass"]
            bad = [c for c in members if c["expect"] != "pass"]
            distinct = []
            for case in good:
                if not any(self.same_values(case, other) for other in distinct):
                    distinct.append(case)
            for case in distinct:
                others = [c for c in good if not self.same_values(case, c)]
                yield ("only " + case["name"],
                       lambda b=base, c=case, o=others, f=bad: self.fit([b, c], o, f))
                if len(others) > 1:
                    yield ("all but " + case["name"],
                           lambda b=base, c=case, o=others: self.fit([b, *o], [c], []))

    def fit(self, known, good, bad):
        """Fit to `known`; then every good one must pass, in all parameters, and no bad one."""
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "fit.yaml")
            run = self.program.run("fit", "--json", "-", "-o", path,
                                   *[self.path(c) for c in known])
            code, document, complaint = self.program.document(run)
            if document is None:
                return ["exit %s: %s" % (code, complaint)]
            standings = {pair["standing"] for pair in document["pairs"]}
            if standings == {"identical"}:
                return [] if code == EXIT_TROUBLE and not os.path.exists(path) else ["exit %s" % code]
            if code != EXIT_CONSISTENT:
                return ["exit %s of good pairs: %s" % (code, pair) for pair in document["pairs"]
                        if pair["standing"] in ("not_good", "error")]
            wrong = ["looser than the theory"] if is_looser(document) else []
            for case in known[1:] + good + bad:
                wrong += ["%s: %s" % (case["name"], text)
                          for text in self.judge_by(path, known[0], case)]
        return wrong

    def judge_by(self, fit, base, case):
        code, document, complaint = self.program.compare(
            self.path(base), self.path(case), options=("--fit", fit))
        if document is None:
            return ["exit %s: %s" % (code, complaint)]
        candidate = document["candidates"][0]
        if unread(candidate):
            return unread(candidate)
        if case["expect"] != "pass":
            return [] if candidate["verdict"] == "inconsistent" else ["passes by the fit"]
        off = ["%s: %s, %s of the bound" % (p["name"], p["verdict"], p["ratio"])
               for p in candidate["parameters"] if p["verdict"] != "pass"]
        if candidate["bound"]["rule"] != "fit":
            off.append("judged by the rule %s" % candidate["bound"]["rule"])
        return off if off or candidate["verdict"] == "consistent" else [candidate["verdict"]]

    def threads(self):
        """The same bytes of JSON for one thread and for two."""
        for case in self.by_name.values():
            if case["base"]:
                yield case["name"], lambda case=case: self.same_bytes(case)

    def same_bytes(self, case):
        self.need(case)
        paths = (self.path(self.base(case)), self.path(case))
        runs = [self.program.run("compare", "--json", "-", "--quiet", "--threads", str(n), *paths)
                for n in (1, 2)]
        if runs[0].stdout != runs[1].stdout or runs[0].returncode != runs[1].returncode:
            return ["1 and 2 threads give different JSON"]
        return [] if runs[0].stdout else ["no JSON"]


def is_looser(fit):
    return fit["looser_than_theory"] or any(
        row["fit_eps"] > row["theory_eps"] * (1 + NORM_TOLERANCE) for row in fit["noise"])


def unread(candidate):
    """The complaint about a candidate that has an error in place of its figures."""
    error = candidate.get("error")
    return ["error: %s: %s" % (error["file"], error["message"])] if error else []


def not_identical(candidate):
    """Complaints about a pair that holds the same values."""
    wrong = unread(candidate)
    if wrong:
        return wrong
    for row in candidate["parameters"]:
        finite = row["nonfinite_a"] == 0 and row["nonfinite_b"] == 0
        if finite and (number(row["rel"]) != 0 or row["norm_a"] != row["norm_b"]):
            wrong.append("%s: rel %s, norms %s %s of the same values" %
                         (row["name"], row["rel"], row["norm_a"], row["norm_b"]))
    if candidate["summary"]["norm_a"] != candidate["summary"]["norm_b"]:
        wrong.append("global norms of the same values differ")
    return wrong


# ------------------------------------------------------------------------------- other manifests


def judge_verdict(program, baseline, candidate, expect, options=()):
    """The verdict and exit code that a manifest's word stands for."""
    words = {"pass": "consistent", "match": "consistent", "fail": "inconsistent",
             "differ": "inconsistent"}
    code, document, complaint = program.compare(baseline, candidate, options=options)
    if expect not in words:
        return [] if code == EXIT_TROUBLE else ["exit code %s, expected 2" % code]
    if document is None:
        return ["exit %s: %s" % (code, complaint)]
    if document["verdict"] != words[expect]:
        return ["verdict %s, expected %s" % (document["verdict"], words[expect])]
    expected_code = EXIT_CONSISTENT if words[expect] == "consistent" else EXIT_DIFFERENT
    return [] if code == expected_code else ["exit code %s" % code]


def check_hashes(program, path, state, truth, padded=None):
    """`ls --stats --as float32` against the SHA-256 of {name: {"sha256", "shape"}}; tables that are
    stored with `padded` rows of which the truth has fewer are passed over."""
    code, document, complaint = program.list_tensors(
        path, ("--state", state, "--as", "float32"))
    if document is None or code != 0:
        return ["exit %s: %s" % (code, complaint)]
    rows = {t["name"]: t for t in document["tensors"] if t["state"] == state}
    # An optimizer stored without its model has numbers for names; truth knows them as ids.
    numbered = bool(rows) and all(name.isdigit() for name in rows)
    wrong = []
    for name, row in truth.items():
        name = str(row["id"]) if numbered else name
        if name not in rows:
            wrong.append("%s is not listed" % name)
        elif rows[name]["shape"][0] == padded != row["shape"][0]:
            continue
        elif rows[name]["shape"] != row["shape"]:
            wrong.append("%s: shape %s" % (name, rows[name]["shape"]))
        elif row["sha256"] and rows[name]["sha256"] != row["sha256"]:
            wrong.append("%s: other values than truth" % name)
    return wrong


def load_yaml(path):
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(path, encoding="utf-8") as stream:
        return yaml.load(stream, Loader=loader)


def load_json(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def torch_set(program, corpus):
    folder = os.path.join(corpus, "torch")
    manifest = load_yaml(os.path.join(folder, "manifest.yaml"))
    formats = {item["name"]: item["format"] for item in manifest["items"]}

    def readable(*names):
        for name in names:
            program.need(READER_OF_TORCH[formats[name]])

    def values(item):
        readable(item["name"])
        truth = load_json(os.path.join(folder, item["truth"]))
        if truth["quantity"] != "exp_avg":
            raise Skip
        return check_hashes(program, os.path.join(folder, item["path"]), "exp_avg",
                            truth["params"])

    def pair(row):
        readable(row["a"], row["b"])
        paths = {item["name"]: os.path.join(folder, item["path"]) for item in manifest["items"]}
        return judge_verdict(program, paths[row["a"]], paths[row["b"]], row["expect"])

    for item in manifest["items"]:
        yield item["name"], lambda item=item: values(item)
    for row in manifest["pairs"]:
        yield "%s %s" % (row["a"], row["b"]), lambda row=row: pair(row)


def npu_cases(program, folder, checkpoints, truth):
    """As the set megatron; checkpoints of one layout hold the same bits."""
    readable = [c for c in checkpoints if c["expect"] != "unreadable"]
    samples = Megatron(program, folder, readable, truth.__getitem__)

    def bits(case):
        return check_hashes(program, samples.path(case), "exp_avg",
                            truth[case["name"]]["parameters"], case["vocab"]["padded"])

    def same(case, other):
        _, document, complaint = program.compare(samples.path(other), samples.path(case))
        return not_identical(document["candidates"][0]) if document else [complaint]

    def refusal(case):
        path = samples.path(case)
        runs = [program.run("compare", samples.path(readable[0]), path),
                program.run("compare", path, samples.path(readable[0]))]
        return [text for run in runs for text in refused({"path": "model_optim_rng.pt"}, run)]

    yield from samples.against_base()
    for name, check in samples.listings():
        yield "ls " + name, check
    for case in readable:
        yield "bits " + case["name"], lambda case=case: bits(case)
        if case["bitwise_equal_to"] != case["name"]:
            other = samples.by_name[case["bitwise_equal_to"]]
            yield "same " + case["name"], lambda case=case, other=other: same(case, other)
    for case in checkpoints:
        if case["expect"] == "unreadable":
            yield "refuse " + case["name"], lambda case=case: refusal(case)


def truth_files(folder, rows):
    return {row["name"]: load_json(os.path.join(folder, "truth", row["name"] + ".json"))
            for row in rows}


def npu_set(program, corpus):
    folder = os.path.join(corpus, "npu")
    checkpoints = load_yaml(os.path.join(folder, "manifest.yaml"))["checkpoints"]
    return npu_cases(program, folder, checkpoints, truth_files(folder, checkpoints))


class Dumps:
    """Gradient dumps: each iteration against the base's, with the truth of that iteration."""

    def __init__(self, program, folder, dumps, truth):
        self.program, self.folder = program, folder
        self.by_name = {dump["name"]: dump for dump in dumps}
        self.truth = {name: rows["iterations"] for name, rows in truth.items()}

    def cases(self):
        for dump in self.by_name.values():
            for iteration in dump["iterations"]:
                name = "%s %d" % (dump["name"], iteration)
                if dump["base"]:
                    yield name, lambda d=dump, i=iteration: self.judge(d, i)
                if dump["expect"] != "incomplete":
                    yield "bits " + name, lambda d=dump, i=iteration: self.bits(d, i)

    def path(self, name, iteration):
        folder = os.path.dirname(self.by_name[name]["path"])
        return os.path.join(self.folder, folder, "iter_%07d" % iteration)

    def bits(self, dump, iteration):
        rows = self.truth[dump["name"]][str(iteration)]["parameters"]
        return check_hashes(self.program, self.path(dump["name"], iteration), "main_grad", rows,
                            dump["vocab"]["padded"])

    def bound(self, dump, name):
        layers = dump["model"]["layers"]
        return min(4 * GROWTH ** (layers + 1 - layer_of(name, layers)) * EPS["bf16"], CAP)

    def judge(self, dump, iteration):
        paths = (self.path(dump["base"], iteration), self.path(dump["name"], iteration))
        if dump["expect"] == "incomplete":
            run = self.program.run("compare", *paths)
            wrong = refused({"path": paths[1]}, run)
            return wrong if b"incomplete" in run.stderr else wrong + ["does not say what it is"]
        truth = self.truth[dump["name"]][str(iteration)]["parameters"]
        hit = {layer_of(name, dump["model"]["layers"]) for name, row in truth.items()
               if "copies_differ" in row or over(number(row["rel_diff"]), self.bound(dump, name))}
        code, document, complaint = self.program.compare(*paths)
        if document is None:
            return ["exit %s: %s" % (code, complaint)]
        candidate = document["candidates"][0]
        if unread(candidate):
            return unread(candidate)
        wrong = self.figures(dump, iteration, candidate)
        wrong += wrong_cause(candidate, dump["bug"])
        if candidate["verdict"] != ("inconsistent" if hit else "consistent") or code != bool(hit):
            wrong.append("verdict %s, exit %s; layers that differ: %s" %
                         (candidate["verdict"], code, sorted(hit)))
        if iteration == dump["iterations"][-1] and (dump["expect"] == "fail") != bool(hit):
            wrong.append("truth differs from the manifest")
        onset = candidate["onset"]["layer"] if candidate["onset"] else None
        if (dump["bug"] or {}).get("kind") != "loss_scale" and onset != max(hit, default=None):
            wrong.append("onset %s, expected %s" % (onset, max(hit, default=None)))
        return wrong

    def figures(self, dump, iteration, candidate):
        wrong = []
        truths = [self.truth[name][str(iteration)]["parameters"]
                  for name in (dump["base"], dump["name"])]
        rows = {row["name"]: row for row in candidate["parameters"]}
        if set(rows) != set(truths[1]):
            wrong.append("parameters differ from truth: %s" %
                         sorted(set(rows) ^ set(truths[1]))[:3])
        for name in sorted(set(rows) & set(truths[1])):
            row, a, b = rows[name], truths[0][name], truths[1][name]
            pairs = [("norm_a", a["norm"], NORM_TOLERANCE), ("norm_b", b["norm"], NORM_TOLERANCE),
                     ("rel", b["rel_diff"], REL_TOLERANCE),
                     ("bound", self.bound(dump, name), NORM_TOLERANCE)]
            for key, expected, tolerance in pairs:
                if not close(number(row[key]), number(expected), tolerance):
                    wrong.append("%s: %s %s, truth %s" % (name, key, row[key], expected))
            if ("copies_differ" in b) != (row["verdict"] == "conflict"):
                wrong.append("%s: %s" % (name, row["verdict"]))
        return wrong


def wgrads_set(program, corpus):
    folder = os.path.join(corpus, "megatron_wgrads")
    dumps = load_yaml(os.path.join(folder, "manifest.yaml"))["dumps"]
    return Dumps(program, folder, dumps, truth_files(folder, dumps)).cases()


# --------------------------------------------------------------------------------- hostile input


class Hostile:
    """Damaged and malicious files: what comes of each is stated by a word of the manifest."""

    def __init__(self, program, folder, scratch):
        self.program, self.folder, self.scratch = program, folder, scratch

    def check(self, item):
        if item["kind"] != "config":
            self.program.need(READER_OF_HOSTILE[item["kind"]])
        top = item["path"].split("/")[0]
        place = tempfile.mkdtemp(dir=self.scratch)
        for side in ("a", "b"):
            os.mkdir(os.path.join(place, side))
            source = os.path.join(self.folder, top)
            if os.path.exists(source):
                shutil.copytree(source, os.path.join(place, side, top), symlinks=True)
        for step in item.get("setup", ()):
            for side in ("a", "b"):
                prepare(step, os.path.join(place, side, step["path"]))
        a, b = (os.path.join(place, side, item["path"]) for side in "ab")
        runs = (self.configured(a) if item["kind"] == "config" else
                [self.program.run("ls", "--stats", "--json", "-", a, limited=True),
                 self.program.run("compare", "--threads", "2", a, b, limited=True)])
        wrong = [text for run in runs for text in always(run)]
        wrong += getattr(self, item["expect"])(item, runs)
        if os.path.exists("gradcmp_was_tricked") or find(place, "gradcmp_was_tricked"):
            wrong.append("something in the file was executed")
        return wrong

    def configured(self, path):
        """A file that says how to compare: as each of the kinds that there are."""
        pair = [os.path.join(self.folder, "..", "megatron", name) for name in ("s_base", "tp2dp2")]
        return [self.program.run(*arguments, limited=True) for arguments in (
            ("compare", "--map", path, *pair), ("compare", "--fit", path, *pair),
            ("compare", "--config", path, *pair), ("sweep", "--plan", path, self.scratch))]

    def error(self, item, runs):
        wrong = []
        for run in runs:
            wrong += refused(item, run)
        return wrong

    def ok(self, item, runs):
        if runs[0].returncode != 0:
            return ["exit %s: %s" % (runs[0].returncode, first_line(runs[0].stderr))]
        path = runs[0].args[-1]
        return check_keys(self.program, path, item["values"])

    def ok_or_error(self, item, runs):
        """A clean refusal, or a load; whether values are right is known only of valid items."""
        return [text for run in runs if run.returncode not in (0, 1)
                for text in refused(item, run)]

    refuse_or_ignore = ok_or_error


def prepare(step, path):
    if step["op"] == "mkfifo":
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkfifo(path)
    elif step["op"] == "mkdir":
        os.makedirs(path, exist_ok=True)
    elif step["op"] == "chmod":
        if os.geteuid() == 0:  # the superuser reads files of mode 000 all the same
            raise Skip
        os.chmod(path, int(step["mode"], 8))
    else:
        raise ValueError("unknown step %s" % step["op"])


def find(folder, name):
    return any(name in files for _, _, files in os.walk(folder))


def first_line(text):
    return (text.decode("utf-8", "replace").splitlines() or [""])[0]


def always(run):
    wrong = []
    if run.timed_out:
        wrong.append("still running after %d s" % HOSTILE_SECONDS)
    elif run.returncode < 0:
        wrong.append("killed by signal %d" % -run.returncode)
    if b"Sanitizer" in run.stderr or b"runtime error" in run.stderr:
        wrong.append("sanitizer: %s" % first_line(run.stderr))
    elif run.peak_bytes > HOSTILE_BYTES and not SANITIZED:
        wrong.append("%d MiB of memory" % (run.peak_bytes >> 20))
    return ["%s: %s" % (run.args[0], text) for text in wrong]


def refused(item, run):
    """Exit 2 with one line that names the file and, where the item says so, the byte."""
    lines = run.stderr.decode("utf-8", "replace").splitlines()
    wrong = []
    if run.returncode != EXIT_TROUBLE:
        return ["%s: exit %s instead of a refusal" % (run.args[0], run.returncode)]
    if len(lines) != 1:
        wrong.append("%d lines instead of one message: %s" % (len(lines), lines[:2]))
    elif os.path.basename(item["path"].rstrip("/")) not in lines[0]:
        wrong.append("message does not name the file: %s" % lines[0])
    elif item.get("offset") and "byte 0x" not in lines[0]:
        wrong.append("message does not name the byte: %s" % lines[0])
    if b"consistent" in run.stdout:
        wrong.append("prints a result all the same")
    return ["%s: %s" % (run.args[0], text) for text in wrong]


def check_keys(program, path, values):
    """Valid items state their tensors by the key that the file uses."""
    code, document, complaint = program.list_tensors(path, ("--as", "float32"))
    if document is None or code != 0:
        return ["exit %s: %s" % (code, complaint)]
    hashes = {t["sha256"] for t in document["tensors"]}
    return ["%s: other values than stated" % key for key, row in values.items()
            if row["sha256"] not in hashes]


def hostile_set(program, corpus):
    folder = os.path.join(corpus, "hostile")
    manifest = load_yaml(os.path.join(folder, "manifest.yaml"))
    with tempfile.TemporaryDirectory() as scratch:
        hostile = Hostile(program, folder, scratch)
        for item in manifest["items"]:
            yield item["name"], lambda item=item: hostile.check(item)


# ------------------------------------------------------------------------------------------ traces


class Traces:
    """Pairs of traces: the folder of a scenario against its truth, each layout against what the
    corpus' own reader found in it."""

    EXITS = {"match": EXIT_CONSISTENT, "diverged": EXIT_DIFFERENT, "invalid": EXIT_TROUBLE}
    IDENTITY = ("iteration", "microbatch", "phase", "op", "id", "module")

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def compare(self, *parts, options=()):
        a, b = (os.path.join(self.folder, parts[0], side, *parts[1:]) for side in "ab")
        result = self.program.run("trace", "--json", "-", *options, a, b)
        code, document, complaint = self.program.document(result)
        if document is None:
            raise ValueError(complaint or "exit %s" % code)
        wrong = []
        if code != self.EXITS.get(document["verdict"]):
            wrong.append("exit %s with verdict %s" % (code, document["verdict"]))
        return document, wrong

    def whole(self, name, truth):
        document, wrong = self.compare(name)
        expected = [("verdict", truth["verdict"])]
        if truth["verdict"] != "invalid":
            expected += [("structural", truth.get("structural")), ("source", truth.get("source", [])),
                         ("missing_ranks_a", truth.get("missing_in_a", [])), ("missing_ranks_b", []),
                         ("comparable", truth.get("comparable", True)),
                         ("receivers", truth.get("receivers", []))]
        wrong += ["%s %s, not %s" % (key, document[key], value) for key, value in expected
                  if document[key] != value]
        origin = {str(one["rank"]): {key: one[key] for key in self.IDENTITY}
                  for one in document["origin"]}
        if truth["verdict"] != "invalid" and origin != truth.get("origin", {}):
            wrong.append("origin %s" % origin)
        return wrong

    def layout(self, name, layout, observed, is_invalid):
        document, wrong = self.compare(name, layout)
        ranks = {str(one["rank"]): one for one in document["ranks"]}
        if layout == "ops":
            if not is_invalid:
                origin = sorted(one["rank"] for one in document["origin"])
                if origin != observed["origin_ranks"]:
                    wrong.append("origin on %s" % origin)
                for rank, one in observed["ranks"].items():
                    wrong += self.judge_ops(ranks[rank], one)
        elif layout == "debugmode":
            wrong += self.judge_debugmode(document, ranks, observed)
        elif layout.startswith("msprobe"):
            wrong += self.judge_msprobe(document, ranks, observed)
        else:
            verdict = observed["status"].replace("invalid_trace", "invalid")
            if document["verdict"] != verdict:
                wrong.append("verdict %s, not %s" % (document["verdict"], verdict))
            for rank, one in observed["ranks"].items():
                wrong += self.judge_boundary(ranks[rank], one)
        return wrong

    @staticmethod
    def unlike(rank, found, wanted):
        """Complaints about the fields of a finding."""
        if found is None:
            return ["rank %s: nothing found, not %s" % (rank, wanted)]
        return ["rank %s: %s %s, not %s" % (rank, key, found.get(key), value)
                for key, value in wanted.items() if found.get(key) != value]

    def judge_boundary(self, rank, one):
        number = rank["rank"]
        if one.get("kind") == "missing_rank":
            return self.unlike(number, rank["first"], {"kind": "missing_rank"})
        wrong = self.unlike(number, rank, {"equal_prefix": one["equal_prefix"]})
        if one.get("kind") == "stream_end" and rank["damaged"]:
            return wrong
        if "kind" in one:
            wanted = {"kind": one["kind"]}
            if one["kind"] == "content_mismatch":
                wanted.update(one["key"], a_sequence=one["a_sequence"],
                              b_sequence=one["b_sequence"], inputs_match=one.get("inputs_match"))
            wrong += self.unlike(number, rank["first"], wanted)
        return wrong

    def judge_ops(self, rank, one):
        number = rank["rank"]
        if one.get("kind") == "missing_rank":
            return self.unlike(number, rank["first"], {"kind": "missing_rank"})
        wrong = self.unlike(number, rank, {key: one[key] for key in ("match", "a_records",
                                                                     "b_records")})
        structural, value = one.get("first_structural"), one.get("first_value")
        if structural:
            wrong += self.unlike(number, rank["structural"],
                                 {key: structural[key] for key in ("kind", "index")})
        if value and (not structural or value["index"] < structural["index"]):
            wanted = {key: value[key] for key in value if key not in (
                "role", "scope", "kind", "a_seq", "b_seq")}
            wanted.update(module=value["scope"], event=value["kind"], a_sequence=value["a_seq"],
                          b_sequence=value["b_seq"])
            wrong += self.unlike(number, rank["first"], wanted)
            wrong += self.unlike(number, rank, {"role": value["role"]})
        return wrong

    def judge_debugmode(self, document, ranks, observed):
        wrong = []
        for one in observed.values():
            first = one.get("first")
            if first is None:
                wrong += [] if document["verdict"] == "match" else ["no match"]
            elif first["kind"] == "structure":
                found = ranks["0"]["structural"] or {}
                wrong += self.unlike(0, found, {"index": first["index"]})
                wrong += self.unlike(0, found.get("a"), {"op": first["op_a"],
                                                         "module": first["module"]})
            else:
                wanted = {key: first[key] for key in ("index", "module", "inputs_match",
                                                      "outputs_match")}
                wrong += self.unlike(0, ranks["0"]["first"], dict(wanted, op=first["op_a"]))
        return wrong

    def judge_msprobe(self, document, ranks, observed):
        firsts = [one["first"] for one in observed.values() if one["first"]]
        if not firsts:
            return [] if document["verdict"] == "match" else ["no match"]
        return self.unlike(0, ranks["0"]["first"], {"id": firsts[0]["api"],
                                                    "inputs_match": firsts[0]["inputs_match"]})

    def cases(self, manifest):
        for name, truth in manifest.items():
            yield name, lambda name=name, truth=truth: self.whole(name, truth)
            invalid = truth["verdict"] == "invalid"
            for layout, observed in truth["observed"].items():
                yield "%s/%s" % (name, layout), (
                    lambda name=name, layout=layout, observed=observed, invalid=invalid:
                    self.layout(name, layout, observed, invalid))


def traces_set(program, corpus):
    folder = os.path.join(corpus, "traces")
    return Traces(program, folder).cases(load_json(os.path.join(folder, "manifest.json")))


# -------------------------------------------------------------------------------------- the sets


class Metrics:
    """Pairs of metric series: first differences, counts and verdicts as their manifest has them."""

    TIMES = ("iteration-time",)

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.manifest = load_json(os.path.join(folder, "manifest.json"))

    def cases(self):
        for kind, pairs in sorted(self.manifest.items()):
            judge = getattr(self, kind)
            ending = {"golden": ".json", "logs": ".log"}.get(kind, "")
            for name, pair in sorted(pairs.items()):
                paths = [os.path.join(self.folder, kind, name, side + ending) for side in "ab"]
                if all(os.path.exists(path) for path in paths):
                    yield "%s/%s" % (kind, name), lambda j=judge, i=pair, p=paths: j(i, p)

    def run(self, paths, *options):
        return self.program.document(
            self.program.run("metrics", "--json", "-", "--quiet", *options, *paths))

    @staticmethod
    def same(wrong, what, found, expected):
        if found != expected:
            wrong.append("%s: expected %r, found %r" % (what, expected, found))

    def verdict(self, wrong, run, expected):
        """The overall verdict and its exit code."""
        code, document, _ = run
        self.same(wrong, "verdict", document["verdict"], expected)
        self.same(wrong, "exit", code, {"match": 0, "differ": 1, "invalid": 2}[expected])

    def metrics(self, wrong, document, expected, mode):
        found = {metric["name"]: metric for metric in document["metrics"]}
        for name, metric in expected.items():
            if name not in found:
                wrong.append("%s: not in the report" % name)
                continue
            one, exact = found[name], metric["exact"]
            self.same(wrong, name + ": steps", one["steps"], metric["steps"])
            self.same(wrong, name + ": missing", one["missing_in_b"][:3], metric["missing_in_b"])
            self.same(wrong, name + ": extra", one["extra_in_b"], metric["extra_in_b"])
            for key in ("first_mismatch_step", "mismatches"):
                self.same(wrong, "%s: %s" % (name, key), one[key], exact[key])
            if mode == "exact":
                self.same(wrong, name + ": verdict", one["verdict"] == "match", exact["match"])
            elif "approx" in metric:
                self.approximate(wrong, name, one, metric["approx"])

    def approximate(self, wrong, name, one, expected):
        self.same(wrong, name + ": approx", one["verdict"] == "match", expected["match"])
        for key in ("first_outside_step", "outside", "allowed_outside", "rtol", "median_a", "median_b"):
            if key in expected:
                self.same(wrong, "%s: %s" % (name, key), one[key], expected[key])

    def tensorboard(self, pair, paths):
        wrong = []
        damaged = any(pair["read_errors"].values())
        run = self.run(paths)
        if run[1] is None:
            return [run[2]]
        self.verdict(wrong, run, "invalid" if damaged else "match" if pair["match"] else "differ")
        self.metrics(wrong, run[1], pair["metrics"], "exact")
        for key in ("only_in_a", "only_in_b", "first_mismatch"):
            self.same(wrong, key, run[1][key], pair[key])
        for faults in pair["read_errors"].values():
            for name, text in faults.items():
                error = run[1]["error"]
                self.same(wrong, "file", os.path.basename(error["file"]), name)
                self.same(wrong, "offset", error["offset"], int(text.split()[-1]))
        if "first_mismatch_last_wins" in pair:
            loss = next(m for m in run[1]["metrics"] if m["name"] == "lm loss")
            self.same(wrong, "last wins", loss["first_mismatch_last_wins"],
                      pair["first_mismatch_last_wins"])
        if pair.get("match_after_round5"):
            self.same(wrong, "at five decimals",
                      all(m["match_after_round5"] for m in run[1]["metrics"]
                          if m["name"] not in self.TIMES), True)
        self.metrics(wrong, self.run(paths, "--mode", "approx")[1], pair["metrics"], "approx")
        return wrong

    def golden(self, pair, paths):
        wrong = []
        exact = self.run(paths)
        if exact[1] is None:
            return [exact[2]]
        if "metrics" not in pair:
            self.verdict(wrong, exact, "invalid")
            return wrong
        metrics = json.loads(json.dumps(pair["metrics"]))
        if pair.get("strict_match") is False:  # NaN and Inf are told apart
            metrics["lm loss"]["exact"] = {"match": False, "first_mismatch_step": 7, "mismatches": 1}
        judged = {name: metric["exact"]["match"] for name, metric in metrics.items()
                  if name not in self.TIMES}
        good = all(judged.values()) and not pair["only_in_a"]
        self.verdict(wrong, exact, "match" if good else "differ")
        self.metrics(wrong, exact[1], metrics, "exact")
        approximate = self.run(paths, "--mode", "approx")
        self.metrics(wrong, approximate[1], metrics, "approx")
        good = all(metric["approx"]["match"] for metric in metrics.values()) and not pair["only_in_a"]
        self.verdict(wrong, approximate, "match" if good else "differ")
        for key in ("only_in_a", "only_in_b"):
            self.same(wrong, key, exact[1][key], pair[key])
        return wrong

    def logs(self, pair, paths):
        wrong = []
        run = self.run(paths)
        if run[1] is None:
            return [run[2]]
        good = pair["first_mismatch"] is None and not pair["missing_in_b"]
        cut = "middle of the line" in pair["note"]
        self.verdict(wrong, run, "invalid" if cut else "match" if good else "differ")
        differing = [m for m in run[1]["metrics"] if m["values_differ"] and m["verdict"] == "differ"]
        first = min((m["first_mismatch_step"] for m in differing), default=None)
        found = first and {"step": first, "metrics": [
            m["name"] for m in differing if m["first_mismatch_step"] == first]}
        self.same(wrong, "first", found, pair["first_mismatch"])
        loss = next(m for m in run[1]["metrics"] if m["name"] == "lm loss")
        self.same(wrong, "missing", loss["missing_in_b"], pair["missing_in_b"])
        self.same(wrong, "iterations", loss["steps"], pair["iterations"][0])
        self.same(wrong, "at printed precision", loss["printed_precision"], True)
        return wrong


def metrics_set(program, corpus):
    return Metrics(program, os.path.join(corpus, "metrics")).cases()


def lint_set(program, corpus):
    """Settings of runs: every finding, with severity, subject, value and what to write instead."""
    folder = os.path.join(corpus, "lint")

    def key(finding):
        return json.dumps([finding[name] for name in ("rule", "severity", "subject", "value", "fix")])

    def judge(case, options):
        paths = [os.path.join(folder, name) for name in case["inputs"]]
        code, document, complaint = program.document(
            program.run("lint", "--json", "-", "--quiet", *options, *paths))
        if document is None:
            return [complaint]
        wrong = []
        found = sorted(map(key, document["findings"]))
        for finding in sorted(map(key, case["findings"])):
            if finding in found:
                found.remove(finding)
            else:
                wrong.append("not found: %s" % finding)
        wrong += ["not expected: %s" % finding for finding in found]
        if document["verdict"] != case["verdict"] or code != (case["verdict"] == "fail"):
            wrong.append("verdict %s, exit %s; expected %s" % (document["verdict"], code, case["verdict"]))
        return wrong

    for name, case in sorted(load_json(os.path.join(folder, "expected.json")).items()):
        yield name, lambda i=case: judge(i, ())
        yield name + ", said", lambda i=case: judge(i, ("--rules", i["profile"]))


def whole_corpus(program, corpus):
    folder = os.path.join(corpus, "megatron")
    checkpoints = load_yaml(os.path.join(folder, "manifest.yaml"))["checkpoints"]
    cache = {}

    def truth_of(name):
        if name not in cache:
            cache[name] = load_json(os.path.join(folder, "truth", name + ".json"))
        return cache[name]

    return Megatron(program, folder, checkpoints, truth_of)


def bits_document(program, *arguments):
    result = program.run("bits", "--json", "-", *arguments)
    return Program.document(result)


def resume_set(program, corpus):
    """Pairs of unbroken and resumed runs: verdict, groups, first differences, what is ignored."""
    folder = os.path.join(corpus, "resume")

    def differences(row, document):
        found = {item["path"]: item for item in document["differences"]}
        for wanted in row["differences"]:
            item = found.get("/".join(map(str, wanted["path"])))
            first = wanted.get("first", {})
            if item is None:
                continue  # flattened keys are not taken apart, and ranks are left out together
            if "a_bits" in first:
                seen = (item["a"], item["b"], item["index"], item["different_elements"])
                right = (first["a_bits"], first["b_bits"], first["index"],
                         wanted["differing_elements"])
            elif "a" in first:
                seen, right = (item["a"], item["b"]), (first["a"], first["b"])
            else:
                continue
            if seen != right:
                yield "%s: expected %s, found %s" % (item["path"], right, seen)

    def pair(row):
        code, document, complaint = bits_document(
            program, os.path.join(folder, row["a"]), os.path.join(folder, row["b"]))
        if document is None:
            return [complaint]
        wrong = list(differences(row, document))
        groups = sorted(g["name"] for g in document["groups"] if g["verdict"] != "identical")
        expected = EXIT_DIFFERENT if row["expect"] == "differs" else EXIT_CONSISTENT
        for what, seen, right in (
                ("verdict", document["verdict"], row["expect"]), ("exit", code, expected),
                ("groups", groups, sorted(row["groups"])),
                ("ignored", document["ignored"], sorted(row["ignored"]))):
            if seen != right:
                wrong.append("%s: expected %s, found %s" % (what, right, seen))
        return wrong

    for row in load_yaml(os.path.join(folder, "manifest.yaml"))["pairs"]:
        yield row["name"], lambda row=row: pair(row)


def bits_self_set(program, corpus):
    """Every readable checkpoint against itself; those of one state in other layouts and forms."""

    def same(path, other, verdicts):
        code, document, complaint = bits_document(program, path, other)
        if document is None:
            return [complaint]
        if code != EXIT_CONSISTENT or document["verdict"] not in verdicts:
            return ["%s: %s" % (document["verdict"], document["summary"])]
        return []

    def itself(path):
        if program.run("ls", path).returncode == EXIT_TROUBLE:
            raise Skip  # not read at all
        return same(path, path, ["identical"])

    for name in ("torch", "megatron", "megatron_wgrads", "npu"):
        folder = os.path.join(corpus, name)
        for entry in sorted(os.listdir(folder)):
            if os.path.isdir(os.path.join(folder, entry)) and entry != "truth":
                path = os.path.join(folder, entry)
                yield "%s %s" % (name, entry), lambda path=path: itself(path)
    npu = os.path.join(corpus, "npu")
    for row in load_yaml(os.path.join(npu, "manifest.yaml"))["checkpoints"]:
        other = row.get("bitwise_equal_to")
        if other and row["expect"] != "unreadable":
            yield "npu %s %s" % (row["name"], other), lambda row=row, other=other: same(
                os.path.join(npu, other), os.path.join(npu, row["name"]),
                ["identical", "identical_except_layout"])


SETS = {
    "megatron": lambda program, corpus: whole_corpus(program, corpus).against_base(),
    "megatron_ls": lambda program, corpus: whole_corpus(program, corpus).listings(),
    "megatron_families": lambda program, corpus: whole_corpus(program, corpus).families(),
    "megatron_threads": lambda program, corpus: whole_corpus(program, corpus).threads(),
    "fit": lambda program, corpus: whole_corpus(program, corpus).fits(),
    "torch": torch_set,
    "npu": npu_set,
    "megatron_wgrads": wgrads_set,
    "hostile": hostile_set,
    "metrics": metrics_set,
    "resume": resume_set,
    "bits_self": bits_self_set,
    "lint": lint_set,
    "traces": traces_set,
}


def shipped_sets(program, folder):
    checkpoints = load_json(os.path.join(folder, "manifest.json"))["checkpoints"]
    truth = load_json(os.path.join(folder, "truth.json"))
    samples = Megatron(program, folder, checkpoints, truth.__getitem__)
    npu, wgrads = (os.path.join(folder, "..", name) for name in ("npu", "wgrads"))
    npu_rows, dumps = (load_json(os.path.join(place, "manifest.json")) for place in (npu, wgrads))
    npu_truth, dump_truth = (load_json(os.path.join(place, "truth.json")) for place in (npu, wgrads))
    return {"against_base": samples.against_base(), "ls": samples.listings(),
            "families": samples.families(), "threads": samples.threads(), "fit": samples.fits(),
            "npu": npu_cases(program, npu, npu_rows["checkpoints"], npu_truth),
            "wgrads": Dumps(program, wgrads, dumps["dumps"], dump_truth).cases()}


def run_set(name, cases, verbose):
    """Run the cases, print complaints and the count; return the number that failed."""
    passed = failed = skipped = 0
    for case, check in cases:
        try:
            wrong = check()
        except Skip:
            skipped += 1
            continue
        if wrong:
            failed += 1
            for text in wrong if verbose else wrong[:3]:
                print("FAIL %s: %s: %s" % (name, case, text))
            if len(wrong) > 3 and not verbose:
                print("FAIL %s: %s: and %d more" % (name, case, len(wrong) - 3))
        else:
            passed += 1
    print("%s: %d passed, %d failed" % (name, passed, failed))
    if skipped:
        print("%s: %d skipped (not read by this version)" % (name, skipped))
    sys.stdout.flush()
    return failed, passed + failed


def main():
    parser = argparse.ArgumentParser(description="Run gradcmp over sample checkpoints.")
    parser.add_argument("--program", required=True)
    parser.add_argument("--corpus")
    parser.add_argument("--shipped")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; may be repeated")
    parser.add_argument("--verbose", action="store_true", help="print every complaint")
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        sys.exit("corpus.py: %s: no such program; build it first" % options.program)
    program = Program(options.program)
    if options.shipped:
        sets = shipped_sets(program, options.shipped)
    elif options.corpus:
        sets = {name: make(program, options.corpus) for name, make in SETS.items()}
    else:
        parser.error("say --corpus or --shipped")
    unknown = set(options.sets or ()) - set(sets)
    if unknown:
        parser.error("no such set: %s" % ", ".join(sorted(unknown)))
    counts = [run_set(name, cases, options.verbose) for name, cases in sets.items()
              if not options.sets or name in options.sets]
    if sum(ran for _, ran in counts) == 0:
        sys.exit("corpus.py: nothing was run")
    sys.exit(1 if any(failed for failed, _ in counts) else 0)


if __name__ == "__main__":
    main()
