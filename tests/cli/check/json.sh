gradcmp check --json - data/megatron/tp2_pad_garbage
