#!/bin/sh
# Make the Debian package, unpack it into an empty folder, and use what lies there. Its dependencies
# must name a package for every library that something in it is linked with.
#   deb.sh BUILD_DIR SOURCE_ROOT CPACK
set -eu
build=$1 root=$2 cpack=$3
for tool in dpkg-deb dpkg-shlibdeps dpkg-query readelf; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# dpkg-shlibdeps wants the library's own name beside the program; it is found in the build folder.
"$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
package=$(find "$work" -maxdepth 1 -name 'gradcmp_*.deb')
[ -n "$package" ] || { cat "$work/log"; echo "cpack made no package"; exit 1; }
dpkg-deb -x "$package" "$work/root"
depends=$(dpkg-deb -f "$package" Depends)

for file in usr/bin/gradcmp usr/share/man/man1/gradcmp.1.gz usr/include/gradcmp/gradcmp.h \
    usr/share/bash-completion/completions/gradcmp; do
    [ -s "$work/root/$file" ] || { echo "not in the package: $file"; exit 1; }
done
find "$work/root" -type f | while read -r file; do
    readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u | grep -v '^libgradcmp\|^ld-linux' >"$work/needed"
[ -s "$work/needed" ] || { echo "nothing in the package needs a library"; exit 1; }
while read -r library; do
    # Packages for other architectures may have a file of the same name.
    owners=$(dpkg-query -S "*/$library" 2>/dev/null | cut -d: -f1 | sort -u)
    named=no
    for owner in $owners; do
        ! echo "$depends" | grep -q -w -F "$owner" || named=yes
    done
    [ -z "$owners" ] || [ $named = yes ] ||
        { echo "$library is of $owners; none of them is among: $depends"; exit 1; }
done <"$work/needed"

# The plug-in for MPI is a package of its own: Open MPI is not forced upon those who do not use it.
case $depends in *openmpi*) echo "depends on Open MPI: $depends"; exit 1 ;; esac
if [ -e "$build/libgradcmp_mpi.so" ]; then
    plugin=$(find "$work" -maxdepth 1 -name 'gradcmp-mpi_*.deb')
    [ -n "$plugin" ] || { echo "no package gradcmp-mpi"; exit 1; }
    dpkg-deb -f "$plugin" Depends | grep 'gradcmp (= ' | grep -q openmpi || { dpkg-deb -f "$plugin"; exit 1; }
    dpkg-deb -c "$plugin" | grep -q 'usr/lib/gradcmp/libgradcmp_mpi.so' || { dpkg-deb -c "$plugin"; exit 1; }
fi

data=$root/tests/data/megatron
"$work/root/usr/bin/gradcmp" --quiet "$data/s_base" "$data/tp2dp2"
code=0
"$work/root/usr/bin/gradcmp" --quiet "$data/s_base" "$data/bug_double_layer1" || code=$?
[ $code = 1 ] || { echo "exit $code on a bad pair"; exit 1; }
echo "depends on: $depends"
