gradcmp ls --stats --verbose data/megatron/s_base
