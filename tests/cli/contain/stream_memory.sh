# An older torch.save stream whose pickle is a million nested tuples needs no more than the archive.
. "$TESTS_CLI/lib.sh"
# A sanitizer's own memory is beyond any limit, as are the counters of what ran (tests/coverage.sh).
if [ -n "${GRADCMP_COUNTED-}" ] || ASAN_OPTIONS=help=1 TSAN_OPTIONS=help=1 MSAN_OPTIONS=help=1 gradcmp --version 2>&1 | grep -q Sanitizer; then
    cat "$TESTS_CLI/contain/stream_memory.stdout"
    exit 0
fi
python3 - <<'P'
import pickle, struct, zipfile

storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQ"
tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00(K\x02K\x03t(K\x03K\x01t\x89}tR"
tuples = b"K\x01" + b"\x85" * 1000000
thing = b"\x80\x04}(X\x01\x00\x00\x00w" + tensor + b"X\x01\x00\x00\x00x" + tuples + b"u."
data = struct.pack("<6f", *range(6))
with open("stream.pt", "wb") as out:
    for head in 0x1950a86a20f9469cfc6c, 1001, {"little_endian": True}:
        out.write(pickle.dumps(head, 2))
    out.write(thing + pickle.dumps(["0"], 2) + struct.pack("<q", 6) + data)
with zipfile.ZipFile("archive.pt", "w") as out:
    for name, content in ("data.pkl", thing), ("data/0", data), ("version", b"3\n"):
        out.writestr("archive/" + name, content)
P
for file in archive.pt stream.pt; do
    gradcmp ls --memory-limit 64MiB $file | grep float32
done
