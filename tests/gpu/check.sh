#!/bin/sh
# Checks and measures the CUDA plug-in on a card: the same bits as on the processor, the kernels'
# rates against the card's peak, and the program with either device on a pair of files.
#
#   tests/gpu/check.sh [FOLDER [MIB [SIDE]]]
#
# Builds with nvcc below FOLDER (default: gradcmp-gpu in $TMPDIR), where the pair of SIDE MiB a side
# (default 4096) is made, too. MIB (default 1024) is how much is compared bit for bit, and held on
# the card for each side of a measurement. Leave the machine alone meanwhile. One row is printed for
# each thing, and a last line that says how it ended:
#
#   0   all is equal, and the kernel of float32 reaches its aim
#   1   tallies or reports differ
#   3   all is equal, but the kernel misses its aim
#   77  skipped: no device, or no nvcc
#   2   something else went wrong
#
#   tests/gpu/check.sh --emulated CHECK PROGRAM LIBRARY PLUGIN FOLDER
#
# runs the same steps on the emulated device (ctest does); rates mean nothing there.
set -u
rounds=5

finish() {
    echo "gpu/check: $2"
    exit "$1"
}

# Take in how a step ended: 1 is worse than 3, anything unknown ends the whole.
status=0
keep() {
    case $1 in
    0) ;;
    1) status=1 ;;
    3) [ "$status" -eq 1 ] || status=3 ;;
    77) finish 77 "skipped: no device" ;;
    *) finish 2 "failed: $2 ended with $1" ;;
    esac
}

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

# The middle one of the numbers in a file.
median() {
    sort -n "$1" | sed -n "$((rounds / 2 + 1))p"
}

compare_on() {
    "$program" compare --quiet --dtype bf16 --device "$1" --json "$folder/$1.json" "$folder/a.safetensors" \
        "$folder/b.safetensors"
}

end_to_end() {
    "$check" make "$folder/a.safetensors" "$folder/b.safetensors" "$side_mib" || return 2
    : >"$folder/cpu.ms"
    : >"$folder/cuda.ms"
    round=0
    while [ "$round" -lt "$rounds" ]; do
        for device in cpu cuda; do
            start=$(now_ms)
            compare_on "$device"
            code=$?
            echo $(($(now_ms) - start)) >>"$folder/$device.ms"
            if [ "$code" -gt 1 ]; then
                return 2
            fi
        done
        round=$((round + 1))
    done
    printf '%-44s %8s ms   %s ms on the processor\n' "end to end, 2 x $side_mib MiB" \
        "$(median "$folder/cuda.ms")" "$(median "$folder/cpu.ms")"
    if cmp -s "$folder/cpu.json" "$folder/cuda.json"; then
        printf '%-44s %8s\n' "reports of both devices" "equal"
        return 0
    fi
    printf '%-44s %8s\n' "reports of both devices" "differ"
    return 1
}

build_all() {
    cmake -S "$root" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DGRADCMP_NVCC="$nvcc" >"$folder/build.log" &&
        cmake --build "$folder/build" -j "$(getconf _NPROCESSORS_ONLN)" \
            --target gradcmp gradcmp_static gradcmp_cuda >>"$folder/build.log" &&
        "$nvcc" -x cu -std=c++17 -O3 -fmad=false -arch="${GRADCMP_GPU_ARCH:-native}" -I "$root" -I "$root/src" \
            -I "$root/include" -c "$root/tests/gpu/check_device.cpp" -o "$check.device.o" &&
        "$nvcc" -std=c++17 -O2 -Xcompiler -ffp-contract=off -I "$root" -I "$root/src" -I "$root/include" \
            -c "$root/tests/gpu/check.cpp" -o "$check.o" &&
        "$nvcc" "$check.o" "$check.device.o" "$folder/build/libgradcmp.a" -o "$check"
}

if [ "${1-}" = --emulated ]; then
    [ $# -eq 6 ] || finish 2 "expected --emulated CHECK PROGRAM LIBRARY PLUGIN FOLDER"
    check=$2 folder=$6 bits_mib=1 rates_mib=1 side_mib=1 rounds=1
    mkdir -p "$folder/bin" || exit 2
    program=$folder/bin/gradcmp
    # The plug-in is looked for beside the library.
    cp "$3" "$program" && cp "$4" "$folder/bin/" && cp "$5" "$folder/bin/libgradcmp_cuda.so" || exit 2
    LD_LIBRARY_PATH=$folder/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
else
    root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
    folder=${1:-${TMPDIR:-/tmp}/gradcmp-gpu} bits_mib=${2:-1024} rates_mib=${2:-1024} side_mib=${3:-4096}
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    check=$folder/build/gpu_check program=$folder/build/gradcmp
    nvidia-smi -L >/dev/null 2>&1 || [ -e /dev/nvidiactl ] || finish 77 "skipped: no NVIDIA device"
    [ -x "$nvcc" ] || finish 77 "skipped: no nvcc"
    mkdir -p "$folder" || exit 2
    build_all || finish 2 "the build failed; see $folder/build.log"
fi
trap 'rm -f "$folder"/[ab].safetensors "$folder"/cpu.* "$folder"/cuda.*' EXIT
trap 'exit 2' HUP INT TERM
"$check" bits "$bits_mib"
keep $? "the comparison of bits"
"$check" rates "$rates_mib"
keep $? "the measurement of kernels"
end_to_end
keep $? "the comparison of two files"
case $status in
0) finish 0 "right, and as fast as it should be" ;;
1) finish 1 "WRONG: the device's figures are not the processor's" ;;
*) finish 3 "right, but the kernel of float32 misses its aim" ;;
esac
