# --quiet keeps what was found to itself, not why there is no answer: each reason once.
. "$TESTS_CLI/lib.sh"
cp data/previous/usual_step3.pt whole.pt
head -c 1000 whole.pt >cut.pt
cp whole.pt third.pt
printf 'step,loss\n1,2.5\n2,2.4\n' >a.csv
printf 'step,loss\n1,2.5\n2,x\n' >b.csv
for json in '' '--json -'; do
    for command in 'bits whole.pt cut.pt' 'bits whole.pt nope cut.pt' 'bits cut.pt whole.pt' \
        'bits whole.pt third.pt nope' 'trace a.csv b.csv' 'trace nope b.csv' 'metrics a.csv b.csv' \
        'metrics nope b.csv' 'lint nope' 'lint cut.pt' 'check nope cut.pt' 'whole.pt cut.pt' \
        'whole.pt nope cut.pt'; do
        echo "\$ gradcmp $command --quiet $json"
        # shellcheck disable=SC2086
        gradcmp $command --quiet $json 2>&1 >/dev/null || echo "(exit $?)"
    done
done
# No answer is what neither a difference nor its absence can be seen in, and a configuration without a run.
python3 - <<'PY'
import random
from safetensors_file import write_gradients
chance = random.Random(1)
values = {f"layers.{i}.w": [chance.gauss(0, 1) for _ in range(64)] for i in range(3)}
write_gradients("exact.safetensors", values, columns=8)
write_gradients("coarse.safetensors", {name: [x * (1 + chance.gauss(0, 1e-3)) for x in of] for name, of in values.items()},
                columns=8)
for name in ("zero", "nought"):
    write_gradients(f"{name}.safetensors", {name: [0.0] * 64 for name in values}, columns=8)
PY
printf 'MODEL_ARGS:\n  --num-layers: 4\nMODEL_ARGS_2:\n  --num-layers: 4\nMODEL_ARGS_3:\n  --num-layers: 4\n' >recipe.yaml
mkdir out
cp -R data/megatron/s_base out/repeat_1_key_1
cp -R data/megatron/tp2dp2 out/repeat_1_key_2
mkdir -p several/a several/b
cp exact.safetensors several/a/model.safetensors
cp coarse.safetensors several/b/model.safetensors
for command in 'exact.safetensors coarse.safetensors' 'zero.safetensors nought.safetensors' \
    'exact.safetensors exact.safetensors coarse.safetensors --allow-same' \
    'sweep --plan recipe.yaml out' 'sweep several --baseline several/a'; do
    # shellcheck disable=SC2086
    try $command --quiet
done
# A difference that is found is an answer.
try exact.safetensors zero.safetensors --quiet
