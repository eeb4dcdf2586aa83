#!/bin/sh
# Install into a scratch prefix and use what lies there as a stranger would: the program, and the
# library from C through pkg-config (shared and static) and from CMake (shared and static).
#   install.sh BUILD_DIR SOURCE_ROOT C_COMPILER
set -eu
build=$1 root=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
good="$root/tests/data/megatron/s_base $root/tests/data/megatron/tp2dp2"
bad="$root/tests/data/megatron/s_base $root/tests/data/megatron/bug_double_layer1"

# use NAME COMMAND...: the exit codes that a user relies on, for a good pair and for a bad one.
use() {
    name=$1
    shift
    code=0
    # shellcheck disable=SC2086  # two paths
    "$@" $good >"$work/out" 2>&1 || code=$?
    [ $code = 0 ] || { echo "$name: exit $code on a good pair"; cat "$work/out"; exit 1; }
    # shellcheck disable=SC2086
    "$@" $bad >"$work/out" 2>&1 || code=$?
    [ $code = 1 ] || { echo "$name: exit $code on a bad pair"; cat "$work/out"; exit 1; }
    echo "$name: works"
}

cmake --install "$build" --prefix "$work/usr" >/dev/null
libdir=$(dirname "$(find "$work/usr" -name libgradcmp.a)")
use "installed program" "$work/usr/bin/gradcmp"
for file in man/man1/gradcmp.1 bash-completion/completions/gradcmp zsh/site-functions/_gradcmp fish/vendor_completions.d/gradcmp.fish; do
    [ -s "$work/usr/share/$file" ] || { echo "not installed: share/$file"; exit 1; }
done

DESTDIR=$work/dest cmake --install "$build" --prefix /opt/gradcmp >/dev/null
use "program below DESTDIR" "$work/dest/opt/gradcmp/bin/gradcmp"

export PKG_CONFIG_PATH="$libdir/pkgconfig"
example=$root/examples/c/compare.c
# shellcheck disable=SC2046  # flags
$cc -std=c99 -Wall -Wextra -pedantic -Werror "$example" -o "$work/by_pkgconfig" \
    $(pkg-config --cflags --libs gradcmp) -Wl,-rpath,"$libdir"
use "pkg-config, shared" "$work/by_pkgconfig"

# None of the development packages of what gradcmp itself needs: pkg-config sees nothing but ours.
(
    unset PKG_CONFIG_PATH
    PKG_CONFIG_LIBDIR=$libdir/pkgconfig pkg-config --cflags --libs gradcmp >"$work/out" 2>&1
) || { cat "$work/out"; echo "pkg-config wants packages that the shared library does not need"; exit 1; }

# The static library alone: hide the shared one from the linker.
mkdir "$work/static"
cp "$libdir/libgradcmp.a" "$work/static/"
# shellcheck disable=SC2046
$cc -std=c99 "$example" -o "$work/by_static" -L"$work/static" \
    $(pkg-config --cflags gradcmp) -lgradcmp $(pkg-config --static --libs-only-l --libs-only-other gradcmp)
if readelf -d "$work/by_static" | grep -q libgradcmp; then
    echo "pkg-config, static: still needs libgradcmp.so"
    exit 1
fi
use "pkg-config, static" "$work/by_static"

if ! {
    cmake -S "$root/examples/c" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/usr" \
        -DCMAKE_C_COMPILER="$cc" &&
        cmake --build "$work/cmake"
} >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
use "find_package, shared" "$work/cmake/compare"
use "find_package, static" "$work/cmake/compare_static"
if ! {
    cmake -S "$root/examples/c" -B "$work/cmake_alone" -DCMAKE_PREFIX_PATH="$work/usr" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON &&
        cmake --build "$work/cmake_alone"
} >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
use "find_package, shared, without what the static one needs" "$work/cmake_alone/compare"
[ ! -e "$work/cmake_alone/compare_static" ] || { echo "ZLIB was to be missing"; exit 1; }
