# Parameters that only one side has, other settings, and more failures than are listed.
gradcmp --top 4 data/megatron/s_base data/megatron/moe_base
