# Pairs that are not good, not readable, or not different make no fit and no file.
. "$TESTS_CLI/lib.sh"
try fit -o noise.yaml data/megatron/s_base data/megatron/tp2dp2 data/megatron/bug_double_layer1
try fit -o noise.yaml --allow-loose data/megatron/s_base data/megatron/bug_not_divided
try fit -o noise.yaml data/megatron/s_base data/megatron/tp2dp2 data/megatron/no_such_folder
try fit -o noise.yaml data/megatron/s_base data/megatron/fr_pp2dp2
try fit data/megatron/s_base
try fit --k 2 data/megatron/s_base data/megatron/tp2dp2
ls noise.yaml 2>&1
