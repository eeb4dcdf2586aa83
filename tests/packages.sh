# shellcheck shell=sh
# Sourced by the scripts: install what is missing, and touch no network when nothing is.

# install_packages PACKAGE...: with apt-get, as root or through sudo; fails with a sentence.
install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing: $* (no apt-get here: install what corresponds to them by hand)" >&2
        return 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "missing: $* (neither root nor sudo: ask for 'apt-get install $*')" >&2
            return 1
        fi
        as_root=sudo
    fi
    echo "installing: $*" >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >&2 </dev/null || return 1
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" \
        >&2 </dev/null
}

# need_command NAME PACKAGE and need_library PKGCONFIG_NAME PACKAGE add to $missing.
missing=
need_command() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need_library() {
    command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1" || missing="$missing $2"
}

# What a build of the library and the program takes.
need_build_packages() {
    need_command cc gcc
    # A compiler alone is not enough: without the C library's headers nothing compiles.
    if command -v cc >/dev/null 2>&1 && ! echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; then
        missing="$missing libc6-dev"
    fi
    need_command make make
    need_command cmake cmake
    need_command pkg-config pkg-config
    need_library zlib zlib1g-dev
    need_library jansson libjansson-dev
    need_library libxxhash libxxhash-dev
    need_library nettle nettle-dev
    need_library libdeflate libdeflate-dev
    need_library libzstd libzstd-dev
    need_library yaml-0.1 libyaml-dev
    need_library blosc libblosc-dev
    need_library liburing liburing-dev
    need_library hdf5 libhdf5-dev
}

# What the plug-in for several processes takes, and running them.
need_mpi_packages() {
    need_command mpicc libopenmpi-dev
    need_command mpirun openmpi-bin
}

# install_missing: what the need_ functions found missing.
install_missing() {
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086  # a list of package names
        install_packages $missing || return 1
        missing=
    fi
}
