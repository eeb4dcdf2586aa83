gradcmp check --json - data/megatron/tp2_pad_garbage data/megatron/bug_nan_fc2_2
