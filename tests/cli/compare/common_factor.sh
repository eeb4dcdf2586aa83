gradcmp data/megatron/s_base data/megatron/bug_not_divided
