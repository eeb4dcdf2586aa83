#!/bin/sh
# The memory sanitizer (clang) over the corpora of those fuzz targets that use no library of others
# for what they read: it knows nothing of memory that such a library writes. By hand; builds in
# build-msan/.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build-msan
jobs=$(getconf _NPROCESSORS_ONLN)
targets="pickle zip dcp_metadata torch_file deepspeed megatron_legacy hdf5 unshard trace metric_events"

# xxHash comes as a header too, which is compiled along.
cmake -S "$root" -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DGRADCMP_TEST_ARENA=ON \
    -DGRADCMP_CUDA=OFF -DGRADCMP_MPI=OFF -DGRADCMP_HDF5=OFF -DGRADCMP_URING=OFF \
    -DCMAKE_C_FLAGS="-O1 -fno-omit-frame-pointer -fsanitize=memory -fsanitize-memory-track-origins -DXXH_INLINE_ALL" \
    >/dev/null
# shellcheck disable=SC2046,SC2086  # lists of words
cmake --build "$build" -j "$jobs" --target $(printf 'fuzz_%s ' $targets) >/dev/null
failed=0
for target in $targets; do
    if "$build/tests/fuzz/fuzz_$target" "$root/tests/fuzz/corpus/$target" >"$build/$target.log" 2>&1; then
        echo "$target: $(tail -n 1 "$build/$target.log")"
    else
        tail -n 30 "$build/$target.log"
        echo "$target: FAILED"
        failed=1
    fi
done
exit $failed
