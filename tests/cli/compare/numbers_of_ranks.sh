# Numbers in place of names: what one rank wrote first stands in the model's order, which numbers count;
# what several wrote does not. Then shapes tell, or the other checkpoint does, or nothing.
. "$TESTS_CLI/lib.sh"
d=data/dcp/numbers
gradcmp $d/one $d/two
gradcmp $d/two $d/one | tail -n 7
try -q $d/megatron_fsdp1 $d/megatron_fsdp2
gradcmp ls $d/two | sed -n '/^Tensors/,$p'
gradcmp ls $d/megatron_fsdp2 | grep exp_avg
