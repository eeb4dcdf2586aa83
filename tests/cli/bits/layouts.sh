. "$TESTS_CLI/lib.sh"
cd data/npu
# Two tensor-parallel ranks, then two stages as well; the optimizer in other files.
try bits numpy_tp2 tag_tp2pp2
try bits numpy_tp2 plainopt_npu_int_tp2
try bits base numpy_tp2
