# --resume: a verdict is taken over only under what it was made with. A state that is named means less
# than the same by default, for which a momentum stands in where there is no first moment.
. "$TESTS_CLI/lib.sh"
python3 - <<'PY'
import os, struct
from safetensors_file import write

def save(folder, factor):
    os.makedirs(folder)
    tensors = {}
    for layer in range(2):
        for state, part, scale in (("exp_avg", "fc1", 1.0), ("momentum_buffer", "fc2", factor)):
            values = [scale * (layer + 1 + i / 7) for i in range(16)]
            tensors["optimizer.state.%s.decoder.layers.%d.mlp.linear_%s.weight" % (state, layer, part)] = (
                "F32", [4, 4], struct.pack("<16f", *values))
    write(folder + "/model.safetensors", tensors)

save("runs/base", 1.0)
save("runs/cand", 2.0)
PY
short() {
    code=0
    gradcmp sweep --resume state --baseline base "$@" runs >report 2>&1 || code=$?
    sed -n '/^taken over/p; /^SWEEP/p' report
    printf '(exit %s)\n\n' "$code"
}
short --state exp_avg
short --state exp_avg
short
short
# Every option that judges makes another verdict.
for option in --match=fc2 --exclude=fc1 --dtype=bf16 --k=3 --C=2 --max-bound=0.1 --vocab=70 --layers=3 \
    --strict --verify --no-verify --allow-same --allow-iterations --allow-routing --compat=megatron; do
    echo "$option"
    short "$option"
done
