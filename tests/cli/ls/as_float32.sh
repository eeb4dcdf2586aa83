# The same values have one hash as binary32, whatever type they are stored in.
gradcmp ls --json --stats --as float32 data/megatron/tp2_bf16_exp_avg >as.json
gradcmp ls --json --stats data/megatron/tp2_bf16_exp_avg >stored.json
grep '"param"' as.json >as.txt
grep '"param"' stored.json >stored.txt
! cmp -s as.txt stored.txt
grep 'output_layer' as.json
