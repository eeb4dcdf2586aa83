. "$TESTS_CLI/lib.sh"
try bits
try bits data/resume/a.pt
try bits data/resume/a.pt nosuch
try bits nosuch data/resume/a.pt
try bits data/resume/a.pt data/resume/flip.pt nosuch
try bits --ignore '' data/resume/a.pt data/resume/a.pt
# A record that is damaged, with and without its checksum.
python3 - <<'END'
import struct, zipfile
name = "data/resume/together.pt"
record = next(x for x in zipfile.ZipFile(name).infolist() if x.filename.endswith("/data/1"))
content = bytearray(open(name, "rb").read())
names, extras = struct.unpack_from("<HH", content, record.header_offset + 26)
content[record.header_offset + 30 + names + extras] ^= 1
open("damaged.pt", "wb").write(content)
END
try bits data/resume/together.pt damaged.pt
try bits --no-verify data/resume/together.pt damaged.pt
try bits damaged.pt data/resume/together.pt
