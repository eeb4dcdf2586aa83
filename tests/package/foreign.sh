#!/bin/sh
# Build gradcmp for another architecture, and run its tests under qemu-user: AArch64 (Grace, Kunpeng), or
# S/390, whose order of bytes is not this machine's. By hand; no root is needed where the tools are there
# (Debian: gcc-aarch64-linux-gnu or gcc-s390x-linux-gnu, qemu-user, cmake, make, pkg-config). On such a
# machine itself no recipe is needed: build as anywhere.
#   foreign.sh aarch64|s390x [FOLDER [CTEST_OPTION...]]     FOLDER keeps the libraries (sysroot) and the build
# Without options of ctest: kernels, readers, unsharding, bounds, bits and reports. HDF5 is left out: its
# reader is a program of its own, which the kernel can only start where binfmt_misc knows qemu.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
case ${1-} in
aarch64) debian=arm64 ;;
s390x) debian=s390x ;;
*) echo "foreign.sh aarch64|s390x [FOLDER [CTEST_OPTION...]]" >&2 && exit 2 ;;
esac
machine=$1
triplet=$machine-linux-gnu
folder=${2:-$root/build-$machine}
shift $(($# < 2 ? $# : 2))
[ $# -ne 0 ] || set -- -R '^unit_(base|kernels|formats|unshard|bounds|bits|report)' -E hdf5
for tool in "$triplet-gcc" "qemu-$machine" cmake pkg-config apt-get dpkg; do
    command -v "$tool" >/dev/null || { echo "$tool is needed" >&2; exit 2; }
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
        apt-get -qq -o APT::Architecture="$debian" -o APT::Architectures::="$debian" \
            -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state" \
            -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
    }
    apt update
    apt install -y --download-only --no-install-recommends libc6-dev zlib1g-dev libjansson-dev \
        libxxhash-dev nettle-dev libdeflate-dev libzstd-dev libyaml-dev libblosc-dev liburing-dev \
        libhdf5-dev libcmocka-dev
    for package in "$state"/archives/*.deb; do
        dpkg -x "$package" "$sysroot"
    done
    # What the package's installation would choose.
    ln -sf hdf5-serial.pc "$sysroot/usr/lib/$triplet/pkgconfig/hdf5.pc"
    touch "$sysroot/done"
fi

export PKG_CONFIG_LIBDIR="$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$sysroot"
cmake -S "$root" -B "$folder/build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGRADCMP_CUDA=OFF -DGRADCMP_MPI=OFF \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$machine" -DCMAKE_C_COMPILER="$triplet-gcc" \
    -DCMAKE_CXX_COMPILER=NOTFOUND -DCMAKE_SYSROOT="$sysroot" -DCMAKE_FIND_ROOT_PATH="$sysroot" \
    -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER \
    -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-$machine;-L;$sysroot"
cmake --build "$folder/build" -j "$(getconf _NPROCESSORS_ONLN)"
ctest --test-dir "$folder/build" --output-on-failure -j "$(getconf _NPROCESSORS_ONLN)" "$@"
cd "$root/tests/data/megatron"
"qemu-$machine" -L "$sysroot" "$folder/build/gradcmp" s_base tp2dp2
