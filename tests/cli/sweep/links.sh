# A sweep stays in its folder. A link to a folder elsewhere is not followed, and is told: what is not
# compared must not look as if it had passed. A link within the folder is another name of one checkpoint,
# which counts once; plans name what they like.
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
# Other names of the baseline: of its folder, of the file, of the iteration that a tracker leads to; of
# all that is there. By such a name it can be chosen, too.
mkdir -p again/runs
cp -R data/megatron/s_base data/megatron/tp2dp2 again/runs
mkdir -p again/steps/a again/steps/b
cp -RL data/megatron/s_base/iter_0000001 again/steps/a/step_1
cp -RL data/megatron/tp2dp2/iter_0000001 again/steps/b/step_1
ln -s step_1 again/steps/a/last
ln -s s_base/iter_0000001 again/runs/a_best
ln -s . again/runs/all
try sweep again/runs
try sweep --baseline a_best again/runs
try sweep --baseline a/last again/steps
try sweep --iteration 1 --baseline again/steps/b/step_1 again/steps
mkdir again/files
cp data/previous/usual_step3.pt again/files/a.pt
cp data/previous/other_step3.pt again/files/b.pt
ln -s a.pt again/files/latest.pt
try sweep --baseline latest.pt again/files
# Of a recipe: a run that is another one is no run of its own, nor an empty one.
mkdir again/recipe
cp -R data/megatron/s_base again/recipe/repeat_1_key_MODEL_ARGS
cp -R data/megatron/tp2dp2 again/recipe/repeat_1_key_MODEL_ARGS_2
ln -s repeat_1_key_MODEL_ARGS again/recipe/repeat_2_key_MODEL_ARGS
try sweep --plan model_config.yaml again/recipe
# A pattern of a plan finds such links, too; a link that leads out is a name like any other there.
printf 'baseline: again/runs/s_base\ncandidates: ["again/runs/*"]\n' >again.yaml
ln -s "$DATA/megatron/bug_double_layer1" again/runs/other
ln -s tp2dp2 again/runs/a_link
try sweep --plan again.yaml
printf 'baseline: again/runs/s_base\ncandidates: ["again/runs/a_*"]\n' >again.yaml
try sweep --plan again.yaml
printf 'baseline: again/runs/s_base\ncandidates: [again/runs/tp2dp2, "again/runs/a_*"]\n' >again.yaml
try sweep -q --plan again.yaml
