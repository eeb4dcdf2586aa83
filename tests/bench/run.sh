#!/bin/sh
# Builds the benchmarks and runs them. Nothing here is a test: it passes or fails nothing.
#
#   tests/bench/run.sh [FOLDER [MIB]]     files of MIB each (default 512) are made in FOLDER
#
# The figures are ratios taken in one run, interleaved, medians of 7. Leave the machine alone
# meanwhile; "best of each" is what remains of a disturbed run.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
folder=${1:-${TMPDIR:-/tmp}/gradcmp-bench}
mib=${2:-512}
mkdir -p "$folder"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

flags="-std=gnu11 -D_GNU_SOURCE -DGRADCMP_BUILD -ffp-contract=off -I$root -I$root/src -I$root/include"
cc=${CC:-cc}
for part in base kernels engine; do
    for source in "$root"/src/$part/*.c; do
        level=-O2
        [ $part = kernels ] && level=-O3
        # shellcheck disable=SC2086
        $cc $flags $level -c "$source" -o "$out/$part-$(basename "$source" .c).o"
    done
done
libraries="-lpthread -lz -lxxhash -ldeflate -lm"
# shellcheck disable=SC2086
$cc $flags -O3 -march=native "$root/tests/bench/bench_kernels.c" "$out"/*.o $libraries -o "$out/kernels"
# shellcheck disable=SC2086
$cc $flags -O2 "$root/tests/bench/bench_engine.c" "$out"/*.o $libraries -o "$out/engine"
"$out/kernels"
"$out/engine" "$folder" "$mib"
