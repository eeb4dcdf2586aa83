#!/usr/bin/env python3
"""Run gradcmp under mpirun: reports are the same bytes on any number of ranks as without MPI, only
rank 0 speaks, and whatever happens to a rank ends the job with one line and the right exit status.

    ranks.py PROGRAM PLUGIN FAULT_LIBRARY DATA

PLUGIN is the path of libgradcmp_mpi.so, FAULT_LIBRARY of what fault.c makes. Exits with 77 where
there is no Open MPI (which ctest shows as skipped)."""
import glob
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import safetensors_file

SKIPPED = 77
COUNTS = (1, 2, 3, 8)
SECONDS = 300  # a job that takes longer hangs

# As root in a container, with more ranks than processors, without any network.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
       "OMPI_MCA_plm": "isolated", "OMPI_MCA_pml": "ob1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_orte_tmpdir_base": ""}


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Bench:
    """The program, with and without ranks, in a folder of its own."""

    def __init__(self, program, plugin, fault, work):
        self.program, self.plugin, self.fault, self.work = program, plugin, fault, work
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("OMPI_", "PMI", "SLURM_"))}
        os.mkdir(os.path.join(work, "mpi"))
        self.mpi = dict(MPI, OMPI_MCA_orte_tmpdir_base=os.path.join(work, "mpi"))

    def start(self, command, more, **how):
        environment = dict(self.environment, **more)
        # MPI keeps what it allocated; leaks of ours are looked for where there is none.
        if "OMPI_MCA_btl" in more:
            environment["ASAN_OPTIONS"] = "detect_leaks=0:verify_asan_link_order=0:handle_segv=0"
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)

    def end(self, process):
        try:
            out, complaint = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failed("hangs: %s" % process.args)
        return process.returncode, out, complaint

    def alone(self, *arguments, more=None):
        return self.end(self.start([self.program, *arguments], more or {}))

    def command(self, count, *arguments):
        return ["mpirun", "--quiet", "-n", str(count), self.program, *arguments]

    def ranks(self, count, *arguments, more=None, **how):
        return self.end(self.start(self.command(count, *arguments), dict(self.mpi, **(more or {})), **how))

    def with_fault(self, what):
        return {"GRADCMP_TEST_FAULT": what, "LD_PRELOAD": self.fault}


def lines(text):
    """Lines that are not empty, without what mpirun's event loop says of pipes that closed meanwhile."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("[warn] Epoll")]


def one_line(complaint, *words):
    """Exactly one line, of gradcmp, with these words in it."""
    found = lines(complaint)
    expect(len(found) == 1 and found[0].startswith("gradcmp: "), "expected one line, found: %s" % complaint)
    for word in words:
        expect(word in found[0], "expected '%s' in: %s" % (word, found[0]))


# --- checkpoints ---

def gradients(chance, shape, noise=0.0, base=None):
    """Values around 1e-3 with all bits in use; made from `base` where it is given."""
    count = 1
    for extent in shape:
        count *= extent
    if base is not None:
        values = struct.unpack("<%df" % count, base)
        raw = struct.pack("<%df" % count, *[x * (1.0 + noise * ((i * 7919 % 1009) / 1009.0 - 0.5))
                                            for i, x in enumerate(values)])
    else:
        raw = struct.pack("<%df" % count, *[chance.uniform(-1e-3, 1e-3) for _ in range(count)])
    return shape, raw


def write_large(folder):
    """A baseline and candidates with parameters that are cut between ranks, and many that are not."""
    chance = random.Random(1)
    shapes = {"embedding.word_embeddings.weight": [700, 500]}
    for layer in range(6):
        shapes["decoder.layers.%d.mlp.linear_fc1.weight" % layer] = [150 + 40 * layer, 300]
        shapes["decoder.layers.%d.mlp.linear_fc1.bias" % layer] = [17]
    base = {name: gradients(chance, shape) for name, shape in shapes.items()}
    good = {name: gradients(None, shape, 1e-6, base[name][1]) for name, (shape, _) in base.items()}
    bad = dict(good)
    name = "decoder.layers.3.mlp.linear_fc1.weight"
    count = len(base[name][1]) // 4
    doubled = [2 * x for x in struct.unpack("<%df" % count, base[name][1])]
    bad[name] = (shapes[name], struct.pack("<%df" % count, *doubled))
    paths = []
    for label, tensors in (("base", base), ("good", good), ("bad", bad)):
        paths.append(os.path.join(folder, label + ".safetensors"))
        safetensors_file.write(paths[-1], {"optimizer.state.exp_avg." + name: ("F32", shape, raw)
                                           for name, (shape, raw) in tensors.items()},
                               {"gradcmp.iteration": "1"})
    return paths


# --- the same report ---

def compare_reports(bench, label, *arguments, counts=COUNTS):
    """The same JSON, text and exit status on any number of ranks."""
    reports = [os.path.join(bench.work, name) for name in ("alone.json", "ranks.json")]
    named = [] if os.path.exists(arguments[0]) or arguments[0].startswith("-") else [arguments[0]]
    arguments = arguments[len(named):]
    status, text, complaint = bench.alone(*named, "--json=" + reports[0], *arguments)
    with open(reports[0], "rb") as file:
        expected = file.read()
    os.remove(reports[0])
    for count in counts:
        found = bench.ranks(count, *named, "--json=" + reports[1], *arguments)
        expect(found[0] == status, "%s: exit %d on %d ranks, %d without: %s" %
               (label, found[0], count, status, found[2]))
        expect(found[1] == text, "%s: other text on %d ranks: %s" % (label, count, found[1]))
        expect(found[2] == complaint, "%s: other lines on %d ranks: %s" % (label, count, found[2]))
        with open(reports[1], "rb") as file:
            expect(file.read() == expected, "%s: other JSON on %d ranks" % (label, count))
        os.remove(reports[1])
    return status


def test_fixtures(bench, data):
    megatron = os.path.join(data, "megatron")
    pairs = [(["s_base", "tp2dp2"], 0), (["s_base", "bug_double_layer1", "fr_tp2_singleton", "dr_dp2"], 1),
             (["s_base", "bug_nan_fc2_2"], 1), (["tied_base", "tied_pp2"], 0), (["moe_base", "moe_tp2ep2"], 0),
             (["s_base", "absent", "tp2dp2"], 2)]
    for i, (names, status) in enumerate(pairs):
        counts = COUNTS if i < 2 else COUNTS[i % 3 + 1:i % 3 + 2]
        paths = [os.path.join(megatron, name) for name in names]
        expect(compare_reports(bench, " ".join(names), *paths, counts=counts) == status, "%s: exit is not %d" % (names, status))


def test_large(bench, paths):
    expect(compare_reports(bench, "good", "--threads=2", paths[0], paths[1], counts=(2,)) == 0, "good pair")
    expect(compare_reports(bench, "several", "--buffers=400k", *paths) == 1, "good and bad candidate")
    expect(compare_reports(bench, "quiet", "--quiet", "--verify", paths[0], paths[2], counts=(3,)) == 1, "bad pair")


def test_other_commands(bench, data, paths):
    folder = os.path.join(bench.work, "sweep")
    os.mkdir(folder)
    for name in ("s_base", "tp2dp2", "bug_double_layer1"):
        shutil.copytree(os.path.join(data, "megatron", name), os.path.join(folder, name))
    compare_reports(bench, "sweep", "sweep", "--baseline=s_base", folder, counts=(3,))
    compare_reports(bench, "check", "check", paths[0], os.path.join(data, "megatron", "bug_nan_fc2_2"),
                    counts=(1, 3))
    compare_reports(bench, "ls", "ls", "--stats", paths[0], counts=(2,))
    compare_reports(bench, "bits", "bits", os.path.join(data, "megatron", "s_base"),
                    os.path.join(data, "megatron", "tp2dp2"), counts=(2,))
    extracted = os.path.join(bench.work, "out.safetensors")
    status, _, complaint = bench.ranks(3, "extract", "-o", extracted, os.path.join(data, "megatron", "s_base"))
    expect(status == 0 and complaint == "" and os.path.getsize(extracted) > 0, "extract: " + complaint)


# --- usage ---

def test_usage(bench, paths):
    for arguments in (["--bogus"], [paths[0]], [], [paths[0], paths[1], "--config=" + bench.work + "/none"]):
        alone, ranks = bench.alone(*arguments), bench.ranks(3, *arguments)
        expect(ranks == alone and alone[0] == 2, "%s: %s, with ranks %s" % (arguments, alone, ranks))
        one_line(ranks[2])
    expect(bench.ranks(3, "--version")[1] == bench.alone("--version")[1], "--version")
    status, _, complaint = bench.ranks(3, "--json=" + bench.work + "/no/folder.json", paths[0], paths[1])
    expect(status == 2, "a report that cannot be written: exit %d" % status)
    one_line(complaint)


# --- ranks that see something else ---

def test_views(bench, paths):
    """Each rank in a folder of its own, as with paths that are local to a node."""
    folders = [os.path.join(bench.work, "node%d" % i) for i in range(3)]
    for folder in folders:
        os.mkdir(folder)
        for source, name in ((paths[0], "a"), (paths[1], "b")):
            shutil.copy(source, os.path.join(folder, name))

    def job():
        command = ["mpirun", "--quiet"]
        for i, folder in enumerate(folders):
            command += [] if i == 0 else [":"]
            command += ["-n", "1", "-wdir", folder, bench.program, "--json=" + bench.work + "/views.json", "a", "b"]
        return bench.end(bench.start(command, bench.mpi))

    status, _, complaint = job()
    expect(status == 0 and complaint == "", "copies on each node: exit %d, %s" % (status, complaint))
    os.remove(bench.work + "/views.json")
    at = os.path.join(folders[2], "b")

    def refused(*words):
        status, out, complaint = job()
        expect(status == 2 and out == "", "exit %d, %s" % (status, out))
        one_line(complaint, *words)
        expect(not os.path.exists(bench.work + "/views.json"), "a report was written")

    shutil.copy(paths[2], at)  # of the same size and shapes
    refused("rank 2", "other files")
    with open(at, "r+b") as file:
        file.truncate(os.path.getsize(at) - 4)
    refused("rank 2")
    os.remove(at)
    refused("rank 2", "b: ")
    shutil.copy(paths[1], at)
    os.remove(os.path.join(folders[1], "a"))
    refused("rank 1", "a: ")


# --- ranks that fail ---

def test_failures(bench, paths):
    for rank in (0, 1, 2):
        status, out, complaint = bench.ranks(3, *paths[:2], more=bench.with_fault("%d:eio:2" % rank))
        expect(status == 2 and out == "", "read error on rank %d: exit %d, %s" % (rank, status, out))
        one_line(complaint, "safetensors", "input/output error")
    status, out, complaint = bench.ranks(3, *paths, more=bench.with_fault("1:eio:2"))
    expect(status == 2, "read error with two candidates: exit %d" % status)
    for rank, nth in ((1, 1), (2, 2), (0, 3)):
        status, out, complaint = bench.ranks(3, *paths[:2], more=bench.with_fault("%d:kill:%d" % (rank, nth)))
        expect(status == 2 and out == "", "rank %d killed: exit %d, %s" % (rank, status, out))
        one_line(complaint, "rank %d" % rank, "signal 9")
    status, out, complaint = bench.ranks(2, *paths[:2], more=bench.with_fault("1:crash:2"))
    expect(status == 2 and out == "", "rank crashed: exit %d, %s" % (status, out))
    one_line(complaint, "rank 1", "signal 11")


def processes_of(job):
    """Pids of what a process started, by /proc."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == job:
            pid = int(path.split("/")[2])
            found += [pid] + processes_of(pid)
    return found


def is_running(pid):
    """Whoever takes in the children of a process that ended may be slow to ask how they did."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_interrupts(bench, paths):
    mark, report = os.path.join(bench.work, "mark"), os.path.join(bench.work, "interrupts.json")
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        more = dict(bench.mpi, GRADCMP_TEST_MARK=mark, **bench.with_fault("all:hang:1"))
        process = bench.start(bench.command(3, "--buffers=400k", "--threads=1", "--json=" + report, *paths), more)
        until = time.monotonic() + SECONDS
        while not os.path.exists(mark):
            expect(process.poll() is None and time.monotonic() < until, "no rank reads")
            time.sleep(0.02)
        started = processes_of(process.pid)
        process.send_signal(signal_number)
        found = bench.end(process)
        # mpirun of Open MPI 4 exits with 1 of its own accord, and may end the ranks before they say a word.
        expect(found[0] != 0, "signal %d: exit 0" % signal_number)
        expect(found[1] == "" and not os.path.exists(report), "signal %d: a report: %s" % (signal_number, found[1]))
        expect(lines(found[2]) in ([], ["gradcmp: interrupted"]), "signal %d: %s" % (signal_number, found[2]))
        expect(len(started) >= 6, "only %s were started" % started)
        until = time.monotonic() + SECONDS
        while any(is_running(pid) for pid in started):
            expect(time.monotonic() < until, "some of %s are left" % started)
            time.sleep(0.05)
        os.remove(mark)


# --- launchers without a plug-in ---

def test_launchers(bench, paths):
    folder = os.path.join(bench.work, "plain")
    os.mkdir(folder)
    for library in glob.glob(os.path.join(os.path.dirname(bench.program), "libgradcmp.so*")):
        shutil.copy(library, folder, follow_symlinks=False)
    plain = {"LD_LIBRARY_PATH": folder}
    report = os.path.join(bench.work, "launchers.json")
    arguments = ["--json=" + report, *paths[:2]]
    for more in ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, {"PMI_RANK": "0", "PMI_SIZE": "2"},
                 {"PMIX_RANK": "0"}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"},
                 {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}):
        status, out, complaint = bench.alone(*arguments, more=dict(plain, **more))
        expect(status == 2 and out == "" and not os.path.exists(report), "%s: exit %d" % (more, status))
        one_line(complaint, "libgradcmp_mpi.so")
    for more in ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, {},
                 {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "GRADCMP_RANKS": "off"},
                 {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}):
        status, _, complaint = bench.alone(*arguments, more=dict(plain, **more))
        expect(status == 0 and complaint == "", "%s: exit %d, %s" % (more, status, complaint))
        os.remove(report)
    status, out, complaint = bench.ranks(3, *arguments, more=plain)
    expect(status == 2 and out == "" and not os.path.exists(report), "no plug-in: exit %d" % status)
    one_line(complaint, "libgradcmp_mpi.so")
    # A launcher of another MPI: each process believes to be the only one.
    status, out, complaint = bench.alone(*arguments, more=dict(bench.mpi, PMI_RANK="0", PMI_SIZE="2"))
    expect(status == 2 and out == "" and not os.path.exists(report), "other launcher: exit %d" % status)
    one_line(complaint, "started 2 processes")


def is_open_mpi():
    if shutil.which("mpirun") is None:
        return False
    found = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    return "Open MPI" in found


def main():
    program, plugin, fault, data = sys.argv[1:5]
    if not os.path.exists(plugin) or not is_open_mpi():
        print("skipped: no mpirun of Open MPI, or the plug-in was not built")
        return SKIPPED
    only = sys.argv[5:]
    with tempfile.TemporaryDirectory(prefix="gmpi") as work:
        bench = Bench(os.path.abspath(program), plugin, os.path.abspath(fault), work)
        paths = write_large(work)
        tests = {"fixtures": lambda: test_fixtures(bench, data), "large": lambda: test_large(bench, paths),
                 "commands": lambda: test_other_commands(bench, data, paths),
                 "usage": lambda: test_usage(bench, paths), "views": lambda: test_views(bench, paths),
                 "failures": lambda: test_failures(bench, paths),
                 "interrupts": lambda: test_interrupts(bench, paths),
                 "launchers": lambda: test_launchers(bench, paths)}
        failed = 0
        for name, test in tests.items():
            if only and name not in only:
                continue
            try:
                test()
                print("%s: ok" % name, flush=True)
            except (Failed, OSError) as failure:
                print("%s: %s" % (name, failure), flush=True)
                failed = 1
        return failed


if __name__ == "__main__":
    sys.exit(main())
