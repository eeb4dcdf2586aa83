#!/bin/sh
# Builds the kernels' tests for AArch64 and runs them under qemu-user. Needs a cross compiler,
# qemu-aarch64 and cmocka for that architecture (Debian: gcc-aarch64-linux-gnu, qemu-user-static,
# libcmocka-dev:arm64). Exit: 0 passed, 1 failed, 77 something is missing.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
compiler=${CC_AARCH64:-aarch64-linux-gnu-gcc}
library=${CMOCKA_AARCH64:-/usr/lib/aarch64-linux-gnu/libcmocka.so}
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ] || ! command -v "$compiler" >/dev/null || [ ! -e "$library" ]; then
    echo "aarch64: skipped: no cross compiler, qemu-aarch64 or cmocka for it" >&2
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
for name in lanes kernels tally; do
    "$compiler" -std=gnu11 -O2 -Wall -Wextra -Wconversion -Werror -ffp-contract=off -D_GNU_SOURCE \
        -DGRADCMP_BUILD -DGCMP_ARENA_MALLOC -I"$root" -I"$root/src" -I"$root/include" \
        -I"$root/tests/unit" -idirafter /usr/include "$root"/src/kernels/*.c \
        "$root/src/base/dtype.c" "$root/tests/unit/kernels/test_$name.c" "$library" -lm \
        -Wl,-rpath,"$(dirname "$library")" -o "$out/$name"
    "$qemu" -L / "$out/$name" || failed=1
done
exit $failed
