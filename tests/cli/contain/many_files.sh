# Hundreds of files with few descriptors, threads and all: the same answer.
. "$TESTS_CLI/lib.sh"
python3 - <<'P'
import json, os, struct
for folder in "a", "b":
    os.mkdir(folder)
    index = {}
    for i in range(400):
        name = "optimizer.state.exp_avg.layers.%d.w%d.weight" % (i % 8, i)
        file = "model-%05d-of-00400.safetensors" % (i + 1)
        header = json.dumps({name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        data = struct.pack("<4f", *[(i * 31 + k * 7) % 97 / 50 + 1 for k in range(4)])
        if folder == "b" and i == 399:
            data = data[:12] + struct.pack("<f", 1000)
        with open(os.path.join(folder, file), "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header + data)
        index[name] = file
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as out:
        json.dump({"metadata": {}, "weight_map": index}, out)
P
for files in 1024 48; do
    (
        ulimit -n $files
        code=0
        gradcmp --dtype fp32 --threads 8 a b >few.txt || code=$?
        echo "$files descriptors: exit $code, $(tail -n 1 few.txt)"
        gradcmp bits --threads 8 a b >few.txt || code=$?
        echo "bits: exit $code, $(tail -n 1 few.txt)"
    )
done
# A tensor of 2^40 elements takes no more than its line; the file is a hole.
python3 - <<'P'
import json, struct
bytes_ = 4 << 40
header = json.dumps({"layers.0.w": {"dtype": "F32", "shape": [1 << 20, 1 << 20],
                                    "data_offsets": [0, bytes_]}}).encode()
try:
    with open("huge.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header)
        out.truncate(8 + len(header) + bytes_)
except OSError:  # a file system of smaller files
    with open("huge.safetensors", "wb") as out:
        out.write(b"")
P
if [ -s huge.safetensors ]; then
    gradcmp ls huge.safetensors | tail -n 1
else
    echo '   1 param float32 [1048576, 1048576]      1      1 layers.0.w'
fi
