. "$TESTS_CLI/lib.sh"
# Formats keep the step of a parameter in places of their own: it is compared by the parameter.
gradcmp extract data/dcp/all_ahead -o extracted.safetensors
cat >write.py <<'P'
import json, struct, sys
import safetensors_file

with open("extracted.safetensors", "rb") as file:
    header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
    data = file.read()
header.pop("__metadata__")
tensors = {name: (of["dtype"], of["shape"], data[slice(*of["data_offsets"])]) for name, of in header.items()}
for name, step in zip(("a.weight", "b.weight", "c.bias"), sys.argv[2:]):
    tensors["optimizer.state.step." + name] = "F32", [], struct.pack("<f", float(step))
safetensors_file.write(sys.argv[1], tensors)
P
python3 write.py same.safetensors 2 2 2
python3 write.py other.safetensors 2 2 3
python3 write.py fewer.safetensors 2 2
for file in extracted same other fewer; do
    try bits data/dcp/all_ahead $file.safetensors
done
