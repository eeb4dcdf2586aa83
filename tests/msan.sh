#!/bin/sh
# The memory sanitizer (clang) over ctest, by hand:
#
#   tests/msan.sh [CTEST_OPTION]...      e.g. tests/msan.sh -L fuzz
#
# It knows nothing of memory that uninstrumented code writes, so the libraries are built with it as
# well: sources as Debian has them, without a change, in build-msan/libraries. Left out: HDF5, whose
# helper is a program of its own, so that what tests expect of HDF5 fails; io_uring, MPI and CUDA; tests
# that look at files and other programs. What the sanitizer does not see is reported wrongly: reads by
# syscall(), as in unit_engine_test_injection.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build-msan
sources=$build/libraries
prefix=$sources/installed
# shellcheck source=tests/packages.sh
. "$root/tests/packages.sh"

need_build_packages
need_command clang clang
need_command dpkg-source dpkg-dev
install_missing
jobs=${GRADCMP_JOBS:-$(getconf _NPROCESSORS_ONLN)}
flags="-O1 -g -fno-omit-frame-pointer -fsanitize=memory -fsanitize-memory-track-origins"

# Put what Debian built its packages from into $sources/NAME-VERSION.
fetch_sources() {
    # shellcheck source=/dev/null
    . /etc/os-release
    [ "$ID" = debian ] || { echo "msan.sh: sources are fetched on Debian alone" >&2; return 1; }
    mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial"
    echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >"$sources/apt/list"
    for task in update "source --download-only zlib jansson libyaml nettle libzstd lz4 libdeflate c-blosc xxhash cmocka"; do
        # shellcheck disable=SC2086  # a list of words
        (cd "$sources" && apt-get -qq -o Dir::Etc::sourcelist="$sources/apt/list" -o Dir::Etc::sourceparts=- \
            -o Dir::State::lists="$sources/apt/lists" -o Dir::Cache="$sources/apt/cache" $task)
    done
    for archive in "$sources"/*.orig.tar.*; do
        case $archive in
        *.asc) ;;
        *) tar -xf "$archive" -C "$sources" ;;
        esac
    done
}

# with_cmake NAME OPTION...: a library that cmake builds and installs
with_cmake() {
    name=$1
    shift
    cmake -S "$sources/$name"-[0-9]* -B "$sources/build-$name" -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    cmake --build "$sources/build-$name" -j "$jobs"
    cmake --install "$sources/build-$name"
}

# with_make NAME FOLDER LIBRARY HEADER...: a library whose makefile takes flags; paths below its sources
with_make() {
    (
        cd "$sources/$1"-[0-9]*
        folder=$2 library=$3
        shift 3
        make -C "$folder" -j "$jobs" "$library" CC=clang CFLAGS="$flags -fPIC"
        cp "$folder/$library" "$prefix/lib"
        cp "$@" "$prefix/include"
    )
}

# describe NAME VERSION LIBRARIES: for pkg-config
describe() {
    printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s/lib %s\nCflags: -I%s/include\n' \
        "$1" "$1" "$2" "$prefix" "$3" "$prefix" >"$prefix/lib/pkgconfig/$1.pc"
}

build_libraries() {
    mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
    (cd "$sources"/zlib-[0-9]* && CC=clang CFLAGS="$flags -fPIC" ./configure --static)
    with_make zlib . libz.a zlib.h zconf.h
    with_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
    with_cmake libyaml -DBUILD_TESTING=OFF
    (
        cd "$sources"/nettle-[0-9]*
        CC=clang CFLAGS="$flags -fPIC" ./configure --prefix="$prefix" --libdir="$prefix/lib" --disable-shared \
            --disable-assembler --disable-public-key --disable-openssl --disable-documentation
        make -j "$jobs" libnettle.a && make install-headers
        cp libnettle.a "$prefix/lib"
    )
    with_make zstd lib libzstd.a lib/zstd.h lib/zstd_errors.h lib/zdict.h
    with_make lz4 lib liblz4.a lib/lz4.h lib/lz4hc.h
    with_make libdeflate . libdeflate.a libdeflate.h
    with_make xxHash . libxxhash.a xxhash.h
    with_cmake c-blosc -DBUILD_SHARED=OFF -DBUILD_TESTS=OFF -DBUILD_FUZZERS=OFF -DBUILD_BENCHMARKS=OFF \
        -DDEACTIVATE_SNAPPY=ON -DDEACTIVATE_AVX2=ON -DPREFER_EXTERNAL_LZ4=ON -DPREFER_EXTERNAL_ZLIB=ON \
        -DPREFER_EXTERNAL_ZSTD=ON
    with_cmake cmocka -DWITH_EXAMPLES=OFF
    describe jansson 2.14 -ljansson
    describe libxxhash 0.8 -lxxhash
    describe nettle 3.8 -lnettle
    describe libdeflate 1.14 -ldeflate
    describe libzstd 1.5 -lzstd
    describe yaml-0.1 0.2.5 -lyaml
    describe blosc 1.21 "-lblosc -llz4 -lzstd -lz -lpthread"
}

if [ ! -f "$prefix/done" ]; then
    fetch_sources
    build_libraries >"$sources/log" 2>&1 || { tail -n 30 "$sources/log"; exit 1; }
    touch "$prefix/done"
fi
PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig cmake -S "$root" -B "$build" -DCMAKE_C_COMPILER=clang \
    -DCMAKE_BUILD_TYPE=Debug -DGRADCMP_TEST_ARENA=ON -DGRADCMP_CUDA=OFF -DGRADCMP_MPI=OFF -DGRADCMP_HDF5=OFF \
    -DGRADCMP_URING=OFF -DZLIB_LIBRARY="$prefix/lib/libz.a" -DZLIB_INCLUDE_DIR="$prefix/include" \
    -DCMAKE_C_FLAGS="$flags" >/dev/null
cmake --build "$build" -j "$jobs" >"$build/log" 2>&1 || { tail -n 30 "$build/log"; exit 1; }
ctest --test-dir "$build" --output-on-failure -j "$jobs" --timeout 3600 -LE 'browser|house|mpi|gpu' "$@"
