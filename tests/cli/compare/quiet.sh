. "$TESTS_CLI/lib.sh"
cd data/megatron
try --quiet s_base tp2dp2
try -q s_base bug_double_layer1
try -q s_base missing
