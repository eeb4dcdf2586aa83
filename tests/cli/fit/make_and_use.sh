# A fit from good layouts: the table, the file, and what judges by it.
. "$TESTS_CLI/lib.sh"
try fit -o noise.yaml data/megatron/s_base data/megatron/tp2dp2 data/megatron/dr_dp2 data/megatron/tp2_bf16_exp_avg data/megatron/tp2_perlayer
sed -n '1,24p' noise.yaml
grep -c '^  "' noise.yaml
try --fit noise.yaml data/megatron/s_base data/megatron/fr_tp2_singleton
gradcmp --fit noise.yaml --json - data/megatron/s_base data/megatron/fr_tp2_singleton |
    grep -E '"(options|bound)": \{'
try --quiet --fit noise.yaml data/megatron/s_base data/megatron/bug_zero_layer2
# Written whole or not at all, and never over another file.
try fit -o noise.yaml data/megatron/s_base data/megatron/tp2dp2
