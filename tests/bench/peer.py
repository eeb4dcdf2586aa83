"""The part of peer.sh that runs and times both; see there."""
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 3


def run(name, command):
    """(seconds, peak MiB); prints the last line and the exit code in the first round."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = child.stdout.read().strip().splitlines()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    print("%-8s exit %d, %.3f s, peak %.0f MiB: %s" % (
        name, child.returncode, seconds, usage.ru_maxrss / 1024, lines[-1][:100] if lines else ""), flush=True)
    return seconds


def main():
    program, script, baseline, candidate = sys.argv[1:]
    ratios = []
    for _ in range(ROUNDS):
        theirs = run("script", [sys.executable, script, baseline, candidate])
        ours = run("gradcmp", [program, "compare", baseline, candidate])
        ratios.append(theirs / ours)
    print("script / gradcmp: %.1f (median of %d rounds)" % (statistics.median(ratios), ROUNDS))


if __name__ == "__main__":
    main()
