# Where no ratio tells of a finding, the matrix names it.
. "$TESTS_CLI/lib.sh"
mkdir runs
copy_checkpoint s_base runs/base
copy_checkpoint bug_nan_fc2_2 runs/not_a_number
gradcmp extract data/megatron/tp2dp2 --exclude 'layers.1.*layer_norm' -o runs/fewer.safetensors
gradcmp sweep --dtype bf16 --baseline runs/base runs | sed -n "/^Worst/,/^$/p"
# Runs below a folder that holds some of its own are swept too.
mkdir -p more/deep
cp data/previous/usual_step3.pt data/previous/other_step3.pt more
cp data/previous/usual_step3.pt more/deep/again.pt
gradcmp sweep --baseline more/usual_step3.pt more 2>/dev/null | sed -n "/^configuration/,/^$/p"
