"""Check that a wheel keeps the promise of its tag manylinux_A_B_MACHINE (PEP 600): every program and
library in it is for that machine, asks glibc for no symbol newer than A.B, and needs no library but
those that all such systems have and those in the wheel.

    manylinux.py WHEEL
"""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

# Of the lists of PEP 513 and 599, what a program without graphics may need.
EVERYWHERE = re.compile(r"(libc|libm|libdl|librt|libpthread|libutil|libresolv|libnsl|libgcc_s|libstdc\+\+|"
                        r"ld-linux-x86-64|ld-linux-aarch64)\.so\.[0-9]+")
MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}


def read(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def troubles(path, name, there, tag):
    """What is wrong with one file."""
    found = []
    if MACHINES[tag[2]] not in read("readelf", "-h", path):
        found.append("is for another machine")
    dynamic = read("readelf", "-d", path)
    for library in re.findall(r"\(NEEDED\)[^[]*\[([^]]+)\]", dynamic):
        if not EVERYWHERE.fullmatch(library) and library not in there:
            found.append(f"needs {library}")
    for folder in ":".join(re.findall(r"\((?:RPATH|RUNPATH)\)[^[]*\[([^]]*)\]", dynamic)).split(":"):
        if folder and not folder.startswith("$ORIGIN"):
            found.append(f"looks for libraries in {folder}")
    versions = read("readelf", "-V", path)
    if "GLIBC_PRIVATE" in versions:
        found.append("asks for GLIBC_PRIVATE")
    if "GLIBC_ABI_DT_RELR" in versions:
        versions += " GLIBC_2.36"  # the first that relocates so
    for major, minor in re.findall(r"GLIBC_([0-9]+)\.([0-9]+)", versions):
        if (int(major), int(minor)) > tag[:2]:
            found.append(f"asks for GLIBC_{major}.{minor}")
    return [f"{name}: {text}" for text in sorted(set(found))]


def main():
    wheel = sys.argv[1]
    match = re.search(r"-manylinux_([0-9]+)_([0-9]+)_(x86_64|aarch64)\.whl$", wheel)
    if not match:
        sys.exit(f"{wheel}: no tag manylinux_A_B_MACHINE")
    tag = (int(match[1]), int(match[2]), match[3])
    wrong, looked_at = [], 0
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        paths = [os.path.join(base, name) for base, _, names in os.walk(folder) for name in names]
        there = {os.path.basename(path) for path in paths}
        for path in sorted(paths):
            with open(path, "rb") as file:
                is_elf = file.read(4) == b"\x7fELF"
            if is_elf:
                looked_at += 1
                wrong += troubles(path, os.path.relpath(path, folder), there, tag)
    print("\n".join(wrong or [f"{os.path.basename(wheel)}: {looked_at} programs and libraries keep its promise"]))
    sys.exit(1 if wrong or looked_at < 2 else 0)


main()
