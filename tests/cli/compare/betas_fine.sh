# The factor that betas make is divided out of values where it would leave too little of the sums: a
# good pair in float32 passes, and an error of 1e-5 is seen, whichever side has the smaller share.
. "$TESTS_CLI/lib.sh"
PYTHONPATH=$TESTS_CLI/.. python3 - <<'EOF'
import json, random, struct
from safetensors_file import write

def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]

def save(path, beta2, error=0.0):
    random.seed(1)
    tensors = {}
    for layer in range(4):
        values = [single((1 - beta2) * single(random.gauss(0, 1) ** 2) *
                         (1 + random.choice((-error, error)))) for _ in range(4096)]
        tensors[f"optimizer.state.exp_avg_sq.layers.{layer}.weight"] = (
            "F32", [64, 64], struct.pack("<4096f", *values))
    settings = json.dumps({"adam_beta1": 0.0, "adam_beta2": beta2})
    write(path, tensors, {"gradcmp.version": "0", "gradcmp.iteration": "1", "gradcmp.layers": "4",
                          "gradcmp.compute": "float32", "gradcmp.settings": settings})

save("whole.safetensors", 0.0)
for beta2 in 0.99, 0.999, 0.9999:
    save(f"good_{beta2}.safetensors", beta2)
    save(f"bad_{beta2}.safetensors", beta2, 1e-5)
EOF
for beta2 in 0.99 0.999 0.9999; do
    for pair in "whole good_$beta2" "good_$beta2 whole" "whole bad_$beta2" "bad_$beta2 whole"; do
        # shellcheck disable=SC2086
        set -- $pair
        try --state exp_avg_sq $1.safetensors $2.safetensors | grep CONSISTENT
    done
done
