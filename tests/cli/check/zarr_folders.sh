# An array's folder with metadata of both versions of zarr, and with chunks that the array has not.
. "$TESTS_CLI/lib.sh"
python3 - <<'EOF'
import json
import os
import struct

CHUNK = struct.pack("<4f", 1, 2, 3, 4)

def old(shape=(4, 2), separator="."):
    return {"zarr_format": 2, "shape": shape, "chunks": [2, 2], "dtype": "<f4", "compressor": None,
            "fill_value": 0, "order": "C", "filters": None, "dimension_separator": separator}

def new(shape=(4, 2), codecs=("bytes",), encoding="v2", separator="."):
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
            "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
            "codecs": [{"name": name, "configuration": {"endian": "little"}} for name in codecs]}

def array(name, metadata, chunks):
    folder = f"{name}/exp_avg.a.weight"
    for chunk in chunks:
        path = f"{folder}/{chunk}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(CHUNK)
    for file, content in metadata.items():
        with open(f"{folder}/{file}", "w") as out:
            json.dump(content, out)

dotted, nested = ["0.0", "1.0"], ["0/0", "1/0"]
array("migrated", {".zarray": old(), "zarr.json": new()}, dotted)
array("not_read", {".zarray": old(), "zarr.json": new(codecs=["unknown"])}, dotted)
array("slashes", {".zarray": old(separator="/")}, nested)
array("third", {"zarr.json": new(encoding="default", separator="/")}, ["c/0/0", "c/1/0"])
array("third_dots", {"zarr.json": new(encoding="default")}, ["c.0.0", "c.1.0"])
array("other_shape", {".zarray": old(), "zarr.json": new(shape=(2, 4))}, dotted)
array("group", {".zarray": old(), "zarr.json": {"zarr_format": 3, "node_type": "group"}}, dotted)
array("beyond", {".zarray": old()}, dotted + ["2.0", "0.1", "00.0"])
array("two_sets", {".zarray": old()}, dotted + nested)
array("third_beyond", {"zarr.json": new(encoding="default", separator="/")}, ["c/0/0", "c/1/0", "c/2/0"])
EOF
try check -q other_shape
try check -q group
for name in migrated not_read slashes third third_dots beyond two_sets third_beyond; do
    try check $name
done
