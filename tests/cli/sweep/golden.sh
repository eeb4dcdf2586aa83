# Golden num-zeros of a recipe against the zeros in the gradients, padding of the vocabulary included
# as Megatron-LM counts it.
. "$TESTS_CLI/lib.sh"
mkdir -p out/repeat_1_key_MODEL_ARGS out/repeat_1_key_MODEL_ARGS_2 recipe
cp -R data/megatron/s_base/. out/repeat_1_key_MODEL_ARGS/
cp -R data/megatron/tp2dp2/. out/repeat_1_key_MODEL_ARGS_2/
chmod -R u+w out
cat >recipe/model_config.yaml <<'RECIPE'
MODEL_ARGS:
  --tensor-model-parallel-size: 1
MODEL_ARGS_2:
  --tensor-model-parallel-size: 2
RECIPE
golden() {
    printf '{"num-zeros": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": %s, "2": 7}}, "lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"1": 4.1}}}\n' "$1"
}
short() {
    code=0
    gradcmp sweep "$@" 2>&1 >report || code=$?
    sed -n '/^golden/,/^$/p; /^Runs that/,/^$/p; /^SWEEP/p' report
    printf '(exit %s)\n\n' "$code"
}
# The zeros, counted from the JSON report: of the baseline with its padding of 72 - 70 rows.
gradcmp sweep --json report.json --plan recipe/model_config.yaml out >/dev/null
zeros=$(sed -n 's/.*"zeros_a": \([0-9]*\).*/\1/p' report.json | awk '{ sum += $1 } END { print sum }')
rows=$(sed -n 's/.*"name": "embedding.word_embeddings.weight".*"shape": \[[0-9]*, \([0-9]*\)\].*/\1/p' report.json)
echo "$zeros zeros, rows of $rows"
echo "- beside the recipe:"
golden $((zeros + 2 * 2 * rows)) >recipe/golden_values_dev_dgx_h100.json
short --plan recipe/model_config.yaml out
echo "- one zero less:"
golden $((zeros + 2 * 2 * rows - 1)) >other.json
short --plan recipe/model_config.yaml --golden other.json out
echo "- most of them missing, in both:"
golden $((zeros / 2)) >other.json
short --plan recipe/model_config.yaml --golden other.json out
golden 0 >other.json
short --plan recipe/model_config.yaml --golden other.json out
gradcmp sweep --json - --plan recipe/model_config.yaml --golden other.json out | sed -n '/"golden/p; /golden values/p' || true
echo "- nothing to hold it against:"
golden '"nan"' >other.json
short --plan recipe/model_config.yaml --golden other.json out
golden '"inf"' >other.json
short --plan recipe/model_config.yaml --golden other.json out
golden -1 >other.json
short --plan recipe/model_config.yaml --golden other.json out
sed 's/"1": -1/"9": 5/' other.json >later.json
short --plan recipe/model_config.yaml --golden later.json out
sed 's/num-zeros/num zeros/' other.json >without.json
short --plan recipe/model_config.yaml --golden without.json out
gradcmp sweep --json - --plan recipe/model_config.yaml --golden without.json out | sed -n '1,/"verdict"/{/"verdict"/p;}' || true
short --plan recipe/model_config.yaml --golden recipe/golden_values_dev_dgx_h100.json --match fc1 out
short --plan recipe/model_config.yaml --match fc1 out
short --plan recipe/model_config.yaml --state param out
cp recipe/golden_values_dev_dgx_h100.json recipe/golden_values_dev_dgx_a100.json
short --plan recipe/model_config.yaml out
rm recipe/golden_values_dev_dgx_a100.json
echo '{"0": {"generated_text": "x"}}' >recipe/golden_values_dev_dgx_h100.json
short --plan recipe/model_config.yaml out
echo "- named ones have to be some:"
try sweep --plan recipe/model_config.yaml --golden recipe/golden_values_dev_dgx_h100.json out
try sweep --plan recipe/model_config.yaml --golden none.json out
