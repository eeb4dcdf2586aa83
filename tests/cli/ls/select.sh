# Only what was asked for is listed, and read.
. "$TESTS_CLI/lib.sh"
gradcmp ls --state exp_avg --match 'fc2|proj' --exclude 'layers.[12]' data/megatron/s_base |
    sed -n '/^States/,$p'
try ls --state nothing data/megatron/s_base
try ls --match '[' data/megatron/s_base
gradcmp ls --state param --match no_such_name --json data/megatron/s_base | tail -n 4
