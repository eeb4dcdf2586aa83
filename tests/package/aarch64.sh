#!/bin/sh
# Build gradcmp for AArch64 (Grace, Kunpeng) on another machine, and run its tests under qemu-user. By
# hand; no root is needed where the tools are there (Debian: gcc-aarch64-linux-gnu, qemu-user, ninja-build
# or make, cmake, pkg-config). On an AArch64 machine itself no recipe is needed: build as anywhere.
#   aarch64.sh [FOLDER [CTEST_OPTION...]]     FOLDER keeps the libraries (sysroot) and the build
# Without options of ctest: kernels, readers, unsharding, bounds, bits and reports. HDF5 is left out: its
# reader is a program of its own, which the kernel can only start where binfmt_misc knows qemu.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
folder=${1:-$root/build-aarch64}
[ $# -eq 0 ] || shift
[ $# -ne 0 ] || set -- -R '^unit_(base|kernels|formats|unshard|bounds|bits|report)' -E hdf5
for tool in aarch64-linux-gnu-gcc qemu-aarch64 cmake pkg-config apt-get dpkg; do
    command -v $tool >/dev/null || { echo "$tool is needed" >&2; exit 2; }
done
mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)
sysroot=$folder/sysroot

# The libraries, from the same mirrors as this machine's packages, but installed nowhere: apt works in
# folders of its own, as if nothing were there yet.
if [ ! -e "$sysroot/done" ]; then
    state=$folder/apt
    mkdir -p "$state/lists/partial" "$state/archives/partial" "$sysroot"
    : >"$state/status"
    apt() {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$state" \
            -o Dir::State::status="$state/status" -o Dir::Cache="$state" -o APT::Sandbox::User= \
            -o Debug::NoLocking=1 "$@"
    }
    apt update
    apt install -y --download-only --no-install-recommends libc6-dev zlib1g-dev libjansson-dev \
        libxxhash-dev nettle-dev libdeflate-dev libzstd-dev libyaml-dev libblosc-dev liburing-dev \
        libhdf5-dev libcmocka-dev
    for package in "$state"/archives/*.deb; do
        dpkg -x "$package" "$sysroot"
    done
    # What the package's installation would choose.
    ln -sf hdf5-serial.pc "$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig/hdf5.pc"
    touch "$sysroot/done"
fi

export PKG_CONFIG_LIBDIR="$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$sysroot"
cmake -S "$root" -B "$folder/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGRADCMP_CUDA=OFF -DGRADCMP_MPI=OFF \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_CXX_COMPILER=NOTFOUND -DCMAKE_SYSROOT="$sysroot" -DCMAKE_FIND_ROOT_PATH="$sysroot" \
    -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
    -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;$sysroot"
cmake --build "$folder/build" -j "$(getconf _NPROCESSORS_ONLN)"
ctest --test-dir "$folder/build" --output-on-failure -j "$(getconf _NPROCESSORS_ONLN)" "$@"
cd "$root/tests/data/megatron"
qemu-aarch64 -L "$sysroot" "$folder/build/gradcmp" s_base tp2dp2
