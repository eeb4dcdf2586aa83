#!/bin/sh
# Build everything in build/ and run all tests; ends with ctest's summary and has its exit code.
#
#   tests/run.sh [CMAKE_OPTION]...      e.g. tests/run.sh -DCMAKE_BUILD_TYPE=Debug
#
# On Debian and Ubuntu it installs with apt-get what is missing, and needs no network otherwise.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build
. "$root/tests/packages.sh"

need_build_packages
need_command c++ g++
need_command readelf binutils
need_command python3 python3
need_library cmocka libcmocka-dev
need_mpi_packages
install_missing

# A build folder of a checkout that was moved or copied is of no use to CMake.
if [ -f "$build/CMakeCache.txt" ] &&
    ! grep -q -x -F "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
fi
jobs=$(getconf _NPROCESSORS_ONLN)
cmake -S "$root" -B "$build" -DGRADCMP_BUILD_TESTS=ON "$@"
cmake --build "$build" -j "$jobs"
exec ctest --test-dir "$build" --output-on-failure -j "$jobs"
