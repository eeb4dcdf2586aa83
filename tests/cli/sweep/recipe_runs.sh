# Every run of a recipe is judged, whatever its number and however its key is spelled; a configuration
# without a run, and a checkpoint that is no run, are told in all reports.
. "$TESTS_CLI/lib.sh"
put() {
    mkdir -p "out/$2"
    cp -R "data/megatron/$1/." "out/$2/"
    chmod -R u+w "out/$2"
}
cat >model_config.yaml <<'RECIPE'
MODEL_ARGS:
  --num-layers: 4
MODEL_ARGS_2:
  --num-layers: 4
MODEL_ARGS_10:
  --num-layers: 4
RECIPE
put s_base repeat_1_key_1
put tp2dp2 repeat_1_key_MODEL_ARGS_2
put bug_double_layer1 repeat_2_key_10
# The first run of its configuration, though not by number.
try sweep --plan model_config.yaml out
# Two spellings are one configuration; no other name counts as a run's.
rm -r out/repeat_2_key_10
put s_base repeat_2_key_MODEL_ARGS
put bug_double_layer1 repeat_2_key_2
put tp2dp2 old_repeat_set/repeat_1_key_10
put tp2dp2 old_repeat_1_key_2
put tp2dp2 repeat_one_key_2
mkdir -p out/repeat_3_key_1/tensorboard out/repeat_1_key_3/tensorboard out/repeat_2
try sweep --plan model_config.yaml out
rm -r out/repeat_2_key_2 out/old_repeat_1_key_2 out/old_repeat_set
try sweep --plan model_config.yaml out
# The folder's own name is one where nothing nearer to the checkpoint is.
try sweep --plan model_config.yaml --baseline data/megatron/s_base out/repeat_1_key_MODEL_ARGS_2
code=0
gradcmp sweep --plan model_config.yaml --annotations github --json report.json --html report.html \
    --junit report.xml --markdown report.md out >report 2>lines || code=$?
echo "exit $code"
grep 'no run\|in no folder' lines | grep :: | cut -c -76
sed -n '/"left_out"/,/"candidates"/p' report.json | cut -c -76
for file in report.html report.xml report.md; do
    echo "- $file:"
    grep -o '[^<>]*in no folder[^<>]*\|[^<>]*no run[^<>]*' $file | cut -c -76
done
