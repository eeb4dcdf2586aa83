# What is no floating-point number is not looked at, and not counted as if it were.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import struct
from safetensors_file import write

counts = {f"optimizer.state.exp_avg.layers.{i}.weight": ("I8", [2], b"\x01\x02") for i in range(2)}
write("mixed.safetensors", {"layers.0.weight": ("F32", [2], struct.pack("<2f", 1, 2)),
                            "layers.1.weight": ("I8", [2], b"\x01\x02")} | counts)
write("counts.safetensors", counts)
EOF
try check mixed.safetensors
try check counts.safetensors
