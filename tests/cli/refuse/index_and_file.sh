# Weights in a single safetensors file and, beside it, in the files of an index: which are meant is not
# told. A file of other tensors, or that the index names, is none.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import json
import os
import struct
from safetensors_file import write

def values(first):
    return ("F32", [2], struct.pack("<2f", first, 2))

def folder(name, files, index):
    os.mkdir(name)
    for file, tensors in files.items():
        write(f"{name}/{file}", {tensor: values(i + 1) for i, tensor in enumerate(tensors)})
    with open(f"{name}/model.safetensors.index.json", "w") as file:
        json.dump({"weight_map": index}, file)

a, b = "layers.0.weight", "layers.1.weight"
first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
parts, index = {first: [a], second: [b]}, {a: first, b: second}
folder("both", parts | {"model.safetensors": [b, a]}, index)
folder("other_names", parts | {"model.safetensors": ["w"]}, index)
folder("variant", parts | {"model.fp16.safetensors": [a, b]}, index)
folder("named", {"model.safetensors": [a, b]}, {a: "model.safetensors", b: "model.safetensors"})
EOF
try check both
try check -q both/model.safetensors other_names variant named
