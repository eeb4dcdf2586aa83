# The last line stands alone, and the exit code agrees with it.
. "$TESTS_CLI/lib.sh"
last() {
    code=0
    gradcmp "$@" >out.txt || code=$?
    printf '%s: ' "$*"
    tail -n 1 out.txt
    printf '(exit %s)\n' "$code"
}
ln -s data/megatron/* .
last s_base tp2_perlayer
last s_base fr_pp2dp2
last fr_pp2dp2 s_base
last moe_base moe_tp2ep2
last tied_base tied_pp2
last s_base tp2_pad_garbage
last s_base tp2_bf16_exp_avg
last s_base bug_double_layer1
last s_base bug_zero_layer2
last --exclude 'layers\.1\.' s_base bug_double_layer1
last --match 'layers\.1\.' s_base bug_double_layer1
last --match 'layers.1.mlp.linear_fc2' s_base bug_double_layer1
last --k 200 --max-bound 10 s_base bug_double_layer1
last --compat megatron s_base tp2_perlayer
last --dtype fp32 s_base tp2_perlayer
last --state param s_base tp2_perlayer
last --allow-same s_base s_base
