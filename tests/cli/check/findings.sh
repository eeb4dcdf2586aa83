. "$TESTS_CLI/lib.sh"
try check data/megatron/fr_pp2dp2
try check data/megatron/bug_zero_layer2
try check data/megatron/bug_nan_fc2_2
try check data/megatron/tp2_pad_garbage
try check data/megatron/s_base data/megatron/bug_nan_fc2_2 nosuch
try check -q data/megatron/bug_nan_fc2_2
try check --top 1 data/megatron/bug_zero_layer2
try check
