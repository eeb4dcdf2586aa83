#!/bin/sh
# From a fresh checkout to the first two answers: build the program, compare a good pair of the
# shipped checkpoints, then one with a fault.
#
#   examples/quickstart.sh
#
# On Debian and Ubuntu it installs with apt-get what is missing, and needs no network otherwise.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build/quickstart
data=$root/tests/data/megatron
. "$root/tests/packages.sh"

say() { printf '\n%s\n' "$*"; }

say "1. Build the program (Release, without the tests) in build/quickstart."
need_build_packages
install_missing
if [ -f "$build/CMakeCache.txt" ] &&
    ! grep -q -x -F "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    rm -rf "$build" # left from before the checkout was moved
fi
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGRADCMP_BUILD_TESTS=OFF >/dev/null
cmake --build "$build" -j "$(getconf _NPROCESSORS_ONLN)" --target gradcmp -- -s
gradcmp=$build/gradcmp

# answer EXPECTED_EXIT BASELINE CANDIDATE: run it and check the exit code.
answer() {
    expected=$1
    shift
    printf '\n$ gradcmp %s %s\n\n' "$1" "$2"
    code=0
    (cd "$data" && "$gradcmp" "$1" "$2") || code=$?
    printf '\n(exit code %s)\n' "$code"
    if [ "$code" -ne "$expected" ]; then
        echo "quickstart.sh: expected exit code $expected" >&2
        exit 1
    fi
}

say "2. A good pair. Both checkpoints are of the same training step of the same model; s_base was
   written by one rank, tp2dp2 by two tensor-parallel times two data-parallel ranks. The gradients
   differ by rounding only."
answer 0 s_base tp2dp2
say "   How to read it: the head says what was recognised on each side, and the bound that a
   difference must stay under, which grows with the distance from the loss. Below it, layers
   follow in backward order, from the loss down, with the worst difference of each as a fraction
   of its bound. The last line is the answer; the exit code 0 says the same to a script."

say "3. A faulty pair. bug_double_layer1 comes from a run in which the gradient of one layer
   (index 1 in the names, so layer 2 counted from the input) was added twice."
answer 1 s_base bug_double_layer1
say "   The layers above the fault pass. The onset is the first layer hit in backward order: this
   is where to look. 'alpha' near 2 says how: the gradient is twice what it should be."

say "Next: the same on your checkpoints:  $gradcmp BASELINE CANDIDATE
   What is in one of them:              $gradcmp ls --stats CHECKPOINT
   For scripts:                         $gradcmp --json - BASELINE CANDIDATE"
