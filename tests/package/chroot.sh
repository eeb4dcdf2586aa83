#!/bin/sh
# Install the .deb in a fresh minimal Debian and use it there as a stranger would. By hand, as root: it
# takes debootstrap, a mirror and some minutes.
#   chroot.sh GRADCMP.DEB [FOLDER [MIRROR]]     FOLDER is made, or used again where it is one already
set -eu
package=$1 folder=${2:-$(mktemp -d)} mirror=${3:-http://deb.debian.org/debian}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "root and debootstrap are needed" >&2
    exit 2
fi
[ -x "$folder/bin/sh" ] || debootstrap --variant=minbase bookworm "$folder" "$mirror"
cp "$package" "$folder/tmp/gradcmp.deb"
cp /etc/resolv.conf "$folder/etc/"
rm -rf "$folder/tmp/data" "$folder/tmp/c" "$folder/tmp/build"
mkdir "$folder/tmp/data"
cp -R "$root/tests/data/megatron/s_base" "$root/tests/data/megatron/tp2dp2" \
    "$root/tests/data/megatron/bug_double_layer1" "$root/tests/data/hdf5/bf16_custom.h5" "$folder/tmp/data/"
cp -R "$root/examples/c" "$folder/tmp/"
chroot "$folder" sh -eu <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
install() { apt-get -qq install -y --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }
# fails CODE COMMAND...
fails() {
    wanted=$1 code=0
    shift
    "$@" >/tmp/out 2>&1 || code=$?
    [ $code = "$wanted" ] || { cat /tmp/out; echo "$*: exit $code, expected $wanted"; exit 1; }
}
apt-get -qq update
install /tmp/gradcmp.deb
cd /tmp/data
gradcmp --version
fails 0 gradcmp s_base tp2dp2
fails 1 gradcmp s_base bug_double_layer1
fails 0 gradcmp ls --stats bf16_custom.h5
fails 0 gradcmp -q --html /tmp/r.html --junit /tmp/r.xml s_base tp2dp2
for file in man/man1/gradcmp.1.gz bash-completion/completions/gradcmp zsh/site-functions/_gradcmp \
    fish/vendor_completions.d/gradcmp.fish; do
    [ -s "/usr/share/$file" ] || dpkg -L gradcmp | grep -q "$file" || { echo "not there: $file"; exit 1; }
done
# The library, with a compiler and nothing that gradcmp itself was built with.
install gcc libc6-dev pkg-config cmake make
# shellcheck disable=SC2046  # flags
cc $(pkg-config --cflags gradcmp) /tmp/c/compare.c -o /tmp/by_pkgconfig $(pkg-config --libs gradcmp)
fails 0 /tmp/by_pkgconfig s_base tp2dp2
fails 0 cmake -S /tmp/c -B /tmp/build
fails 0 cmake --build /tmp/build
fails 1 /tmp/build/compare s_base bug_double_layer1
apt-get -qq remove -y gradcmp >/tmp/apt.log 2>&1
[ ! -e /usr/bin/gradcmp ] || { echo "still there after removal"; exit 1; }
echo "installed, used and removed"
INSIDE
