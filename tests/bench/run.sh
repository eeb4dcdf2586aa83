#!/bin/sh
# Builds the benchmarks and runs them. Nothing here is a test: it passes or fails nothing.
#
#   tests/bench/run.sh [FOLDER [MIB]]                files of MIB each (default 512) are made in FOLDER
#   tests/bench/run.sh --pair BASELINE CANDIDATE     end to end, on checkpoints of yours
#
# The figures are ratios taken in one run, interleaved, medians of 7. Leave the machine alone
# meanwhile; "best of each" is what remains of a disturbed run. The first form measures kernels (beside
# a plain loop and their arithmetic) and the engine (beside readers of the same extents, for 1 thread
# and more, split by rows and by columns). The second compares the whole program with readlimit, which
# reads what it reads: warm, that is with the files in memory already, and past the page cache.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=${GRADCMP_BENCH_BUILD:-${TMPDIR:-/tmp}/gradcmp-bench-build}
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" -j "$(getconf _NPROCESSORS_ONLN)" \
    --target gradcmp bench_kernels bench_engine readlimit >/dev/null

if [ "${1-}" = --pair ]; then
    exec python3 "$root/tests/bench/end_to_end.py" --program "$build/gradcmp" \
        --readlimit "$build/tests/readlimit" "$2" "$3"
fi
folder=${1:-${TMPDIR:-/tmp}/gradcmp-bench}
mkdir -p "$folder"
"$build/tests/bench_kernels"
"$build/tests/bench_engine" "$folder" "${2:-512}"
