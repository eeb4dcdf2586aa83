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

say "1. Build the program (Release, without tests and the plug-ins for CUDA and MPI) in build/quickstart;
   half a minute or so on a machine with some cores."
need_build_packages
install_missing
if [ -f "$build/CMakeCache.txt" ] &&
    ! grep -q -x -F "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    rm -rf "$build" # left from before the checkout was moved
fi
mkdir -p "$build"
log=$build/quickstart.log
if ! {
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGRADCMP_BUILD_TESTS=OFF \
        -DGRADCMP_CUDA=OFF -DGRADCMP_MPI=OFF &&
        cmake --build "$build" -j "$(getconf _NPROCESSORS_ONLN)"
} >"$log" 2>&1; then
    cat "$log" >&2
    echo "quickstart.sh: the build failed; its output is above and in $log" >&2
    exit 1
fi
gradcmp=$build/gradcmp
"$gradcmp" --version

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
say "   How to read it:
   - two columns     what each checkpoint says of itself; ! marks a setting that ought to be the
                     same and is not
   - compared        which state of the optimizer, and how much of it
   - global norm     of all gradients together, a quick look at the scale
   - computed in     the type whose rounding is allowed for, and where that was found
   - bound(l)        what a difference must stay under; it grows with the distance from the loss
   - layers          in backward order, from the loss down; the bar is the worst difference of the
                     layer as a part of its bound
   - last line       the answer, which stands alone; the exit code 0 says the same to a script"

say "3. A faulty pair. bug_double_layer1 comes from a run in which the gradient of one layer
   (index 1 in the names, so layer 2 counted from the input) was added twice."
answer 1 s_base bug_double_layer1
say "   How to read it:
   - layers          everything above layers.1 passes: the fault was made in layers.1, and is not
                     an error of the loss or of a layer nearer to it
   - failing         each parameter with its error, in units of the type's rounding (eps) too;
                     alpha 2.0 says how: the gradient is twice what it should be
   - last line       the onset, where to look first; exit code 1"

say "Next: the same on your checkpoints:  $gradcmp BASELINE CANDIDATE
   What is in one of them:              $gradcmp ls --stats CHECKPOINT
   For scripts:                         $gradcmp --json - BASELINE CANDIDATE"
