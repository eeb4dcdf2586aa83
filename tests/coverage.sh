#!/bin/sh
# What the tests reach: line and branch coverage of formats/ and unshard/, by file, over all of ctest.
#
#   tests/coverage.sh [CTEST_OPTION]...      e.g. tests/coverage.sh -L unit
#
# Builds with gcc --coverage in build-coverage/, runs ctest there and has gcovr (installed where it
# is missing, on Debian and Ubuntu) count. What runs in a sandbox or under a limit on files writes no
# counts (tests/contain/counted_exit.c), so that src/h5helper is not counted. build-coverage/report.txt
# lists lines and branches. Fails where a test does.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build-coverage
# shellcheck source=tests/packages.sh
. "$root/tests/packages.sh"

need_build_packages
need_library cmocka libcmocka-dev
need_command gcovr gcovr
install_missing
jobs=${GRADCMP_JOBS:-$(getconf _NPROCESSORS_ONLN)}
# How a program writes its counts at its end, see there.
mkdir -p "$build"
gcc -O1 -fPIC -DCOUNTS_FOLDER="\"$build\"" -c "$root/tests/contain/counted_exit.c" -o "$build/counted_exit.o"
# -O0: a branch of the source is one of the machine. Counters are atomic, since threads share them.
cmake -S "$root" -B "$build" -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DGRADCMP_HARDENING=OFF \
    -DCMAKE_C_FLAGS="-O0 --coverage -fprofile-update=atomic" -DCMAKE_CXX_FLAGS=--coverage \
    -DCMAKE_EXE_LINKER_FLAGS="$build/counted_exit.o -ldl" -DGRADCMP_CUDA=OFF -DGRADCMP_TEST_ARENA=ON >/dev/null
cmake --build "$build" -j "$jobs" >/dev/null
find "$build" -name '*.gcda' -exec rm -f {} +
failed=no
export GRADCMP_COUNTED=1
ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@" >"$build/ctest.txt" || failed=yes
# What one folder's objects counted. Processes that are killed leave counts that gcov cannot add up.
count() { # FOLDER GCOVR_OPTION...
    folder=$1
    shift
    gcovr --root "$root" --object-directory "$build" --gcov-executable gcov --filter "$root/$folder/" \
        --exclude-unreachable-branches --gcov-ignore-parse-errors -j "$jobs" "$@" \
        "$build/CMakeFiles/part_$folder.dir" 2>>"$build/gcovr.txt"
}
for folder in formats unshard; do
    echo "$folder: lines"
    count "$folder" --txt "$build/$folder.lines.txt" --json "$build/$folder.json" --print-summary
    cat "$build/$folder.lines.txt"
    echo "$folder: branches"
    count "$folder" --branches --txt "$build/$folder.branches.txt"
    cat "$build/$folder.branches.txt"
done >"$build/report.txt"
sed -n '/: \(lines\|branches\)$/p; /^lines: /p; /^branches: /p; /^TOTAL/p' "$build/report.txt"
if [ $failed = yes ]; then
    sed -n '/tests failed out of/,$p' "$build/ctest.txt"
    exit 1
fi
