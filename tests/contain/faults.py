"""Let one call of the program fail after another, and look at how it ends.

    faults.py --program PATH --shim fault_shim.so --data tests/data [--all | --short] [--only KIND/COMMAND]

Each command of COMMANDS runs once undisturbed; then again and again, and in run n the nth call of a
kind fails (see fault_shim.c). A run must end as the undisturbed one did, with the same output, or
with exit 2, one line that names the reason, and no file left. Without --all not every n is tried but
the first 40 and then steps of 15 %; with --short, which ctest takes, still fewer, and of SHORT alone.
Exit 77: the shim cannot work here.
"""
import argparse
import concurrent.futures
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile

REPORTS = ["--json", "r.json", "--html", "r.html", "--junit", "r.xml", "--markdown", "r.md"]
PAIR = ["megatron/s_base", "megatron/bug_double_layer1"]
COMMANDS = {
    "compare": REPORTS + ["--threads", "1"] + PAIR,
    "good": ["--threads", "1", "megatron/s_base", "megatron/tp2dp2"],
    "map": ["--threads", "1", "--map", "../map.yaml", "megatron/s_base", "megatron/tp2dp2"],
    "ls": ["ls", "--json", "r.json", "--stats", "torch_save/fsdp2"],
    "zarr": ["ls", "--stats", "zarr/zarr2_zstd"],
    "zarr3": ["ls", "zarr/zarr3"],
    "blosc": ["ls", "--stats", "zarr/zarr2_blosc"],
    "safetensors": ["ls", "--stats", "safetensors/sharded"],
    "deepspeed": ["check", "deepspeed/stage3"],
    "hdf5": ["ls", "--stats", "hdf5/bf16_custom.h5"],
    "check": ["check", "--junit", "r.xml", "--threads", "1", "megatron/tp2dp2"],
    "extract": ["extract", "--state", "exp_avg", "megatron/tp2dp2", "-o", "x.safetensors"],
    "extract_hdf5": ["extract", "--state", "exp_avg", "megatron/tp2dp2", "-o", "x.h5"],
    "fit": ["fit", "-o", "fit.yaml", "--json", "r.json", "--threads", "1", "megatron/s_base",
            "megatron/tp2dp2"],
    "bits": ["bits", "--html", "r.html", "--threads", "1", "resume/run_a", "resume/run_b"],
    "hash": ["bits", "--hash", "h.json", "--threads", "1", "resume/a.pt"],
    "sweep": ["sweep", "--plan", "../plan.yaml"],
    "runs": ["sweep", "--threads", "1", "--iteration", "1", "--baseline", "tp1/iter_0000001",
             "gathered/."],
    "metrics": ["metrics", "--json", "r.json", "metrics/a", "metrics/ulp"],
    "lint": ["lint", "--markdown", "r.md", "../launch.sh", "../settings.yaml", "../settings.json"],
    "trace": ["trace", "--html", "r.html", "../traces_a", "../traces_b"],
    "config": ["--config", "../config.yaml", "megatron/s_base", "megatron/tp2dp2"],
}
SHORT = ["compare", "map", "ls", "hdf5", "extract", "fit", "bits", "hash", "sweep"]
FILES = {
    "plan.yaml": "baseline: data/megatron/s_base\ncandidates:\n  - data/megatron/tp2dp2\n",
    "map.yaml": "rules:\n  - rename: (.*)layers(.*)\n    to: \\1blocks\\2\n"
                "  - layer: .*blocks\\.([0-9]+)\\..*\n    index: \\1\n",
    "config.yaml": "threads: 1\nstrict: true\n",
    "settings.yaml": "ENV_VARS:\n  NCCL_ALGO: Ring\nMODEL_ARGS:\n  --deterministic-mode: true\n",
    "settings.json": '{"deterministic_mode": true, "seed": 1234}',
    "launch.sh": "export NCCL_ALGO=Ring\nCUBLAS_WORKSPACE_CONFIG=:4096:8 torchrun train.py "
                 "--deterministic-mode --seed 1\n",
}
OPERATION = ('{"schema_version":1,"seq":%d,"rank":0,"iteration":1,"kind":"op","name":"op%d","payload":'
             '{"id":"op%d:1","scope":"layers.%d","phase":"forward","microbatch":0,"in":[],"out":['
             '{"shape":[2],"dtype":"float32","numel":2,"digest":"%s"}]}}\n')

# A nested archive is laid into memory, which may fail as a disk does.
NO_ROOM = "no room for an object inside of an object"

# kind: (variables, what exit 2 must name; "" where nothing may change at all)
KINDS = {
    "alloc": ("ALLOC", {}, ["memory"]),
    "alloc_all": ("ALLOC", {"plus": True}, ["memory"]),
    "read_error": ("READ", {"FAULT_ERRNO": errno.EIO},
                   ["nput/output error", "cannot be read", "the helper"]),
    "read_short": ("READ", {"FAULT_KIND": "short"}, None),
    "read_interrupted": ("READ", {"FAULT_KIND": "interrupt"}, None),
    "open_emfile": ("OPEN", {"FAULT_ERRNO": errno.EMFILE}, ["oo many open files", "temporary file", "helper"]),
    "open_eio": ("OPEN", {"FAULT_ERRNO": errno.EIO}, ["nput/output error", "temporary file", "helper"]),
    "write_enospc": ("WRITE", {"FAULT_ERRNO": errno.ENOSPC}, ["No space left on device", NO_ROOM]),
    "write_edquot": ("WRITE", {"FAULT_ERRNO": errno.EDQUOT}, ["Disk quota exceeded", NO_ROOM]),
    "write_epipe": ("WRITE", {"FAULT_ERRNO": errno.EPIPE}, ["Broken pipe", NO_ROOM]),
    "flush_enospc": ("FLUSH", {"FAULT_ERRNO": errno.ENOSPC}, ["No space left on device", NO_ROOM]),
    "flush_edquot": ("FLUSH", {"FAULT_ERRNO": errno.EDQUOT}, ["Disk quota exceeded", NO_ROOM]),
    "signal_int": ("SIGNAL", {"FAULT_KIND": signal.SIGINT.value}, ["interrupted"]),
}


class Runner:
    def __init__(self, options):
        self.options = options
        self.base = tempfile.mkdtemp()
        for name, text in FILES.items():
            with open(os.path.join(self.base, name), "w") as file:
                file.write(text)
        os.symlink(os.path.abspath(options.data), os.path.join(self.base, "data"))
        for side, last in (("traces_a", "a"), ("traces_b", "b")):
            os.mkdir(os.path.join(self.base, side))
            with open(os.path.join(self.base, side, "rank00000_iter000001.jsonl"), "w") as file:
                for i in range(6):
                    file.write(OPERATION % (i, i, i, i, ("a" if i < 4 else last) * 16))

    def run(self, arguments, variables):
        """(code, standard output, standard error, {file: content}, counts) of one run."""
        folder = tempfile.mkdtemp(dir=self.base)
        counts = os.path.join(self.base, os.path.basename(folder) + ".counts")
        data = os.path.join(self.base, "data")
        paths = [os.path.join(data, a) if "/" in a and os.path.exists(os.path.join(data, a)) else a
                 for a in arguments]
        environment = dict(os.environ, LC_ALL="C", TERM="dumb", FAULT_COUNTS=counts,
                           LD_PRELOAD=os.path.abspath(self.options.shim), TMPDIR=folder,
                           ASAN_OPTIONS="verify_asan_link_order=0:allocator_may_return_null=1")
        environment.update({name: str(value) for name, value in variables.items()})
        done = subprocess.run([os.path.abspath(self.options.program)] + paths, cwd=folder, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment)
        files = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
        shutil.rmtree(folder)
        found = {}
        if os.path.exists(counts):
            with open(counts) as file:
                found = {line.split()[0]: int(line.split()[1]) for line in file}
            os.remove(counts)
        return (done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"), files, found)


def schedule(count, options):
    dense, percent = (8, 60) if options.short else (40, 15)
    n = 1
    while n <= count:
        yield n
        n += 1 if options.all or n < dense else max(1, n * percent // 100)


def judge(plain, disturbed, reasons):
    """What is wrong with a run, or None."""
    code, out, err, files, _ = disturbed
    if code == plain[0] and out == plain[1] and files == plain[3] and err == plain[2]:
        return None
    if reasons is None:
        return "differs from the undisturbed run"
    if code < 0 or code not in (2, 130):
        return "exit %d, undisturbed %d" % (code, plain[0])
    if any(name.endswith(".tmp") or "gradcmp-" in name for name in files):
        return "left %s" % ", ".join(sorted(files))
    # One line for each thing that failed; what evidence is made of is told in the report.
    told = [line for line in out.decode("utf-8", "replace").splitlines() if "rror: " in line or line.startswith("INVALID: ")]
    lines = err.splitlines()
    if not lines + told or not all(line.startswith("gradcmp: ") for line in lines):
        return "%d lines on standard error" % len(lines)
    for line in lines or told:
        if not any(reason in line for reason in reasons):
            return "another reason"
    for name, content in files.items():
        if not content or (name in plain[3] and name != "r.json" and len(content) < 30):
            return "a cut %s" % name
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="/")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    only_kind, only_command = options.only.split("/")
    runner = Runner(options)
    failed = runs = 0
    try:
        for command, arguments in COMMANDS.items():
            if only_command not in ("", command) or options.short and command not in SHORT:
                continue
            plain = runner.run(arguments, {})
            if not plain[4]:
                print("%s: the shim is not at work here: a static sanitizer?" % command)
                sys.exit(77)
            if plain[0] not in (0, 1):
                print("%s: undisturbed, exit %d: %s" % (command, plain[0], plain[2]))
                failed += 1
                continue
            for kind, (what, variables, reasons) in KINDS.items():
                if only_kind not in ("", kind):
                    continue
                plus = "+" if "plus" in variables else ""
                given = {k: v for k, v in variables.items() if k != "plus"}
                with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                    numbers = list(schedule(plain[4][what], options))
                    results = pool.map(lambda n: runner.run(arguments, dict(
                        given, **{"FAULT_" + what: "%d%s" % (n, plus)})), numbers)
                    told = 0
                    for n, disturbed in zip(numbers, results):
                        runs += 1
                        wrong = judge(plain, disturbed, reasons)
                        if wrong:
                            failed += 1
                            told += 1
                            if told <= 5:
                                print("%s %s %d: %s: exit %d: %s" % (
                                    command, kind, n, wrong, disturbed[0], disturbed[2].strip()))
                    if told > 5:
                        print("%s %s: %d of %d runs wrong" % (command, kind, told, len(numbers)))
    finally:
        shutil.rmtree(runner.base)
    print("%d runs, %d wrong" % (runs, failed))
    sys.exit(1 if failed or not runs else 0)


if __name__ == "__main__":
    main()
