. "$TESTS_CLI/lib.sh"
try lint --pair data/lint/launch.sh data/lint/launch_tp4.sh
try lint --pair data/lint/launch.sh data/lint/launch.sh
try lint --pair data/megatron/s_base data/megatron/bug_double_layer1
