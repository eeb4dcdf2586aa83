"""Copy a distributed checkpoint twice, with the list of an optimizer's names damaged, and with two names of it made
one: numbers_spoilt.py FROM DAMAGED FEWER"""
import shutil
import sys
from struct import pack
from zlib import crc32

source, damaged, fewer = sys.argv[1:]
with open(source + "/__0_0.distcp", "rb") as file:
    data = file.read()
name = b"X\x0f\0\0\0layers.2.weight"
assert data.count(name) == 1
spoilt = data.replace(name, b"X\x25\0\0\0layers.2.weight")  # over the next name
start = data.rindex(b"\x80\x02]", 0, data.index(name))
end = data.index(b"e.PK", start) + 2
old, new = (pack("<I", crc32(text[start:end])) for text in (data, spoilt))
for target, text in ((damaged, spoilt), (fewer, spoilt.replace(old, new))):
    shutil.copytree(source, target)
    with open(target + "/__0_0.distcp", "wb") as file:
        file.write(text)
