# The plan that the examples show.
try() { gradcmp "$@" 2>&1; }
try sweep --plan "$TESTS_CLI/../../examples/sweep.yaml" data/megatron
