"""Rates of the whole program beside readlimit, which reads the same extents and throws them away.

    end_to_end.py --program PATH --readlimit PATH BASELINE CANDIDATE

Prints medians of the ratios of 7 interleaved rounds: rates of reading, by the clock and by the time
that processors spent (what remains comparable on a machine that others use too); all threads against
one; and the peak of memory.
"""
import argparse
import os
import re
import statistics
import subprocess
import time

ROUNDS = 7


def run(command):
    """(seconds by the clock, seconds of processors, peak KiB, standard output) of a command."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    clock = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit("end_to_end.py: failed: " + " ".join(command))
    child.returncode = 0
    return clock, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, output


def measure(options, threads, extra):
    """Rounds of (limit's clock, limit's processors, our clock, our processors, our peak)."""
    pair = ["--threads", str(threads), *extra, options.baseline, options.candidate]
    rounds = []
    for _ in range(ROUNDS):
        _, processors, _, output = run([options.readlimit, *pair])
        reading = float(re.search(r" in ([0-9.]+) s", output).group(1))
        clock, ours, peak, _ = run([options.program, "compare", "--quiet", *pair])
        rounds.append((reading, processors, clock, ours, peak))
    return rounds


def median(values):
    return statistics.median(list(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--readlimit", required=True)
    parser.add_argument("baseline")
    parser.add_argument("candidate")
    options = parser.parse_args()
    most = len(os.sched_getaffinity(0))
    clocks, peak = {}, 0
    for extra in ([], ["--direct"]):
        for threads in sorted({1, most}):
            rounds = measure(options, threads, extra)
            print("%-9s %2d thread%s  of readlimit %.2f by the clock, %.2f by processor time; %.3f s" % (
                "direct" if extra else "warm", threads, " " if threads == 1 else "s",
                median(r[0] / r[2] for r in rounds), median(r[1] / r[3] for r in rounds),
                median(r[2] for r in rounds)), flush=True)
            peak = max([peak] + [r[4] for r in rounds])
            if not extra:
                clocks[threads] = [r[2] for r in rounds]
    print("%d threads / 1 thread: %.2f; peak memory %.1f MiB" % (
        most, median(one / all_ for one, all_ in zip(clocks[1], clocks[most])), peak / 1024))


if __name__ == "__main__":
    main()
