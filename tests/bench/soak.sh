#!/bin/sh
# Builds soak.c against a build of the library and runs it on the checkpoints of the tests.
#
#   tests/bench/soak.sh BUILD_FOLDER [SECONDS]     60 by default
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
build=$(CDPATH='' cd -- "$1" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
${CC:-cc} -std=gnu11 -O1 -Wall -I"$root/include" "$root/tests/bench/soak.c" -o "$out/soak" -L"$build" -lgradcmp \
    -Wl,-rpath,"$build"
"$out/soak" "${2:-60}" "$root/tests/data/megatron" "$root/tests/data/torch_save" "$root/tests/data/zarr"
