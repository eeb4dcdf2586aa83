# A weight that lost its float32 master is named; one that needs none is not.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import struct
from safetensors_file import write

# Values that bfloat16 holds: the upper half of float32's bytes.
WIDE = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)
NARROW = b"".join(WIDE[i + 2:i + 4] for i in range(0, 16, 4))

def model(path, weights, masters=(), trained=(), wide=()):
    tensors = {name: ("F32", [2, 2], WIDE) if name in wide else ("BF16", [2, 2], NARROW)
               for name in weights}
    tensors |= {"optimizer.state.fp32_param." + name: ("F32", [2, 2], WIDE) for name in masters}
    for state in ("exp_avg", "exp_avg_sq"):
        tensors |= {f"optimizer.state.{state}.{name}": ("F32", [2, 2], WIDE) for name in trained}
    write(path, tensors)

names = [f"layers.{i}.weight" for i in range(4)]
a, b, c, d = names
model("no_moments.safetensors", names, masters=[a, b, d])
model("trained.safetensors", names, masters=[a], trained=[a, b])
model("frozen.safetensors", names, masters=[a], trained=[a])
model("wide.safetensors", names, masters=[a], trained=names, wide=[b, c, d])
model("adapter.safetensors", names, masters=[d])
model("no_masters.safetensors", names, trained=names)
EOF
try check no_moments.safetensors
try check trained.safetensors
try check -q frozen.safetensors wide.safetensors adapter.safetensors no_masters.safetensors
