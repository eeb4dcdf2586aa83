"""Builds the wheel; a build backend (PEP 517) that needs nothing but Python, CMake and a compiler.

    pip wheel --no-deps -w OUT src/python         or         python backend.py OUT

The wheel holds the module and, below gradcmp/_native, what `cmake --install` makes of a build of its
own: program, library, HDF5 helper, and copies of the shared libraries that they need, found through
$ORIGIN. libhdf5 is linked statically. The platform tag names the newest symbol version of glibc that
anything in it asks for. With --build-dir DIR an existing build is packed as it is, without copies of
system libraries and tagged for this machine alone: for tests.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import abi  # noqa: E402

# What every manylinux system has (PEP 600); all else is copied into the wheel.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so\.\d+")
SCRIPTS = "[console_scripts]\ngradcmp = gradcmp.__main__:main\n"


def version():
    header = (ROOT / "include/gradcmp/gradcmp.h").read_text()
    return ".".join(re.findall(r"#define GRADCMP_VERSION_\w+ (\d+)", header))


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise SystemExit(f"backend.py: {' '.join(map(str, command))}: exit {done.returncode}")
    return done.stdout


def build(folder):
    rpath = "$ORIGIN;$ORIGIN/../lib;$ORIGIN/../../lib"
    # RPATH, not RUNPATH: it holds for what the copied libraries need in turn.
    flags = "-Wl,--disable-new-dtags"
    run("cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DGRADCMP_BUILD_TESTS=OFF",
        "-DGRADCMP_CUDA=OFF", "-DGRADCMP_MPI=OFF", "-DGRADCMP_HDF5_STATIC=ON", f"-DCMAKE_INSTALL_RPATH={rpath}",
        f"-DCMAKE_SHARED_LINKER_FLAGS={flags}", f"-DCMAKE_EXE_LINKER_FLAGS={flags}",
        "-DCMAKE_INSTALL_LIBDIR=lib", *os.environ.get("GRADCMP_CMAKE_ARGS", "").split())
    run("cmake", "--build", folder, "-j", len(os.sched_getaffinity(0)))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return re.findall(r"\(NEEDED\)[^[]*\[([^]]+)\]", run("readelf", "-d", path))


def copy_libraries(native):
    """Copy what anything here needs and no manylinux system has."""
    for path in [path for path in native.rglob("*") if path.is_file() and is_elf(path)]:
        for name, target in re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", path), flags=re.M):
            if not SYSTEM.fullmatch(name) and not (native / "lib" / name).exists():
                shutil.copy(os.path.realpath(target), native / "lib" / name)
    for path in [path for path in native.rglob("*") if path.is_file() and is_elf(path)]:
        for name in needed(path):
            if not SYSTEM.fullmatch(name) and not (native / "lib" / name).exists():
                raise SystemExit(f"backend.py: {path.name} needs {name}, which is not there")


def glibc(native):
    """The newest symbol version of glibc that is asked for."""
    newest = (2, 17)
    for path in native.rglob("*"):
        if path.is_file() and is_elf(path):
            for found in re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path)):
                newest = max(newest, tuple(map(int, found)))
    return newest


def stage(folder, build_dir):
    """Lay out the wheel's files; returns its platform tag."""
    installed, native = folder / "installed", folder / "wheel/gradcmp/_native"
    run("cmake", "--install", build_dir or folder / "build", "--prefix", installed)
    shutil.copytree(HERE / "gradcmp", folder / "wheel/gradcmp",
                    ignore=shutil.ignore_patterns("__pycache__", ".gitignore", "_abi.py"))
    header = (ROOT / "include/gradcmp/gradcmp.h").read_text()
    (folder / "wheel/gradcmp/_abi.py").write_text(abi.generate(header))
    for part in ("bin", "lib", "libexec"):
        (native / part).mkdir(parents=True)
    shutil.copy(installed / "bin/gradcmp", native / "bin")
    # Wheels know no links: the one name that the loader asks for.
    library = next(path for path in installed.rglob("libgradcmp.so.*") if path.is_symlink())
    shutil.copy(library.resolve(), native / "lib" / library.name)
    for helper in installed.rglob("libexec/gradcmp/*"):
        (native / "libexec/gradcmp").mkdir(exist_ok=True)
        shutil.copy(helper, native / "libexec/gradcmp")
    shutil.copytree(installed / "share", folder / f"wheel/gradcmp-{version()}.data/data/share")
    shutil.rmtree(folder / f"wheel/gradcmp-{version()}.data/data/share/doc", ignore_errors=True)
    machine = platform.machine()
    if build_dir:
        return f"linux_{machine}"
    copy_libraries(native)
    return "manylinux_%d_%d_%s" % (*glibc(native), machine)


def metadata(folder, tag):
    info = folder / f"wheel/gradcmp-{version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: gradcmp\nVersion: {version()}\n"
        "Summary: Compares gradients in checkpoints of one training step, offline\n"
        "Requires-Python: >=3.8\nProvides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: gradcmp {version()}\n"
                                f"Root-Is-Purelib: false\nTag: py3-none-{tag}\n")
    (info / "entry_points.txt").write_text(SCRIPTS)
    return info.name


def pack(folder, info, output):
    root, record = folder / "wheel", []
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            name, data = path.relative_to(root).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            add(archive, name, data, path.stat().st_mode)
        record.append(f"{info}/RECORD,,")
        add(archive, f"{info}/RECORD", ("\n".join(record) + "\n").encode(), 0o644)


def add(archive, name, data, mode):
    entry = zipfile.ZipInfo(name)  # of 1980: the same files make the same wheel
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
    archive.writestr(entry, data)


def make(output, build_dir=None):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not build_dir:
            build(folder / "build")
        tag = stage(folder, build_dir)
        name = f"gradcmp-{version()}-py3-none-{tag}.whl"
        pack(folder, metadata(folder, tag), Path(output) / name)
    return name


# --- the hooks of PEP 517 ---


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return make(wheel_directory, (config_settings or {}).get("build-dir"))


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("backend.py: there is no source distribution; the wheel is built in a checkout")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the wheel of gradcmp.")
    parser.add_argument("output", help="folder for the wheel")
    parser.add_argument("--build-dir", help="pack this build, for tests on this machine")
    options = parser.parse_args()
    print(make(options.output, options.build_dir))
