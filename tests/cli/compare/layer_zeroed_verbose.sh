gradcmp --verbose data/megatron/s_base data/megatron/bug_zero_layer2
