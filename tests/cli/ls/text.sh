gradcmp ls data/megatron/moe_tp2ep2
