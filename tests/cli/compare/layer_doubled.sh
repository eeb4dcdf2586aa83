gradcmp compare data/megatron/s_base data/megatron/bug_double_layer1
