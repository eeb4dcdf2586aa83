"""Copy the library that a program is linked with into a folder, as another build of the same version:
other_build.py PROGRAM FOLDER."""
import os
import re
import struct
import subprocess
import sys

program, folder = sys.argv[1:]
listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
path = re.search(r"libgradcmp\S* => (\S+)", listed).group(1)
with open(path, "rb") as file:
    data = bytearray(file.read())
head = data.index(struct.pack("=III", 4, 20, 3) + b"GNU\0")
data[head + 16] ^= 1
os.makedirs(folder)
with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
    file.write(data)
