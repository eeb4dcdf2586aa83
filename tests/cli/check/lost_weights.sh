# A trained parameter without the weight, or the master, that others have is named; a tied output
# layer, and a weight in another form, are not.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import struct
from safetensors_file import write

VALUES = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)

def model(path, weights, trained, masters=(), more=()):
    tensors = {name: ("F32", [2, 2], VALUES) for name in [*weights, *more]}
    tensors |= {"optimizer.state.fp32_param." + name: ("F32", [2, 2], VALUES) for name in masters}
    for state in ("exp_avg", "exp_avg_sq"):
        tensors |= {f"optimizer.state.{state}.{name}": ("F32", [2, 2], VALUES) for name in trained}
    write(path, tensors)

names = [f"layers.{i}.weight" for i in range(4)]
a, b, c, d = names
table, head = "embed_tokens.weight", "lm_head.weight"
model("weight.safetensors", [a, b, d], names)
model("only_master.safetensors", [a, b, d], [], masters=names)
model("masters_alone.safetensors", [], names, masters=[a, b, c])
model("wide.safetensors", names, names, masters=[a, b, c])
model("own_head.safetensors", [table, a], [table, head, a])
model("tied.safetensors", [table, a], [head, a])
model("parts.safetensors", [a, b], [a, b, c], more=[c + "._data", c + "._scale"])
model("no_weights.safetensors", [], names)
model("others.safetensors", ["layers.8.weight"], names)
model("few_masters.safetensors", names, names, masters=[a])
EOF
for file in weight only_master masters_alone wide own_head; do
    try check $file.safetensors
done
try check -q tied.safetensors parts.safetensors no_weights.safetensors others.safetensors few_masters.safetensors
gradcmp --allow-same weight.safetensors weight.safetensors | grep -A 1 'moments of'
