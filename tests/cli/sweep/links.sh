# A sweep stays in its folder. A link to a folder elsewhere is not followed, and is told: what is not
# compared must not look as if it had passed. Links within the folder, and plans, name what they like.
. "$TESTS_CLI/lib.sh"
mkdir -p runs/deep
cp -R data/megatron/s_base data/megatron/tp2dp2 runs
ln -s "$DATA/megatron/bug_double_layer1" runs/new
ln -s "$DATA/megatron/bug_zero_layer2" runs/deep/newer
ln -s "$DATA/megatron/manifest.json" runs/manifest.json
ln -s tp2dp2 runs/latest_run
ln -s nowhere runs/dangling
try sweep runs
printf 'baseline: runs/s_base\ncandidates: [runs/new]\n' >plan.yaml
try sweep -q --plan plan.yaml
mkdir out
ln -s "$DATA/megatron/s_base" out/repeat_1_key_MODEL_ARGS
ln -s "$DATA/megatron/tp2dp2" out/repeat_1_key_MODEL_ARGS_2
printf 'MODEL_ARGS: {}\nMODEL_ARGS_2: {}\n' >model_config.yaml
try sweep --plan model_config.yaml out
try sweep out
