# Megatron's default layout: flat buffers without names, on either side.
. "$TESTS_CLI/lib.sh"
ln -s data/megatron/* .
try s_base dr_dp2
gradcmp dr_dp2 tp2dp2 | tail -n 1
