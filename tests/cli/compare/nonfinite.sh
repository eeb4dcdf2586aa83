gradcmp data/megatron/s_base data/megatron/bug_nan_fc2_2
